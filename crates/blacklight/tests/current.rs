//! Which loop is the current one.

use blacklight::{Error, Loop, Mode, Timer, current, try_current};
use std::cell::RefCell;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::{Poll, Waker};

fn name() -> String {
    try_current().map_or_else(String::new, |lp| lp.name().to_owned())
}

fn named(name: &str) -> Loop {
    Loop::builder().name(name).build().unwrap()
}

#[test]
fn the_innermost_loop_is_current() {
    assert_eq!(name(), "");
    let one = named("one");
    assert_eq!(name(), "one");
    let two = named("two");
    assert_eq!(name(), "");
    one.block_on(async {
        assert_eq!(name(), "one");
        two.enter(|| assert_eq!(name(), "two"));
        two.block_on(async {
            assert_eq!(name(), "two");
            one.enter(|| assert_eq!(name(), "one"));
            assert_eq!(name(), "two");
        });
        assert_eq!(name(), "one");
    });
    assert_eq!(name(), "");
    drop(one);
    assert_eq!(name(), "two");
    drop(two);
    assert_eq!(name(), "");
}

#[test]
fn a_panic_leaves_the_loop_that_was_entered() {
    let (one, _two) = (named("one"), named("two"));
    let entered = AssertUnwindSafe(|| one.enter(|| panic!("as expected")));
    assert!(catch_unwind(entered).is_err());
    assert_eq!(name(), "");
}

#[test]
fn other_threads_have_loops_of_their_own() {
    let _lp = named("mine");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(name(), "");
            let error = Timer::new().unwrap_err();
            assert_eq!(Error::of(&error), Some(Error::NoCurrentLoop));
            assert!(catch_unwind(current).is_err());
        });
    });
}

#[test]
fn a_loop_that_is_gone_makes_nothing() {
    let lp = named("gone");
    let (handle, timer) = (lp.clone(), Timer::new().unwrap());
    drop(lp);
    let errors = [
        handle.enter(Timer::new).unwrap_err(),
        timer.start(Default::default(), |_, _| ()).unwrap_err(),
        handle.work(|| (), |_, _| ()).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(Error::of(&error), Some(Error::LoopGone));
    }
}

/// Its waker must not think that the loop runs.
#[test]
fn a_task_that_is_woken_while_its_loop_is_only_entered_runs() {
    let lp = named("entered");
    let waker = Rc::new(RefCell::new(None::<Waker>));
    let its = waker.clone();
    let task = lp.spawn(poll_fn(move |context| {
        match its.borrow_mut().replace(context.waker().clone()) {
            None => Poll::Pending,
            Some(_) => Poll::Ready(7),
        }
    }));
    lp.run(Mode::NoWait);
    lp.enter(|| waker.borrow().as_ref().unwrap().wake_by_ref());
    assert_eq!(lp.block_on(task).unwrap(), 7);
}
