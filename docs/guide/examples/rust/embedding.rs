//! The loop inside another one, here a plain one around poll(2).
//!
//! The program waits for its own pipe and for the loop's descriptor at once, for no longer than the loop
//! would, and lets the loop take a turn that does not wait.

use blacklight::{Loop, Mechanism, Mode};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};

fn main() -> io::Result<()> {
    let lp = Loop::builder().poller(Mechanism::Epoll).build()?;
    let (mut reader, mut writer) = io::pipe()?;
    lp.work(
        || 6 * 7,
        move |_, answer| {
            println!("the loop's work: {}", answer.expect("it does not panic"));
            // Now the program has something of its own to do.
            writer.write_all(b"hello").expect("the reader is there");
        },
    )?;
    let mut is_open = true;
    // A turn first: it tells the kernel what the loop waits for.
    while lp.run(Mode::NoWait) || is_open {
        let backend = lp.try_clone_backend_fd()?.expect("epoll has one");
        let mut fds = vec![PollFd::new(&backend, PollFlags::IN)];
        if is_open {
            fds.push(PollFd::new(&reader, PollFlags::IN));
        }
        let limit = lp.backend_timeout().filter(|_| lp.is_alive());
        let limit = limit.map(|limit| Timespec::try_from(limit).expect("it is short"));
        poll(&mut fds, limit.as_ref())?;
        let is_readable = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        if is_readable {
            let mut bytes = [0; 16];
            let count = reader.read(&mut bytes)?;
            is_open = count > 0;
            if is_open {
                let text = String::from_utf8_lossy(&bytes[..count]);
                println!("the program's pipe: {text}");
            }
        }
    }
    Ok(())
}
