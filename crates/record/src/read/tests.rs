//! A record is foreign data to whoever reads it: whatever it says, reading ends, in bounds, with
//! values or a clear error.

use super::*;
use crate::layout::{ACTIVE, PENDING, REFERENCED, TEXT};
use crate::{
    Callback, HandleInfo, LoopWriter, Record, Request, ThreadWriter, What, pool_queued, pool_taken,
};
use std::sync::Mutex;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};

/// A record of this process in a directory of the test's own, which is removed at the end.
struct Scratch {
    directory: PathBuf,
    record: &'static Record,
}

impl Scratch {
    fn new(name: &str) -> Scratch {
        let own = format!("/dev/shm/blacklight-test-{}-{name}", std::process::id());
        // Numbers of processes are used again, and one that was killed has left its own.
        let _ = std::fs::remove_dir_all(&own);
        std::fs::create_dir(&own).expect("there is /dev/shm");
        let record = Record::make(Some(&own), true, 1).expect("there is room for a page");
        let record: &'static Record = Box::leak(Box::new(record));
        // Records stay, as their mappings do, and leak checkers are to know it.
        static KEPT: Mutex<Vec<&'static Record>> = Mutex::new(Vec::new());
        KEPT.lock().expect("nobody panics with it").push(record);
        Scratch {
            directory: own.into(),
            record,
        }
    }

    fn path(&self) -> PathBuf {
        let folder = self.directory.join("blacklight");
        let mut entries = std::fs::read_dir(folder).expect("the record was made there");
        entries.next().expect("one record").unwrap().path()
    }

    fn reader(&self) -> Reader {
        let path = self.path();
        let inode = std::fs::metadata(&path).unwrap().ino();
        let pid = std::process::id();
        let maps = Maps::open(pid).unwrap();
        Reader::open_file(&path, inode, pid, &maps).expect("it is this process's record")
    }

    fn add_loop(&self, name: &str) -> LoopWriter {
        let lp = self.record.add_loop(name, "epoll", 1, 1);
        let mut lp = lp.expect("there is room for a loop");
        lp.begins(1);
        lp
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// A number that is likely to lead somewhere wrong.
    fn odd(&mut self, length: u64) -> u64 {
        match self.below(9) {
            0 => 0,
            1 => u64::MAX,
            2 => i64::MAX as u64,
            3 => 1 << 63,
            4 => length - self.below(70_000).min(length),
            5 => length + self.below(70_000),
            6 => self.below(40) * 65536,
            7 => self.below(300),
            _ => self.next(),
        }
    }
}

fn request(kind: u8, token: u64) -> Request {
    Request {
        kind,
        token,
        queued_ns: 5,
    }
}

/// Has a loop go through a few turns, with callbacks in a nested run.
fn turns(lp: &mut LoopWriter, count: u64) {
    for turn in 1..=count {
        let at = turn * 1_000;
        lp.run_begins(at, None);
        lp.turn_begins(at + 1, turn);
        let callback = Callback {
            turn,
            phase: (turn % 7) as u8,
            kind: (turn % 25) as u8,
            address: 0x1000 + turn % 40 * 16,
            token: turn,
            delay_ns: Some(turn),
        };
        lp.callback_begins(at + 2, callback);
        lp.run_begins(at + 3, None);
        lp.callback_begins(at + 4, callback);
        lp.callback_ends(at + 5);
        lp.run_ends(at + 6);
        lp.callback_ends(at + 7);
        lp.wait_begins(State::Asleep, at + 8, at + 10);
        lp.wait_ends(at + 12, at + 10);
        lp.run_ends(at + 13);
    }
}

/// A record that has something of everything.
fn fill(scratch: &Scratch) -> (Vec<LoopWriter>, ThreadWriter) {
    let record = scratch.record;
    assert!(record.begin(1));
    let mut loops = vec![scratch.add_loop("first"), scratch.add_loop("zwölf")];
    for lp in &mut loops {
        turns(lp, 300);
        for index in 0..40 {
            lp.made(index, u64::from(index), 3, Some(&[1, 2, 3]));
            let info = HandleInfo {
                what: (1 + index % 14) | ACTIVE | REFERENCED,
                token: u64::from(index),
                text: "/a/path/that is long enough to be cut at a character: ääääääääääää",
                ..HandleInfo::default()
            };
            assert!(lp.set_handle(index, &info, 4));
            lp.submitted(request(2, u64::from(index) * 16));
        }
        lp.walked(5, 0);
        lp.counts(40, 40);
    }
    record.pool_threads(4, 2);
    let thread = record.add_thread(9, 1).expect("it records");
    for token in 0..50 {
        let request = request((token % 8) as u8, token);
        pool_queued(record, request, Some(request));
        pool_taken(record, request, None);
        thread.begins(request, 7);
        thread.ends(request, 7, 9);
    }
    let waiting = request(3, 99);
    pool_queued(record, waiting, Some(waiting));
    (loops, thread)
}

fn is_clean(text: &str) -> bool {
    text.chars().count() <= TEXT && !text.chars().any(char::is_control)
}

/// Reads all of a record, and counts with what it says.
fn read_all(reader: &Reader, deeply: bool) -> Result<(), Error> {
    if deeply {
        reader.check()?;
    }
    reader.is_recording()?;
    let snapshot = reader.snapshot()?;
    assert!(snapshot.loops.len() <= LOOPS && snapshot.pool.members.len() <= THREADS);
    for lp in &snapshot.loops {
        assert!(is_clean(&lp.name) && is_clean(&lp.poller));
        assert!(lp.pending.len() <= PENDING && lp.costly.len() <= 20);
        let times_ns = lp.time_until(snapshot.taken_ns);
        assert!(
            times_ns
                .iter()
                .zip(lp.time_ns)
                .all(|(sum, part)| *sum >= part)
        );
        let mut sum = lp.turn;
        sum.add(&lp.delay);
        for histogram in lp.by_phase.iter().chain(&lp.by_kind).chain([&sum]) {
            histogram.quantile_ns(0.99);
            histogram.mean_ns();
            histogram.since(&lp.late);
        }
        assert!(!callback_kind(lp.now.kind).is_empty());
        reader.now(lp)?;
        if deeply {
            for handle in reader.handles(lp)? {
                assert!(is_clean(&handle.text) && handle.stack.len() <= layout::FRAMES);
            }
            assert!(reader.events(lp.ring(), 0)?.events.len() <= RING);
        }
    }
    for thread in &snapshot.pool.members {
        if deeply {
            let events = reader.events(thread.ring, 7)?;
            assert!(events.events.len() <= RING);
        }
    }
    Ok(())
}

/// Where the numbers are that lead somewhere.
fn vital(random: &mut Random, places: &[Place]) -> u64 {
    let body = 65536;
    let segments = body + offset_of!(Body, segments) as u64;
    let some = places.get(random.below(8) as usize);
    let inside = some.map_or(0, |(_, _, offset)| (*offset).min(1 << 30));
    let at = match random.below(7) {
        0 => random.below(size_of::<Page>() as u64),
        1 => body + random.below(16),
        2 => segments + random.below(16 * 10),
        3 => inside + random.below(600),
        4 => inside + offset_of!(LoopSegment, ring) as u64 + random.below(200),
        5 => inside + random.below(50_000),
        _ => inside + random.below(128 * 40),
    };
    at / 8 * 8
}

#[test]
fn a_record_may_say_anything() {
    let scratch = Scratch::new("hostile");
    let _writers = fill(&scratch);
    let original = std::fs::read(scratch.path()).unwrap();
    // A copy that nobody writes to, in the place of the record.
    let path = scratch.directory.join("copy");
    std::fs::write(&path, &original).unwrap();
    let mut reader = scratch.reader();
    reader.file = File::options().read(true).write(true).open(&path).unwrap();
    read_all(&reader, true).expect("nothing has been changed yet");
    let (_, places, _) = reader.segments().unwrap();
    let length = original.len() as u64;
    let (mut refused, mut read) = (0, 0);
    for seed in 0..20_000 {
        let mut random = Random(seed);
        let changes = 1 + random.below(4);
        let mut changed = Vec::new();
        for _ in 0..changes {
            let at = vital(&mut random, &places);
            let bytes = match random.below(4) {
                0 => random.next().to_ne_bytes(),
                1 => *b"\x1b[2J\xff\xfe\xe2\x80",
                _ => {
                    let number = random.odd(length).to_ne_bytes();
                    let half = random.below(3) == 0;
                    let mut bytes = number;
                    if half {
                        bytes.rotate_left(4);
                    }
                    bytes
                }
            };
            if at + 8 <= length {
                reader.file.write_all_at(&bytes, at).unwrap();
                changed.push(at as usize);
            }
        }
        match read_all(&reader, seed % 16 == 0) {
            Ok(()) => read += 1,
            Err(error) => {
                refused += 1;
                let text = error.to_string();
                assert!(
                    !text.is_empty() && !text.chars().any(char::is_control),
                    "{text:?}"
                );
                assert!(!matches!(error, Error::Io(_)), "seed {seed}: {text}");
            }
        }
        for at in changed {
            reader
                .file
                .write_all_at(&original[at..at + 8], at as u64)
                .unwrap();
        }
    }
    assert!(
        refused > 1_000 && read > 1_000,
        "{refused} refused, {read} read"
    );
    read_all(&reader, true).expect("it is as it was");
}

#[test]
fn a_record_may_end_anywhere() {
    let scratch = Scratch::new("short");
    let _writers = fill(&scratch);
    let mut reader = scratch.reader();
    let original = std::fs::read(scratch.path()).unwrap();
    let path = scratch.directory.join("copy");
    let mut random = Random(1);
    for round in 0..60 {
        let end = match round {
            0 => 0,
            1..20 => random.below(70_000),
            _ => random.below(original.len() as u64),
        };
        std::fs::write(&path, &original[..end as usize]).unwrap();
        reader.file = File::open(&path).unwrap();
        match read_all(&reader, true) {
            Err(Error::Damaged(_)) => {}
            // What is missing is behind the last segment's end.
            Ok(()) => assert!(end + 65536 > original.len() as u64, "{end}"),
            Err(error) => panic!("{end}: {error}"),
        }
    }
}

#[test]
fn a_writer_that_was_killed_half_way_is_still_read() {
    let scratch = Scratch::new("halfway");
    let _writers = fill(&scratch);
    let mut reader = scratch.reader();
    let path = scratch.directory.join("copy");
    std::fs::copy(scratch.path(), &path).unwrap();
    reader.file = File::options().read(true).write(true).open(&path).unwrap();
    let before = reader.snapshot().unwrap();
    let (_, places, _) = reader.segments().unwrap();
    for (kind, _, offset) in places {
        let sequences: Vec<u64> = match kind {
            SEGMENT_LOOP => vec![offset_of!(LoopSegment, now) as u64],
            SEGMENT_HANDLES => (0..HANDLES as u64)
                .map(|handle| handle * size_of::<RawHandle>() as u64)
                .collect(),
            _ => Vec::new(),
        };
        for at in sequences {
            let odd = 7_u32.to_ne_bytes();
            reader.file.write_all_at(&odd, offset + at).unwrap();
        }
    }
    let after = reader.snapshot().unwrap();
    assert_eq!(after.loops.len(), before.loops.len());
    for (before, after) in before.loops.iter().zip(&after.loops) {
        assert!(!before.now.is_torn && after.now.is_torn);
        let after_now = Now {
            is_torn: false,
            ..after.now
        };
        assert_eq!(before.now, after_now);
        assert_eq!(reader.handles(after).unwrap().len(), 40);
    }
}

/// Each change of a handle's entry has a sequence number, or a reader may take the kind of one handle
/// with the name of the next.
#[test]
fn no_part_of_a_handle_changes_unannounced() {
    let scratch = Scratch::new("announced");
    assert!(scratch.record.begin(1));
    let mut lp = scratch.add_loop("");
    let info = HandleInfo {
        what: 1,
        token: 7,
        ..HandleInfo::default()
    };
    assert!(lp.set_handle(3, &info, 2));
    let reader = scratch.reader();
    let (_, places, _) = reader.segments().unwrap();
    let mut places = places.into_iter();
    let (_, _, offset) = places.find(|of| of.0 == SEGMENT_HANDLES).unwrap();
    let at = offset + 3 * size_of::<RawHandle>() as u64;
    let sequence = || reader.copy(at, 4).unwrap().u32(0);
    let before = sequence();
    lp.made(3, 8, 3, None);
    assert_eq!(sequence(), before + 2);
    assert!(lp.set_handle(3, &HandleInfo { token: 8, ..info }, 4));
    lp.remove_handle(3);
    assert_eq!(sequence(), before + 6);
    lp.remove_handle(3);
    assert_eq!(sequence(), before + 6, "it was empty");
}

/// What walks may take follows from this.
#[test]
fn a_loop_is_busy_while_it_works_and_spins_and_calls_back() {
    let scratch = Scratch::new("busy");
    assert!(scratch.record.begin(1));
    let mut lp = scratch.add_loop("");
    turns(&mut lp, 5);
    lp.run_begins(6_000, None);
    lp.wait_begins(State::Spinning, 6_001, 6_003);
    lp.wait_ends(6_003, 6_003);
    let reader = scratch.reader();
    let read = reader.snapshot().unwrap().loops.remove(0);
    let [_, working, callbacks, _, spinning] = read.time_ns;
    assert_eq!(lp.busy_ns(), working + callbacks + spinning);
    assert_eq!(lp.busy_ns(), 5 * (13 - 4) + 3);
}

/// Tells event after event, whose parts all follow from its number.
fn tell(lp: &mut LoopWriter, number: u64) {
    let callback = Callback {
        turn: number,
        phase: (number % 7) as u8,
        kind: (number % 25) as u8,
        address: (number << 8) | 1,
        token: number,
        delay_ns: None,
    };
    lp.callback_begins(number * 16, callback);
    lp.callback_ends(number * 16 + number % 16);
}

fn check(event: &Event) -> u64 {
    let number = event.token;
    let whole = event.what == What::Callback
        && event.at_ns == number * 16
        && event.took_ns == number % 16
        && event.phase as u64 == number % 7
        && event.kind as u64 == number % 25
        && event.address == (number << 8) | 1
        && event.turn == number as u32;
    assert!(whole, "half of two events: {event:?}");
    number
}

/// A reader sees each of ten million events once or as lost, whole and in order, however long it
/// sleeps meanwhile.
#[test]
fn events_are_read_whole_or_counted_as_lost() {
    const EVENTS: u64 = 10_000_000;
    let scratch = Scratch::new("events");
    assert!(scratch.record.begin(1));
    let mut lp = scratch.add_loop("busy");
    let reader = scratch.reader();
    let ring = reader.snapshot().unwrap().loops[0].ring();
    let is_over = AtomicBool::new(false);
    let (mut next, mut read, mut lost, mut overrun) = (0, 0, 0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..EVENTS {
                tell(&mut lp, number);
            }
            is_over.store(true, Release);
        });
        let mut round = 0;
        loop {
            let is_last = is_over.load(Acquire);
            let events = reader.events(ring, next).unwrap();
            assert_eq!(events.next, next + events.lost + events.events.len() as u64);
            let numbers = events.events.iter().map(check);
            for (number, expected) in numbers.zip(next + events.lost..) {
                assert_eq!(number, expected);
            }
            overrun += u64::from(events.lost > 0);
            (next, lost) = (events.next, lost + events.lost);
            read += events.events.len() as u64;
            if is_last {
                break;
            }
            round += 1;
            // Now and then it sleeps until the ring has been overrun several times.
            while round % 8 == 0 && !is_over.load(Relaxed) {
                let ahead = reader.copy(ring.0, 8).unwrap().u64(0) - next;
                if ahead > 3 * RING as u64 {
                    break;
                }
                std::thread::yield_now();
            }
        }
    });
    assert_eq!((next, read + lost), (EVENTS, EVENTS));
    assert!(
        read >= RING as u64 - 1 && overrun > 0,
        "{read} read, {overrun} times overrun"
    );
    let lp = &reader.snapshot().unwrap().loops[0];
    assert_eq!(lp.callbacks, EVENTS);
    let sum: u64 = lp.by_kind.iter().map(Histogram::count).sum();
    assert_eq!(sum, EVENTS);
}

/// Loops come and go in one place while a reader reads: it never takes one for the other.
#[test]
fn a_loop_is_not_taken_for_the_one_before_it_in_its_place() {
    let scratch = Scratch::new("places");
    assert!(scratch.record.begin(1));
    let reader = scratch.reader();
    let is_over = AtomicBool::new(false);
    let seen = AtomicU64::new(0);
    // More than these only where the reader has had no time yet.
    const LIVES: u64 = 1_500;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for life in 1..=100 * LIVES {
                if life > LIVES && seen.load(Relaxed) > 0 {
                    break;
                }
                let name = life.to_string();
                let record = scratch.record;
                let mut lp = record.add_loop(&name, "poll", life as u32, 1).unwrap();
                lp.begins(1);
                for number in 0..40 {
                    tell(&mut lp, (life << 20) | number);
                    let info = HandleInfo {
                        what: 1,
                        token: life,
                        ..HandleInfo::default()
                    };
                    lp.set_handle(number as u32, &info, 1);
                }
            }
            is_over.store(true, Release);
        });
        while !is_over.load(Acquire) {
            let snapshot = reader.snapshot().unwrap();
            assert!(snapshot.loops.len() <= 1);
            for lp in &snapshot.loops {
                let life = u64::from(lp.id);
                assert_eq!((lp.name.parse(), lp.tid), (Ok(life), lp.id));
                assert!(lp.callbacks <= 40);
                for handle in reader.handles(lp).unwrap() {
                    assert_eq!(handle.token, life);
                }
                let events = reader.events(lp.ring(), 0).unwrap();
                let lives = events.events.iter().map(|event| check(event) >> 20);
                let lives: Vec<u64> = lives.collect();
                assert!(
                    lives.is_sorted() && lives.iter().all(|of| *of >= life),
                    "{life}"
                );
                seen.fetch_add(1, Relaxed);
            }
        }
    });
    assert!(seen.into_inner() > 0);
}

#[test]
fn what_the_record_has_no_room_for_is_refused_and_counted() {
    let scratch = Scratch::new("full");
    let record = scratch.record;
    assert!(record.begin(1));
    let reader = scratch.reader();
    let mut loops: Vec<_> = (0..LOOPS).map(|_| scratch.add_loop("")).collect();
    for _ in 0..3 {
        assert!(record.add_loop("", "", 1, 1).is_none());
    }
    let snapshot = reader.snapshot().unwrap();
    assert_eq!((snapshot.loops.len(), snapshot.refused), (LOOPS, 3));
    // A place that becomes free is used again.
    loops.pop();
    let mut lp = scratch.add_loop("again");
    assert_eq!(reader.snapshot().unwrap().loops.len(), LOOPS);

    let room = (PARTS * HANDLES) as u32;
    let info = HandleInfo {
        what: 1,
        ..HandleInfo::default()
    };
    assert!(lp.set_handle(room - 1, &info, 1));
    assert!(!lp.set_handle(room, &info, 1));
    assert!(!lp.set_handle(u32::MAX, &info, 1));
    lp.made(u32::MAX, 1, 1, Some(&[1]));
    lp.remove_handle(u32::MAX);
    lp.walked(2, 7);

    for token in 0..2 * PENDING as u64 {
        lp.submitted(request(1, token * 64));
    }
    let again = reader.snapshot().unwrap();
    let last = again.loops.last().unwrap();
    assert_eq!((last.name.as_str(), last.handles_lost), ("again", 7));
    assert_eq!(reader.handles(last).unwrap().len(), 1);
    assert!(last.pending.len() <= PENDING && last.pending.len() > PENDING / 2);
    assert_eq!(
        last.pending.len() + last.requests_lost as usize,
        2 * PENDING
    );
    for token in 0..2 * PENDING as u64 {
        lp.delivered(token * 64);
    }
    assert!(
        reader
            .snapshot()
            .unwrap()
            .loops
            .last()
            .unwrap()
            .pending
            .is_empty()
    );

    let mut threads: Vec<_> = (1..=THREADS as u32 + 2)
        .map(|tid| record.add_thread(tid, 1).unwrap())
        .collect();
    let job = request(2, 1);
    for thread in &threads {
        pool_queued(record, job, Some(job));
        pool_taken(record, job, None);
        thread.begins(job, 6);
        thread.ends(job, 6, 8);
    }
    let pool = reader.snapshot().unwrap().pool;
    assert_eq!(pool.members.len(), THREADS);
    assert_eq!(
        pool.completed[2],
        THREADS as u64 + 2,
        "all requests are counted"
    );
    assert_eq!(pool.run[2].count(), pool.completed[2]);
    assert_eq!((pool.queued[2], pool.running[2], pool.oldest), (0, 0, None));
    assert_eq!(reader.snapshot().unwrap().refused, 5);
    threads.remove(0);
    threads.push(record.add_thread(77, 1).unwrap());
    let pool = reader.snapshot().unwrap().pool;
    assert!(pool.members.iter().any(|thread| thread.tid == 77));
}

/// A writer reads nothing back that others could have written.
#[test]
fn a_writer_believes_nothing_that_the_file_says() {
    let scratch = Scratch::new("overwritten");
    let _writers = fill(&scratch);
    let reader = scratch.reader();
    for at in [
        offset_of!(Page, length),
        offset_of!(Page, body),
        65536 + offset_of!(Body, count),
    ] {
        let wrong = u64::MAX.to_ne_bytes();
        reader.file.write_all_at(&wrong, at as u64).unwrap();
    }
    let (_, offset) = (0, scratch.path());
    let before = std::fs::metadata(&offset).unwrap().len();
    let mut lp = scratch.add_loop("more");
    turns(&mut lp, 10);
    let info = HandleInfo {
        what: 1,
        ..HandleInfo::default()
    };
    assert!(lp.set_handle(5_000, &info, 1));
    let after = std::fs::metadata(&offset).unwrap().len();
    assert!(after > before && after < before + (1 << 20));
}

/// Nested runs, runs that are given up and callbacks that are left for good never confuse the
/// innermost times.
#[test]
fn runs_and_callbacks_nest_and_are_left() {
    let scratch = Scratch::new("nested");
    assert!(scratch.record.begin(1));
    let mut lp = scratch.add_loop("");
    let reader = scratch.reader();
    let read = || reader.snapshot().unwrap().loops.remove(0);
    let callback = |token| Callback {
        kind: 1,
        token,
        ..Callback::default()
    };
    // Left by `longjmp` a hundred times: the last callback is timed as the first.
    for round in 0..100 {
        lp.run_begins(round * 100, None);
        lp.callback_begins(round * 100 + 10, callback(round));
        lp.callback_ends(round * 100 + 30);
        lp.callback_begins(round * 100 + 50, callback(round));
        assert_eq!(read().now.token, round);
    }
    let lp_read = read();
    assert_eq!((lp_read.callbacks, lp_read.by_kind[1].sum_ns), (100, 2_000));
    drop(lp);

    // Forty deep, and back again: the innermost are timed.
    let mut lp = scratch.add_loop("");
    for depth in 0..40 {
        lp.run_begins(depth, None);
        lp.callback_begins(depth, callback(depth));
    }
    for depth in (0..40).rev() {
        assert_eq!(read().now.state, State::Callback);
        lp.callback_ends(1_000 - depth);
        lp.run_ends(1_000 - depth);
    }
    let lp_read = read();
    assert_eq!(lp_read.now.state, State::Outside);
    assert!(lp_read.callbacks >= 16, "{}", lp_read.callbacks);
    // And all is in order again.
    lp.run_begins(2_000, None);
    lp.turn_begins(2_000, 1);
    lp.callback_begins(2_000, callback(1));
    lp.callback_ends(2_007);
    lp.run_ends(2_010);
    let after = read();
    assert_eq!(after.callbacks, lp_read.callbacks + 1);
    assert_eq!((after.turn.count(), after.turn.sum_ns), (1, 10));
    // More ends than beginnings.
    lp.run_ends(2_020);
    lp.callback_ends(2_030);
    assert_eq!(read().callbacks, after.callbacks);
}

/// Turns are cut where the loop polls and where a run ends, so that their time is that of the runs
/// without the waits.
#[test]
fn turns_add_up_to_the_time_that_runs_take() {
    let scratch = Scratch::new("turns");
    assert!(scratch.record.begin(1));
    let mut lp = scratch.add_loop("");
    turns(&mut lp, 50);
    let reader = scratch.reader();
    let lp = reader.snapshot().unwrap().loops.remove(0);
    assert_eq!((lp.turns, lp.turn.count()), (50, 50));
    let [_, working, callbacks, asleep, spinning] = lp.time_ns;
    assert_eq!(lp.turn.sum_ns, working + callbacks);
    assert_eq!((asleep, spinning), (50 * 4, 0));
    assert_eq!(working + callbacks + asleep, 50 * 13);
    assert_eq!(
        lp.by_kind.iter().map(|of| of.sum_ns).sum::<u64>(),
        50 * (5 + 1)
    );
    assert_eq!((lp.late.count(), lp.late.sum_ns), (50, 50 * 2));
}

/// A program on the Rust crate that loads the C library has two copies of this library.
#[test]
fn copies_of_the_library_in_one_process_have_a_record_each() {
    let scratch = Scratch::new("copies");
    let first = scratch.path();
    let own = scratch.directory.to_str().unwrap();
    let make = || Record::make(Some(own), false, 1).expect("there is room for a page");
    let (second, third) = (make(), make());
    let names = || {
        let entries = std::fs::read_dir(first.parent().unwrap()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let all = names();
    assert_eq!(all.len(), 3);
    assert_eq!(Some(&*all[0]), first.file_name());
    second.remove();
    third.remove();
    assert_eq!(names().len(), 1, "each removes its own");
    // What an earlier process has left makes room.
    let left = first.with_file_name(&all[1]);
    std::fs::write(&left, "left behind").unwrap();
    let fourth = make();
    assert_ne!(std::fs::read(&left).unwrap(), b"left behind");
    fourth.remove();
    // Leak checkers are to know the mappings.
    std::mem::forget((second, third, fourth));
}
