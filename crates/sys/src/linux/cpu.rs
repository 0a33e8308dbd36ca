//! Processors: <https://man7.org/linux/man-pages/man5/proc_stat.5.html>,
//! <https://man7.org/linux/man-pages/man5/proc_cpuinfo.5.html>.

use super::cgroup::Cgroups;
use super::{arm_parts, text};
use crate::Errno;
use crate::fallible::{self, Short};
use std::collections::HashMap;

/// The time that a processor has spent in each state since boot, in milliseconds.
#[allow(missing_docs, reason = "the names are the kernel's")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTimes {
    pub user: u64,
    pub nice: u64,
    pub system: u64,
    pub idle: u64,
    pub irq: u64,
}

/// A processor.
#[derive(Clone, Debug)]
pub struct Cpu {
    /// The model's name, or "unknown".
    pub model: String,
    /// The highest permitted frequency, or 0 if it is unknown.
    pub speed_mhz: u32,
    /// The time spent in each state.
    pub times: CpuTimes,
}

/// The processors that are online, in the order of their numbers.
pub fn all() -> Result<Vec<Cpu>, Errno> {
    let stat = text::read(c"/proc/stat")?;
    let models = match text::read(c"/proc/cpuinfo") {
        Err(Errno::ENOMEM) => return Err(Errno::ENOMEM),
        models => models.unwrap_or_default(),
    };
    let mut models = parse_models(&models)?;
    let mut cpus = Vec::new();
    for (number, times) in parse_times(&stat, tick_ms())? {
        let model = match models.remove(&number) {
            Some(model) => model,
            None => text::lossy(b"unknown")?,
        };
        let cpu = Cpu {
            model,
            speed_mhz: max_frequency_mhz(number).unwrap_or(0),
            times,
        };
        fallible::push(&mut cpus, cpu)?;
    }
    Ok(cpus)
}

/// The length of the kernel's clock tick in milliseconds.
fn tick_ms() -> u64 {
    // SAFETY: sysconf takes no pointers; it returns −1 for an unknown value.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    1000 / u64::try_from(per_second).unwrap_or(100).clamp(1, 1000)
}

/// The processors' times in `/proc/stat`, in the order of their numbers. A processor's line starts
/// with `cpu` and its number; the line without a number is the sum.
pub fn parse_times(stat: &[u8], tick_ms: u64) -> Result<Vec<(u32, CpuTimes)>, Errno> {
    let line = |line| {
        let mut fields = text::words(<[u8]>::strip_prefix(line, b"cpu")?);
        let number: u32 = text::number(fields.next()?)?;
        let mut ms = || Some(text::number::<u64>(fields.next()?)?.saturating_mul(tick_ms));
        let (user, nice, system, idle, _waiting, irq) = (ms()?, ms()?, ms()?, ms()?, ms()?, ms()?);
        let times = CpuTimes {
            user,
            nice,
            system,
            idle,
            irq,
        };
        Some((number, times))
    };
    // The sum's first field must not be taken for a processor's number.
    let lines = text::lines(stat).filter(|line| !line.starts_with(b"cpu "));
    let mut times = Vec::new();
    for time in lines.filter_map(line) {
        fallible::push(&mut times, time)?;
    }
    times.sort_unstable_by_key(|&(number, _)| number);
    Ok(times)
}

/// The models in `/proc/cpuinfo` by the processors' numbers. The file has a paragraph for each
/// processor, which begins with its number. ARM's have the number of a part in place of a name.
pub fn parse_models(cpuinfo: &[u8]) -> Result<HashMap<u32, String>, Errno> {
    let mut models = HashMap::new();
    let mut number = None;
    for line in text::lines(cpuinfo) {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else {
            continue;
        };
        let (name, value) = (line[..colon].trim_ascii_end(), &line[colon + 1..]);
        match (name, number) {
            (b"processor", _) => number = text::number(value.trim_ascii()),
            (b"model name", Some(number)) => {
                let model = value.strip_prefix(b" ").unwrap_or(value);
                models.try_reserve(1)?;
                models.insert(number, text::lossy(model)?);
            }
            (b"CPU part", Some(number)) => {
                if let Some(model) = arm_parts::name(value.trim_ascii()) {
                    models.try_reserve(1)?;
                    models.insert(number, text::lossy(model.as_bytes())?);
                }
            }
            _ => {}
        }
    }
    Ok(models)
}

fn max_frequency_mhz(number: u32) -> Option<u32> {
    let path = Short::format(format_args!(
        "/sys/devices/system/cpu/cpu{number}/cpufreq/scaling_max_freq"
    ));
    let file = text::read(path.as_c_str()).ok()?;
    let khz: u32 = text::number(file.trim_ascii_end())?;
    Some(khz / 1000)
}

/// How many threads can run at the same time: the number of processors that the calling thread may
/// run on, limited by its control group's quota. At least one.
pub fn parallelism() -> usize {
    let allowed = match rustix::thread::sched_getaffinity(None) {
        Ok(set) => set.count() as usize,
        Err(_) => online(),
    };
    let quota = Cgroups::current().and_then(|groups| groups.cpu_quota());
    let quota = quota.and_then(|quota| usize::try_from(quota).ok());
    allowed.min(quota.unwrap_or(usize::MAX)).max(1)
}

/// The number of processors online.
fn online() -> usize {
    // SAFETY: sysconf takes no pointers; it returns −1 for an unknown value.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(count).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_the_order_of_the_processors() {
        let stat = "cpu  1 2 3 4 5 6 7 8\ncpu10 1 2 3 4 5 6 7\ncpu2 10 20 30 40 50 60\n\
                    cpu3 1 2 3\nintr 1 2 3 4 5 6 7\ncpufreq 1 2 3 4 5 6\n";
        let times = parse_times(stat.as_bytes(), 10).unwrap();
        let numbers: Vec<_> = times.iter().map(|&(number, _)| number).collect();
        assert_eq!(numbers, [2, 10]);
        let expected = CpuTimes {
            user: 100,
            nice: 200,
            system: 300,
            idle: 400,
            irq: 600,
        };
        assert_eq!(times[0].1, expected);
    }

    #[test]
    fn times_at_the_end_of_their_range_do_not_overflow() {
        let stat = format!("cpu0 {} 1 1 1 1 1\n", u64::MAX);
        assert_eq!(
            parse_times(stat.as_bytes(), 10).unwrap()[0].1.user,
            u64::MAX
        );
    }

    #[test]
    fn each_processor_has_its_own_model() {
        let cpuinfo = "model name\t: nobody's\nprocessor\t: 0\nmodel name\t: big: one\n\n\
                       processor\t: 3\nvendor_id\t: x\nmodel name\t: LITTLE\n";
        let models = parse_models(cpuinfo.as_bytes()).unwrap();
        assert_eq!(models.len(), 2);
        assert_eq!(models[&0], "big: one");
        assert_eq!(models[&3], "LITTLE");
    }

    #[test]
    fn parts_of_arm_have_names() {
        let part = |number: u32, part: &str| {
            format!(
                "processor\t: {number}\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd\n\
                 CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\n\
                 CPU part\t: {part}\nCPU revision\t: 1\n\n"
            )
        };
        let cpuinfo = part(0, "0xd0c") + &part(1, "0xd08") + &part(2, "0xfff");
        let models = parse_models(cpuinfo.as_bytes()).unwrap();
        assert_eq!(models.len(), 2);
        assert_eq!(models[&0], "Neoverse-N1");
        assert_eq!(models[&1], "Cortex-A72");
    }

    #[test]
    fn this_machine_has_processors() {
        let cpus = all().unwrap();
        assert!(!cpus.is_empty());
        assert!(cpus.iter().any(|cpu| cpu.times.idle + cpu.times.user > 0));
        assert!((1..=cpus.len()).contains(&parallelism()));
    }
}
