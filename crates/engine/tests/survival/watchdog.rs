//! Ends the process when a program hangs.

use crate::ledger::Ledger;
use blacklight_engine::Mechanism;
use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Far more than any program takes.
const LIMIT: Duration = Duration::from_secs(120);

/// Prints the seed if its program fails, however it does.
pub(crate) struct Watch {
    words: String,
    over: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Watches over one program until the result is dropped.
pub(crate) fn watch(seed: u64, mechanism: Mechanism, ledger: &Arc<Mutex<Ledger>>) -> Watch {
    let (over, is_over) = channel();
    let words = format!("{mechanism:?}; to go there again: BLACKLIGHT_SEED={seed}");
    let (ledger, said) = (ledger.clone(), words.clone());
    let thread = std::thread::spawn(move || {
        if is_over.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
            let ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
            // The output of a test is kept back until it ends, and this one does not end.
            let missing = ledger.missing();
            let _ = writeln!(
                std::io::stderr(),
                "the loop hangs, without {missing:#?}\n{said}"
            );
            std::process::abort();
        }
    });
    Watch {
        words,
        over: Some(over),
        thread: Some(thread),
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.words);
        }
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("a watchdog does not fail");
        }
    }
}
