//! The machine's uptime and load: <https://man7.org/linux/man-pages/man5/proc_uptime.5.html>,
//! <https://man7.org/linux/man-pages/man5/proc_loadavg.5.html>.

use super::text;
use rustix::system::sysinfo;
use rustix::time::{ClockId, clock_gettime};

/// Seconds since boot. The kernel's file takes precedence over the clock: it has hundredths of
/// seconds, and containers put their own numbers into it.
pub fn uptime() -> f64 {
    let file = text::read(c"/proc/uptime").unwrap_or_default();
    let uptime = numbers(&file).next();
    uptime.unwrap_or_else(|| clock_gettime(ClockId::Boottime).tv_sec as f64)
}

/// The average number of runnable tasks in the last one, five and fifteen minutes.
pub fn load_averages() -> [f64; 3] {
    let file = text::read(c"/proc/loadavg").unwrap_or_default();
    let mut numbers = numbers(&file);
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(one), Some(five), Some(fifteen)) => [one, five, fifteen],
        // The kernel counts in units of 1/65536.
        _ => sysinfo().loads.map(|load| load as f64 / 65536.0),
    }
}

/// The numbers at the beginning of a text like `/proc/uptime` or `/proc/loadavg`. Texts for
/// infinity and NaN end them.
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
