//! The record of a process, whatever becomes of the process, its surroundings and its readers; and
//! a program that is watched never suffers. Each test starts this program once more, in a role, as
//! the program that is watched.

#[path = "support/limits.rs"]
mod limits;
#[path = "support/watched.rs"]
mod watched;

use blacklight_record::read::{Error, Reader, Snapshot, list, now_ns};
use std::ffi::{CString, c_int, c_long, c_void};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU32};
use uv as _;
use uv_binding::*;
use watched::*;

/// The program that is watched; nothing when the tests run.
#[test]
fn the_program_watched() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    match &*role {
        "fork" => fork_from_callbacks(),
        "forks" => fork_beside_the_pool(),
        "exec" => run_another_program(),
        "threads" => loops_on_threads(),
        "reused" => reuse_the_descriptor(),
        "moved" => move_between_threads(),
        "nothing" => {
            let lp = new_loop();
            close_loop(lp);
        }
        limit => serve(limit),
    }
    println!("done");
    std::process::exit(0);
}

unsafe extern "C" fn ended(process: *mut uv_process_t, status: i64, _: c_int) {
    assert_eq!(status, 0);
    // SAFETY: the handle is the loop's own.
    unsafe { uv_close(process, None) };
}

unsafe extern "C" fn fired(timer: *mut Room) {
    // SAFETY: the handle is the loop's own.
    unsafe { uv_close(timer, None) };
}

unsafe extern "C" fn work(_: *mut Room) {}

unsafe extern "C" fn worked(_: *mut Room, status: c_int) {
    assert_eq!(status, 0);
}

/// Requests to the pool, a timer, and a child if `spawns` says so.
fn use_all(lp: &mut uv_loop_t, spawns: bool) {
    let mut rooms: [Box<Room>; 6] = std::array::from_fn(|_| Room::new());
    let [timer, process, requests @ ..] = &mut rooms;
    let file = c"/bin/true";
    let args = [file.as_ptr(), null()];
    let options = uv_process_options_t {
        exit_cb: None,
        file: file.as_ptr(),
        args: args.as_ptr().cast_mut().cast(),
        env: null_mut(),
        cwd: null(),
        flags: 0,
        stdio_count: 0,
        stdio: null_mut(),
        uid: 0,
        gid: 0,
    };
    // SAFETY: all handles and requests live until the run is over.
    unsafe {
        assert_eq!(uv_timer_init(lp, &mut **timer), 0);
        assert_eq!(uv_timer_start(&mut **timer, Some(fired), 1, 0), 0);
        for request in requests {
            assert_eq!(
                uv_queue_work(lp, &mut **request, Some(work), Some(worked)),
                0
            );
        }
        if spawns {
            let options = uv_process_options_t {
                exit_cb: Some(ended),
                ..options
            };
            assert_eq!(uv_spawn(lp, &mut **process, &options), 0);
        }
    }
    run(lp);
}

/// Sets a limit of the process, soft and hard.
fn limit(resource: limits::Resource, to: u64) {
    let limit = libc::rlimit {
        rlim_cur: to,
        rlim_max: to,
    };
    // SAFETY: the limit lives through the call.
    assert_eq!(unsafe { libc::setrlimit(resource, &limit) }, 0);
}

/// Has the kernel refuse system calls.
fn refuse(calls: &[c_long]) {
    let line = |code: u32, jt: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt,
        jf: 0,
        k,
    };
    let mut filter = vec![line(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    for (at, call) in calls.iter().enumerate() {
        let skipped = (calls.len() - at) as u8;
        let jump = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        filter.push(line(jump, skipped, *call as u32));
    }
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let end = libc::BPF_RET | libc::BPF_K;
    filter.push(line(end, 0, libc::SECCOMP_RET_ALLOW));
    filter.push(line(end, 0, refused));
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the program lives through the calls.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        // All threads, of which the tests' main thread is one.
        let flags = libc::SECCOMP_FILTER_FLAG_TSYNC;
        assert_eq!(libc::syscall(libc::SYS_seccomp, mode, flags, &program), 0);
    }
}

/// Puts a new file system in memory there, in a mount namespace of this process's own.
fn mount(at: &Path, options: &str) {
    let at = CString::new(at.as_os_str().as_bytes()).unwrap();
    let options = CString::new(options).unwrap();
    // SAFETY: all texts live through the calls.
    unsafe {
        assert_eq!(libc::unshare(libc::CLONE_NEWNS), 0);
        let private = libc::MS_REC | libc::MS_PRIVATE;
        assert_eq!(
            libc::mount(null(), c"/".as_ptr(), null(), private, null()),
            0
        );
        let kind = c"tmpfs".as_ptr();
        let mounted = libc::mount(kind, at.as_ptr(), kind, 0, options.as_ptr().cast());
        assert_eq!(mounted, 0);
    }
}

fn own_directory() -> PathBuf {
    std::env::var_os("XDG_RUNTIME_DIR")
        .unwrap_or_default()
        .into()
}

/// What is mounted before the program starts: a mount namespace is a thread's, and readers look at
/// that of the main thread.
fn mount_before(limits: &str, directory: &Path) {
    match limits {
        "no proc" => mount("/proc".as_ref(), "size=4k"),
        "no place" => mount("/dev/shm".as_ref(), "size=4k,ro"),
        "room for a page" => mount(directory, "size=4k"),
        "full" => {
            // Both places are in it.
            mount("/dev/shm".as_ref(), "size=4k");
            std::fs::create_dir(directory).unwrap();
            std::fs::write("/dev/shm/file", [1; 4096]).unwrap();
        }
        _ => {}
    }
}

/// What is limited before a loop is made.
fn limit_before(limits: &str) {
    match limits {
        "no file sizes" => limit(libc::RLIMIT_FSIZE, 0),
        "file size of a page" => limit(libc::RLIMIT_FSIZE, 65536),
        "file size without loops" => limit(libc::RLIMIT_FSIZE, 2 * 65536),
        // SAFETY: nothing that this program uses later is among these.
        "closed descriptors" => unsafe {
            libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0);
        },
        "no fallocate" => refuse(&[libc::SYS_fallocate]),
        "no fstatfs" => refuse(&[libc::SYS_fstatfs]),
        "no links" => refuse(&[
            #[cfg(target_arch = "x86_64")]
            libc::SYS_readlink,
            libc::SYS_readlinkat,
        ]),
        "no prctl" => refuse(&[libc::SYS_prctl]),
        "no limits" => refuse(&[libc::SYS_prlimit64, libc::SYS_getrlimit]),
        _ => {}
    }
}

/// What is limited when the loop has been made.
fn limit_after(limits: &str) {
    match limits {
        "chroot" => {
            let empty = own_directory().join("root");
            std::fs::create_dir(&empty).unwrap();
            let empty = CString::new(empty.as_os_str().as_bytes()).unwrap();
            // SAFETY: the path lives through the call.
            unsafe {
                assert_eq!(libc::chroot(empty.as_ptr()), 0);
                assert_eq!(libc::chdir(c"/".as_ptr()), 0);
            }
        }
        // SAFETY: the calls take numbers only.
        "setuid" => unsafe {
            assert_eq!(libc::setresgid(65534, 65534, 65534), 0);
            assert_eq!(libc::setresuid(65534, 65534, 65534), 0);
            // Whose it is does not depend on the system's settings.
            assert_eq!(libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
        },
        "removed" => std::fs::remove_dir_all(own_directory().join("blacklight")).unwrap(),
        "replaced" => {
            // Another file, in the place of ours.
            let path = only_record(&own_directory());
            std::fs::remove_file(&path).unwrap();
            std::fs::write(&path, [7; 100]).unwrap();
        }
        "no file sizes later" => limit(libc::RLIMIT_FSIZE, 0),
        "no descriptors" => limit(libc::RLIMIT_NOFILE, 3),
        "no memory" => limit(libc::RLIMIT_AS, 1 << 20),
        "no calls" => refuse(&[
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open,
            libc::SYS_openat,
            libc::SYS_fallocate,
            libc::SYS_prctl,
            // The program asks musl what its input is, which asks by this call.
            #[cfg(not(target_env = "musl"))]
            libc::SYS_fstat,
        ]),
        _ => {}
    }
}

/// Runs a loop under limits, until standard input ends.
fn serve(limits: &str) {
    limit_before(limits);
    let mut lp = new_loop();
    use_all(&mut lp, limits != "no proc");
    limit_after(limits);
    sleep_until_told(&mut lp);
    use_all(&mut lp, false);
    if limits == "replaced" {
        let bytes = std::fs::read(only_record(&own_directory())).unwrap();
        assert_eq!(bytes, [7; 100], "another file is not ours to write to");
    }
    close_loop(lp);
}

/// Asks a process to record, as the command does, and tells what became of it.
fn attach(reader: &Reader) -> Result<Snapshot, Error> {
    await_sleep(reader.pid());
    reader.want()?;
    assert!(reader.wake()?, "root may wake any process");
    until("an answer", || match reader.is_recording() {
        Ok(false) => None,
        // A process records before its first loop does.
        Ok(true) => match reader.snapshot() {
            Ok(snapshot) if snapshot.loops.is_empty() && snapshot.refused == 0 => None,
            snapshot => Some(snapshot),
        },
        Err(error) => Some(Err(error)),
    })
}

fn start(role: &str, setting: &str) -> Watched {
    Watched::start(role, setting, mount_before)
}

fn is_root() -> bool {
    // SAFETY: the call takes nothing.
    unsafe { libc::geteuid() == 0 }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Expected {
    /// There is no record.
    Nothing,
    /// There is one, and it cannot be filled.
    Refusal,
    /// The process has become another user's.
    Other,
    /// The process records.
    Loops(usize),
}

/// Under each limit: what a program has that records from the start, and what one to which a reader
/// attaches.
const LIMITS: [(&str, Expected, Expected); 22] = {
    use Expected::{Loops, Nothing, Other, Refusal};
    [
        ("none", Loops(1), Loops(1)),
        ("no file sizes", Nothing, Nothing),
        ("file size of a page", Refusal, Refusal),
        ("file size without loops", Loops(0), Loops(0)),
        ("closed descriptors", Loops(1), Loops(1)),
        ("no proc", Nothing, Nothing),
        ("no place", Nothing, Nothing),
        ("room for a page", Refusal, Refusal),
        ("full", Nothing, Nothing),
        ("no fallocate", Nothing, Nothing),
        ("no fstatfs", Nothing, Nothing),
        ("no links", Nothing, Nothing),
        ("no prctl", Loops(1), Loops(1)),
        ("no limits", Nothing, Nothing),
        ("chroot", Loops(1), Refusal),
        ("setuid", Other, Other),
        ("removed", Nothing, Nothing),
        ("replaced", Nothing, Nothing),
        ("no file sizes later", Loops(1), Refusal),
        ("no descriptors", Loops(1), Refusal),
        ("no memory", Loops(1), Refusal),
        ("no calls", Loops(1), Refusal),
    ]
};

#[test]
fn no_limit_harms_the_program_watched() {
    assert!(is_root(), "only root has what these limits need");
    for (limits, from_the_start, late) in LIMITS {
        // musl keeps no memory in stock, and the program that is watched would end for want of it itself.
        if limits == "no memory" && cfg!(target_env = "musl") {
            continue;
        }
        for (setting, expected) in [("1", from_the_start), ("0", late)] {
            println!("{limits} with {setting}");
            let mut watched = start(limits, setting);
            watched.wait_for("ready");
            let found = match Reader::open(watched.pid()) {
                Err(Error::NotHere(_)) => Expected::Nothing,
                Err(Error::OtherUser(_)) => Expected::Other,
                Err(error) => panic!("{error}"),
                Ok(reader) => match attach(&reader) {
                    Err(Error::Refused(_)) => Expected::Refusal,
                    Err(error) => panic!("{error}"),
                    Ok(snapshot) => {
                        if let Some(lp) = snapshot.loops.first() {
                            // The table of handles is written when the loop goes to sleep.
                            until("the pipe", || {
                                let handles = reader.handles(lp).unwrap();
                                let mut kinds = handles.iter().map(|handle| handle.kind);
                                kinds.any(|kind| kind == "pipe").then_some(())
                            });
                        }
                        let refused = u32::from(snapshot.loops.is_empty());
                        assert_eq!(snapshot.refused.min(1), refused);
                        Expected::Loops(snapshot.loops.len())
                    }
                },
            };
            watched.finish();
            assert_eq!(found, expected, "{limits} with {setting}");
        }
    }
}

#[test]
fn a_program_that_forbids_it_has_no_record() {
    let mut watched = start("none", "never");
    watched.wait_for("ready");
    let opened = Reader::open(watched.pid());
    assert!(matches!(opened, Err(Error::NotHere(_))));
    assert_eq!(records(&watched.directory).len(), 0);
    watched.finish();
}

#[test]
fn a_record_is_removed_at_the_end_and_told_to_be_gone() {
    let mut watched = start("none", "1");
    watched.wait_for("ready");
    let reader = Reader::open(watched.pid()).unwrap();
    assert!(reader.is_alive());
    let (pid, directory) = (watched.pid(), watched.directory.clone());
    only_record(&directory);
    watched.finish();
    assert_eq!(records(&directory).len(), 0);
    assert!(!reader.is_alive());
    assert!(matches!(Reader::open(pid), Err(Error::NoProcess(_))));
    assert!(matches!(reader.wake(), Ok(false) | Err(Error::Gone(_))));
}

/// Makes a file look a minute old.
fn make_old(path: &Path) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let then = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    file.set_modified(then).unwrap();
}

#[test]
fn a_killed_program_is_gone_and_its_record_is_reaped() {
    let mut watched = start("none", "1");
    watched.wait_for("ready");
    let reader = Reader::open(watched.pid()).unwrap();
    let status = watched.kill();
    assert_eq!(status.signal(), Some(libc::SIGKILL));
    assert!(!reader.is_alive());
    assert!(reader.snapshot().is_ok(), "what it has said stays");
    let path = only_record(&watched.directory);
    // In the default place, where the list looks.
    // SAFETY: the call takes nothing.
    let own = PathBuf::from(format!("/dev/shm/blacklight-{}", unsafe {
        libc::geteuid()
    }));
    // The first record on this machine may make it, and records lie only where nobody else may look.
    let _ = std::fs::DirBuilder::new().mode(0o700).create(&own);
    let moved = own.join(path.file_name().unwrap());
    std::fs::rename(&path, &moved).unwrap();
    assert!(!list().contains(&watched.pid()));
    assert!(
        moved.exists(),
        "it may be a program's that is only starting"
    );
    make_old(&moved);
    list();
    assert!(!moved.exists());
}

#[test]
fn programs_that_start_sweep_what_killed_ones_have_left() {
    let mut killed = start("none", "0");
    killed.wait_for("ready");
    killed.kill();
    let left = only_record(&killed.directory);
    make_old(&left);
    let young = left.with_file_name(left.file_name().unwrap().to_str().unwrap().replacen(
        &killed.pid().to_string(),
        "2147483647",
        1,
    ));
    let odd = left.with_file_name("-5.4026531836");
    std::fs::write(&odd, "no record").unwrap();
    // One program in 32 looks. With a sanitizer, 32 of them take longer than a record is young.
    for round in 0..400 {
        if round % 8 == 7 {
            // Each program may take as many numbers as the last, of which none is one in 32.
            assert!(Command::new("/bin/true").status().unwrap().success());
        }
        std::fs::write(&young, "of a process that is only starting").unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        let child = command
            .args(["--exact", "the_program_watched"])
            .env(ROLE, "nothing")
            .env("XDG_RUNTIME_DIR", &killed.directory)
            .stdout(Stdio::null())
            .spawn();
        let mut child = child.unwrap();
        let sweeps = child.id().is_multiple_of(32);
        assert!(child.wait().unwrap().success());
        if sweeps {
            break;
        }
        assert!(left.exists());
    }
    assert!(!left.exists());
    assert!(odd.exists(), "what is no record is left alone");
    assert!(young.exists(), "what has just been made is left alone");
}

#[test]
fn a_reader_that_is_killed_does_no_harm() {
    let mut watched = start("none", "0");
    watched.wait_for("ready");
    let reader = Reader::open(watched.pid()).unwrap();
    // SAFETY: the child reads until it is killed, which takes system calls and memory only.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: the call takes numbers only. A test that fails leaves nobody behind.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        loop {
            let _ = reader.want();
            let _ = reader.wake();
            let _ = reader.snapshot();
        }
    }
    // A record is there before the first loop is in it.
    until("a loop", || {
        let snapshot = reader.snapshot().ok()?;
        (snapshot.loops.len() == 1).then_some(())
    });
    // SAFETY: the child is ours.
    unsafe {
        assert_eq!(libc::kill(child, libc::SIGKILL), 0);
        assert_eq!(libc::waitpid(child, null_mut(), 0), child);
    }
    assert_eq!(reader.snapshot().unwrap().loops.len(), 1);
    watched.finish();
}

/// A program that becomes another one keeps its number, and gets a new record.
fn run_another_program() {
    let mut lp = new_loop();
    use_all(&mut lp, false);
    sleep_until_told_once(&mut lp);
    let error = Command::new(std::env::current_exe().unwrap())
        .args(ARGUMENTS)
        .env(ROLE, "none")
        .exec();
    panic!("{error}");
}

unsafe extern "C" fn until_a_byte(pipe: *mut Room, _: isize, _: *const uv_buf_t) {
    // SAFETY: the handle is the loop's own.
    unsafe { uv_read_stop(pipe) };
}

/// As [`sleep_until_told`], until a byte comes, and with the descriptor left open.
fn sleep_until_told_once(lp: &mut uv_loop_t) {
    let mut pipe = Room::new();
    // SAFETY: the handle lives until the run is over.
    unsafe {
        assert_eq!(uv_pipe_init(lp, &mut *pipe, 0), 0);
        assert_eq!(uv_pipe_open(&mut *pipe, libc::dup(0)), 0);
        let started = uv_read_start(&mut *pipe, Some(give_room), Some(until_a_byte));
        assert_eq!(started, 0);
    }
    println!("ready");
    run(lp);
    std::mem::forget(pipe);
}

#[test]
fn a_record_is_replaced_by_exec() {
    use std::io::Write;
    let mut watched = start("exec", "1");
    watched.wait_for("ready");
    let before = Reader::open(watched.pid()).unwrap();
    let inode = std::fs::metadata(only_record(&watched.directory))
        .unwrap()
        .ino();
    let callbacks = before.snapshot().unwrap().loops[0].callbacks;
    assert!(callbacks > 0);
    watched
        .child
        .stdin
        .as_mut()
        .unwrap()
        .write_all(b"!")
        .unwrap();
    watched.wait_for("ready");
    assert!(!before.is_alive(), "that program is gone");
    let after = Reader::open(watched.pid()).unwrap();
    assert!(after.is_alive());
    let file = only_record(&watched.directory);
    assert_ne!(std::fs::metadata(file).unwrap().ino(), inode);
    assert_eq!(after.snapshot().unwrap().loops.len(), 1);
    watched.finish();
}

/// What this process knows of itself as others see it.
fn own_snapshot() -> Snapshot {
    let reader = Reader::open(std::process::id()).unwrap();
    reader.snapshot().unwrap()
}

/// A process that was forked, and its end.
fn fork(child: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the child goes on with a copy of everything, and ends where its function does.
    match unsafe { libc::fork() } {
        0 => {
            child();
            std::process::exit(0)
        }
        pid => pid,
    }
}

fn await_end(pid: libc::pid_t) {
    let mut status = 0;
    // SAFETY: there is room for the status.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(status, 0);
}

static TURN: AtomicU32 = AtomicU32::new(0);

/// A process that is forked by the system call alone, of which no library hears, and that goes on
/// with its parent's loop. It ends without a word, since what runs at an exit waits for threads
/// that it does not have.
fn fork_unheard(lp: *mut uv_loop_t, timer: *mut Room) -> libc::pid_t {
    // SAFETY: the child goes on with a copy of everything.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    if child == 0 {
        let mut check = Room::new();
        // SAFETY: the loop is a copy, and this is its thread.
        unsafe {
            uv_timer_stop(timer);
            assert_eq!(uv_timer_init(lp, &mut *check), 0);
            assert_eq!(uv_timer_start(&mut *check, Some(fired), 0, 0), 0);
            run(&mut *lp);
            libc::_exit(0);
        }
    }
    child as libc::pid_t
}

unsafe extern "C" fn fork_once(timer: *mut Room) {
    let turn = TURN.fetch_add(1, SeqCst);
    // SAFETY: the handle's loop is this thread's.
    let lp = unsafe { uv_handle_get_loop(timer) };
    let path = only_record(&own_directory());
    let before = std::fs::read(&path).unwrap();
    let child = fork(|| match turn {
        // It leaves at once, through all that runs at the end.
        0 => {}
        // It goes on with its parent's loop.
        // SAFETY: the loop is a copy, and this is its thread.
        1 => unsafe {
            uv_timer_stop(timer);
            assert_eq!(uv_loop_fork(lp), 0);
            use_all(&mut *lp, true);
            let snapshot = own_snapshot();
            assert_eq!(snapshot.loops.len(), 1);
            assert_eq!(snapshot.loops[0].tid, std::process::id());
            assert_eq!(snapshot.pool.completed[1], 4);
        },
        // It goes on without a word.
        // SAFETY: as above.
        2 => unsafe {
            uv_timer_stop(timer);
            let mut check = Room::new();
            assert_eq!(uv_timer_init(lp, &mut *check), 0);
            assert_eq!(uv_timer_start(&mut *check, Some(fired), 0, 0), 0);
            run(&mut *lp);
        },
        // It makes a loop of its own.
        3 => {
            let mut lp = new_loop();
            use_all(&mut lp, true);
            let snapshot = own_snapshot();
            assert_eq!(snapshot.loops.len(), 1);
            assert!(snapshot.loops[0].callbacks > 4);
            close_loop(lp);
        }
        // SAFETY: the number is its own.
        _ => unsafe {
            libc::kill(std::process::id() as c_int, libc::SIGKILL);
        },
    });
    if turn == 4 {
        await_end(fork_unheard(lp, timer));
    }
    match turn {
        0..4 => await_end(child),
        // SAFETY: it is ours, and there is room for nothing.
        _ => unsafe {
            assert_eq!(libc::waitpid(child, null_mut(), 0), child);
            uv_close(timer, None);
        },
    }
    let after = std::fs::read(&path).expect("it is still there");
    assert!(
        before == after,
        "a child has written to its parent's record"
    );
}

fn fork_from_callbacks() {
    let mut lp = new_loop();
    use_all(&mut lp, false);
    let mut timer = Room::new();
    // SAFETY: the handle lives until the run is over.
    unsafe {
        assert_eq!(uv_timer_init(&mut *lp, &mut *timer), 0);
        assert_eq!(uv_timer_start(&mut *timer, Some(fork_once), 1, 1), 0);
    }
    run(&mut lp);
    assert_eq!(TURN.load(SeqCst), 5);
    let snapshot = own_snapshot();
    // A timer, its closing and four requests; five times the forking timer, and its closing.
    assert_eq!(snapshot.loops[0].callbacks, 6 + 5 + 1);
    assert_eq!(snapshot.pool.completed[1], 4);
    close_loop(lp);
    assert_eq!(own_snapshot().loops.len(), 0);
}

#[test]
fn a_child_writes_nothing_to_its_parents_record() {
    let watched = start("fork", "1");
    watched.finish();
}

/// Requests that are still to be made.
static LEFT: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn again(request: *mut Room, status: c_int) {
    assert_eq!(status, 0);
    let left = LEFT.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1));
    if left.is_ok() {
        // SAFETY: the request is done, and its loop, which `data` is, is this thread's.
        unsafe {
            let lp = (*request).data.cast::<uv_loop_t>();
            assert_eq!(uv_queue_work(lp, request, Some(work), Some(again)), 0);
        }
    }
}

/// Keeps the pool busy with so many requests.
fn work_through(lp: &mut uv_loop_t, requests: u32) {
    let mut rooms: [Box<Room>; 8] = std::array::from_fn(|_| Room::new());
    LEFT.store(requests - rooms.len() as u32, SeqCst);
    for request in &mut rooms {
        request.data = std::ptr::from_mut(lp).cast::<c_void>();
        // SAFETY: the requests live until the run is over.
        unsafe {
            assert_eq!(
                uv_queue_work(lp, &mut **request, Some(work), Some(again)),
                0
            );
        }
    }
    run(lp);
}

fn fork_beside_the_pool() {
    let mut lp = new_loop();
    work_through(&mut lp, 100);
    let is_over = AtomicBool::new(false);
    let mut requests = 100;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..20 {
                await_end(fork(|| {
                    let mut lp = new_loop();
                    work_through(&mut lp, 20);
                    let snapshot = own_snapshot();
                    assert_eq!(snapshot.pool.completed[1], 20);
                    assert_eq!(snapshot.loops.len(), 1);
                    close_loop(lp);
                }));
            }
            is_over.store(true, SeqCst);
        });
        while !is_over.load(SeqCst) {
            work_through(&mut lp, 200);
            requests += 200;
        }
    });
    let snapshot = own_snapshot();
    assert_eq!(snapshot.pool.completed[1], requests);
    assert_eq!(snapshot.pool.wait[1].count(), requests);
    assert_eq!(
        (snapshot.pool.queued, snapshot.pool.running),
        ([0; 8], [0; 8])
    );
    assert_eq!(snapshot.loops[0].callbacks, requests);
    close_loop(lp);
}

#[test]
fn threads_may_fork_while_the_pool_works() {
    let watched = start("forks", "1");
    watched.finish();
}

/// Eventfds of the program's own, which take the numbers that a loop has left. Nobody may have
/// written to them.
fn check_foreign(fds: &[c_int]) {
    for fd in fds {
        let mut count = 0_u64;
        // SAFETY: there is room for the count, and the descriptor is this function's caller's.
        unsafe {
            let read = libc::read(*fd, (&raw mut count).cast(), 8);
            assert_eq!(
                (read, count),
                (-1, 0),
                "a reader has written to a foreign descriptor"
            );
            libc::close(*fd);
        }
    }
}

fn foreign() -> c_int {
    // SAFETY: the call takes numbers only.
    unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) }
}

const THREADS: u32 = 8;
/// More than these only where the reader has had no time yet.
const LIVES: u32 = 40;

fn loops_on_threads() {
    let (running, lived) = (AtomicU32::new(THREADS), AtomicU32::new(0));
    let has_seen = AtomicBool::new(false);
    // One loop from the start, so that there is a record to open.
    let first = new_loop();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for life in 0..100 * LIVES {
                    if life >= LIVES && has_seen.load(SeqCst) {
                        break;
                    }
                    lived.fetch_add(1, SeqCst);
                    let mut lp = new_loop();
                    use_all(&mut lp, false);
                    close_loop(lp);
                    let fds = [(); 3].map(|()| foreign());
                    std::thread::yield_now();
                    check_foreign(&fds);
                }
                running.fetch_sub(1, SeqCst);
            });
        }
        scope.spawn(|| {
            let reader = Reader::open(std::process::id()).unwrap();
            let (mut seen, mut wakes) = (0, 0);
            while running.load(SeqCst) > 0 {
                reader.want().unwrap();
                assert!(reader.wake().unwrap());
                wakes += 1;
                let was_recording = reader.is_recording().unwrap();
                let Ok(snapshot) = reader.snapshot() else {
                    // Nobody had polled since it was asked for.
                    assert!(!was_recording);
                    continue;
                };
                assert!(snapshot.loops.len() <= THREADS as usize + 1);
                let ids: Vec<u32> = snapshot.loops.iter().map(|lp| lp.id).collect();
                assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
                for lp in &snapshot.loops {
                    assert!(lp.callbacks <= 6, "a timer, its closing, four requests");
                    assert!(reader.handles(lp).unwrap().len() <= 2);
                    reader.events(lp.ring(), 0).unwrap();
                    seen += 1;
                    has_seen.store(true, SeqCst);
                }
            }
            assert!(seen > 0 && wakes > 0);
        });
    });
    let snapshot = own_snapshot();
    // The first was never run, so it does not record unless that was set from the start.
    assert!(snapshot.loops.len() <= 1);
    assert_eq!(snapshot.refused, 0);
    close_loop(first);
    let snapshot = own_snapshot();
    assert_eq!(snapshot.loops.len(), 0);
    let requests = 4 * u64::from(lived.into_inner());
    assert!(snapshot.pool.completed[1] <= requests);
    if std::env::var("BLACKLIGHT_RECORD").as_deref() == Ok("1") {
        assert_eq!(snapshot.pool.completed[1], requests);
    }
    assert_eq!(
        (snapshot.pool.queued, snapshot.pool.running),
        ([0; 8], [0; 8])
    );
}

#[test]
fn loops_come_and_go_on_threads_while_readers_read_and_wake() {
    for setting in ["0", "1"] {
        let watched = start("threads", setting);
        watched.finish();
    }
}

/// The descriptor by which a reader wakes the loop, closed and opened again as another one behind
/// the loop's back.
fn reuse_the_descriptor() {
    let is_waker = |fd: &c_int| {
        let link = std::fs::read_link(format!("/proc/self/fd/{fd}"));
        // SAFETY: the call takes numbers only.
        let flags = unsafe { libc::fcntl(*fd, libc::F_GETFL) };
        link.is_ok_and(|link| link.as_os_str() == "anon_inode:[eventfd]")
            && flags & libc::O_APPEND != 0
    };
    let lp = new_loop();
    let fds: Vec<c_int> = (3..100).filter(is_waker).collect();
    assert_eq!(fds.len(), 1, "the loop's own");
    let reader = Reader::open(std::process::id()).unwrap();
    assert!(reader.wake().unwrap());
    let mut count = 0_u64;
    let other = foreign();
    // SAFETY: there is room for the count. The descriptor is put in the place of another one.
    unsafe {
        assert_eq!(libc::read(fds[0], (&raw mut count).cast(), 8), 8);
        assert_eq!(count, 1, "it is by this one that the loop is woken");
        assert_eq!(libc::dup3(other, fds[0], libc::O_CLOEXEC), fds[0]);
    }
    assert!(reader.wake().unwrap());
    check_foreign(&[other]);
    close_loop(lp);
}

#[test]
fn a_reader_never_writes_to_what_has_the_number_of_a_loops_descriptor() {
    let watched = start("reused", "0");
    watched.finish();
}

/// A loop that one thread after the other runs, each after the end of the one before.
fn move_between_threads() {
    struct Moved(Box<uv_loop_t>);
    // SAFETY: one thread at a time uses the loop.
    unsafe impl Send for Moved {}
    let mut lp = Moved(new_loop());
    for _ in 0..10 {
        lp = std::thread::spawn(move || {
            let mut lp = lp;
            use_all(&mut lp.0, false);
            // SAFETY: the call takes nothing.
            let tid = unsafe { libc::gettid() };
            assert_eq!(own_snapshot().loops[0].tid, tid as u32);
            lp
        })
        .join()
        .unwrap();
    }
    close_loop(lp.0);
}

#[test]
fn a_loop_is_known_by_the_thread_that_runs_it() {
    let watched = start("moved", "1");
    watched.finish();
}

/// Fifty loops at once, in one thread, each with what it has done.
#[test]
fn fifty_loops_have_a_place_each() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "fifty_loops", "--ignored", "--nocapture"])
        .env("BLACKLIGHT_RECORD", "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
}

#[test]
#[ignore = "run by another test, in a process of its own"]
fn fifty_loops() {
    let mut loops: Vec<_> = (0..50).map(|_| new_loop()).collect();
    for (at, lp) in loops.iter_mut().enumerate() {
        for _ in 0..=at % 3 {
            use_all(lp, false);
        }
    }
    let snapshot = own_snapshot();
    assert_eq!((snapshot.loops.len(), snapshot.refused), (50, 0));
    for (at, lp) in snapshot.loops.iter().enumerate() {
        assert_eq!(lp.callbacks, 6 * (at as u64 % 3 + 1));
        assert!(
            lp.made_ns <= now_ns() && lp.now.state == blacklight_record::layout::State::Outside
        );
    }
    // More than there are places for: all of them work.
    let more: Vec<_> = (0..210).map(|_| new_loop()).collect();
    let snapshot = own_snapshot();
    assert_eq!((snapshot.loops.len(), snapshot.refused), (256, 4));
    for mut lp in more {
        use_all(&mut lp, false);
        close_loop(lp);
    }
    loops.into_iter().for_each(close_loop);
    assert_eq!(own_snapshot().loops.len(), 0);
}
