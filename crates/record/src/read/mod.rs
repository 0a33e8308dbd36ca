//! Reading the record of another process.
//!
//! A reader copies what it wants to know out of the file and never maps it, so that a file that
//! shrinks or changes under it does no harm. Every number from the file that leads anywhere is
//! checked; text comes out without control characters.

mod copy;
mod error;
mod value;

pub use error::Error;
pub use value::{
    Costly, Event, Events, Handle, Histogram, Loop, Now, Pending, Pool, RingId, Snapshot, Thread,
};

use crate::directory::{self, Path};
use crate::layout::{
    self, Body, CALLBACK_KINDS, COSTLY, Costly as RawCostly, HANDLES, Handle as RawHandle,
    HandleSegment, KINDS, LOOPS, LoopSegment, OriginSegment, PARTS, Page, REQUEST_KINDS, REQUESTS,
    RING, SEGMENT_HANDLES, SEGMENT_LOOP, SEGMENT_ORIGINS, SEGMENT_THREAD, SEGMENTS, SIGNATURE,
    State, THREADS, ThreadSegment, VERSION, WAKERS,
};
use crate::write::GRACE_S;
use copy::{Copy, add_thread, callbacks, event, handle, is_walked, pending, pool, stack};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::mem::offset_of;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{Ordering::Acquire, fence};
use std::time::{Duration, Instant};

/// A segment's kind, owner and offset.
type Place = (u32, u32, u64);

/// The time of the monotonic clock, which all processes of a machine share.
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A record that is open for reading.
#[derive(Debug)]
pub struct Reader {
    file: File,
    maps: Maps,
    pid: u32,
}

/// The start time of a process, in clock ticks since boot.
fn start_ticks(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// The number that a process has in its own namespace.
fn own_pid(pid: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    match text.lines().find_map(|line| line.strip_prefix("NSpid:")) {
        Some(numbers) => numbers.split_ascii_whitespace().last()?.parse().ok(),
        None => Some(pid),
    }
}

/// The inode of the pid namespace of the process with this name in `/proc`.
fn namespace(process: &str) -> Option<u64> {
    let metadata = std::fs::metadata(format!("/proc/{process}/ns/pid"));
    metadata.ok().map(|metadata| metadata.ino())
}

/// What a process has mapped, as of the program that it runs now: the list is empty once the
/// process has ended, or runs another program.
#[derive(Debug)]
struct Maps(File);

impl Maps {
    fn open(pid: u32) -> io::Result<Maps> {
        File::open(format!("/proc/{pid}/maps")).map(Maps)
    }

    fn is_alive(&self) -> bool {
        // One line is read, and not the list, for which the system stops a process that maps and
        // unmaps.
        matches!(self.0.read_at(&mut [0; 1], 0), Ok(1))
    }

    /// The files of records among them, path and inode: the process's own, and those of the
    /// processes that it was forked from.
    fn records(&self) -> io::Result<Vec<(PathBuf, u64)>> {
        let mut maps = Vec::new();
        (&self.0).read_to_end(&mut maps)?;
        let maps = String::from_utf8_lossy(&maps);
        let records = maps.lines().filter_map(|line| {
            let path = line.get(line.find('/')?..)?;
            let (directory, name) = path.rsplit_once('/')?;
            let folder = directory.rsplit('/').next()?;
            let is_place = folder == "blacklight" || folder.starts_with("blacklight-");
            let inode = line.split_ascii_whitespace().nth(4)?.parse().ok()?;
            (is_place && directory::parse_name(name).is_some())
                .then(|| (PathBuf::from(path), inode))
        });
        let mut records: Vec<_> = records.collect();
        records.sort_unstable();
        records.dedup();
        Ok(records)
    }
}

/// Whether a process has mapped the record with this inode; `None` if the system does not say.
fn has_mapped(pid: u32, inode: u64) -> Option<bool> {
    match Maps::open(pid).and_then(|maps| maps.records()) {
        Ok(records) => Some(records.iter().any(|(_, mapped)| *mapped == inode)),
        // Its files are gone from `/proc` before it is reaped, and after.
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Some(false),
        Err(error) => (error.kind() == io::ErrorKind::NotFound).then_some(false),
    }
}

impl Reader {
    /// Opens the record of a process of the same user.
    pub fn open(pid: u32) -> Result<Reader, Error> {
        let own = rustix::process::geteuid().as_raw();
        let process = std::fs::metadata(format!("/proc/{pid}"));
        let process = process.map_err(|_| Error::NoProcess(pid))?;
        if process.uid() != own {
            return Err(Error::OtherUser(pid));
        }
        let opened = Maps::open(pid).and_then(|maps| Ok((maps.records()?, maps)));
        let (mapped, maps) = opened.map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => Error::OtherUser(pid),
            io::ErrorKind::NotFound => Error::Gone(pid),
            _ if error.raw_os_error() == Some(libc::ESRCH) => Error::Gone(pid),
            _ => Error::Io(error),
        })?;
        let mut failure = Error::NotHere(pid);
        let mut found: Option<(usize, Reader)> = None;
        for (path, inode) in mapped {
            // The path is that of the process, unless it has changed its root since.
            let of_process = format!("/proc/{pid}/root{}", path.display());
            for path in [PathBuf::from(of_process), path] {
                match Reader::open_file(&path, inode, pid, &maps) {
                    Ok(reader) => {
                        // Of several copies of the library in the process, the one with most loops.
                        let loops = reader.offered()?;
                        if found.as_ref().is_none_or(|(most, _)| loops > *most) {
                            found = Some((loops, reader));
                        }
                        break;
                    }
                    // A child has mapped its parent's as well, which is not what was asked for.
                    Err(Error::NotHere(_)) => {}
                    Err(error) => failure = error,
                }
            }
        }
        found.map(|(_, reader)| reader).ok_or(failure)
    }

    /// How many loops of the process can be woken.
    fn offered(&self) -> Result<usize, Error> {
        let page = self.copy(0, size_of::<Page>())?;
        let wakers = (0..WAKERS).map(|slot| page.u64(offset_of!(Page, wakers) + 8 * slot));
        Ok(wakers.filter(|waker| *waker != 0).count())
    }

    /// Opens the file with this inode as the record of the process.
    fn open_file(
        path: &std::path::Path,
        inode: u64,
        pid: u32,
        maps: &Maps,
    ) -> Result<Reader, Error> {
        let mut options = File::options();
        options
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK);
        let file = options.open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::NotHere(pid),
            _ => Error::Io(error),
        })?;
        let metadata = file.metadata()?;
        let own = rustix::process::geteuid().as_raw();
        if metadata.ino() != inode || metadata.uid() != own || !metadata.is_file() {
            return Err(Error::NotHere(pid));
        }
        let maps = Maps(maps.0.try_clone()?);
        let reader = Reader { file, maps, pid };
        reader.check()?;
        Ok(reader)
    }

    fn check(&self) -> Result<(), Error> {
        let signature = self.copy(offset_of!(Page, signature) as u64, 8)?.u64(0);
        if signature != SIGNATURE {
            return Err(Error::Damaged("its signature is missing"));
        }
        let page = self.copy(0, size_of::<Page>())?;
        let found = page.u32(offset_of!(Page, version));
        if found != VERSION {
            let pid = self.pid;
            return Err(Error::OtherVersion { pid, found });
        }
        let ticks = page.u64(offset_of!(Page, start_ticks));
        let is_own = own_pid(self.pid) == Some(page.u32(offset_of!(Page, pid)))
            && namespace(&self.pid.to_string()) == Some(page.u64(offset_of!(Page, pid_namespace)))
            && (ticks == 0 || start_ticks(self.pid) == Some(ticks));
        match is_own {
            true => Ok(()),
            false => Err(Error::NotHere(self.pid)),
        }
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the process still runs, and is the one whose record was opened.
    pub fn is_alive(&self) -> bool {
        self.maps.is_alive()
    }

    /// Whether the process is a program that loads the C library, and not one on the Rust crate.
    pub fn is_library(&self) -> Result<bool, Error> {
        let page = self.copy(0, size_of::<Page>())?;
        Ok(page.u32(offset_of!(Page, front)) != 2)
    }

    /// Asks the process to record, from the next poll of each of its loops on.
    pub fn want(&self) -> Result<(), Error> {
        let at = offset_of!(Page, wanted) as u64;
        Ok(self.file.write_all_at(&1_u32.to_ne_bytes(), at)?)
    }

    /// Wakes the loops of the process, so that those which sleep notice what they were asked.
    /// Returns whether the system permits that: it may forbid to touch a process that has not
    /// permitted it.
    ///
    /// An entry of the page says that the descriptor is a loop's own. If it still says so after the
    /// descriptor was duplicated, the duplicate is that of the loop, and a number added to its
    /// counter is a wake-up and nothing else. A program that closes descriptors which are not its
    /// own may have another eventfd there: that one lacks our mark.
    pub fn wake(&self) -> Result<bool, Error> {
        let pid = Pid::from_raw(self.pid as i32).ok_or(Error::NoProcess(self.pid))?;
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
            return Ok(false);
        };
        if !self.is_alive() {
            return Err(Error::Gone(self.pid));
        }
        let mut is_permitted = true;
        for slot in 0..WAKERS {
            let at = (offset_of!(Page, wakers) + 8 * slot) as u64;
            let waker = self.copy(at, 8)?.u64(0);
            if waker == 0 {
                continue;
            }
            match pidfd_getfd(&process, waker as u32 as i32, PidfdGetfdFlags::empty()) {
                Ok(fd) => {
                    let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
                    let is_ours = link.is_ok_and(|link| link.as_os_str() == "anon_inode:[eventfd]")
                        && fcntl_getfl(&fd).is_ok_and(|flags| flags.contains(OFlags::APPEND));
                    if is_ours && self.copy(at, 8)?.u64(0) == waker {
                        let _ = rustix::io::write(&fd, &1_u64.to_ne_bytes());
                    }
                }
                // The loop was closed meanwhile.
                Err(rustix::io::Errno::BADF) => {}
                Err(_) => is_permitted = false,
            }
        }
        Ok(is_permitted)
    }

    /// Waits until all loops of the process record and have described their handles, for so long at
    /// most: loops that compute, or that nobody runs, do not begin.
    pub fn await_loops(&self, patience: Duration) -> Result<(), Error> {
        let begun = Instant::now();
        loop {
            let offered = self.offered()?;
            let loops = self.snapshot()?.loops;
            let is_away = |lp: &Loop| matches!(lp.now.state, State::Callback | State::Outside);
            let has_begun = |lp: &Loop| lp.walked_ns != 0 || is_away(lp);
            let have_begun = loops.len() >= offered && loops.iter().all(has_begun);
            if have_begun || begun.elapsed() >= patience {
                return Ok(());
            }
            std::thread::sleep(MOMENT);
        }
    }

    /// Has a loop that sleeps bring its table of handles up to date, if it is not, and waits a
    /// little for that. The table stays as old as it is where the system forbids to wake the loop.
    fn refresh_handles(&self, lp: &Loop) -> Result<(), Error> {
        let is_old = || -> Result<bool, Error> {
            let part = self.copy(lp.offset, offset_of!(LoopSegment, turn))?;
            let state = part.now(offset_of!(LoopSegment, now), false).state;
            let is_asleep = state == State::Asleep;
            let is_same = part.u32(offset_of!(LoopSegment, id)) == lp.id;
            Ok(is_same && is_asleep && !is_walked(&part))
        };
        if !is_old()? {
            return Ok(());
        }
        let at = offset_of!(Page, wanted) as u64;
        let asked = self.copy(at, 4)?.u32(0).wrapping_add(1).max(1);
        self.file.write_all_at(&asked.to_ne_bytes(), at)?;
        let begun = Instant::now();
        if self.wake()? {
            while is_old()? && begun.elapsed() < PATIENCE {
                std::thread::sleep(MOMENT);
            }
        }
        Ok(())
    }

    /// Whether the process records. An error if it was to, and could not.
    pub fn is_recording(&self) -> Result<bool, Error> {
        let page = self.copy(0, size_of::<Page>())?;
        let is_recording = page.u32(offset_of!(Page, recording)) == 1;
        match self.not_recording(&page) {
            refused @ Error::Refused(_) if !is_recording => Err(refused),
            _ => Ok(is_recording),
        }
    }

    /// Why a process does not record that was asked to.
    fn not_recording(&self, page: &Copy) -> Error {
        match page.u32(offset_of!(Page, refused)) {
            0 => Error::NotRecording(self.pid),
            _ => Error::Refused(self.pid),
        }
    }

    /// Copies a part of the file. The system copies in any order within one call; what is copied by a
    /// later call is of a later moment, on processors too that read ahead.
    fn copy(&self, at: u64, length: usize) -> Result<Copy, Error> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, at)?;
        fence(Acquire);
        Ok(Copy(bytes))
    }

    /// The segments: kind, owner, offset.
    fn segments(&self) -> Result<(Copy, Vec<Place>, u32), Error> {
        // What says that something is there is copied before that which is there.
        let recording = self.copy(offset_of!(Page, recording) as u64, 4)?.u32(0);
        let page = self.copy(0, size_of::<Page>())?;
        if recording != 1 {
            return Err(self.not_recording(&page));
        }
        let body_at = page.u64(offset_of!(Page, body));
        let count_at = body_at.saturating_add(offset_of!(Body, count) as u64);
        let count = self.copy(count_at, 4)?.u32(0) as usize;
        let body = self.copy(body_at, size_of::<Body>())?;
        if count > SEGMENTS {
            return Err(Error::Damaged("it lists more segments than it may have"));
        }
        let segments = (0..count).map(|index| {
            let at = offset_of!(Body, segments) + index * size_of::<layout::Segment>();
            (
                body.u32(at + offset_of!(layout::Segment, kind)),
                body.u32(at + offset_of!(layout::Segment, owner)),
                body.u64(at + offset_of!(layout::Segment, offset)),
            )
        });
        let segments = segments.collect();
        Ok((body, segments, page.u32(offset_of!(Page, refused))))
    }

    /// Copies all but handles and events.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        let (body, segments, refused) = self.segments()?;
        let mut loops = Vec::new();
        let mut pool = pool(&body);
        for (kind, owner, offset) in segments {
            match kind {
                SEGMENT_LOOP => loops.extend(self.read_loop(owner, offset)?),
                SEGMENT_THREAD => self.read_thread(&mut pool, owner, offset)?,
                SEGMENT_HANDLES | SEGMENT_ORIGINS => {}
                _ => return Err(Error::Damaged("it has a segment of no known kind")),
            }
            if loops.len() > LOOPS || pool.members.len() > THREADS {
                return Err(Error::Damaged(
                    "it has more loops or threads than it may have",
                ));
            }
        }
        loops.sort_by_key(|lp| lp.id);
        pool.members.sort_by_key(|thread| thread.place);
        Ok(Snapshot {
            taken_ns: now_ns(),
            since_ns: body.u64(offset_of!(Body, since_ns)),
            refused,
            loops,
            pool,
        })
    }

    fn read_loop(&self, place: u32, offset: u64) -> Result<Option<Loop>, Error> {
        let id = self.loop_id(offset)?;
        let part = self.copy(offset, offset_of!(LoopSegment, ring))?;
        let (now, time_ns) = self.now_at(offset)?;
        // A loop that was closed meanwhile has left its place to another.
        if id == 0 || self.loop_id(offset)? != id {
            return Ok(None);
        }
        let mut costly: Vec<Costly> = (0..COSTLY)
            .map(|index| {
                let at = offset_of!(LoopSegment, costly) + index * size_of::<RawCostly>();
                Costly {
                    address: part.u64(at + offset_of!(RawCostly, address)),
                    kind: part.u64(at + offset_of!(RawCostly, kind)) as usize % KINDS,
                    count: part.u64(at + offset_of!(RawCostly, count)),
                    total_ns: part.u64(at + offset_of!(RawCostly, total_ns)),
                    longest_ns: part.u64(at + offset_of!(RawCostly, longest_ns)),
                }
            })
            .filter(|costly| costly.address != 0)
            .collect();
        costly.sort_by_key(|costly| std::cmp::Reverse(costly.total_ns));
        costly.truncate(20);
        let (by_phase, by_kind) = callbacks(&part);
        Ok(Some(Loop {
            id,
            name: part.text(offset_of!(LoopSegment, name), 32),
            poller: part.text(offset_of!(LoopSegment, poller), 16),
            tid: part.u32(offset_of!(LoopSegment, tid)),
            made_ns: part.u64(offset_of!(LoopSegment, made_ns)),
            now,
            turns: part.u64(offset_of!(LoopSegment, turns)),
            callbacks: by_kind
                .iter()
                .fold(0, |sum, of| of.count().saturating_add(sum)),
            requests: part.u32(offset_of!(LoopSegment, requests)),
            pending: pending(&part),
            requests_lost: part.u32(offset_of!(LoopSegment, requests_lost)),
            active: part.u32(offset_of!(LoopSegment, active)),
            handles_lost: part.u32(offset_of!(LoopSegment, handles_lost)),
            walked_ns: part.u64(offset_of!(LoopSegment, walked_ns)),
            is_walked: is_walked(&part),
            time_ns,
            turn: part.histogram(offset_of!(LoopSegment, turn)),
            delay: part.histogram(offset_of!(LoopSegment, delay)),
            late: part.histogram(offset_of!(LoopSegment, late)),
            sleep: part.histogram(offset_of!(LoopSegment, sleep)),
            outside: part.histogram(offset_of!(LoopSegment, outside)),
            by_phase,
            by_kind,
            costly,
            offset,
            place,
        }))
    }

    /// The number of the loop that has the segment there.
    fn loop_id(&self, offset: u64) -> Result<u32, Error> {
        let at = offset.saturating_add(offset_of!(LoopSegment, id) as u64);
        Ok(self.copy(at, 4)?.u32(0))
    }

    /// What the loop's thread is doing, as of one moment.
    pub fn now(&self, lp: &Loop) -> Result<Now, Error> {
        Ok(self.now_at(lp.offset)?.0)
    }

    /// What a loop's thread is doing, and how long it was in each state before.
    fn now_at(&self, offset: u64) -> Result<(Now, [u64; 5]), Error> {
        const NOW: usize = offset_of!(LoopSegment, now);
        const TIME: usize = offset_of!(LoopSegment, time_ns) - NOW;
        let at = offset.saturating_add(NOW as u64);
        let sequence = || Ok(self.copy(at, 4)?.u32(0));
        let copy = || self.copy(at, TIME + 8 * State::ALL.len());
        // A loop that is busy changes it all the time; a few tries find it at rest.
        let (part, is_whole) = at_rest(sequence, |sequence| sequence % 2 == 0, copy)?;
        let time_ns = std::array::from_fn(|state| part.u64(TIME + 8 * state));
        Ok((part.now(0, !is_whole), time_ns))
    }

    /// Reads a thread's segment: what threads that have ended have run counts too.
    fn read_thread(&self, pool: &mut Pool, place: u32, offset: u64) -> Result<(), Error> {
        let part = self.copy(offset, offset_of!(ThreadSegment, ring))?;
        add_thread(pool, &part);
        let tid = part.u32(offset_of!(ThreadSegment, tid));
        if tid == 0 {
            return Ok(());
        }
        let running = part.u32(offset_of!(ThreadSegment, running)) as usize;
        let running = running.checked_sub(1).map(|kind| kind % REQUESTS);
        if let Some(kind) = running {
            pool.running[kind] = pool.running[kind].saturating_add(1);
        }
        pool.members.push(Thread {
            place,
            tid,
            running,
            since_ns: part.u64(offset_of!(ThreadSegment, since_ns)),
            token: part.u64(offset_of!(ThreadSegment, token)),
            ring: RingId(offset.saturating_add(offset_of!(ThreadSegment, ring) as u64)),
        });
        Ok(())
    }

    /// The handles of a loop, in the order of its table; none if it was closed. A loop that sleeps
    /// is woken to bring its table up to date, if it has not done so before it fell asleep.
    pub fn handles(&self, lp: &Loop) -> Result<Vec<Handle>, Error> {
        self.refresh_handles(lp)?;
        let (_, segments, _) = self.segments()?;
        let mut handles = Vec::new();
        let own = |of: u32| {
            let own = segments.iter().copied();
            own.filter(move |(kind, owner, _)| *kind == of && owner & 0xffff == lp.place)
        };
        if own(SEGMENT_HANDLES).count() > PARTS {
            return Err(Error::Damaged("a loop has more handles than it may have"));
        }
        for (_, owner, offset) in own(SEGMENT_HANDLES) {
            let part = self.copy_at_rest(offset)?;
            let first = (owner >> 16) * HANDLES as u32;
            let made = handles.len();
            handles.extend((0..HANDLES).filter_map(|at| handle(&part, at, first + at as u32)));
            let origins = own(SEGMENT_ORIGINS).find(|(_, of, _)| *of == owner);
            if let Some((_, _, offset)) = origins {
                let part = self.copy(offset, size_of::<OriginSegment>())?;
                for handle in handles.iter_mut().skip(made) {
                    handle.stack = stack(&part, (handle.index - first) as usize);
                }
            }
        }
        handles.sort_by_key(|handle| handle.index);
        match self.loop_id(lp.offset)? == lp.id {
            true => Ok(handles),
            false => Ok(Vec::new()),
        }
    }

    /// Copies a segment of handles, of which none changed meanwhile, unless they change all the
    /// time.
    fn copy_at_rest(&self, offset: u64) -> Result<Copy, Error> {
        let copy = || self.copy(offset, size_of::<HandleSegment>());
        let sequences = || -> Result<Vec<u32>, Error> {
            let part = copy()?;
            let at = |at: usize| at * size_of::<RawHandle>() + offset_of!(RawHandle, sequence);
            Ok((0..HANDLES).map(|handle| part.u32(at(handle))).collect())
        };
        let is_even = |sequences: &Vec<u32>| sequences.iter().all(|of| of.is_multiple_of(2));
        Ok(at_rest(sequences, is_even, copy)?.0)
    }

    /// The events of a ring from number `from` on, but for those of loops that had it before.
    pub fn events(&self, ring: RingId, from: u64) -> Result<Events, Error> {
        let at = |field: usize| ring.0.saturating_add(field as u64);
        let count_at = at(offset_of!(layout::Ring, count));
        for _ in 0..TRIES {
            let count = self.copy(count_at, 8)?.u64(0);
            if from == count {
                // Readers ask often, and mostly nothing has happened.
                let (events, lost) = (Vec::new(), 0);
                return Ok(Events {
                    events,
                    lost,
                    next: count,
                });
            }
            let begin = self.copy(at(offset_of!(layout::Ring, first)), 8)?.u64(0);
            let from = from.max(begin).min(count);
            let first = from.max(count.saturating_sub(RING as u64));
            let events_at = at(offset_of!(layout::Ring, events));
            let part = self.copy(events_at, RING * size_of::<layout::Event>())?;
            let written = self.copy(count_at, 8)?.u64(0);
            if written < count {
                // The number was read while half of its bytes had changed.
                continue;
            }
            // The event that is being written now, and those that were meanwhile, may be half of
            // two.
            let whole = first.max(written.saturating_add(1).saturating_sub(RING as u64));
            let events = (whole..count).filter_map(|number| event(&part, number));
            return Ok(Events {
                events: events.collect(),
                lost: whole.min(count) - from,
                next: count,
            });
        }
        Err(Error::Damaged(
            "the number of its events goes back and forth",
        ))
    }
}

/// How often something is read that changes all the time.
const TRIES: usize = 16;

/// Copies something whose writer makes its sequence numbers odd while it changes, and says whether
/// the copy is of one moment. The numbers are read apart, before and after, for the reason that
/// [`Reader::copy`] has.
fn at_rest<S: PartialEq>(
    sequence: impl Fn() -> Result<S, Error>,
    is_even: impl Fn(&S) -> bool,
    copy: impl Fn() -> Result<Copy, Error>,
) -> Result<(Copy, bool), Error> {
    let mut before = sequence()?;
    let mut tries = 1;
    loop {
        let part = copy()?;
        let after = sequence()?;
        let is_whole = is_even(&before) && before == after;
        if is_whole || tries == TRIES {
            return Ok((part, is_whole));
        }
        before = after;
        tries += 1;
    }
}

/// How long a loop may take that is woken to describe its handles.
const PATIENCE: Duration = Duration::from_millis(50);
/// How often a reader looks that waits.
const MOMENT: Duration = Duration::from_micros(200);

/// The name of a callback's kind.
pub fn callback_kind(kind: usize) -> &'static str {
    CALLBACK_KINDS.get(kind).copied().unwrap_or("unknown")
}

/// The name of a request's kind.
pub fn request_kind(kind: usize) -> &'static str {
    REQUEST_KINDS.get(kind).copied().unwrap_or("unknown")
}

/// The directories that may hold the records of this user, of which each may be missing.
pub fn directories() -> Vec<PathBuf> {
    let uid = rustix::process::geteuid().as_raw();
    let runtime = std::env::var("XDG_RUNTIME_DIR").ok();
    let directories = directory::candidates(runtime.as_deref(), uid);
    let directories = directories.iter().flatten();
    directories.map(|path| path.as_str().into()).collect()
}

/// The processes of this user that have a record, in the order of their numbers. Records that dead
/// processes have left are removed.
pub fn list() -> Vec<u32> {
    let uid = rustix::process::geteuid().as_raw();
    let runtime = std::env::var("XDG_RUNTIME_DIR").ok();
    let directories = directory::candidates(runtime.as_deref(), uid);
    let mut pids: Vec<u32> = directories
        .iter()
        .flatten()
        .flat_map(|directory| in_directory(directory, uid))
        .collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// Removes the record of a process that has ended, or of this process at its end. One that is still
/// there keeps it.
pub fn remove(pid: u32) {
    let uid = rustix::process::geteuid().as_raw();
    let runtime = std::env::var("XDG_RUNTIME_DIR").ok();
    let Some(namespace) = namespace("self") else {
        return;
    };
    let is_over = pid == std::process::id() || start_ticks(pid).is_none();
    for directory in directory::candidates(runtime.as_deref(), uid)
        .iter()
        .flatten()
    {
        if is_over && directory::open(directory, uid, false).is_some() {
            for copy in 1..=directory::COPIES {
                if let Some(name) = directory::record_name(pid, namespace, copy) {
                    // Most often there is none.
                    let _ =
                        std::fs::remove_file(format!("{}/{}", directory.as_str(), name.as_str()));
                }
            }
        }
    }
}

/// The inode of the first pid namespace of a machine, in which all processes are seen.
const INITIAL: u64 = 0xeffffffc;

/// The pid namespace whose processes `/proc` shows, by their numbers there. It may be one around
/// ours.
fn shown_namespace() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let numbers = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))
        .unwrap_or_default();
    // This process has a number in each namespace from there on.
    match numbers.split_ascii_whitespace().count() {
        0 | 1 => namespace("self"),
        _ => namespace("1"),
    }
}

fn in_directory(directory: &Path, uid: u32) -> Vec<u32> {
    let Some(folder) = directory::open(directory, uid, false) else {
        return Vec::new();
    };
    let Ok(entries) = std::fs::read_dir(directory.as_str()) else {
        return Vec::new();
    };
    let shown = shown_namespace();
    let records = entries.flatten().filter_map(|entry| {
        let (pid, namespace) = directory::parse_name(entry.file_name().to_str()?)?;
        let metadata = entry.metadata().ok()?;
        let is_dead = match shown == Some(namespace) {
            true => match has_mapped(pid, metadata.ino()) {
                Some(true) => return Some(pid),
                // The system may not let us look at what may be its process.
                mapped => mapped == Some(false),
            },
            // It has another number here, if it is seen here at all.
            false => shown == Some(INITIAL) && !may_be_mapped(metadata.ino()),
        };
        // A process that is only now making its record has not mapped it yet.
        let age = metadata.modified().ok()?.elapsed().ok()?;
        if is_dead && age >= GRACE {
            let name = CString::new(entry.file_name().into_encoded_bytes()).ok()?;
            let file = (metadata.dev(), metadata.ino());
            directory::remove_file(&folder, &name, file);
        }
        None
    });
    records.collect()
}

/// How old a record is at least that is taken for one that a dead process has left.
const GRACE: Duration = Duration::from_secs(GRACE_S as u64);

/// Whether any process may have mapped the record with this inode: one that `/proc` shows has, or is
/// not ours to look at.
fn may_be_mapped(inode: u64) -> bool {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return true;
    };
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.into_iter()
        .any(|pid: u32| has_mapped(pid, inode) != Some(false))
}

#[cfg(test)]
mod tests;
