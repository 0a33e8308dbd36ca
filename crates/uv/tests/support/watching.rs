//! What the tests of file system event handles have in common: a loop whose events are
//! collected.

#![allow(dead_code, reason = "no test uses all of it")]
#![allow(missing_docs, reason = "this is part of a test")]

use std::ffi::{CStr, CString, c_char, c_int, c_uint};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use uv as _;
pub(crate) use uv_binding::*;

pub(crate) const RECURSIVE: c_uint = UV_FS_EVENT_RECURSIVE as c_uint;

pub(crate) type Cb = unsafe extern "C" fn(*mut uv_fs_event_t, *const c_char, c_int, c_int);

/// A directory of the test's own, removed at its end.
pub(crate) struct Root(pub PathBuf);

impl Root {
    pub(crate) fn new() -> Root {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "blacklight-fs-event-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        // Numbers of processes are used again, and one that was killed has left its own.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Root(path)
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str) {
        fs::write(self.at(name), name).unwrap();
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn c_path(path: &Path) -> CString {
    CString::new(path.to_str().unwrap()).unwrap()
}

/// A loop with any number of watchers, whose events are collected.
#[allow(
    clippy::vec_box,
    clippy::box_collection,
    reason = "their addresses are known to C"
)]
pub(crate) struct Watching {
    pub(crate) l: Box<uv_loop_t>,
    pub(crate) handles: Vec<Box<uv_fs_event_t>>,
    pub(crate) log: Box<Vec<Seen>>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    pub(crate) handle: usize,
    pub(crate) name: Option<String>,
    pub(crate) events: c_int,
    pub(crate) status: c_int,
}

/// What a handle's `data` points to.
struct Context {
    pub(crate) log: *mut Vec<Seen>,
    pub(crate) handle: usize,
}

pub(crate) unsafe extern "C" fn collect(
    handle: *mut uv_fs_event_t,
    name: *const c_char,
    events: c_int,
    status: c_int,
) {
    // SAFETY: `data` points to a context that outlives the handle, and the name is a C string.
    unsafe {
        let context = &*(*handle).data.cast::<Context>();
        let name = (!name.is_null()).then(|| CStr::from_ptr(name).to_str().unwrap().to_owned());
        (*context.log).push(Seen {
            handle: context.handle,
            name,
            events,
            status,
        });
    }
}

impl Watching {
    pub(crate) fn new() -> Watching {
        let mut l = Box::new(zeroed::<uv_loop_t>());
        // SAFETY: the memory is a loop's.
        assert_eq!(unsafe { uv_loop_init(&mut *l) }, 0);
        Watching {
            l,
            handles: Vec::new(),
            log: Box::default(),
        }
    }

    pub(crate) fn add(&mut self, path: &Path, flags: c_uint) -> Result<usize, c_int> {
        self.add_with(path, flags, collect)
    }

    pub(crate) fn add_with(&mut self, path: &Path, flags: c_uint, cb: Cb) -> Result<usize, c_int> {
        let handle = self.handles.len();
        let context = Box::leak(Box::new(Context {
            log: &mut *self.log,
            handle,
        }));
        let mut new = Box::new(uv_fs_event_t {
            data: (&raw mut *context).cast(),
            ..garbage()
        });
        // SAFETY: an initialised loop, memory for a handle that outlives it, a C string.
        let started = unsafe {
            assert_eq!(uv_fs_event_init(&mut *self.l, &mut *new), 0);
            uv_fs_event_start(&mut *new, Some(cb), c_path(path).as_ptr(), flags)
        };
        self.handles.push(new);
        match started {
            0 => Ok(handle),
            error => Err(error),
        }
    }

    pub(crate) fn run(&mut self, mode: c_int) {
        // SAFETY: an initialised loop.
        unsafe { uv_run(&mut *self.l, mode) };
    }

    /// All that is there to be told.
    pub(crate) fn drain(&mut self) -> Vec<Seen> {
        let mut before = usize::MAX;
        while before != self.log.len() {
            before = self.log.len();
            self.run(UV_RUN_NOWAIT);
        }
        std::mem::take(&mut *self.log)
    }

    /// The same, as names and kinds.
    pub(crate) fn events(&mut self) -> Vec<(String, c_int)> {
        let seen = self.drain().into_iter();
        seen.map(|seen| {
            assert_eq!(seen.status, 0);
            (seen.name.unwrap_or_default(), seen.events)
        })
        .collect()
    }

    pub(crate) fn stop(&mut self, handle: usize) {
        // SAFETY: an initialised handle.
        assert_eq!(unsafe { uv_fs_event_stop(&mut *self.handles[handle]) }, 0);
    }

    pub(crate) fn is_active(&self, handle: usize) -> bool {
        // SAFETY: an initialised handle.
        unsafe { uv_is_active(&*self.handles[handle]) == 1 }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // SAFETY: the loop and its handles live to the end of this.
        unsafe {
            for handle in &mut self.handles {
                uv_close(&mut **handle, None);
            }
            uv_run(&mut *self.l, 0);
            assert_eq!(uv_loop_close(&mut *self.l), 0);
        }
    }
}

pub(crate) fn pairs(expected: &[(&str, c_int)]) -> Vec<(String, c_int)> {
    expected
        .iter()
        .map(|&(name, events)| (name.to_owned(), events))
        .collect()
}
