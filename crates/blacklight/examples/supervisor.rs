//! Runs a program again and again, however often it ends, until it is itself asked to end by
//! SIGINT or SIGTERM: then the program is asked too, and killed if it does not listen.
//!
//! ```text
//! cargo run -p blacklight --example supervisor -- sh -c 'echo working; sleep 1; exit 1'
//! ```

use blacklight::process::{Child, Command};
use blacklight::{Loop, SignalKind, Signals};
use std::ffi::OsString;
use std::io;
use std::pin::pin;
use std::process::ExitStatus;
use std::task::Poll;
use std::time::Duration;

/// How long to wait before a program that has failed is started again: at first, and at most.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long a program may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(5);

/// Waits for whichever comes first; for the signal if both have.
async fn or_signal<T>(signals: &mut Signals, other: impl Future<Output = T>) -> Option<T> {
    let mut other = pin!(other);
    std::future::poll_fn(|context| match signals.poll_recv(context) {
        Poll::Ready(_) => Poll::Ready(None),
        Poll::Pending => other.as_mut().poll(context).map(Some),
    })
    .await
}

/// Asks a child to end, and sees to it that it does.
async fn end(mut child: Child) -> io::Result<ExitStatus> {
    // It may have ended just now, which is as good.
    let _ = child.kill(SignalKind::SIGTERM);
    if let Ok(status) = blacklight::timeout(GRACE, child.wait()).await {
        return status;
    }
    eprintln!("supervisor: {} does not listen", child.id());
    let _ = child.kill(SignalKind::SIGKILL);
    child.wait().await
}

async fn supervise(command: &mut Command) -> io::Result<()> {
    let mut signals = Signals::new([SignalKind::SIGINT, SignalKind::SIGTERM])?;
    let mut pause = PAUSE;
    loop {
        // Ctrl-C is for us: in a session of its own the child does not hear it, too.
        let mut child = command.detached(true).kill_on_drop(true).spawn()?;
        eprintln!("supervisor: {} runs", child.id());
        let Some(status) = or_signal(&mut signals, child.wait()).await else {
            let status = end(child).await?;
            eprintln!("supervisor: ended ({status})");
            return Ok(());
        };
        let status = status?;
        if status.success() {
            pause = PAUSE;
        }
        eprintln!("supervisor: {status}; again in {pause:?}");
        if or_signal(&mut signals, blacklight::sleep(pause))
            .await
            .is_none()
        {
            return Ok(());
        }
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

fn main() -> io::Result<()> {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let Some((program, args)) = args.split_first() else {
        eprintln!("usage: supervisor PROGRAM [ARGUMENT…]");
        std::process::exit(2);
    };
    Loop::new()?.block_on(supervise(Command::new(program).args(args)))
}
