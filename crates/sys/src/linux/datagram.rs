//! Batches of datagrams, and the queue of errors that Linux keeps for a socket:
//! <https://man7.org/linux/man-pages/man2/sendmmsg.2.html>,
//! <https://man7.org/linux/man-pages/man2/recvmmsg.2.html>,
//! <https://man7.org/linux/man-pages/man7/ip.7.html>, `IP_RECVERR`.
//!
//! A batch is an array of messages on the caller's stack, filled and used at once: an [`Outbox`] of
//! datagrams to send, an [`Inbox`] of datagrams received. Neither allocates, and unused entries
//! stay unwritten.

use crate::buffer::{Buffers, Room};
use crate::datagram::{
    AddressRef, Datagram, Report, SEND_FLAGS, SenderRoom, empty_message, family, message,
};
use crate::socket::{self, AF_INET, AF_INET6, Address};
use crate::stream::retry;
use crate::{Errno, RawFd};
use std::ffi::c_int;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// The largest number of datagrams in a batch.
pub const BATCH: usize = 20;

/// Datagrams to be sent together.
pub struct Outbox<'a> {
    /// The first `len` are filled in.
    messages: [MaybeUninit<libc::mmsghdr>; BATCH],
    len: usize,
    life: PhantomData<&'a Buffers>,
}

impl<'a> Outbox<'a> {
    /// An empty batch.
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

    /// Adds a datagram, unless the batch is full.
    pub fn push(&mut self, buffers: &'a Buffers, to: Option<AddressRef<'a>>) {
        if let Some(slot) = self.messages.get_mut(self.len) {
            slot.write(libc::mmsghdr {
                msg_hdr: message(buffers, to),
                msg_len: 0,
            });
            self.len += 1;
        }
    }

    /// Drops all but the first `len` datagrams.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Sends the datagrams in order and returns how many were sent. An error is that of the first.
    pub fn send(&mut self, fd: RawFd) -> Result<usize, Errno> {
        let messages = self.messages.as_mut_ptr().cast::<libc::mmsghdr>();
        if self.len == 1 {
            // SAFETY: the first message is initialised, and its parts are borrowed.
            return retry(|| unsafe { libc::sendmsg(fd, &(*messages).msg_hdr, SEND_FLAGS) })
                .map(|_| 1);
        }
        let len = self.len as libc::c_uint;
        // SAFETY: `len` messages are initialised, and their parts are borrowed.
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

/// Whether the socket reports a datagram's real length with `MSG_TRUNC`, so that
/// [`receive`](crate::datagram::receive) needs no message header.
pub fn tells_real_length(fd: RawFd) -> bool {
    let protocol = socket::option(fd, libc::SOL_SOCKET, libc::SO_PROTOCOL);
    matches!(family(fd), Ok(AF_INET | AF_INET6)) && protocol == Ok(libc::IPPROTO_UDP)
}

/// Datagrams that were received together.
pub struct Inbox {
    messages: [MaybeUninit<libc::mmsghdr>; BATCH],
    senders: [SenderRoom; BATCH],
    /// The first `len` messages and senders are filled in.
    len: usize,
}

impl Inbox {
    /// An empty batch.
    pub const fn new() -> Inbox {
        Inbox {
            messages: [const { MaybeUninit::uninit() }; BATCH],
            senders: [const { SenderRoom::new() }; BATCH],
            len: 0,
        }
    }

    /// Receives one datagram into each piece of `chunk` bytes of `room`, and returns their number.
    /// Replaces the previous contents.
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
        // SAFETY: `wanted` messages are initialised with distinct parts, which live through the
        // call.
        self.len = retry(|| unsafe {
            libc::recvmmsg(fd, messages, wanted, libc::MSG_DONTWAIT as _, null_mut()) as isize
        })?;
        Ok(self.len)
    }

    /// The datagram in a piece of the buffer, if there is one.
    pub fn get(&self, at: usize) -> Option<Datagram<'_>> {
        if at >= self.len {
            return None;
        }
        // SAFETY: messages below `len` are initialised.
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

/// The level and name of the option by which a socket queues errors.
pub(crate) fn receive_errors(family: i32) -> (c_int, c_int) {
    match family {
        AF_INET6 => (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
        _ => (libc::IPPROTO_IP, libc::IP_RECVERR),
    }
}

/// The control data of an error, aligned for the kernel's headers: the error, the address of its
/// reporter, and options that the program may have enabled.
#[repr(align(8))]
struct Control([u8; 512]);

/// Takes the next error off the socket's queue, with as much of the datagram that caused it as fits
/// into `room`. `EAGAIN` if there is none.
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
        // SAFETY: the message's parts live through the call, and the buffer is writable.
        retry(|| unsafe { libc::recvmsg(fd, &mut message, libc::MSG_ERRQUEUE) })?;
        // The queue also carries time stamps and the like, which are not errors.
        if let Some((error, offender)) = extended_error(&message) {
            let sent_to = sent_to.written(message.msg_namelen);
            let from = offender.or(sent_to.map(AddressRef::to_address));
            return Ok(Report { error, from });
        }
    }
}

/// The error in a message from the queue, and the address of its reporter.
fn extended_error(message: &libc::msghdr) -> Option<(Errno, Option<Address>)> {
    // SAFETY: the kernel has filled in well-formed headers, and CMSG_NXTHDR stays within them. The
    // reporter's address follows an error, complete or with the family 0.
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
}
