//! The same tests on every mechanism that asks a real kernel.

use blacklight_engine::{Called, Engine, Event, Front, Mechanism, Mode, Run, Token};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Makes one test out of each function for each mechanism.
macro_rules! on_each_mechanism {
    ($($test:ident),* $(,)?) => {
        $crate::each_mechanism::on_each_mechanism!(Select select: $($test),*);
        $crate::each_mechanism::on_each_mechanism!(Poll poll: $($test),*);
        $crate::each_mechanism::on_each_mechanism!(Epoll epoll: $($test),*);
    };
    ($mechanism:ident $module:ident: $($test:ident),*) => {
        mod $module {
            $(
                #[test]
                fn $test() {
                    $crate::each_mechanism::alone(|| {
                        super::$test(blacklight_engine::Mechanism::$mechanism);
                    });
                }
            )*
        }
    };
}
pub(crate) use on_each_mechanism;

/// Runs one test at a time. Descriptor numbers belong to the whole process: a test that
/// closes one behind the loop's back must not have another test open it again.
pub(crate) fn alone(test: impl FnOnce()) {
    let _turn = turn();
    test();
}

/// The same for the rest of a test. A test that opens more descriptors than `select` can watch takes a turn too: while it has them, no
/// loop on `select` can be made.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURNS: Mutex<()> = Mutex::new(());
    TURNS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn engine_on(mechanism: Mechanism) -> Engine {
    let mut engine = Engine::new(Some(mechanism)).expect("the mechanism is there");
    assert_eq!(engine.mechanism(), mechanism);
    // Nothing is recorded unless the environment of the test says so.
    let callback_of = |_: Called<'_>| 0x1000;
    let is_library = false;
    let front = Front {
        is_library,
        callback_of,
    };
    engine.record(front, "");
    engine
}

/// The timer of a [guarded engine](guarded_engine_on).
#[allow(dead_code, reason = "not all tests can hang")]
pub(crate) const GUARD: Token = Token(99);

/// An engine that is woken when nothing happens for long, which is far more than any test takes on a machine that has little time for
/// it, or under an emulator.
#[allow(dead_code, reason = "not all tests can hang")]
pub(crate) fn guarded_engine_on(mechanism: Mechanism) -> Engine {
    let mut engine = engine_on(mechanism);
    let guard = engine.timer_init(GUARD).unwrap();
    engine.timer_start(guard, 120_000, 0).unwrap();
    engine.unreference(guard);
    engine
}

/// One run, with something called for each event.
pub(crate) fn run(engine: &mut Engine, mode: Mode, mut call: impl FnMut(&mut Engine, Event)) {
    let mut run = Run::new(mode);
    while let Some(event) = engine.next(&mut run) {
        call(engine, event);
    }
}

/// The events of one run in which nothing is done at any of them.
#[allow(dead_code, reason = "tests of allocations collect nothing")]
pub(crate) fn events(engine: &mut Engine, mode: Mode) -> Vec<Event> {
    let mut events = Vec::new();
    run(engine, mode, |_, event| events.push(event));
    events
}

/// The events that are there right now.
#[allow(dead_code, reason = "tests of allocations collect nothing")]
pub(crate) fn told(engine: &mut Engine) -> Vec<Event> {
    events(engine, Mode::NoWait)
}
