//! Copies its standard input to its standard output, whatever these are: terminals, pipes, sockets
//! or files.
//!
//! ```sh
//! ls | cargo run --example cat > files
//! ```

use blacklight::Loop;
use std::io;

async fn copy() -> io::Result<()> {
    let (mut stdin, mut stdout) = (blacklight::stdin()?, blacklight::stdout()?);
    let mut buf = vec![0; 64 * 1024];
    loop {
        match stdin.read(&mut buf).await? {
            0 => return Ok(()),
            count => stdout.write_all(&buf[..count]).await?,
        }
    }
}

fn main() -> io::Result<()> {
    Loop::new()?.block_on(copy())
}
