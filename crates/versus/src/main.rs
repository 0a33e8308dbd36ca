//! The same programs on Blacklight and on tokio.
//!
//! `blacklight-versus RUNTIME WORKLOAD` prints how many operations it did, in how many seconds, with how
//! many seconds of processor time, and, where there is one, a figure of the workload's own.
//! `blacklight-versus RUNTIME serve` is a web server, which prints its address and runs until it is
//! killed. `SLEEP_SLOT_US` gives the sleeps of ours slots of so many microseconds. The workloads are one
//! source file that is compiled for each runtime, so that nothing but the runtime differs.
#![forbid(unsafe_code)]
// `workloads.rs` and `server.rs` are compiled for each runtime.
#![allow(clippy::duplicate_mod)]

mod figures;

mod ours {
    mod runtime;
    // The streams of tokio must be mutable to be read and written, ours need not.
    #[expect(unused_mut)]
    #[path = "../workloads.rs"]
    pub(crate) mod workloads;
    pub(crate) use runtime::{serve, serve_on_all};
}

mod tokio_runtime {
    mod runtime;
    #[path = "../workloads.rs"]
    pub(crate) mod workloads;
    pub(crate) use runtime::{serve, serve_on_all};
}

use anyhow::{Context, Result, bail};

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let (runtime, workload) = (words.next(), words.next());
    let workload = workload.context("give a runtime and a workload")?;
    let figures = match (runtime.as_deref().unwrap_or_default(), &*workload) {
        ("ours", "serve") => return ours::serve(),
        ("ours", "serve-on-all") => return ours::serve_on_all(),
        ("tokio", "serve") => return tokio_runtime::serve(),
        ("tokio", "serve-on-all") => return tokio_runtime::serve_on_all(),
        ("ours", workload) => ours::workloads::run(workload)?,
        ("tokio", workload) => tokio_runtime::workloads::run(workload)?,
        (runtime, _) => bail!("there is no runtime {runtime:?}"),
    };
    println!("{figures}");
    Ok(())
}
