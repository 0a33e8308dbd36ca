//! What the soaks share: chance, and a loop on each poller.
#![allow(dead_code, reason = "each soak uses a part of it")]

use std::ffi::{c_int, c_uint};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use uv as _;
pub(crate) use uv_binding::*;

pub(crate) type Handle = *mut Room;
pub(crate) type Cb = unsafe extern "C" fn(Handle);
pub(crate) type StatusCb = unsafe extern "C" fn(Handle, c_int);
pub(crate) type AllocCb = unsafe extern "C" fn(Handle, usize, *mut uv_buf_t);
pub(crate) type ReadCb = unsafe extern "C" fn(Handle, isize, *const uv_buf_t);
pub(crate) type RecvCb =
    unsafe extern "C" fn(Handle, isize, *const uv_buf_t, *const libc::sockaddr, c_uint);

/// xorshift64*, which is random enough to be unkind.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// A size up to `max`, of any order of magnitude.
    pub(crate) fn size(&mut self, max: usize) -> usize {
        let magnitude = self.below(max.ilog2() as usize + 1);
        (1 + self.below(2 << magnitude)).min(max)
    }
}

pub(crate) fn loopback() -> libc::sockaddr_in {
    // SAFETY: all zeros are an address.
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    address.sin_family = libc::AF_INET as libc::sa_family_t;
    address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
    address
}

/// The seed to use; printed, so that the test's output has it if the test fails.
pub(crate) fn seed(what: &str, poller: &str) -> u64 {
    let given = std::env::var("BLACKLIGHT_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("it is after 1970");
    let seed = given.unwrap_or(now.as_nanos() as u64);
    println!("{what} on {poller}: BLACKLIGHT_SEED={seed}");
    // A seed that is a small number must be as random as any.
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Makes a loop on a poller, runs what `begin` puts into it, and closes it.
pub(crate) fn run_on(poller: &str, begin: impl FnOnce(*mut uv_loop_t)) {
    static ENVIRONMENT: Mutex<()> = Mutex::new(());
    let mut memory = Box::new(zeroed::<uv_loop_t>());
    let loop_: *mut uv_loop_t = &raw mut *memory;
    {
        let _guard = ENVIRONMENT.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: only Rust code looks at the environment here, and that takes turns.
        unsafe {
            std::env::set_var("BLACKLIGHT_POLLER", poller);
            assert_eq!(uv_loop_init(loop_), 0);
        }
    }
    begin(loop_);
    // SAFETY: the loop is ours.
    unsafe {
        assert_eq!(uv_run(loop_, 0), 0);
        assert_eq!(uv_loop_close(loop_), 0, "something is left in the loop");
    }
}
