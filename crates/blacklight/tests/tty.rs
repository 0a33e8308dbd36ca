//! Terminals, on a pseudo-terminal.

use blacklight::{Loop, Mode, Pipe, Tty, TtyMode};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

/// The two ends of a new pseudo-terminal.
fn pty() -> (OwnedFd, File) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let path = std::ffi::OsStr::from_bytes(name.as_bytes());
    let terminal = File::options().read(true).write(true).open(path).unwrap();
    (master, terminal)
}

#[test]
fn a_terminal_gives_lines_and_raw_bytes() {
    let lp = Loop::new().unwrap();
    let (master, terminal) = pty();
    let tty = Tty::new(&terminal).unwrap();
    let master = Pipe::from_fd(master).unwrap();
    lp.block_on(async {
        let mut room = [0; 64];
        master.write_all(b"a line\n").await.unwrap();
        let count = tty.read(&mut room).await.unwrap();
        assert_eq!(&room[..count], b"a line\n");
        let count = master.read(&mut room).await.unwrap();
        assert!(room[..count].starts_with(b"a line"), "it is echoed");
        tty.set_mode(TtyMode::Raw).unwrap();
        while master.try_read(&mut room).is_ok() {}
        master.write_all(b"k").await.unwrap();
        assert_eq!(tty.read(&mut room).await.unwrap(), 1);
        assert!(master.try_read(&mut room).is_err(), "nothing is echoed");
        tty.write_all(b"out").await.unwrap();
        assert_eq!(master.read(&mut room).await.unwrap(), 3);
    });
    let size = rustix::termios::Winsize {
        ws_row: 24,
        ws_col: 80,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    rustix::termios::tcsetwinsize(&terminal, size).unwrap();
    let size = tty.size().unwrap();
    assert_eq!((size.columns, size.rows), (80, 24));
    let is_raw = |terminal: &File| {
        let modes = rustix::termios::tcgetattr(terminal).unwrap().local_modes;
        !modes.contains(rustix::termios::LocalModes::ICANON)
    };
    assert!(is_raw(&terminal));
    drop(tty);
    assert!(!is_raw(&terminal), "it is left as it was found");
    drop(master);
    assert!(!lp.run(Mode::Default));
}

#[test]
fn what_is_no_terminal_is_taken_or_refused() {
    let _lp = Loop::new().unwrap();
    let (reader, _writer) = std::io::pipe().unwrap();
    let tty = Tty::new(reader).unwrap();
    assert!(tty.size().is_err());
    let file = File::open("/proc/self/exe").unwrap();
    assert!(Tty::new(file).is_err());
}
