//! File system event handles, through the C interface, as far as libuv has them on Linux: what
//! is told is what the original was seen to tell.

#[path = "support/watching.rs"]
mod watching;

use std::ffi::{CStr, c_char, c_int};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use watching::*;

#[test]
fn a_directory_tells_what_happens_to_its_entries() {
    let root = Root::new();
    let outside = Root::new();
    let mut watching = Watching::new();
    watching.add(&root.0, 0).unwrap();
    assert_eq!(watching.events(), []);
    root.write("new");
    let created = [("new", UV_RENAME), ("new", UV_CHANGE)];
    assert_eq!(watching.events(), pairs(&created));
    fs::set_permissions(root.at("new"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(watching.events(), pairs(&[("new", UV_CHANGE)]));
    fs::rename(root.at("new"), root.at("other")).unwrap();
    assert_eq!(
        watching.events(),
        pairs(&[("new", UV_RENAME), ("other", UV_RENAME)])
    );
    fs::rename(root.at("other"), outside.at("other")).unwrap();
    assert_eq!(watching.events(), pairs(&[("other", UV_RENAME)]));
    fs::rename(outside.at("other"), root.at("back")).unwrap();
    assert_eq!(watching.events(), pairs(&[("back", UV_RENAME)]));
    fs::remove_file(root.at("back")).unwrap();
    assert_eq!(watching.events(), pairs(&[("back", UV_RENAME)]));
    fs::create_dir(root.at("sub")).unwrap();
    root.write("sub/hidden");
    assert_eq!(
        watching.events(),
        pairs(&[("sub", UV_RENAME)]),
        "what is below is not told"
    );
    let anything = UV_RENAME | UV_CHANGE;
    fs::set_permissions(root.at("sub"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(watching.events(), pairs(&[("sub", anything)]));
    fs::set_permissions(&root.0, fs::Permissions::from_mode(0o700)).unwrap();
    let told = watching.events();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].1, anything, "it goes by its own name");
}

#[test]
fn a_file_goes_by_its_last_name_and_ends_when_it_is_replaced() {
    let root = Root::new();
    root.write("file");
    root.write("next");
    let mut watching = Watching::new();
    let handle = watching.add(&root.at("file"), 0).unwrap();
    fs::OpenOptions::new()
        .append(true)
        .open(root.at("file"))
        .unwrap();
    assert_eq!(watching.events(), [], "opening changes nothing");
    root.write("file");
    let events = watching.events();
    assert!(
        !events.is_empty()
            && events
                .iter()
                .all(|event| *event == ("file".into(), UV_CHANGE))
    );
    fs::rename(root.at("next"), root.at("file")).unwrap();
    let replaced = [
        ("file", UV_CHANGE),
        ("file", UV_RENAME),
        ("file", UV_RENAME),
    ];
    assert_eq!(
        watching.events(),
        pairs(&replaced),
        "as the original tells it"
    );
    root.write("file");
    assert_eq!(watching.events(), [], "the new file is another");
    assert!(watching.is_active(handle));
    watching.stop(handle);
    // The path can be watched again, by the same handle.
    let path = c_path(&root.at("file"));
    // SAFETY: an initialised handle and a C string.
    let again = unsafe {
        uv_fs_event_start(
            &mut *watching.handles[handle],
            Some(collect),
            path.as_ptr(),
            0,
        )
    };
    assert_eq!(again, 0);
    root.write("file");
    assert!(!watching.events().is_empty());
}

#[test]
fn many_watchers_share_a_path() {
    let root = Root::new();
    root.write("file");
    let mut watching = Watching::new();
    for _ in 0..3 {
        watching.add(&root.at("file"), 0).unwrap();
    }
    watching.add(&root.at("./file"), 0).unwrap();
    let touch = || fs::set_permissions(root.at("file"), fs::Permissions::from_mode(0o600)).unwrap();
    touch();
    let seen: Vec<usize> = watching.drain().iter().map(|seen| seen.handle).collect();
    assert_eq!(seen, [0, 1, 2, 3], "in the order of their starting");
    watching.stop(1);
    touch();
    let seen: Vec<usize> = watching.drain().iter().map(|seen| seen.handle).collect();
    assert_eq!(seen, [0, 2, 3]);
    // Stopping and starting again puts it last, and gives it nothing from before.
    touch();
    watching.stop(0);
    let path = c_path(&root.at("file"));
    // SAFETY: an initialised handle and a C string.
    unsafe { uv_fs_event_start(&mut *watching.handles[0], Some(collect), path.as_ptr(), 0) };
    touch();
    let seen: Vec<usize> = watching.drain().iter().map(|seen| seen.handle).collect();
    // The kernel joins equal records that follow each other, so one or two are told.
    assert!(
        seen == [2, 3, 0] || seen == [2, 3, 0, 2, 3, 0] || seen == [2, 3, 2, 3, 0],
        "{seen:?}"
    );
    for handle in [0, 2, 3] {
        watching.stop(handle);
    }
    touch();
    assert_eq!(watching.drain(), []);
}

#[test]
fn errors_are_told_at_once() {
    let root = Root::new();
    let mut watching = Watching::new();
    assert_eq!(watching.add(&root.at("missing"), 0), Err(-libc::ENOENT));
    assert_eq!(
        watching.add(&root.at("missing"), RECURSIVE),
        Err(-libc::ENOENT)
    );
    assert_eq!(watching.add(Path::new(""), 0), Err(-libc::ENOENT));
    assert!(!watching.is_active(0));
    root.write("file");
    assert_eq!(
        watching.add(&root.at("file/below"), RECURSIVE),
        Err(-libc::ENOTDIR)
    );
    let handle = watching.add(&root.0, 0).unwrap();
    let path = c_path(&root.0);
    let raw: *mut uv_fs_event_t = &mut *watching.handles[handle];
    // SAFETY: an initialised handle.
    unsafe {
        assert_eq!(
            uv_fs_event_start(raw, Some(collect), path.as_ptr(), 0),
            UV_EINVAL,
            "started"
        );
        assert_eq!(
            uv_fs_event_start(raw, Some(collect), std::ptr::null(), 0),
            UV_EINVAL
        );
        assert_eq!(uv_fs_event_stop(raw), 0);
        assert_eq!(uv_fs_event_stop(raw), 0, "twice is no error");
        assert_eq!(
            uv_fs_event_start(raw, Some(collect), std::ptr::null(), 0),
            UV_EINVAL
        );
        assert_eq!(uv_is_active(raw), 0);
        uv_close(raw, None);
        assert_eq!(
            uv_fs_event_start(raw, Some(collect), path.as_ptr(), 0),
            UV_EINVAL,
            "closing"
        );
        assert_eq!(uv_fs_event_stop(raw), 0);
        assert_eq!(uv_handle_size(3), 136);
    }
}

#[test]
fn the_path_needs_room() {
    let root = Root::new();
    let mut watching = Watching::new();
    let handle = watching.add(&root.0, 0).unwrap();
    let path = c_path(&root.0);
    let len = path.count_bytes();
    let raw: *mut uv_fs_event_t = &mut *watching.handles[handle];
    let mut buffer = [1; 256];
    let mut get = |mut size: usize| {
        // SAFETY: an initialised handle, and a buffer at least that large.
        let code = unsafe { uv_fs_event_getpath(raw, buffer.as_mut_ptr(), &mut size) };
        (code, size)
    };
    assert_eq!(get(0), (UV_EINVAL, 0));
    assert_eq!(get(1), (-libc::ENOBUFS, len + 1));
    assert_eq!(get(len), (-libc::ENOBUFS, len + 1));
    assert_eq!(get(len + 1), (0, len));
    // SAFETY: the buffer ends in a NUL.
    assert_eq!(unsafe { CStr::from_ptr(buffer.as_ptr()) }, &*path);
    watching.stop(handle);
    let mut size = 256;
    let raw: *mut uv_fs_event_t = &mut *watching.handles[handle];
    // SAFETY: as above.
    let code = unsafe { uv_fs_event_getpath(raw, buffer.as_mut_ptr(), &mut size) };
    assert_eq!(code, UV_EINVAL, "a stopped handle has none");
}

/// The handles that the callbacks below stop or close.
static VICTIMS: std::sync::Mutex<Vec<usize>> = std::sync::Mutex::new(Vec::new());

unsafe extern "C" fn stop_all(
    handle: *mut uv_fs_event_t,
    name: *const c_char,
    events: c_int,
    status: c_int,
) {
    // SAFETY: the victims are initialised handles of this loop.
    unsafe {
        collect(handle, name, events, status);
        for victim in VICTIMS.lock().unwrap().drain(..) {
            let victim: *mut uv_fs_event_t = std::ptr::with_exposed_provenance_mut(victim);
            match victim == handle {
                true => uv_close(victim, None),
                false => drop(uv_fs_event_stop(victim)),
            }
        }
    }
}

#[test]
fn a_callback_may_stop_and_close_any_watcher() {
    let root = Root::new();
    let other = Root::new();
    let mut watching = Watching::new();
    watching.add_with(&root.0, 0, stop_all).unwrap();
    watching.add(&root.0, RECURSIVE).unwrap();
    watching.add(&other.0, 0).unwrap();
    let survivor = watching.add(&other.0, 0).unwrap();
    let address = |handle: &mut Box<uv_fs_event_t>| (&raw mut **handle).expose_provenance();
    *VICTIMS.lock().unwrap() = watching.handles[..3].iter_mut().map(address).collect();
    for name in ["a", "b", "c"] {
        root.write(name);
        other.write(name);
    }
    let seen = watching.drain();
    assert_eq!(seen[0].handle, 0);
    assert!(
        seen[1..].iter().all(|seen| seen.handle == survivor),
        "{seen:?}"
    );
    assert_eq!(seen.len(), 1 + 6, "and the survivor loses nothing");
}

#[test]
fn watches_of_one_directory_go_on_in_a_forked_child() {
    let root = Root::new();
    let mut watching = Watching::new();
    for _ in 0..2 {
        watching.add(&root.0, 0).unwrap();
    }
    assert_eq!(watching.events(), []);
    // SAFETY: the child uses the library and memory, as glibc permits after a fork, and leaves without a
    // word to the test's own machinery.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::alarm(60);
            let forked = uv_loop_fork(&mut *watching.l) == 0;
            root.write("file");
            let seen = watching.drain();
            let hears = |handle| seen.iter().any(|seen| seen.handle == handle);
            libc::_exit(c_int::from(!(forked && hears(0) && hears(1))));
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert_eq!(status, 0);
    }
}
