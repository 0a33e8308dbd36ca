//! Requests for files, with paths of all kinds.
//!
//! A script of requests runs in a small directory, with one library and with the other: each
//! request has the same result, and the same tree is there at the end. Paths have odd bytes, empty
//! and over-long parts, slashes at their ends, and lead over symbolic links, but never out of the
//! directory: no part is `..`, and no link begins with a slash. Requests are made with an ordinary
//! user's rights, so that modes count and a mistake in this cannot do harm. Half of the scripts have
//! a loop and its thread pool make them.

use crate::api::{Api, OURS};
use crate::input::Input;
use crate::original::{compare, original};
use crate::scratch::{Scratch, Unprivileged};
use crate::uses::Held;
use std::ffi::{CStr, CString, OsStr, c_char, c_int};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::ptr::null_mut;
use uv_binding::{Room, uv_dirent_t, uv_fs_cb, uv_fs_t, uv_loop_t};

/// What paths are made of.
const PARTS: &[&[u8]] = &[
    b"a",
    b"b",
    b"c",
    b".",
    b"",
    b"d",
    b"e",
    b"\xff\xfe",
    b"\xc3\xbc",
    b"a b",
    b"-",
    b"%s%n",
    b"...",
    b"XXXXXX",
    b"aXXXXXX",
    b"\n",
];

/// The most requests of one script.
const STEPS: usize = 24;

/// A path below the directory, without the slash that it may begin with.
fn path(input: &mut Input<'_>) -> Vec<u8> {
    let mut parts = Vec::new();
    for _ in 0..input.pick(&[1, 1, 1, 2, 2, 3, 4]) {
        parts.push(match input.byte() {
            // 255 bytes are a name, 256 are not.
            250.. => vec![b'n'; 254 + input.below(4)],
            240..250 => {
                let count = input.below(8);
                let raw = input.bytes(count).iter().copied();
                raw.filter(|byte| !b"\0/".contains(byte)).collect()
            }
            byte => PARTS[usize::from(byte) % PARTS.len()].to_vec(),
        });
    }
    for part in &mut parts {
        if part == b".." {
            part.push(b'.');
        }
    }
    let mut path = parts.join(&b'/');
    if input.below(32) == 31 {
        // Longer than any path may be.
        path.extend(b"/l".repeat(2050));
    }
    let slashes = path.iter().take_while(|&&byte| byte == b'/').count();
    path.split_off(slashes)
}

/// A request, and what it said.
struct Request {
    api: &'static Api,
    /// The loop that tells when it is done; without one it is done at once.
    loop_: Option<*mut uv_loop_t>,
    memory: Box<Room>,
}

type OnPath = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *const c_char, uv_fs_cb) -> c_int;

/// Whether a failed request has kept its path. A template may be filled in, or emptied.
fn is_still(kept: &CStr, path: &CStr) -> bool {
    let (kept, path) = (kept.to_bytes(), path.to_bytes());
    match path.strip_suffix(b"XXXXXX") {
        Some(prefix) => kept.is_empty() || kept.starts_with(prefix),
        None => kept.is_empty() || kept == path,
    }
}

/// Counts in the request's data.
unsafe extern "C" fn called(request: *mut uv_fs_t) {
    // SAFETY: the data is a number that lives until the loop has run.
    unsafe { *(*request).data.cast::<u32>() += 1 };
}

impl Request {
    /// Makes a request, and waits for it. What it says of itself is what the call said.
    fn make(
        &mut self,
        path: &CStr,
        call: impl FnOnce(*mut uv_loop_t, *mut uv_fs_t, uv_fs_cb) -> c_int,
    ) -> c_int {
        let mut calls = 0;
        self.memory.data = (&raw mut calls).cast();
        let (api, request) = (self.api, self.memory.ptr());
        let mut code = match self.loop_ {
            None => call(null_mut(), request, None),
            Some(loop_) => call(loop_, request, Some(called)),
        };
        // SAFETY: the request was filled in, and the loop is open.
        unsafe {
            match self.loop_ {
                // Turned down before anything was done.
                Some(_) if code < 0 => return code,
                Some(loop_) => {
                    assert_eq!((api.uv_run)(loop_, 0), 0);
                    assert_eq!(calls, 1);
                    code = (api.uv_fs_get_result)(request) as c_int;
                }
                None => assert_eq!((api.uv_fs_get_result)(request), code as isize),
            }
            let kept = (api.uv_fs_get_path)(request);
            let kept = (!kept.is_null() && code < 0).then(|| CStr::from_ptr(kept));
            assert!(kept.is_none_or(|kept| is_still(kept, path)), "{kept:?}");
        }
        code
    }

    fn on_path(&mut self, path: &CStr, call: OnPath) -> c_int {
        // SAFETY: the path ends in a NUL, and `make` waits.
        self.make(path, |l, r, cb| unsafe { call(l, r, path.as_ptr(), cb) })
    }

    /// The text that the request has found.
    fn text(&self) -> Vec<u8> {
        let request = std::ptr::from_ref(&*self.memory).cast();
        // SAFETY: the request has found a text.
        unsafe {
            let text = (self.api.uv_fs_get_ptr)(request).cast::<c_char>();
            CStr::from_ptr(text).to_bytes().to_vec()
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        // SAFETY: the request is done. Twice is as good as once.
        unsafe {
            (self.api.uv_fs_req_cleanup)(self.memory.ptr());
            (self.api.uv_fs_req_cleanup)(self.memory.ptr());
            assert!((self.api.uv_fs_get_ptr)(self.memory.ptr()).is_null());
        }
    }
}

/// A script as it runs.
struct Run<'a> {
    api: &'static Api,
    loop_: Option<*mut uv_loop_t>,
    root: &'a Path,
    trace: Vec<String>,
}

impl Run<'_> {
    fn absolute(&self, below: &[u8]) -> CString {
        let mut path = self.root.as_os_str().as_bytes().to_vec();
        path.push(b'/');
        path.extend(below);
        CString::new(path).expect("no NUL")
    }

    fn request(&self) -> Request {
        Request {
            api: self.api,
            loop_: self.loop_,
            memory: Room::new(),
        }
    }

    fn close(&self, fd: c_int) {
        let mut request = self.request();
        // SAFETY: the descriptor is open, and `make` waits.
        let closed = request.make(c"", |l, r, cb| unsafe {
            (self.api.uv_fs_close)(l, r, fd, cb)
        });
        assert_eq!(closed, 0);
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let choice = input.below(24);
        let below = path(input);
        let at = self.absolute(&below);
        let said = match choice {
            0..7 => self.make_something(choice, &at, input),
            7 => self.temporary(&at, input.flip()),
            8..14 => self.two_paths(choice, &below, &at, input),
            22 => self.directory(&at),
            23 => self.list(&at),
            _ => self.look(choice, &at, input),
        };
        self.trace
            .push(format!("{choice} {:?}: {said}", OsStr::from_bytes(&below)));
    }

    fn make_something(&mut self, choice: usize, at: &CStr, input: &mut Input<'_>) -> String {
        let api = self.api;
        let mut request = self.request();
        let mode = c_int::from(input.pick(&[0o700u16, 0o755, 0o644, 0, 0o7777]));
        // SAFETY: paths end in a NUL, and `make` waits.
        let code = unsafe {
            match choice {
                0 | 1 => {
                    let flags = [
                        libc::O_CREAT | libc::O_WRONLY,
                        libc::O_RDONLY,
                        libc::O_CREAT | libc::O_EXCL | libc::O_RDWR,
                        libc::O_RDONLY | libc::O_DIRECTORY,
                        libc::O_RDONLY | libc::O_NOFOLLOW,
                        libc::O_WRONLY | libc::O_TRUNC | libc::O_APPEND,
                    ];
                    let flags = input.pick(&flags);
                    let fd = request.make(at, |l, r, cb| {
                        (api.uv_fs_open)(l, r, at.as_ptr(), flags, mode, cb)
                    });
                    if fd >= 0 {
                        self.close(fd);
                    }
                    fd.min(0)
                }
                2 | 3 => request.make(at, |l, r, cb| {
                    (api.uv_fs_mkdir)(l, r, at.as_ptr(), mode, cb)
                }),
                4 => request.on_path(at, api.uv_fs_rmdir),
                5 => request.on_path(at, api.uv_fs_unlink),
                _ => request.make(at, |l, r, cb| {
                    (api.uv_fs_chmod)(l, r, at.as_ptr(), mode, cb)
                }),
            }
        };
        code.to_string()
    }

    /// Names that the library makes up are the prefix and six characters; the file is removed, since
    /// no two runs have the same.
    fn temporary(&mut self, at: &CStr, directory: bool) -> String {
        let (mut request, api) = (self.request(), self.api);
        let call = match directory {
            true => api.uv_fs_mkdtemp,
            false => api.uv_fs_mkstemp,
        };
        let code = request.on_path(at, call);
        // SAFETY: the request has a template of its own, whatever became of it.
        let made = unsafe { CStr::from_ptr((api.uv_fs_get_path)(request.memory.ptr())) };
        let made = made.to_bytes();
        if code < 0 {
            return format!("{code}, emptied: {}", made.is_empty());
        }
        let prefix = at.to_bytes().strip_suffix(b"XXXXXX").expect("a template");
        assert_eq!(made.strip_prefix(prefix).map(<[u8]>::len), Some(6));
        let made = Path::new(OsStr::from_bytes(made));
        let removed = match directory {
            true => fs::remove_dir(made),
            false => {
                self.close(code);
                fs::remove_file(made)
            }
        };
        removed.expect("what was made is there");
        "made".to_owned()
    }

    fn two_paths(
        &mut self,
        choice: usize,
        below: &[u8],
        at: &CStr,
        input: &mut Input<'_>,
    ) -> String {
        let api = self.api;
        let (second, flags) = (path(input), c_int::from(input.byte() & 7));
        let to = self.absolute(&second);
        let target = CString::new(below).expect("no NUL");
        if choice == 13 && is_directory(at) {
            return self.copy_of_directory(at, &to, flags);
        }
        let mut request = self.request();
        // SAFETY: paths end in a NUL, and `make` waits.
        let code = unsafe {
            match choice {
                8 | 9 => request.make(at, |l, r, cb| {
                    (api.uv_fs_rename)(l, r, at.as_ptr(), to.as_ptr(), cb)
                }),
                10 => request.make(at, |l, r, cb| {
                    (api.uv_fs_link)(l, r, at.as_ptr(), to.as_ptr(), cb)
                }),
                11 | 12 => request.make(&target, |l, r, cb| {
                    (api.uv_fs_symlink)(l, r, target.as_ptr(), to.as_ptr(), 0, cb)
                }),
                _ => request.make(at, |l, r, cb| {
                    (api.uv_fs_copyfile)(l, r, at.as_ptr(), to.as_ptr(), flags, cb)
                }),
            }
        };
        format!("{:?}, {flags}: {code}", OsStr::from_bytes(&second))
    }

    /// Copying a directory: ours refuses before it looks at the destination, where the original
    /// opens it first, says what went wrong with that, and removes a file that it could open.
    fn copy_of_directory(&self, at: &CStr, to: &CStr, flags: c_int) -> String {
        if std::ptr::eq(self.api, &OURS) {
            let mut request = self.request();
            // SAFETY: paths end in a NUL, and `make` waits.
            let code = request.make(at, |l, r, cb| unsafe {
                (self.api.uv_fs_copyfile)(l, r, at.as_ptr(), to.as_ptr(), flags, cb)
            });
            assert!([-libc::EISDIR, -libc::EACCES].contains(&code));
        }
        "refused".to_owned()
    }

    fn look(&mut self, choice: usize, at: &CStr, input: &mut Input<'_>) -> String {
        let api = self.api;
        let mut request = self.request();
        // SAFETY: paths end in a NUL, and `make` waits.
        unsafe {
            match choice {
                14 | 15 => {
                    let call = [api.uv_fs_readlink, api.uv_fs_realpath][choice - 14];
                    match request.on_path(at, call) {
                        0 => format!("{:?}", OsStr::from_bytes(&request.text())),
                        code => code.to_string(),
                    }
                }
                16 | 17 => {
                    let call = [api.uv_fs_stat, api.uv_fs_lstat][choice - 16];
                    let code = request.on_path(at, call);
                    let stat = *(api.uv_fs_get_statbuf)(request.memory.ptr());
                    // Mode, links, user and group; the rest differs from run to run.
                    let same = [stat.st_mode, stat.st_nlink, stat.st_uid, stat.st_gid];
                    let same = if code == 0 { &same[..] } else { &[] };
                    format!("{code} {same:?}")
                }
                18 => {
                    let mode = c_int::from(input.byte() & 7);
                    let access = |l, r, cb| (api.uv_fs_access)(l, r, at.as_ptr(), mode, cb);
                    request.make(at, access).to_string()
                }
                19 => {
                    let time = f64::from(input.word()) / 8.0 - 1000.0;
                    let call = [api.uv_fs_utime, api.uv_fs_lutime][input.below(2)];
                    let code = request.make(at, |l, r, cb| call(l, r, at.as_ptr(), time, time, cb));
                    let is_link = call as usize == api.uv_fs_lutime as usize;
                    format!("{code} {:?}", modified(at, is_link))
                }
                20 => {
                    let call = [api.uv_fs_chown, api.uv_fs_lchown][input.below(2)];
                    let chown = |l, r, cb| call(l, r, at.as_ptr(), u32::MAX, libc::getgid(), cb);
                    request.make(at, chown).to_string()
                }
                _ => request.on_path(at, api.uv_fs_statfs).to_string(),
            }
        }
    }

    /// The names in a directory and what they are.
    fn list(&mut self, at: &CStr) -> String {
        let mut request = self.request();
        // SAFETY: the path ends in a NUL, and entries live as long as the request.
        unsafe {
            let count = request.make(at, |l, r, cb| {
                (self.api.uv_fs_scandir)(l, r, at.as_ptr(), 0, cb)
            });
            let mut found = Vec::new();
            let mut entry = uv_dirent_t {
                name: std::ptr::null(),
                type_: -1,
            };
            while (self.api.uv_fs_scandir_next)(request.memory.ptr(), &mut entry) == 0 {
                let name = CStr::from_ptr(entry.name).to_owned();
                found.push((name, entry.type_));
            }
            assert_eq!(found.len(), count.max(0) as usize);
            format!("{count} {found:?}")
        }
    }

    /// Opens a directory and closes it.
    fn directory(&mut self, at: &CStr) -> String {
        let mut request = self.request();
        let code = request.on_path(at, self.api.uv_fs_opendir);
        if code == 0 {
            // SAFETY: the request has opened a directory.
            unsafe {
                let open = (self.api.uv_fs_get_ptr)(request.memory.ptr());
                let mut close = self.request();
                let closed = close.make(c"", |l, r, cb| {
                    (self.api.uv_fs_closedir)(l, r, open.cast(), cb)
                });
                assert_eq!(closed, 0);
            }
        }
        code.to_string()
    }
}

fn is_directory(at: &CStr) -> bool {
    Path::new(OsStr::from_bytes(at.to_bytes())).is_dir()
}

/// When a file was last changed.
fn modified(at: &CStr, link: bool) -> Option<(i64, i64)> {
    let path = Path::new(OsStr::from_bytes(at.to_bytes()));
    let found = match link {
        true => fs::symlink_metadata(path),
        false => fs::metadata(path),
    };
    found.ok().map(|found| (found.mtime(), found.mtime_nsec()))
}

/// The tree below a directory, in which a script may have forbidden its owner to look.
fn tree(directory: &Path, found: &mut Vec<String>) {
    let owner_may_look = fs::Permissions::from_mode(0o700);
    fs::set_permissions(directory, owner_may_look).expect("the directory is ours");
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let data = fs::symlink_metadata(&path).expect("it is there");
        let link = fs::read_link(&path).ok();
        let (mode, nlink) = (data.permissions().mode(), data.nlink());
        let text = data.is_file().then(|| fs::read(&path).ok());
        found.push(format!("{path:?} {mode:o} {nlink} {link:?} {text:?}"));
        if data.is_dir() {
            tree(&path, found);
        }
    }
}

/// What a script finds: files, one of which nobody may open, a directory, and links to a file, to
/// the directory, to nothing and to itself.
fn plant(root: &Path) {
    let _unprivileged = Unprivileged::become_on_this_thread();
    let link = |to: &str, name: &[u8]| symlink(to, root.join(OsStr::from_bytes(name)));
    fs::create_dir(root.join("d"))
        .and_then(|()| fs::write(root.join("a"), "abc"))
        .and_then(|()| fs::write(root.join("b"), "b"))
        .and_then(|()| fs::set_permissions(root.join("b"), fs::Permissions::from_mode(0o000)))
        .and_then(|()| fs::write(root.join("d/a"), "in d"))
        .and_then(|()| link("a", b"c"))
        .and_then(|()| link("d", b"e"))
        .and_then(|()| link("none", b"-"))
        .and_then(|()| link("\u{fc}", "\u{fc}".as_bytes()))
        .expect("the directory is empty");
}

/// Runs a script.
pub fn run(data: &[u8]) {
    // The threads of a pool have the rights of who starts them, and stay.
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let some_steps = [1; 16];
        for api in [Some(&OURS), original()].into_iter().flatten() {
            play(api, &some_steps);
        }
        Held::await_idle_workers();
    });
    compare(|api| {
        let held = Held::now();
        let trace = play(api, data);
        held.assert_unchanged();
        trace
    });
}

/// What a library says to the requests of a script, and the tree that is there at its end.
fn play(api: &'static Api, data: &[u8]) -> Vec<String> {
    let scratch = Scratch::new("paths");
    plant(scratch.path());
    let mut input = Input::new(data);
    let mut loop_ = Room::new();
    let with_loop = input.flip();
    let mut run = Run {
        api,
        loop_: with_loop.then(|| loop_.ptr()),
        root: scratch.path(),
        trace: Vec::new(),
    };
    {
        let _unprivileged = Unprivileged::become_on_this_thread();
        // SAFETY: there is room for a loop, which no request needs any more when it is closed.
        unsafe {
            if with_loop {
                assert_eq!((api.uv_loop_init)(loop_.ptr()), 0);
            }
            while !input.is_empty() && run.trace.len() < STEPS {
                run.step(&mut input);
            }
            if with_loop {
                assert_eq!((api.uv_loop_close)(loop_.ptr()), 0);
            }
        }
    }
    let mut trace = run.trace;
    tree(scratch.path(), &mut trace);
    trace
}
