//! Shows the end of a file and then whatever is added to it, as `tail -F` does: also after the
//! file was cut off, or replaced by another of its name.
//!
//! ```text
//! cargo run -p blacklight --example tail -- /var/log/syslog
//! ```

use blacklight::fs::File;
use blacklight::{ChangeKind, FsChanges, Loop};
use std::io::{self, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// How much of the end is shown to begin with.
const END: u64 = 1024;

/// A file, and how much of it has been shown.
struct Shown {
    file: File,
    until: u64,
}

impl Shown {
    async fn open(path: &Path) -> io::Result<Shown> {
        let file = File::open(path).await?;
        Ok(Shown { file, until: 0 })
    }

    /// Goes to the first line that begins near the end.
    async fn skip_to_end(&mut self) -> io::Result<()> {
        let len = self.file.metadata().await?.len();
        let Some(start) = len.checked_sub(END) else {
            return Ok(());
        };
        let mut end = vec![0; END as usize];
        let count = self.file.read_at(&mut end, start).await?;
        let line = end[..count].iter().position(|&byte| byte == b'\n');
        self.until = start + line.map_or(0, |at| at as u64 + 1);
        Ok(())
    }

    /// Shows what is new.
    async fn show(&mut self) -> io::Result<()> {
        if self.file.metadata().await?.len() < self.until {
            eprintln!("tail: the file was cut off");
            self.until = 0;
        }
        self.file.seek(SeekFrom::Start(self.until)).await?;
        let mut room = vec![0; 64 * 1024];
        loop {
            let count = self.file.read(&mut room).await?;
            if count == 0 {
                return io::stdout().flush();
            }
            self.until += count as u64;
            io::stdout().write_all(&room[..count])?;
        }
    }
}

async fn follow(path: PathBuf) -> io::Result<()> {
    // The directory is watched, since the file itself would not tell of one that replaces it.
    let path = blacklight::fs::canonicalize(path).await?;
    let directory = path.parent().unwrap_or(Path::new("/"));
    let mut changes = FsChanges::new(directory)?;
    let mut shown = Shown::open(&path).await?;
    shown.skip_to_end().await?;
    shown.show().await?;
    loop {
        let change = changes.recv().await?;
        let is_ours = change.path.as_deref().map(Path::as_os_str) == path.file_name();
        match change.kind {
            ChangeKind::Changed if is_ours => {}
            ChangeKind::Overflow => {}
            ChangeKind::Renamed if is_ours => match Shown::open(&path).await {
                Ok(new) => {
                    // What was added to the old one last.
                    shown.show().await?;
                    shown = new;
                }
                Err(_) => continue,
            },
            _ => continue,
        }
        shown.show().await?;
    }
}

fn main() -> io::Result<()> {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: tail FILE");
        std::process::exit(2);
    };
    Loop::new()?.block_on(follow(path.into()))
}
