//! Reading, writing, waiting and waking allocate nothing in steady state. The count is the whole
//! process's, so this is alone.

use blacklight::{Loop, UdpSocket, UnixStream, spawn};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller's duties are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's duties are the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One message there and one back, over a stream and over datagrams, and some waiting.
async fn round(near: &UnixStream, one: &UdpSocket, two: &UdpSocket, sleep: &mut blacklight::Sleep) {
    let mut room = [0; 64];
    near.write_all(b"message").await.unwrap();
    assert_eq!(near.read(&mut room).await.unwrap(), 7);
    one.send(b"datagram").await.unwrap();
    assert_eq!(two.recv(&mut room).await.unwrap(), 8);
    sleep.reset(Duration::from_micros(10));
    poll_fn(|context| Pin::new(&mut *sleep).poll(context)).await;
    blacklight::sleep(Duration::from_micros(10)).await;
    let yielded = Cell::new(false);
    poll_fn(|context| match yielded.replace(true) {
        true => Poll::Ready(()),
        false => {
            context.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
}

#[test]
fn steady_state_allocates_nothing() {
    // No reader that happens to be there has the loop begin to record in the midst of a count.
    // SAFETY: this process has no other threads yet that could look at the environment.
    unsafe { std::env::set_var("BLACKLIGHT_RECORD", "never") };
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (near, far) = UnixStream::pair().unwrap();
        let any = "127.0.0.1:0";
        let one = UdpSocket::bind(any).await.unwrap();
        let two = UdpSocket::bind(any).await.unwrap();
        one.connect(two.local_addr().unwrap()).await.unwrap();
        let mut sleep = blacklight::sleep(Duration::ZERO);
        let echo = spawn(async move {
            let mut room = [0; 64];
            loop {
                let count = far.read(&mut room).await.unwrap();
                far.write_all(&room[..count]).await.unwrap();
            }
        });
        for _ in 0..1000 {
            round(&near, &one, &two, &mut sleep).await;
        }
        let before = ALLOCATIONS.load(Relaxed);
        for _ in 0..1000 {
            round(&near, &one, &two, &mut sleep).await;
        }
        assert_eq!(ALLOCATIONS.load(Relaxed) - before, 0);
        echo.abort();
    });
}
