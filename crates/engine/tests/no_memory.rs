//! Handles whose making fails for want of memory leave nothing behind.

use blacklight_engine::{Engine, Errno, Mechanism, Token};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which refuses one request of a thread that asks for that.
struct Refusing;

thread_local! {
    /// How many requests are granted before one is refused.
    static GRANTED: Cell<Option<u32>> = const { Cell::new(None) };
}

fn is_refused() -> bool {
    let refused = GRANTED.try_with(|granted| {
        let left = granted.get();
        granted.set(left.and_then(|left| left.checked_sub(1)));
        left == Some(0)
    });
    refused.unwrap_or(false)
}

// SAFETY: every call is passed on as it is to the system's allocator, which keeps the contract,
// or refused, as the contract allows; deciding that does not allocate.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match is_refused() {
            true => std::ptr::null_mut(),
            // SAFETY: the caller keeps `alloc`'s contract, which is the same.
            false => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match is_refused() {
            true => std::ptr::null_mut(),
            // SAFETY: the caller keeps `realloc`'s contract, which is the same.
            false => unsafe { System.realloc(at, layout, size) },
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `dealloc`'s contract, which is the same.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn a_tcp_handle_that_cannot_be_made_is_forgotten() {
    const AF_INET: i32 = 2;
    for granted in 0.. {
        let mut engine = Engine::new(Some(Mechanism::Poll)).unwrap();
        let before = open_descriptors();
        GRANTED.set(Some(granted));
        let made = engine.tcp_init(Token(1), Some(AF_INET));
        let refused = GRANTED.take().is_none();
        assert_eq!(
            engine.is_unused(),
            made.is_err(),
            "after {granted} requests"
        );
        match made {
            Ok(_) => {
                assert!(!refused, "the refused request was needed for nothing");
                assert!(granted > 2, "the socket's table was asked for as well");
                return;
            }
            Err(error) => assert_eq!(error, Errno::ENOMEM),
        }
        assert_eq!(open_descriptors(), before);
    }
}
