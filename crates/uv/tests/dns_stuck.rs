//! A resolver that never answers must not keep requests for files waiting.
//!
//! The test needs a network in which the resolver is ours. It starts its own program again in
//! namespaces of its own, where the name server is a socket on the loopback that receives
//! questions and keeps them. Where namespaces are not to be had, there is nothing to test.

#[path = "support/pool.rs"]
mod pool;

use pool::*;
use std::ffi::c_int;
use std::io;
use std::net::UdpSocket;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::null;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

const LOOKUPS: usize = 20;
const STATS: u32 = 2_000;

static ANSWERED: AtomicU32 = AtomicU32::new(0);
static STATTED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn answered(_: *mut Request, status: c_int, list: *mut libc::addrinfo) {
    assert!(status < 0 && list.is_null());
    ANSWERED.fetch_add(1, SeqCst);
}

unsafe extern "C" fn statted(req: *mut Request) {
    // SAFETY: the request is over, and the loop that it came from is in its data.
    unsafe {
        uv_fs_req_cleanup(req);
        if STATTED.fetch_add(1, SeqCst) + 1 < STATS {
            let lp = (*req).data.cast();
            assert_eq!(uv_fs_stat(lp, req, c"/".as_ptr(), Some(statted)), 0);
        }
    }
}

/// Time that so many requests for files take, one after the other.
fn time_stats(lp: &mut uv_loop_t) -> Duration {
    let begun = Instant::now();
    STATTED.store(0, SeqCst);
    let mut stat = Request::new();
    stat.data = (&raw mut *lp).cast();
    // SAFETY: the request lives until it is done; the loop is this thread's.
    unsafe {
        assert_eq!(uv_fs_stat(lp, &mut stat, c"/".as_ptr(), Some(statted)), 0);
        while STATTED.load(SeqCst) < STATS {
            uv_run(lp, 1);
        }
    }
    begun.elapsed()
}

/// Not a test by itself: what the test below runs in a network of its own.
#[test]
#[ignore = "a part of another test"]
fn in_a_network_of_its_own() {
    let server = UdpSocket::bind("127.0.0.1:53").unwrap();
    let mut lp = new_loop();
    let alone = time_stats(&mut lp);
    let mut lookups: [Request; LOOKUPS] = std::array::from_fn(|_| Request::new());
    for lookup in &mut lookups {
        let host = c"stuck.example.".as_ptr();
        // SAFETY: the requests live until the loop has run.
        let asked =
            unsafe { uv_getaddrinfo(&mut *lp, lookup, Some(answered), host, null(), null()) };
        assert_eq!(asked, 0);
    }
    // Both threads that may do such work are in the resolver now.
    let mut question = [0; 512];
    let mut askers = Vec::new();
    while askers.len() < 2 {
        let (len, asker) = server.recv_from(&mut question).unwrap();
        if !askers.contains(&(asker, question[..len].to_vec())) {
            askers.push((asker, question[..len].to_vec()));
        }
    }
    let beside = time_stats(&mut lp);
    assert_eq!(ANSWERED.load(SeqCst), 0, "the resolver is stuck indeed");
    println!("{STATS} requests for files: {alone:?} alone, {beside:?} beside a stuck resolver");
    for lookup in &mut lookups {
        // SAFETY: all of them were submitted. Two or so have been taken up.
        unsafe { uv_cancel(lookup) };
    }
    // Tell those who have waited long enough that there is nothing to be had.
    let refuse = |question: &mut Vec<u8>| {
        question[2] |= 0x80;
        question[3] = question[3] & 0xF0 | 3;
    };
    for (asker, mut question) in askers {
        refuse(&mut question);
        server.send_to(&question, asker).unwrap();
    }
    // Those that ask again get the same answer, for as long as the program lasts.
    std::thread::spawn(move || {
        loop {
            let (len, asker) = server.recv_from(&mut question).unwrap();
            let mut question = question[..len].to_vec();
            refuse(&mut question);
            server.send_to(&question, asker).unwrap();
        }
    });
    run(&mut lp);
    assert_eq!(ANSWERED.load(SeqCst) as usize, LOOKUPS);
    close(lp);
}

fn check(status: c_int) -> io::Result<()> {
    match status {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Puts the process, which has one thread, into a network without a world around it.
fn unshare(resolv_conf: &std::ffi::CStr) -> io::Result<()> {
    // SAFETY: these calls are given texts that end in a NUL, or memory of the right size.
    unsafe {
        let (uid, gid) = (libc::getuid(), libc::getgid());
        let all = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWNET;
        check(libc::unshare(all))?;
        std::fs::write("/proc/self/setgroups", "deny")?;
        std::fs::write("/proc/self/uid_map", format!("0 {uid} 1"))?;
        std::fs::write("/proc/self/gid_map", format!("0 {gid} 1"))?;
        let private = libc::MS_REC | libc::MS_PRIVATE;
        check(libc::mount(null(), c"/".as_ptr(), null(), private, null()))?;
        let target = c"/etc/resolv.conf".as_ptr();
        check(libc::mount(
            resolv_conf.as_ptr(),
            target,
            null(),
            libc::MS_BIND,
            null(),
        ))?;
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        check(socket)?;
        let mut loopback: libc::ifreq = std::mem::zeroed();
        loopback.ifr_name[..2].copy_from_slice(&[b'l' as _, b'o' as _]);
        loopback.ifr_ifru.ifru_flags = libc::IFF_UP as _;
        check(libc::ioctl(socket, libc::SIOCSIFFLAGS as _, &loopback))
    }
}

#[test]
fn a_stuck_resolver_does_not_delay_files() {
    let conf = std::env::temp_dir().join(format!("resolv.conf.{}", std::process::id()));
    std::fs::write(
        &conf,
        "nameserver 127.0.0.1\noptions timeout:30 attempts:1\n",
    )
    .unwrap();
    let conf_c = std::ffi::CString::new(conf.to_str().unwrap()).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "in_a_network_of_its_own",
        "--ignored",
        "--nocapture",
    ]);
    // SAFETY: the test program has few threads, none of which holds a lock for long; what
    // the child does before exec are system calls and small allocations.
    unsafe { command.pre_exec(move || unshare(&conf_c)) };
    let output = command.output();
    std::fs::remove_file(&conf).unwrap();
    let output = match output {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            println!("skipped: no namespaces here ({error})");
            return;
        }
        output => output.unwrap(),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
