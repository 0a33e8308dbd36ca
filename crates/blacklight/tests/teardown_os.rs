//! Signals, children, watches, files and lookups that go in any order, with their loop or
//! without it.

#[path = "support/teardown.rs"]
mod teardown;

use blacklight::fs::{self, TempDir};
use blacklight::process::{Child, Command};
use blacklight::{
    FsChanges, FsEvent, FsPoll, Loop, LoopHandle, Mode, Signal, SignalKind, Signals, dns,
};
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use teardown::{Counted, Random, seeds};

const OFTEN: Duration = Duration::from_millis(1);

/// Something of a loop's that can be dropped at any time.
#[allow(dead_code, reason = "it is there to be dropped")]
enum Thing {
    Signal(Signal),
    Event(FsEvent),
    Poll(FsPoll),
    Child(Child),
    Task(blacklight::JoinHandle<()>),
    Lookup(blacklight::Work),
}

/// All that callbacks have in common, and own: cycles everywhere.
struct World {
    things: RefCell<Vec<Thing>>,
    random: Random,
    directory: TempDir,
    kind: SignalKind,
    /// How many callbacks there are.
    count: Rc<Cell<usize>>,
}

impl World {
    fn file(&self) -> std::path::PathBuf {
        self.directory.path().join("file")
    }

    /// What every callback does.
    fn stir(self: &Rc<Self>, lp: &LoopHandle) {
        match self.random.below(6) {
            0 | 1 => {
                let len = self.things.borrow().len();
                if len > 0 {
                    let at = self.random.below(len);
                    let thing = self.things.borrow_mut().swap_remove(at);
                    if let Thing::Task(task) = &thing {
                        task.abort();
                    }
                    drop(thing);
                }
            }
            2 => blacklight::process::kill(std::process::id(), self.kind).unwrap(),
            3 => std::fs::write(self.file(), "light").unwrap(),
            4 => drop(std::fs::remove_file(self.file())),
            _ => {}
        }
        if self.things.borrow().len() < 12 {
            self.make(lp);
        }
    }

    fn make(self: &Rc<Self>, lp: &LoopHandle) {
        let owned = Counted::new(&self.count);
        let world = self.clone();
        let act = move |lp: &LoopHandle| {
            let _ = &owned;
            world.stir(lp);
        };
        let thing = match self.random.below(9) {
            0 => {
                let signal = Signal::new().unwrap();
                signal.start(self.kind, move |lp, _, _| act(lp)).unwrap();
                Thing::Signal(signal)
            }
            1 => {
                let event = FsEvent::new().unwrap();
                let path = self.directory.path();
                event.start(path, move |lp, _, _| act(lp)).unwrap();
                Thing::Event(event)
            }
            2 => {
                let poll = FsPoll::new().unwrap();
                poll.start(self.file(), OFTEN, move |lp, _, _| act(lp))
                    .unwrap();
                Thing::Poll(poll)
            }
            3 => {
                let child = Command::new("true").spawn().unwrap();
                child.on_exit(move |lp, _| act(lp));
                Thing::Child(child)
            }
            4 => {
                let lookup = dns::lookup_then("127.0.0.1", 1, move |lp, _| act(lp));
                Thing::Lookup(lookup.unwrap())
            }
            number => Thing::Task(lp.spawn(task(number, self.kind, self.file(), act))),
        };
        self.things.borrow_mut().push(thing);
    }
}

async fn task(number: usize, kind: SignalKind, file: impl AsRef<Path>, act: impl Fn(&LoopHandle)) {
    let lp = blacklight::current();
    let file = file.as_ref();
    match number {
        5 => drop(fs::read(file).await),
        6 => drop(Signals::new([kind]).unwrap().recv().await),
        7 => {
            let directory = file.parent().unwrap();
            drop(FsChanges::new(directory).unwrap().recv().await);
        }
        _ => {
            let output = Command::new("echo").output().await;
            assert_eq!(output.unwrap().stdout, b"\n");
        }
    }
    act(&lp);
}

#[test]
fn things_dropped_at_random_points_leave_nothing_behind() {
    // Whoever is not there any more to catch it must not be ended by it.
    let last = Loop::new().unwrap();
    let kind = SignalKind::realtime(10).unwrap();
    let _caught = last.enter(|| Signals::new([kind])).unwrap();
    for seed in seeds(1..40) {
        let count = Rc::new(Cell::new(0));
        let world = Rc::new(World {
            things: RefCell::default(),
            random: Random::new(seed),
            directory: TempDir::new_blocking("teardown").unwrap(),
            kind,
            count: count.clone(),
        });
        let lp = Loop::new().unwrap();
        for _ in 0..30 {
            lp.enter(|| world.stir(&lp));
            lp.run(Mode::NoWait);
        }
        let things = match seed % 2 {
            0 => world.things.take(),
            _ => Vec::new(),
        };
        drop(lp);
        drop(things);
        let things = world.things.take();
        drop(things);
        assert_eq!(count.get(), 0);
        assert_eq!(Rc::strong_count(&world), 1);
    }
}
