//! Addresses of code that name closures and futures.
//!
//! The record names callbacks by the address of their code, as symbols and debug information do, and
//! a boxed closure does not tell such an address. So each type of closure and of future has a function of its
//! own, which is never called: what drops a [`Closure`] or a [`Task`] of it. Its symbol has the type in its name,
//! also in builds without debug information.

use std::any::TypeId;
use std::cell::Cell;
use std::hint::black_box;
use std::marker::PhantomData;
use std::pin::Pin;
use std::ptr::drop_in_place;
use std::task::{Context, Poll};

/// The address that names a closure or a future; zero for none.
#[derive(Clone, Copy, Default)]
pub(crate) struct Code(usize);

/// Names a type of closure.
struct Closure<F: 'static>(PhantomData<F>);

impl<F: 'static> Drop for Closure<F> {
    fn drop(&mut self) {
        // A compiler makes one function of several with the same code.
        black_box(TypeId::of::<F>());
    }
}

/// Names a type of future.
struct Task<F: Future>(PhantomData<F>);

impl<F: Future> Drop for Task<F> {
    fn drop(&mut self) {
        black_box(F::poll as fn(Pin<&mut F>, &mut Context<'_>) -> Poll<F::Output>);
    }
}

thread_local! {
    static POLLED: Cell<Code> = const { Cell::new(Code::NONE) };
}

impl Code {
    pub(crate) const NONE: Code = Code(0);

    /// The code of a closure.
    pub(crate) fn of<F: 'static>(_: &F) -> Code {
        Code(drop_in_place::<Closure<F>> as *const () as usize)
    }

    /// The code of a future.
    pub(crate) fn of_future<F: Future>(_: &F) -> Code {
        Code(drop_in_place::<Task<F>> as *const () as usize)
    }

    /// The code of the task that this thread polls.
    pub(crate) fn polled() -> Code {
        POLLED.try_with(Cell::get).unwrap_or_default()
    }

    /// This one, or else the other.
    pub(crate) fn or(self, other: Code) -> Code {
        if self.0 == 0 { other } else { self }
    }

    pub(crate) fn address(self) -> u64 {
        self.0 as u64
    }
}

/// Marks a task as polled until this is dropped.
pub(crate) struct Polling(Code);

impl Polling {
    pub(crate) fn begin(code: Code) -> Polling {
        Polling(POLLED.replace(code))
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        POLLED.set(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_an_address_of_its_own() {
        let (one, other) = (|| (), || ());
        let again = one;
        assert_eq!(Code::of(&one).address(), Code::of(&again).address());
        assert_ne!(Code::of(&one).address(), Code::of(&other).address());
        let (one, other) = (async { 1 }, async { 2 });
        assert_ne!(
            Code::of_future(&one).address(),
            Code::of_future(&other).address()
        );
        assert_ne!(Code::of_future(&one).address(), 0);
    }

    #[test]
    fn a_nested_poll_gives_way_to_the_outer_one() {
        let (outer, inner) = (Code::of(&|| 1), Code::of(&|| 2));
        let polling = Polling::begin(outer);
        drop(Polling::begin(inner));
        assert_eq!(Code::polled().address(), outer.address());
        drop(polling);
        assert_eq!(Code::polled().address(), 0);
    }
}
