//! A randomized soak of UDP through the C interface, on real sockets: every datagram arrives once,
//! in order, with the bytes that were sent. `BLACKLIGHT_SEED` repeats a run.

#[path = "support/soak.rs"]
mod soak;

use soak::*;
use std::ffi::{c_int, c_uint};

const DATAGRAMS: u64 = 2000;
/// So few at a time that they fit any socket buffer.
const IN_FLIGHT: u64 = 2;
const MAX_DATAGRAM: usize = 32 << 10;

/// A datagram starts with its number, and is filled with bytes that depend on it.
struct Datagrams {
    from: Room,
    to: Room,
    address: libc::sockaddr_in,
    random: Random,
    sent: u64,
    reported: u64,
    received: u64,
    room: Vec<u8>,
}

fn datagram(number: u64, len: usize) -> Vec<u8> {
    let mut random = Random(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let fill = std::iter::repeat_with(|| random.next() as u8).take(len);
    number.to_le_bytes().into_iter().chain(fill).collect()
}

/// What a request takes along: whose it is, and its datagram.
struct Sending {
    owner: *mut Datagrams,
    bytes: Vec<u8>,
}

impl Datagrams {
    fn send(&mut self) {
        while self.sent < DATAGRAMS && self.sent - self.received < IN_FLIGHT {
            let len = self.random.size(MAX_DATAGRAM);
            let bytes = datagram(self.sent, len);
            let (head, tail) = bytes.split_at(self.random.below(bytes.len()));
            let bufs = [head, tail].map(|part| uv_buf_t {
                base: part.as_ptr().cast_mut().cast(),
                len: part.len(),
            });
            self.sent += 1;
            let owner: *mut Datagrams = self;
            let mut request = Box::new(Room::default());
            request.data = Box::into_raw(Box::new(Sending { owner, bytes })).cast();
            let address = &raw const self.address;
            // SAFETY: request and bytes live until the callback.
            let begun = unsafe {
                let request = Box::into_raw(request);
                uv_udp_send(
                    request,
                    &raw mut self.from,
                    bufs.as_ptr(),
                    2,
                    address,
                    Some(on_send),
                )
            };
            assert_eq!(begun, 0);
        }
    }
}

unsafe extern "C" fn on_send(request: Handle, status: c_int) {
    assert_eq!(status, 0, "a datagram is not sent");
    // SAFETY: both were boxed by `send`, and the owner lives through the run.
    unsafe {
        let request = Box::from_raw(request);
        let sending = Box::from_raw(request.data.cast::<Sending>());
        let owner = &mut *sending.owner;
        let number = sending.bytes[..8].try_into().expect("eight bytes");
        assert_eq!(
            u64::from_le_bytes(number),
            owner.reported,
            "reported out of order"
        );
        owner.reported += 1;
    }
}

unsafe extern "C" fn on_datagram_alloc(udp: Handle, _suggested: usize, buf: *mut uv_buf_t) {
    // SAFETY: the handle has its owner in its first word.
    unsafe {
        let owner = &mut *(*udp).data.cast::<Datagrams>();
        *buf = uv_buf_t {
            base: owner.room.as_mut_ptr().cast(),
            len: owner.room.len(),
        };
    }
}

unsafe extern "C" fn on_datagram(
    udp: Handle,
    count: isize,
    _buf: *const uv_buf_t,
    from: *const libc::sockaddr,
    flags: c_uint,
) {
    if count == 0 && from.is_null() {
        return;
    }
    assert!(
        count >= 8 && flags == 0,
        "receiving fails: {count}, {flags}"
    );
    // SAFETY: as above.
    unsafe {
        let owner = &mut *(*udp).data.cast::<Datagrams>();
        let bytes = &owner.room[..count as usize];
        let is_same = *bytes == datagram(owner.received, bytes.len() - 8);
        assert!(is_same, "datagram {} is not what was sent", owner.received);
        owner.received += 1;
        owner.send();
        if owner.received == DATAGRAMS {
            uv_close(&raw mut owner.from, None);
            uv_close(&raw mut owner.to, None);
        }
    }
}

fn soak_datagrams(poller: &str) {
    let mut owner = Box::new(Datagrams {
        from: Room::default(),
        to: Room::default(),
        address: loopback(),
        random: Random(seed("datagrams", poller) | 1),
        sent: 0,
        reported: 0,
        received: 0,
        room: vec![0; 1 << 16],
    });
    let this: *mut Datagrams = &raw mut *owner;
    run_on(poller, |loop_| {
        // SAFETY: the owner is boxed and outlives the run.
        unsafe {
            let (from, to) = (&raw mut (*this).from, &raw mut (*this).to);
            let address = (&raw mut (*this).address).cast::<libc::sockaddr>();
            let mut len = size_of::<libc::sockaddr_in>() as c_int;
            (*to).data = this.cast();
            assert_eq!(uv_udp_init(loop_, from), 0);
            assert_eq!(uv_udp_init(loop_, to), 0);
            assert_eq!(uv_udp_bind(to, address, 0), 0);
            assert_eq!(uv_udp_getsockname(to, address, &mut len), 0);
            assert_eq!(
                uv_udp_recv_start(to, Some(on_datagram_alloc), Some(on_datagram)),
                0
            );
            (*this).send();
        }
    });
    assert_eq!(owner.received, DATAGRAMS);
    assert_eq!(owner.reported, DATAGRAMS);
}

#[test]
fn datagrams_on_select() {
    soak_datagrams("select");
}

#[test]
fn datagrams_on_poll() {
    soak_datagrams("poll");
}

#[test]
fn datagrams_on_epoll() {
    soak_datagrams("epoll");
}
