//! The machine that we run on: its names, how long it is up and how busy it is.

use crate::{Errno, check, fallible, text};
use rustix::system::{Uname, sysinfo};
use rustix::time::{ClockId, clock_gettime};

/// The kernel's name, release and version, and the kind of machine:
/// <https://man7.org/linux/man-pages/man2/uname.2.html>.
pub fn names() -> Uname {
    rustix::system::uname()
}

/// The machine's name in the network:
/// <https://man7.org/linux/man-pages/man2/gethostname.2.html>.
pub fn hostname() -> Result<Vec<u8>, Errno> {
    // Linux has room for 64 bytes of it, POSIX for 255.
    let mut name = fallible::copied(&[0; 256])?;
    // SAFETY: there is room for that many bytes, of which we keep one from being overwritten.
    check(unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) })?;
    let len = name.iter().position(|&byte| byte == 0);
    name.truncate(len.unwrap_or(0));
    Ok(name)
}

/// Seconds since the machine was started. The kernel's file has hundredths of them, and is
/// the one that containers put their own numbers in.
pub fn uptime() -> f64 {
    let file = text::read(c"/proc/uptime").unwrap_or_default();
    let uptime = numbers(&file).next();
    uptime.unwrap_or_else(|| clock_gettime(ClockId::Boottime).tv_sec as f64)
}

/// How many tasks were running or ready to, on the average of the last minute, five and fifteen.
pub fn load_averages() -> [f64; 3] {
    let file = text::read(c"/proc/loadavg").unwrap_or_default();
    let mut numbers = numbers(&file);
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(one), Some(five), Some(fifteen)) => [one, five, fifteen],
        // The kernel counts in units of 1/65536.
        _ => sysinfo().loads.map(|load| load as f64 / 65536.0),
    }
}

/// The numbers at the beginning of a text like that of `/proc/uptime` or `/proc/loadavg`. What is
/// not finite is no number, although it reads like one.
pub fn numbers(text: &[u8]) -> impl Iterator<Item = f64> {
    text::words(text)
        .map_while(text::number)
        .take_while(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_where_something_else_begins() {
        assert_eq!(numbers(b"1.5 2 x 3").collect::<Vec<_>>(), [1.5, 2.0]);
        assert_eq!(numbers(b"").next(), None);
        assert_eq!(numbers(b"inf 1").next(), None);
        assert_eq!(numbers(b"1 nan").collect::<Vec<_>>(), [1.0]);
    }

    #[test]
    fn the_file_and_the_clock_agree_about_the_time_since_the_start() {
        let clock = clock_gettime(ClockId::Boottime).tv_sec as f64;
        assert!((uptime() - clock).abs() < 60.0);
        assert!(load_averages().iter().all(|&load| load >= 0.0));
    }
}
