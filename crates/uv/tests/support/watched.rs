//! A program that is watched: the test program started once more, in a role.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use uv_binding::*;

pub(crate) const ROLE: &str = "BLACKLIGHT_TEST_ROLE";
/// By these this program starts as the one that is watched.
pub(crate) const ARGUMENTS: [&str; 3] = ["--exact", "the_program_watched", "--nocapture"];

pub(crate) fn new_loop() -> Box<uv_loop_t> {
    let mut lp = Box::new(garbage());
    // SAFETY: this is memory for a loop.
    assert_eq!(unsafe { uv_loop_init(&mut *lp) }, 0);
    lp
}

pub(crate) fn run(lp: &mut uv_loop_t) {
    // SAFETY: the loop is this thread's.
    assert_eq!(unsafe { uv_run(lp, 0) }, 0);
}

pub(crate) fn close_loop(mut lp: Box<uv_loop_t>) {
    // SAFETY: the loop is this thread's, and nothing of it is in use.
    assert_eq!(unsafe { uv_loop_close(&mut *lp) }, 0);
}

pub(crate) unsafe extern "C" fn give_room(_: *mut Room, _: usize, room: *mut uv_buf_t) {
    static BYTES: [AtomicU32; 16] = [const { AtomicU32::new(0) }; 16];
    // SAFETY: the loop offers memory for the answer. One thread uses these bytes.
    unsafe {
        (*room).base = BYTES.as_ptr().cast_mut().cast();
        (*room).len = 64;
    }
}

unsafe extern "C" fn until_the_end(pipe: *mut Room, count: isize, _: *const uv_buf_t) {
    if count < 0 {
        // SAFETY: the handle is the loop's own.
        unsafe { uv_close(pipe, None) };
    }
}

/// Runs a loop until standard input ends, asleep all the while.
pub(crate) fn sleep_until_told(lp: &mut uv_loop_t) {
    let mut pipe = Room::new();
    // SAFETY: the handle lives until the run is over.
    unsafe {
        assert_eq!(uv_pipe_init(lp, &mut *pipe, 0), 0);
        assert_eq!(uv_pipe_open(&mut *pipe, 0), 0);
        let started = uv_read_start(&mut *pipe, Some(give_room), Some(until_the_end));
        assert_eq!(started, 0);
    }
    println!("ready");
    run(lp);
}

/// A program in a role.
pub(crate) struct Watched {
    pub(crate) child: Child,
    pub(crate) output: BufReader<std::process::ChildStdout>,
    pub(crate) directory: PathBuf,
}

impl Watched {
    /// Starts it, with this setting of `BLACKLIGHT_RECORD`. Its process calls `before` first, with
    /// its role and directory.
    pub(crate) fn start(role: &str, setting: &str, before: fn(&str, &Path)) -> Watched {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (pid, number) = (std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let directory = PathBuf::from(format!("/dev/shm/blacklight-test-{pid}-{number}"));
        // Numbers of processes are used again, and one that was killed has left its own.
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir(&directory).expect("there is /dev/shm");
        let mut command = Command::new(std::env::current_exe().unwrap());
        let (own_role, place) = (role.to_owned(), directory.clone());
        // SAFETY: the child mounts, for which it allocates, as glibc permits after a fork.
        unsafe {
            command.pre_exec(move || {
                before(&own_role, &place);
                Ok(())
            });
        }
        let mut child = command
            .args(ARGUMENTS)
            .env(ROLE, role)
            .env("BLACKLIGHT_RECORD", setting)
            .env("XDG_RUNTIME_DIR", &directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Watched {
            child,
            output,
            directory,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it says this word.
    pub(crate) fn wait_for(&mut self, word: &str) {
        let mut line = String::new();
        while !line.contains(word) {
            line.clear();
            let read = self.output.read_line(&mut line).unwrap();
            assert!(read > 0, "it ended before it was {word}");
        }
    }

    /// Ends its input, and expects a good end.
    pub(crate) fn finish(mut self) -> PathBuf {
        drop(self.child.stdin.take());
        let mut output = String::new();
        self.output.read_to_string(&mut output).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {output}");
        assert!(output.contains("done"), "{output}");
        self.directory.clone()
    }

    pub(crate) fn kill(&mut self) -> ExitStatus {
        self.child.kill().unwrap();
        self.child.wait().unwrap()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

pub(crate) fn records(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory.join("blacklight"));
    entries.map_or(Vec::new(), |entries| {
        entries.map(|entry| entry.unwrap().path()).collect()
    })
}

pub(crate) fn only_record(directory: &Path) -> PathBuf {
    let mut records = records(directory);
    assert_eq!(records.len(), 1, "{records:?}");
    records.remove(0)
}

/// Waits, for what cannot be waited for otherwise.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = std::time::Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed().as_secs() < 120, "{what} has not come");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Waits until the main thread of a process sleeps in the kernel, or its second one, which runs a
/// test.
pub(crate) fn await_sleep(pid: u32) {
    until("sleep", || {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        let calls = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("syscall")));
        let polls = [
            #[cfg(target_arch = "x86_64")]
            libc::SYS_epoll_wait,
            libc::SYS_epoll_pwait,
            libc::SYS_epoll_pwait2,
        ];
        let is_poll = |call: &str| {
            polls
                .iter()
                .any(|poll| call.starts_with(&format!("{poll} ")))
        };
        let mut calls = calls.flatten();
        calls.any(|call| is_poll(&call)).then_some(())
    });
}
