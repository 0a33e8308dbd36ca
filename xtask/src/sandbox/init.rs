//! The inside half of a sandbox: the first process of its process namespace.
//!
//! It furnishes the namespaces that `unshare` made, starts the program on a terminal, takes in
//! orphans as any init must, and writes the report. When it ends, the kernel ends whatever is left.

use super::{Ended, Report, Spec};
use anyhow::{Context, Result, ensure};
use nix::errno::Errno;
use nix::fcntl::AT_FDCWD;
use nix::mount::{MsFlags, mount};
use nix::pty::{Winsize, openpty};
use nix::sys::resource::{Resource, UsageWho, getrusage, setrlimit};
use nix::sys::stat::{FchmodatFlags, Mode, SFlag, fchmodat, makedev, mknod};
use nix::sys::time::TimeVal;
use nix::sys::wait::{WaitStatus, wait};
use nix::unistd::{Pid, setsid, ttyname};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The mount point of all that is specific to the sandbox. Every Debian has it.
pub(crate) const HOUSE: &str = "/srv";
pub(crate) const HOME: &str = "/srv/home";
/// Where the library is that a program runs with.
pub(crate) const LIBRARIES: &str = "/srv/lib";
/// Where programs leave what is not for their output.
pub(crate) const REPORTS: &str = "/srv/reports";

/// Loopback in both families. Whatever is sent elsewhere goes to the loopback device as well and is
/// dropped there for want of a local address: a connection outside neither leaves the
/// machine nor fails at once.
const NETWORK: &str = "\
link set lo up
link set lo multicast on
addr add fe80::1/64 dev lo nodad
route add 0.0.0.0/0 dev lo
route add ::/0 dev lo
";

/// Sets the sandbox up as `spec` says, runs the program and writes the report.
pub(crate) fn run(spec: &Path) -> Result<()> {
    let text = fs::read_to_string(spec).context("cannot read the sandbox's description")?;
    let spec: Spec =
        serde_json::from_str(&text).context("cannot understand the sandbox's description")?;
    // The directory of the report may lie under one of the places mounted over.
    let mut report_file = File::create(&spec.report).context("cannot make the report")?;
    set_up_network()?;
    set_up_mounts(&spec)?;
    if let Some(emulation) = &spec.emulation {
        emulation.enter()?;
    }
    setrlimit(Resource::RLIMIT_CORE, 0, 0).context("cannot forbid core dumps")?;
    let terminal = open_terminal(spec.user)?;
    let report = run_program(&spec, &terminal)?;
    let text = serde_json::to_string(&report).context("cannot write the report")?;
    report_file
        .write_all(text.as_bytes())
        .context("cannot write the report")?;
    drop(terminal);
    Ok(())
}

/// Brings up the loopback device of a new network namespace.
pub(crate) fn set_up_network() -> Result<()> {
    let mut ip = Command::new("ip")
        .args(["-batch", "-"])
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .stdin(Stdio::piped())
        .spawn()
        .context("cannot run ip")?;
    let mut orders = ip.stdin.take().context("ip has no input")?;
    orders
        .write_all(NETWORK.as_bytes())
        .context("cannot tell ip what to do")?;
    drop(orders);
    let status = ip.wait().context("cannot wait for ip")?;
    ensure!(status.success(), "ip could not set up the loopback network");
    Ok(())
}

fn set_up_mounts(spec: &Spec) -> Result<()> {
    let none = None::<&str>;
    mount(
        Some("tmpfs"),
        HOUSE,
        Some("tmpfs"),
        MsFlags::empty(),
        Some("mode=755"),
    )
    .with_context(|| format!("cannot mount a tmpfs on {HOUSE}"))?;
    for (name, source) in &spec.rooms {
        let target = Path::new(HOUSE).join(name);
        fs::create_dir(&target).with_context(|| format!("cannot make {}", target.display()))?;
        mount(Some(source), &target, none, MsFlags::MS_BIND, none)
            .with_context(|| format!("cannot mount {}", source.display()))?;
    }
    for (source, target) in spec.covers.iter().filter(|(_, target)| target.exists()) {
        mount(Some(source), target, none, MsFlags::MS_BIND, none)
            .with_context(|| format!("cannot cover {}", target.display()))?;
    }
    let tmp = Path::new(HOUSE).join("tmp");
    mount(Some(&tmp), "/tmp", none, MsFlags::MS_BIND, none).context("cannot cover /tmp")?;
    // Records of programs that are killed go with the sandbox.
    let (shared, everyone) = ("/dev/shm", Some("mode=1777"));
    mount(
        Some("tmpfs"),
        shared,
        Some("tmpfs"),
        MsFlags::empty(),
        everyone,
    )
    .with_context(|| format!("cannot cover {shared}"))?;
    cover_null_device()
}

/// Gives the sandbox a `/dev/null` of its own, which every user may write to. A program outside that
/// runs as root may have changed the mode of the machine's, and programs that run inside must not
/// change it either.
pub(crate) fn cover_null_device() -> Result<()> {
    const NULL: &str = "/dev/null";
    let everyone = Mode::from_bits_truncate(0o666);
    let own = Path::new(HOUSE).join("null");
    mknod(&own, SFlag::S_IFCHR, everyone, makedev(1, 3))
        .and_then(|()| fchmodat(AT_FDCWD, &own, everyone, FchmodatFlags::FollowSymlink))
        .and_then(|()| {
            mount(
                Some(&own),
                NULL,
                None::<&str>,
                MsFlags::MS_BIND,
                None::<&str>,
            )
        })
        .with_context(|| format!("cannot cover {NULL}"))
}

/// Makes a terminal, gives it to the user, and lets this session have it as controlling terminal.
fn open_terminal(user: u32) -> Result<File> {
    let size = Winsize {
        ws_row: 24,
        ws_col: 80,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let pair = openpty(&size, None).context("cannot open a terminal")?;
    let name = ttyname(&pair.slave).context("the terminal has no name")?;
    chown(&name, Some(user), None)
        .with_context(|| format!("cannot hand over {}", name.display()))?;
    setsid().context("cannot start a session")?;
    // A session leader without a controlling terminal gets the first one that it opens.
    let terminal = File::options()
        .read(true)
        .write(true)
        .open(&name)
        .with_context(|| format!("cannot open {}", name.display()))?;
    std::thread::spawn(move || watch(File::from(pair.master)));
    Ok(terminal)
}

/// Reads what is written to the terminal, as somebody watching it would; an unread terminal
/// blocks its writers.
fn watch(mut master: File) {
    let mut screen = [0; 4096];
    while master.read(&mut screen).is_ok_and(|count| count > 0) {}
}

/// Runs the program with the terminal as its input.
///
/// The caller keeps the terminal open: once nobody has it open any more, the watching thread stops
/// and closes the other end, and that hangs up on this process as leader of the session.
fn run_program(spec: &Spec, terminal: &File) -> Result<Report> {
    let input = terminal.try_clone().context("cannot share the terminal")?;
    let cpu_before = cpu_of_children()?;
    if let Some(refusal) = spec.refusal {
        refusal.apply()?;
    }
    let started = Instant::now();
    let child = command(spec)
        .args(&spec.arguments)
        .env_clear()
        .envs(spec.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(Path::new(HOUSE).join("work"))
        .uid(spec.user)
        .gid(spec.user)
        .stdin(input)
        .spawn()
        .with_context(|| format!("cannot start {}", spec.program))?;
    let program = Pid::from_raw(i32::try_from(child.id()).context("an impossible process id")?);
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(reap_until(program)));
    let ended = match receiver.recv_timeout(spec.limit) {
        Ok(ended) => ended?,
        Err(_) => Ended::TimedOut,
    };
    let wall = started.elapsed();
    let cpu = cpu_of_children()?.saturating_sub(cpu_before);
    Ok(Report { ended, wall, cpu })
}

/// The program, or a tracer that runs it.
fn command(spec: &Spec) -> Command {
    let program = Path::new(HOUSE).join("bin").join(&spec.program);
    let Some(call) = &spec.trace else {
        return Command::new(program);
    };
    let mut command = Command::new("/usr/bin/strace");
    command
        .args(["-qq", "--follow-forks", "--seccomp-bpf", "--status=failed"])
        .args(["--trace", call, "--output"])
        .arg(Path::new(REPORTS).join("trace"))
        .arg("--")
        .arg(program);
    command
}

fn cpu_of_children() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("cannot ask for the time used")?;
    Ok(duration(usage.user_time()) + duration(usage.system_time()))
}

/// Waits for all children, own and adopted, until `program` has ended.
fn reap_until(program: Pid) -> Result<Ended> {
    loop {
        match wait() {
            Ok(WaitStatus::Exited(pid, code)) if pid == program => return Ok(Ended::Exited(code)),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == program => {
                return Ok(Ended::Killed(signal as i32));
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno).context("cannot wait for the program"),
        }
    }
}

fn duration(time: TimeVal) -> Duration {
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    let microseconds = u64::try_from(time.tv_usec()).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(microseconds)
}
