//! Where a measurement was made: the processor, the kernel, and how busy the machine was.

use serde::Serialize;
use std::fs;

/// The machine, and its load before and after.
#[derive(Serialize)]
pub(crate) struct Machine {
    processor: String,
    processors: usize,
    kernel: String,
    /// How many processes wanted a processor, over the last minute.
    load_before: f64,
    load_after: Option<f64>,
}

impl Machine {
    pub(crate) fn describe() -> Machine {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Machine {
            processor: processor(&cpuinfo).to_owned(),
            processors: crate::compile::jobs(),
            kernel: kernel.trim().to_owned(),
            load_before: load(),
            load_after: None,
        }
    }

    /// Takes note of the load at the end.
    pub(crate) fn finish(&mut self) {
        self.load_after = Some(load());
    }

    pub(crate) fn in_words(&self) -> String {
        let after = self
            .load_after
            .map_or(String::new(), |load| format!(" and {load:.2} after"));
        format!(
            "{}, {} processors, Linux {}; load average {:.2} before{after}",
            self.processor, self.processors, self.kernel, self.load_before
        )
    }

    /// Whether other programs kept the processors busy when it began.
    pub(crate) fn is_busy(&self) -> bool {
        self.load_before > 0.5
    }
}

fn processor(cpuinfo: &str) -> &str {
    let name = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    name.map_or("unknown processor", |rest| {
        rest.trim_start_matches([' ', '\t', ':'])
    })
}

fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|word| word.parse().ok()).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_and_both_loads_are_stated() {
        let mut machine = Machine::describe();
        machine.load_before = 0.25;
        assert!(machine.in_words().ends_with("load average 0.25 before"));
        machine.finish();
        machine.load_after = Some(1.0);
        assert!(machine.in_words().ends_with("0.25 before and 1.00 after"));
        assert!(!machine.is_busy());
        assert_eq!(processor("model name\t: AMD EPYC\n"), "AMD EPYC");
        assert_eq!(processor(""), "unknown processor");
    }
}
