//! Options for a child: programs that are there or not, arguments, environments, directories,
//! users, flags and arrays of descriptors.
//!
//! Both libraries answer the same, the child ends in the same way, sees the same descriptors open,
//! and nothing is left of it: no child, and no descriptor.

use crate::api::{Api, OURS};
use crate::input::Input;
use crate::original::{compare_for, original};
use crate::uses::Held;
use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::ptr::{null, null_mut};
use uv_binding::{
    Room, UV_CREATE_PIPE, UV_IGNORE, UV_INHERIT_FD, UV_INHERIT_STREAM, uv_loop_t, uv_pipe_t,
    uv_process_options_t, uv_process_t, uv_stdio_container_t, uv_stdio_container_t_data as Data,
    zeroed,
};

/// What a shell may run: exit with a bit for each of the first eight descriptors that is open, that
/// is the null device, that is the same file as the first one, or be killed.
const SCRIPTS: &[&CStr] = &[
    c"n=0;b=1;for f in 0 1 2 3 4 5 6 7;do [ -e /proc/self/fd/$f ]&&n=$((n+b));b=$((b*2));done;exit $n",
    c"n=0;b=1;for f in 0 1 2 3 4 5 6 7;do [ /proc/self/fd/$f -ef /dev/null ]&&n=$((n+b));b=$((b*2));done;exit $n",
    c"n=0;b=1;for f in 0 1 2 3 4 5 6 7;do [ /proc/self/fd/$f -ef /proc/self/fd/0 ]&&n=$((n+b));b=$((b*2));done;exit $n",
    c"kill -9 $$",
];

const SETUID_OR_SETGID: u32 = 3;

const FILES: &[&CStr] = &[
    c"sh",
    c"/bin/sh",
    c"true",
    c"false",
    c"/bin/false",
    c"",
    c"/",
    c"/etc/passwd",
    c"no-such-program",
    c"./sh",
    c"/bin/sh/",
    c"/no/such",
    c"..",
];
const DIRECTORIES: &[Option<&CStr>] = &[
    None,
    Some(c"/"),
    Some(c"/bin"),
    Some(c""),
    Some(c"/etc/passwd"),
    Some(c"/no/such"),
];
const PATHS: &[&CStr] = &[
    c"PATH=/bin",
    c"PATH=",
    c"PATH=/no/such:/bin",
    c"PATH=:",
    c"X=1",
    c"PATH=/etc/passwd:/bin",
];

/// What becomes of one of the child's descriptors.
#[derive(Clone, Copy, Debug)]
enum Slot {
    Ignore,
    Pipe(c_int),
    File,
    Number(c_int),
    /// A stream that is open or not.
    Stream(bool),
}

#[derive(Debug)]
struct Script {
    file: &'static CStr,
    script: &'static CStr,
    args: bool,
    env: Option<Vec<&'static CStr>>,
    cwd: Option<&'static CStr>,
    flags: u32,
    ids: (u32, u32),
    slots: Vec<Slot>,
}

impl Script {
    fn new(data: &[u8]) -> Script {
        let mut input = Input::new(data);
        let file = input.pick(FILES);
        let (script, args) = (input.pick(SCRIPTS), input.below(8) != 7);
        let env = match input.below(4) {
            0..2 => None,
            _ => Some((0..input.below(4)).map(|_| input.pick(PATHS)).collect()),
        };
        let cwd = input.pick(DIRECTORIES);
        // User, group, detached, and those of Windows.
        let flags = u32::from(input.byte());
        let ids = (
            input.pick(&[0, 65534, 1, u32::MAX]),
            input.pick(&[0, 65534, 1, u32::MAX]),
        );
        let mut slots = Vec::new();
        for _ in 0..input.below(9) {
            slots.push(match input.byte() {
                0..80 => Slot::Ignore,
                // Readable, writable, both, and not blocking.
                byte @ 80..160 => Slot::Pipe(c_int::from(byte & 7) << 4),
                160..200 => Slot::File,
                byte @ 200..220 => Slot::Stream(byte & 1 == 1),
                _ => Slot::Number(input.pick(&[0, 1, 2, 3, 4, 5, 900, -1])),
            });
        }
        // A shell without arguments reads its script from there.
        if let (false, Some(Slot::Number(_) | Slot::Stream(_))) = (args, slots.first()) {
            slots[0] = Slot::File;
        }
        Script {
            file,
            script,
            args,
            env,
            cwd,
            flags,
            ids,
            slots,
        }
    }

    /// The original crashes without arguments. And it has two ways to start a child, one of them for
    /// children that become another user. The ways look for a program without a name differently,
    /// and report different ones of two mistakes; ours has only one.
    fn is_comparable(&self) -> bool {
        let other_user = self.flags & SETUID_OR_SETGID != 0;
        let closed = |slot: &Slot| match *slot {
            // SAFETY: the call takes no pointers.
            Slot::Number(fd) => unsafe { libc::fcntl(fd, libc::F_GETFD) == -1 },
            _ => false,
        };
        let no_directory = |path: &CStr| !Path::new(OsStr::from_bytes(path.to_bytes())).is_dir();
        self.args
            && !(other_user && self.file.is_empty())
            && (other_user
                || !(self.slots.iter().any(closed) && self.cwd.is_some_and(no_directory)))
    }
}

unsafe extern "C" fn ended(process: *mut uv_process_t, status: i64, signal: c_int) {
    // SAFETY: the handle's data is where the end is kept.
    unsafe { *(*process).data.cast::<Option<(i64, c_int)>>() = Some((status, signal)) };
}

fn array(strings: &[&CStr]) -> Vec<*const c_char> {
    strings
        .iter()
        .map(|string| string.as_ptr())
        .chain([null()])
        .collect()
}

/// A new pipe handle.
///
/// # Safety
///
/// The loop is open, and the handles outlive it.
#[allow(clippy::vec_box, reason = "handles must not move")]
unsafe fn pipe(api: &Api, loop_: *mut uv_loop_t, pipes: &mut Vec<Box<Room>>) -> *mut uv_pipe_t {
    let mut pipe = Room::new();
    let address = pipe.ptr();
    // SAFETY: the caller vouches for the loop.
    assert_eq!(unsafe { (api.uv_pipe_init)(loop_, address, 0) }, 0);
    pipes.push(pipe);
    address
}

fn play(api: &'static Api, script: &Script) -> (c_int, Option<(i64, c_int)>) {
    let held = Held::now();
    let null_device: OwnedFd = std::fs::File::open("/dev/null").expect("a device").into();
    let (mut loop_, mut process) = (Room::new(), Room::new());
    let mut pipes: Vec<Box<Room>> = Vec::new();
    let mut end = None;
    let args = array(&[script.file, c"-c", script.script]);
    let env = script.env.as_deref().map(array);
    // SAFETY: loop and handles are initialised before they are used, and outlive the loop; the
    // options live through the call.
    let code = unsafe {
        assert_eq!((api.uv_loop_init)(loop_.ptr()), 0);
        let mut stdio = Vec::new();
        for &slot in &script.slots {
            let (flags, data) = match slot {
                Slot::Ignore => (UV_IGNORE, Data { fd: 0 }),
                Slot::File => {
                    let fd = null_device.as_raw_fd();
                    (UV_INHERIT_FD, Data { fd })
                }
                Slot::Number(fd) => (UV_INHERIT_FD, Data { fd }),
                Slot::Pipe(flags) => {
                    let stream = pipe(api, loop_.ptr(), &mut pipes).cast();
                    (UV_CREATE_PIPE | flags, Data { stream })
                }
                Slot::Stream(open) => {
                    let stream = pipe(api, loop_.ptr(), &mut pipes);
                    if open {
                        let (own, _) = UnixStream::pair().expect("two sockets");
                        assert_eq!((api.uv_pipe_open)(stream, own.into_raw_fd()), 0);
                    }
                    let stream = stream.cast();
                    (UV_INHERIT_STREAM, Data { stream })
                }
            };
            stdio.push(uv_stdio_container_t { flags, data });
        }
        let options = uv_process_options_t {
            exit_cb: Some(ended),
            file: script.file.as_ptr(),
            args: match script.args {
                true => args.as_ptr().cast_mut().cast(),
                false => null_mut(),
            },
            env: env
                .as_ref()
                .map_or(null_mut(), |env| env.as_ptr().cast_mut().cast()),
            cwd: script.cwd.map_or(null(), CStr::as_ptr),
            flags: script.flags,
            stdio_count: stdio.len() as c_int,
            stdio: stdio.as_mut_ptr(),
            uid: script.ids.0,
            gid: script.ids.1,
        };
        process.data = (&raw mut end).cast();
        let code = (api.uv_spawn)(loop_.ptr(), process.ptr(), &options);
        // Closed pipes are what a shell without a script ends by.
        for pipe in &mut pipes {
            (api.uv_close)(pipe.ptr(), None);
        }
        (api.uv_run)(loop_.ptr(), 0);
        (api.uv_close)(process.ptr(), None);
        assert_eq!((api.uv_run)(loop_.ptr(), 0), 0);
        assert_eq!((api.uv_loop_close)(loop_.ptr()), 0);
        code
    };
    drop(null_device);
    assert_eq!(code == 0, end.is_some(), "a child ends if there was one");
    held.assert_unchanged();
    (code, end)
}

/// Starts one child.
pub fn run(data: &[u8]) {
    let script = Script::new(data);
    // Libraries keep some descriptors for good once they have had a child.
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        [Some(&OURS), original()]
            .into_iter()
            .flatten()
            .for_each(warm_up)
    });
    match script.is_comparable() {
        true => drop(compare_for(&script, |api| play(api, &script))),
        false => drop(play(&OURS, &script)),
    }
}

/// Has one child, unobserved.
fn warm_up(api: &'static Api) {
    let (mut loop_, mut process) = (Room::new(), Room::new());
    let args = array(&[c"true"]);
    // SAFETY: as in `play`.
    unsafe {
        assert_eq!((api.uv_loop_init)(loop_.ptr()), 0);
        let options = uv_process_options_t {
            file: c"true".as_ptr(),
            args: args.as_ptr().cast_mut().cast(),
            ..zeroed()
        };
        assert_eq!((api.uv_spawn)(loop_.ptr(), process.ptr(), &options), 0);
        (api.uv_run)(loop_.ptr(), 0);
        (api.uv_close)(process.ptr(), None);
        (api.uv_run)(loop_.ptr(), 0);
        assert_eq!((api.uv_loop_close)(loop_.ptr()), 0);
    }
}
