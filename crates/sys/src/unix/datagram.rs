//! Datagrams, one at a time and in batches, and the options of the sockets that carry them:
//! <https://man7.org/linux/man-pages/man7/udp.7.html>.
//!
//! A batch is an array of messages on the caller's stack, filled and used at once: an
//! [`Outbox`] of datagrams to go, an [`Inbox`] of those that came. Neither allocates, and
//! what a caller leaves unused is never written to.
//!
//! No call waits: a socket that several processes share may be made blocking by any of them.

use crate::buffer::{Buffers, Room, Space};
use crate::socket::{self, AF_INET, AF_INET6, Address};
use crate::stream::retry;
use crate::{Errno, RawFd, check};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

/// Neither wait nor raise SIGPIPE.
const SEND_FLAGS: libc::c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;

/// The datagrams that one batch holds at the most.
pub const BATCH: usize = 20;

/// An address in memory that is only borrowed, perhaps from a C program.
#[derive(Clone, Copy)]
pub struct AddressRef<'a> {
    address: *const libc::sockaddr,
    len: libc::socklen_t,
    life: PhantomData<&'a Address>,
}

impl AddressRef<'_> {
    /// The address that a C program points to; `EINVAL` for families that have no handles.
    ///
    /// # Safety
    ///
    /// `address` points to a socket address of its family's size, which stays as it is for
    /// as long as this is used.
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
        // SAFETY: whoever made this vouches for the address.
        unsafe { (*self.address).sa_family as i32 }
    }

    /// The address as C programs take it.
    pub fn as_ptr(self) -> *const libc::sockaddr {
        self.address
    }

    /// A copy that can be kept.
    pub fn to_address(self) -> Address {
        let mut copy = Address::room();
        let len = (self.len as usize).min(size_of::<libc::sockaddr_storage>());
        // SAFETY: whoever made this vouches for its length, and there is room for as much.
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

/// The address of all interfaces with a port of the kernel's choice; `EINVAL` for families
/// other than the Internet's.
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
fn empty_message() -> libc::msghdr {
    // SAFETY: all zeros are a valid message.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// A message that is to be sent, whose parts have to live until it is.
fn message(buffers: &Buffers, to: Option<AddressRef<'_>>) -> libc::msghdr {
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

/// Sends one datagram, whole or not at all, to `to` or to whom the socket is connected.
pub fn send(fd: RawFd, buffers: &Buffers, to: Option<AddressRef<'_>>) -> Result<usize, Errno> {
    if let [one] = buffers.iovecs() {
        let (base, len) = (one.iov_base, one.iov_len);
        let (name, name_len) = to.map_or((null(), 0), |to| (to.address, to.len));
        // SAFETY: whoever made the buffers and the address vouches for them.
        return retry(|| unsafe { libc::sendto(fd, base, len, SEND_FLAGS, name, name_len) });
    }
    let message = message(buffers, to);
    // SAFETY: as above, and the message lives through the call.
    retry(|| unsafe { libc::sendmsg(fd, &message, SEND_FLAGS) })
}

/// Datagrams to be sent together:
/// <https://man7.org/linux/man-pages/man2/sendmmsg.2.html>.
pub struct Outbox<'a> {
    /// The first `len` are filled in.
    messages: [MaybeUninit<libc::mmsghdr>; BATCH],
    len: usize,
    life: PhantomData<&'a Buffers>,
}

impl<'a> Outbox<'a> {
    /// An empty one.
    pub fn new() -> Outbox<'a> {
        Outbox {
            messages: [const { MaybeUninit::uninit() }; BATCH],
            len: 0,
            life: PhantomData,
        }
    }

    /// How many datagrams there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether there is no room for more.
    pub fn is_full(&self) -> bool {
        self.len == BATCH
    }

    /// Adds a datagram, if there is room for it.
    pub fn push(&mut self, buffers: &'a Buffers, to: Option<AddressRef<'a>>) {
        if let Some(slot) = self.messages.get_mut(self.len) {
            slot.write(libc::mmsghdr {
                msg_hdr: message(buffers, to),
                msg_len: 0,
            });
            self.len += 1;
        }
    }

    /// Keeps the first `len` datagrams only.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Sends the datagrams in order and says how many went. The error is the first one's.
    pub fn send(&mut self, fd: RawFd) -> Result<usize, Errno> {
        let messages = self.messages.as_mut_ptr().cast::<libc::mmsghdr>();
        if self.len == 1 {
            // SAFETY: the first message is filled in, and its parts are borrowed.
            return retry(|| unsafe { libc::sendmsg(fd, &(*messages).msg_hdr, SEND_FLAGS) })
                .map(|_| 1);
        }
        let len = self.len as libc::c_uint;
        // SAFETY: `len` messages are filled in, and their parts are borrowed.
        retry(|| unsafe { libc::sendmmsg(fd, messages, len, SEND_FLAGS as _) as isize })
    }
}

impl Default for Outbox<'_> {
    fn default() -> Self {
        Outbox::new()
    }
}

impl std::fmt::Debug for Outbox<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Outbox({})", self.len)
    }
}

/// What is known of a datagram that has been received.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// How many bytes of it there are.
    pub len: usize,
    /// There were more than the room could take.
    pub truncated: bool,
    /// Who sent it, if the kernel says so.
    pub sender: Option<AddressRef<'a>>,
}

/// Room for a sender's address.
#[derive(Debug)]
pub struct SenderRoom(MaybeUninit<libc::sockaddr_storage>);

impl SenderRoom {
    /// Room of which nothing is known yet.
    pub const fn new() -> SenderRoom {
        SenderRoom(MaybeUninit::uninit())
    }

    const SIZE: libc::socklen_t = size_of::<libc::sockaddr_storage>() as libc::socklen_t;

    /// What the kernel has written, `len` bytes of it.
    fn written(&self, len: libc::socklen_t) -> Option<AddressRef<'_>> {
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

/// Whether the socket is one of those that tell a datagram's real length when they are
/// asked to, which saves [`receive`] the long way.
pub fn tells_real_length(fd: RawFd) -> bool {
    let protocol = socket::option(fd, libc::SOL_SOCKET, libc::SO_PROTOCOL);
    matches!(family(fd), Ok(AF_INET | AF_INET6)) && protocol == Ok(libc::IPPROTO_UDP)
}

/// Receives one datagram into `room`. `quick` says that the socket
/// [tells real lengths](tells_real_length).
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
        // SAFETY: the room is writable, and so is that for the address.
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

/// Datagrams that were received together:
/// <https://man7.org/linux/man-pages/man2/recvmmsg.2.html>.
pub struct Inbox {
    messages: [MaybeUninit<libc::mmsghdr>; BATCH],
    senders: [SenderRoom; BATCH],
    /// The first `len` messages and senders are filled in.
    len: usize,
}

impl Inbox {
    /// An empty one.
    pub const fn new() -> Inbox {
        Inbox {
            messages: [const { MaybeUninit::uninit() }; BATCH],
            senders: [const { SenderRoom::new() }; BATCH],
            len: 0,
        }
    }

    /// Receives into the pieces of `chunk` bytes that `room` has, one datagram into each,
    /// and says how many came. What was in here before is forgotten.
    pub fn receive(&mut self, fd: RawFd, room: Room<'_>, chunk: usize) -> Result<usize, Errno> {
        self.len = 0;
        let mut iovecs = [const { MaybeUninit::<libc::iovec>::uninit() }; BATCH];
        let mut wanted = 0;
        let chunks = room.chunks_exact_mut(chunk);
        let parts = iovecs.iter_mut().zip(&mut self.senders);
        for ((chunk, (iovec, sender)), message) in chunks.zip(parts).zip(&mut self.messages) {
            let iovec = iovec.write(libc::iovec {
                iov_base: chunk.as_mut_ptr().cast(),
                iov_len: chunk.len(),
            });
            let mut header = empty_message();
            header.msg_name = sender.0.as_mut_ptr().cast();
            header.msg_namelen = SenderRoom::SIZE;
            header.msg_iov = iovec;
            header.msg_iovlen = 1;
            message.write(libc::mmsghdr {
                msg_hdr: header,
                msg_len: 0,
            });
            wanted += 1;
        }
        if wanted == 0 {
            return Err(Errno::EINVAL);
        }
        let messages = self.messages.as_mut_ptr().cast::<libc::mmsghdr>();
        // SAFETY: `wanted` messages are filled in with distinct parts, which live through
        // the call.
        self.len = retry(|| unsafe {
            libc::recvmmsg(fd, messages, wanted, libc::MSG_DONTWAIT as _, null_mut()) as isize
        })?;
        Ok(self.len)
    }

    /// The datagram in a piece of the room, if there is one.
    pub fn get(&self, at: usize) -> Option<Datagram<'_>> {
        if at >= self.len {
            return None;
        }
        // SAFETY: messages below `len` are filled in.
        let message = unsafe { self.messages[at].assume_init_ref() };
        Some(Datagram {
            len: message.msg_len as usize,
            truncated: message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
            sender: self.senders[at].written(message.msg_hdr.msg_namelen),
        })
    }
}

impl Default for Inbox {
    fn default() -> Self {
        Inbox::new()
    }
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Inbox({})", self.len)
    }
}

/// Why a datagram that was sent has not arrived.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// What went wrong.
    pub error: Errno,
    /// Who said so, or where the datagram was going if nobody did.
    pub from: Option<Address>,
}

/// Room for what comes with an error, aligned for the kernel's headers: the error, the
/// address of who reports it, and some that nobody has asked for.
#[repr(align(8))]
struct Control([u8; 512]);

/// Takes the next error off the socket's queue, with as much as fits into `room` of the
/// datagram that caused it: <https://man7.org/linux/man-pages/man7/ip.7.html>, `IP_RECVERR`.
/// `EAGAIN` if there is none.
pub fn receive_error(fd: RawFd, room: Room<'_>) -> Result<Report, Errno> {
    loop {
        let mut control = Control([0; 512]);
        let mut sent_to = SenderRoom::new();
        let mut iovec = libc::iovec {
            iov_base: room.as_mut_ptr().cast(),
            iov_len: room.len(),
        };
        let mut message = empty_message();
        message.msg_name = sent_to.0.as_mut_ptr().cast();
        message.msg_namelen = SenderRoom::SIZE;
        message.msg_iov = &mut iovec;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = control.0.len() as _;
        // SAFETY: the message's parts live through the call, and the room is writable.
        retry(|| unsafe { libc::recvmsg(fd, &mut message, libc::MSG_ERRQUEUE) })?;
        // The queue also carries time stamps and the like, which are no errors.
        if let Some((error, offender)) = extended_error(&message) {
            let sent_to = sent_to.written(message.msg_namelen);
            let from = offender.or(sent_to.map(AddressRef::to_address));
            return Ok(Report { error, from });
        }
    }
}

/// The error in a message from the queue, and the address of who reports it.
fn extended_error(message: &libc::msghdr) -> Option<(Errno, Option<Address>)> {
    // SAFETY: the kernel has filled in well-formed headers, and CMSG_NXTHDR stays within. An
    // error is followed by the address of who reports it, whole or with the family 0.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(part) = header.as_ref() {
            let is_error = matches!(
                (part.cmsg_level, part.cmsg_type),
                (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR)
            );
            if is_error {
                let error = libc::CMSG_DATA(header).cast::<libc::sock_extended_err>();
                let code = (*error).ee_errno as i32;
                let offender = AddressRef::from_ptr(libc::SO_EE_OFFENDER(error)).ok();
                let offender = offender.map(AddressRef::to_address);
                return (code != 0).then_some((Errno::from_code(-code), offender));
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    None
}

/// Forgets to whom the socket is connected.
pub fn disconnect(fd: RawFd) -> Result<(), Errno> {
    // SAFETY: all zeros are an address of no family.
    let nobody: libc::sockaddr = unsafe { MaybeUninit::zeroed().assume_init() };
    let len = size_of::<libc::sockaddr>() as libc::socklen_t;
    // SAFETY: the address lives through the call.
    check(unsafe { libc::connect(fd, &nobody, len) }).map(drop)
}

/// The options that UDP handles have, each with the number it is set to.
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
        UdpOption::ReceiveErrors => pick(libc::IP_RECVERR, libc::IPV6_RECVERR),
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

    fn iovec(bytes: &[u8]) -> libc::iovec {
        libc::iovec {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        }
    }

    #[test]
    fn both_ways_to_receive_tell_the_same() {
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
    fn a_batch_goes_and_comes_in_order_and_no_more_than_fit() {
        let (one, two) = pair();
        // A blocking socket would wait until the batch is full.
        one.set_nonblocking(true).unwrap();
        let texts: Vec<[u8; 2]> = (0..30).map(|number| [number, b'!']).collect();
        let mut arrays: Vec<_> = texts.iter().map(|text| [iovec(text)]).collect();
        // SAFETY: the texts and the arrays that describe them outlive the buffers.
        let buffers = arrays
            .iter_mut()
            .map(|array| unsafe { Buffers::new(array.as_mut_ptr(), 1) });
        let buffers: Vec<_> = buffers.collect();
        let mut outbox = Outbox::new();
        for buffers in &buffers {
            outbox.push(buffers, None);
        }
        assert_eq!(outbox.len(), BATCH);
        assert_eq!(outbox.send(two.as_raw_fd()), Ok(BATCH));
        let mut room = [MaybeUninit::uninit(); BATCH + 2];
        let mut inbox = Inbox::new();
        assert_eq!(inbox.receive(one.as_raw_fd(), &mut room[..9], 2), Ok(4));
        for at in 0..4 {
            assert_eq!(inbox.get(at).unwrap().len, 2);
            // SAFETY: two bytes have been received there.
            let number = unsafe { room[2 * at].assume_init() };
            assert_eq!(number, at as u8);
        }
        assert!(inbox.get(4).is_none());
        assert_eq!(inbox.receive(one.as_raw_fd(), &mut room, 1), Ok(BATCH - 4));
        assert!(inbox.get(0).unwrap().truncated);
        assert_eq!(
            inbox.receive(one.as_raw_fd(), &mut room, 1),
            Err(Errno::EAGAIN)
        );
        assert!(inbox.get(0).is_none(), "what was there before is forgotten");
        assert_eq!(
            inbox.receive(one.as_raw_fd(), &mut room, 100),
            Err(Errno::EINVAL)
        );
    }

    #[test]
    fn who_is_connected_can_be_disconnected() {
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
