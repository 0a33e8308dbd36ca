//! Amounts of memory: <https://man7.org/linux/man-pages/man5/proc_meminfo.5.html>.

use super::cgroup::Cgroups;
use super::text;
use crate::Errno;
use rustix::process::{Resource, getrlimit};
use rustix::system::sysinfo;

/// Bytes of memory available without swapping.
pub fn free() -> u64 {
    meminfo("MemAvailable:").unwrap_or_else(|| {
        let info = sysinfo();
        info.freeram * u64::from(info.mem_unit)
    })
}

/// Bytes of physical memory.
pub fn total() -> u64 {
    meminfo("MemTotal:").unwrap_or_else(|| {
        let info = sysinfo();
        info.totalram * u64::from(info.mem_unit)
    })
}

/// The memory limit of this process in bytes, by its control group and its resource limits:
/// `u64::MAX` without a limit, 0 if it is unknown.
pub fn constrained() -> u64 {
    let group = Cgroups::current().and_then(|groups| groups.memory_limit());
    let own = |resource| getrlimit(resource).current;
    let limits = [group, own(Resource::As), own(Resource::Data)];
    limits.into_iter().flatten().min().unwrap_or(0)
}

/// Bytes of memory that this process can still allocate: the rest of its control group's limit, or
/// the machine's available memory without a limit.
pub fn available() -> u64 {
    let groups = Cgroups::current();
    let limit = groups.as_ref().and_then(Cgroups::memory_limit);
    match (groups, limit) {
        (Some(groups), Some(limit)) if limit <= total() => {
            limit.saturating_sub(groups.memory_used())
        }
        _ => free(),
    }
}

/// The resident set size of this process, in bytes.
pub fn resident_set() -> Result<usize, Errno> {
    let pages = resident_pages(&text::read(c"/proc/self/stat")?).ok_or(Errno::EINVAL)?;
    let bytes = pages.checked_mul(rustix::param::page_size());
    bytes.ok_or(Errno::EINVAL)
}

/// The 24th field of `/proc/self/stat`. The second is the program's name in parentheses, which may
/// itself contain parentheses and spaces.
pub fn resident_pages(stat: &[u8]) -> Option<usize> {
    let name_end = stat.windows(2).rposition(|pair| pair == b") ")?;
    let mut from_third = stat[name_end + 2..].split(|&byte| byte == b' ');
    text::number(from_third.nth(21)?.trim_ascii_end())
}

fn meminfo(what: &str) -> Option<u64> {
    parse_meminfo(&text::read(c"/proc/meminfo").ok()?, what)
}

/// The bytes in the line of `/proc/meminfo` that begins with `what`. `None` for zero.
pub fn parse_meminfo(file: &[u8], what: &str) -> Option<u64> {
    let value = text::lines(file).find_map(|line| line.strip_prefix(what.as_bytes()))?;
    let kilobytes: u64 = text::number(value.trim_ascii().strip_suffix(b"kB")?.trim_ascii_end())?;
    kilobytes.checked_mul(1024).filter(|&bytes| bytes != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_may_have_any_name() {
        let fields: Vec<String> = (4..=30).map(|field| field.to_string()).collect();
        let fields = fields.join(" ");
        let stat = |name: &str| format!("1 ({name}) R {fields}\n");
        assert_eq!(resident_pages(stat("a").as_bytes()), Some(24));
        assert_eq!(resident_pages(stat("a) b) (c").as_bytes()), Some(24));
        assert_eq!(resident_pages(b"1 (a) R 4"), None);
        assert_eq!(resident_pages(b""), None);
    }

    #[test]
    fn sizes_at_the_end_of_their_range_do_not_overflow() {
        let file = |kilobytes: u64| format!("MemTotal: {kilobytes} kB\n");
        let total = |kilobytes| parse_meminfo(file(kilobytes).as_bytes(), "MemTotal:");
        assert_eq!(total(7), Some(7 * 1024));
        assert_eq!(total(u64::MAX), None);
    }

    #[test]
    fn free_memory_is_part_of_the_total() {
        assert!(free() > 0);
        assert!(free() < total());
        assert!(available() <= total());
        assert!(resident_set().unwrap() > 100_000);
        assert_eq!(meminfo("NoSuchThing:"), None);
    }
}
