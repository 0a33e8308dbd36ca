//! What the tests of UDP handles share: a handle that keeps a record of all that its callbacks are
//! told, and of the buffers that it lends.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::HashMap;
use std::ffi::{c_int, c_uint};
use std::net::SocketAddrV4;
use std::ops::{Deref, DerefMut};
use std::ptr::{null, null_mut};
use uv as _;
pub(crate) use uv_binding::*;

pub(crate) const PARTIAL: c_uint = 2;
pub(crate) const REUSEADDR: c_uint = 4;
pub(crate) const CHUNK: c_uint = 8;
pub(crate) const FREE: c_uint = 16;
pub(crate) const RECVERR: c_uint = 32;
pub(crate) const REUSEPORT: c_uint = 64;
pub(crate) const RECVMMSG: c_uint = 256;
pub(crate) const MAX_DATAGRAM: usize = 64 * 1024;
pub(crate) const NOWAIT: c_int = 2;
pub(crate) const EAGAIN: c_int = -libc::EAGAIN;
pub(crate) const EBADF: c_int = -libc::EBADF;
pub(crate) const EINVAL: c_int = -libc::EINVAL;

pub(crate) type AllocCb = unsafe extern "C" fn(*mut uv_udp_t, usize, *mut uv_buf_t);
pub(crate) type RecvCb =
    unsafe extern "C" fn(*mut uv_udp_t, isize, *const uv_buf_t, *const libc::sockaddr, c_uint);
pub(crate) type SendCb = unsafe extern "C" fn(*mut uv_udp_send_t, c_int);

/// A loop that has to be left empty.
pub(crate) struct TestLoop(pub(crate) Box<uv_loop_t>);

impl TestLoop {
    pub(crate) fn new() -> TestLoop {
        let mut l = Box::new(zeroed::<uv_loop_t>());
        // SAFETY: the memory is a loop's.
        assert_eq!(unsafe { uv_loop_init(&mut *l) }, 0);
        TestLoop(l)
    }

    pub(crate) fn raw(&mut self) -> *mut uv_loop_t {
        &mut *self.0
    }

    /// One turn that does not wait.
    pub(crate) fn turn(&mut self) {
        // SAFETY: the loop is initialised.
        unsafe { uv_run(self.raw(), NOWAIT) };
    }

    /// Runs until nothing is alive.
    pub(crate) fn run(&mut self) {
        // SAFETY: the loop is initialised.
        assert_eq!(unsafe { uv_run(self.raw(), 0) }, 0);
    }

    /// Turns until `done`, waiting for what is on its way.
    pub(crate) fn until(&mut self, mut done: impl FnMut() -> bool) {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !done() {
            assert!(std::time::Instant::now() < deadline, "it does not happen");
            self.turn();
        }
    }
}

impl Drop for TestLoop {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: the loop is initialised.
            unsafe {
                uv_run(self.raw(), 0);
                assert_eq!(uv_loop_close(self.raw()), 0, "something is left open");
            }
        }
    }
}

/// What a receive callback was told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Heard {
    pub(crate) nread: isize,
    pub(crate) bytes: Vec<u8>,
    pub(crate) from: Option<u16>,
    pub(crate) flags: c_uint,
}

/// What callbacks change while a test waits. It is reached through a pointer at every look: of what
/// a reference leads to, the compiler may keep what it saw before the callback.
pub(crate) struct Shared<T>(*mut T);

impl<T> Shared<T> {
    fn new(value: T) -> Shared<T> {
        Shared(Box::into_raw(Box::new(value)))
    }

    pub(crate) fn as_ptr(&self) -> *mut T {
        self.0
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the value lives as long as this, and no callback runs during a look.
        unsafe { &*self.0 }
    }
}

impl<T> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.0 }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: the value was a box, which nobody else frees.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

type OnReceive = Box<dyn FnMut(*mut uv_udp_t, &Heard)>;

/// What the callbacks of a handle know and remember.
pub(crate) struct State {
    /// How large a buffer to lend; none at all if that is nothing.
    pub(crate) room: usize,
    /// Buffers that have not come back.
    pub(crate) lent: HashMap<usize, Vec<u8>>,
    pub(crate) lent_ever: usize,
    pub(crate) heard: Vec<Heard>,
    pub(crate) on_receive: Option<OnReceive>,
}

/// A UDP handle and its state. It closes itself.
pub(crate) struct Peer {
    /// Never freed: the loop may look at it until it has closed it.
    pub(crate) udp: &'static mut uv_udp_t,
    pub(crate) state: Shared<State>,
    open: bool,
}

impl Peer {
    pub(crate) fn new(l: &mut TestLoop, flags: c_uint) -> Peer {
        let udp = Box::leak(Box::new(uv_udp_t {
            data: null_mut(),
            ..garbage()
        }));
        let state = Shared::new(State {
            room: MAX_DATAGRAM,
            lent: HashMap::new(),
            lent_ever: 0,
            heard: Vec::new(),
            on_receive: None,
        });
        udp.data = state.as_ptr().cast();
        // SAFETY: the memory is a handle's, and stays where it is.
        assert_eq!(unsafe { uv_udp_init_ex(l.raw(), udp, flags) }, 0);
        assert_eq!((udp.send_queue_size, udp.send_queue_count), (0, 0));
        Peer {
            udp,
            state,
            open: true,
        }
    }

    /// One bound to a port of its own on the loopback interface.
    pub(crate) fn bound(l: &mut TestLoop, flags: c_uint) -> Peer {
        let mut peer = Peer::new(l, flags);
        assert_eq!(peer.bind(&loopback(0), 0), 0);
        peer
    }

    pub(crate) fn raw(&mut self) -> *mut uv_udp_t {
        self.udp
    }

    pub(crate) fn bind(&mut self, address: &Address, flags: c_uint) -> c_int {
        // SAFETY: the handle is initialised, and the address lives through the call.
        unsafe { uv_udp_bind(self.raw(), address.as_ptr(), flags) }
    }

    pub(crate) fn connect(&mut self, address: &Address) -> c_int {
        // SAFETY: as above.
        unsafe { uv_udp_connect(self.raw(), address.as_ptr()) }
    }

    pub(crate) fn address(&mut self) -> Address {
        let mut name = Address(loopback(0).0);
        let mut len = size_of::<libc::sockaddr_in>() as c_int;
        // SAFETY: there is room for an address.
        let found = unsafe { uv_udp_getsockname(self.raw(), (&raw mut name.0), &mut len) };
        assert_eq!(found, 0);
        name
    }

    pub(crate) fn port(&mut self) -> u16 {
        u16::from_be(self.address().0.sin_port)
    }

    pub(crate) fn fd(&mut self) -> c_int {
        let mut fd = -1;
        // SAFETY: the handle is initialised.
        assert_eq!(unsafe { uv_fileno(self.raw(), &mut fd) }, 0);
        fd
    }

    pub(crate) fn start(&mut self) {
        // SAFETY: the handle is initialised, and its state lives as long.
        let started = unsafe { uv_udp_recv_start(self.raw(), Some(on_alloc), Some(on_receive)) };
        assert_eq!(started, 0);
    }

    pub(crate) fn stop(&mut self) {
        // SAFETY: the handle is initialised.
        assert_eq!(unsafe { uv_udp_recv_stop(self.raw()) }, 0);
    }

    pub(crate) fn try_send(&mut self, bytes: &[u8], to: Option<&Address>) -> c_int {
        let buf = uv_buf_t::new(bytes);
        let to = to.map_or(null(), Address::as_ptr);
        // SAFETY: all live through the call.
        unsafe { uv_udp_try_send(self.raw(), &buf, 1, to) }
    }

    pub(crate) fn close(&mut self) {
        assert!(std::mem::take(&mut self.open), "closed twice");
        // SAFETY: the handle is open.
        unsafe { uv_close(self.raw(), None) };
    }

    /// Says that a callback has closed the handle.
    pub(crate) fn was_closed(&mut self) {
        self.open = false;
    }

    pub(crate) fn heard(&self) -> &[Heard] {
        &self.state.heard
    }

    /// The datagrams among what was heard.
    pub(crate) fn datagrams(&self) -> Vec<&[u8]> {
        let came = self.heard().iter().filter(|heard| heard.from.is_some());
        came.map(|heard| &heard.bytes[..]).collect()
    }
}

unsafe extern "C" fn on_alloc(udp: *mut uv_udp_t, suggested: usize, buf: *mut uv_buf_t) {
    assert_eq!(suggested, MAX_DATAGRAM);
    // SAFETY: the handle's state lives as long as the handle.
    unsafe {
        let state = &mut *(*udp).data.cast::<State>();
        if state.room == 0 {
            return;
        }
        let mut memory = vec![0u8; state.room];
        *buf = uv_buf_t::new(&memory);
        (*buf).base = memory.as_mut_ptr().cast();
        state.lent.insert((*buf).base as usize, memory);
        state.lent_ever += 1;
    }
}

unsafe extern "C" fn on_receive(
    udp: *mut uv_udp_t,
    nread: isize,
    buf: *const uv_buf_t,
    addr: *const libc::sockaddr,
    flags: c_uint,
) {
    // SAFETY: the handle's state lives as long as the handle; the buffer is one of ours, or a
    // piece of one, and the address is one of IPv4.
    unsafe {
        let state = (*udp).data.cast::<State>();
        let bytes = match usize::try_from(nread) {
            Ok(len) if !(*buf).base.is_null() => {
                assert!(len <= (*buf).len);
                std::slice::from_raw_parts((*buf).base.cast::<u8>(), len).to_vec()
            }
            _ => Vec::new(),
        };
        let from = (!addr.is_null()).then(|| {
            let addr = *addr.cast::<libc::sockaddr_in>();
            assert_eq!(addr.sin_family, libc::AF_INET as libc::sa_family_t);
            u16::from_be(addr.sin_port)
        });
        if flags & CHUNK == 0 && !(*buf).base.is_null() {
            let back = (*state).lent.remove(&((*buf).base as usize));
            let back = back.expect("a buffer comes back that was not lent");
            assert_eq!(back.len(), (*buf).len, "a buffer comes back in part");
        }
        let heard = Heard {
            nread,
            bytes,
            from,
            flags,
        };
        (*state).heard.push(heard.clone());
        let action = (*state).on_receive.take();
        if let Some(mut action) = action {
            action(udp, &heard);
            (*state).on_receive.get_or_insert(action);
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if self.open && !std::thread::panicking() {
            self.close();
        }
    }
}

/// An IPv4 address as C takes it.
#[derive(Clone, Copy)]
pub(crate) struct Address(pub(crate) libc::sockaddr_in);

impl Address {
    pub(crate) fn as_ptr(&self) -> *const libc::sockaddr {
        (&raw const self.0).cast()
    }

    pub(crate) fn v4(address: SocketAddrV4) -> Address {
        Address(libc::sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_port: address.port().to_be(),
            sin_addr: libc::in_addr {
                s_addr: u32::from_ne_bytes(address.ip().octets()),
            },
            sin_zero: [0; 8],
        })
    }
}

pub(crate) fn loopback(port: u16) -> Address {
    Address::v4(SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, port))
}

/// A port on the loopback interface that nobody listens at, nor is ever given.
pub(crate) fn dead_port() -> Address {
    loopback(1)
}

/// A request, which stays where it is, its number, and the record that it belongs to.
type Entry = Box<(uv_udp_send_t, usize, *mut Sends)>;

/// Sends that are under way, and what their callbacks were told: the number of the send, its
/// status, and the handle's public counts at the time.
#[derive(Default)]
pub(crate) struct Sends {
    pub(crate) reports: Vec<(usize, c_int, usize, usize)>,
    requests: Vec<Entry>,
}

impl Sends {
    pub(crate) fn new() -> Shared<Sends> {
        Shared::new(Sends::default())
    }

    /// Sends buffers, which have to live until the report.
    pub(crate) fn send(
        &mut self,
        peer: &mut Peer,
        bufs: &[uv_buf_t],
        to: Option<&Address>,
    ) -> c_int {
        let request = uv_udp_send_t {
            data: null_mut(),
            ..garbage()
        };
        let number = self.requests.len();
        let this: *mut Sends = self;
        self.requests.push(Box::new((request, number, this)));
        let entry = &mut **self.requests.last_mut().unwrap();
        entry.0.data = (&raw mut *entry).cast();
        let to = to.map_or(null(), Address::as_ptr);
        let (request, handle) = (&raw mut entry.0, peer.raw());
        // SAFETY: all live until the report. The array itself need not.
        unsafe {
            let bufs = bufs.to_vec();
            uv_udp_send(
                request,
                handle,
                bufs.as_ptr(),
                bufs.len() as c_uint,
                to,
                Some(on_sent),
            )
        }
    }
}

unsafe extern "C" fn on_sent(request: *mut uv_udp_send_t, status: c_int) {
    // SAFETY: the request is part of an entry, which lives as long as the record.
    unsafe {
        let entry = (*request).data.cast::<(uv_udp_send_t, usize, *mut Sends)>();
        let handle = (*request).handle;
        let (size, count) = ((*handle).send_queue_size, (*handle).send_queue_count);
        assert_eq!(uv_udp_get_send_queue_size(handle), size);
        assert_eq!(uv_udp_get_send_queue_count(handle), count);
        let reports = &raw mut (*(*entry).2).reports;
        (*reports).push(((*entry).1, status, size, count));
    }
}

/// Numbers that look random, from a seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// A datagram that proves itself: its number, bytes that follow from it, and a checksum.
pub(crate) fn sealed(number: u32, len: usize) -> Vec<u8> {
    let mut random = Random::new(u64::from(number) << 8 | 0x5a);
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.extend((0..len).map(|_| random.next() as u8));
    bytes.extend(checksum(&bytes).to_be_bytes());
    bytes
}

/// The number of a datagram, if it is whole and as it was.
pub(crate) fn unsealed(bytes: &[u8]) -> Option<u32> {
    let (body, seal) = bytes.split_last_chunk::<8>()?;
    let number = u32::from_be_bytes(*body.first_chunk()?);
    (u64::from_be_bytes(*seal) == checksum(body)).then_some(number)
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

pub(crate) fn udp_socket() -> c_int {
    // SAFETY: socket takes no pointers.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM, 0) };
    assert!(fd >= 0);
    fd
}

pub(crate) fn option(fd: c_int, level: c_int, name: c_int) -> c_int {
    let (mut value, mut len) = (0, 4);
    // SAFETY: the value is an int of that length.
    let found = unsafe { libc::getsockopt(fd, level, name, (&raw mut value).cast(), &mut len) };
    assert_eq!(found, 0);
    value
}

pub(crate) fn close(fd: c_int) {
    // SAFETY: the descriptor is ours.
    assert_eq!(unsafe { libc::close(fd) }, 0);
}

/// Two connected sockets that hold as many datagrams as they have room for, and a handle on
/// the first. The second stays blocking.
pub(crate) fn blocked_pair(l: &mut TestLoop) -> (Peer, c_int) {
    let mut fds = [0; 2];
    // SAFETY: there is room for two descriptors.
    let made = unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM, 0, fds.as_mut_ptr()) };
    assert_eq!(made, 0);
    let mut peer = Peer::new(l, 0);
    // SAFETY: the handle is initialised, and takes the socket.
    assert_eq!(unsafe { uv_udp_open(peer.raw(), fds[0]) }, 0);
    (peer, fds[1])
}

/// Fills the pair up and says how many datagrams that took.
pub(crate) fn fill(peer: &mut Peer) -> usize {
    let full = (0..).find(|_| match peer.try_send(b"filling", None) {
        EAGAIN => true,
        sent => {
            assert_eq!(sent, 7);
            false
        }
    });
    full.unwrap()
}

/// Reads a datagram from the other end.
pub(crate) fn read(fd: c_int) -> Vec<u8> {
    let mut room = [0; 1024];
    // SAFETY: the room is as large as we say.
    let len = unsafe { libc::read(fd, room.as_mut_ptr().cast(), room.len()) };
    assert!(len >= 0);
    room[..len as usize].to_vec()
}

/// Calls `uv_udp_try_send2` with one buffer for each datagram.
pub(crate) fn try_send2(
    peer: &mut Peer,
    texts: &[&[u8]],
    to: &[Option<Address>],
    flags: c_uint,
) -> c_int {
    let mut bufs: Vec<uv_buf_t> = texts.iter().map(|text| uv_buf_t::new(text)).collect();
    let mut bufs: Vec<*mut uv_buf_t> = bufs.iter_mut().map(|buf| &raw mut *buf).collect();
    let mut nbufs = vec![1; texts.len()];
    let mut addrs: Vec<_> = to
        .iter()
        .map(|to| to.as_ref().map_or(null_mut(), |to| to.as_ptr().cast_mut()))
        .collect();
    let count = texts.len() as c_uint;
    // SAFETY: the arrays are of that length, and all live through the call.
    unsafe {
        uv_udp_try_send2(
            peer.raw(),
            count,
            bufs.as_mut_ptr(),
            nbufs.as_mut_ptr(),
            if to.is_empty() {
                null_mut()
            } else {
                addrs.as_mut_ptr()
            },
            flags,
        )
    }
}
