//! Writing a record: what a process says about its own loops and its thread pool.
//!
//! Nothing here fails loudly. Where the system refuses memory, less is recorded, and the page
//! counts that. Nothing here allocates on the heap, but for the lists of segments, which grow as
//! seldom as the file does.

mod looping;
mod pool;
mod primitive;

pub use looping::{Callback, HandleInfo, LoopWriter};
pub use pool::{Request, ThreadWriter, pool_oldest, pool_queued, pool_taken};

use crate::directory::{self, Path};
use crate::layout::{
    Body, HandleSegment, LOOPS, LoopSegment, OriginSegment, Page, SEGMENT_LOOP, SEGMENT_THREAD,
    SIGNATURE, THREADS, ThreadSegment, VERSION,
};
use crate::map::{map, own_word, pages};
use primitive::write_text;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RawDir, fstat, makedev, open, openat, readlinkat_raw, statat,
    unlinkat,
};
use rustix::io::Errno;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, fence};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// Whether this process, or the one that it was forked from, records.
static ANY: AtomicBool = AtomicBool::new(false);

/// Whether this process, or the one that it was forked from, records: one load, for code that runs
/// often.
#[inline]
pub fn is_any_recording() -> bool {
    ANY.load(Relaxed)
}

/// The number of the calling thread.
pub fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_pid() as u32
}

/// The record of this process.
#[derive(Debug)]
pub struct Record {
    page: &'static Page,
    path: Path,
    /// 1 in this process, and 0 in any that was forked from it.
    own: &'static AtomicU32,
    /// The file, by device and inode: what lies at its path later may be another one, as after
    /// `chroot`.
    file: (u64, u64),
    body: OnceLock<&'static Body>,
    /// The segments of loops and of pool threads. Those of closed loops and of threads that have
    /// ended are used again.
    segments: Mutex<Segments>,
}

/// A segment that belongs to a loop, and its owner.
type Owned<T> = (u32, &'static T);

/// What this process knows of its segments. Nothing is read back from the file that leads anywhere:
/// other processes may write to it.
#[derive(Debug)]
struct Segments {
    loops: Vec<&'static LoopSegment>,
    threads: Vec<&'static ThreadSegment>,
    handles: Vec<Owned<HandleSegment>>,
    origins: Vec<Owned<OriginSegment>>,
    /// How many segments there are, and how long the file is.
    count: usize,
    length: u64,
    /// The number of the loop that was recorded last.
    last_loop: u32,
}

/// How old a record is at least that is taken for one that a dead process has left, in seconds.
pub(crate) const GRACE_S: i64 = 10;

/// One process in so many looks for records that dead processes have left.
const SWEEPERS: u32 = 32;

/// Removes the records of processes that are gone. Readers do so too, but on most machines nobody
/// reads.
fn sweep(folder: &OwnedFd, namespace: u64) {
    let mut room = [MaybeUninit::uninit(); 4096];
    let Ok(folder_again) = folder.try_clone() else {
        return;
    };
    let mut entries = RawDir::new(folder_again, &mut room);
    // A bound, so that a full directory costs a program that starts no time.
    for _ in 0..1024 {
        let Some(Ok(entry)) = entries.next() else {
            return;
        };
        let name = entry.file_name().to_str().unwrap_or_default();
        let Some((pid, of)) = directory::parse_name(name) else {
            continue;
        };
        let pid = i32::try_from(pid).ok().filter(|pid| *pid > 0);
        let pid = pid.and_then(rustix::process::Pid::from_raw);
        let is_ours = of == namespace;
        if let Some(pid) = pid.filter(|_| is_ours)
            && let Some(file) = old_file(folder, entry.file_name())
            && rustix::process::test_kill_process(pid) == Err(Errno::SRCH)
        {
            directory::remove_file(folder, entry.file_name(), file);
        }
    }
}

/// The device and inode of a record that is older than the time in which a process that is only
/// starting may take this one's number.
fn old_file(folder: &OwnedFd, name: &CStr) -> Option<(u64, u64)> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let is_old = now.tv_sec.saturating_sub(stat.st_mtime) >= GRACE_S;
    is_old.then_some((stat.st_dev, stat.st_ino))
}

/// Whether this process has mapped the file with this device and inode.
fn has_mapped(file: (u64, u64)) -> bool {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let Ok(maps) = open(c"/proc/self/maps", flags, Mode::empty()) else {
        return false;
    };
    let mut bytes = [0; 4096];
    // The fourth field of a line is the device, as `MAJOR:MINOR` in hexadecimal, and the fifth the
    // inode.
    let (mut field, mut major, mut number) = (0, 0, 0_u64);
    let mut device = 0;
    while let Ok(count @ 1..) = rustix::io::read(&maps, &mut bytes) {
        for byte in &bytes[..count] {
            match (byte, field) {
                (b'\n', _) => (field, number) = (0, 0),
                (b' ', 4) if (device, number) == file => return true,
                (b' ', _) => {
                    if field == 3 {
                        device = makedev(major, number as u32);
                    }
                    (field, number) = (field + 1, 0);
                }
                (b':', 3) => (major, number) = (number as u32, 0),
                (digit, 3) => {
                    let digit = char::from(*digit).to_digit(16).unwrap_or(0);
                    number = number << 4 | u64::from(digit);
                }
                (b'0'..=b'9', 4) => {
                    number = number.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
                }
                _ => {}
            }
        }
    }
    false
}

/// When this process was started, in clock ticks since boot.
fn start_ticks() -> Option<u64> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = open(c"/proc/self/stat", flags, Mode::empty()).ok()?;
    let mut bytes = [0; 1024];
    let count = rustix::io::read(&file, &mut bytes).ok()?;
    // The name of the program is in parentheses and may have any characters.
    let end = bytes[..count].iter().rposition(|byte| *byte == b')')?;
    let text = std::str::from_utf8(&bytes[end + 1..count]).ok()?;
    text.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// The inode of the pid namespace of this process.
fn namespace() -> Option<u64> {
    let mut link = [MaybeUninit::uninit(); 64];
    let (link, _) = readlinkat_raw(CWD, c"/proc/self/ns/pid", &mut link[..]).ok()?;
    let digits = link.split(|byte| !byte.is_ascii_digit());
    let digits = digits.rev().find(|digits| !digits.is_empty())?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Adds to a list that is to grow without ending the process where there is no memory. Returns
/// whether it did.
fn push<T>(list: &mut Vec<T>, item: T) -> bool {
    let has_room = list.try_reserve(1).is_ok();
    if has_room {
        list.push(item);
    }
    has_room
}

impl Record {
    /// Makes the record of this process: one page, in which readers may ask for more. `None` where
    /// the system has no place for it. `runtime` is `$XDG_RUNTIME_DIR`.
    pub fn make(runtime: Option<&str>, is_library: bool, now_ns: u64) -> Option<Record> {
        let uid = rustix::process::geteuid().as_raw();
        let pid = rustix::process::getpid().as_raw_pid() as u32;
        let namespace = namespace()?;
        let (path, file) = directory::candidates(runtime, uid)
            .into_iter()
            .flatten()
            .find_map(|directory| Record::create(&directory, uid, pid, namespace))?;
        let mapped = fstat(&file).and_then(|stat| Ok((stat, map::<Page>(file.as_fd(), 0)?)));
        let Ok((stat, page)) = mapped else {
            let _ = unlinkat(CWD, path.as_c_str(), AtFlags::empty());
            return None;
        };
        page.version.store(VERSION, Relaxed);
        page.pid.store(pid, Relaxed);
        page.pid_namespace.store(namespace, Relaxed);
        page.made_ns.store(now_ns, Relaxed);
        write_text(&page.library, env!("CARGO_PKG_VERSION"));
        page.front.store(if is_library { 1 } else { 2 }, Relaxed);
        page.length.store(pages::<Page>(), Relaxed);
        page.signature.store(SIGNATURE, Release);
        Some(Record {
            page,
            path,
            own: own_word(),
            file: (stat.st_dev, stat.st_ino),
            body: OnceLock::new(),
            segments: Mutex::new(Segments {
                loops: Vec::new(),
                threads: Vec::new(),
                handles: Vec::new(),
                origins: Vec::new(),
                count: 0,
                length: pages::<Page>(),
                last_loop: 0,
            }),
        })
    }

    fn create(directory: &Path, uid: u32, pid: u32, namespace: u64) -> Option<(Path, OwnedFd)> {
        let folder = directory::open(directory, uid, true)?;
        if pid.is_multiple_of(SWEEPERS) {
            sweep(&folder, namespace);
        }
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for copy in 1..=directory::COPIES {
            let name = directory::record_name(pid, namespace, copy)?;
            let path = Path::new(format_args!("{}/{}", directory.as_str(), name.as_str()))?;
            let create = || openat(&folder, name.as_c_str(), flags, Mode::RUSR | Mode::WUSR);
            match create() {
                Err(Errno::EXIST) => {}
                created => return Some((path, created.ok()?)),
            }
            let stat = statat(&folder, name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW);
            if stat.is_ok_and(|stat| has_mapped((stat.st_dev, stat.st_ino))) {
                // It is that of another copy of this library.
                continue;
            }
            // It is that of an earlier process with this number, or of the program that this
            // process was before `exec`.
            let _ = unlinkat(&folder, name.as_c_str(), AtFlags::empty());
            return Some((path, create().ok()?));
        }
        None
    }

    /// Removes the file. Readers that have it open keep it.
    pub fn remove(&self) {
        let _ = unlinkat(CWD, self.path.as_c_str(), AtFlags::empty());
    }

    /// Where a reader writes that it wants this process to record. Not zero while the process does.
    pub fn wanted(&self) -> &'static AtomicU32 {
        &self.page.wanted
    }

    /// Whether the process records.
    #[inline]
    pub fn is_recording(&self) -> bool {
        self.body.get().is_some()
    }

    /// Whether this process has made the record, and not one that it was forked from, by whatever
    /// call.
    #[inline]
    pub fn is_own(&self) -> bool {
        self.own.load(Relaxed) != 0
    }

    fn lock(&self) -> MutexGuard<'_, Segments> {
        let guard = self.segments.lock();
        guard.unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Tells readers how to wake a loop of this process: by its eventfd. `None` if too many loops
    /// have told already.
    pub fn offer_waker(&self, fd: i32) -> Option<WakerOffer> {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let number = NUMBER.fetch_add(1, Relaxed);
        let waker = u64::from(number) << 32 | u64::from(fd as u32);
        let slots = self.page.wakers.iter();
        let slot = slots.into_iter().find(|slot| {
            let taken = slot.compare_exchange(0, waker, AcqRel, Relaxed);
            taken.is_ok()
        })?;
        Some(WakerOffer { slot })
    }

    fn refuse<T>(&self) -> Option<T> {
        self.page.refused.fetch_add(1, Relaxed);
        None
    }

    /// Begins to record. Returns whether the process records now.
    pub fn begin(&self, now_ns: u64) -> bool {
        // The lock keeps threads from making two bodies.
        let mut segments = self.lock();
        if self.is_recording() {
            return true;
        }
        let Some((body, offset)) = self.grow::<Body>(&mut segments) else {
            return false;
        };
        self.page
            .start_ticks
            .store(start_ticks().unwrap_or_default(), Relaxed);
        body.since_ns.store(now_ns, Relaxed);
        self.page.body.store(offset, Relaxed);
        self.page.recording.store(1, Release);
        // A reader may have asked for more meanwhile.
        let _ = (self.page.wanted).compare_exchange(0, 1, Relaxed, Relaxed);
        // A reader may take the stacks of threads that stall. Where the system has no such limits
        // the call fails.
        let _ = rustix::process::set_ptracer(rustix::process::PTracer::Any);
        let is_new = self.body.set(body).is_ok();
        ANY.store(true, Release);
        is_new
    }

    /// Adds memory to the end of the file. The file is opened again for it, so that no descriptor
    /// is kept that the program might close or pass on.
    fn grow<T: crate::map::Mapped>(&self, segments: &mut Segments) -> Option<(&'static T, u64)> {
        let offset = segments.length;
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = open(self.path.as_c_str(), flags, Mode::empty());
        let segment = file.and_then(|file| {
            let stat = fstat(&file)?;
            match (stat.st_dev, stat.st_ino) == self.file {
                true => map::<T>(file.as_fd(), offset),
                false => Err(Errno::STALE),
            }
        });
        let Ok(segment) = segment else {
            return self.refuse();
        };
        segments.length = offset + pages::<T>();
        self.page.length.store(segments.length, Release);
        Some((segment, offset))
    }

    /// Adds a segment to the list.
    fn add_segment<T: crate::map::Mapped>(
        &self,
        segments: &mut Segments,
        kind: u32,
        owner: u32,
    ) -> Option<&'static T> {
        let body = self.body.get()?;
        let Some(entry) = body.segments.get(segments.count) else {
            return self.refuse();
        };
        let (segment, offset) = self.grow::<T>(segments)?;
        entry.owner.store(owner, Relaxed);
        entry.offset.store(offset, Relaxed);
        entry.kind.store(kind, Release);
        segments.count += 1;
        body.count.store(segments.count as u32, Release);
        Some(segment)
    }

    /// The segment of an owner among those that are known, which is made if it can be.
    fn owned_segment<T: crate::map::Mapped>(
        &self,
        segments: &mut Segments,
        known: fn(&mut Segments) -> &mut Vec<Owned<T>>,
        kind: u32,
        owner: u32,
    ) -> Option<&'static T> {
        let mut of_owner = known(segments).iter();
        if let Some((_, segment)) = of_owner.find(|(of, _)| *of == owner) {
            return Some(segment);
        }
        let segment = self.add_segment::<T>(segments, kind, owner)?;
        push(known(segments), (owner, segment)).then_some(segment)
    }

    /// Describes a loop from now on. It is said to work until [`LoopWriter::begins`].
    pub fn add_loop(
        &'static self,
        name: &str,
        poller: &str,
        tid: u32,
        now_ns: u64,
    ) -> Option<LoopWriter> {
        let mut segments = self.lock();
        let mut loops = segments.loops.iter();
        let place = match loops.position(|segment| segment.id.load(Acquire) == 0) {
            Some(place) => place,
            None if segments.loops.len() == LOOPS => return self.refuse(),
            None => {
                let place = segments.loops.len();
                let segment = self.add_segment(&mut segments, SEGMENT_LOOP, place as u32)?;
                if !push(&mut segments.loops, segment) {
                    return self.refuse();
                }
                place
            }
        };
        let segment = segments.loops[place];
        segments.last_loop = segments.last_loop.wrapping_add(1).max(1);
        // A reader that sees any of what follows sees that the loop before has left.
        fence(Release);
        looping::clear(segment);
        write_text(&segment.name, name);
        write_text(&segment.poller, poller);
        segment.tid.store(tid, Relaxed);
        segment.made_ns.store(now_ns, Relaxed);
        segment.now.since_ns.store(now_ns, Relaxed);
        let writer = LoopWriter::new(self, segment, place as u32, now_ns);
        segment.id.store(segments.last_loop, Release);
        Some(writer)
    }

    /// Describes a thread of the pool from now on. `None` if the process does not record.
    pub fn add_thread(&'static self, tid: u32, now_ns: u64) -> Option<ThreadWriter> {
        let body = self.body.get()?;
        let mut segments = self.lock();
        let segment = self.free_thread(&mut segments);
        if let Some(segment) = segment {
            segment.running.store(0, Relaxed);
            segment.since_ns.store(now_ns, Relaxed);
            segment.tid.store(tid, Release);
        }
        Some(ThreadWriter { body, segment })
    }

    /// A thread's segment that no thread has.
    fn free_thread(&self, segments: &mut Segments) -> Option<&'static ThreadSegment> {
        let mut threads = segments.threads.iter();
        if let Some(segment) = threads.find(|segment| segment.tid.load(Acquire) == 0) {
            return Some(segment);
        }
        let place = segments.threads.len();
        if place == THREADS {
            return self.refuse();
        }
        let segment = self.add_segment(segments, SEGMENT_THREAD, place as u32)?;
        match push(&mut segments.threads, segment) {
            true => Some(segment),
            false => self.refuse(),
        }
    }

    /// How many threads the pool has, and how many slow requests it runs at a time.
    pub fn pool_threads(&self, threads: u32, slow_limit: u32) {
        if let Some(body) = self.body.get() {
            body.pool.threads.store(threads, Relaxed);
            body.pool.slow_limit.store(slow_limit, Relaxed);
        }
    }
}

/// A loop's entry among those that readers can wake. It is to be dropped before the descriptor is
/// closed.
#[derive(Debug)]
pub struct WakerOffer {
    slot: &'static std::sync::atomic::AtomicU64,
}

impl Drop for WakerOffer {
    fn drop(&mut self) {
        self.slot.store(0, Release);
    }
}
