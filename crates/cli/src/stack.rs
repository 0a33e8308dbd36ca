//! One sample of the stack of a thread in another process.
//!
//! A thread that waits in the kernel is not touched: the kernel tells where it waits, and its
//! stack lies still. Only if that does not give the whole stack, or the thread computes, it is
//! held by ptrace for as long as it takes to copy its registers and stack. The stack is unwound
//! after the thread runs again. Registers are never changed, and a signal that arrives meanwhile
//! is passed on.
//!
//! The holding is done by a thread that lives for one sample, because the kernel lets go of
//! whatever a tracer holds when the tracer ends. So no failure leaves a thread held.
//!
//! [`Unwinder`] owns the tables for unwinding, which are read once for every mapped file.

use crate::calls;
use crate::machine::{self, Registers};
use crate::maps::{Maps, Origin, is_gone};
pub(crate) use crate::stack_sample::{Doing, Sample};
use crate::threads::number_here;
use anyhow::{Result, anyhow};
use blacklight_sys::ptrace::{self as raw_ptrace, Seized};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder as _};
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use std::collections::{HashMap, HashSet};
use std::io::{self, IoSliceMut};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The most bytes of a stack that are copied.
const LARGEST_STACK: usize = 256 * 1024;

/// How far below the stack pointer a function may keep what it needs, by the machine's calling convention. Unwinding may need it too.
const RED_ZONE: usize = 128;

/// The least unit in which kernels copy: a copy ends at the first page that is not there.
const PAGE: usize = 4096;

/// The most frames of a sample, so that a broken stack does not go on without end.
const MOST_FRAMES: usize = 1024;

/// How long a thread may take to stop; one that waits for a disk can take longer.
const STOP_LIMIT: Duration = Duration::from_millis(500);

/// A register that the kernel does not tell: this cannot be an address.
const UNKNOWN: u64 = 0x8000_dead_0000_0000;

/// The tables for unwinding the threads of one process.
pub(crate) struct Unwinder {
    pid: u32,
    maps: Maps,
    /// The tables of every file that was met; `None` if it has none.
    tables: HashMap<Origin, Option<Tables>>,
    /// The starts of the mappings that the unwinder knows or that have no tables.
    met: HashSet<u64>,
    unwinder: machine::Unwinder<Rc<[u8]>>,
    cache: machine::Cache,
    /// The copy of the stack, kept so that its memory is there before a thread is held.
    stack: Vec<u8>,
}

/// The tables of one image.
#[derive(Clone)]
struct Tables {
    info: ExplicitModuleSectionInfo<Rc<[u8]>>,
    image: Rc<crate::maps::Image>,
}

/// What was copied from a thread.
struct Copied {
    registers: Registers,
    /// The number of the system call that it was in.
    call: Option<u64>,
    /// How many bytes of the stack were copied.
    length: usize,
    held: Duration,
}

/// What the kernel tells about a thread without touching it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    /// It runs, or the kernel does not tell.
    Running,
    /// It waits: the number of the system call if it is in one, the line, and two registers.
    Waiting {
        call: Option<u64>,
        line: String,
        sp: u64,
        pc: u64,
    },
}

impl Unwinder {
    /// Prepares for samples of a process.
    pub(crate) fn new(pid: u32) -> Result<Unwinder> {
        Ok(Unwinder {
            pid,
            maps: Maps::of(pid)?,
            tables: HashMap::new(),
            met: HashSet::new(),
            unwinder: machine::Unwinder::new(),
            cache: machine::Cache::new(),
            stack: vec![1; LARGEST_STACK],
        })
    }

    /// Takes a sample of a thread of the process, which has this number in its own namespace.
    pub(crate) fn sample(&mut self, own: u32) -> Result<Sample> {
        let tid = number_here(self.pid, own);
        let state = self.state(tid)?;
        let told = self.told(tid)?;
        if let Told::Waiting {
            call: Some(call),
            sp,
            pc,
            ..
        } = told
        {
            let doing = Doing::Waiting {
                call: calls::name(call),
            };
            let length = copy_stack(tid, sp, &mut self.stack).unwrap_or(0);
            // The copy is of one moment only if the thread waited through it.
            if self.told(tid)? == told {
                let registers = Registers {
                    pc,
                    sp,
                    bp: UNKNOWN,
                    link: UNKNOWN,
                };
                let (addresses, is_whole) = self.unwind(registers, length);
                if is_whole || state == 'D' || fails_when_held(call) {
                    let held = Duration::ZERO;
                    return Ok(Sample {
                        addresses,
                        doing,
                        held,
                    });
                }
            }
        }
        let stack = &mut self.stack;
        let copied = std::thread::scope(|scope| {
            let tracer = scope.spawn(|| hold(tid, stack));
            tracer.join().unwrap_or(Err(Errno::EIO))
        });
        let copied = copied.map_err(|errno| self.explain(tid, errno))?;
        let doing = match (told, state, copied.call) {
            (
                Told::Waiting {
                    call: Some(call), ..
                },
                ..,
            )
            | (_, 'S' | 'D', Some(call)) => Doing::Waiting {
                call: calls::name(call),
            },
            _ => Doing::Computing,
        };
        let (addresses, _) = self.unwind(copied.registers, copied.length);
        Ok(Sample {
            addresses,
            doing,
            held: copied.held,
        })
    }

    /// The kernel's letter for what the thread does.
    fn state(&self, tid: u32) -> Result<char> {
        let text = std::fs::read(format!("/proc/{}/task/{tid}/stat", self.pid))
            .map_err(|error| self.explain_io(tid, &error))?;
        // The name of the thread is in parentheses and may hold any character.
        let after = text.iter().rposition(|byte| *byte == b')');
        let state = after.and_then(|after| text.get(after + 2));
        match state.map(|byte| char::from(*byte)) {
            Some('Z' | 'X') => Err(anyhow!("thread {tid} of process {} has ended", self.pid)),
            Some(state) => Ok(state),
            None => Err(anyhow!(
                "the kernel does not tell the state of thread {tid}"
            )),
        }
    }

    /// What the kernel tells about a thread.
    fn told(&self, tid: u32) -> Result<Told> {
        match std::fs::read_to_string(format!("/proc/{}/task/{tid}/syscall", self.pid)) {
            Ok(line) => Ok(parse_told(&line)),
            // A kernel may be built without this; then only ptrace can tell.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Told::Running),
            Err(error) => Err(self.explain_io(tid, &error)),
        }
    }

    /// Unwinds from the copied stack. Returns whether the outermost frame was reached.
    fn unwind(&mut self, registers: Registers, length: usize) -> (Vec<u64>, bool) {
        let mut is_refreshed = false;
        let mut addresses = Vec::new();
        let mut frame = FrameAddress::from_instruction_pointer(registers.pc);
        let mut regs = machine::unwind_registers(registers);
        while addresses.len() < MOST_FRAMES {
            let address = frame.address_for_lookup();
            if !self.meet(address, &mut is_refreshed) && frame.is_return_address() {
                // Nothing can be called from memory without code: the stack was misread.
                return (addresses, false);
            }
            addresses.push(address);
            let stack = self.stack.get(..length).unwrap_or(&[]);
            let mut read = |at: u64| read_word(stack, registers.sp, at).ok_or(());
            match self
                .unwinder
                .unwind_frame(frame, &mut regs, &mut self.cache, &mut read)
            {
                Ok(Some(address)) => match FrameAddress::from_return_address(address) {
                    Some(next) => frame = next,
                    None => return (addresses, true),
                },
                Ok(None) => return (addresses, true),
                Err(_) => return (addresses, false),
            }
        }
        (addresses, false)
    }

    /// Makes the tables for an address known to the unwinder. Returns whether there is code.
    fn meet(&mut self, address: u64, is_refreshed: &mut bool) -> bool {
        if self.maps.find(address).is_none() && !*is_refreshed {
            *is_refreshed = true;
            self.refresh();
        }
        let Some(mapping) = self.maps.find(address) else {
            return false;
        };
        let range = mapping.range.clone();
        if !self.met.insert(range.start) {
            return true;
        }
        // Code without tables is unwound by frame pointers, which is right for compilers at run
        // time.
        let maps = &self.maps;
        let tables = self
            .tables
            .entry(mapping.origin.clone())
            .or_insert_with(|| Tables::read(maps, mapping));
        // The page that a mapping begins with may be the end of another segment, so that its address says nothing of this one.
        if let Some(tables) = tables
            && let Some(base) = mapping
                .file_offset(address)
                .and_then(|offset| tables.image.address_of(offset))
                .and_then(|inside| address.checked_sub(inside))
        {
            let info = tables.info.clone();
            self.unwinder
                .add_module(Module::new(String::new(), range, base, info));
        }
        true
    }

    /// Reads the mappings again, and forgets the tables of those that have gone.
    fn refresh(&mut self) {
        let before: Vec<_> = self.maps.iter().cloned().collect();
        if self.maps.refresh().is_err() {
            return;
        }
        for mapping in before {
            let start = mapping.range.start;
            if self.maps.find(start) != Some(&mapping) && self.met.remove(&start) {
                self.unwinder.remove_module(start);
            }
        }
    }

    /// Says why a thread could not be sampled.
    fn explain(&self, tid: u32, errno: Errno) -> anyhow::Error {
        let pid = self.pid;
        match errno {
            Errno::ESRCH | Errno::ECHILD if !exists(pid, pid) => anyhow!("process {pid} has ended"),
            Errno::ESRCH | Errno::ECHILD if !exists(pid, tid) => {
                anyhow!("process {pid} has no thread {tid}, or no longer")
            }
            Errno::ESRCH | Errno::ECHILD => anyhow!("thread {tid} of process {pid} has ended"),
            Errno::ETIMEDOUT => {
                anyhow!("thread {tid} of process {pid} waits for a device and did not stop")
            }
            Errno::EPERM | Errno::EACCES => self.explain_refusal(),
            _ => anyhow!(
                "thread {tid} of process {pid} cannot be sampled: {}",
                errno.desc()
            ),
        }
    }

    /// Says why a thread could not be looked at.
    fn explain_io(&self, tid: u32, error: &io::Error) -> anyhow::Error {
        if is_gone(error) {
            return self.explain(tid, Errno::ESRCH);
        }
        self.explain(tid, Errno::from_raw(error.raw_os_error().unwrap_or(0)))
    }

    /// Says why the kernel refuses to let the process be watched.
    fn explain_refusal(&self) -> anyhow::Error {
        let pid = self.pid;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let tracer = status
            .lines()
            .find_map(|line| line.strip_prefix("TracerPid:"));
        if let Some(tracer) = tracer.map(str::trim).filter(|tracer| *tracer != "0") {
            return anyhow!("process {pid} is already traced by process {tracer}");
        }
        match std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope") {
            Ok(scope) if scope.trim() != "0" => anyhow!(
                "process {pid} may not be watched: it is another user's, or \
                 kernel.yama.ptrace_scope is {} and would have to be {}",
                scope.trim(),
                // At 1 a process that records permits it.
                if scope.trim() == "1" { "0" } else { "0 or 1" }
            ),
            _ => anyhow!("process {pid} belongs to another user, or may not be watched"),
        }
    }
}

impl Tables {
    /// Reads the tables of the image behind a mapping. The code itself is not needed for ELF.
    fn read(maps: &Maps, mapping: &crate::maps::Mapping) -> Option<Tables> {
        let image = maps.open(mapping)?;
        let range = |name: &[u8]| image.section(name).map(|section| section.addresses.clone());
        let data = |name: &[u8]| image.data(image.section(name)?).map(Rc::from);
        let info = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: range(b".text"),
            got_svma: range(b".got"),
            eh_frame_svma: range(b".eh_frame"),
            eh_frame: data(b".eh_frame"),
            eh_frame_hdr_svma: range(b".eh_frame_hdr"),
            eh_frame_hdr: data(b".eh_frame_hdr"),
            ..ExplicitModuleSectionInfo::default()
        };
        let image = Rc::new(image);
        Some(Tables { info, image })
    }
}

/// Whether a thread exists.
fn exists(pid: u32, tid: u32) -> bool {
    std::fs::exists(format!("/proc/{pid}/task/{tid}")).unwrap_or(false)
}

/// Whether a system call fails with `EINTR` if its thread is held, where others are restarted.
fn fails_when_held(call: u64) -> bool {
    matches!(
        calls::name(call).as_ref(),
        "epoll_wait"
            | "epoll_pwait"
            | "epoll_pwait2"
            | "io_getevents"
            | "io_pgetevents"
            | "io_uring_enter"
            | "rt_sigtimedwait"
            | "semop"
            | "semtimedop"
    )
}

/// Parses `/proc/PID/task/TID/syscall`: the number, six arguments, the stack pointer and the
/// program counter; or -1 and the last two; or `running`.
fn parse_told(line: &str) -> Told {
    let line = line.trim();
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let address = |text: &str| crate::maps::hexadecimal(text.strip_prefix("0x")?.as_bytes());
    match fields.as_slice() {
        [call, .., sp, pc] if fields.len() == 9 || fields.len() == 3 => {
            match (address(sp), address(pc)) {
                (Some(sp), Some(pc)) => Told::Waiting {
                    call: call.parse().ok(),
                    line: line.to_owned(),
                    sp,
                    pc,
                },
                _ => Told::Running,
            }
        }
        _ => Told::Running,
    }
}

/// Reads a word of the copied stack, which has a red zone and then what is from `sp` on.
fn read_word(stack: &[u8], sp: u64, at: u64) -> Option<u64> {
    let first = sp.checked_sub(RED_ZONE as u64)?;
    let start = usize::try_from(at.checked_sub(first)?).ok()?;
    let word = stack.get(start..start.checked_add(8)?)?;
    Some(u64::from_le_bytes(word.try_into().ok()?))
}

/// Copies the red zone and the stack from `sp` up to its end or the end of the buffer.
fn copy_stack(tid: u32, sp: u64, stack: &mut [u8]) -> Result<usize, Errno> {
    let sp = usize::try_from(sp).map_err(|_| Errno::EFAULT)?;
    let first = sp.checked_sub(RED_ZONE).ok_or(Errno::EFAULT)?;
    match copy_from(tid, first, stack) {
        Ok(length) => Ok(length),
        // Nothing is there where the stack pointer is at the very beginning of the mapping.
        Err(_) => {
            let (red_zone, rest) = stack.split_at_mut(RED_ZONE);
            red_zone.fill(0);
            Ok(RED_ZONE + copy_from(tid, sp, rest)?)
        }
    }
}

/// Copies memory of a thread from an address up to the end of the mapping or of the buffer.
fn copy_from(tid: u32, mut start: usize, stack: &mut [u8]) -> Result<usize, Errno> {
    let mut left = stack.len();
    let mut pages = Vec::with_capacity(LARGEST_STACK / PAGE + 1);
    while left > 0 {
        let len = (PAGE - start % PAGE).min(left);
        pages.push(RemoteIoVec { base: start, len });
        left -= len;
        match start.checked_add(len) {
            Some(next) => start = next,
            None => break,
        }
    }
    process_vm_readv(thread(tid)?, &mut [IoSliceMut::new(stack)], &pages)
}

/// The number of a thread as the calls want it.
fn thread(tid: u32) -> Result<Pid, Errno> {
    i32::try_from(tid)
        .map(Pid::from_raw)
        .map_err(|_| Errno::ESRCH)
}

/// Holds a thread, copies its registers and stack, and lets it go.
///
/// The calling thread must end after an error, since its end lets go of the thread.
fn hold(tid: u32, stack: &mut [u8]) -> Result<Copied, Errno> {
    let thread = thread(tid)?;
    ptrace::seize(thread, ptrace::Options::empty())?;
    copy_seized(thread, tid, stack)
}

/// Stops a thread that was seized, copies its registers and stack, and lets it go.
fn copy_seized(thread: Pid, tid: u32, stack: &mut [u8]) -> Result<Copied, Errno> {
    let (start, signal) = stop(thread)?;
    let registers = machine::registers(thread);
    let length = registers.map(|(registers, _)| copy_stack(tid, registers.sp, stack));
    // A signal that the thread was about to receive is lost unless it is given back here.
    let let_go = raw_ptrace::detach(thread.as_raw(), signal);
    let held = start.elapsed();
    let (registers, call) = registers?;
    let_go.map_err(errno)?;
    Ok(Copied {
        registers,
        call,
        length: length.ok().and_then(Result::ok).unwrap_or(0),
        held,
    })
}

/// Stops a thread that was seized. Returns when that was asked for, and the signal that the thread must be given when let go; 0 for
/// none.
fn stop(thread: Pid) -> Result<(Instant, i32), Errno> {
    let start = Instant::now();
    ptrace::interrupt(thread)?;
    Ok((start, wait_for_stop(thread, start)?))
}

/// Waits until a thread has stopped. Returns the signal that it must be given when let go; 0 for none.
fn wait_for_stop(thread: Pid, start: Instant) -> Result<i32, Errno> {
    loop {
        match raw_ptrace::look(thread.as_raw()).map_err(errno)? {
            Seized::Running => {}
            Seized::Stopped { signal } => return Ok(signal),
            Seized::Ended => return Err(Errno::ESRCH),
        }
        match start.elapsed() {
            passed if passed > STOP_LIMIT => return Err(Errno::ETIMEDOUT),
            // A thread that runs stops within microseconds. Whoever gives the processor away meanwhile
            // may not have it again for milliseconds, for which the thread is held.
            passed if passed < Duration::from_micros(100) => std::hint::spin_loop(),
            // It is not scheduled, or waits in the kernel. Who sleeps is scheduled sooner than who yields.
            passed if passed < Duration::from_millis(5) => {
                std::thread::sleep(Duration::from_micros(20));
            }
            _ => std::thread::sleep(Duration::from_micros(200)),
        }
    }
}

/// An error as the other calls have it.
fn errno(error: blacklight_sys::Errno) -> Errno {
    Errno::from_raw(-error.code())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{Living, Names as _};
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command, Stdio};

    /// A process that ends when this is dropped.
    struct Process(Child);

    impl Process {
        /// It does so already: until then it reads files, becomes another program, and is not always about to run.
        fn that_computes() -> Process {
            let mut command = Command::new("sh");
            command.args(["-c", "echo begun; while :; do :; done"]);
            command.stdout(Stdio::piped());
            let mut process = Process(command.spawn().expect("there is a shell"));
            let mut said = String::new();
            let output = process.0.stdout.as_mut().expect("its output");
            let read = BufReader::new(output).read_line(&mut said);
            read.expect("it is text");
            assert_eq!(said, "begun\n");
            process
        }

        /// The kernel's letter for what it does.
        fn state(&self) -> char {
            let pid = self.0.id();
            let unwinder = Unwinder::new(pid).expect("it runs");
            unwinder.state(pid).expect("it runs")
        }
    }

    impl Drop for Process {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// Prints how long threads are held: `cargo test -p blacklight-cli held -- --nocapture`.
    #[test]
    fn a_thread_is_held_for_a_moment() {
        let computing = Process::that_computes();
        let pid = computing.0.id();
        let mut unwinder = Unwinder::new(pid).expect("it runs");
        let samples = (0..100).map(|_| unwinder.sample(pid).expect("it may be looked at"));
        let mut held: Vec<Duration> = samples.map(|sample| sample.held).collect();
        held.retain(|held| !held.is_zero());
        held.sort_unstable();
        assert!(!held.is_empty(), "a thread that computes must be held");
        let (shortest, median, longest) = (held[0], held[held.len() / 2], held[held.len() - 1]);
        println!(
            "held {} times: {shortest:?} at least, {median:?} (median), {longest:?} at most",
            held.len()
        );
        assert!(median < Duration::from_secs(1), "{median:?}");
        assert_eq!(computing.state(), 'R', "it was let go");
    }

    const HELD: &str = "BLACKLIGHT_TEST_HELD";

    /// The reader of the next test, in a process of its own: it holds a thread and does not let it go.
    #[test]
    #[ignore = "run by the test of a reader that is killed"]
    fn holds_a_thread_for_ever() {
        let held = std::env::var(HELD).expect("the test that runs this says whom to hold");
        let thread = thread(held.parse().expect("a number")).expect("it exists");
        ptrace::seize(thread, ptrace::Options::empty()).expect("it can be held");
        stop(thread).expect("it stops");
        println!("held");
        loop {
            std::thread::park();
        }
    }

    #[test]
    fn a_thread_goes_on_if_its_reader_is_killed_while_it_is_held() {
        let computing = Process::that_computes();
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command
            .args(["--exact", "stack::tests::holds_a_thread_for_ever"])
            .args(["--ignored", "--nocapture"])
            .env(HELD, computing.0.id().to_string())
            .stdout(Stdio::piped());
        let mut reader = Process(command.spawn().expect("this program runs"));
        let said = BufReader::new(reader.0.stdout.take().expect("its output"));
        let mut said = said.lines().map_while(Result::ok);
        assert!(
            said.any(|line| line.ends_with("held")),
            "it holds the thread"
        );
        assert_eq!(computing.state(), 't');
        let mut names = Living::of(computing.0.id());
        assert_eq!(names.sample(computing.0.id()), None, "only one may hold it");
        let refusal = names.refusal().expect("it says why");
        assert!(
            refusal.contains("is already traced by process"),
            "{refusal}"
        );
        // This kills it and waits for its end.
        drop(reader);
        // The kernel lets go of it when the reader is reaped, at the latest.
        assert_eq!(computing.state(), 'R');
    }

    /// Whoever started the process still learns how it ended.
    #[test]
    fn a_process_that_ends_while_a_stack_is_taken_is_left_to_its_parent() {
        let mut computing = Process::that_computes();
        let tid = computing.0.id();
        std::thread::scope(|scope| {
            let tracer = scope.spawn(|| {
                let thread = thread(tid).expect("it exists");
                ptrace::seize(thread, ptrace::Options::empty()).expect("it can be held");
                nix::sys::signal::kill(thread, nix::sys::signal::SIGKILL).expect("it is there");
                wait_for_stop(thread, Instant::now())
            });
            assert_eq!(tracer.join().expect("no panic"), Err(Errno::ESRCH));
        });
        let status = computing.0.wait().expect("it is there to be waited for");
        assert_eq!(status.signal(), Some(nix::sys::signal::SIGKILL as i32));
    }

    /// A real-time signal has no name in most libraries, and is one for each time that it was sent.
    #[test]
    fn a_real_time_signal_that_arrives_while_a_stack_is_taken_is_not_lost() {
        let mut command = Command::new("sh");
        command
            .args([
                "-c",
                "trap 'echo came' 40; trap 'echo asked' USR1; echo begun; while :; do :; done",
            ])
            .stdout(Stdio::piped());
        let mut computing = Process(command.spawn().expect("there is a shell"));
        let pid = computing.0.id();
        let said = BufReader::new(computing.0.stdout.take().expect("its output"));
        let mut said = said.lines().map(|line| line.expect("it is text"));
        assert_eq!(said.next().as_deref(), Some("begun"));
        let send = |signal: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("kill -{signal} {pid}")]);
            assert!(command.status().expect("there is a shell").success());
        };
        let mut stack = vec![1; LARGEST_STACK];
        for _ in 0..20 {
            let thread = thread(pid).expect("it exists");
            ptrace::seize(thread, ptrace::Options::empty()).expect("it can be held");
            // It stops for the signal, and not for us.
            send("40");
            copy_seized(thread, pid, &mut stack).expect("it can be held");
            let mut came = 0;
            // A shell that has both signals may tell of either first, but not of the next one.
            for _ in 0..2 {
                send("USR1");
                let told = said.by_ref().take_while(|line| line != "asked");
                came += told.filter(|line| line == "came").count();
            }
            assert_eq!(came, 1);
        }
    }

    #[test]
    fn words_are_read_from_the_red_zone_on() {
        let mut stack = vec![0; RED_ZONE + 16];
        stack[RED_ZONE - 8..RED_ZONE].copy_from_slice(&7_u64.to_le_bytes());
        stack[RED_ZONE..RED_ZONE + 8].copy_from_slice(&8_u64.to_le_bytes());
        let sp = 0x7000;
        let read = |at: u64| read_word(&stack, sp, at);
        assert_eq!((read(sp - 8), read(sp)), (Some(7), Some(8)));
        assert_eq!((read(sp - 136), read(sp + 9)), (None, None));
        assert_eq!(read_word(&stack, 0, 0), None, "no stack lies there");
    }

    #[test]
    fn a_stack_is_copied_with_its_red_zone() {
        let kept: [u64; 64] = std::array::from_fn(|at| at as u64);
        let sp = std::ptr::from_ref(&kept[32]) as u64;
        let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let mut stack = vec![1; 512];
        let length = copy_stack(own, sp, &mut stack).expect("its own memory can be read");
        assert_eq!(length, stack.len());
        assert_eq!(read_word(&stack, sp, sp - 8), Some(31));
        assert_eq!(read_word(&stack, sp, sp + 80), Some(42));
    }
}
