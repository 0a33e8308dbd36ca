//! Timer handles, and the phase that runs them.
//!
//! The engine keeps time in nanoseconds, so that no timer fires early; the interface to front ends
//! is in milliseconds. A timer is in one of three states: *stopped*; *started*, with an entry in
//! the queue; or *ready*, taken out of the queue by the timers phase in progress and waiting in
//! that phase's list. A ready timer counts as inactive. Callbacks of timers before it can stop,
//! restart or close it. A referenced ready timer keeps the loop alive until it is delivered. Timers
//! that start during the phase wait for the next one.

use crate::engine::Engine;
use crate::event::Token;
use crate::handle::Kind;
use crate::slab::Key;
use blacklight_sys::Errno;

const NS_PER_MS: u64 = 1_000_000;

/// The timer of a handle, packed as handles are.
#[derive(Clone, Copy, Default, Debug)]
#[repr(C, packed(4))]
pub(crate) struct Timer {
    pub(crate) due_ns: u64,
    repeat_ms: u64,
    /// The number of the last start, or zero when stopped.
    pub(crate) start: u32,
}

impl Timer {
    /// The interval.
    pub(crate) fn repeat_ns(&self) -> u64 {
        self.repeat_ms.saturating_mul(NS_PER_MS)
    }
}

impl Engine {
    fn timer(&self, index: u32) -> Result<&Timer, Errno> {
        match &self.handles[index].kind {
            Kind::Timer(timer) => Ok(timer),
            _ => Err(Errno::EINVAL),
        }
    }

    fn timer_mut(&mut self, index: u32) -> Result<&mut Timer, Errno> {
        match &mut self.handles[index].kind {
            Kind::Timer(timer) => Ok(timer),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Makes a timer, stopped.
    #[inline]
    pub fn timer_init(&mut self, token: Token) -> Result<Key, Errno> {
        self.make_handle(Kind::Timer(Timer::default()), token)
    }

    /// Starts or restarts a timer: it fires `timeout_ms` after the loop's cached time, and then
    /// every `repeat_ms` unless that is zero. A time-out beyond the range of the clock never fires.
    #[inline(always)]
    pub fn timer_start(&mut self, key: Key, timeout_ms: u64, repeat_ms: u64) -> Result<(), Errno> {
        let index = self.handles.open(key)?;
        self.stop_timer(index);
        self.timer_mut(index)?.repeat_ms = repeat_ms;
        self.arm_timer(index, timeout_ms);
        Ok(())
    }

    /// Starts or restarts a timer to fire once, at a time of the [clock](Engine::clock_ns).
    pub fn timer_start_at(&mut self, key: Key, due_ns: u64) -> Result<(), Errno> {
        let index = self.handles.open(key)?;
        self.timer_mut(index)?.repeat_ms = 0;
        self.stop_timer(index);
        self.arm_timer_at(index, due_ns);
        Ok(())
    }

    #[inline]
    fn arm_timer(&mut self, index: u32, timeout_ms: u64) {
        let due_ns = self
            .driver
            .now_ns()
            .saturating_add(timeout_ms.saturating_mul(NS_PER_MS));
        self.arm_timer_at(index, due_ns);
    }

    #[inline(always)]
    fn arm_timer_at(&mut self, index: u32, due_ns: u64) {
        self.handles.set_active(index, true);
        self.timers.push(&mut self.handles, index, due_ns);
    }

    /// Stops a timer. A stopped one stays stopped.
    pub fn timer_stop(&mut self, key: Key) -> Result<(), Errno> {
        let index = self.handles.open(key)?;
        self.timer(index)?;
        self.stop_timer(index);
        Ok(())
    }

    #[inline]
    pub(crate) fn stop_timer(&mut self, index: u32) {
        if self.timer(index).is_ok_and(|timer| timer.start != 0) {
            self.timers.remove(&mut self.handles, index);
            self.handles.set_active(index, false);
        }
    }

    /// Restarts a repeating timer with its repeat as the time-out. Does nothing to a timer that
    /// does not repeat.
    pub fn timer_again(&mut self, key: Key) -> Result<(), Errno> {
        let index = self.handles.open(key)?;
        let repeat_ms = self.timer(index)?.repeat_ms;
        if repeat_ms != 0 {
            self.stop_timer(index);
            self.arm_timer(index, repeat_ms);
        }
        Ok(())
    }

    /// Sets the repeat, which takes effect when the timer next fires.
    pub fn timer_set_repeat(&mut self, key: Key, repeat_ms: u64) -> Result<(), Errno> {
        let index = self.handles.open(key)?;
        self.timer_mut(index)?.repeat_ms = repeat_ms;
        Ok(())
    }

    /// The repeat in milliseconds.
    pub fn timer_repeat(&self, key: Key) -> Result<u64, Errno> {
        let index = self.handles.open(key)?;
        Ok(self.timer(index)?.repeat_ms)
    }

    /// The loop time in milliseconds at which the timer is or was due.
    pub fn timer_due(&self, key: Key) -> Result<u64, Errno> {
        let index = self.handles.open(key)?;
        Ok(self.timer(index)?.due_ns / NS_PER_MS)
    }

    /// How many milliseconds after the loop's cached time the timer is due, rounded up;
    /// zero if that time has passed.
    pub fn timer_due_in(&self, key: Key) -> Result<u64, Errno> {
        let index = self.handles.open(key)?;
        let due_ns = self.timer(index)?.due_ns;
        Ok(due_ns
            .saturating_sub(self.driver.now_ns())
            .div_ceil(NS_PER_MS))
    }

    /// The nanoseconds until the next timer is due, or `None` without timers. Ready timers do not
    /// count.
    pub(crate) fn next_timer_in(&mut self) -> Option<u64> {
        let due_ns = self.timers.next_due_ns(&self.handles)?;
        Some(due_ns.saturating_sub(self.driver.now_ns()))
    }

    /// Whether ready timers are left to deliver.
    #[inline]
    pub(crate) fn has_ready_timers(&self) -> bool {
        !self.handles.is_list_empty(self.ready)
    }

    /// Whether a referenced timer is among the ready ones.
    #[inline]
    pub(crate) fn has_referenced_ready_timers(&self) -> bool {
        self.has_ready_timers() && self.handles.has_referenced(self.ready)
    }

    /// Begins a timers phase: makes all timers that are due ready. Returns whether there are any.
    #[inline]
    pub(crate) fn collect_due_timers(&mut self) -> bool {
        (self.timers).take_due(&mut self.handles, self.driver.now_ns(), self.ready);
        self.has_ready_timers()
    }

    /// Delivers the next ready timer. Restarts a repeating timer first, so that its callback finds
    /// it active.
    #[inline]
    pub(crate) fn fire_timer(&mut self) -> Option<Token> {
        let index = self.handles.phase_first(self.ready)?;
        self.handles.phase_remove(index);
        let timer = self.timer_mut(index).ok()?;
        timer.start = 0;
        let (due_ns, repeat_ms) = (timer.due_ns, timer.repeat_ms);
        self.fired_due_ns = due_ns;
        if repeat_ms != 0 {
            self.arm_timer(index, repeat_ms);
        }
        Some(self.handles[index].token)
    }
}
