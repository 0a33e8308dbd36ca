//! `cargo xtask abi`: whether our headers and our library present the same binary interface as
//! the original's.
//!
//! Headers are compared by what compilers make of them: [`headers`] collects facts from
//! debugging information and from the preprocessor, [`facts`] holds the two collections against
//! each other, and [`dialects`] compiles ours in every language. Libraries are compared by
//! their dynamic symbols, with [`expected`] saying which must be there already. [`binding`] writes
//! the declarations that Rust tests call the library through.

mod binding;
mod compiler;
mod debuginfo;
mod dialects;
mod expected;
mod facts;
mod headers;
mod layouts;
mod preprocessed;
mod symbols;
mod types;

use crate::library::Library;
use crate::original::Original;
use crate::target::Target;
use crate::workspace;
use anyhow::{Result, bail};
use facts::{Comparison, Kind};
use std::collections::BTreeSet;
use std::path::Path;
use symbols::Exports;

const SONAME: &str = "libuv.so.1";

/// What to compare.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Add the functions that the library exports by now to the list of those it must export, and
    /// write the Rust declarations of `crates/uv-binding` again.
    #[arg(long, conflicts_with = "headers_only")]
    bless: bool,
    /// Leave the library alone; nothing but the headers has to compile then.
    #[arg(long)]
    headers_only: bool,
    /// Compile for another machine or C library, by its compiler.
    #[arg(long, conflicts_with = "bless")]
    target: Option<Target>,
    /// The library to look at: `ours`, `original`, or a path.
    #[arg(long, default_value_t = Library::Ours)]
    library: Library,
}

/// Prints what differs, closes with a summary, and fails if something may not be so.
pub(crate) fn run(options: Options) -> Result<()> {
    if options.bless && options.library != Library::Ours {
        bail!("only what our own library exports can be blessed");
    }
    let original = Original::obtain_for(options.target)?;
    let mut faults = 0;

    let name = options.target.map_or("", Target::triple);
    let scratch = workspace::target_subdir(Path::new("abi").join(name))?;
    let comparisons = headers::compare_directories(
        original.compiler(),
        &original.include_dir(),
        &workspace::include_dir(),
        &scratch,
    )?;
    for (dialect, comparison) in &comparisons {
        faults += print_differences(dialect, comparison);
    }
    let mut summary = summarise_headers(&comparisons);
    let asserted = layouts::check(original.compiler(), &original.include_dir(), &scratch)?;
    summary.push_str(&format!("layouts: {asserted} asserted, all true in C"));
    // These do not depend on the machine.
    if options.target.is_none() {
        let (compilations, objections) = dialects::check(&workspace::include_dir(), &scratch)?;
        faults += objections.len();
        for objection in &objections {
            println!("compilers object to {objection}");
        }
        let compile = compilations - objections.len();
        summary.push_str(&format!("; dialects: {compile} of {compilations} compile"));
        faults += judge_binding(options.bless, &scratch)?;
    }

    if !options.headers_only {
        let theirs = Exports::read(&original.library()?)?;
        let ours = Exports::read(&options.library.build(&original)?)?;
        if options.bless {
            let reached: BTreeSet<String> = ours
                .functions
                .intersection(&theirs.functions)
                .cloned()
                .collect();
            println!(
                "{} functions are new on the list of exported ones",
                expected::bless(&reached)?
            );
        }
        let mut verdict = judge_library(&theirs, &ours, &expected::load()?);
        if options.library == Library::Ours {
            verdict.faults.extend(misplaced(&ours));
        }
        print_verdict(&verdict);
        faults += verdict.faults.len();
        let exported = theirs.functions.len() - verdict.not_yet.len();
        summary.push_str(&format!(
            "; functions: {exported} of {} exported",
            theirs.functions.len()
        ));
    }
    println!("{summary}");
    if faults > 0 {
        bail!("the interface is not the original's ({faults} faults)");
    }
    Ok(())
}

/// Writes the Rust declarations again if they are to be blessed; returns how many differ otherwise.
fn judge_binding(bless: bool, scratch: &Path) -> Result<usize> {
    if bless {
        binding::bless(scratch)?;
    }
    let differences = binding::differences(scratch)?;
    for difference in &differences {
        println!("the binding is not the header's (--bless writes it again): {difference}");
    }
    Ok(differences.len())
}

/// Returns how many there are.
fn print_differences(dialect: &str, comparison: &Comparison) -> usize {
    for kind in Kind::ALL {
        if comparison.differing(kind) > 0 {
            println!("{kind} ({dialect}):");
        }
        for difference in comparison
            .differences
            .iter()
            .filter(|difference| difference.kind == kind)
        {
            println!("  {difference}");
        }
    }
    comparison.differences.len()
}

fn summarise_headers(comparisons: &[(&str, Comparison)]) -> String {
    let count = |kind: Kind| {
        let same = comparisons
            .first()
            .map_or(0, |(_, comparison)| comparison.same(kind));
        let differ: usize = comparisons
            .iter()
            .map(|(_, comparison)| comparison.differing(kind))
            .sum();
        format!("{kind}: {same} same, {differ} differ; ")
    };
    Kind::ALL.into_iter().map(count).collect()
}

/// What is to be said about a library.
#[derive(Debug, Default, PartialEq, Eq)]
struct Verdict {
    faults: Vec<String>,
    /// Functions of the original that are still to be written.
    not_yet: Vec<String>,
    /// Functions that are exported and could be put on the list.
    unlisted: usize,
}

fn judge_library(original: &Exports, ours: &Exports, expected: &BTreeSet<String>) -> Verdict {
    let right = ours.functions.intersection(&original.functions);
    let mut verdict = Verdict {
        not_yet: original
            .functions
            .difference(&ours.functions)
            .cloned()
            .collect(),
        unlisted: right.filter(|name| !expected.contains(*name)).count(),
        ..Verdict::default()
    };
    let mut fault = |text: String| verdict.faults.push(text);
    if ours.soname.as_deref() != Some(SONAME) {
        fault(format!(
            "the SONAME is {:?}, not {SONAME:?}",
            ours.soname.as_deref().unwrap_or("")
        ));
    }
    if ours.versioned != original.versioned {
        fault("symbols have versions; programs linked with the original know none".to_owned());
    }
    for name in ours.data.difference(&original.data) {
        fault(format!("{name} is exported and is no function"));
    }
    for name in ours.functions.difference(&original.functions) {
        fault(format!("{name} is exported, but not by the original"));
    }
    for name in expected.difference(&ours.functions) {
        fault(format!("{name} was exported once and is no longer"));
    }
    verdict
}

/// What is to be said if the linker has not laid out the code as `crates/uv/layout.ld` has it, which costs memory and
/// breaks nothing else, so that nobody would see it.
fn misplaced(ours: &Exports) -> Option<String> {
    let is_first = |name: &str| ours.first.contains(name);
    let is_placed = is_first("uv_loop_init") && is_first("uv_run");
    (!is_placed).then(|| format!("{:?} lie before uv_run and uv_loop_init", ours.first))
}

fn print_verdict(verdict: &Verdict) {
    if !verdict.not_yet.is_empty() {
        println!("not exported yet ({}):", verdict.not_yet.len());
        print_columns(&verdict.not_yet);
    }
    for fault in &verdict.faults {
        println!("library: {fault}");
    }
    if verdict.unlisted > 0 {
        println!(
            "{} exported functions are not on the list yet; --bless adds them",
            verdict.unlisted
        );
    }
}

/// Fills lines with names, so that hundreds of them stay readable.
fn print_columns(names: &[String]) {
    const WIDTH: usize = 100;
    let mut line = String::from(" ");
    for name in names {
        if line.len() + 1 + name.len() > WIDTH {
            println!("{line}");
            line.truncate(1);
        }
        line.push(' ');
        line.push_str(name);
    }
    println!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn library(functions: &[&str]) -> Exports {
        Exports {
            soname: Some(SONAME.to_owned()),
            functions: set(functions),
            ..Exports::default()
        }
    }

    #[test]
    fn a_function_not_written_yet_is_no_fault() {
        let verdict = judge_library(
            &library(&["uv_run", "uv_stop"]),
            &library(&["uv_run"]),
            &set(&["uv_run"]),
        );
        assert_eq!(
            verdict,
            Verdict {
                not_yet: vec!["uv_stop".to_owned()],
                ..Verdict::default()
            }
        );
    }

    #[test]
    fn a_function_that_was_lost_is_a_fault() {
        let verdict = judge_library(
            &library(&["uv_run", "uv_stop"]),
            &library(&["uv_run"]),
            &set(&["uv_stop"]),
        );
        assert_eq!(
            verdict.faults,
            ["uv_stop was exported once and is no longer"]
        );
        assert_eq!(verdict.unlisted, 1);
    }

    #[test]
    fn whatever_else_is_exported_is_a_fault() {
        let mut ours = library(&["uv_run", "helper"]);
        ours.data = set(&["table"]);
        let verdict = judge_library(&library(&["uv_run"]), &ours, &set(&[]));
        assert_eq!(
            verdict.faults,
            [
                "table is exported and is no function",
                "helper is exported, but not by the original"
            ]
        );
    }

    #[test]
    fn what_every_loop_runs_lies_first() {
        let mut ours = library(&[]);
        ours.first = set(&["uv_loop_init", "uv_run"]);
        assert_eq!(misplaced(&ours), None);
        ours.first = set(&["uv_accept", "uv_run"]);
        assert!(misplaced(&ours).is_some());
    }

    #[test]
    fn the_name_and_versions_have_to_agree() {
        let mut ours = library(&[]);
        ours.soname = None;
        ours.versioned = true;
        assert_eq!(
            judge_library(&library(&[]), &ours, &set(&[])).faults.len(),
            2
        );
    }
}
