//! Who has opened a connection: the system tells the user of each socket on this machine.
//!
//! Nobody is turned away for that, since a program that is watched by `sudo` is shown in the browser of another user: it is the token that
//! counts. But the key with which the browser is started, which all users can see, is of use to its own user only.

use std::net::SocketAddr;

/// The state of a socket that is connected, as the system writes it.
const ESTABLISHED: &str = "01";

/// An address as the system's tables have it.
fn written(address: SocketAddr) -> String {
    let words: Vec<String> = match address {
        SocketAddr::V4(address) => vec![word(address.ip().octets())],
        SocketAddr::V6(address) => {
            let octets = address.ip().octets();
            let words = octets.as_chunks::<4>().0.iter();
            words.map(|octets| word(*octets)).collect()
        }
    };
    format!("{}:{:04X}", words.concat(), address.port())
}

/// Four bytes, which are written as one number of this machine's byte order.
fn word(octets: [u8; 4]) -> String {
    format!("{:08X}", u32::from_ne_bytes(octets))
}

/// The user whose socket is connected from one address to another, by a table of sockets, and whether it is still connected.
fn owner_in(table: &str, from: &str, to: &str) -> Option<(u32, bool)> {
    table.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let is_it = fields.next() == Some(from) && fields.next() == Some(to);
        let state = fields.next().filter(|_| is_it)?;
        let uid = fields.nth(3)?.parse().ok()?;
        Some((uid, state == ESTABLISHED))
    })
}

/// Whether a connection to this machine is from another of its users. One of which the system tells nothing is not.
pub(super) fn is_foreign(from: SocketAddr, to: SocketAddr) -> bool {
    let mapped = |address: SocketAddr| match address {
        SocketAddr::V4(v4) => SocketAddr::from((v4.ip().to_ipv6_mapped(), v4.port())),
        SocketAddr::V6(_) => address,
    };
    let tables = [
        ("/proc/net/tcp", from, to),
        ("/proc/net/tcp6", mapped(from), mapped(to)),
    ];
    let owner = tables.into_iter().find_map(|(path, from, to)| {
        let table = std::fs::read_to_string(path).ok()?;
        owner_in(&table, &written(from), &written(to))
    });
    let own = rustix::process::geteuid().as_raw();
    owner.is_some_and(|owner| !is_own(owner, own))
}

/// Whether a user is as good as this one. The superuser can have everything anyway; but a socket that is no longer connected is written as
/// theirs.
fn is_own((uid, is_connected): (u32, bool), own: u32) -> bool {
    uid == own || (uid == 0 && is_connected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_of_a_socket_is_found() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
           0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1\n\
           1: 0100007F:9C40 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 12 1\n\
           2: 0100007F:9C41 0100007F:1F90 06 00000000:00000000 00:00000000 00000000     0        0 0 1\n";
        let owner = |from| owner_in(table, from, "0100007F:1F90");
        assert_eq!(owner("0100007F:9C40"), Some((1001, true)));
        assert_eq!(owner("0100007F:9C41"), Some((0, false)));
        assert_eq!(owner("0100007F:9C42"), None);
        assert!(is_own((7, false), 7) && is_own((0, true), 7));
        assert!(!is_own((8, true), 7) && !is_own((0, false), 7));
    }

    #[test]
    fn own_connections_are_told_from_others_in_both_families() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // Not every machine has both.
            let Ok(listener) = std::net::TcpListener::bind(address) else {
                continue;
            };
            let to = listener.local_addr().expect("it is bound");
            let client = std::net::TcpStream::connect(to).expect("it listens");
            let from = client.local_addr().expect("it is connected");
            let own = rustix::process::geteuid().as_raw();
            let table = if to.is_ipv4() { "tcp" } else { "tcp6" };
            let table = std::fs::read_to_string(format!("/proc/net/{table}")).expect("a table");
            let owner = owner_in(&table, &written(from), &written(to));
            assert_eq!(owner, Some((own, true)), "{address}");
            assert!(!is_foreign(from, to));
        }
    }
}
