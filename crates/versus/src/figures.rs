//! What a workload took.

use nix::sys::resource::{UsageWho, getrusage};
use std::fmt;
use std::time::{Duration, Instant};

/// How many operations a workload did, and what they took.
pub(crate) struct Figures {
    operations: u64,
    wall: Duration,
    cpu: Duration,
    /// A figure that only this workload has.
    pub(crate) own: Option<f64>,
}

impl fmt::Display for Figures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (wall, cpu) = (self.wall.as_secs_f64(), self.cpu.as_secs_f64());
        write!(formatter, "{} {wall} {cpu}", self.operations)?;
        match self.own {
            Some(own) => write!(formatter, " {own}"),
            None => Ok(()),
        }
    }
}

/// The beginning of what is measured.
pub(crate) struct Begun {
    at: Instant,
    cpu: Duration,
}

impl Begun {
    pub(crate) fn now() -> Begun {
        Begun {
            at: Instant::now(),
            cpu: processor_time(),
        }
    }

    /// The figures of so many operations that end now.
    pub(crate) fn done(&self, operations: u64) -> Figures {
        Figures {
            operations,
            wall: self.at.elapsed(),
            cpu: processor_time() - self.cpu,
            own: None,
        }
    }
}

/// The processor time of all threads of this process.
fn processor_time() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("a process knows what it used");
    [usage.user_time(), usage.system_time()]
        .iter()
        .map(|time| {
            let micros = time.tv_sec() * 1_000_000 + time.tv_usec();
            Duration::from_micros(micros.try_into().expect("no time is negative"))
        })
        .sum()
}

/// How many bytes of this process are resident.
pub(crate) fn resident_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process has a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    kibibytes.expect("the kernel says what is resident") * 1024.0
}

/// The value below which so many of a hundred lie.
pub(crate) fn percentile(values: &mut [u64], percent: usize) -> f64 {
    values.sort_unstable();
    let at = (values.len() * percent / 100).min(values.len() - 1);
    values[at] as f64
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn percentiles_count_from_the_least() {
        let mut values: Vec<u64> = (0..100).rev().collect();
        assert_eq!(percentile(&mut values, 50), 50.0);
        assert_eq!(percentile(&mut values, 99), 99.0);
        assert_eq!(percentile(&mut values, 100), 99.0);
    }
}
