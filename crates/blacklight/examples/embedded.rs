//! A loop inside a program that has a loop of its own, here a plain one around poll(2).
//!
//! The program waits for its own descriptors and the loop's at once, for no longer than the loop
//! would sleep, and lets the loop take a turn that does not wait.

use blacklight::{Loop, Mechanism, Mode, Timer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::Cell;
use std::io::{self, Read, Write};
use std::rc::Rc;
use std::time::Duration;

fn main() -> io::Result<()> {
    // Others have no descriptor that a program could wait for.
    let lp = Loop::builder().poller(Mechanism::Epoll).build()?;
    let ticks = Rc::new(Cell::new(0));
    let count = ticks.clone();
    let timer = Timer::new()?;
    timer.start_repeating(Duration::from_millis(20), move |_, timer| {
        count.set(count.get() + 1);
        println!("the loop's timer: tick {}", count.get());
        if count.get() == 5 {
            timer.stop();
        }
    })?;
    lp.spawn(async {
        let answer = blacklight::spawn_blocking(|| 6 * 7).await;
        println!("the loop's task: {}", answer.expect("it does not panic"));
    });

    // What the program itself waits for.
    let (mut reader, mut writer) = io::pipe()?;
    let thread = std::thread::spawn(move || {
        for number in 0..3u8 {
            std::thread::sleep(Duration::from_millis(30));
            writer.write_all(&[number]).expect("the reader is there");
        }
    });

    let mut is_open = true;
    loop {
        // A turn first: it tells the kernel what the loop waits for.
        let is_alive = lp.run(Mode::NoWait);
        if !is_alive && !is_open {
            break;
        }
        let backend = lp.try_clone_backend_fd()?;
        let backend = backend.ok_or(io::ErrorKind::Unsupported)?;
        let mut fds = vec![PollFd::new(&backend, PollFlags::IN)];
        if is_open {
            fds.push(PollFd::new(&reader, PollFlags::IN));
        }
        let timeout = match is_alive {
            true => lp.backend_timeout(),
            false => None,
        };
        let timeout = timeout.map(|time| Timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: i64::from(time.subsec_nanos()),
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_readable = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        drop(fds);
        if is_readable {
            let mut byte = [0];
            match reader.read(&mut byte)? {
                0 => is_open = false,
                _ => println!("the program's own pipe: {}", byte[0]),
            }
        }
    }
    thread.join().expect("it does not panic");
    println!("{} ticks", ticks.get());
    Ok(())
}
