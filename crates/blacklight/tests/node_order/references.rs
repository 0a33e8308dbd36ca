//! Timers that nobody waits for.

use crate::{log, ring, virtual_time};

#[test]
fn timeout_unref_alone() {
    virtual_time("timeout_unref_alone", |node| {
        node.set_timeout(ring("never"), 10).unref();
        node.set_interval(ring("never"), 10).unref();
        node.on_exit(|_| log!("exit"));
    });
}

#[test]
fn timeout_unref_beside_another() {
    virtual_time("timeout_unref_beside_another", |node| {
        node.set_timeout(ring("unreferenced"), 10).unref();
        node.set_timeout(ring("referenced"), 100);
        node.set_timeout(ring("never"), 400).unref();
    });
}

#[test]
fn timeout_references() {
    virtual_time("timeout_references", |node| {
        let timer = node.set_timeout(|_, timer| log!("timer {}", timer.has_ref()), 10);
        log!("{}", timer.has_ref());
        log!("{}", timer.unref().has_ref());
        log!("{}", timer.r#ref().has_ref());
        node.set_timeout(move |_, _| log!("after {}", timer.has_ref()), 100);
    });
}

#[test]
fn unref_in_its_callback() {
    virtual_time("unref_in_its_callback", |node| {
        let mut runs = 0;
        node.set_interval(
            move |_, interval| {
                runs += 1;
                log!("run {runs}");
                if runs == 2 {
                    interval.unref();
                }
            },
            10,
        );
        node.on_exit(|_| log!("exit"));
    });
}

#[test]
fn ref_again_while_waiting() {
    virtual_time("ref_again_while_waiting", |node| {
        let timer = node.set_timeout(ring("timer"), 200);
        timer.unref();
        node.set_timeout(
            move |_, _| {
                log!("ref");
                timer.r#ref();
            },
            50,
        );
    });
}

#[test]
fn refresh_keeps_unref() {
    virtual_time("refresh_keeps_unref", |node| {
        let timer = node.set_timeout(ring("run"), 10);
        timer.unref();
        node.set_timeout(
            move |_, _| {
                timer.refresh();
                log!("has a reference: {}", timer.has_ref());
            },
            100,
        );
        node.on_exit(|_| log!("exit"));
    });
}

#[test]
fn clear_gives_up_its_reference() {
    virtual_time("clear_gives_up_its_reference", |node| {
        let long = node.set_timeout(ring("never"), 60_000);
        node.set_interval(
            move |node, interval| {
                log!("interval");
                long.clear();
                interval.clear();
                node.set_timeout(ring("never"), 50).unref();
            },
            10,
        );
        node.on_exit(|_| log!("exit"));
    });
}
