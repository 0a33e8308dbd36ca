//! The process itself, and signals and priorities of other processes.

use crate::engine::code;
use crate::text;
use blacklight_engine::Errno;
use blacklight_sys::own_process::{self, Who};
use blacklight_sys::pid::{self, Pid};
use std::ffi::{c_char, c_int, c_long};

#[unsafe(no_mangle)]
extern "C" fn uv_os_getpid() -> Pid {
    pid::current()
}

#[unsafe(no_mangle)]
extern "C" fn uv_os_getppid() -> Pid {
    pid::parent()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_os_getpriority(pid: Pid, priority: *mut c_int) -> c_int {
    if priority.is_null() {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller passes room for a number.
    code(pid::priority(pid).map(|found| unsafe { priority.write(found) }))
}

#[unsafe(no_mangle)]
extern "C" fn uv_os_setpriority(pid: Pid, priority: c_int) -> c_int {
    code(pid::set_priority(pid, priority))
}

#[unsafe(no_mangle)]
extern "C" fn uv_kill(pid: Pid, signum: c_int) -> c_int {
    code(pid::kill(pid, signum))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_cwd(buffer: *mut c_char, size: *mut usize) -> c_int {
    // SAFETY: the caller upholds the contracts buffer.
    unsafe { text::fill(buffer, size, own_process::working_directory) }
}

/// Null fails with `EFAULT`, as in the kernel.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_chdir(directory: *const c_char) -> c_int {
    // SAFETY: the caller passes a C string.
    let directory = unsafe { text::read(directory) }.map_err(|_| Errno::EFAULT);
    code(directory.and_then(own_process::change_directory))
}

/// Unlike its neighbours, this function truncates a path that does not fit.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_exepath(buffer: *mut c_char, size: *mut usize) -> c_int {
    // SAFETY: the caller guarantees `size`.
    let room = unsafe { size.as_ref() }.copied().unwrap_or(0);
    // SAFETY: the caller upholds the contracts buffer.
    unsafe {
        text::fill(buffer, size, || {
            let mut path = own_process::executable()?;
            path.truncate(room - 1);
            Ok(path)
        })
    }
}

/// Seconds and microseconds.
#[repr(C)]
pub struct uv_timeval_t {
    tv_sec: c_long,
    tv_usec: c_long,
}

/// Resource usage.
#[repr(C)]
pub struct uv_rusage_t {
    utime: uv_timeval_t,
    stime: uv_timeval_t,
    maxrss: u64,
    ixrss: u64,
    idrss: u64,
    isrss: u64,
    minflt: u64,
    majflt: u64,
    nswap: u64,
    inblock: u64,
    oublock: u64,
    msgsnd: u64,
    msgrcv: u64,
    nsignals: u64,
    nvcsw: u64,
    nivcsw: u64,
}

fn time(time: libc::timeval) -> uv_timeval_t {
    uv_timeval_t {
        tv_sec: time.tv_sec,
        tv_usec: time.tv_usec,
    }
}

impl From<own_process::rusage> for uv_rusage_t {
    fn from(usage: own_process::rusage) -> uv_rusage_t {
        uv_rusage_t {
            utime: time(usage.ru_utime),
            stime: time(usage.ru_stime),
            maxrss: usage.ru_maxrss as u64,
            ixrss: usage.ru_ixrss as u64,
            idrss: usage.ru_idrss as u64,
            isrss: usage.ru_isrss as u64,
            minflt: usage.ru_minflt as u64,
            majflt: usage.ru_majflt as u64,
            nswap: usage.ru_nswap as u64,
            inblock: usage.ru_inblock as u64,
            oublock: usage.ru_oublock as u64,
            msgsnd: usage.ru_msgsnd as u64,
            msgrcv: usage.ru_msgrcv as u64,
            nsignals: usage.ru_nsignals as u64,
            nvcsw: usage.ru_nvcsw as u64,
            nivcsw: usage.ru_nivcsw as u64,
        }
    }
}

/// # Safety
///
/// `rusage` is null or has room for an answer.
unsafe fn get_usage(who: Who, rusage: *mut uv_rusage_t) -> c_int {
    if rusage.is_null() {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller upholds the contract.
    code(own_process::usage(who).map(|usage| unsafe { rusage.write(usage.into()) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_getrusage(rusage: *mut uv_rusage_t) -> c_int {
    // SAFETY: the caller passes room for an answer.
    unsafe { get_usage(Who::Process, rusage) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_getrusage_thread(rusage: *mut uv_rusage_t) -> c_int {
    // SAFETY: the caller passes room for an answer.
    unsafe { get_usage(Who::Thread, rusage) }
}

#[unsafe(no_mangle)]
extern "C" fn uv_disable_stdio_inheritance() {
    own_process::set_cloexec_on_all();
}
