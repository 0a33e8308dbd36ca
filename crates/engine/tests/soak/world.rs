//! One program: its loop, its connections, and who is told what.

use crate::end::End;
use crate::link;
use crate::post::Post;
use crate::random::Random;
use blacklight_engine::{
    Buffers, Engine, Errno, Event, Faults, Key, Mechanism, Mode, Run, Tally, Token,
};
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

const MAX_MESSAGE: usize = 8 << 20;
/// The pattern repeats after a prime number of bytes, which no buffer size divides.
pub(crate) const PERIOD: usize = 65_521;
/// A program that has not ended by then never will.
const MAX_TICKS: u64 = 50_000;

/// Costs of a sleep: nothing to speak of, as much as on some machines, and more than the engine
/// ever believes.
const PRICES_NS: [u64; 4] = [0, 2_000, 10_000, 1_000_000];

/// The bytes that are sent: at each place one that depends on the place.
pub(crate) fn pattern(start: usize, len: usize) -> &'static [u8] {
    static PATTERN: OnceLock<Vec<u8>> = OnceLock::new();
    let pattern = PATTERN.get_or_init(|| {
        let mut random = Random::new(7);
        let period: Vec<u8> = (0..PERIOD).map(|_| random.below(256) as u8).collect();
        period.repeat(MAX_MESSAGE / PERIOD + 2)
    });
    &pattern[start % PERIOD..][..len]
}

/// Which sockets a program may use.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Sockets {
    All,
    /// None of a network's.
    Local,
}

/// The object that a token stands for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Name {
    Ticker,
    Server(usize),
    End(usize),
    Sender(usize),
    Receiver(usize),
    Connect(usize),
    Shutdown(usize),
    /// A write or a send, by its number.
    Request(u64),
}

impl Name {
    pub(crate) fn token(self) -> Token {
        let (tag, number) = match self {
            Name::Ticker => (0, 0),
            Name::Server(at) => (1, at as u64),
            Name::End(at) => (2, at as u64),
            Name::Sender(at) => (3, at as u64),
            Name::Receiver(at) => (4, at as u64),
            Name::Connect(at) => (5, at as u64),
            Name::Shutdown(at) => (6, at as u64),
            Name::Request(id) => (7, id),
        };
        Token(tag | number << 3)
    }

    fn of(token: Token) -> Name {
        let number = token.0 >> 3;
        let at = number as usize;
        match token.0 & 7 {
            0 => Name::Ticker,
            1 => Name::Server(at),
            2 => Name::End(at),
            3 => Name::Sender(at),
            4 => Name::Receiver(at),
            5 => Name::Connect(at),
            6 => Name::Shutdown(at),
            _ => Name::Request(number),
        }
    }
}

/// A `struct iovec`.
#[repr(C)]
pub(crate) struct Slice(*const u8, usize);

impl From<&[u8]> for Slice {
    fn from(bytes: &[u8]) -> Slice {
        Slice(bytes.as_ptr(), bytes.len())
    }
}

/// Memory that the engine is lent until a request is reported.
pub(crate) struct Lent {
    slices: Vec<Slice>,
    /// The bytes that the slices point to, unless they point to the pattern.
    _bytes: Vec<u8>,
}

impl Lent {
    /// Parts of the pattern.
    pub(crate) fn parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Lent {
        Lent {
            slices: parts.into_iter().map(Slice::from).collect(),
            _bytes: Vec::new(),
        }
    }

    /// Memory of its own.
    pub(crate) fn bytes(bytes: Vec<u8>) -> Lent {
        Lent {
            slices: vec![Slice::from(&bytes[..])],
            _bytes: bytes,
        }
    }

    pub(crate) fn buffers(&mut self) -> Buffers {
        // SAFETY: what is lent stays in the world's table of requests, where nobody touches it,
        // until the request is reported; or the buffers are used in one call only.
        unsafe { Buffers::new(self.slices.as_mut_ptr().cast(), self.slices.len()) }
    }
}

/// Whose a request is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Owner {
    End(usize),
    Post(usize),
}

pub(crate) type Step = (Event, Option<Result<usize, Errno>>);

pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) random: Random,
    /// Whether calls may fail for good.
    pub(crate) is_destructive: bool,
    pub(crate) max_message: usize,
    /// Whether mostly little is read at once.
    pub(crate) sips: bool,
    pub(crate) ends: Vec<End>,
    pub(crate) posts: Vec<Post>,
    /// The requests that have not been reported.
    pub(crate) requests: BTreeMap<u64, (Owner, Lent)>,
    next_request: u64,
    pub(crate) room: Vec<MaybeUninit<u8>>,
    ticker: Key,
    ticks: u64,
    pub(crate) steps: Vec<Step>,
    pub(crate) coverage: Coverage,
}

fn some_faults(random: &mut Random, is_destructive: bool) -> Faults {
    let mut faults = Faults {
        interrupt: random.pick(&[0, 20]),
        spurious: random.pick(&[0, 20]),
        delay: random.pick(&[0, 20, 200]),
        break_down: random.pick(&[0, 0, 0, 20]),
        again: random.pick(&[0, 30, 128]),
        shorten: random.pick(&[0, 60, 200]),
        ..Faults::default()
    };
    if is_destructive {
        faults.refuse = random.pick(&[0, 0, 10, 60]);
        faults.exhaust = random.pick(&[0, 5, 20]);
        faults.reset = random.pick(&[0, 5, 20]);
    }
    faults
}

impl World {
    pub(crate) fn new(seed: u64, sockets: Sockets) -> World {
        let mut random = Random::new(seed);
        let mut engine = Engine::new(Some(Mechanism::Sim(seed))).expect("a simulated kernel");
        let ticker = engine.timer_init(Name::Ticker.token()).expect("a timer");
        engine.timer_start(ticker, 1, 1).expect("a timer");
        let is_destructive = random.chance(1, 3);
        let faults = some_faults(&mut random, is_destructive);
        let sim = engine.sim().expect("the kernel is simulated");
        sim.use_kernel();
        sim.set_price_of_sleep(random.pick(&PRICES_NS));
        sim.set_faults(faults);
        let max_message = match random.below(64) {
            0 => MAX_MESSAGE,
            1..16 => 1 << 18,
            _ => 1 << 12,
        };
        let sips = max_message <= 1 << 18 && random.chance(1, 3);
        let mut world = World {
            engine,
            random,
            is_destructive,
            max_message,
            sips,
            ends: Vec::new(),
            posts: Vec::new(),
            requests: BTreeMap::new(),
            next_request: 0,
            room: vec![MaybeUninit::uninit(); 1 << 16],
            ticker,
            ticks: 0,
            steps: Vec::new(),
            coverage: Coverage::default(),
        };
        for _ in 0..1 + world.random.below(4) {
            link::begin(&mut world, sockets);
        }
        for _ in 0..world.random.below(3) {
            Post::begin(&mut world, sockets);
        }
        world
    }

    /// A size up to `max`, of any order of magnitude.
    pub(crate) fn size(&mut self, max: usize) -> usize {
        let magnitude = self.random.below(u64::from(max.ilog2()) + 1);
        (1 + self.random.below(2 << magnitude) as usize).min(max)
    }

    pub(crate) fn new_request(&mut self) -> u64 {
        self.next_request += 1;
        self.next_request
    }

    /// Runs to the end, and says what has happened.
    pub(crate) fn run(mut self, coverage: &mut Coverage) -> Vec<Step> {
        let mut run = Run::new(Mode::Default);
        while let Some(event) = self.engine.next(&mut run) {
            self.steps.push((event, None));
            self.tell(event);
        }
        assert!(self.requests.is_empty(), "requests were not reported");
        assert!(self.engine.is_unused(), "something is left in the loop");
        for end in 0..self.ends.len() {
            self.check_end(end);
        }
        for post in &self.posts {
            post.check(&mut self.coverage);
        }
        if let Some(sim) = self.engine.sim() {
            self.coverage.tally = sim.tally();
        }
        coverage.add(&self.coverage);
        self.steps
    }

    fn tell(&mut self, event: Event) {
        match event {
            Event::Timer(_) => self.tick(),
            Event::Connection(token, result) => self.connection(Name::of(token), result),
            Event::TurnedAway(token, error) => self.turned_away(Name::of(token), error),
            Event::Connect(token, result) => match Name::of(token) {
                Name::Connect(end) => self.connected(end, result),
                name => panic!("{name:?} is connected"),
            },
            Event::Shutdown(token, result) => match Name::of(token) {
                Name::Shutdown(end) => self.has_shut_down(end, result),
                name => panic!("{name:?} is shut down"),
            },
            Event::Read(token) => match Name::of(token) {
                Name::End(end) => self.read(end),
                name => panic!("{name:?} reads"),
            },
            Event::ReadEnd(token, error) => match Name::of(token) {
                Name::End(end) => self.reading_ended(end, error),
                name => panic!("{name:?} reads"),
            },
            Event::Write(token, result, written) => match self.finish_request(token) {
                (id, Owner::End(end)) => self.written(end, id, result, written),
                other => panic!("{other:?} is written"),
            },
            Event::Send(token, result, bytes) => match self.finish_request(token) {
                (id, Owner::Post(post)) => self.sent(post, id, result, bytes),
                other => panic!("{other:?} is sent"),
            },
            Event::Receive(token) => match Name::of(token) {
                Name::Receiver(post) => self.receive(post),
                name => panic!("{name:?} receives"),
            },
            Event::ReceiveEnd(token, error) => match Name::of(token) {
                Name::Receiver(post) => self.receiving_ended(post, error),
                name => panic!("{name:?} receives"),
            },
            Event::Closed(token) => self.closed(Name::of(token)),
            event => panic!("{event:?} was not asked for"),
        }
    }

    /// Forgets a request that has been reported; there is no second time.
    fn finish_request(&mut self, token: Token) -> (u64, Owner) {
        let Name::Request(id) = Name::of(token) else {
            panic!("{token:?} is no request");
        };
        match self.requests.remove(&id) {
            Some((owner, _)) => (id, owner),
            None => panic!("request {id} is reported twice"),
        }
    }

    fn closed(&mut self, name: Name) {
        match name {
            Name::End(end) => self.end_closed(end),
            Name::Sender(post) => self.posts[post].sender_closed(),
            Name::Receiver(post) => self.posts[post].receiver_closed(),
            Name::Ticker | Name::Server(_) => {}
            name => panic!("{name:?} is no handle"),
        }
    }

    /// A moment has passed.
    fn tick(&mut self) {
        self.ticks += 1;
        if self.ticks == MAX_TICKS {
            let (ends, posts) = (&self.ends, &self.posts);
            panic!("it does not come to its end: {ends:#?} {posts:#?}");
        }
        for end in 0..self.ends.len() {
            self.tick_end(end);
        }
        for post in 0..self.posts.len() {
            self.tick_post(post);
        }
        let is_over = self.ends.iter().all(End::is_closing);
        if is_over && self.posts.iter().all(Post::is_closing) {
            self.engine.close(self.ticker).expect("it is open");
        }
    }
}

/// Counts of the situations that the programs have met. A situation that none has met fails the test.
#[derive(Default, Debug)]
pub(crate) struct Coverage {
    pub(crate) bytes: u64,
    pub(crate) datagrams: u64,
    pub(crate) complete: u64,
    pub(crate) half_closes: u64,
    pub(crate) resets: u64,
    pub(crate) cancelled_writes: u64,
    pub(crate) cancelled_sends: u64,
    pub(crate) failed_writes: u64,
    pub(crate) failed_sends: u64,
    pub(crate) failed_reads: u64,
    pub(crate) failed_connects: u64,
    pub(crate) failed_accepts: u64,
    pub(crate) turned_away: u64,
    /// Counts of features that only some pollers have.
    tally: Tally,
}

impl Coverage {
    fn numbers(&mut self) -> [&mut u64; 13] {
        [
            &mut self.bytes,
            &mut self.datagrams,
            &mut self.complete,
            &mut self.half_closes,
            &mut self.resets,
            &mut self.cancelled_writes,
            &mut self.cancelled_sends,
            &mut self.failed_writes,
            &mut self.failed_sends,
            &mut self.failed_reads,
            &mut self.failed_connects,
            &mut self.failed_accepts,
            &mut self.turned_away,
        ]
    }

    fn add(&mut self, other: &Coverage) {
        let mut other = Coverage { ..*other };
        for (sum, number) in self.numbers().into_iter().zip(other.numbers()) {
            *sum += *number;
        }
        self.tally.add(&other.tally);
    }

    pub(crate) fn assert_complete(&mut self) {
        let seen = self.numbers().into_iter().all(|number| *number > 0);
        assert!(seen, "something never happens: {self:?}");
        let Tally {
            edges,
            flows,
            ends_of_flows,
            renewed_edges,
            spins_that_paid,
            vain_spins,
            ..
        } = self.tally;
        let flowed = flows.min(ends_of_flows);
        let spun = spins_that_paid.min(vain_spins);
        let tuned = edges.min(renewed_edges).min(flowed).min(spun);
        assert!(tuned > 0, "a tuned path is never gone: {:?}", self.tally);
    }
}
