//! Child processes: <https://man7.org/linux/man-pages/man2/vfork.2.html>.
//!
//! A child is started as vfork(2) does: until it executes its program it runs in the parent's
//! memory, while the calling thread waits. Nothing is copied, so that the cost does not depend on
//! the parent's size. These rules make that safe:
//!
//! - The parent prepares everything that the child needs in a [`Script`]. The child allocates nothing,
//!   takes no lock, and calls only functions that are plain system calls.
//! - The child runs on a stack of its own.
//! - All signals are blocked on the calling thread, and so in the child, until the child has reset all
//!   of the parent's handlers.
//!
//! An error before the child executes its program is stored in the script. In some emulators
//! (valgrind, qemu) the child gets a copy of the memory instead. Until the first child has shown
//! that it shares the parent's memory, children therefore report errors through a pipe as well.
//!
//! The platform's `spawn` creates the process; the child's code is here.

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

/// The search path for programs if the child has no `PATH`.
const DEFAULT_PATH: &[u8] = b"/usr/bin:/bin";

/// An array of C strings that ends in a null pointer, as `execve` takes it.
#[derive(Clone, Copy, Debug)]
pub struct Strings<'a>(*const *const c_char, PhantomData<&'a CStr>);

impl<'a> Strings<'a> {
    /// The array that a C program points to.
    ///
    /// # Safety
    ///
    /// `strings` points to C strings and a null pointer after them, all of which stay unchanged
    /// during `'a`.
    pub const unsafe fn from_ptr(strings: *const *const c_char) -> Strings<'a> {
        Strings(strings, PhantomData)
    }

    /// This process's environment.
    ///
    /// # Safety
    ///
    /// No thread changes the environment during `'a`. C programs owe that to `getenv` anyway. A
    /// Rust program may call `std::env::set_var` at any time (it is safe before edition 2024),
    /// which only the lock of the standard library guards against. So the `blacklight` crate copies
    /// the environment through `std::env`.
    pub unsafe fn environment() -> Strings<'a> {
        static NONE: [usize; 1] = [0];
        // SAFETY: the caller upholds the contract.
        match unsafe { crate::env::pointer() } {
            // The state after `clearenv`.
            none if none.is_null() => Strings(NONE.as_ptr().cast(), PhantomData),
            strings => Strings(strings, PhantomData),
        }
    }

    fn iter(self) -> impl Iterator<Item = &'a CStr> {
        // SAFETY: the constructor's caller guarantees the array, and the iteration stops at its
        // null.
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
    /// The array, borrowed.
    pub fn strings(&self) -> Strings<'_> {
        Strings(self.0.as_ptr(), PhantomData)
    }
}

/// The source of a child's descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stdio {
    /// None, or `/dev/null` for the first three.
    Ignore,
    /// A duplicate of this descriptor of the parent. The first three are made blocking.
    Inherit(RawFd),
    /// A duplicate of this descriptor of the parent, with its mode unchanged.
    Pass(RawFd),
}

/// A program to start, and its options.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    /// The program: a path, or a name without a slash to search for in the child's `PATH`.
    pub file: &'a CStr,
    /// Its arguments, the name first.
    pub args: Strings<'a>,
    /// Its environment.
    pub env: Strings<'a>,
    /// The directory to run in, or the parent's.
    pub cwd: Option<&'a CStr>,
    /// Whether the child leads a session of its own.
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
    /// The child's pid.
    pub pid: i32,
    /// Watches the child for its exit, if the kernel supports it. Otherwise SIGCHLD reports that
    /// some child has exited.
    pub watch: Option<ChildWatch>,
}

/// How a child accesses the parent's memory until it executes its program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Memory {
    /// Parent and child share it.
    Shared,
    /// The child has a copy.
    Copied,
}

/// Why a child could not be started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpawnError {
    /// The error.
    pub error: Errno,
    /// Whether the error occurred in the child.
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

/// The paths to try in order, each with its NUL.
struct Candidates {
    text: Vec<u8>,
    /// Where each path begins.
    names: Vec<*const c_char>,
}

impl Candidates {
    /// A file with a slash is used as it is; others are searched for in the directories of the
    /// path. An empty directory means the child's working directory.
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

/// All data that the child uses.
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
    /// The pipe to report an error to, or −1.
    report: RawFd,
    /// Written by the child: that it has run in the parent's memory, and its error.
    ran: bool,
    error: c_int,
}

/// Whether children are known to run in the parent's memory.
static SHARES_MEMORY: AtomicBool = AtomicBool::new(false);

/// Starts a child. If it cannot execute its program, returns the child's error and reaps the child.
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
    let mut report = match memory == Memory::Shared && SHARES_MEMORY.load(Relaxed) {
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
    // SAFETY: the script is complete and only the child uses it; `child_main` does only what is
    // allowed in shared memory.
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
    // SAFETY: the array has room for two descriptors.
    check(unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: the kernel has just made these descriptors, and nothing else owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

/// The child's error, or zero when it has closed its end by executing its program.
fn read_report(read: &OwnedFd) -> c_int {
    let mut error: c_int = 0;
    loop {
        // SAFETY: the buffer has room for an int.
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

/// Reaps a child that is about to exit.
fn reap(pid: libc::pid_t) {
    let mut status = 0;
    loop {
        // SAFETY: `status` has room for the status.
        let reaped = unsafe { libc::waitpid(pid, &mut status, 0) };
        if reaped != -1 || Errno::last() != Errno::EINTR {
            return;
        }
    }
}

/// The child's code until it executes its program, in shared memory: see the module's rules.
extern "C" fn child_main(script: *mut c_void) -> c_int {
    // SAFETY: the parent's thread waits for the child and leaves the script to it.
    let script = unsafe { &mut *script.cast::<Script>() };
    script.ran = true;
    // SAFETY: `spawn_with` guarantees that the script's pointers are valid.
    let error = unsafe { run(script) };
    script.error = error;
    if script.report != -1 {
        // SAFETY: `error` is an int. There is no way to report a failure of this write.
        unsafe { libc::write(script.report, (&raw const error).cast(), size_of::<c_int>()) };
    }
    // Returning exits the child only.
    127
}

/// The error number of the last failed call. The child uses the parent's thread-local data, and so
/// its `errno`.
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

/// Executes the program. Returns an error number on failure, and does not return on success.
///
/// # Safety
///
/// The child calls this, with a complete script.
unsafe fn run(script: &mut Script) -> c_int {
    // SAFETY: the caller upholds the contract.
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

/// Moves the descriptors to the numbers that the program expects.
///
/// # Safety
///
/// As for [`run`].
unsafe fn place_stdio(script: &mut Script) -> Result<(), c_int> {
    let count = script.stdio_len;
    // SAFETY: `spawn_with` guarantees the array, and only the child uses it.
    let stdio = unsafe { std::slice::from_raw_parts_mut(script.stdio, count as usize) };
    // SAFETY: fcntl takes no pointers here.
    let above = |fd| attempt(unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, count) });
    if script.report != -1 && script.report < count {
        script.report = above(script.report)?;
    }
    // A descriptor that would be overwritten before its use is moved away first. All these copies
    // are close-on-exec.
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

/// Makes `to` a duplicate of `from` that the program inherits.
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
    // SAFETY: `spawn_with` guarantees that the directory is a C string.
    attempt(unsafe { libc::chdir(script.cwd) }).map(drop)
}

/// Changes the user and the group. The groups come first, since another user may not be permitted
/// to change them.
fn change_ids(script: &Script) -> Result<(), c_int> {
    if script.uid.is_some() || script.gid.is_some() {
        // Without privileges groups cannot be dropped, but keeping them then adds no rights: see
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

/// Executes the first candidate that works. If none does, an error of a file that exists takes
/// precedence over "not found".
///
/// # Safety
///
/// As for [`run`].
unsafe fn execute(script: &Script) -> c_int {
    let mut denied = false;
    let mut error = libc::ENOENT;
    for at in 0..script.names_len {
        // SAFETY: `spawn_with` guarantees the arrays and their strings.
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

/// A child's exit status and the signal that killed it, one of which is zero. `None` while the
/// child runs; an error if this process cannot wait for it.
pub fn wait(pid: i32) -> Result<Option<(i64, i32)>, Errno> {
    let mut status = 0;
    loop {
        // SAFETY: `status` has room for the status.
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

/// Two connected sockets for a child's standard streams, with larger buffers. Both are blocking and
/// close-on-exec.
pub fn stdio_pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    const USEFUL: i32 = 64 * 1024;
    let fds = crate::pair::sockets(libc::SOCK_STREAM, 0, [false; 2])?;
    for fd in fds {
        for direction in [Direction::Receive, Direction::Send] {
            if socket::buffer_size(fd, direction).is_ok_and(|size| size < USEFUL) {
                // The default size works as well.
                let _ = socket::set_buffer_size(fd, direction, USEFUL);
            }
        }
    }
    // SAFETY: the kernel has just made these descriptors, and nothing else owns them.
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
        // After a child has shared the memory, errors are read from there; copies must still use
        // the pipe.
        for memory in [Memory::Copied, Memory::Shared, Memory::Copied] {
            let child = spawn_by_name(c"true", memory).unwrap();
            let mut status = -1;
            // SAFETY: `status` has room for the status.
            let waited = unsafe { libc::waitpid(child.pid, &mut status, 0) };
            assert_eq!((waited, status), (child.pid, 0));
            let failed = spawn_by_name(c"no-such-program", memory).unwrap_err();
            assert_eq!((failed.error, failed.in_child), (Errno::ENOENT, true));
        }
    }
}
