//! `uv_fs_poll_t`: stopping, starting and closing at every stage.

#[path = "support/fs.rs"]
mod fs;

use fs::*;
use std::ffi::c_int;
use std::ptr::null_mut;

/// What the callbacks of one handle have seen.
#[derive(Default)]
struct Seen {
    calls: Vec<(c_int, u64, u64)>,
    closed: u32,
    /// What the callback does: called with the handle and the number of calls so far.
    act: Option<Box<dyn FnMut(*mut uv_fs_poll_t, usize)>>,
}

unsafe extern "C" fn changed(
    handle: *mut uv_fs_poll_t,
    status: c_int,
    before: *const uv_stat_t,
    now: *const uv_stat_t,
) {
    // SAFETY: `data` is a Seen that outlives the handle; both descriptions are valid now.
    unsafe {
        let seen = (*handle).data.cast::<Seen>();
        let call = (status, (*before).st_size, (*now).st_size);
        (*seen).calls.push(call);
        let count = (*seen).calls.len();
        if let Some(mut act) = (*seen).act.take() {
            act(handle, count);
            (*seen).act = Some(act);
        }
    }
}

unsafe extern "C" fn closed(handle: *mut uv_fs_poll_t) {
    // SAFETY: as above.
    unsafe { (*(*handle).data.cast::<Seen>()).closed += 1 };
}

struct Fixture {
    loop_: OwnLoop,
    handle: Box<uv_fs_poll_t>,
    seen: Box<Seen>,
}

impl Fixture {
    fn new() -> Fixture {
        let mut seen = Box::new(Seen::default());
        let mut loop_ = OwnLoop::new();
        let mut handle = Box::new(uv_fs_poll_t {
            data: (&raw mut *seen).cast(),
            ..garbage()
        });
        // SAFETY: there is room for a handle, which lives as long as the loop.
        unsafe { assert_eq!(uv_fs_poll_init(loop_.ptr(), &mut *handle), 0) };
        Fixture {
            loop_,
            handle,
            seen,
        }
    }

    fn start(&mut self, scratch: &Scratch, name: &str) {
        let path = scratch.c(name);
        // SAFETY: the handle is initialised; the path is copied.
        unsafe {
            let started = uv_fs_poll_start(&mut *self.handle, Some(changed), path.as_ptr(), 5);
            assert_eq!(started, 0);
            assert_eq!(uv_is_active(&*self.handle), 1);
        }
    }

    fn close(&mut self) {
        // SAFETY: the handle is initialised.
        unsafe { uv_close(&mut *self.handle, Some(closed)) };
    }
}

#[test]
fn changes_errors_and_returns_are_told_once() {
    let scratch = Scratch::new("poll");
    let file = scratch.at("file");
    let mut fixture = Fixture::new();
    fixture.seen.act = Some(Box::new(move |handle, count| match count {
        1 => std::fs::write(&file, "one").unwrap(),
        2 => std::fs::write(&file, "three").unwrap(),
        3 => std::fs::remove_file(&file).unwrap(),
        4 => std::fs::write(&file, "sevenxx").unwrap(),
        // SAFETY: the handle is initialised.
        _ => unsafe { uv_close(handle, Some(closed)) },
    }));
    fixture.start(&scratch, "file");
    fixture.loop_.run();
    let gone = -libc::ENOENT;
    // The next question is asked after the callback, so each change is seen whole. What was
    // known of the file is remembered while it is gone.
    let expected = [(gone, 0, 0), (0, 0, 3), (0, 3, 5), (gone, 5, 0), (0, 5, 7)];
    assert_eq!(fixture.seen.calls, expected);
    assert_eq!(fixture.seen.closed, 1);
}

#[test]
fn a_handle_can_be_stopped_and_started_while_it_asks() {
    let scratch = Scratch::new("poll-restart");
    let mut fixture = Fixture::new();
    for round in 0..20 {
        fixture.start(&scratch, "nothing");
        if round % 3 == 0 {
            // SAFETY: the loop is ours.
            unsafe { uv_run(fixture.loop_.ptr(), 2) };
        }
        // SAFETY: the handle is initialised.
        unsafe {
            assert_eq!(uv_fs_poll_stop(&mut *fixture.handle), 0);
            assert_eq!(uv_fs_poll_stop(&mut *fixture.handle), 0);
            assert_eq!(uv_is_active(&*fixture.handle), 0);
        }
    }
    fixture.seen.act = Some(Box::new(|handle, count| {
        // SAFETY: the handle is initialised, and the path is copied.
        unsafe {
            assert_eq!(uv_fs_poll_stop(handle), 0);
            match count {
                1 => {
                    let path = c"/nonexistent/file".as_ptr();
                    assert_eq!(uv_fs_poll_start(handle, Some(changed), path, 1), 0);
                }
                _ => uv_close(handle, Some(closed)),
            }
        }
    }));
    fixture.seen.calls.clear();
    fixture.start(&scratch, "nothing");
    fixture.loop_.run();
    assert_eq!(fixture.seen.calls, [(-libc::ENOENT, 0, 0); 2]);
    assert_eq!(fixture.seen.closed, 1);
}

#[test]
fn closing_comes_after_the_last_request() {
    let scratch = Scratch::new("poll-close");
    for turns in 0..4 {
        let mut fixture = Fixture::new();
        for _ in 0..3 {
            fixture.start(&scratch, "nothing");
            // SAFETY: the handle is initialised.
            unsafe { uv_fs_poll_stop(&mut *fixture.handle) };
        }
        fixture.start(&scratch, "nothing");
        for _ in 0..turns {
            // SAFETY: the loop is ours.
            unsafe { uv_run(fixture.loop_.ptr(), 2) };
        }
        fixture.close();
        while fixture.seen.closed == 0 {
            // SAFETY: the loop is ours.
            unsafe { uv_run(fixture.loop_.ptr(), 1) };
        }
        // The fixture's loop closes only if nothing is left in it.
    }
}

#[test]
fn the_path_is_the_handles_own() {
    let scratch = Scratch::new("poll-path");
    let mut fixture = Fixture::new();
    let expected = scratch.c("nothing");
    let expected = expected.to_bytes_with_nul();
    let mut buffer = vec![1u8; 4096];
    let mut getpath = |handle: &mut uv_fs_poll_t, mut size: usize| {
        // SAFETY: the handle is initialised, and the buffer is larger than any size given.
        let code = unsafe { uv_fs_poll_getpath(handle, buffer.as_mut_ptr().cast(), &mut size) };
        (code, size, buffer[..expected.len()].to_vec())
    };
    assert_eq!(getpath(&mut fixture.handle, 4096).0, -libc::EINVAL);
    fixture.start(&scratch, "nothing");
    let len = expected.len() - 1;
    let (code, size, _) = getpath(&mut fixture.handle, len);
    assert_eq!((code, size), (-libc::ENOBUFS, len + 1));
    let (code, size, path) = getpath(&mut fixture.handle, len + 1);
    assert_eq!((code, size, path.as_slice()), (0, len, expected));
    // SAFETY: a null path is refused before anything else happens.
    unsafe {
        uv_fs_poll_stop(&mut *fixture.handle);
        let refused = uv_fs_poll_start(&mut *fixture.handle, None, null_mut(), 1);
        assert_eq!(refused, -libc::EINVAL);
    }
    fixture.close();
    // SAFETY: the handle is initialised, if closing.
    unsafe {
        let refused = uv_fs_poll_start(&mut *fixture.handle, None, c"/".as_ptr(), 1);
        assert_eq!(refused, -libc::EINVAL);
    }
    fixture.loop_.run();
}
