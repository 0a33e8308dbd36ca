//! The numbers of threads and of children.
//!
//! A record has the numbers that they have in the namespace of the process that is recorded. Where that is nested in ours, as a
//! container's is, the system knows them here by other numbers.

use std::fs;

/// The number that a thread of a process has here.
pub(crate) fn number_here(pid: u32, own: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    match is_nested(&status) {
        true => find(pid, own).unwrap_or(own),
        false => own,
    }
}

/// The number that a child of a process has here; none if it is nested and has ended.
pub(crate) fn child_here(pid: u32, own: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    if !is_nested(&status) {
        return Some(own);
    }
    // A child may have a namespace of its own, nested in its parent's.
    let depth = numbers(&status).count() - 1;
    let here = fs::read_dir("/proc")
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let mut here = here.filter(|here| {
        let status = fs::read_to_string(format!("/proc/{here}/status"));
        status.is_ok_and(|status| {
            parent(&status) == Some(pid) && numbers(&status).nth(depth) == Some(own)
        })
    });
    here.next()
}

/// The number of a process's parent here.
fn parent(status: &str) -> Option<u32> {
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    parent?.trim().parse().ok()
}

/// The numbers of a process or thread in each namespace that knows it, ours first and its own last.
fn numbers(status: &str) -> impl DoubleEndedIterator<Item = u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let numbers = line.unwrap_or_default().split_ascii_whitespace();
    numbers.filter_map(|number| number.parse().ok())
}

fn is_nested(status: &str) -> bool {
    numbers(status).nth(1).is_some()
}

/// Searches the threads of a process for one by its own number.
fn find(pid: u32, own: u32) -> Option<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let here = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let mut here = here.filter(|here| {
        let status = fs::read_to_string(format!("/proc/{pid}/task/{here}/status"));
        status.is_ok_and(|status| numbers(&status).next_back() == Some(own))
    });
    here.next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn numbers_are_those_of_the_namespaces() {
        let status = "Name:\tnode\nNStgid:\t4711\t7\nNSpid:\t4713\t9\nThreads:\t11\n";
        assert!(is_nested(status));
        assert_eq!(numbers(status).collect::<Vec<_>>(), [4713, 9]);
        assert!(!is_nested("NSpid:\t4713\n"));
        assert!(!is_nested(""), "an old kernel does not tell");
    }

    #[test]
    fn children_are_found_by_the_numbers_that_their_parents_know() {
        let own = std::process::id();
        assert_eq!(child_here(own, 7), Some(7), "not nested, so it is the same");
        assert_eq!(parent("Name:\tsh\nPPid:\t12\nNSpid:\t14\t2\n"), Some(12));
        // The first process of a namespace is a shell, whose child tells its number there.
        let mut command = Command::new("unshare");
        if !rustix::process::geteuid().is_root() {
            command.args(["--user", "--map-current-user"]);
        }
        command.args([
            "--pid",
            "--fork",
            "--kill-child",
            "sh",
            "-c",
            "sleep 1000 & echo $!; wait",
        ]);
        let mut unshared = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("there is unshare");
        let mut said = String::new();
        let mut output = BufReader::new(unshared.stdout.take().expect("its output"));
        output.read_line(&mut said).expect("it is text");
        let children = |pid: u32| -> Vec<u32> {
            let path = format!("/proc/{pid}/task/{pid}/children");
            let text = fs::read_to_string(path).unwrap_or_default();
            text.split_ascii_whitespace()
                .map(|pid| pid.parse().expect("a number"))
                .collect()
        };
        let shells = children(unshared.id());
        let (found, is_nested) = match (said.trim().parse(), shells.first()) {
            (Ok(number), Some(&shell)) => (child_here(shell, number), true),
            // No namespaces are to be had here.
            _ => (None, false),
        };
        let expected = shells
            .first()
            .and_then(|shell| children(*shell).first().copied());
        let _ = unshared.kill();
        let _ = unshared.wait();
        assert_eq!(found, expected);
        assert_eq!(found.is_some(), is_nested);
    }

    #[test]
    fn threads_are_found_by_their_own_numbers() {
        let pid = std::process::id();
        let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert_eq!(number_here(pid, own), own);
        assert_eq!(find(pid, own), Some(own), "not nested, so it is the same");
        assert_eq!(find(pid, 0), None);
    }
}
