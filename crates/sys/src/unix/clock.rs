//! Clocks: <https://man7.org/linux/man-pages/man2/clock_gettime.2.html>.

use rustix::time::{ClockId, Timespec, clock_gettime};

fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds on the monotonic clock, which starts at an arbitrary point and which changes of the
/// wall clock do not affect.
#[inline]
pub fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// The processor time that the calling thread has used, in nanoseconds. Unlike the other clocks,
/// this one costs a system call.
pub fn thread_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// Seconds and nanoseconds on the monotonic clock.
pub fn monotonic() -> (i64, i32) {
    let time = clock_gettime(ClockId::Monotonic);
    (time.tv_sec, time.tv_nsec as i32)
}

/// Seconds and nanoseconds since 1970 on the wall clock.
pub fn realtime() -> (i64, i32) {
    let time = clock_gettime(ClockId::Realtime);
    (time.tv_sec, time.tv_nsec as i32)
}

/// Sleeps for the whole of `ns`, even if signals arrive.
pub fn sleep_ns(ns: u64) {
    std::thread::sleep(std::time::Duration::from_nanos(ns));
}
