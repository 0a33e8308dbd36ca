//! Child processes. Descriptors, limits and children are the whole process's, so the tests take
//! turns.

#![allow(clippy::vec_box, reason = "the loop knows handles by their address")]

#[path = "support/event_loop.rs"]
mod event_loop;

use event_loop::{alone, new_loop, on_poller};
use std::ffi::{CStr, CString, c_int};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{null, null_mut};
use uv as _;
use uv_binding::*;

const IGNORE: uv_stdio_container_t = uv_stdio_container_t {
    flags: UV_IGNORE,
    data: uv_stdio_container_t_data { fd: 0 },
};

fn inherit(fd: &impl AsRawFd) -> uv_stdio_container_t {
    uv_stdio_container_t {
        flags: UV_INHERIT_FD,
        data: uv_stdio_container_t_data { fd: fd.as_raw_fd() },
    }
}

/// A pipe for a child's descriptor.
fn stream(pipe: &uv_pipe_t) -> uv_stdio_container_t_data {
    uv_stdio_container_t_data {
        stream: std::ptr::from_ref(pipe).cast_mut().cast(),
    }
}

/// A loop on the named poller.
fn loop_on(poller: &str) -> Box<uv_loop_t> {
    // SAFETY: the tests take turns, and nobody else reads the environment.
    unsafe { on_poller(poller, new_loop) }
}

fn run(loop_: &mut uv_loop_t, mode: c_int) -> c_int {
    // SAFETY: the loop is initialised and used here only.
    unsafe { uv_run(loop_, mode) }
}

/// A child handle and what became of it.
struct Child {
    process: uv_process_t,
    /// Status and signal, once told.
    end: Option<(i64, c_int)>,
}

unsafe extern "C" fn on_exit(process: *mut uv_process_t, status: i64, signum: c_int) {
    // SAFETY: `data` points to the child that the handle is in.
    unsafe {
        let end = (*process).data.cast::<Option<(i64, c_int)>>();
        assert_eq!((*end).replace((status, signum)), None, "told twice");
        assert_eq!(uv_is_active(process), 0);
        assert_eq!(uv_process_kill(process, 0), -libc::ESRCH);
    }
}

/// What to start.
struct Command<'a> {
    file: &'a str,
    args: &'a [&'a str],
    stdio: &'a [uv_stdio_container_t],
    ids: Option<(u32, u32)>,
}

impl<'a> Command<'a> {
    fn shell(script: &'a [&'a str; 3]) -> Command<'a> {
        Command {
            file: "/bin/sh",
            args: script,
            stdio: &[],
            ids: None,
        }
    }

    fn spawn(&self, loop_: &mut uv_loop_t) -> (Box<Child>, c_int) {
        let c_string = |text: &&str| CString::new(*text).unwrap();
        let file = c_string(&self.file);
        let args: Vec<_> = self.args.iter().map(c_string).collect();
        let args: Vec<_> = args
            .iter()
            .map(|arg| arg.as_ptr())
            .chain([null()])
            .collect();
        let (uid, gid) = self.ids.unwrap_or_default();
        let options = uv_process_options_t {
            exit_cb: Some(on_exit),
            file: file.as_ptr(),
            args: args.as_ptr().cast_mut().cast(),
            env: null_mut(),
            cwd: null(),
            flags: if self.ids.is_some() { 3 } else { 0 },
            stdio_count: self.stdio.len() as c_int,
            stdio: self.stdio.as_ptr().cast_mut(),
            uid,
            gid,
        };
        // SAFETY: all zeros are memory for a handle; the options live through the call.
        unsafe {
            let mut child = Box::new(Child {
                process: std::mem::zeroed(),
                end: None,
            });
            child.process.data = (&raw mut child.end).cast();
            let result = uv_spawn(loop_, &mut child.process, &options);
            (child, result)
        }
    }
}

/// Closes handles and their loop.
fn close(mut loop_: Box<uv_loop_t>, mut children: Vec<Box<Child>>) {
    for child in &mut children {
        // SAFETY: the handle is open, and its memory lives until the loop is closed.
        unsafe { uv_close(&raw mut child.process, None) };
    }
    assert_eq!(run(&mut loop_, UV_RUN_DEFAULT), 0);
    // SAFETY: the loop is initialised, and nobody uses it.
    assert_eq!(unsafe { uv_loop_close(&mut *loop_) }, 0);
}

fn pipe() -> (OwnedFd, OwnedFd) {
    let mut fds = [-1; 2];
    // SAFETY: there is room for two descriptors, which are ours from then on.
    unsafe {
        assert_eq!(libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC), 0);
        (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1]))
    }
}

fn read_all(fd: OwnedFd) -> String {
    let mut text = String::new();
    std::io::Read::read_to_string(&mut std::fs::File::from(fd), &mut text).unwrap();
    text
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn assert_no_children() {
    // SAFETY: no status is asked for.
    unsafe {
        assert_eq!(libc::waitpid(-1, null_mut(), libc::WNOHANG), -1);
        assert_eq!(*libc::__errno_location(), libc::ECHILD);
    }
}

/// Sets how many descriptors may be open, and gives back how many it were before.
fn limit_descriptors(limit: u64) -> u64 {
    // SAFETY: there is room for the limits.
    unsafe {
        let mut limits: libc::rlimit = std::mem::zeroed();
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limits), 0);
        let before = std::mem::replace(&mut limits.rlim_cur, limit.min(limits.rlim_max));
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &limits), 0);
        before
    }
}

/// All wait for one pipe to be closed, and then end each in its own way.
fn many_at_once(poller: &str, count: usize) {
    let before = limit_descriptors(4096);
    let mut loop_ = loop_on(poller);
    let (gate, opener) = pipe();
    let mut children = Vec::new();
    for number in 0..count {
        let script = match number % 16 {
            0 => "read x; kill -TERM $$".to_string(),
            _ => format!("read x; exit {}", number % 256),
        };
        let script = ["sh", "-c", &script];
        let command = Command {
            stdio: &[inherit(&gate)],
            ..Command::shell(&script)
        };
        let (child, result) = command.spawn(&mut loop_);
        assert_eq!(result, 0);
        children.push(child);
    }
    assert_eq!(run(&mut loop_, UV_RUN_NOWAIT), 1);
    assert!(children.iter().all(|child| child.end.is_none()));
    drop(opener);
    assert_eq!(run(&mut loop_, UV_RUN_DEFAULT), 0);
    for (number, child) in children.iter().enumerate() {
        let expected = match number % 16 {
            0 => (0, libc::SIGTERM),
            _ => ((number % 256) as i64, 0),
        };
        assert_eq!(child.end, Some(expected), "child {number} on {poller}");
    }
    close(loop_, children);
    assert_no_children();
    limit_descriptors(before);
}

#[test]
fn a_thousand_children_end_at_once() {
    let _alone = alone();
    many_at_once("epoll", 1000);
}

#[test]
fn children_end_at_once_on_every_poller() {
    let _alone = alone();
    for poller in ["poll", "select"] {
        many_at_once(poller, 200);
    }
}

/// select cannot watch descriptors from 1024 on: those children are awaited by SIGCHLD.
#[test]
fn children_are_awaited_without_a_pidfd() {
    let _alone = alone();
    let before = limit_descriptors(4096);
    let mut loop_ = loop_on("select");
    let filler: Vec<_> = std::iter::repeat_with(|| std::fs::File::open("/").unwrap())
        .take_while(|file| file.as_raw_fd() < 1024)
        .collect();
    let commands = ["exit 3", "exit 4", "sleep 0.1; exit 5"].map(|script| ["sh", "-c", script]);
    let mut children = Vec::new();
    for script in &commands {
        let (child, result) = Command::shell(script).spawn(&mut loop_);
        assert_eq!(result, 0);
        children.push(child);
    }
    assert_eq!(run(&mut loop_, UV_RUN_DEFAULT), 0);
    let ends: Vec<_> = children.iter().map(|child| child.end).collect();
    assert_eq!(ends, [3, 4, 5].map(|status| Some((status, 0))));
    drop(filler);
    close(loop_, children);
    assert_no_children();
    limit_descriptors(before);
}

#[test]
fn a_program_that_cannot_be_run_leaves_nothing_behind() {
    let _alone = alone();
    let mut loop_ = new_loop();
    let before = open_descriptors();
    let mut children = Vec::new();
    for (file, error) in [
        ("/does/not/exist", libc::ENOENT),
        ("does-not-exist-in-any-path", libc::ENOENT),
        ("/etc/passwd", libc::EACCES),
        ("/", libc::EACCES),
        ("/etc/passwd/x", libc::ENOTDIR),
    ] {
        let command = Command {
            file,
            args: &[file],
            stdio: &[],
            ids: None,
        };
        let (child, result) = command.spawn(&mut loop_);
        assert_eq!(result, -error, "{file}");
        assert_eq!(child.process.pid, 0);
        // SAFETY: the handle is initialised.
        assert_eq!(
            // SAFETY: the handle was initialised by the spawn.
            unsafe { uv_is_active(&raw const child.process) },
            0
        );
        children.push(child);
    }
    assert_eq!(run(&mut loop_, UV_RUN_DEFAULT), 0);
    assert_no_children();
    assert_eq!(open_descriptors(), before);
    assert!(children.iter().all(|child| child.end.is_none()));
    close(loop_, children);
}

#[test]
fn a_handle_may_be_closed_before_its_child_ends() {
    let _alone = alone();
    let mut loop_ = new_loop();
    let (gate, opener) = pipe();
    let script = ["sh", "-c", "read x; exit 9"];
    let command = Command {
        stdio: &[inherit(&gate)],
        ..Command::shell(&script)
    };
    let (child, result) = command.spawn(&mut loop_);
    assert_eq!(result, 0);
    let pid = child.process.pid;
    // SAFETY: the handle is open.
    unsafe {
        assert_eq!(uv_process_get_pid(&child.process), pid);
        assert_eq!(uv_process_kill((&raw const child.process).cast_mut(), 0), 0);
    }
    close(loop_, vec![child]);
    drop(opener);
    let mut status = 0;
    // SAFETY: the child is nobody's but ours now.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(libc::WEXITSTATUS(status), 9);
}

#[test]
fn too_few_descriptors_cost_none() {
    let _alone = alone();
    let mut loop_ = new_loop();
    // The first start in a process may need more descriptors than others.
    let script = ["sh", "-c", "exit 1"];
    let (first, result) = Command::shell(&script).spawn(&mut loop_);
    assert_eq!(result, 0);
    let mut children = vec![first];
    assert_eq!(run(&mut loop_, UV_RUN_DEFAULT), 0);
    let mut pipes: Vec<Box<uv_pipe_t>> = (0..3).map(|_| Box::new(zeroed())).collect();
    for pipe in &mut pipes {
        // SAFETY: the loop is initialised.
        assert_eq!(unsafe { uv_pipe_init(&mut *loop_, &mut **pipe, 0) }, 0);
    }
    let stdio: Vec<_> = pipes
        .iter()
        .map(|pipe| uv_stdio_container_t {
            flags: UV_CREATE_PIPE | UV_READABLE_PIPE,
            data: stream(pipe),
        })
        .collect();
    let open = open_descriptors();
    let mut failures = 0;
    for limit in 3..1000 {
        let before = limit_descriptors(limit);
        let command = Command {
            stdio: &stdio,
            ..Command::shell(&script)
        };
        let (child, result) = command.spawn(&mut loop_);
        limit_descriptors(before);
        children.push(child);
        if result == 0 {
            break;
        }
        assert_eq!(result, -libc::EMFILE);
        assert_eq!(open_descriptors(), open, "with a limit of {limit}");
        failures += 1;
    }
    assert!(failures > 6, "three pipes are six descriptors: {failures}");
    assert_eq!(run(&mut loop_, UV_RUN_DEFAULT), 0);
    assert_eq!(children.last().unwrap().end, Some((1, 0)));
    for pipe in &mut pipes {
        // SAFETY: the handle is open.
        unsafe { uv_close(std::ptr::from_mut(&mut **pipe), None) };
    }
    close(loop_, children);
    assert_no_children();
}

/// A process that ignores SIGCHLD has the kernel forget how its children ended.
#[test]
fn ends_are_told_though_the_program_ignores_them() {
    let _alone = alone();
    let mut loop_ = new_loop();
    // SAFETY: ignoring a signal is harmless.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    let script = ["sh", "-c", "exit 6"];
    let (child, result) = Command::shell(&script).spawn(&mut loop_);
    assert_eq!(result, 0);
    assert_eq!(run(&mut loop_, UV_RUN_DEFAULT), 0);
    assert_eq!(child.end, Some((6, 0)));
    // SAFETY: as above.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    close(loop_, vec![child]);
}

extern "C" fn reap_all(_: c_int) {
    // SAFETY: no status is asked for.
    unsafe { while libc::waitpid(-1, null_mut(), libc::WNOHANG) > 0 {} }
}

/// As in libuv, which puts its own handler in the place of the program's.
#[test]
fn a_handler_that_reaps_all_children_leaves_the_loop_its_own() {
    let _alone = alone();
    let mut loop_ = new_loop();
    let mut children = Vec::new();
    for ended_before_run in [false, true] {
        // SAFETY: the handler only calls what a handler may.
        unsafe {
            let handler = reap_all as extern "C" fn(c_int) as *const () as libc::sighandler_t;
            libc::signal(libc::SIGCHLD, handler);
        }
        let script = ["sh", "-c", "exit 6"];
        let (child, result) = Command::shell(&script).spawn(&mut loop_);
        assert_eq!(result, 0);
        if ended_before_run {
            // SAFETY: zeroes are a valid siginfo_t, and the child is not reaped.
            unsafe {
                let mut info: libc::siginfo_t = std::mem::zeroed();
                let id = child.process.pid as libc::id_t;
                let options = libc::WEXITED | libc::WNOWAIT;
                assert_eq!(libc::waitid(libc::P_PID, id, &mut info, options), 0);
            }
        }
        assert_eq!(run(&mut loop_, UV_RUN_DEFAULT), 0);
        assert_eq!(child.end, Some((6, 0)));
        children.push(child);
    }
    close(loop_, children);
    assert_no_children();
}

#[test]
fn a_stolen_child_does_not_hang_the_loop() {
    let _alone = alone();
    let mut loop_ = new_loop();
    let script = ["sh", "-c", "exit 6"];
    let (child, result) = Command::shell(&script).spawn(&mut loop_);
    assert_eq!(result, 0);
    // SAFETY: no status is asked for.
    unsafe {
        assert_eq!(
            libc::waitpid(child.process.pid, null_mut(), 0),
            child.process.pid
        )
    };
    assert_eq!(run(&mut loop_, UV_RUN_DEFAULT), 0);
    assert_eq!(child.end, Some((i64::from(-libc::ECHILD), 0)));
    close(loop_, vec![child]);
}

#[test]
fn children_of_other_code_are_left_alone() {
    let _alone = alone();
    let mut loop_ = new_loop();
    let mut foreign = std::process::Command::new("sh")
        .args(["-c", "exit 8"])
        .spawn()
        .unwrap();
    let script = ["sh", "-c", "sleep 0.05; exit 6"];
    let (child, result) = Command::shell(&script).spawn(&mut loop_);
    assert_eq!(result, 0);
    assert_eq!(run(&mut loop_, UV_RUN_DEFAULT), 0);
    assert_eq!(child.end, Some((6, 0)));
    assert_eq!(foreign.wait().unwrap().code(), Some(8));
    close(loop_, vec![child]);
}

/// The parent's children are nothing to the child of a fork, nor is its poller.
#[test]
fn a_forked_loop_does_not_hear_of_its_parents_children() {
    let _alone = alone();
    let mut loop_ = new_loop();
    let (gate, opener) = pipe();
    let script = ["sh", "-c", "read x; exit 2"];
    let command = Command {
        stdio: &[inherit(&gate)],
        ..Command::shell(&script)
    };
    let (child, result) = command.spawn(&mut loop_);
    assert_eq!(result, 0);
    assert_eq!(run(&mut loop_, UV_RUN_NOWAIT), 1);
    // SAFETY: the child is a copy of this thread alone, uses the loop, and leaves without
    // running destructors.
    unsafe {
        let forked = libc::fork();
        if forked == 0 {
            drop(opener);
            let ok = uv_loop_fork(&mut *loop_) == 0
                && run(&mut loop_, UV_RUN_NOWAIT) == 1
                && child.end.is_none();
            libc::_exit(c_int::from(!ok));
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(forked, &mut status, 0), forked);
        assert_eq!(status, 0);
    }
    drop(opener);
    assert_eq!(run(&mut loop_, UV_RUN_DEFAULT), 0);
    assert_eq!(child.end, Some((2, 0)));
    close(loop_, vec![child]);
}

#[test]
fn groups_are_dropped_with_the_user() {
    // SAFETY: it takes no arguments.
    if unsafe { libc::getuid() } != 0 {
        return;
    }
    let _alone = alone();
    let mut loop_ = new_loop();
    let (reader, writer) = pipe();
    let script = ["sh", "-c", "id -u; id -G; grep ^Groups: /proc/self/status"];
    let command = Command {
        stdio: &[IGNORE, inherit(&writer)],
        ids: Some((65534, 65533)),
        ..Command::shell(&script)
    };
    let (child, result) = command.spawn(&mut loop_);
    assert_eq!(result, 0);
    drop(writer);
    let said: Vec<_> = read_all(reader)
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    assert_eq!(said, ["65534", "65533", "Groups:"]);
    assert_eq!(run(&mut loop_, UV_RUN_DEFAULT), 0);
    assert_eq!(child.end, Some((0, 0)));
    close(loop_, vec![child]);
    // SAFETY: it takes no arguments.
    assert_eq!(unsafe { libc::getuid() }, 0, "only the child has changed");
}

/// Signals, descriptors and modes that a child begins with.
#[test]
fn a_child_begins_afresh() {
    let _alone = alone();
    let mut loop_ = new_loop();
    let (reader, writer) = pipe();
    let mut pipes: Vec<Box<uv_pipe_t>> = (0..2).map(|_| Box::new(zeroed())).collect();
    for pipe in &mut pipes {
        // SAFETY: the loop is initialised.
        assert_eq!(unsafe { uv_pipe_init(&mut *loop_, &mut **pipe, 0) }, 0);
    }
    let create = |at: usize, flags| uv_stdio_container_t {
        flags: UV_CREATE_PIPE | flags,
        data: stream(&pipes[at]),
    };
    // SAFETY: ignoring and holding back these is harmless, and so is keeping descriptors that
    // whoever started the tests has left open.
    unsafe {
        for entry in std::fs::read_dir("/proc/self/fd").unwrap() {
            let fd = entry
                .unwrap()
                .file_name()
                .to_str()
                .unwrap()
                .parse()
                .unwrap();
            libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
        }
        libc::signal(libc::SIGUSR1, libc::SIG_IGN);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&mut set, libc::SIGUSR2);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, null_mut());
    }
    let script = [
        "sh",
        "-c",
        "cat /proc/self/status | grep -E '^Sig(Blk|Ign|Cgt)'; \
         for fd in 3 4; do grep flags /proc/self/fdinfo/$fd; done; ls /proc/self/fd",
    ];
    let command = Command {
        stdio: &[
            IGNORE,
            inherit(&writer),
            IGNORE,
            create(0, UV_READABLE_PIPE),
            create(1, UV_WRITABLE_PIPE | UV_NONBLOCK_PIPE),
        ],
        ..Command::shell(&script)
    };
    let (child, result) = command.spawn(&mut loop_);
    assert_eq!(result, 0);
    // SAFETY: the handles are open.
    unsafe {
        libc::signal(libc::SIGUSR1, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&mut set, libc::SIGUSR2);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, null_mut());
        for (at, directions) in [(0, (0, 1)), (1, (1, 0))] {
            let pipe = std::ptr::from_ref::<uv_pipe_t>(&pipes[at]);
            assert_eq!((uv_is_readable(pipe), uv_is_writable(pipe)), directions);
            let mut fd = -1;
            assert_eq!(uv_fileno(pipe, &mut fd), 0);
            assert_ne!(libc::fcntl(fd, libc::F_GETFL) & libc::O_NONBLOCK, 0);
            assert_ne!(libc::fcntl(fd, libc::F_GETFD) & libc::FD_CLOEXEC, 0);
        }
    }
    drop(writer);
    let said = read_all(reader);
    let words: Vec<_> = said.split_whitespace().collect();
    // Two signals are the C library's own, and it lets nobody touch them.
    let masks = [1, 3, 5].map(|at| u64::from_str_radix(words[at], 16).unwrap() & !(3 << 31));
    assert_eq!(masks, [0; 3], "{said}");
    let nonblocking = |text: &str| i32::from_str_radix(text, 8).unwrap() & libc::O_NONBLOCK != 0;
    assert_eq!(
        (nonblocking(words[7]), nonblocking(words[9])),
        (false, true),
        "{said}"
    );
    // The listing itself has one.
    assert_eq!(words[10..], ["0", "1", "2", "3", "4", "5"], "{said}");
    assert_eq!(run(&mut loop_, UV_RUN_DEFAULT), 0);
    assert_eq!(child.end, Some((0, 0)));
    for pipe in &mut pipes {
        // SAFETY: the handle is open.
        unsafe { uv_close(std::ptr::from_mut(&mut **pipe), None) };
    }
    close(loop_, vec![child]);
}

/// Whatever way the descriptors overlap, each child's is a copy of the one that was named.
#[test]
fn descriptors_may_overlap() {
    let _alone = alone();
    let mut loop_ = new_loop();
    let files: Vec<OwnedFd> = (0..4)
        .map(|number: usize| {
            let name = CString::new(format!("file {number}")).unwrap();
            // SAFETY: the name is a C string, and the descriptor ours.
            unsafe {
                let fd = libc::memfd_create(CStr::as_ptr(&name), libc::MFD_CLOEXEC);
                assert!(fd >= 0);
                // As low as they come, to get in each other's way.
                OwnedFd::from_raw_fd(fd)
            }
        })
        .collect();
    let (reader, writer) = pipe();
    let highest = files
        .iter()
        .map(AsRawFd::as_raw_fd)
        .max()
        .unwrap()
        .max(writer.as_raw_fd()) as usize;
    // The child's descriptors are ours in reverse.
    let mut stdio = vec![IGNORE; highest + 1];
    stdio[1] = inherit(&writer);
    for (at, file) in files.iter().enumerate() {
        stdio[files[files.len() - 1 - at].as_raw_fd() as usize] = inherit(file);
    }
    let script = format!(
        "for fd in {}; do readlink /proc/self/fd/$fd; done",
        files
            .iter()
            .map(|file| file.as_raw_fd().to_string())
            .collect::<Vec<_>>()
            .join(" ")
    );
    let script = ["sh", "-c", &script];
    let command = Command {
        stdio: &stdio,
        ..Command::shell(&script)
    };
    let (child, result) = command.spawn(&mut loop_);
    assert_eq!(result, 0);
    drop(writer);
    let said = read_all(reader);
    let said: Vec<_> = said
        .lines()
        .map(|line| line.trim_end_matches(" (deleted)"))
        .collect();
    assert_eq!(
        said,
        [
            "/memfd:file 3",
            "/memfd:file 2",
            "/memfd:file 1",
            "/memfd:file 0"
        ]
    );
    assert_eq!(run(&mut loop_, UV_RUN_DEFAULT), 0);
    assert_eq!(child.end, Some((0, 0)));
    close(loop_, vec![child]);
}
