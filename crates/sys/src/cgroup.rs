//! Control groups, which limit what a process may use:
//! <https://man7.org/linux/man-pages/man7/cgroups.7.html>.
//!
//! There are two generations. With the first, each controller has a tree of its own, mounted
//! in a directory named after it; with the second there is one tree for all. A machine with both
//! has its limits in the first. Inside a container a group's path may be the host's, of which
//! only the root can be seen; then that is where the container's limits are.

use std::fs;
use std::path::{Path, PathBuf};

/// A memory limit that stands for none, in whole pages as the first generation writes it.
fn no_limit_v1() -> u64 {
    let page = rustix::param::page_size() as u64;
    i64::MAX as u64 / page * page
}

/// The groups of the current process.
#[derive(Debug)]
pub struct Cgroups {
    /// A line for each tree: its number, its controllers, the path of our group in it.
    membership: String,
    /// Where the trees are.
    root: PathBuf,
}

/// The current process's group in one tree, by the directories where its files can be.
struct Group {
    path: PathBuf,
    /// The root of the tree.
    top: PathBuf,
}

impl Cgroups {
    /// The groups of this process, unless the kernel does not say.
    pub fn current() -> Option<Cgroups> {
        Some(Cgroups {
            membership: fs::read_to_string("/proc/self/cgroup").ok()?,
            root: PathBuf::from("/sys/fs/cgroup"),
        })
    }

    /// Our group in the one tree of the second generation, if no tree of the first is in use.
    fn unified(&self) -> Option<Group> {
        let path = self.membership.lines().next()?.strip_prefix("0::")?;
        Some(self.group(&self.root, path))
    }

    /// Our group in the tree of a controller of the first generation.
    fn controller(&self, name: &str) -> Option<Group> {
        self.membership.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            let found = controllers.split(',').any(|controller| controller == name);
            found.then(|| self.group(&self.root.join(controllers), path))
        })
    }

    fn group(&self, top: &Path, path: &str) -> Group {
        Group {
            path: top.join(path.trim_start_matches('/')),
            top: top.to_path_buf(),
        }
    }

    /// How many bytes of memory the group may use: `u64::MAX` if that is not limited, and
    /// `None` if it is not known.
    pub fn memory_limit(&self) -> Option<u64> {
        let limit = match self.unified() {
            Some(group) => {
                let limit = |file| match read(&group.path, file)?.as_str() {
                    "max" => Some(u64::MAX),
                    number => number.parse().ok(),
                };
                limit("memory.max")?.min(limit("memory.high")?)
            }
            None => {
                let group = self.controller("memory")?;
                let limit = |file| group.read_v1(file)?.parse::<u64>().ok();
                let soft = limit("memory.soft_limit_in_bytes")?;
                match soft.min(limit("memory.limit_in_bytes")?) {
                    limit if limit >= no_limit_v1() => u64::MAX,
                    limit => limit,
                }
            }
        };
        Some(limit).filter(|&limit| limit != 0)
    }

    /// How many bytes of memory the group uses, and 0 if that is not known.
    pub fn memory_used(&self) -> u64 {
        let used = match self.unified() {
            Some(group) => read(&group.path, "memory.current"),
            None => self
                .controller("memory")
                .and_then(|group| group.read_v1("memory.usage_in_bytes")),
        };
        used.and_then(|used| used.parse().ok()).unwrap_or(0)
    }

    /// For how many processors, rounded down, the group gets time, unless that is not limited.
    pub fn cpu_quota(&self) -> Option<u64> {
        match self.unified() {
            Some(group) => {
                // Without this file, what is mounted there is no tree of control groups.
                read(&group.path, "cgroup.controllers")?;
                let directories = group.path.ancestors();
                let directories = directories.take_while(|path| path.starts_with(&group.top));
                let quota = |path: &Path| {
                    let limit = read(path, "cpu.max")?;
                    let (quota, period) = limit.split_once(' ')?;
                    let quota: u64 = quota.parse().ok()?;
                    quota.checked_div(period.parse().ok()?)
                };
                directories.filter_map(quota).min()
            }
            None => {
                let group = self.controller("cpu")?;
                // A quota below zero is none, which shows as no `u64`.
                let quota: u64 = group.read_v1("cpu.cfs_quota_us")?.parse().ok()?;
                quota.checked_div(group.read_v1("cpu.cfs_period_us")?.parse().ok()?)
            }
        }
    }
}

impl Group {
    /// A file of our group or, if that cannot be seen, of the tree's root.
    fn read_v1(&self, file: &str) -> Option<String> {
        read(&self.path, file).or_else(|| read(&self.top, file))
    }
}

/// What a file says, without the end of the line.
fn read(directory: &Path, file: &str) -> Option<String> {
    let text = fs::read_to_string(directory.join(file)).ok()?;
    Some(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups with the given files, in a directory that goes away with the value.
    struct Fake(Cgroups);

    impl Fake {
        fn new(membership: &str, files: &[(&str, &str)]) -> Fake {
            static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
            let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let name = format!("blacklight-cgroup-{}-{count}", std::process::id());
            let root = std::env::temp_dir().join(name);
            for (path, text) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, format!("{text}\n")).unwrap();
            }
            let membership = membership.to_owned();
            Fake(Cgroups { membership, root })
        }
    }

    impl Drop for Fake {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0.root);
        }
    }

    fn memory(membership: &str, files: &[(&str, &str)]) -> (Option<u64>, u64) {
        let fake = Fake::new(membership, files);
        (fake.0.memory_limit(), fake.0.memory_used())
    }

    #[test]
    fn the_second_generation_limits_memory_twice() {
        let max = ("a/b/memory.max", "400");
        let used = ("a/b/memory.current", "100");
        let none = ("a/b/memory.high", "max");
        let high = ("a/b/memory.high", "350");
        assert_eq!(memory("0::/a/b\n", &[max, none, used]), (Some(400), 100));
        assert_eq!(memory("0::/a/b\n", &[max, high, used]), (Some(350), 100));
        assert_eq!(memory("0::/a/b\n", &[max]), (None, 0));
        assert_eq!(memory("0::/a/b\n", &[]), (None, 0));
        let unlimited = [("memory.max", "max"), ("memory.high", "max")];
        assert_eq!(memory("0::/\n", &unlimited), (Some(u64::MAX), 0));
    }

    #[test]
    fn the_first_generation_wins_where_both_are() {
        let files = [
            ("memory/x/memory.limit_in_bytes", "400"),
            ("memory/x/memory.soft_limit_in_bytes", "9223372036854771712"),
            ("memory/x/memory.usage_in_bytes", "100"),
            ("memory.max", "7"),
            ("memory.high", "7"),
        ];
        let membership = "4:memory:/x\n3:cpu,cpuacct:/z\n0::/\n";
        assert_eq!(memory(membership, &files), (Some(400), 100));
    }

    #[test]
    fn a_group_that_cannot_be_seen_is_looked_up_at_the_root() {
        let files = [
            ("memory/memory.limit_in_bytes", "9223372036854771712"),
            ("memory/memory.soft_limit_in_bytes", "9223372036854771712"),
            ("memory/memory.usage_in_bytes", "100"),
            ("cpu,cpuacct/cpu.cfs_quota_us", "350000"),
            ("cpu,cpuacct/cpu.cfs_period_us", "100000"),
        ];
        let fake = Fake::new("4:memory:/x/y\n3:cpu,cpuacct:/z\n", &files);
        assert_eq!(fake.0.memory_limit(), Some(u64::MAX));
        assert_eq!(fake.0.memory_used(), 100);
        assert_eq!(fake.0.cpu_quota(), Some(3));
    }

    #[test]
    fn the_smallest_quota_on_the_way_to_the_root_counts() {
        let cgroup = ("a/b/cgroup.controllers", "cpu");
        let quota = |files: &[(&str, &str)]| {
            Fake::new("0::/a/b\n", &[&[cgroup], files].concat())
                .0
                .cpu_quota()
        };
        assert_eq!(quota(&[]), None);
        assert_eq!(quota(&[("a/b/cpu.max", "max 100000")]), None);
        assert_eq!(quota(&[("a/b/cpu.max", "299999 100000")]), Some(2));
        assert_eq!(quota(&[("a/b/cpu.max", "50000 100000")]), Some(0));
        assert_eq!(quota(&[("a/b/cpu.max", "50000 0")]), None);
        let nested = |leaf, root| quota(&[("a/b/cpu.max", leaf), ("cpu.max", root)]);
        assert_eq!(nested("max 100000", "400000 100000"), Some(4));
        assert_eq!(nested("300000 100000", "400000 100000"), Some(3));
        assert_eq!(nested("500000 100000", "400000 100000"), Some(4));
        let unmounted = Fake::new("0::/a/b\n", &[("a/b/cpu.max", "100000 100000")]);
        assert_eq!(unmounted.0.cpu_quota(), None);
    }

    #[test]
    fn a_negative_quota_is_none() {
        let files = [
            ("cpu/z/cpu.cfs_quota_us", "-1"),
            ("cpu/z/cpu.cfs_period_us", "100000"),
        ];
        assert_eq!(Fake::new("3:cpu:/z\n", &files).0.cpu_quota(), None);
    }
}
