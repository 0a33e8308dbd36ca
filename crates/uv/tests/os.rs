//! The machine, the process, users, descriptors and libraries.

#[path = "support/c_library.rs"]
mod c_library;
#[path = "support/system.rs"]
mod system;

use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use system::{check_null, check_size_rules, fill, must_succeed_in_child};
use uv as _;
use uv_binding::*;

/// A C string of the library's.
fn text(pointer: *const c_char) -> String {
    assert!(!pointer.is_null());
    // SAFETY: the library's texts end in a NUL.
    unsafe { CStr::from_ptr(pointer) }
        .to_str()
        .unwrap()
        .to_owned()
}

#[test]
fn processes_have_numbers() {
    assert_eq!(uv_os_getpid() as u32, std::process::id());
    assert_eq!(uv_os_getppid() as u32, std::os::unix::process::parent_id());
}

#[test]
fn priorities_are_checked_before_they_are_set() {
    // SAFETY: null is what is to be refused.
    let status = unsafe { uv_os_getpriority(0, null_mut()) };
    assert_eq!(status, -libc::EINVAL);
    for bad in [-21, 20, c_int::MIN, c_int::MAX] {
        assert_eq!(uv_os_setpriority(0, bad), -libc::EINVAL, "{bad}");
    }
    assert_eq!(uv_os_setpriority(c_int::MAX, 0), -libc::ESRCH);
    let mut priority = 99;
    // SAFETY: there is room for the number.
    let status = unsafe { uv_os_getpriority(c_int::MAX, &mut priority) };
    assert_eq!((status, priority), (-libc::ESRCH, 99));
}

#[test]
fn a_process_can_make_itself_less_important() {
    must_succeed_in_child("a_process_can_make_itself_less_important", || {
        // To Linux, no process in particular is the calling thread.
        assert_eq!(uv_os_setpriority(0, 19), 0);
        let mut priority = 99;
        // SAFETY: there is room for the number.
        let status = unsafe { uv_os_getpriority(0, &mut priority) };
        assert_eq!((status, priority), (0, 19));
    });
}

#[test]
fn signals_have_to_exist_and_so_do_processes() {
    assert_eq!(uv_kill(uv_os_getpid(), 0), 0);
    assert_eq!(uv_kill(uv_os_getpid(), -1), -libc::EINVAL);
    assert_eq!(uv_kill(uv_os_getpid(), 4096), -libc::EINVAL);
    assert_eq!(uv_kill(c_int::MAX, 0), -libc::ESRCH);
    let mut child = std::process::Command::new("sleep")
        .arg("100")
        .spawn()
        .unwrap();
    assert_eq!(uv_kill(child.id() as c_int, libc::SIGTERM), 0);
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
}

#[test]
fn the_working_directory_can_be_told_and_changed() {
    must_succeed_in_child("the_working_directory_can_be_told_and_changed", || {
        let scratch = std::env::temp_dir().join(format!("blacklight-cwd-{}", uv_os_getpid()));
        std::fs::create_dir(&scratch).unwrap();
        let scratch = scratch.canonicalize().unwrap();
        let path = std::ffi::CString::new(scratch.to_str().unwrap()).unwrap();
        // SAFETY: the path ends in a NUL.
        assert_eq!(unsafe { uv_chdir(path.as_ptr()) }, 0);
        assert_eq!(check_size_rules(uv_cwd), scratch.to_str().unwrap());
        std::fs::remove_dir(&scratch).unwrap();
        assert_eq!(fill(uv_cwd, 1000).status, -libc::ENOENT);
        // SAFETY: the paths end in a NUL, or are null, which is to be refused.
        unsafe {
            assert_eq!(uv_chdir(path.as_ptr()), -libc::ENOENT);
            assert_eq!(uv_chdir(null()), -libc::EFAULT);
            assert_eq!(uv_chdir(c"/".as_ptr()), 0);
        }
        assert_eq!(check_size_rules(uv_cwd), "/");
    });
}

#[test]
fn the_programs_path_is_cut_to_fit() {
    let path = std::env::current_exe().unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(fill(uv_exepath, 4096).text, path);
    for size in 1..=path.len() + 1 {
        assert_eq!(fill(uv_exepath, size).text, path[..size - 1]);
    }
    check_null(uv_exepath);
}

#[test]
fn the_machine_has_names() {
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert_eq!(check_size_rules(uv_os_gethostname), hostname.trim_end());
    let mut names: uv_utsname_t = garbage();
    // SAFETY: there is room for the names, or null, which is to be refused.
    unsafe {
        assert_eq!(uv_os_uname(null_mut()), -libc::EINVAL);
        assert_eq!(uv_os_uname(&mut names), 0);
    }
    let [sysname, release, machine] =
        [names.sysname, names.release, names.machine].map(|name| text(name.as_ptr()));
    assert_eq!(sysname, "Linux");
    let osrelease = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(release, osrelease.trim_end());
    assert_eq!(machine, std::env::consts::ARCH);
}

#[test]
fn users_are_found_by_number_and_given_back_twice() {
    let mut passwd = MaybeUninit::uninit();
    // SAFETY: there is room for a user, which is filled on success.
    unsafe {
        assert_eq!(uv_os_get_passwd(null_mut()), -libc::EINVAL);
        assert_eq!(uv_os_get_passwd2(null_mut(), 0), -libc::EINVAL);
        let unknown = uv_os_get_passwd2(passwd.as_mut_ptr(), 3_999_999_999);
        assert_eq!(unknown, -libc::ENOENT);
        assert_eq!(uv_os_get_passwd(passwd.as_mut_ptr()), 0);
        assert_eq!((*passwd.as_ptr()).uid, c_ulong::from(libc::geteuid()));
        uv_os_free_passwd(passwd.as_mut_ptr());
        assert_eq!(uv_os_get_passwd2(passwd.as_mut_ptr(), 0), 0);
        let root = passwd.assume_init_mut();
        assert_eq!((root.uid, text(root.username).as_str()), (0, "root"));
        let entry = std::fs::read_to_string("/etc/passwd").unwrap();
        let entry = entry
            .lines()
            .find(|line| line.starts_with("root:"))
            .unwrap();
        let fields: Vec<&str> = entry.split(':').collect();
        assert_eq!(root.gid.to_string(), fields[3]);
        assert_eq!(text(root.homedir), fields[5]);
        assert_eq!(text(root.shell), fields[6]);
        for _ in 0..2 {
            uv_os_free_passwd(root);
            assert!(root.username.is_null() && root.shell.is_null() && root.homedir.is_null());
        }
        uv_os_free_passwd(null_mut());
    }
}

#[test]
fn groups_have_their_members() {
    let groups = std::fs::read_to_string("/etc/group").unwrap();
    let mut group = MaybeUninit::uninit();
    // SAFETY: there is room for a group, which is filled on success.
    unsafe {
        assert_eq!(uv_os_get_group(null_mut(), 0), -libc::EINVAL);
        let unknown = uv_os_get_group(group.as_mut_ptr(), 3_999_999_999);
        assert_eq!(unknown, -libc::ENOENT);
        for line in groups.lines() {
            let fields: Vec<&str> = line.split(':').collect();
            let gid = fields[2].parse().unwrap();
            assert_eq!(uv_os_get_group(group.as_mut_ptr(), gid), 0);
            let group = group.assume_init_mut();
            assert_eq!(group.gid, c_ulong::from(gid));
            assert_eq!(text(group.groupname), fields[0]);
            let mut members = Vec::new();
            while !(*group.members.add(members.len())).is_null() {
                members.push(text(*group.members.add(members.len())));
            }
            assert_eq!(members.join(","), fields[3]);
            for _ in 0..2 {
                uv_os_free_group(group);
                assert!(group.groupname.is_null() && group.members.is_null());
            }
        }
        uv_os_free_group(null_mut());
    }
}

/// User, nice, system, idle and interrupt time of each processor, in milliseconds.
fn kernels_times() -> Vec<[u64; 5]> {
    // SAFETY: sysconf takes no pointers.
    let tick_ms = 1000 / unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as u64;
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let lines = stat.lines().filter(|line| line.starts_with("cpu"));
    let times = lines.skip(1).map(|line| {
        let fields: Vec<u64> = line
            .split(' ')
            .skip(1)
            .map(|field| field.parse().unwrap())
            .collect();
        [0, 1, 2, 3, 5].map(|field| fields[field] * tick_ms)
    });
    times.collect()
}

#[test]
fn processors_are_those_of_the_kernel() {
    let (mut infos, mut count) = (null_mut(), -1);
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    let before = kernels_times();
    // SAFETY: there is room for both, and as many items as it says.
    unsafe {
        assert_eq!(uv_cpu_info(null_mut(), &mut count), -libc::EINVAL);
        assert_eq!(uv_cpu_info(&mut infos, null_mut()), -libc::EINVAL);
        assert_eq!(uv_cpu_info(&mut infos, &mut count), 0);
        assert_eq!(count as usize, before.len());
        let after = kernels_times();
        let found = std::slice::from_raw_parts(infos, before.len());
        for (info, (before, after)) in found.iter().zip(before.iter().zip(&after)) {
            let model = text(info.model);
            let is_listed = cpuinfo.contains(&format!(": {model}\n"));
            // ARM's kernel lists numbers in place of names.
            assert!(model == "unknown" || is_listed || cpuinfo.contains("\nCPU part"));
            assert!(info.speed >= 0);
            // The processors have not stood still meanwhile.
            let uv_cpu_times_s {
                user,
                nice,
                sys,
                idle,
                irq,
            } = info.cpu_times;
            for (at, time) in [user, nice, sys, idle, irq].into_iter().enumerate() {
                // The kernel's own accounts of idle time may go back a little.
                let (least, most) = (before[at].min(after[at]), before[at].max(after[at]));
                assert!(
                    time + 1000 > least && time < most + 1000,
                    "{time} is not between {least} and {most}"
                );
            }
        }
        uv_free_cpu_info(infos, count);
    }
}

#[test]
fn one_processor_allows_one_thread() {
    let before = uv_available_parallelism();
    assert!(before >= 1);
    std::thread::spawn(|| {
        // SAFETY: a set is an array of bits, for which zero is a value.
        unsafe {
            let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed().assume_init();
            let size = size_of_val(&set);
            assert_eq!(libc::sched_getaffinity(0, size, &mut set), 0);
            let first = (0..1024).find(|&cpu| libc::CPU_ISSET(cpu, &set)).unwrap();
            libc::CPU_ZERO(&mut set);
            libc::CPU_SET(first, &mut set);
            assert_eq!(libc::sched_setaffinity(0, size, &set), 0);
        }
        assert_eq!(uv_available_parallelism(), 1);
    })
    .join()
    .unwrap();
    assert_eq!(uv_available_parallelism(), before);
}

#[test]
fn memory_adds_up() {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap();
    let total: u64 = meminfo
        .split_ascii_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(uv_get_total_memory(), total * 1024);
    assert!(uv_get_free_memory() > 0);
    assert!(uv_get_free_memory() < uv_get_total_memory());
    assert!(uv_get_available_memory() <= uv_get_total_memory());
    let mut rss = 0;
    // SAFETY: there is room for the number, or null, which is to be refused.
    unsafe {
        assert_eq!(uv_resident_set_memory(null_mut()), -libc::EINVAL);
        assert_eq!(uv_resident_set_memory(&mut rss), 0);
    }
    assert!(rss > 100_000 && (rss as u64) < uv_get_total_memory());
}

#[test]
fn a_limit_of_the_process_constrains_its_memory() {
    must_succeed_in_child("a_limit_of_the_process_constrains_its_memory", || {
        let limit = libc::rlimit {
            rlim_cur: 1 << 40,
            rlim_max: libc::RLIM_INFINITY,
        };
        let before = uv_get_constrained_memory();
        // SAFETY: the limit lives through the call.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
        let expected = match before {
            0 => 1 << 40,
            before => before.min(1 << 40),
        };
        assert_eq!(uv_get_constrained_memory(), expected);
    });
}

#[test]
fn time_and_load_are_the_kernels() {
    let mut uptime = 0.0;
    // SAFETY: there is room for the number, or null, which is to be refused.
    unsafe {
        assert_eq!(uv_uptime(null_mut()), -libc::EINVAL);
        assert_eq!(uv_uptime(&mut uptime), 0);
    }
    let file = std::fs::read_to_string("/proc/uptime").unwrap();
    let later: f64 = file.split(' ').next().unwrap().parse().unwrap();
    assert!((0.0..60.0).contains(&(later - uptime)));
    let mut averages = [-1.0; 3];
    // SAFETY: there is room for three.
    unsafe { uv_loadavg(averages.as_mut_ptr()) };
    assert!(averages.iter().all(|&load| load >= 0.0));
}

type GetUsage = unsafe extern "C" fn(*mut uv_rusage_t) -> c_int;

fn usage(get: GetUsage) -> uv_rusage_t {
    let mut usage = MaybeUninit::uninit();
    // SAFETY: there is room for the answer, or null, which is to be refused.
    unsafe {
        assert_eq!(get(null_mut()), -libc::EINVAL);
        assert_eq!(get(usage.as_mut_ptr()), 0);
        usage.assume_init()
    }
}

/// The time spent, in microseconds.
fn spent(usage: &uv_rusage_t) -> i64 {
    let times = [usage.ru_utime, usage.ru_stime];
    times
        .iter()
        .map(|time| time.tv_sec * 1_000_000 + time.tv_usec)
        .sum()
}

#[test]
fn a_thread_uses_less_than_its_process() {
    while spent(&usage(uv_getrusage_thread)) < 20_000 {
        std::hint::spin_loop();
    }
    let other = std::thread::spawn(|| (usage(uv_getrusage_thread), usage(uv_getrusage)));
    let (thread, process) = other.join().unwrap();
    assert!(spent(&process) >= 20_000);
    assert!(spent(&thread) < 20_000);
    assert!(process.ru_maxrss > 100, "kilobytes");
    // Page faults without disk access, which there always are.
    assert!(thread.ru_minflt < process.ru_minflt);
}

#[test]
fn descriptors_are_not_inherited_any_more() {
    must_succeed_in_child("descriptors_are_not_inherited_any_more", || {
        let flags = |fd| {
            // SAFETY: F_GETFD takes no pointers.
            unsafe { libc::fcntl(fd, libc::F_GETFD) }
        };
        // SAFETY: the descriptors are of this child alone, which ends soon.
        unsafe {
            libc::close(15);
            libc::close(17);
            assert_eq!(libc::dup2(0, 16), 16, "beyond a gap below sixteen");
            assert_eq!(libc::dup2(0, 18), 18, "beyond the first gap after that");
        }
        assert_eq!([0, 1, 2, 16, 18].map(flags), [0; 5]);
        // SAFETY: as above.
        unsafe { uv_disable_stdio_inheritance() };
        assert_eq!([0, 1, 2, 16].map(flags), [libc::FD_CLOEXEC; 4]);
        assert_eq!((flags(15), flags(17), flags(18)), (-1, -1, 0));
    });
}

/// Closes both descriptors, and says of each whether it waits and whether it is inherited.
fn look_and_close(fds: [c_int; 2]) -> [(bool, bool); 2] {
    // SAFETY: the descriptors are the test's own.
    fds.map(|fd| unsafe {
        let waits = libc::fcntl(fd, libc::F_GETFL) & libc::O_NONBLOCK == 0;
        let inherited = libc::fcntl(fd, libc::F_GETFD) & libc::FD_CLOEXEC == 0;
        assert_eq!(libc::close(fd), 0);
        (waits, inherited)
    })
}

#[test]
fn each_end_of_a_pair_can_be_non_blocking() {
    for flags in [
        [0, 0],
        [0, UV_NONBLOCK_PIPE],
        [UV_NONBLOCK_PIPE, 0],
        [0x7f, 0x7f],
    ] {
        let expected = flags.map(|flags| (flags & UV_NONBLOCK_PIPE == 0, false));
        let mut fds = [-1; 2];
        // SAFETY: there is room for two descriptors.
        unsafe {
            assert_eq!(uv_pipe(fds.as_mut_ptr(), flags[0], flags[1]), 0);
            assert_eq!(libc::write(fds[1], b"x".as_ptr().cast(), 1), 1);
            assert_eq!(libc::read(fds[0], [0u8].as_mut_ptr().cast(), 1), 1);
            assert_eq!(look_and_close(fds), expected);
            let kind = libc::SOCK_STREAM;
            assert_eq!(
                uv_socketpair(kind, 0, fds.as_mut_ptr(), flags[0], flags[1]),
                0
            );
            assert_eq!(look_and_close(fds), expected);
        }
    }
}

#[test]
fn pairs_that_cannot_be_leave_nothing_behind() {
    let mut fds = [-7; 2];
    // SAFETY: there is room for two descriptors, or null, which is to be refused.
    unsafe {
        assert_eq!(uv_pipe(null_mut(), 0, 0), -libc::EINVAL);
        assert_eq!(
            uv_socketpair(libc::SOCK_STREAM, 0, null_mut(), 0, 0),
            -libc::EINVAL
        );
        let status = uv_socketpair(libc::SOCK_STREAM, 99, fds.as_mut_ptr(), 0, 0);
        assert_eq!(status, -libc::EPROTONOSUPPORT);
    }
    assert_eq!(fds, [-7; 2]);
}

#[test]
fn descriptors_are_their_own_handles() {
    for fd in [-1, 0, 55] {
        assert_eq!(uv_get_osfhandle(fd), fd);
        assert_eq!(uv_open_osfhandle(fd), fd);
    }
}

#[test]
fn symbols_are_found_and_errors_remembered() {
    // What is in the struct before must not matter.
    let mut library = uv_lib_t {
        handle: 8 as *mut c_void,
        errmsg: 8 as *mut c_char,
    };
    let lib = &raw mut library;
    let mut address = null_mut();
    // SAFETY: names end in a NUL, and there is room for the address.
    unsafe {
        assert_eq!(uv_dlopen(c_library::NAME.as_ptr(), lib), 0);
        assert_eq!(text(uv_dlerror(lib)), "no error");
        assert_eq!(uv_dlsym(lib, c"getpid".as_ptr(), &mut address), 0);
        let getpid = std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(address);
        assert_eq!(getpid(), uv_os_getpid());
        for name in [c"no_such_symbol", c"nor_such_a_one"] {
            address = 8 as *mut c_void;
            assert_eq!(uv_dlsym(lib, name.as_ptr(), &mut address), -1);
            assert!(address.is_null());
            assert!(text(uv_dlerror(lib)).contains(name.to_str().unwrap()));
        }
        // A success does not make the last error undone.
        assert_eq!(uv_dlsym(lib, c"getpid".as_ptr(), &mut address), 0);
        assert!(text(uv_dlerror(lib)).contains("nor_such_a_one"));
        uv_dlclose(lib);
        assert!((*lib).handle.is_null() && (*lib).errmsg.is_null());
        uv_dlclose(lib);
    }
}

#[test]
fn a_library_that_is_not_there_says_so() {
    let mut library = MaybeUninit::uninit();
    let lib: *mut uv_lib_t = library.as_mut_ptr();
    // SAFETY: the name ends in a NUL, and the library is filled whatever happens.
    unsafe {
        assert_eq!(uv_dlopen(c"/no/such/library.so".as_ptr(), lib), -1);
        assert!((*lib).handle.is_null());
        assert!(text(uv_dlerror(lib)).contains("/no/such/library.so"));
        uv_dlclose(lib);
        assert_eq!(text(uv_dlerror(lib)), "no error");
        // Without a name it is the program itself.
        assert_eq!(uv_dlopen(null(), lib), 0);
        let mut address = null_mut();
        assert_eq!(uv_dlsym(lib, c"malloc".as_ptr(), &mut address), 0);
        assert!(!address.is_null());
        uv_dlclose(lib);
    }
}
