//! Child processes: <https://man7.org/linux/man-pages/man2/vfork.2.html>.
//!
//! A child is started as vfork(2) starts one: until it executes its program it runs in the parent's
//! memory, while the calling thread waits. Nothing is copied, so that a start costs the same whatever
//! the size of the parent. These rules make that safe:
//!
//! - The parent prepares everything that the child needs in a [`Script`]. The child allocates nothing,
//!   takes no lock, and calls only functions that are plain system calls.
//! - The child runs on a stack of its own.
//! - All signals are blocked on the calling thread, and so in the child, until the child has reset all
//!   of the parent's handlers.
//!
//! An error on the child's way to its program is left in the script. In some emulators (valgrind,
//! qemu) the child gets a copy of the memory instead. Until the first child has shown that it shares
//! the parent's memory, children therefore report errors through a pipe as well.
//!
//! The platform's `spawn` makes the process; everything that the child does is here.

use crate::platform::{errno, spawn};
use crate::socket::{self, Direction};
use crate::{Errno, RawFd, check};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

pub use crate::pid::kill;
pub use crate::platform::child::ChildWatch;

/// Where programs are looked for if the child has no `PATH`.
const DEFAULT_PATH: &[u8] = b"/usr/bin:/bin";

/// An array of C strings with a null pointer at its end, as `execve` takes it.
#[derive(Clone, Copy, Debug)]
pub struct Strings<'a>(*const *const c_char, PhantomData<&'a CStr>);

impl<'a> Strings<'a> {
    /// The array that a C program points to.
    ///
    /// # Safety
    ///
    /// `strings` points to C strings and a null pointer after them, all of which stay as they
    /// are for as long as `'a`.
    pub const unsafe fn from_ptr(strings: *const *const c_char) -> Strings<'a> {
        Strings(strings, PhantomData)
    }

    /// Our own environment.
    ///
    /// # Safety
    ///
    /// No thread changes the environment during `'a`. C programs owe that to `getenv` anyway.
    /// A Rust program may call `std::env::set_var` at any time (it is safe before edition 2024),
    /// which only the lock of the standard library guards against. So the Rust face copies the
    /// environment through `std::env`.
    pub unsafe fn environment() -> Strings<'a> {
        static NONE: [usize; 1] = [0];
        // SAFETY: the caller vouches for it.
        match unsafe { crate::env::pointer() } {
            // What `clearenv` leaves behind.
            none if none.is_null() => Strings(NONE.as_ptr().cast(), PhantomData),
            strings => Strings(strings, PhantomData),
        }
    }

    fn iter(self) -> impl Iterator<Item = &'a CStr> {
        // SAFETY: whoever made the array has vouched for it, and the walk ends at its end.
        (0..).map_while(move |at| unsafe {
            let string = *self.0.add(at);
            (!string.is_null()).then(|| CStr::from_ptr(string))
        })
    }
}

/// An array that owns its pointers.
#[derive(Debug)]
pub struct StringsBuf<'a>(Vec<*const c_char>, PhantomData<&'a CStr>);

impl<'a> FromIterator<&'a CStr> for StringsBuf<'a> {
    fn from_iter<I: IntoIterator<Item = &'a CStr>>(strings: I) -> StringsBuf<'a> {
        let pointers = strings.into_iter().map(CStr::as_ptr);
        StringsBuf(pointers.chain([ptr::null()]).collect(), PhantomData)
    }
}

impl StringsBuf<'_> {
    /// The array to be passed.
    pub fn strings(&self) -> Strings<'_> {
        Strings(self.0.as_ptr(), PhantomData)
    }
}

/// What a child's descriptor is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stdio {
    /// Nothing, or `/dev/null` for the first three.
    Ignore,
    /// A copy of this one of ours. The first three are made blocking.
    Inherit(RawFd),
    /// A copy of this one of ours as it is.
    Pass(RawFd),
}

/// What to start, and how.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    /// The program: a path, or without a slash in it a name to look for in the child's `PATH`.
    pub file: &'a CStr,
    /// Its arguments, the name first.
    pub args: Strings<'a>,
    /// Its environment.
    pub env: Strings<'a>,
    /// The directory to run in, or our own.
    pub cwd: Option<&'a CStr>,
    /// Whether it leads a session of its own.
    pub detached: bool,
    /// The user and the group to run as. With either, supplementary groups are dropped.
    pub uid: Option<u32>,
    #[allow(missing_docs, reason = "see above")]
    pub gid: Option<u32>,
    /// Its descriptors, from zero on.
    pub stdio: &'a [Stdio],
}

/// A child that has been started.
#[derive(Debug)]
pub struct Child {
    /// Its number.
    pub pid: i32,
    /// A way to await its end, where the kernel has one. Without it, SIGCHLD says that some child has
    /// ended.
    pub watch: Option<ChildWatch>,
}

/// What becomes of the parent's memory in a child, until the child executes its program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Memory {
    /// Parent and child share it.
    Lent,
    /// The child has a copy.
    Copied,
}

/// Why there is no child.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpawnError {
    /// What went wrong.
    pub error: Errno,
    /// Whether that was in the child, on its way to the program.
    pub in_child: bool,
}

impl From<Errno> for SpawnError {
    fn from(error: Errno) -> SpawnError {
        SpawnError {
            error,
            in_child: false,
        }
    }
}

/// The names to try, one after the other, each with its NUL.
struct Candidates {
    text: Vec<u8>,
    /// Where each begins.
    names: Vec<*const c_char>,
}

impl Candidates {
    /// A file with a slash is what it is; others are in one of the directories of the path, of
    /// which an empty one is the directory that the child runs in.
    fn new(file: &[u8], path: &[u8]) -> Result<Candidates, Errno> {
        let mut text = Vec::new();
        let mut starts = Vec::new();
        let direct = file.contains(&b'/');
        let directories =
            path.split(|&byte| byte == b':')
                .take(if direct { 1 } else { usize::MAX });
        for directory in directories {
            text.try_reserve(directory.len() + file.len() + 2)?;
            starts.try_reserve(1)?;
            starts.push(text.len());
            if !direct && !directory.is_empty() {
                text.extend_from_slice(directory);
                text.push(b'/');
            }
            text.extend_from_slice(file);
            text.push(0);
        }
        let mut names = Vec::new();
        names.try_reserve_exact(starts.len())?;
        names.extend(
            starts
                .iter()
                .map(|&start| text[start..].as_ptr().cast::<c_char>()),
        );
        Ok(Candidates { text, names })
    }
}

/// The value of `PATH` in the child.
fn search_path<'a>(env: Strings<'a>) -> &'a [u8] {
    env.iter()
        .find_map(|entry| entry.to_bytes().strip_prefix(b"PATH="))
        .unwrap_or(DEFAULT_PATH)
}

/// All that the child looks at.
struct Script {
    names: *const *const c_char,
    names_len: usize,
    argv: *const *const c_char,
    envp: *const *const c_char,
    cwd: *const c_char,
    detached: bool,
    uid: Option<u32>,
    gid: Option<u32>,
    stdio: *mut Stdio,
    stdio_len: c_int,
    /// Where to report an error, or −1.
    report: RawFd,
    /// The child's own notes: that it has run in our memory, and what went wrong.
    ran: bool,
    error: c_int,
}

/// Whether children are known to run in our memory.
static SHARES_MEMORY: AtomicBool = AtomicBool::new(false);

/// Starts a child. If it cannot run its program the child's error is the answer, and nothing
/// is left of it.
pub fn spawn(command: &Command<'_>) -> Result<Child, SpawnError> {
    spawn_with(command, spawn::suitable_memory())
}

fn spawn_with(command: &Command<'_>, memory: Memory) -> Result<Child, SpawnError> {
    let candidates = Candidates::new(command.file.to_bytes(), search_path(command.env))?;
    debug_assert!(candidates.text.ends_with(&[0]));
    let mut stdio = Vec::new();
    stdio
        .try_reserve_exact(command.stdio.len().max(3))
        .map_err(Errno::from)?;
    stdio.extend_from_slice(command.stdio);
    while stdio.len() < 3 {
        stdio.push(Stdio::Ignore);
    }
    let mut report = match memory == Memory::Lent && SHARES_MEMORY.load(Relaxed) {
        true => None,
        false => Some(report_pipe()?),
    };
    let mut script = Script {
        names: candidates.names.as_ptr(),
        names_len: candidates.names.len(),
        argv: command.args.0,
        envp: command.env.0,
        cwd: command.cwd.map_or(ptr::null(), CStr::as_ptr),
        detached: command.detached,
        uid: command.uid,
        gid: command.gid,
        stdio: stdio.as_mut_ptr(),
        stdio_len: c_int::try_from(stdio.len()).map_err(|_| Errno::EINVAL)?,
        report: report.as_ref().map_or(-1, |(_, write)| write.as_raw_fd()),
        ran: false,
        error: 0,
    };
    // SAFETY: the script is complete and is left to the child; `child_main` does only what may be done
    // in shared memory.
    let child = unsafe { spawn::start(child_main, ptr::from_mut(&mut script).cast(), memory) }?;
    let error = match report.take() {
        _ if script.ran => {
            SHARES_MEMORY.store(true, Relaxed);
            script.error
        }
        Some((read, write)) => {
            drop(write);
            read_report(&read)
        }
        None => 0,
    };
    if error == 0 {
        return Ok(child);
    }
    reap(child.pid);
    Err(SpawnError {
        error: Errno::from_code(-error),
        in_child: true,
    })
}

fn report_pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let mut fds = [-1; 2];
    // SAFETY: there is room for two descriptors.
    check(unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: the kernel just made these descriptors for us alone.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

/// The child's error, or zero when it has closed its end by running its program.
fn read_report(read: &OwnedFd) -> c_int {
    let mut error: c_int = 0;
    loop {
        // SAFETY: there is room for an int.
        let count = unsafe {
            libc::read(
                read.as_raw_fd(),
                (&raw mut error).cast(),
                size_of::<c_int>(),
            )
        };
        if count != -1 || Errno::last() != Errno::EINTR {
            return if count == size_of::<c_int>() as isize {
                error
            } else {
                0
            };
        }
    }
}

/// Waits for the end of a child that is about to end.
fn reap(pid: libc::pid_t) {
    let mut status = 0;
    loop {
        // SAFETY: there is room for the status.
        let reaped = unsafe { libc::waitpid(pid, &mut status, 0) };
        if reaped != -1 || Errno::last() != Errno::EINTR {
            return;
        }
    }
}

/// The child's life up to its program, on borrowed memory: see the module's rules.
extern "C" fn child_main(script: *mut c_void) -> c_int {
    // SAFETY: the parent's thread waits for us and leaves the script to us.
    let script = unsafe { &mut *script.cast::<Script>() };
    script.ran = true;
    // SAFETY: what the script points to is valid, says its maker.
    let error = unsafe { run(script) };
    script.error = error;
    if script.report != -1 {
        // SAFETY: `error` is an int. There is nobody to tell about a failure.
        unsafe { libc::write(script.report, (&raw const error).cast(), size_of::<c_int>()) };
    }
    // To return is to end the child and nothing else.
    127
}

/// The error number of the last failed call. The child has borrowed the parent's thread, and `errno`
/// with it.
fn last_error() -> c_int {
    // SAFETY: the location is valid for the calling thread.
    unsafe { *errno::location() }
}

/// Turns "-1 and errno" into the number of the error.
fn attempt(status: c_int) -> Result<c_int, c_int> {
    if status == -1 {
        Err(last_error())
    } else {
        Ok(status)
    }
}

/// Comes back with an error number, or not at all.
///
/// # Safety
///
/// The caller is the child, and the script is complete.
unsafe fn run(script: &mut Script) -> c_int {
    // SAFETY: the caller vouches for it.
    unsafe {
        spawn::default_signals();
        if script.detached {
            libc::setsid();
        }
        let prepared = place_stdio(script)
            .and_then(|()| change_directory(script))
            .and_then(|()| change_ids(script));
        if let Err(error) = prepared {
            return error;
        }
        spawn::unblock_signals();
        execute(script)
    }
}

/// Puts the descriptors where the program expects them.
///
/// # Safety
///
/// As for [`run`].
unsafe fn place_stdio(script: &mut Script) -> Result<(), c_int> {
    let count = script.stdio_len;
    // SAFETY: the script's maker vouches for the array, and we are its only user.
    let stdio = unsafe { std::slice::from_raw_parts_mut(script.stdio, count as usize) };
    // SAFETY: fcntl takes no pointers here.
    let above = |fd| attempt(unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, count) });
    if script.report != -1 && script.report < count {
        script.report = above(script.report)?;
    }
    // What would be overwritten before it is used moves out of the way. All copies vanish when
    // the program is run.
    for (to, entry) in (0..).zip(stdio.iter_mut()) {
        match entry {
            Stdio::Inherit(from) | Stdio::Pass(from) if *from < to => *from = above(*from)?,
            _ => {}
        }
    }
    for (to, entry) in (0..).zip(stdio.iter()) {
        match *entry {
            Stdio::Ignore if to < 3 => open_null(to)?,
            Stdio::Ignore => {}
            Stdio::Inherit(from) => {
                place(from, to)?;
                if to < 3 {
                    make_blocking(to)?;
                }
            }
            Stdio::Pass(from) => place(from, to)?,
        }
    }
    Ok(())
}

/// Makes `to` a copy of `from` that the program inherits.
fn place(from: RawFd, to: RawFd) -> Result<(), c_int> {
    // SAFETY: none of these takes a pointer.
    unsafe {
        if from != to {
            return attempt(libc::dup2(from, to)).map(drop);
        }
        let flags = attempt(libc::fcntl(to, libc::F_GETFD))?;
        attempt(libc::fcntl(to, libc::F_SETFD, flags & !libc::FD_CLOEXEC)).map(drop)
    }
}

fn make_blocking(fd: RawFd) -> Result<(), c_int> {
    // SAFETY: none of these takes a pointer.
    unsafe {
        let flags = attempt(libc::fcntl(fd, libc::F_GETFL))?;
        if flags & libc::O_NONBLOCK != 0 {
            attempt(libc::fcntl(fd, libc::F_SETFL, flags & !libc::O_NONBLOCK))?;
        }
    }
    Ok(())
}

fn open_null(to: RawFd) -> Result<(), c_int> {
    let mode = if to == 0 {
        libc::O_RDONLY
    } else {
        libc::O_RDWR
    };
    // SAFETY: the path is a C string.
    unsafe {
        let fd = attempt(libc::open(c"/dev/null".as_ptr(), mode))?;
        if fd != to {
            attempt(libc::dup2(fd, to))?;
            libc::close(fd);
        }
    }
    Ok(())
}

/// # Safety
///
/// As for [`run`].
unsafe fn change_directory(script: &Script) -> Result<(), c_int> {
    if script.cwd.is_null() {
        return Ok(());
    }
    // SAFETY: the directory is a C string, says the script's maker.
    attempt(unsafe { libc::chdir(script.cwd) }).map(drop)
}

/// Becomes another user or group. The groups come first: another user may not be allowed to change
/// them.
fn change_ids(script: &Script) -> Result<(), c_int> {
    if script.uid.is_some() || script.gid.is_some() {
        // A user other than root may not drop groups, and gains nothing by keeping them: see
        // CVE-2015-0278.
        let _ = attempt(spawn::drop_groups());
    }
    if let Some(gid) = script.gid {
        attempt(spawn::set_gid(gid))?;
    }
    if let Some(uid) = script.uid {
        attempt(spawn::set_uid(uid))?;
    }
    Ok(())
}

/// Runs the first of the candidates that can be run. If none can, one that is there but may not
/// be run is the better explanation.
///
/// # Safety
///
/// As for [`run`].
unsafe fn execute(script: &Script) -> c_int {
    let mut denied = false;
    let mut error = libc::ENOENT;
    for at in 0..script.names_len {
        // SAFETY: the script's maker vouches for the arrays and their strings.
        unsafe { libc::execve(*script.names.add(at), script.argv, script.envp) };
        error = last_error();
        match error {
            libc::EACCES => denied = true,
            libc::ENOENT | libc::ENOTDIR | libc::ENODEV | libc::ESTALE | libc::ETIMEDOUT => {}
            _ => return error,
        }
    }
    if denied { libc::EACCES } else { error }
}

/// How a child has ended: its status and the signal that ended it, one of which is zero.
/// `None` while it runs; an error if it is not ours to wait for.
pub fn wait(pid: i32) -> Result<Option<(i64, i32)>, Errno> {
    let mut status = 0;
    loop {
        // SAFETY: there is room for the status.
        match check(unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) }) {
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
            Ok(0) => return Ok(None),
            Ok(_) if libc::WIFSIGNALED(status) => {
                return Ok(Some((0, libc::WTERMSIG(status))));
            }
            Ok(_) => return Ok(Some((libc::WEXITSTATUS(status).into(), 0))),
        }
    }
}

/// Two connected sockets for a child's standard streams, with buffers of a useful size. Both are
/// blocking and vanish when a program is run.
pub fn stdio_pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    const USEFUL: i32 = 64 * 1024;
    let fds = crate::pair::sockets(libc::SOCK_STREAM, 0, [false; 2])?;
    for fd in fds {
        for direction in [Direction::Receive, Direction::Send] {
            if socket::buffer_size(fd, direction).is_ok_and(|size| size < USEFUL) {
                // The smaller one works, too.
                let _ = socket::set_buffer_size(fd, direction, USEFUL);
            }
        }
    }
    // SAFETY: the kernel just made these descriptors for us alone.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spawn_by_name(file: &CStr, memory: Memory) -> Result<Child, SpawnError> {
        let args: StringsBuf<'_> = [file].into_iter().collect();
        let command = Command {
            file,
            args: args.strings(),
            // SAFETY: no test of this crate changes the environment.
            env: unsafe { Strings::environment() },
            cwd: None,
            detached: false,
            uid: None,
            gid: None,
            stdio: &[],
        };
        spawn_with(&command, memory)
    }

    #[test]
    fn a_child_with_a_copy_of_the_memory_runs_its_program_or_reports() {
        // Once a child has borrowed the memory, errors are looked for there; not so for copies.
        for memory in [Memory::Copied, Memory::Lent, Memory::Copied] {
            let child = spawn_by_name(c"true", memory).unwrap();
            let mut status = -1;
            // SAFETY: there is room for the status.
            let waited = unsafe { libc::waitpid(child.pid, &mut status, 0) };
            assert_eq!((waited, status), (child.pid, 0));
            let failed = spawn_by_name(c"no-such-program", memory).unwrap_err();
            assert_eq!((failed.error, failed.in_child), (Errno::ENOENT, true));
        }
    }
}
