//! Process handles: the C options become a plan, and the plan a child.

use crate::abi::{UV_HANDLE_CLOSING, UV_NAMED_PIPE, UV_PROCESS, uv_loop_t, uv_process_options_t};
use crate::abi::{uv_process_t, uv_stdio_container_t, uv_stream_t};
use crate::{engine, stream};
use blacklight_engine::{Command, Descriptor, Errno, SpawnError, Stdio, Strings};
use blacklight_sys::{fd, process};
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};

/// Other flags are for Windows or unknown, and ignored.
const UV_PROCESS_SETUID: c_uint = 1 << 0;
const UV_PROCESS_SETGID: c_uint = 1 << 1;
const UV_PROCESS_DETACHED: c_uint = 1 << 3;

const UV_IGNORE: c_int = 0;
const UV_CREATE_PIPE: c_int = 1;
const UV_INHERIT_FD: c_int = 2;
const UV_INHERIT_STREAM: c_int = 4;
/// The four kinds above exclude each other.
const UV_STDIO_KIND: c_int = 7;
const UV_READABLE_PIPE: c_int = 0x10;
const UV_WRITABLE_PIPE: c_int = 0x20;
const UV_NONBLOCK_PIPE: c_int = 0x40;

/// A pipe between this process and a child about to be started.
struct Pipe {
    stream: *mut uv_stream_t,
    flags: c_int,
    ours: OwnedFd,
    theirs: OwnedFd,
}

/// The child's descriptors, and the pipes made for them.
#[derive(Default)]
struct Plan {
    stdio: Vec<Stdio>,
    pipes: Vec<Pipe>,
}

impl Plan {
    /// # Safety
    ///
    /// The containers name open handles.
    unsafe fn new(containers: &[uv_stdio_container_t]) -> Result<Plan, Errno> {
        let mut plan = Plan::default();
        plan.stdio.try_reserve_exact(containers.len())?;
        for container in containers {
            // SAFETY: the caller guarantees the containers, and the flags say which field of the
            // union is set.
            let stdio = unsafe {
                match container.flags & UV_STDIO_KIND {
                    UV_IGNORE => Stdio::Ignore,
                    UV_CREATE_PIPE => plan.create_pipe(container.data.stream, container.flags)?,
                    UV_INHERIT_FD if container.data.fd >= 0 => Stdio::Inherit(container.data.fd),
                    UV_INHERIT_STREAM => inherit_stream(container.data.stream)?,
                    _ => return Err(Errno::EINVAL),
                }
            };
            plan.stdio.push(stdio);
        }
        Ok(plan)
    }

    /// # Safety
    ///
    /// `stream` is an initialised handle.
    unsafe fn create_pipe(
        &mut self,
        stream: *mut uv_stream_t,
        flags: c_int,
    ) -> Result<Stdio, Errno> {
        // SAFETY: the caller upholds the contract.
        unsafe {
            if stream.is_null() || (*stream).handle.type_ != UV_NAMED_PIPE {
                return Err(Errno::EINVAL);
            }
            let open =
                engine::with_handle(stream.cast(), |engine, key| engine.stream_fd(key).is_ok());
            if open || self.pipes.iter().any(|pipe| pipe.stream == stream) {
                return Err(Errno::EBUSY);
            }
        }
        self.pipes.try_reserve(1)?;
        let (ours, theirs) = process::stdio_pair()?;
        let stdio = if flags & UV_NONBLOCK_PIPE != 0 {
            fd::set_nonblocking(theirs.as_raw_fd(), true)?;
            Stdio::Pass(theirs.as_raw_fd())
        } else {
            Stdio::Inherit(theirs.as_raw_fd())
        };
        self.pipes.push(Pipe {
            stream,
            flags,
            ours,
            theirs,
        });
        Ok(stdio)
    }

    /// Opens the parent's ends of the pipes. The directions in the flags are the child's.
    ///
    /// # Safety
    ///
    /// The pipes' handles have not changed since the plan was made.
    unsafe fn open_pipes(self) -> Result<(), Errno> {
        let mut result = Ok(());
        for Pipe {
            stream,
            flags,
            ours,
            theirs,
        } in self.pipes
        {
            drop(theirs);
            let readable = flags & UV_WRITABLE_PIPE != 0;
            let writable = flags & UV_READABLE_PIPE != 0;
            let fd = ours.as_raw_fd();
            // SAFETY: the caller guarantees the handle. The stream owns the descriptor, unless this
            // fails.
            let opened = unsafe { stream::open(stream, Descriptor::adopt(fd), readable, writable) };
            match opened {
                0 => drop(ours.into_raw_fd()),
                error => result = Err(Errno::from_code(error)),
            }
        }
        result
    }
}

/// # Safety
///
/// `stream` is null or an initialised stream.
unsafe fn inherit_stream(stream: *mut uv_stream_t) -> Result<Stdio, Errno> {
    // SAFETY: the caller upholds the contract.
    unsafe {
        if stream.is_null() {
            return Err(Errno::EINVAL);
        }
        let fd = engine::with_handle(stream.cast(), |engine, key| engine.stream_fd(key));
        fd.map(Stdio::Inherit).map_err(|_| Errno::EINVAL)
    }
}

/// The C string behind a pointer that may be null.
///
/// # Safety
///
/// `text` is null or a C string that lives for as long as `'a`.
unsafe fn optional<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller upholds the contract.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

/// The handle is initialised even on failure, and must always be closed.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_spawn(
    loop_: *mut uv_loop_t,
    process: *mut uv_process_t,
    options: *const uv_process_options_t,
) -> c_int {
    // SAFETY: the caller passes a loop, memory for a handle, and options.
    unsafe {
        let token = engine::token(process);
        match engine::with(loop_, |engine| engine.process_init(token)) {
            Ok(key) => engine::init(process.cast(), loop_, UV_PROCESS, key),
            Err(error) => return error.code(),
        }
        (*process).exit_cb = (*options).exit_cb;
        (*process).pid = 0;
        (*process).status = 0;
        (*process).ended = 0;
        engine::code(spawn(process, &*options))
    }
}

/// # Safety
///
/// `process` is a new handle, and the options are as libuv's documentation requires.
unsafe fn spawn(process: *mut uv_process_t, options: &uv_process_options_t) -> Result<(), Errno> {
    if options.file.is_null() {
        return Err(Errno::EINVAL);
    }
    let has = |flag| options.flags & flag != 0;
    // libuv takes a negative number for none.
    let stdio_count = usize::try_from(options.stdio_count).unwrap_or(0);
    // SAFETY: the caller guarantees the options, which live through the call.
    unsafe {
        let containers = match options.stdio.is_null() {
            true if stdio_count > 0 => return Err(Errno::EINVAL),
            true => &[],
            false => std::slice::from_raw_parts(options.stdio, stdio_count),
        };
        let plan = Plan::new(containers)?;
        let only_name = [options.file, std::ptr::null()];
        let args = match options.args.is_null() {
            true => only_name.as_ptr(),
            false => options.args,
        };
        let command = Command {
            file: CStr::from_ptr(options.file),
            args: Strings::from_ptr(args),
            env: match options.env.is_null() {
                true => Strings::environment(),
                false => Strings::from_ptr(options.env),
            },
            cwd: optional(options.cwd),
            detached: has(UV_PROCESS_DETACHED),
            uid: has(UV_PROCESS_SETUID).then_some(options.uid),
            gid: has(UV_PROCESS_SETGID).then_some(options.gid),
            stdio: &plan.stdio,
        };
        let spawned = engine::with_handle(process.cast(), |engine, key| {
            engine.process_spawn(key, &command)
        });
        match spawned {
            Ok(pid) => {
                (*process).pid = pid;
                plan.open_pipes()
            }
            Err(SpawnError { error, in_child }) => {
                if in_child {
                    // Programs read end-of-file from the pipes of a child that failed to start.
                    let _ = plan.open_pipes();
                }
                Err(error)
            }
        }
    }
}

/// Calls the program's callback when a child has exited.
///
/// # Safety
///
/// `process` has had a child.
pub(crate) unsafe fn ended(process: *mut uv_process_t, status: i64, signum: c_int) {
    // SAFETY: the caller guarantees an open handle.
    unsafe {
        (*process).ended = 1;
        // The format of waitpid(2).
        (*process).status = (status as c_int) << 8 | signum;
        if let Some(cb) = (*process).exit_cb {
            cb(process, status, signum);
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_process_kill(process: *mut uv_process_t, signum: c_int) -> c_int {
    // SAFETY: the caller passes a process handle.
    unsafe {
        let (closing, running) = (
            (*process).handle.flags & UV_HANDLE_CLOSING != 0,
            (*process).ended == 0,
        );
        if closing {
            // The loop does not wait for the child any more, so only the program itself can have
            // reaped it and let its pid be reused.
            return match (*process).pid {
                pid if pid > 0 && running => engine::code(process::kill(pid, signum)),
                _ => Errno::ESRCH.code(),
            };
        }
        let unknown = Err(Errno::ESRCH);
        engine::code(engine::with_known(
            process.cast(),
            unknown,
            |engine, key| engine.process_kill(key, signum),
        ))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_process_get_pid(process: *const uv_process_t) -> c_int {
    // SAFETY: the caller passes a process handle.
    unsafe { (*process).pid }
}
