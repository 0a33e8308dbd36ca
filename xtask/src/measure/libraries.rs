//! The libraries that measurements run on: ours, the original, and perhaps another build of ours.

use super::turns::Subject;
use crate::conformance::Poller;
use crate::library::Library;
use crate::original::Original;
use crate::sandbox::Sandbox;
use anyhow::Result;
use std::path::PathBuf;

/// Which libraries to compare.
#[derive(clap::Args)]
pub(crate) struct Choice {
    /// The library that is judged: `ours`, `original`, a directory with a `libuv.so.1`, or a
    /// checkout of this project.
    #[arg(long, default_value = "ours", value_name = "LIBRARY")]
    pub(crate) library: Library,
    /// Another build of ours that takes turns with the others, called `before`: a directory with a
    /// `libuv.so.1`, or a checkout of this project.
    #[arg(long, value_name = "DIR")]
    pub(crate) against: Option<Library>,
    /// The mechanism our library is to wait with; its own choice if not given.
    #[arg(long)]
    pub(crate) poller: Option<Poller>,
    /// Give ours another turn in which it records what its loops do, to tell what recording costs.
    #[arg(long)]
    pub(crate) recording: bool,
}

/// Copies of the libraries, which stay as they are while a run lasts.
pub(crate) struct Libraries {
    pub(crate) original: Original,
    pub(crate) sandbox: Sandbox,
    subjects: Vec<Subject>,
    remarks: Vec<String>,
}

impl Libraries {
    pub(crate) fn build(choice: &Choice) -> Result<Libraries> {
        let original = Original::obtain()?;
        let sandbox = Sandbox::open(&original)?;
        let copy = |library: &Library, name: &str| -> Result<PathBuf> {
            sandbox.adopt(&library.build(&original)?, name)
        };
        let waits = |subject: Subject| match choice.poller {
            Some(poller) => subject.with("BLACKLIGHT_POLLER", poller.name()),
            None => subject,
        };
        let mut remarks = Vec::new();
        let ours = copy(&choice.library, "ours")?;
        if choice.library != Library::Ours {
            remarks.push(format!("`ours` stands for {}.", choice.library));
        }
        let mut subjects = vec![
            waits(Subject::on_library(Subject::OURS, ours)),
            Subject::on_library(Subject::ORIGINAL, copy(&Library::Original, "original")?),
        ];
        if let Some(library) = &choice.against {
            remarks.push(format!("`before` is the library of {library}."));
            let before = copy(library, "before")?;
            subjects.push(waits(Subject::on_library(Subject::BEFORE, before)));
        }
        if choice.recording {
            subjects.push(recording(&subjects[0]));
        }
        if let Some(poller) = choice.poller {
            remarks.push(format!("Ours waits with {}.", poller.name()));
        }
        Ok(Libraries {
            original,
            sandbox,
            subjects,
            remarks,
        })
    }

    /// Ours, the original, and the other build of ours if there is one.
    pub(crate) fn subjects(&self) -> Vec<Subject> {
        self.subjects.clone()
    }

    /// Ours, the original, the other build of ours if there is one, and ours while it records.
    pub(crate) fn subjects_and_recording(&self) -> Vec<Subject> {
        let mut subjects = self.subjects();
        if !subjects.iter().any(|one| one.name == Subject::RECORDING) {
            subjects.push(recording(&self.subjects[0]));
        }
        subjects
    }

    /// A server that is a bare loop of `epoll_wait`, `read` and `send`: what no library can be much
    /// below. Its executable is linked with a libuv like the others, and calls nothing of it.
    pub(crate) fn bare_loop(&self) -> Subject {
        Subject::on_library(Subject::BARE, self.ours()).only_shown()
    }

    /// What a reader of a report has to know about them.
    pub(crate) fn remarks(&self) -> Vec<String> {
        self.remarks.clone()
    }

    /// The directory of our library, to link programs with.
    pub(crate) fn ours(&self) -> PathBuf {
        let ours = self.subjects[0].library.clone();
        ours.expect("a subject on a library")
    }
}

/// The same library while it records what its loops do.
fn recording(ours: &Subject) -> Subject {
    let mut recording = ours.clone().with("BLACKLIGHT_RECORD", "1");
    recording.name = Subject::RECORDING;
    recording.only_shown()
}
