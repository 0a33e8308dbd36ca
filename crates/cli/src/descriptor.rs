//! What the descriptors of another process are, in words.
//!
//! `/proc/PID/fd` says what a descriptor leads to, `/proc/PID/fdinfo` some more, and
//! `/proc/PID/net` which addresses its sockets have. The tables of sockets may be long, so
//! [`Descriptors`] reads them once, and only if there is a socket to look up.

use crate::words::{clean, count};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

/// The states of TCP connections, by the kernel's number.
const TCP_STATES: [&str; 13] = [
    "unknown",
    "established",
    "connecting",
    "being accepted",
    "fin-wait-1",
    "fin-wait-2",
    "time-wait",
    "closed",
    "close-wait",
    "last-ack",
    "listening",
    "closing",
    "being accepted",
];
/// The number of a socket that listens in [`TCP_STATES`].
const LISTENING: usize = 10;
/// The part of the time that reading the tables of sockets may take.
const RARELY: u32 = 20;
/// The flag of a Unix socket that listens.
const UNIX_ACCEPTS: u32 = 1 << 16;

/// What a descriptor is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Descriptor {
    /// A TCP socket that listens or is connected.
    Tcp {
        /// Its own address.
        local: SocketAddr,
        /// The other end's address; none for a socket that listens.
        peer: Option<SocketAddr>,
        /// Its state, in a word.
        state: &'static str,
    },
    /// A UDP socket.
    Udp {
        /// Its own address.
        local: SocketAddr,
        /// The address that it is connected to.
        peer: Option<SocketAddr>,
    },
    /// A Unix socket.
    Unix {
        /// Its path, or its abstract name with an `@` in front.
        path: Option<String>,
        /// Whether it listens.
        is_listening: bool,
    },
    /// A socket that is in none of the tables: one that is not connected, or one of another kind.
    Socket,
    /// A pipe.
    Pipe,
    /// A terminal, by its path.
    Terminal(String),
    /// A file, by its path.
    File(String),
    /// An object of the kernel, such as an `eventfd`.
    Kernel(String),
    /// It is closed, or the system does not tell.
    Unknown,
}

impl fmt::Display for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Descriptor::Tcp { local, peer, state } => match peer {
                Some(peer) => write!(f, "TCP {local} → {peer} {state}"),
                None => write!(f, "TCP {local} {state}"),
            },
            Descriptor::Udp { local, peer } => match peer {
                Some(peer) => write!(f, "UDP {local} → {peer}"),
                None => write!(f, "UDP {local}"),
            },
            Descriptor::Unix { path, is_listening } => {
                f.write_str("Unix socket")?;
                if let Some(path) = path {
                    write!(f, " {path}")?;
                }
                f.write_str(if *is_listening { " listening" } else { "" })
            }
            Descriptor::Socket => f.write_str("socket that is not connected"),
            Descriptor::Pipe => f.write_str("pipe"),
            Descriptor::Terminal(path) => write!(f, "terminal {path}"),
            Descriptor::File(path) => f.write_str(path),
            Descriptor::Kernel(what) => f.write_str(what),
            Descriptor::Unknown => f.write_str("unknown"),
        }
    }
}

/// The sockets of a process's network namespace, by inode.
#[derive(Default, Debug)]
struct Sockets(HashMap<u64, Descriptor>);

/// The descriptors of a process, as they are while this lives.
#[derive(Debug)]
pub(crate) struct Descriptors {
    pid: u32,
    /// The sockets, when they had been read, and how long that took.
    sockets: OnceCell<(Sockets, Instant, Duration)>,
}

impl Descriptors {
    /// The descriptors of a process. Nothing is read before it is asked for.
    pub(crate) fn of(pid: u32) -> Descriptors {
        let sockets = OnceCell::new();
        Descriptors { pid, sockets }
    }

    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Reads the sockets again when one is asked for next. Where that takes long, it is done seldom: their tables have the sockets of all
    /// processes.
    pub(crate) fn forget(&mut self) {
        let is_due = |of: &(Sockets, Instant, Duration)| of.1.elapsed() >= of.2 * RARELY;
        if self.sockets.get().is_some_and(is_due) {
            self.sockets.take();
        }
    }

    /// What a descriptor is.
    pub(crate) fn get(&self, number: i32) -> Descriptor {
        let Ok(link) = std::fs::read_link(format!("/proc/{}/fd/{number}", self.pid)) else {
            return Descriptor::Unknown;
        };
        let link = clean(&link.to_string_lossy());
        if let Some(inode) = bracketed(&link, "socket:") {
            let socket = inode.parse().ok().and_then(|inode| self.socket(inode));
            return socket.unwrap_or(Descriptor::Socket);
        }
        if link.starts_with("pipe:[") {
            return Descriptor::Pipe;
        }
        if let Some(what) = link.strip_prefix("anon_inode:") {
            return Descriptor::Kernel(self.kernel_object(number, what));
        }
        if link.starts_with("/dev/pts/") || link.starts_with("/dev/tty") || link == "/dev/console" {
            return Descriptor::Terminal(link);
        }
        Descriptor::File(link)
    }

    /// Whether a TCP socket listens at this address, or at its port on all addresses.
    pub(crate) fn is_served(&self, address: SocketAddr) -> bool {
        self.sockets().0.values().any(|socket| match socket {
            Descriptor::Tcp {
                local, peer: None, ..
            } => {
                local.port() == address.port()
                    && (local.ip() == address.ip() || local.ip().is_unspecified())
            }
            _ => false,
        })
    }

    fn sockets(&self) -> &Sockets {
        let read = || {
            let begun = Instant::now();
            let sockets = Sockets::read(self.pid);
            (sockets, Instant::now(), begun.elapsed())
        };
        &self.sockets.get_or_init(read).0
    }

    fn socket(&self, inode: u64) -> Option<Descriptor> {
        self.sockets().0.get(&inode).cloned()
    }

    /// An object of the kernel without a name in the file system, with what `fdinfo` tells of it.
    fn kernel_object(&self, number: i32, what: &str) -> String {
        let info = std::fs::read_to_string(format!("/proc/{}/fdinfo/{number}", self.pid));
        let info = info.unwrap_or_default();
        let lines = |start: &str| info.lines().filter(|line| line.starts_with(start)).count();
        let value = |name: &str| info.lines().find_map(|line| line.strip_prefix(name));
        match what.trim_matches(['[', ']']) {
            "eventpoll" => format!("epoll of {}", count(lines("tfd:") as u64, "descriptor")),
            "inotify" => {
                let watches = count(lines("inotify wd:") as u64, "watch|watches");
                format!("inotify with {watches}")
            }
            "pidfd" => match value("Pid:") {
                Some(pid) => format!("pidfd of process {}", clean(pid.trim())),
                None => "pidfd".to_owned(),
            },
            other => other.to_owned(),
        }
    }
}

/// The text in brackets behind a prefix: `12` of `socket:[12]`.
fn bracketed<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    text.strip_prefix(prefix)?
        .strip_prefix('[')?
        .strip_suffix(']')
}

impl Sockets {
    /// Reads the tables of a process. One that cannot be read has no sockets.
    fn read(pid: u32) -> Sockets {
        let mut sockets = Sockets::default();
        let table = |name: &str| {
            let bytes = std::fs::read(format!("/proc/{pid}/net/{name}")).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        for name in ["tcp", "tcp6"] {
            sockets.add_all(&table(name), tcp);
        }
        for name in ["udp", "udp6"] {
            sockets.add_all(&table(name), udp);
        }
        sockets.add_all(&table("unix"), unix);
        sockets
    }

    fn add_all(&mut self, table: &str, parse: fn(&str) -> Option<(u64, Descriptor)>) {
        for (inode, socket) in table.lines().skip(1).filter_map(parse) {
            // A path with a newline in it may forge a line of the table of Unix sockets. What is said
            // twice, and differently, is believed neither time.
            self.0
                .entry(inode)
                .and_modify(|known| {
                    if *known != socket {
                        *known = Descriptor::Unknown;
                    }
                })
                .or_insert(socket);
        }
    }
}

/// The addresses, the state and the inode of a line of an internet table.
fn internet(line: &str) -> Option<(SocketAddr, SocketAddr, usize, u64)> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let local = address(fields.next()?)?;
    let peer = address(fields.next()?)?;
    let state = usize::from_str_radix(fields.next()?, 16).ok()?;
    let inode = fields.nth(5)?.parse().ok()?;
    // Connections whose owner has closed them have no inode any more.
    (inode != 0).then_some((local, peer, state, inode))
}

fn tcp(line: &str) -> Option<(u64, Descriptor)> {
    let (local, peer, number, inode) = internet(line)?;
    let state = TCP_STATES.get(number).copied().unwrap_or(TCP_STATES[0]);
    let peer = (number != LISTENING).then_some(peer);
    Some((inode, Descriptor::Tcp { local, peer, state }))
}

fn udp(line: &str) -> Option<(u64, Descriptor)> {
    let (local, peer, _, inode) = internet(line)?;
    let peer = (peer.port() != 0).then_some(peer);
    Some((inode, Descriptor::Udp { local, peer }))
}

fn unix(line: &str) -> Option<(u64, Descriptor)> {
    let mut rest = line;
    let mut fields = [""; 7];
    for field in &mut fields {
        rest = rest.trim_start_matches(' ');
        let end = rest.find(' ').unwrap_or(rest.len());
        (*field, rest) = rest.split_at(end);
    }
    let flags = u32::from_str_radix(fields[3], 16).ok()?;
    let inode = fields[6].parse().ok()?;
    let path = rest.strip_prefix(' ').filter(|path| !path.is_empty());
    let socket = Descriptor::Unix {
        path: path.map(clean),
        is_listening: flags & UNIX_ACCEPTS != 0,
    };
    Some((inode, socket))
}

/// An address as the kernel writes it: words of four bytes in the machine's order, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (words, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = [0; 16];
    let length = words.len() / 2;
    if !words.is_ascii() || !matches!(words.len(), 8 | 32) {
        return None;
    }
    for (at, word) in bytes.chunks_mut(4).take(length / 4).enumerate() {
        let number = u32::from_str_radix(words.get(8 * at..8 * at + 8)?, 16).ok()?;
        word.copy_from_slice(&number.to_ne_bytes());
    }
    let ip = match length {
        4 => IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])),
        _ => IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical(),
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    fn own() -> Descriptors {
        Descriptors::of(std::process::id())
    }

    #[test]
    fn sockets_have_their_addresses() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let client = TcpStream::connect(address).expect("it listens");
        let from = client.local_addr().expect("it is connected");
        // Not every machine has the other family.
        let udp = UdpSocket::bind("[::1]:0").or_else(|_| UdpSocket::bind("127.0.0.1:0"));
        let udp = udp.expect("a port is free");
        let at = udp.local_addr().expect("it is bound");
        let own = own();
        let said = |fd: i32| own.get(fd).to_string();
        assert_eq!(
            said(listener.as_raw_fd()),
            format!("TCP {address} listening")
        );
        let connected = format!("TCP {from} → {address} established");
        assert_eq!(said(client.as_raw_fd()), connected);
        assert_eq!(said(udp.as_raw_fd()), format!("UDP {at}"));
        assert!(own.is_served(address));
        assert!(!own.is_served(from));
    }

    #[test]
    fn unix_sockets_have_their_paths_without_control_characters() {
        let name = format!("blacklight \x1b[2J{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let listener = UnixListener::bind(&path).expect("the directory is writable");
        let said = own().get(listener.as_raw_fd()).to_string();
        std::fs::remove_file(&path).expect("it is there");
        let shown = path.display().to_string().replace('\x1b', "\u{fffd}");
        assert_eq!(said, format!("Unix socket {shown} listening"));
        let (one, _other) = UnixStream::pair().expect("two ends");
        assert_eq!(own().get(one.as_raw_fd()).to_string(), "Unix socket");
    }

    #[test]
    fn files_pipes_and_what_is_not_there_are_named() {
        let own = own();
        let file = File::open("/dev/null").expect("it is there");
        assert_eq!(own.get(file.as_raw_fd()).to_string(), "/dev/null");
        let (reader, _writer) = std::io::pipe().expect("a pipe");
        assert_eq!(own.get(reader.as_raw_fd()), Descriptor::Pipe);
        assert_eq!(own.get(-5), Descriptor::Unknown);
        assert_eq!(Descriptors::of(u32::MAX).get(0), Descriptor::Unknown);
    }

    #[test]
    fn a_forged_line_makes_its_socket_unknown() {
        let real = "0: 00000002 00000000 00010000 0001 01 7 /run/real";
        let forged = "0: 00000002 00000000 00010000 0001 01 7 /run/forged";
        let mut sockets = Sockets::default();
        sockets.add_all(&format!("heading\n{forged}\n{real}\nnonsense"), unix);
        assert_eq!(sockets.0.get(&7), Some(&Descriptor::Unknown));
        assert_eq!(sockets.0.len(), 1);
    }

    #[test]
    fn damaged_addresses_are_none() {
        for text in ["", "0100007F", "0100007F:XX", "é100007:0050", "01:0050"] {
            assert_eq!(address(text), None, "{text}");
        }
        let mapped = address("0000000000000000FFFF00000100007F:0BB8");
        if cfg!(target_endian = "little") {
            assert_eq!(mapped, "127.0.0.1:3000".parse().ok());
        }
    }
}
