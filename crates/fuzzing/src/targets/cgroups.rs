//! Control groups: the file that names a process's groups, and the groups' own files.
//!
//! Only files below `/sys/fs/cgroup` are asked for, unless the kernel itself names a group by a
//! path with `..` in it; no limit is zero; and limits that are made as the kernel makes them are
//! found.

use crate::input::Input;
use blacklight_sys::cgroup::Cgroups;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

const FILES: &[&str] = &[
    "memory.max",
    "memory.high",
    "memory.current",
    "cgroup.controllers",
    "cpu.max",
    "memory.limit_in_bytes",
    "memory.soft_limit_in_bytes",
    "memory.usage_in_bytes",
    "cpu.cfs_quota_us",
    "cpu.cfs_period_us",
];

/// Asks for all limits.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    match input.flip() {
        true => any_bytes(&mut input),
        false => well_formed(&mut input),
    }
}

/// The kernel's files with bytes of any kind in them.
fn any_bytes(input: &mut Input<'_>) {
    let mut files = HashMap::new();
    for &file in FILES {
        let len = input.below(24);
        if len < 20 {
            files.insert(file, input.bytes(len).to_vec());
        }
    }
    let asked = RefCell::new(Vec::<PathBuf>::new());
    let read = |path: &Path| {
        asked.borrow_mut().push(path.to_owned());
        files.get(path.file_name()?.to_str()?).cloned()
    };
    let groups = Cgroups::parse(input.rest().to_vec(), read);
    assert_ne!(groups.memory_limit(), Some(0));
    let _ = (groups.memory_used(), groups.cpu_quota());
    for path in asked.take() {
        assert!(path.starts_with("/sys/fs/cgroup"), "{path:?}");
        assert!(FILES.iter().any(|file| path.ends_with(file)), "{path:?}");
    }
}

/// One group in either generation, with numbers in its files.
fn well_formed(input: &mut Input<'_>) {
    let (second, quota, period) = (input.flip(), input.word(), input.word());
    let [limit, other, used] = [(); 3].map(|()| input.long() >> 1);
    let name: Vec<u8> = input
        .rest()
        .iter()
        .copied()
        .filter(|byte| !b"\n/\0".contains(byte))
        .collect();
    let membership = match second {
        true => [b"0::/g", &name[..], b"\n"].concat(),
        false => [
            b"3:cpu,cpuacct:/g",
            &name[..],
            b"\n2:memory:/g",
            &name[..],
            b"\n0::/\n",
        ]
        .concat(),
    };
    let group = [b"g", &name[..]].concat();
    let read = |path: &Path| {
        let directory = path.parent()?.file_name()?;
        let own = directory.as_encoded_bytes() == group;
        let text = match path.file_name()?.to_str()? {
            _ if !own => return None,
            "memory.max" | "memory.limit_in_bytes" => limit.to_string(),
            "memory.high" | "memory.soft_limit_in_bytes" => other.to_string(),
            "memory.current" | "memory.usage_in_bytes" => used.to_string(),
            "cgroup.controllers" => "cpu memory".to_owned(),
            "cpu.max" => format!("{quota} {period}"),
            "cpu.cfs_quota_us" => quota.to_string(),
            "cpu.cfs_period_us" => period.to_string(),
            _ => return None,
        };
        Some(format!("{text}\n").into_bytes())
    };
    let groups = Cgroups::parse(membership, read);
    let none = i64::MAX as u64 / 4096 * 4096;
    let expected = match limit.min(other) {
        0 => None,
        limit if !second && limit >= none => Some(u64::MAX),
        limit => Some(limit),
    };
    assert_eq!(groups.memory_limit(), expected);
    assert_eq!(groups.memory_used(), used);
    let quota = u64::from(quota).checked_div(u64::from(period));
    assert_eq!(groups.cpu_quota(), quota);
}
