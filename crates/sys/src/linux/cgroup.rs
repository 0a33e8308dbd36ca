//! Control groups, which limit a process's resources:
//! <https://man7.org/linux/man-pages/man7/cgroups.7.html>.
//!
//! There are two versions. In version 1, each controller has its own tree, mounted in a directory
//! named after it; in version 2 one tree serves all controllers. On a machine with both, version 1
//! has the limits. Inside a container a group's path may be the host's, of which only the root is
//! visible; then the container's limits are at the root.

use super::text;
use crate::fallible;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The mount point of the trees.
const ROOT: &str = "/sys/fs/cgroup";

/// The limit by which version 1 means "unlimited", in whole pages.
fn no_limit_v1() -> u64 {
    let page = rustix::param::page_size() as u64;
    i64::MAX as u64 / page * page
}

/// Reads a group's file, if possible.
type Read = fn(&Path) -> Option<Vec<u8>>;

/// The groups of the current process.
#[derive(Debug)]
pub struct Cgroups<R = Read> {
    /// A line for each tree: its number, its controllers, and the process's group in it.
    membership: Vec<u8>,
    /// Reads a file of a group.
    read: R,
}

/// The process's group in one tree: the directories where its files may be.
struct Group {
    path: PathBuf,
    /// The root of the tree.
    top: PathBuf,
}

impl Group {
    /// The group with that path below a tree's root. `None` if there is no memory.
    fn new(top: PathBuf, path: &[u8]) -> Option<Group> {
        let below = path.iter().position(|&byte| byte != b'/');
        let path = join(&top, &path[below.unwrap_or(path.len())..])?;
        Some(Group { path, top })
    }
}

/// A path below a directory, or the directory itself if the path is empty. `None` if there is no
/// memory.
fn join(directory: &Path, below: &[u8]) -> Option<PathBuf> {
    let directory = directory.as_os_str().as_bytes();
    let pieces: &[&[u8]] = match below {
        [] => &[directory],
        below => &[directory, b"/", below],
    };
    Some(OsString::from_vec(fallible::joined(pieces).ok()?).into())
}

impl Cgroups {
    /// The groups of this process, if the kernel reports them.
    pub fn current() -> Option<Cgroups> {
        let membership = text::read(c"/proc/self/cgroup").ok()?;
        Some(Cgroups::parse(membership, |path| {
            let path = fallible::c_string(path.as_os_str().as_bytes()).ok()?;
            text::read(&path).ok()
        }))
    }
}

impl<R: Fn(&Path) -> Option<Vec<u8>>> Cgroups<R> {
    /// The groups in the text of `/proc/self/cgroup`. `read` returns the contents of a group's
    /// file, by its path below `/sys/fs/cgroup`.
    pub fn parse(membership: Vec<u8>, read: R) -> Cgroups<R> {
        Cgroups { membership, read }
    }

    /// The process's group in the version 2 tree, if no version 1 tree is in use.
    fn unified(&self) -> Option<Group> {
        let path = text::lines(&self.membership).next()?.strip_prefix(b"0::")?;
        Group::new(join(Path::new(ROOT), b"")?, path)
    }

    /// The process's group in the tree of a version 1 controller.
    fn controller(&self, name: &[u8]) -> Option<Group> {
        text::lines(&self.membership).find_map(|line| {
            let mut fields = line.splitn(3, |&byte| byte == b':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            let mut each = controllers.split(|&byte| byte == b',');
            let found = each.any(|controller| controller == name);
            match found {
                true => Group::new(join(Path::new(ROOT), controllers)?, path),
                false => None,
            }
        })
    }

    /// A file's contents, without the trailing newline.
    fn file(&self, directory: &Path, file: &str) -> Option<Vec<u8>> {
        let mut text = (self.read)(&join(directory, file.as_bytes())?)?;
        text.truncate(text.trim_ascii_end().len());
        Some(text)
    }

    /// A file of a version 1 group or, if that is not visible, of the tree's root.
    fn file_v1(&self, group: &Group, file: &str) -> Option<Vec<u8>> {
        self.file(&group.path, file)
            .or_else(|| self.file(&group.top, file))
    }

    /// The group's memory limit in bytes: `u64::MAX` without a limit, and `None` if it is unknown.
    pub fn memory_limit(&self) -> Option<u64> {
        let limit = match self.unified() {
            Some(group) => {
                let limit = |file| match self.file(&group.path, file)?.as_slice() {
                    b"max" => Some(u64::MAX),
                    number => text::number(number),
                };
                limit("memory.max")?.min(limit("memory.high")?)
            }
            None => {
                let group = self.controller(b"memory")?;
                let limit = |file| text::number::<u64>(&self.file_v1(&group, file)?);
                let soft = limit("memory.soft_limit_in_bytes")?;
                match soft.min(limit("memory.limit_in_bytes")?) {
                    limit if limit >= no_limit_v1() => u64::MAX,
                    limit => limit,
                }
            }
        };
        Some(limit).filter(|&limit| limit != 0)
    }

    /// The group's memory usage in bytes, or 0 if it is unknown.
    pub fn memory_used(&self) -> u64 {
        let used = match self.unified() {
            Some(group) => self.file(&group.path, "memory.current"),
            None => self
                .controller(b"memory")
                .and_then(|group| self.file_v1(&group, "memory.usage_in_bytes")),
        };
        used.and_then(|used| text::number(&used)).unwrap_or(0)
    }

    /// The group's quota in whole processors, rounded down, if there is one.
    pub fn cpu_quota(&self) -> Option<u64> {
        match self.unified() {
            Some(group) => {
                // A directory without this file is not a cgroup tree.
                self.file(&group.path, "cgroup.controllers")?;
                let directories = group.path.ancestors();
                let directories = directories.take_while(|path| path.starts_with(&group.top));
                directories.filter_map(|path| self.quota(path)).min()
            }
            None => {
                let group = self.controller(b"cpu")?;
                // A negative quota means none, and does not parse as a `u64`.
                let quota: u64 = text::number(&self.file_v1(&group, "cpu.cfs_quota_us")?)?;
                let period = text::number(&self.file_v1(&group, "cpu.cfs_period_us")?)?;
                quota.checked_div(period)
            }
        }
    }

    /// The quota of one version 2 group.
    fn quota(&self, group: &Path) -> Option<u64> {
        let limit = self.file(group, "cpu.max")?;
        let space = limit.iter().position(|&byte| byte == b' ')?;
        let quota: u64 = text::number(&limit[..space])?;
        quota.checked_div(text::number(&limit[space + 1..])?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::ffi::OsStr;

    /// Groups with only the given files.
    fn groups(
        membership: &str,
        files: &[(&str, &str)],
    ) -> Cgroups<impl Fn(&Path) -> Option<Vec<u8>>> {
        let file = |&(path, text): &(&str, &str)| (Path::new(ROOT).join(path), format!("{text}\n"));
        let files: HashMap<PathBuf, String> = files.iter().map(file).collect();
        Cgroups::parse(membership.into(), move |path: &Path| {
            files.get(path).map(|text| text.clone().into_bytes())
        })
    }

    fn memory(membership: &str, files: &[(&str, &str)]) -> (Option<u64>, u64) {
        let groups = groups(membership, files);
        (groups.memory_limit(), groups.memory_used())
    }

    #[test]
    fn version_two_limits_memory_twice() {
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
    fn version_one_wins_where_both_are_mounted() {
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
    fn an_invisible_group_is_looked_up_at_the_root() {
        let files = [
            ("memory/memory.limit_in_bytes", "9223372036854771712"),
            ("memory/memory.soft_limit_in_bytes", "9223372036854771712"),
            ("memory/memory.usage_in_bytes", "100"),
            ("cpu,cpuacct/cpu.cfs_quota_us", "350000"),
            ("cpu,cpuacct/cpu.cfs_period_us", "100000"),
        ];
        let groups = groups("4:memory:/x/y\n3:cpu,cpuacct:/z\n", &files);
        assert_eq!(groups.memory_limit(), Some(u64::MAX));
        assert_eq!(groups.memory_used(), 100);
        assert_eq!(groups.cpu_quota(), Some(3));
    }

    #[test]
    fn a_controller_with_a_slash_leads_nowhere_else() {
        let paths = std::cell::RefCell::new(Vec::new());
        let groups = Cgroups::parse(b"3:/etc,cpu:/z\n".into(), |path: &Path| {
            paths.borrow_mut().push(path.to_owned());
            None
        });
        assert_eq!(groups.cpu_quota(), None);
        let paths = paths.take();
        assert!(paths.iter().all(|path| path.starts_with(ROOT)), "{paths:?}");
        assert!(!paths.is_empty());
    }

    #[test]
    fn the_smallest_quota_on_the_way_to_the_root_counts() {
        let cgroup = ("a/b/cgroup.controllers", "cpu");
        let quota =
            |files: &[(&str, &str)]| groups("0::/a/b\n", &[&[cgroup], files].concat()).cpu_quota();
        assert_eq!(quota(&[]), None);
        assert_eq!(quota(&[("a/b/cpu.max", "max 100000")]), None);
        assert_eq!(quota(&[("a/b/cpu.max", "299999 100000")]), Some(2));
        assert_eq!(quota(&[("a/b/cpu.max", "50000 100000")]), Some(0));
        assert_eq!(quota(&[("a/b/cpu.max", "50000 0")]), None);
        let nested = |leaf, root| quota(&[("a/b/cpu.max", leaf), ("cpu.max", root)]);
        assert_eq!(nested("max 100000", "400000 100000"), Some(4));
        assert_eq!(nested("300000 100000", "400000 100000"), Some(3));
        assert_eq!(nested("500000 100000", "400000 100000"), Some(4));
        let unmounted = groups("0::/a/b\n", &[("a/b/cpu.max", "100000 100000")]);
        assert_eq!(unmounted.cpu_quota(), None);
    }

    #[test]
    fn a_negative_quota_is_none() {
        let files = [
            ("cpu/z/cpu.cfs_quota_us", "-1"),
            ("cpu/z/cpu.cfs_period_us", "100000"),
        ];
        assert_eq!(groups("3:cpu:/z\n", &files).cpu_quota(), None);
    }

    #[test]
    fn a_group_may_have_any_name() {
        let group = Path::new(ROOT).join(OsStr::from_bytes(b"a\xff"));
        let read = |path: &Path| {
            let limit = path.starts_with(&group).then_some("400\n");
            limit.map(|limit| limit.as_bytes().to_vec())
        };
        let groups = Cgroups::parse(b"0::/a\xff\n".to_vec(), read);
        assert_eq!(groups.memory_limit(), Some(400));
    }
}
