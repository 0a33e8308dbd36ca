//! The operations of a random program: their meaning to the model, and the choice of the next one.

use crate::random::Random;
use crate::rules::{Life, Model, NS_PER_MS};
use crate::watch::to_mask;
use crate::world::{Act, POLLERR, POLLHUP, POLLIN, POLLOUT, POLLPRI, POLLRDHUP};
use blacklight_engine::{Errno, Faults, HandleKind, RawFd, Readiness};

/// One operation. Handles are named by their numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Init(HandleKind),
    PollInit(RawFd),
    TimerStart(usize, u64, u64),
    TimerStop(usize),
    TimerAgain(usize),
    TimerSetRepeat(usize, u64),
    LoopWatcherStart(usize),
    LoopWatcherStop(usize),
    PollStart(usize, Readiness),
    PollStop(usize),
    Send(usize),
    Close(usize),
    Reference(usize),
    Unreference(usize),
    Stop,
    UpdateTime,
    Fork,
    /// Starts a walk, which is carried through at once.
    Walk,
    Advance(u64),
    OpenFd(RawFd),
    CloseFd(RawFd),
    SetReady(RawFd, u32),
    ScheduleReady(u64, RawFd, u32),
    ScheduleSend(u64, usize),
    SetFaults(Faults),
    /// From now on it may pay to spin.
    MakeSleepDear,
}

/// The descriptors that programs play with: few, so that they meet.
pub(crate) const FDS: [RawFd; 5] = [3, 4, 5, 6, 70];

/// The handle that wakes the loop when nothing else would. Programs leave it alone.
pub(crate) const WATCHDOG: usize = 0;

/// Programs stop making handles when so many are open.
const CROWD: usize = 14;

/// Time-outs that come due together, later, and after all clocks have stopped.
const TIMEOUTS_MS: [u64; 16] = [
    0,
    0,
    1,
    1,
    2,
    2,
    3,
    5,
    5,
    5,
    10,
    1_000,
    u64::MAX / NS_PER_MS,
    u64::MAX / NS_PER_MS + 1,
    u64::MAX / 2,
    u64::MAX,
];

const REPEATS_MS: [u64; 8] = [0, 0, 0, 0, 1, 2, 5, u64::MAX];

const DELAYS_NS: [u64; 11] = [
    0,
    1,
    3_000,
    15_000,
    19_999,
    999_999,
    NS_PER_MS,
    2 * NS_PER_MS,
    5 * NS_PER_MS,
    5 * NS_PER_MS + 1,
    40 * NS_PER_MS,
];

impl Model {
    pub(crate) fn apply(&mut self, op: Op) -> Result<(), Errno> {
        match op {
            Op::Init(kind) => drop(self.init(kind, -1)),
            Op::PollInit(fd) => return self.poll_init(fd).map(drop),
            Op::TimerStart(id, timeout, repeat) => return self.timer_start(id, timeout, repeat),
            Op::TimerStop(id) => return self.timer_stop(id),
            Op::TimerAgain(id) => return self.timer_again(id),
            Op::TimerSetRepeat(id, repeat) => return self.timer_set_repeat(id, repeat),
            Op::LoopWatcherStart(id) => return self.loop_watcher_start(id),
            Op::LoopWatcherStop(id) => return self.loop_watcher_stop(id),
            Op::PollStart(id, wanted) => return self.poll_start(id, to_mask(wanted)),
            Op::PollStop(id) => return self.poll_stop(id),
            Op::Send(id) => self.send(id),
            Op::Close(id) => return self.close(id),
            Op::Reference(id) => self.set_referenced(id, true),
            Op::Unreference(id) => self.set_referenced(id, false),
            Op::Stop => self.stop = true,
            Op::UpdateTime => self.now_ns = self.world.now_ns,
            Op::Fork => self.fork(),
            Op::Walk => self.walk(),
            Op::Advance(ns) => self.world.now_ns += ns,
            Op::OpenFd(fd) => self.world.open(fd),
            Op::CloseFd(fd) => self.world.close(fd),
            Op::SetReady(fd, mask) => self.world.set_ready(fd, mask),
            Op::ScheduleReady(delay, fd, mask) => self.world.schedule(delay, Act::Ready(fd, mask)),
            Op::ScheduleSend(delay, id) => self.world.schedule(delay, Act::Send(id)),
            Op::SetFaults(faults) => self.world.may = faults.into(),
            Op::MakeSleepDear => self.world.is_dear = true,
        }
        Ok(())
    }
}

fn some_readiness(random: &mut Random) -> Readiness {
    let usual = [1, 1, 1, 2, 3, 3];
    let bits = match random.chance(2, 3) {
        true => random.pick(&usual),
        false => random.below(16) as u32,
    };
    Readiness::from_bits(bits).expect("all of sixteen sets exist")
}

fn some_mask(random: &mut Random) -> u32 {
    let usual = [0, 0, POLLIN, POLLIN, POLLOUT, POLLIN | POLLOUT];
    match random.chance(2, 3) {
        true => random.pick(&usual),
        false => {
            let bits = [POLLIN, POLLOUT, POLLPRI, POLLRDHUP, POLLERR, POLLHUP];
            let some = bits.iter().filter(|_| random.chance(1, 3));
            some.fold(0, |mask, bit| mask | bit)
        }
    }
}

/// Any of them, some more often than others.
const KINDS: [HandleKind; 8] = [
    HandleKind::Timer,
    HandleKind::Timer,
    HandleKind::Idle,
    HandleKind::Prepare,
    HandleKind::Check,
    HandleKind::Async,
    HandleKind::Poll,
    HandleKind::Poll,
];

fn init(random: &mut Random, favourite: Option<HandleKind>) -> Op {
    let kind = match favourite {
        Some(kind) if random.chance(2, 3) => kind,
        _ => random.pick(&KINDS),
    };
    match kind {
        HandleKind::Poll => Op::PollInit(random.pick(&FDS)),
        kind => Op::Init(kind),
    }
}

/// Something that only handles of this kind can do.
fn act_on(random: &mut Random, id: usize, kind: HandleKind) -> Op {
    match kind {
        HandleKind::Timer => match random.below(8) {
            0..4 => {
                let timeout_ms = random.pick(&TIMEOUTS_MS);
                Op::TimerStart(id, timeout_ms, random.pick(&REPEATS_MS))
            }
            4 => Op::TimerStop(id),
            5 | 6 => Op::TimerAgain(id),
            _ => Op::TimerSetRepeat(id, random.pick(&REPEATS_MS)),
        },
        HandleKind::Idle => match random.chance(2, 5) {
            // An idle handle keeps the loop from sleeping, so there should not be many.
            true => Op::LoopWatcherStart(id),
            false => Op::LoopWatcherStop(id),
        },
        HandleKind::Prepare | HandleKind::Check => match random.chance(3, 5) {
            true => Op::LoopWatcherStart(id),
            false => Op::LoopWatcherStop(id),
        },
        HandleKind::Async => match random.chance(2, 3) {
            true => Op::Send(id),
            false => Op::ScheduleSend(random.pick(&DELAYS_NS), id),
        },
        // Only poll handles are left: programs make no others.
        _ => match random.chance(3, 4) {
            true => Op::PollStart(id, some_readiness(random)),
            false => Op::PollStop(id),
        },
    }
}

/// Something that any handle can do.
fn manage(random: &mut Random, id: usize) -> Op {
    match random.below(4) {
        0 | 1 => Op::Close(id),
        2 => Op::Reference(id),
        _ => Op::Unreference(id),
    }
}

/// Something that happens to the kernel.
fn change_world(random: &mut Random) -> Op {
    let fd = random.pick(&FDS);
    match random.below(16) {
        0..6 => Op::SetReady(fd, some_mask(random)),
        6..11 => Op::ScheduleReady(random.pick(&DELAYS_NS), fd, some_mask(random)),
        11 => Op::CloseFd(fd),
        12 | 13 => Op::OpenFd(fd),
        _ => Op::Advance(random.pick(&DELAYS_NS)),
    }
}

fn change_loop(random: &mut Random) -> Op {
    match random.below(16) {
        0..3 => Op::Stop,
        3..11 => Op::UpdateTime,
        11..15 => Op::Walk,
        _ => Op::Fork,
    }
}

/// Half of the programs prefer one kind, so that many handles of it meet in one phase.
pub(crate) fn some_favourite(random: &mut Random) -> Option<HandleKind> {
    random.chance(1, 2).then(|| random.pick(&KINDS))
}

/// The next operation, perhaps on the handle whose callback is running.
pub(crate) fn some_op(
    random: &mut Random,
    favourite: Option<HandleKind>,
    model: &Model,
    running: Option<usize>,
) -> Op {
    let others = WATCHDOG + 1..model.handles.len();
    let is_open = |&id: &usize| model.handles[id].life == Life::Open;
    let open: Vec<usize> = others.clone().filter(is_open).collect();
    let choice = random.below(32);
    if choice < 6 && open.len() < CROWD || others.is_empty() {
        return init(random, favourite);
    }
    // Once in a while a handle is used that has been closed long ago.
    let id = match running {
        Some(id) if id != WATCHDOG && random.chance(1, 4) => id,
        _ if open.is_empty() || random.chance(1, 24) => {
            others.start + random.below(others.len() as u64) as usize
        }
        _ => random.pick(&open),
    };
    let kind = model.handles[id].kind;
    match choice {
        0..19 if random.chance(1, 48) => {
            // And once in a while it is used as if it were of another kind.
            let kinds = [HandleKind::Timer, HandleKind::Check, HandleKind::Poll];
            let kind = random.pick(&kinds);
            act_on(random, id, kind)
        }
        0..19 => act_on(random, id, kind),
        19..22 => manage(random, id),
        22..29 => change_world(random),
        _ => change_loop(random),
    }
}
