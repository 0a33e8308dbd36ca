//! Threads and locks, as a C program uses them.

#[path = "support/system.rs"]
mod system;

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};
use uv as _;
use uv_binding::*;

type Entry = extern "C" fn(*mut c_void);

/// Starts a thread with the given request for stack and waits for its end.
fn run_thread(options: Option<uv_thread_options_t>, entry: Entry, arg: *mut c_void) -> c_int {
    let mut thread = 0;
    // SAFETY: the entries of these tests know their arguments, which outlive the thread.
    unsafe {
        let status = match &options {
            Some(options) => uv_thread_create_ex(&mut thread, options, Some(entry), arg),
            None => uv_thread_create(&mut thread, Some(entry), arg),
        };
        if status == 0 {
            assert_eq!(uv_thread_join(&mut thread), 0);
        }
        status
    }
}

static ONCE_CALLS: AtomicUsize = AtomicUsize::new(0);
static ONCE_DONE: AtomicUsize = AtomicUsize::new(0);

/// Threads that call, or are about to.
static ONCE_CALLERS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn slow_initialiser() {
    ONCE_CALLS.fetch_add(1, SeqCst);
    while ONCE_CALLERS.load(SeqCst) < 8 {
        std::thread::yield_now();
    }
    ONCE_DONE.fetch_add(1, SeqCst);
}

#[test]
fn once_runs_once_and_everybody_waits_for_it() {
    static mut GUARD: libc::pthread_once_t = libc::PTHREAD_ONCE_INIT;
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                ONCE_CALLERS.fetch_add(1, SeqCst);
                // SAFETY: the guard was initialised as the documentation asks.
                unsafe { uv_once(&raw mut GUARD, Some(slow_initialiser)) };
                assert_eq!(ONCE_DONE.load(SeqCst), 1);
            });
        }
    });
    assert_eq!(ONCE_CALLS.load(SeqCst), 1);
}

extern "C" fn measure_stack(size: *mut c_void) {
    let mut attributes = MaybeUninit::uninit();
    // SAFETY: the attributes are filled before they are read, and `size` is a usize.
    unsafe {
        let thread = libc::pthread_self();
        assert_eq!(libc::pthread_getattr_np(thread, attributes.as_mut_ptr()), 0);
        libc::pthread_attr_getstacksize(attributes.as_ptr(), size.cast());
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
    }
}

/// The stack of a thread for which that much was asked, measured in a process of its own, since
/// the C library gives new threads the larger stacks of old ones.
fn stack_of(test: &str, requested: usize, expected: impl Fn(usize) -> bool) {
    system::must_succeed_in_child(test, || {
        let mut size = 0usize;
        let options = uv_thread_options_t {
            flags: 1,
            stack_size: requested,
        };
        let status = run_thread(Some(options), measure_stack, (&raw mut size).cast());
        assert_eq!(status, 0);
        assert!(expected(size), "{size}");
    });
}

/// Whether a stack has the size that was asked for. musl gives what its own data leave of the last pages as well.
fn is_size(size: usize, asked: usize) -> bool {
    let more = if cfg!(target_env = "musl") {
        1 << 16
    } else {
        1
    };
    (asked..asked + more).contains(&size)
}

#[test]
fn stacks_are_rounded_up_to_pages() {
    // SAFETY: sysconf takes no pointers.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    stack_of("stacks_are_rounded_up_to_pages", 1_234_567, |size| {
        is_size(size, 1_234_567_usize.next_multiple_of(page))
    });
}

#[test]
fn tiny_stacks_are_made_large_enough() {
    stack_of("tiny_stacks_are_made_large_enough", 1, |size| {
        (libc::PTHREAD_STACK_MIN..1 << 20).contains(&size)
    });
}

#[test]
fn a_stack_of_no_size_is_as_large_as_the_main_threads_may_be() {
    let mut limit = MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: getrlimit fills the limit.
    let limit = unsafe {
        libc::getrlimit(libc::RLIMIT_STACK, limit.as_mut_ptr());
        limit.assume_init().rlim_cur
    };
    let name = "a_stack_of_no_size_is_as_large_as_the_main_threads_may_be";
    stack_of(name, 0, |size| match limit {
        libc::RLIM_INFINITY => is_size(size, 2 << 20),
        limit => is_size(size, limit as usize / 4096 * 4096),
    });
}

#[test]
fn stacks_that_cannot_be_are_refused() {
    let options = |stack_size| {
        let flags = 1;
        Some(uv_thread_options_t { flags, stack_size })
    };
    let never = |options| run_thread(options, measure_stack, std::ptr::null_mut());
    assert_eq!(never(options(usize::MAX)), -libc::EINVAL);
    assert_eq!(never(options(1 << 46)), -libc::EAGAIN);
}

#[test]
fn a_thread_needs_something_to_run() {
    let mut thread = 0;
    // SAFETY: this is what is to be refused.
    unsafe {
        let status = uv_thread_create(&mut thread, None, std::ptr::null_mut());
        assert_eq!(status, -libc::EINVAL);
        let nowhere = std::ptr::null_mut();
        let status = uv_thread_create(nowhere, Some(measure_stack), std::ptr::null_mut());
        assert_eq!(status, -libc::EINVAL);
    }
}

extern "C" fn post(sem: *mut c_void) {
    // SAFETY: the tests give us a semaphore.
    unsafe { uv_sem_post(sem.cast()) }
}

#[test]
fn a_detached_thread_runs_and_cannot_be_joined() {
    let mut sem = MaybeUninit::uninit();
    // SAFETY: there is memory for it.
    assert_eq!(unsafe { uv_sem_init(sem.as_mut_ptr(), 0) }, 0);
    let mut thread = 0;
    // SAFETY: the semaphore outlives the thread, for which the test waits.
    unsafe {
        let sem = sem.as_mut_ptr();
        assert_eq!(uv_thread_create(&mut thread, Some(post), sem.cast()), 0);
        assert_eq!(uv_thread_detach(&mut thread), 0);
        uv_sem_wait(sem);
        uv_sem_destroy(sem);
        let mut own = uv_thread_self();
        assert_eq!(uv_thread_join(&mut own), -libc::EDEADLK);
    }
}

#[test]
fn threads_are_equal_to_themselves_alone() {
    let main = uv_thread_self();
    let other = std::thread::spawn(move || {
        // SAFETY: both are threads.
        assert_eq!(unsafe { uv_thread_equal(&main, &uv_thread_self()) }, 0);
        uv_thread_self()
    });
    other.join().unwrap();
    // SAFETY: both are threads.
    assert_ne!(unsafe { uv_thread_equal(&main, &uv_thread_self()) }, 0);
}

#[test]
fn names_are_cut_to_what_fits() {
    let mut own = uv_thread_self();
    let mut name = [b'#' as c_char; 32];
    // SAFETY: names end in a NUL, and there is as much room as we say.
    unsafe {
        assert_eq!(uv_thread_setname(std::ptr::null()), -libc::EINVAL);
        assert_eq!(uv_thread_setname(c"0123456789abcdefgh".as_ptr()), 0);
        let get = |own: *mut uv_thread_t, name, size| uv_thread_getname(own, name, size);
        assert_eq!(get(&mut own, name.as_mut_ptr(), 32), 0);
        assert_eq!(text(&name), "0123456789abcde");
        assert_eq!(get(&mut own, name.as_mut_ptr(), 4), 0);
        assert_eq!(text(&name), "012");
        assert_eq!(get(&mut own, name.as_mut_ptr(), 0), -libc::EINVAL);
        assert_eq!(get(&mut own, std::ptr::null_mut(), 4), -libc::EINVAL);
        assert_eq!(
            get(std::ptr::null_mut(), name.as_mut_ptr(), 4),
            -libc::EINVAL
        );
    }
}

#[test]
fn a_thread_reads_the_name_of_another() {
    let (tell, told) = std::sync::mpsc::channel();
    let (release, end) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || {
        // SAFETY: the name ends in a NUL.
        assert_eq!(unsafe { uv_thread_setname(c"the other".as_ptr()) }, 0);
        tell.send(uv_thread_self()).unwrap();
        let _ = end.recv();
    });
    let mut id = told.recv().unwrap();
    let mut name = [b'#' as c_char; 32];
    // SAFETY: there is as much room as we say, and the thread has not ended.
    let found = unsafe { uv_thread_getname(&mut id, name.as_mut_ptr(), name.len()) };
    drop(release);
    other.join().unwrap();
    assert_eq!((found, &*text(&name)), (0, "the other"));
}

fn text(name: &[c_char]) -> String {
    let bytes: Vec<u8> = name.iter().map(|&byte| byte as u8).collect();
    let text = std::ffi::CStr::from_bytes_until_nul(&bytes).unwrap();
    text.to_str().unwrap().to_owned()
}

#[test]
fn affinity_is_a_byte_for_each_processor() {
    let size = uv_cpumask_size() as usize;
    let mut own = uv_thread_self();
    let mut mask = vec![7 as c_char; size + 1];
    let mut old = vec![7 as c_char; size + 1];
    // SAFETY: the masks have as many bytes as we say.
    unsafe {
        let (small, null) = (size - 1, std::ptr::null_mut());
        let get = uv_thread_getaffinity(&mut own, mask.as_mut_ptr(), small);
        assert_eq!(get, -libc::EINVAL);
        assert_eq!(uv_thread_getaffinity(&mut own, mask.as_mut_ptr(), size), 0);
        assert_eq!(mask[size], 7, "wrote beyond");
        assert!(mask[..size].iter().all(|&byte| byte == 0 || byte == 1));
        let cpu = mask.iter().position(|&byte| byte == 1).unwrap();

        let mut one = vec![0 as c_char; size];
        let set = uv_thread_setaffinity(&mut own, one.as_mut_ptr(), null, size);
        assert_eq!(set, -libc::EINVAL, "a thread has to run somewhere");
        one[cpu] = 2;
        let set = uv_thread_setaffinity(&mut own, one.as_mut_ptr(), null, small);
        assert_eq!(set, -libc::EINVAL);
        let set = uv_thread_setaffinity(&mut own, one.as_mut_ptr(), old.as_mut_ptr(), size);
        assert_eq!(set, 0);
        assert_eq!(old[..size], mask[..size]);
        assert_eq!(uv_thread_getcpu(), cpu as c_int);
        assert_eq!(uv_thread_getaffinity(&mut own, mask.as_mut_ptr(), size), 0);
        let allowed = mask[..size].iter().filter(|&&byte| byte == 1).count();
        assert_eq!((mask[cpu], allowed), (1, 1));
    }
}

#[test]
fn priorities_go_in_five_steps() {
    let own = uv_thread_self();
    let mut priority = 99;
    // SAFETY: there is room for the number.
    unsafe {
        assert_eq!(
            uv_thread_getpriority(own, std::ptr::null_mut()),
            -libc::EINVAL
        );
        for bad in [-3, 3, c_int::MIN, c_int::MAX] {
            assert_eq!(uv_thread_setpriority(own, bad), -libc::EINVAL, "{bad}");
        }
        // Becoming less important needs no privilege.
        assert_eq!(uv_thread_setpriority(own, -2), 0);
        assert_eq!(uv_thread_getpriority(own, &mut priority), 0);
        assert_eq!(priority, 4);
    }
}

#[test]
fn a_mutex_can_be_shared_with_pthread() {
    let mut memory = MaybeUninit::uninit();
    // SAFETY: there is memory for it.
    assert_eq!(unsafe { uv_mutex_init(memory.as_mut_ptr()) }, 0);
    let mutex: *mut libc::pthread_mutex_t = memory.as_mut_ptr();
    // SAFETY: the mutex is initialised until it is destroyed.
    unsafe {
        uv_mutex_lock(mutex);
        assert_eq!(libc::pthread_mutex_trylock(mutex), libc::EBUSY);
        assert_eq!(uv_mutex_trylock(mutex), -libc::EBUSY);
        libc::pthread_mutex_unlock(mutex);
        assert_eq!(uv_mutex_trylock(mutex), 0);
        uv_mutex_unlock(mutex);
        uv_mutex_destroy(mutex);
    }
}

#[test]
fn a_recursive_mutex_is_free_after_as_many_unlocks() {
    let mut memory = MaybeUninit::uninit();
    // SAFETY: there is memory for it.
    assert_eq!(unsafe { uv_mutex_init_recursive(memory.as_mut_ptr()) }, 0);
    let address = memory.as_mut_ptr() as usize;
    let try_elsewhere = || {
        let other = std::thread::spawn(move || {
            let mutex = address as *mut libc::pthread_mutex_t;
            // SAFETY: the mutex outlives this thread.
            unsafe {
                let status = uv_mutex_trylock(mutex);
                if status == 0 {
                    uv_mutex_unlock(mutex);
                }
                status
            }
        });
        other.join().unwrap()
    };
    // SAFETY: the mutex is initialised until it is destroyed.
    unsafe {
        uv_mutex_lock(memory.as_mut_ptr());
        assert_eq!(uv_mutex_trylock(memory.as_mut_ptr()), 0);
        uv_mutex_unlock(memory.as_mut_ptr());
        assert_eq!(try_elsewhere(), -libc::EBUSY);
        uv_mutex_unlock(memory.as_mut_ptr());
        assert_eq!(try_elsewhere(), 0);
        uv_mutex_destroy(memory.as_mut_ptr());
    }
}

#[test]
fn readers_share_and_writers_do_not() {
    let mut memory = MaybeUninit::uninit();
    // SAFETY: there is memory for it.
    assert_eq!(unsafe { uv_rwlock_init(memory.as_mut_ptr()) }, 0);
    let lock = memory.as_mut_ptr();
    // SAFETY: the lock is initialised until it is destroyed.
    unsafe {
        uv_rwlock_rdlock(lock);
        assert_eq!(uv_rwlock_tryrdlock(lock), 0);
        assert_eq!(uv_rwlock_trywrlock(lock), -libc::EBUSY);
        uv_rwlock_rdunlock(lock);
        uv_rwlock_rdunlock(lock);
        uv_rwlock_wrlock(lock);
        assert_eq!(uv_rwlock_tryrdlock(lock), -libc::EBUSY);
        assert_eq!(uv_rwlock_trywrlock(lock), -libc::EBUSY);
        uv_rwlock_wrunlock(lock);
        assert_eq!(uv_rwlock_trywrlock(lock), 0);
        uv_rwlock_wrunlock(lock);
        uv_rwlock_destroy(lock);
    }
}

#[test]
fn a_semaphore_counts() {
    let mut memory = MaybeUninit::uninit();
    assert_eq!(
        // SAFETY: there is memory for it.
        unsafe { uv_sem_init(memory.as_mut_ptr(), c_uint::MAX) },
        -libc::EINVAL
    );
    // SAFETY: there is memory for it.
    assert_eq!(unsafe { uv_sem_init(memory.as_mut_ptr(), 2) }, 0);
    let sem = memory.as_mut_ptr();
    // SAFETY: the semaphore is initialised until it is destroyed.
    unsafe {
        uv_sem_wait(sem);
        assert_eq!(uv_sem_trywait(sem), 0);
        assert_eq!(uv_sem_trywait(sem), -libc::EAGAIN);
        uv_sem_post(sem);
        assert_eq!(uv_sem_trywait(sem), 0);
        uv_sem_destroy(sem);
    }
}

#[test]
fn a_wait_with_a_time_out_lasts_as_long_as_it_says() {
    let (mut mutex, mut cond) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: there is memory for it.
    assert_eq!(unsafe { uv_mutex_init(mutex.as_mut_ptr()) }, 0);
    // SAFETY: there is memory for it.
    assert_eq!(unsafe { uv_cond_init(cond.as_mut_ptr()) }, 0);
    let (mutex, cond) = (mutex.as_mut_ptr(), cond.as_mut_ptr());
    let started = Instant::now();
    // SAFETY: both are initialised until they are destroyed.
    unsafe {
        uv_mutex_lock(mutex);
        assert_eq!(uv_cond_timedwait(cond, mutex, 0), -libc::ETIMEDOUT);
        assert_eq!(uv_cond_timedwait(cond, mutex, 20_000_000), -libc::ETIMEDOUT);
        uv_mutex_unlock(mutex);
        uv_cond_destroy(cond);
        uv_mutex_destroy(mutex);
    }
    assert!(started.elapsed() >= Duration::from_millis(20));
}

#[test]
fn a_barrier_picks_one_thread() {
    let mut memory = MaybeUninit::uninit();
    assert_eq!(
        // SAFETY: there is memory for it.
        unsafe { uv_barrier_init(memory.as_mut_ptr(), 0) },
        -libc::EINVAL
    );
    // SAFETY: there is memory for it.
    assert_eq!(unsafe { uv_barrier_init(memory.as_mut_ptr(), 5) }, 0);
    let barrier = memory.as_mut_ptr();
    let address = barrier as usize;
    let picked = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| {
                // SAFETY: the barrier outlives the threads.
                let result = unsafe { uv_barrier_wait(address as *mut _) };
                assert!(result >= 0);
                picked.fetch_add(usize::from(result > 0), SeqCst);
            });
        }
    });
    assert_eq!(picked.load(SeqCst), 1);
    // SAFETY: nobody waits any more.
    unsafe { uv_barrier_destroy(barrier) };
}

#[test]
fn each_thread_has_its_own_value() {
    let mut key = 0;
    // SAFETY: there is room for the key, which is used while it exists.
    unsafe {
        assert_eq!(uv_key_create(&mut key), 0);
        let value = (&raw mut key).cast::<c_void>();
        uv_key_set(&mut key, value);
        let other = std::thread::spawn(move || {
            let mut key = key;
            uv_key_get(&mut key) as usize
        });
        assert_eq!(other.join().unwrap(), 0);
        assert_eq!(uv_key_get(&mut key), value);
        uv_key_delete(&mut key);
    }
}

/// musl does not tell that a mutex is locked.
#[cfg(not(target_env = "musl"))]
#[test]
fn destroying_a_locked_mutex_ends_the_process() {
    let name = "destroying_a_locked_mutex_ends_the_process";
    let output = system::in_child(name, || {
        let mut mutex = MaybeUninit::uninit();
        // SAFETY: there is memory for it.
        assert_eq!(unsafe { uv_mutex_init(mutex.as_mut_ptr()) }, 0);
        // SAFETY: the mutex is initialised.
        unsafe {
            uv_mutex_lock(mutex.as_mut_ptr());
            uv_mutex_destroy(mutex.as_mut_ptr());
        }
    });
    assert_eq!(output.status.signal(), Some(libc::SIGABRT));
}

extern "C" fn leave_early(sem: *mut c_void) {
    post(sem);
    // SAFETY: no destructors are skipped on the way out.
    unsafe { libc::pthread_exit(std::ptr::null_mut()) }
}

#[test]
fn a_thread_may_leave_by_pthread_exit() {
    let mut sem = MaybeUninit::uninit();
    // SAFETY: there is memory for it.
    assert_eq!(unsafe { uv_sem_init(sem.as_mut_ptr(), 0) }, 0);
    assert_eq!(run_thread(None, leave_early, sem.as_mut_ptr().cast()), 0);
    // SAFETY: the semaphore is initialised.
    assert_eq!(unsafe { uv_sem_trywait(sem.as_mut_ptr()) }, 0);
}
