//! A file's times: <https://man7.org/linux/man-pages/man2/utimensat.2.html>.

use super::retry;
use crate::{Errno, RawFd, check};
use std::ffi::CStr;

/// One of a file's times, to be set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Time {
    /// Seconds since 1970 and nanoseconds.
    At(i64, u32),
    /// The kernel's current time.
    Now,
    /// Unchanged.
    Omit,
}

/// 2⁶³, the first number of seconds that does not fit.
const TOO_LATE: f64 = 9_223_372_036_854_775_808.0;

impl Time {
    /// The time in libuv's form: seconds with fractions, infinity for now and NaN for no change.
    /// `EINVAL` for a time that no `time_t` can hold.
    pub fn from_seconds(seconds: f64) -> Result<Time, Errno> {
        if seconds.is_nan() {
            return Ok(Time::Omit);
        }
        if seconds.is_infinite() {
            return Ok(Time::Now);
        }
        if !(-TOO_LATE..TOO_LATE).contains(&seconds) {
            return Err(Errno::EINVAL);
        }
        let whole = seconds.trunc() as i64;
        let ns = (seconds.fract() * 1e9) as i64;
        // The kernel counts nanoseconds forward from the preceding second.
        Ok(match ns < 0 {
            true => Time::At(whole - 1, (ns + 1_000_000_000) as u32),
            false => Time::At(whole, ns as u32),
        })
    }

    fn timespec(self) -> libc::timespec {
        let (tv_sec, tv_nsec) = match self {
            Time::At(seconds, ns) => (seconds, libc::c_long::from(ns)),
            Time::Now => (0, libc::UTIME_NOW),
            Time::Omit => (0, libc::UTIME_OMIT),
        };
        libc::timespec { tv_sec, tv_nsec }
    }
}

/// Sets a file's access and modification times.
pub fn set(path: &CStr, access: Time, modification: Time) -> Result<(), Errno> {
    set_at(path, access, modification, 0)
}

/// As [`set`], for a symbolic link itself.
pub fn set_link(path: &CStr, access: Time, modification: Time) -> Result<(), Errno> {
    set_at(path, access, modification, libc::AT_SYMLINK_NOFOLLOW)
}

fn set_at(path: &CStr, access: Time, modification: Time, flags: i32) -> Result<(), Errno> {
    let times = [access.timespec(), modification.timespec()];
    let path = path.as_ptr();
    // SAFETY: the path and the times live through the call.
    retry(|| check(unsafe { libc::utimensat(libc::AT_FDCWD, path, times.as_ptr(), flags) }))?;
    Ok(())
}

/// Sets the times of an open file.
pub fn set_open(fd: RawFd, access: Time, modification: Time) -> Result<(), Errno> {
    let times = [access.timespec(), modification.timespec()];
    // SAFETY: the times live through the call, and any number is allowed as a descriptor.
    retry(|| check(unsafe { libc::futimens(fd, times.as_ptr()) }))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_count_forward_from_the_second_before() {
        let time = |seconds| Time::from_seconds(seconds).unwrap();
        assert_eq!(time(0.0), Time::At(0, 0));
        assert_eq!(time(400_497_753.25), Time::At(400_497_753, 250_000_000));
        assert_eq!(time(-1.5), Time::At(-2, 500_000_000));
        assert_eq!(time(-0.25), Time::At(-1, 750_000_000));
        assert_eq!(time(-14_245_440.25), Time::At(-14_245_441, 750_000_000));
        assert_eq!(time(-3.0), Time::At(-3, 0));
        assert_eq!(time(1e10 + 0.1), Time::At(10_000_000_000, 100_000_381));
    }

    #[test]
    fn numbers_that_are_no_times() {
        assert_eq!(Time::from_seconds(f64::NAN), Ok(Time::Omit));
        assert_eq!(Time::from_seconds(f64::INFINITY), Ok(Time::Now));
        assert_eq!(Time::from_seconds(f64::NEG_INFINITY), Ok(Time::Now));
        assert_eq!(Time::from_seconds(1e20), Err(Errno::EINVAL));
        assert_eq!(Time::from_seconds(-1e20), Err(Errno::EINVAL));
        assert!(Time::from_seconds(-TOO_LATE).is_ok());
    }
}
