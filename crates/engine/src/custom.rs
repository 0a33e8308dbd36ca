//! Handles that a front end implements with timers and requests.
//!
//! A *custom handle* can be walked over, referenced, active and closed like any other, but has no
//! events except [`Event::Closed`](crate::Event::Closed). Its front end makes it active and inactive.
//! The front end *holds* the handle for each request that needs it: `Event::Closed` follows only
//! after the last hold is released. The requests must keep the loop alive themselves.
//!
//! A *hidden timer* fires like any other, but walks pass over it, it does not keep the loop alive,
//! and it is removed at once, without a closing phase.

use crate::engine::Engine;
use crate::event::Token;
use crate::handle::Kind;
use crate::slab::Key;
use crate::timer::Timer;
use blacklight_sys::Errno;

impl Engine {
    /// Makes a custom handle, inactive.
    pub fn custom_init(&mut self, token: Token) -> Result<Key, Errno> {
        self.make_handle(Kind::Custom(0), token)
    }

    fn holds(&mut self, index: u32) -> Result<&mut u32, Errno> {
        match &mut self.handles[index].kind {
            Kind::Custom(holds) => Ok(holds),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Makes a custom handle active or inactive.
    pub fn custom_set_active(&mut self, key: Key, active: bool) -> Result<(), Errno> {
        let index = self.handles.open(key)?;
        self.holds(index)?;
        self.handles.set_active(index, active);
        Ok(())
    }

    /// Holds the handle: its closing is not finished before it is released as often as it was held.
    pub fn custom_hold(&mut self, key: Key) -> Result<(), Errno> {
        let index = self.handles.open(key)?;
        *self.holds(index)? += 1;
        Ok(())
    }

    /// Releases one hold. After the last one, the closing of a closing handle is finished.
    pub fn custom_release(&mut self, key: Key) -> Result<(), Errno> {
        let index = self.handles.resolve(key).ok_or(Errno::EINVAL)?;
        let holds = self.holds(index)?;
        *holds = holds.checked_sub(1).ok_or(Errno::EINVAL)?;
        if *holds == 0 && self.handles.is_closing(index) {
            self.handles.queue_close(index);
        }
        Ok(())
    }

    /// Makes a hidden timer, stopped. All methods for timers work on it, except that it is removed
    /// and not closed.
    pub fn hidden_timer_init(&mut self, token: Token) -> Result<Key, Errno> {
        let timer = Kind::Timer(Timer::default());
        self.handles.insert_hidden(timer, token)
    }

    /// Removes a hidden timer. A stale key is ignored.
    pub fn hidden_timer_remove(&mut self, key: Key) {
        if let Some(index) = self.handles.resolve(key) {
            self.stop_timer(index);
            self.handles.remove_hidden(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, Mode, Run};

    fn run(engine: &mut Engine, mode: Mode) -> Vec<Event> {
        let mut run = Run::new(mode);
        std::iter::from_fn(|| engine.next(&mut run)).collect()
    }

    #[test]
    fn closing_waits_for_holds() {
        let mut engine = Engine::new(None).unwrap();
        let key = engine.custom_init(Token(1)).unwrap();
        engine.custom_set_active(key, true).unwrap();
        assert!(engine.is_alive());
        engine.custom_hold(key).unwrap();
        engine.custom_hold(key).unwrap();
        engine.close(key).unwrap();
        assert!(engine.is_closing(key) && !engine.is_active(key));
        assert_eq!(engine.custom_hold(key), Err(Errno::EINVAL));
        assert_eq!(engine.close(key), Err(Errno::EINVAL));
        engine.custom_release(key).unwrap();
        assert_eq!(run(&mut engine, Mode::NoWait), []);
        assert!(!engine.is_unused());
        engine.custom_release(key).unwrap();
        assert_eq!(run(&mut engine, Mode::Default), [Event::Closed(Token(1))]);
        assert_eq!(engine.custom_release(key), Err(Errno::EINVAL));
        assert!(engine.is_unused());
    }

    #[test]
    fn a_hidden_timer_fires_and_keeps_nothing_alive() {
        let mut engine = Engine::new(None).unwrap();
        let key = engine.custom_init(Token(1)).unwrap();
        let timer = engine.hidden_timer_init(Token(2)).unwrap();
        engine.timer_start(timer, 1, 0).unwrap();
        assert!(!engine.is_alive());
        let mut walk = engine.walk();
        assert_eq!(engine.walk_next(&mut walk), Some(Token(1)));
        assert_eq!(engine.walk_next(&mut walk), None);
        engine.custom_set_active(key, true).unwrap();
        assert_eq!(run(&mut engine, Mode::Once), [Event::Timer(Token(2))]);
        engine.timer_start(timer, 0, 0).unwrap();
        engine.hidden_timer_remove(timer);
        engine.hidden_timer_remove(timer);
        assert_eq!(run(&mut engine, Mode::NoWait), []);
        engine.close(key).unwrap();
        assert_eq!(run(&mut engine, Mode::Default), [Event::Closed(Token(1))]);
        assert!(engine.is_unused());
    }
}
