//! How streams end: a reset is an error and no end, however much was read before it, and a
//! terminal that nobody has open any more is at its end. For tasks and for callbacks, on every
//! mechanism.

use blacklight::{Loop, LoopHandle, Mechanism, Mode, Pipe, TcpStream, UnixStream};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;
use std::time::Duration;

const MECHANISMS: [Mechanism; 3] = [Mechanism::Epoll, Mechanism::Poll, Mechanism::Select];

/// What was read of a stream, byte by byte, and how it ended.
type Story = (Vec<u8>, Result<(), ErrorKind>);

/// Reads a stream to its end in the way that is asked for.
macro_rules! story {
    ($lp:expr, $stream:expr, in_a_task) => {{
        let (stream, mut all) = ($stream, Vec::new());
        let end = $lp.block_on(async {
            let mut room = [0; 64];
            loop {
                match stream.read(&mut room).await {
                    Ok(0) => return Ok(()),
                    Ok(count) => all.extend(&room[..count]),
                    Err(error) => return Err(error.kind()),
                }
            }
        });
        (all, end)
    }};
    ($lp:expr, $stream:expr, by_callbacks) => {{
        let stream = $stream;
        let story: Rc<RefCell<(Vec<u8>, Vec<Result<(), ErrorKind>>)>> = Rc::default();
        let its = story.clone();
        let callback = move |_: &LoopHandle, _: &_, bytes: io::Result<&[u8]>| match bytes {
            Ok([]) => its.borrow_mut().1.push(Ok(())),
            Ok(bytes) => its.borrow_mut().0.extend(bytes),
            Err(error) => its.borrow_mut().1.push(Err(error.kind())),
        };
        stream.read_start(callback).unwrap();
        $lp.run(Mode::Default);
        let (all, ends) = story.take();
        assert_eq!(ends.len(), 1, "{ends:?}");
        (all, ends[0])
    }};
    ($lp:expr, $stream:expr, by_trying) => {{
        let (stream, mut all) = ($stream, Vec::new());
        let mut room = [0; 64];
        let end = loop {
            match stream.try_read(&mut room) {
                Ok(0) => break Ok(()),
                Ok(count) => all.extend(&room[..count]),
                Err(error) => break Err(error.kind()),
            }
        };
        (all, end)
    }};
}

/// Both are there when the stream is read: what the other end has answered, and that it has closed
/// with something unread.
fn answer_and_reset(mut theirs: impl Write, mut ours: impl Write) {
    ours.write_all(b"a request that nobody reads").unwrap();
    theirs.write_all(b"half an ans").unwrap();
}

fn reset_tcp() -> std::net::TcpStream {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let ours = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    answer_and_reset(listener.accept().unwrap().0, &ours);
    ours
}

fn reset_unix() -> std::os::unix::net::UnixStream {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    answer_and_reset(theirs, &ours);
    ours
}

#[test]
fn what_was_reset_is_an_error_after_all_that_came_before() {
    let expected: Story = (b"half an ans".to_vec(), Err(ErrorKind::ConnectionReset));
    for mechanism in MECHANISMS {
        let lp = Loop::builder().poller(mechanism).build().unwrap();
        let tcp = || TcpStream::from_std(reset_tcp()).unwrap();
        assert_eq!(story!(lp, tcp(), in_a_task), expected, "{mechanism:?}");
        assert_eq!(story!(lp, tcp(), by_callbacks), expected, "{mechanism:?}");
        assert_eq!(story!(lp, tcp(), by_trying), expected);
        let unix = || UnixStream::from_std(reset_unix()).unwrap();
        assert_eq!(story!(lp, unix(), in_a_task), expected, "{mechanism:?}");
        assert_eq!(story!(lp, unix(), by_callbacks), expected, "{mechanism:?}");
        assert_eq!(story!(lp, unix(), by_trying), expected);
    }
}

/// A terminal: its controlling side and the other.
fn terminal() -> (OwnedFd, File) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let path = std::ffi::OsStr::from_bytes(name.as_bytes());
    let terminal = File::options().read(true).write(true).open(path).unwrap();
    (master, terminal)
}

/// The controlling side of a terminal to which somebody has written and gone.
fn left_terminal(text: &[u8]) -> OwnedFd {
    let (master, mut terminal) = terminal();
    terminal.write_all(text).unwrap();
    master
}

#[test]
fn a_terminal_that_nobody_has_open_is_at_its_end() {
    // As much as a reader takes at once is the one that reads on.
    for text in [&b""[..], b"some", &[b'x'; 64], &[b'x'; 3000]] {
        let expected: Story = (text.to_vec(), Ok(()));
        for mechanism in MECHANISMS {
            let lp = Loop::builder().poller(mechanism).build().unwrap();
            let master = || Pipe::from_fd(left_terminal(text)).unwrap();
            let len = text.len();
            let told = story!(lp, master(), in_a_task);
            assert_eq!(told, expected, "{len}, {mechanism:?}");
            let told = story!(lp, master(), by_callbacks);
            assert_eq!(told, expected, "{len}, {mechanism:?}");
            assert_eq!(story!(lp, master(), by_trying), expected, "{len}");
        }
    }
}

/// The end is there for whoever asks again, and for a task that has waited for it.
#[test]
fn a_task_that_waits_at_a_terminal_hears_of_its_end_time_and_again() {
    let lp = Loop::new().unwrap();
    let (master, terminal) = terminal();
    let master = Pipe::from_fd(master).unwrap();
    lp.block_on(async {
        let waits = lp.spawn(async move {
            let mut room = [0; 64];
            let first = master.read(&mut room).await.map_err(|error| error.kind());
            let second = master.read(&mut room).await.map_err(|error| error.kind());
            (first, second)
        });
        // By then it waits.
        blacklight::sleep(Duration::ZERO).await;
        drop(terminal);
        assert_eq!(waits.await.unwrap(), (Ok(0), Ok(0)));
    });
}
