//! Sockets: <https://man7.org/linux/man-pages/man7/socket.7.html>.

use crate::buffer::{Buffers, Space};
use crate::fd::Descriptor;
use crate::interfaces::SocketAddress;
use crate::platform;
use crate::platform::buffer::IOV_MAX;
use crate::stream::retry;
use crate::{Errno, RawFd, check};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::ptr::null_mut;

pub use libc::{AF_INET, AF_INET6, AF_UNIX, SOCK_DGRAM, SOCK_STREAM};

/// The connection attempt is in progress; not an error, neither at first nor later.
pub const EINPROGRESS: Errno = Errno::from_code(-libc::EINPROGRESS);

/// A socket address of any family.
#[derive(Clone, Copy)]
pub struct Address {
    pub(crate) storage: libc::sockaddr_storage,
    pub(crate) len: libc::socklen_t,
}

impl Address {
    /// The address that a C program points to.
    ///
    /// # Safety
    ///
    /// `address` points to a socket address of its family's size.
    pub unsafe fn from_ptr(address: *const libc::sockaddr) -> Result<Address, Errno> {
        // SAFETY: every address begins with its family.
        let family = unsafe { (*address).sa_family };
        let len = Address::len_of(family as libc::c_int)?;
        let mut storage = MaybeUninit::<libc::sockaddr_storage>::zeroed();
        // SAFETY: the caller guarantees `len` bytes, and the storage is large enough for
        // every family. All bit patterns are valid for it.
        let storage = unsafe {
            storage
                .as_mut_ptr()
                .cast::<u8>()
                .copy_from_nonoverlapping(address.cast(), len);
            storage.assume_init()
        };
        Ok(Address {
            storage,
            len: len as libc::socklen_t,
        })
    }

    /// The length of a family's addresses; `EINVAL` for families that handles do not support.
    pub(crate) fn len_of(family: libc::c_int) -> Result<usize, Errno> {
        Ok(match family {
            libc::AF_INET => size_of::<libc::sockaddr_in>(),
            libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
            libc::AF_UNIX => size_of::<libc::sockaddr_un>(),
            _ => return Err(Errno::EINVAL),
        })
    }

    /// A Unix socket's address: a path, or an abstract name, which begins with a NUL; for an empty
    /// name the kernel chooses an abstract one. `None` if it is too long.
    pub fn unix(name: &[u8]) -> Option<Address> {
        let mut storage = MaybeUninit::<libc::sockaddr_storage>::zeroed();
        let address = storage.as_mut_ptr().cast::<libc::sockaddr_un>();
        let room =
            size_of::<libc::sockaddr_un>() - std::mem::offset_of!(libc::sockaddr_un, sun_path);
        if name.len() > room {
            return None;
        }
        // SAFETY: the storage is large enough for a sockaddr_un, zeroed, and the name fits.
        let storage = unsafe {
            (*address).sun_family = libc::AF_UNIX as libc::sa_family_t;
            (&raw mut (*address).sun_path)
                .cast::<u8>()
                .copy_from_nonoverlapping(name.as_ptr(), name.len());
            storage.assume_init()
        };
        let len = platform::socket::unix_address_len(name);
        Some(Address {
            storage,
            len: len as libc::socklen_t,
        })
    }

    /// An empty address, for the kernel to fill in.
    pub(crate) fn room() -> Address {
        // SAFETY: all zeros are a valid, unspecified address.
        let storage = unsafe { MaybeUninit::zeroed().assume_init() };
        Address {
            storage,
            len: size_of::<libc::sockaddr_storage>() as libc::socklen_t,
        }
    }

    /// The address with a scope, if it is link-local and has none: that of the first interface with
    /// a link-local address.
    pub fn with_scope(mut self) -> Address {
        let link_local = |address: &libc::sockaddr_in6| {
            address.sin6_addr.s6_addr[0] == 0xfe && address.sin6_addr.s6_addr[1] & 0xc0 == 0x80
        };
        if self.family() != libc::AF_INET6 {
            return self;
        }
        // SAFETY: the family says that the storage holds an address of this type.
        let own = unsafe { &mut *(&raw mut self.storage).cast::<libc::sockaddr_in6>() };
        if own.sin6_scope_id == 0 && link_local(own) {
            let interfaces = crate::interfaces::all().unwrap_or_default();
            let scope = interfaces
                .iter()
                .find_map(|interface| match &interface.address {
                    SocketAddress::V6(address) if link_local(address) => {
                        Some(address.sin6_scope_id)
                    }
                    _ => None,
                });
            own.sin6_scope_id = scope.unwrap_or(0);
        }
        self
    }

    /// The address in Rust's form, if it is an Internet address.
    pub fn to_socket_addr(&self) -> Option<SocketAddr> {
        match self.family() {
            AF_INET => {
                // SAFETY: the family says that the storage holds an address of this type.
                let v4 = unsafe { &*(&raw const self.storage).cast::<libc::sockaddr_in>() };
                let ip = Ipv4Addr::from_bits(u32::from_be(v4.sin_addr.s_addr));
                Some(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
            }
            AF_INET6 => {
                // SAFETY: the family says that the storage holds an address of this type.
                let v6 = unsafe { &*(&raw const self.storage).cast::<libc::sockaddr_in6>() };
                let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                let port = u16::from_be(v6.sin6_port);
                Some(SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id).into())
            }
            _ => None,
        }
    }

    /// The address family.
    pub fn family(&self) -> i32 {
        self.storage.ss_family as i32
    }

    /// The address as C functions take it.
    pub fn bytes(&self) -> &[u8] {
        let len = (self.len as usize).min(size_of::<libc::sockaddr_storage>());
        // SAFETY: the storage is at least that long and initialised throughout.
        unsafe { std::slice::from_raw_parts((&raw const self.storage).cast(), len) }
    }

    /// The name of a Unix socket: empty for an unnamed one or another family, with a leading NUL
    /// for an abstract one.
    pub fn unix_name(&self) -> &[u8] {
        let start = std::mem::offset_of!(libc::sockaddr_un, sun_path);
        let name = self.bytes().get(start..).unwrap_or_default();
        match name.first() {
            None | Some(0) => name,
            Some(_) => name.split(|&byte| byte == 0).next().unwrap_or_default(),
        }
    }

    pub(crate) fn as_ptr(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }
}

impl From<SocketAddr> for Address {
    fn from(from: SocketAddr) -> Address {
        let mut address = Address::room();
        let storage = &raw mut address.storage;
        // SAFETY: the storage is large enough for either type, and all zeros.
        address.len = unsafe {
            match from {
                SocketAddr::V4(from) => {
                    let v4 = &mut *storage.cast::<libc::sockaddr_in>();
                    v4.sin_family = AF_INET as libc::sa_family_t;
                    v4.sin_port = from.port().to_be();
                    v4.sin_addr.s_addr = from.ip().to_bits().to_be();
                    size_of_val(v4)
                }
                SocketAddr::V6(from) => {
                    let v6 = &mut *storage.cast::<libc::sockaddr_in6>();
                    v6.sin6_family = AF_INET6 as libc::sa_family_t;
                    v6.sin6_port = from.port().to_be();
                    v6.sin6_flowinfo = from.flowinfo();
                    v6.sin6_addr.s6_addr = from.ip().octets();
                    v6.sin6_scope_id = from.scope_id();
                    size_of_val(v6)
                }
            }
        } as libc::socklen_t;
        address
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Address(family {})", self.family())
    }
}

/// A non-blocking, close-on-exec socket.
pub fn socket(domain: i32, kind: i32) -> Result<Descriptor, Errno> {
    let kind = kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: socket takes no pointers.
    let fd = check(unsafe { libc::socket(domain, kind, 0) })?;
    // SAFETY: the kernel has just made this descriptor, and nothing else owns it.
    Ok(unsafe { Descriptor::adopt(fd) })
}

/// Binds the socket to an address.
pub fn bind(fd: RawFd, address: &Address) -> Result<(), Errno> {
    // SAFETY: the address lives through the call.
    check(unsafe { libc::bind(fd, address.as_ptr(), address.len) }).map(drop)
}

/// Starts accepting connections.
pub fn listen(fd: RawFd, backlog: i32) -> Result<(), Errno> {
    // SAFETY: listen takes no pointers.
    check(unsafe { libc::listen(fd, backlog) }).map(drop)
}

/// Whether the socket listens.
pub fn is_listening(fd: RawFd) -> bool {
    option(fd, libc::SOL_SOCKET, libc::SO_ACCEPTCONN) == Ok(1)
}

/// Starts connecting. Returns whether the connection is complete: `EINPROGRESS` is no error.
pub fn connect(fd: RawFd, address: &Address) -> Result<bool, Errno> {
    loop {
        // SAFETY: the address lives through the call.
        match check(unsafe { libc::connect(fd, address.as_ptr(), address.len) }) {
            Err(Errno::EINTR) => {}
            Err(EINPROGRESS) => return Ok(false),
            result => return result.map(|_| true),
        }
    }
}

/// Accepts the next connection, non-blocking and close-on-exec.
pub fn accept(fd: RawFd) -> Result<Descriptor, Errno> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    loop {
        // SAFETY: null pointers mean that no address is wanted.
        match check(unsafe { libc::accept4(fd, null_mut(), null_mut(), flags) }) {
            Err(Errno::EINTR) => {}
            // SAFETY: the kernel has just made this descriptor, and nothing else owns it.
            fd => return Ok(unsafe { Descriptor::adopt(fd?) }),
        }
    }
}

/// Shuts down the sending side.
pub fn shutdown_write(fd: RawFd) -> Result<(), Errno> {
    // SAFETY: shutdown takes no pointers.
    check(unsafe { libc::shutdown(fd, libc::SHUT_WR) }).map(drop)
}

/// Sets an integer option.
pub fn set_option(fd: RawFd, level: i32, name: i32, value: i32) -> Result<(), Errno> {
    let size = size_of::<i32>() as libc::socklen_t;
    // SAFETY: `value` is an int of the size given.
    check(unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), size) }).map(drop)
}

/// Reads an integer option.
pub fn option(fd: RawFd, level: i32, name: i32) -> Result<i32, Errno> {
    let mut value = 0i32;
    let mut size = size_of::<i32>() as libc::socklen_t;
    // SAFETY: `value` is an int of the size given.
    check(unsafe { libc::getsockopt(fd, level, name, (&raw mut value).cast(), &mut size) })?;
    Ok(value)
}

/// Whether a socket is a TCP socket.
pub fn is_tcp(fd: RawFd) -> bool {
    option(fd, libc::SOL_SOCKET, libc::SO_PROTOCOL) == Ok(libc::IPPROTO_TCP)
}

/// The options of TCP handles.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the names are the options'")]
pub enum TcpOption {
    NoDelay,
    KeepAlive,
    KeepAliveIdle,
    KeepAliveInterval,
    KeepAliveCount,
    ReuseAddress,
    ReusePort,
    Ipv6Only,
}

/// Sets an option of a TCP socket.
pub fn set_tcp_option(fd: RawFd, option: TcpOption, value: i32) -> Result<(), Errno> {
    let (level, name) = match option {
        TcpOption::NoDelay => (libc::IPPROTO_TCP, libc::TCP_NODELAY),
        TcpOption::KeepAlive => (libc::SOL_SOCKET, libc::SO_KEEPALIVE),
        TcpOption::KeepAliveIdle => (libc::IPPROTO_TCP, platform::socket::TCP_KEEPIDLE),
        TcpOption::KeepAliveInterval => (libc::IPPROTO_TCP, platform::socket::TCP_KEEPINTVL),
        TcpOption::KeepAliveCount => (libc::IPPROTO_TCP, platform::socket::TCP_KEEPCNT),
        TcpOption::ReuseAddress => (libc::SOL_SOCKET, libc::SO_REUSEADDR),
        TcpOption::ReusePort => (libc::SOL_SOCKET, libc::SO_REUSEPORT),
        TcpOption::Ipv6Only => (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY),
    };
    set_option(fd, level, name, value)
}

/// The direction of one of a socket's buffers.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum Direction {
    Send,
    Receive,
}

impl Direction {
    fn option(self) -> i32 {
        match self {
            Direction::Send => libc::SO_SNDBUF,
            Direction::Receive => libc::SO_RCVBUF,
        }
    }
}

/// The size of one of the socket's buffers.
pub fn buffer_size(fd: RawFd, direction: Direction) -> Result<i32, Errno> {
    option(fd, libc::SOL_SOCKET, direction.option())
}

/// Sets the size of one of the socket's buffers, which Linux doubles.
pub fn set_buffer_size(fd: RawFd, direction: Direction, size: i32) -> Result<(), Errno> {
    set_option(fd, libc::SOL_SOCKET, direction.option(), size)
}

/// Fetches and clears the socket's pending error.
pub fn take_error(fd: RawFd) -> Result<(), Errno> {
    match option(fd, libc::SOL_SOCKET, libc::SO_ERROR)? {
        0 => Ok(()),
        error => Err(Errno::from_code(-error)),
    }
}

/// Makes closing the socket reset the connection.
pub fn set_reset_on_close(fd: RawFd) -> Result<(), Errno> {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    let size = size_of::<libc::linger>() as libc::socklen_t;
    let value = (&raw const linger).cast();
    // SAFETY: `linger` is of the type and size that the option takes.
    check(unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER, value, size) }).map(drop)
}

/// The socket's own address.
pub fn local_address(fd: RawFd) -> Result<Address, Errno> {
    let mut address = Address::room();
    let storage = (&raw mut address.storage).cast();
    // SAFETY: the storage has room for an address of any family, and its length says so.
    check(unsafe { libc::getsockname(fd, storage, &mut address.len) })?;
    Ok(address)
}

/// The peer's address.
pub fn peer_address(fd: RawFd) -> Result<Address, Errno> {
    let mut address = Address::room();
    let storage = (&raw mut address.storage).cast();
    // SAFETY: the storage has room for an address of any family, and its length says so.
    check(unsafe { libc::getpeername(fd, storage, &mut address.len) })?;
    Ok(address)
}

/// The most descriptors in one message.
pub const MAX_PASSED: usize = 64;

/// Control data for that many descriptors, aligned for the kernel's headers.
#[repr(align(8))]
struct Control([u8; 16 + 4 * MAX_PASSED]);

/// Sends buffers together with a descriptor, of which the other process gets a duplicate.
pub fn send_with_descriptor(fd: RawFd, buffers: &Buffers, passed: RawFd) -> Result<usize, Errno> {
    let iovecs = buffers.iovecs();
    let mut control = Control([0; 16 + 4 * MAX_PASSED]);
    // SAFETY: all zeros are a valid message.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_iov = iovecs.as_ptr().cast_mut();
    message.msg_iovlen = iovecs.len().min(IOV_MAX) as _;
    message.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: CMSG_SPACE only computes.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(4) } as _;
    // SAFETY: the control buffer is aligned and has room for one header with one int.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(4) as _;
        libc::CMSG_DATA(header)
            .cast::<RawFd>()
            .write_unaligned(passed);
    }
    // SAFETY: the message's parts live through the call.
    retry(|| unsafe { libc::sendmsg(fd, &message, libc::MSG_NOSIGNAL) })
}

/// Reads once into `room` from a socket, and leaves the bytes there.
pub fn peek<'a>(fd: RawFd, room: impl Into<Space<'a>>) -> Result<usize, Errno> {
    let room = room.into();
    // SAFETY: a `Space` may be written to.
    retry(|| unsafe { libc::recv(fd, room.base(), room.len(), libc::MSG_PEEK) })
}

/// Reads once into `room`, and passes each descriptor received to `take`.
pub fn receive_with_descriptors<'a>(
    fd: RawFd,
    room: impl Into<Space<'a>>,
    mut take: impl FnMut(Descriptor),
) -> Result<usize, Errno> {
    let room = room.into();
    let mut control = Control([0; 16 + 4 * MAX_PASSED]);
    let mut iovec = libc::iovec {
        iov_base: room.base(),
        iov_len: room.len(),
    };
    // SAFETY: all zeros are a valid message.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_iov = &mut iovec;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    // SAFETY: the message's parts live through the call.
    let count = retry(|| unsafe { libc::recvmsg(fd, &mut message, libc::MSG_CMSG_CLOEXEC) })?;
    // SAFETY: the kernel has filled in well-formed headers, and CMSG_NXTHDR stays within them.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&message);
        while let Some(part) = header.as_ref() {
            if part.cmsg_level == libc::SOL_SOCKET && part.cmsg_type == libc::SCM_RIGHTS {
                let data = libc::CMSG_DATA(header).cast::<RawFd>();
                let len: usize = part.cmsg_len as _;
                let passed = (len - libc::CMSG_LEN(0) as usize) / 4;
                for at in 0..passed {
                    take(Descriptor::adopt(data.add(at).read_unaligned()));
                }
            }
            header = libc::CMSG_NXTHDR(&message, header);
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_keep_all_their_parts_on_the_way_to_c_and_back() {
        let scoped = SocketAddrV6::new("fe80::1:2".parse().unwrap(), 4660, 7, 9).into();
        for address in ["127.0.0.1:80".parse().unwrap(), scoped] {
            assert_eq!(Address::from(address).to_socket_addr(), Some(address));
        }
        assert_eq!(Address::from(scoped).bytes().len(), 28);
        assert_eq!(Address::unix(b"/x").unwrap().to_socket_addr(), None);
    }

    #[test]
    fn addresses_are_those_of_the_kernel() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            use std::os::fd::AsRawFd;
            let Ok(socket) = std::net::UdpSocket::bind(address) else {
                // Not every machine has IPv6.
                continue;
            };
            let seen = local_address(socket.as_raw_fd()).unwrap();
            assert_eq!(seen.to_socket_addr(), socket.local_addr().ok());
        }
    }
}
