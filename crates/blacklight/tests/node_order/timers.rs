//! Timeouts and intervals.

use crate::{busy, log, real_time, ring, say, virtual_time};
use blacklight::node::{Timeout, WarningKind};
use std::cell::OnceCell;
use std::rc::Rc;

/// A variable that holds a timer which is set later.
type Later = Rc<OnceCell<Timeout>>;

#[test]
fn timers_first_in_first_out() {
    virtual_time("timers_first_in_first_out", |node| {
        for name in ["a", "b", "c", "d"] {
            node.set_timeout(ring(name), 10);
        }
    });
}

#[test]
fn timers_by_delay() {
    virtual_time("timers_by_delay", |node| {
        node.set_timeout(ring("last"), 200);
        node.set_timeout(ring("first"), 10);
        node.set_timeout(ring("middle"), 100);
    });
}

#[test]
fn tasks_between_timers() {
    virtual_time("tasks_between_timers", |node| {
        for name in ["a", "b", "c"] {
            node.set_timeout(
                move |node, _| {
                    log!("timer {name}");
                    node.queue_microtask(move |_| log!("microtask {name}"));
                    node.next_tick(move |_| log!("tick {name}"));
                },
                10,
            );
        }
    });
}

#[test]
fn tasks_between_lists() {
    real_time("tasks_between_lists", |node| {
        for delay in [60, 20, 100] {
            node.set_timeout(
                move |node, _| {
                    log!("timer {delay}");
                    node.queue_microtask(move |_| log!("microtask {delay}"));
                    node.next_tick(move |_| log!("tick {delay}"));
                },
                delay,
            );
        }
        busy(150);
    });
}

#[test]
fn due_lists_run_whole() {
    real_time("due_lists_run_whole", |node| {
        node.set_timeout(ring("20 ms, started first"), 20);
        node.set_timeout(ring("40 ms"), 40);
        busy(30);
        node.set_timeout(ring("20 ms, started second"), 20);
        busy(40);
    });
}

#[test]
fn timer_sets_same_duration() {
    virtual_time("timer_sets_same_duration", |node| {
        node.set_timeout(
            |node, _| {
                log!("a");
                node.set_timeout(ring("a again"), 20);
            },
            20,
        );
        node.set_timeout(
            |node, _| {
                log!("b");
                node.set_timeout(ring("b again"), 20);
            },
            20,
        );
    });
}

#[test]
fn timer_set_while_timers_run() {
    real_time("timer_set_while_timers_run", |node| {
        node.set_timeout(
            |node, _| {
                log!("outer 1");
                node.set_timeout(ring("inner"), 1);
                node.set_immediate(say("immediate"));
                busy(20);
            },
            5,
        );
        node.set_timeout(ring("outer 2"), 5);
        busy(20);
    });
}

#[test]
fn timer_sets_its_own_duration_while_busy() {
    real_time("timer_sets_its_own_duration_while_busy", |node| {
        node.set_timeout(
            |node, _| {
                log!("first");
                node.set_timeout(ring("appended"), 5);
                node.set_immediate(say("immediate"));
                busy(20);
            },
            5,
        );
        node.set_timeout(ring("second"), 5);
        busy(20);
    });
}

#[test]
fn list_is_rearmed() {
    virtual_time("list_is_rearmed", |node| {
        node.set_timeout(ring("200, at 0"), 200);
        node.set_timeout(ring("300, at 0"), 300);
        node.set_timeout(
            |node, _| {
                log!("150, at 0");
                node.set_timeout(ring("200, at 150"), 200);
            },
            150,
        );
    });
}

#[test]
fn clear_own_timer() {
    virtual_time("clear_own_timer", |node| {
        node.set_timeout(
            |node, timer| {
                log!("runs");
                node.clear_timeout(timer);
                timer.refresh();
                node.set_timeout(ring("another"), 10);
            },
            10,
        );
    });
}

#[test]
fn clear_later_in_the_list() {
    virtual_time("clear_later_in_the_list", |node| {
        let b = Later::default();
        let it = b.clone();
        node.set_timeout(
            move |node, _| {
                log!("a");
                node.clear_timeout(it.get().unwrap());
            },
            10,
        );
        b.set(node.set_timeout(ring("b"), 10)).unwrap();
        node.set_timeout(ring("c"), 10);
    });
}

#[test]
fn clear_in_another_list() {
    virtual_time("clear_in_another_list", |node| {
        let b = Later::default();
        let it = b.clone();
        node.set_timeout(
            move |_, _| {
                log!("a");
                it.get().unwrap().clear();
            },
            10,
        );
        b.set(node.set_timeout(ring("b"), 100)).unwrap();
        node.set_timeout(ring("c"), 200);
    });
}

#[test]
fn clear_from_a_tick() {
    virtual_time("clear_from_a_tick", |node| {
        let b = Later::default();
        let it = b.clone();
        node.set_timeout(
            move |node, _| {
                log!("a");
                let it = it.clone();
                node.next_tick(move |_| it.get().unwrap().clear());
            },
            10,
        );
        b.set(node.set_timeout(ring("b"), 10)).unwrap();
        node.set_timeout(ring("c"), 10);
    });
}

#[test]
fn clear_before_and_after() {
    virtual_time("clear_before_and_after", |node| {
        let never = node.set_timeout(ring("never"), 10);
        never.clear();
        never.clear();
        let once = node.set_timeout(ring("once"), 10);
        node.set_timeout(
            move |_, _| {
                once.clear();
                log!("cleared what has run");
            },
            100,
        );
    });
}

#[test]
fn clear_and_set_while_the_list_runs() {
    virtual_time("clear_and_set_while_the_list_runs", |node| {
        node.set_timeout(
            |node, timer| {
                timer.clear();
                node.set_timeout(ring("second"), 20);
                log!("first");
            },
            20,
        );
        node.on_exit(|_| log!("exit"));
    });
}

#[test]
fn refresh_from_outside() {
    virtual_time("refresh_from_outside", |node| {
        let refreshed = node.set_timeout(ring("refreshed"), 200);
        node.set_timeout(
            move |_, _| {
                log!("refresh");
                refreshed.refresh();
            },
            100,
        );
        node.set_timeout(ring("not refreshed"), 250);
    });
}

#[test]
fn refresh_moves_to_the_end() {
    virtual_time("refresh_moves_to_the_end", |node| {
        let a = node.set_timeout(ring("a"), 20);
        node.set_timeout(ring("b"), 20);
        a.refresh();
    });
}

#[test]
fn refresh_from_inside() {
    virtual_time("refresh_from_inside", |node| {
        let mut runs = 0;
        node.set_timeout(
            move |_, timer| {
                runs += 1;
                log!("run {runs}");
                if runs < 3 {
                    timer.refresh();
                }
            },
            10,
        );
        node.on_exit(|_| log!("exit"));
    });
}

#[test]
fn refresh_after_it_ran() {
    virtual_time("refresh_after_it_ran", |node| {
        let timer = node.set_timeout(ring("run"), 10);
        node.set_timeout(
            move |_, _| {
                log!("refresh");
                timer.refresh();
            },
            100,
        );
    });
}

#[test]
fn refresh_after_clear() {
    virtual_time("refresh_after_clear", |node| {
        let timer = node.set_timeout(ring("never"), 10);
        timer.clear();
        timer.refresh();
        node.set_timeout(ring("end"), 100);
    });
}

#[test]
fn interval_clears_itself() {
    virtual_time("interval_clears_itself", |node| {
        let mut runs = 0;
        node.set_interval(
            move |node, interval| {
                runs += 1;
                log!("run {runs}");
                node.next_tick(say("tick"));
                if runs == 3 {
                    node.clear_interval(interval);
                }
            },
            10,
        );
    });
}

#[test]
fn interval_cleared_by_a_timeout() {
    virtual_time("interval_cleared_by_a_timeout", |node| {
        let interval = node.set_interval(ring("interval"), 100);
        node.set_timeout(
            move |node, _| {
                log!("clear");
                node.clear_interval(&interval);
            },
            250,
        );
    });
}

#[test]
fn interval_cleared_from_its_tick() {
    virtual_time("interval_cleared_from_its_tick", |node| {
        node.set_interval(
            |node, interval| {
                log!("interval");
                let interval = interval.clone();
                node.next_tick(move |_| interval.clear());
            },
            10,
        );
    });
}

#[test]
fn two_intervals() {
    virtual_time("two_intervals", |node| {
        for name in ["a", "b"] {
            let mut runs = 0;
            node.set_interval(
                move |_, interval| {
                    runs += 1;
                    log!("{name} {runs}");
                    if runs == 3 {
                        interval.clear();
                    }
                },
                15,
            );
        }
    });
}

#[test]
fn interval_among_timeouts() {
    virtual_time("interval_among_timeouts", |node| {
        let mut runs = 0;
        node.set_interval(
            move |node, interval| {
                runs += 1;
                log!("interval {runs}");
                if runs == 2 {
                    interval.clear();
                } else {
                    node.set_timeout(ring("set by the interval"), 20);
                }
            },
            20,
        );
        node.set_timeout(ring("timeout"), 20);
    });
}

#[test]
fn interval_cleared_with_clear_timeout() {
    virtual_time("interval_cleared_with_clear_timeout", |node| {
        node.set_interval(
            |node, interval| {
                log!("interval");
                node.clear_timeout(interval);
            },
            5,
        );
        let timeout = node.set_timeout(ring("never"), 5);
        node.clear_interval(&timeout);
    });
}

#[test]
fn delays_out_of_range() {
    virtual_time("delays_out_of_range", |node| {
        node.on_warning(|_, warning| {
            // Node 20 has nothing to say of the others.
            if warning.kind() == WarningKind::Overflow {
                log!("{}", warning.name());
            }
        });
        for delay in [0.0, -1.0, f64::NAN, 0.5, 1.9, 2_147_483_648.0, 1.0] {
            node.set_timeout(move |_, _| log!("delay {delay}"), delay);
        }
    });
}

#[test]
fn fractions_are_cut_off() {
    virtual_time("fractions_are_cut_off", |node| {
        node.set_timeout(ring("150"), 150);
        node.set_timeout(ring("30.9"), 30.9);
        node.set_timeout(ring("30"), 30);
    });
}

#[test]
fn overflow_warning() {
    virtual_time("overflow_warning", |node| {
        node.on_warning(|_, warning| log!("{warning}"));
        node.set_timeout(ring("timeout"), 3_000_000_000_u64);
        node.set_interval(
            |_, interval| {
                log!("interval");
                interval.clear();
            },
            f64::INFINITY,
        );
        node.set_timeout(|_, _| (), 1e21).unref();
        node.next_tick(say("tick"));
        log!("main");
    });
}

#[test]
fn longest_delay() {
    virtual_time("longest_delay", |node| {
        node.on_warning(|_, warning| log!("{}", warning.name()));
        let timer = node.set_timeout(ring("never"), 2_147_483_647);
        node.set_timeout(
            move |_, _| {
                log!("clear");
                timer.clear();
            },
            10,
        );
    });
}
