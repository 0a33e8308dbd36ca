//! Datagrams, and the options of the sockets that carry them:
//! <https://man7.org/linux/man-pages/man7/udp.7.html>. The platform supplies batches of datagrams
//! ([`Outbox`], [`Inbox`]) and the queue of errors.
//!
//! No call blocks, even on a socket that another process sharing it has made blocking.

use crate::buffer::{Buffers, Space};
use crate::platform;
use crate::socket::{self, AF_INET, AF_INET6, Address};
use crate::stream::retry;
use crate::{Errno, RawFd, check};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::null;

pub use crate::platform::datagram::{BATCH, Inbox, Outbox, receive_error, tells_real_length};

/// Do not block, and do not raise SIGPIPE.
pub(crate) const SEND_FLAGS: libc::c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;

/// A borrowed address, perhaps in a C program's memory.
#[derive(Clone, Copy)]
pub struct AddressRef<'a> {
    address: *const libc::sockaddr,
    len: libc::socklen_t,
    life: PhantomData<&'a Address>,
}

impl AddressRef<'_> {
    /// The address that a C program points to; `EINVAL` for families that handles do not support.
    ///
    /// # Safety
    ///
    /// `address` points to a socket address of its family's size, which stays unchanged while the
    /// result is used.
    pub unsafe fn from_ptr<'a>(address: *const libc::sockaddr) -> Result<AddressRef<'a>, Errno> {
        // SAFETY: every address begins with its family.
        let family = unsafe { (*address).sa_family };
        let len = Address::len_of(family as libc::c_int)?;
        Ok(AddressRef {
            address,
            len: len as libc::socklen_t,
            life: PhantomData,
        })
    }

    /// The address family.
    pub fn family(self) -> i32 {
        // SAFETY: the constructor's caller guarantees the address.
        unsafe { (*self.address).sa_family as i32 }
    }

    /// The address as C functions take it.
    pub fn as_ptr(self) -> *const libc::sockaddr {
        self.address
    }

    /// A copy of the address.
    pub fn to_address(self) -> Address {
        let mut copy = Address::room();
        let len = (self.len as usize).min(size_of::<libc::sockaddr_storage>());
        // SAFETY: the constructor's caller guarantees the length, and the storage is large enough.
        unsafe {
            (&raw mut copy.storage)
                .cast::<u8>()
                .copy_from_nonoverlapping(self.address.cast(), len);
        }
        copy.len = len as libc::socklen_t;
        copy
    }
}

impl<'a> From<&'a Address> for AddressRef<'a> {
    fn from(address: &'a Address) -> AddressRef<'a> {
        AddressRef {
            address: address.as_ptr(),
            len: address.len,
            life: PhantomData,
        }
    }
}

impl std::fmt::Debug for AddressRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AddressRef(family {})", self.family())
    }
}

/// The wildcard address with a port of the kernel's choice; `EINVAL` for other families than the
/// Internet's.
pub fn unspecified(family: i32) -> Result<Address, Errno> {
    if family != AF_INET && family != AF_INET6 {
        return Err(Errno::EINVAL);
    }
    let mut address = Address::room();
    address.storage.ss_family = family as libc::sa_family_t;
    address.len = Address::len_of(family)? as libc::socklen_t;
    Ok(address)
}

/// A message with nothing in it.
pub(crate) fn empty_message() -> libc::msghdr {
    // SAFETY: all zeros are a valid message.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// A message to send, whose parts must outlive it.
pub(crate) fn message(buffers: &Buffers, to: Option<AddressRef<'_>>) -> libc::msghdr {
    let iovecs = buffers.iovecs();
    let mut message = empty_message();
    if let Some(to) = to {
        message.msg_name = to.address.cast_mut().cast();
        message.msg_namelen = to.len;
    }
    message.msg_iov = iovecs.as_ptr().cast_mut();
    message.msg_iovlen = iovecs.len() as _;
    message
}

/// Sends one datagram, whole or not at all, to `to` or to the connected peer.
pub fn send(fd: RawFd, buffers: &Buffers, to: Option<AddressRef<'_>>) -> Result<usize, Errno> {
    if let [one] = buffers.iovecs() {
        let (base, len) = (one.iov_base, one.iov_len);
        let (name, name_len) = to.map_or((null(), 0), |to| (to.address, to.len));
        // SAFETY: the constructors' callers guarantee the buffers and the address.
        return retry(|| unsafe { libc::sendto(fd, base, len, SEND_FLAGS, name, name_len) });
    }
    let message = message(buffers, to);
    // SAFETY: as above, and the message lives through the call.
    retry(|| unsafe { libc::sendmsg(fd, &message, SEND_FLAGS) })
}

/// The properties of a received datagram.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// The number of bytes received.
    pub len: usize,
    /// Whether the datagram was longer than the buffer.
    pub truncated: bool,
    /// The sender's address, if the kernel reports it.
    pub sender: Option<AddressRef<'a>>,
}

/// Room for a sender's address.
#[derive(Debug)]
pub struct SenderRoom(pub(crate) MaybeUninit<libc::sockaddr_storage>);

impl SenderRoom {
    /// An uninitialised buffer.
    pub const fn new() -> SenderRoom {
        SenderRoom(MaybeUninit::uninit())
    }

    pub(crate) const SIZE: libc::socklen_t = size_of::<libc::sockaddr_storage>() as libc::socklen_t;

    /// The address in the first `len` bytes, which the kernel has written.
    pub(crate) fn written(&self, len: libc::socklen_t) -> Option<AddressRef<'_>> {
        (len as usize >= size_of::<libc::sa_family_t>()).then_some(AddressRef {
            address: self.0.as_ptr().cast(),
            len: len.min(SenderRoom::SIZE),
            life: PhantomData,
        })
    }
}

impl Default for SenderRoom {
    fn default() -> Self {
        SenderRoom::new()
    }
}

/// A socket's address family.
pub fn family(fd: RawFd) -> Result<i32, Errno> {
    socket::option(fd, libc::SOL_SOCKET, libc::SO_DOMAIN)
}

/// Receives one datagram into `room`. `quick` says that the socket [reports real
/// lengths](tells_real_length).
pub fn receive<'a, 'b>(
    fd: RawFd,
    room: impl Into<Space<'b>>,
    quick: bool,
    sender: &'a mut SenderRoom,
) -> Result<Datagram<'a>, Errno> {
    let room = room.into();
    let (base, room_len) = (room.base(), room.len());
    let name = sender.0.as_mut_ptr();
    if quick {
        let mut name_len = SenderRoom::SIZE;
        // SAFETY: both buffers are writable.
        let len = retry(|| unsafe {
            name_len = SenderRoom::SIZE;
            let flags = libc::MSG_TRUNC | libc::MSG_DONTWAIT;
            libc::recvfrom(fd, base, room_len, flags, name.cast(), &mut name_len)
        })?;
        return Ok(Datagram {
            len: len.min(room_len),
            truncated: len > room_len,
            sender: sender.written(name_len),
        });
    }
    let mut iovec = libc::iovec {
        iov_base: base,
        iov_len: room_len,
    };
    let mut message = empty_message();
    message.msg_name = name.cast();
    message.msg_namelen = SenderRoom::SIZE;
    message.msg_iov = &mut iovec;
    message.msg_iovlen = 1;
    // SAFETY: as above, and the message's parts live through the call.
    let len = retry(|| unsafe { libc::recvmsg(fd, &mut message, libc::MSG_DONTWAIT) })?;
    Ok(Datagram {
        len,
        truncated: message.msg_flags & libc::MSG_TRUNC != 0,
        sender: sender.written(message.msg_namelen),
    })
}

/// Why a sent datagram did not arrive.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// The error.
    pub error: Errno,
    /// The reporter's address, or the datagram's destination if the reporter is unknown.
    pub from: Option<Address>,
}

/// Dissolves the socket's connection.
pub fn disconnect(fd: RawFd) -> Result<(), Errno> {
    // SAFETY: all zeros are an address without a family.
    let no_family: libc::sockaddr = unsafe { MaybeUninit::zeroed().assume_init() };
    let len = size_of::<libc::sockaddr>() as libc::socklen_t;
    // SAFETY: the address lives through the call.
    check(unsafe { libc::connect(fd, &no_family, len) }).map(drop)
}

/// The options of UDP handles, each with its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names are the options'")]
pub enum UdpOption {
    ReuseAddress,
    ReusePort,
    Ipv6Only,
    ReceiveErrors,
    Broadcast,
    Ttl,
    MulticastTtl,
    MulticastLoop,
}

/// Sets an option of a datagram socket of that family.
pub fn set_udp_option(fd: RawFd, family: i32, option: UdpOption, value: i32) -> Result<(), Errno> {
    let pick = |v4, v6| match family {
        AF_INET6 => (libc::IPPROTO_IPV6, v6),
        _ => (libc::IPPROTO_IP, v4),
    };
    let (level, name) = match option {
        UdpOption::ReuseAddress => (libc::SOL_SOCKET, libc::SO_REUSEADDR),
        UdpOption::ReusePort => (libc::SOL_SOCKET, libc::SO_REUSEPORT),
        UdpOption::Ipv6Only => (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY),
        UdpOption::ReceiveErrors => platform::datagram::receive_errors(family),
        UdpOption::Broadcast => (libc::SOL_SOCKET, libc::SO_BROADCAST),
        UdpOption::Ttl => pick(libc::IP_TTL, libc::IPV6_UNICAST_HOPS),
        UdpOption::MulticastTtl => pick(libc::IP_MULTICAST_TTL, libc::IPV6_MULTICAST_HOPS),
        UdpOption::MulticastLoop => pick(libc::IP_MULTICAST_LOOP, libc::IPV6_MULTICAST_LOOP),
    };
    socket::set_option(fd, level, name, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;

    /// Two sockets, the second of which is connected to the first.
    fn pair() -> (UdpSocket, UdpSocket) {
        let one = UdpSocket::bind("127.0.0.1:0").unwrap();
        let two = UdpSocket::bind("127.0.0.1:0").unwrap();
        two.connect(one.local_addr().unwrap()).unwrap();
        (one, two)
    }

    #[test]
    fn both_ways_to_receive_agree() {
        let (one, two) = pair();
        assert!(tells_real_length(one.as_raw_fd()));
        let from = socket::local_address(two.as_raw_fd()).unwrap();
        for (text, len, truncated) in [
            (&b"four"[..], 4, false),
            (b"fives", 4, true),
            (b"", 0, false),
        ] {
            for quick in [true, false] {
                two.send(text).unwrap();
                let mut room = [MaybeUninit::uninit(); 4];
                let mut sender = SenderRoom::new();
                let datagram = receive(one.as_raw_fd(), &mut room, quick, &mut sender).unwrap();
                assert_eq!((datagram.len, datagram.truncated), (len, truncated));
                let sender = datagram.sender.unwrap().to_address();
                assert_eq!(sender.bytes(), from.bytes());
            }
        }
    }

    #[test]
    fn a_connected_socket_can_be_disconnected() {
        let (_one, two) = pair();
        assert!(two.send(b"x").is_ok());
        disconnect(two.as_raw_fd()).unwrap();
        assert!(two.send(b"x").is_err());
    }

    #[test]
    fn addresses_are_the_internets() {
        assert_eq!(unspecified(AF_INET).unwrap().bytes().len(), 16);
        assert_eq!(unspecified(AF_INET6).unwrap().bytes().len(), 28);
        assert_eq!(unspecified(socket::AF_UNIX).unwrap_err(), Errno::EINVAL);
    }
}
