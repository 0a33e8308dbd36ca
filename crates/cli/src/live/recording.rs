//! Recordings: what a page was told, in a file to share.
//!
//! The first line of a recording is its [`Heading`], and each other one a frame as the page gets it. The first minute has all frames, and what
//! comes after it one in a second, so that a long recording can be shared. A recording may come from anybody, so all of it is checked before a page sees it: the form of each line, the type of each field, and the size of everything.

use super::document::{VERSION, check};
use super::hub::Told;
use super::past::{COARSE_NS, FINE_NS};
use crate::words::tell;
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The first word of every recording.
const SIGNATURE: &str = "blacklight live";
/// The most bytes of a recording.
const LARGEST: u64 = 512 << 20;
/// The most bytes of a line.
const LONGEST: u64 = 64 << 20;
/// The most documents that a frame may set.
const DOCUMENTS: usize = 200_000;

/// The first line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Heading {
    recording: String,
    version: u32,
    /// The process that was watched.
    pid: u32,
}

/// A frame.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Frame<'a> {
    v: u64,
    at: u64,
    wall: u64,
    #[serde(default)]
    full: bool,
    #[serde(borrow)]
    set: BTreeMap<Cow<'a, str>, &'a RawValue>,
    #[serde(borrow)]
    del: Vec<Cow<'a, str>>,
}

/// Writes a recording.
pub(super) struct Writer {
    out: BufWriter<File>,
    path: PathBuf,
    size: u64,
    is_full: bool,
    /// The time of the first frame.
    begun_ns: Option<u64>,
    /// What was written so far.
    pub(super) told: Told,
}

impl Writer {
    /// Begins a recording of a process. A file that is there already is not written over.
    pub(super) fn new(path: &Path, pid: u32) -> Result<Writer> {
        // It has command lines, paths and addresses, which are not for the other users of the machine.
        let mut options = File::options();
        let options = options.write(true).create_new(true).mode(0o600);
        let file = options.open(path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        let heading = Heading {
            recording: SIGNATURE.into(),
            version: VERSION,
            pid,
        };
        let mut writer = Writer {
            out: BufWriter::new(file),
            path: path.to_owned(),
            size: 0,
            is_full: false,
            begun_ns: None,
            told: Told::default(),
        };
        writer.line(&serde_json::to_string(&heading)?)?;
        Ok(writer)
    }

    /// Whether a frame of this time is to be written.
    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        self.begun_ns
            .is_none_or(|begun_ns| now_ns.saturating_sub(begun_ns) < FINE_NS)
            || now_ns.saturating_sub(self.told.at_ns) >= COARSE_NS
    }

    /// Writes a frame. A recording that cannot be written ends here; what is shown goes on.
    pub(super) fn write(&mut self, frame: Option<String>) {
        let Some(frame) = frame.filter(|_| !self.is_full) else {
            return;
        };
        self.begun_ns.get_or_insert(self.told.at_ns);
        let path = self.path.display();
        if self.size + frame.len() as u64 >= LARGEST {
            tell(&format!("{path} is full, and has what was until now"));
            self.is_full = true;
        } else if let Err(error) = self.line(&frame) {
            tell(&format!("{error:#}: it has what was until now"));
            self.is_full = true;
        }
    }

    fn line(&mut self, line: &str) -> Result<()> {
        let written = writeln!(self.out, "{line}");
        // Whoever ends us by force leaves whole lines behind, but for one.
        let written = written.and_then(|()| self.out.flush());
        written.with_context(|| format!("cannot write {}", self.path.display()))?;
        self.size += line.len() as u64 + 1;
        Ok(())
    }

    /// Ends the recording.
    pub(super) fn finish(mut self) -> Result<()> {
        // A file that could not be written was told of.
        let flushed = self.out.flush();
        if !self.is_full {
            flushed.with_context(|| format!("cannot write {}", self.path.display()))?;
        }
        let path = self.path.display();
        let size = self.size;
        tell(&format!(
            "{path} has {size} bytes; `blacklight live {path}` shows it. It has the program's command line, paths and addresses"
        ));
        Ok(())
    }
}

/// A recording that was checked.
#[derive(Debug)]
pub(super) struct Recording {
    /// The process that was watched.
    pub(super) pid: u32,
    /// The frames.
    pub(super) frames: Vec<String>,
}

/// Reads a recording.
pub(super) fn read(path: &Path) -> Result<Recording> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let metadata = file.metadata()?;
    ensure!(metadata.is_file(), "{} is no file", path.display());
    let checked = parse(BufReader::new(file.take(LARGEST + 1)));
    checked.with_context(|| format!("{} cannot be shown", path.display()))
}

fn parse(mut from: impl BufRead) -> Result<Recording> {
    let mut size = 0;
    let mut line = |what: &str| -> Result<Option<String>> {
        let mut bytes = Vec::new();
        from.by_ref().take(LONGEST).read_until(b'\n', &mut bytes)?;
        size += bytes.len() as u64;
        ensure!(size <= LARGEST, "it has more than {} MiB", LARGEST >> 20);
        match bytes.pop() {
            Some(b'\n') => {}
            // The last line of a recording that was cut off.
            _ if (bytes.len() as u64) < LONGEST - 1 => return Ok(None),
            _ => bail!("{what} is too long"),
        }
        let text = String::from_utf8(bytes)
            .ok()
            .with_context(|| format!("{what} is no text"))?;
        Ok(Some(text))
    };
    let heading = line("its first line")?.unwrap_or_default();
    let heading: Heading = serde_json::from_str(&heading)
        .ok()
        .context("it is no recording of `blacklight live --save`")?;
    ensure!(
        heading.recording == SIGNATURE,
        "it is no recording of `blacklight live --save`"
    );
    ensure!(
        (1..=VERSION).contains(&heading.version),
        "it was written by another version: its format is {}, and {VERSION} is known",
        heading.version
    );
    let mut frames = Vec::new();
    let mut last = None;
    while let Some(text) = line(&format!("line {}", frames.len() + 2))? {
        let number = frames.len() + 2;
        let at = check_frame(&text, last).with_context(|| format!("line {number} is damaged"))?;
        last = Some(at);
        frames.push(text);
    }
    ensure!(!frames.is_empty(), "there is nothing in it");
    Ok(Recording {
        pid: heading.pid,
        frames,
    })
}

/// Checks a frame that comes after one with this version and time. Returns its own.
fn check_frame(text: &str, last: Option<(u64, u64)>) -> Result<(u64, u64)> {
    // It would be the end of a line in the stream that a page gets; JSON may have it between its words.
    ensure!(!text.contains('\r'), "it has a carriage return");
    let frame: Frame<'_> = serde_json::from_str(text)?;
    match last {
        None => ensure!(frame.full, "the first frame must have everything"),
        Some((v, at)) => ensure!(frame.v > v && frame.at >= at, "its time goes backwards"),
    }
    // What a browser can count with.
    ensure!(
        frame.at < 1 << 53 && frame.v < 1 << 53 && frame.wall < 1 << 53,
        "its time is too large"
    );
    ensure!(
        frame.set.len() <= DOCUMENTS && frame.del.len() <= DOCUMENTS,
        "it has too much"
    );
    for (key, value) in &frame.set {
        check(key, value).map_err(anyhow::Error::msg)?;
    }
    let is_key = |key: &str| {
        key.len() <= 64
            && key
                .split('/')
                .next()
                .is_some_and(|pid| pid.parse::<u32>().is_ok())
    };
    ensure!(
        frame.del.iter().all(|key| is_key(key)),
        "what it removes has no key"
    );
    Ok((frame.v, frame.at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    const HEADING: &str = r#"{"recording":"blacklight live","version":1,"pid":7}"#;
    const FULL: &str = r#"{"v":1,"at":10,"wall":5,"full":true,"set":{"7/loop/1":{"id":1,"name":"<b>","poller":"epoll","tid":3,"made":2}},"del":[]}"#;
    const NEXT: &str = r#"{"v":2,"at":20,"wall":5,"set":{},"del":["7/loop/1"]}"#;

    fn parsed(lines: &[&str]) -> Result<Recording> {
        let text = lines.iter().map(|line| format!("{line}\n"));
        parse(text.collect::<String>().as_bytes())
    }

    fn refused(lines: &[&str]) -> String {
        format!("{:#}", parsed(lines).expect_err("it is not taken"))
    }

    #[test]
    fn a_recording_is_read_as_it_was_written() {
        let recording = parsed(&[HEADING, FULL, NEXT]).expect("it is sound");
        assert_eq!(
            (recording.pid, recording.frames),
            (7, vec![FULL.into(), NEXT.into()])
        );
        // Its writer was killed.
        let cut = format!("{HEADING}\n{FULL}\n{}", &NEXT[..20]);
        assert_eq!(
            parse(cut.as_bytes())
                .expect("its whole lines are sound")
                .frames
                .len(),
            1
        );
    }

    #[test]
    fn what_is_no_recording_is_refused() {
        for first in [
            "",
            "{}",
            "[]",
            "\u{7f}ELF",
            &HEADING.replace("live", "dead"),
        ] {
            assert!(refused(&[first, FULL]).contains("no recording"), "{first}");
        }
        for version in ["0", "4"] {
            let other = HEADING.replace("\"version\":1", &format!("\"version\":{version}"));
            assert!(refused(&[&other, FULL]).contains("another version"));
        }
        assert!(refused(&[HEADING]).contains("nothing in it"));
        assert!(parse(&b"\xff\xfe\n"[..]).is_err());
    }

    #[test]
    fn damaged_frames_are_refused() {
        let deep = format!(
            r#"{{"v":1,"at":1,"wall":1,"full":true,"set":{{"7/pool":{}}},"del":[]}}"#,
            "[".repeat(100_000)
        );
        for frame in [
            "",
            "null",
            "{",
            &deep,
            &FULL.replace("\"full\":true,", ""),
            &FULL.replace("\"at\":10", "\"at\":-10"),
            &FULL.replace("\"at\":10", "\"at\":18446744073709551615"),
            &FULL.replace("\"at\":10", "\"at\":\"10\""),
            &FULL.replace("\"at\"", "\r\"at\""),
            &format!("{FULL}\r"),
            &FULL.replace("\"del\":[]", "\"del\":[1]"),
            &FULL.replace("\"del\":[]", "\"del\":[\"__proto__\"]"),
            &FULL.replace("\"del\":[]", "\"del\":[],\"x\":1"),
            &FULL.replace("7/loop/1", "__proto__"),
            &FULL.replace("7/loop/1", "7/loop"),
            &FULL.replace("7/loop/1", "7/loop/1/2"),
            &FULL.replace("7/loop/1", "x/loop/1"),
            &FULL.replace("7/loop/1", "7/loop/<b>"),
            &FULL.replace("7/loop/1", "7/script/1"),
            &FULL.replace("\"id\":1", "\"id\":\"1\""),
            &FULL.replace("\"id\":1", "\"id\":1,\"more\":1"),
            &FULL.replace("\"tid\":3,", ""),
            &FULL.replace("\"<b>\"", "{\"__html\":\"<b>\"}"),
            &FULL.replace("<b>", &"x".repeat(100_000)),
        ] {
            let said = refused(&[HEADING, frame]);
            assert!(said.contains("line 2 is damaged"), "{said}");
        }
        let back = NEXT.replace("\"at\":20", "\"at\":9");
        assert!(refused(&[HEADING, FULL, &back]).contains("line 3"));
        assert!(refused(&[HEADING, FULL, FULL]).contains("backwards"));
    }

    #[test]
    fn a_disk_that_is_full_ends_the_recording_and_nothing_else() {
        let full = File::options().write(true).open("/dev/full");
        let mut writer = Writer {
            out: BufWriter::new(full.expect("every Linux has it")),
            path: "/dev/full".into(),
            size: 0,
            is_full: false,
            begun_ns: None,
            told: Told::default(),
        };
        writer.write(Some(FULL.into()));
        assert!(writer.is_full);
        let size = writer.size;
        writer.write(Some(NEXT.into()));
        assert_eq!(writer.size, size, "it is not tried again");
        writer.finish().expect("it was told already");
    }

    #[test]
    fn after_a_minute_a_step_is_a_second() {
        let null = File::options().write(true).open("/dev/null");
        let mut writer = Writer {
            out: BufWriter::new(null.expect("every Linux has it")),
            path: "/dev/null".into(),
            size: 0,
            is_full: false,
            begun_ns: None,
            told: Told::default(),
        };
        let mut written = Vec::new();
        // Two minutes of ten frames a second.
        for tenth in 50..=1250_u64 {
            let now_ns = tenth * 100_000_000;
            if writer.is_due(now_ns) {
                writer.told.at_ns = now_ns;
                writer.write(Some(FULL.into()));
                written.push(tenth);
            }
        }
        let late = written.iter().filter(|tenth| **tenth >= 650);
        let late: Vec<u64> = late.copied().collect();
        assert_eq!(written.len() - late.len(), 600);
        assert!(late.windows(2).all(|of| of[1] - of[0] == 10), "{late:?}");
    }

    #[test]
    fn a_file_is_not_written_over() {
        let path =
            std::env::temp_dir().join(format!("blacklight-recording-{}", std::process::id()));
        let mut writer = Writer::new(&path, 7).expect("there is room");
        let mode = std::fs::metadata(&path).expect("it is there").mode();
        assert_eq!(mode & 0o777, 0o600, "nobody else may read it");
        writer.write(Some(FULL.into()));
        assert!(Writer::new(&path, 7).is_err());
        writer.write(None);
        writer.finish().expect("there is room");
        assert_eq!(read(&path).expect("it is sound").frames, [FULL]);
        std::fs::remove_file(&path).expect("it is there");
        assert!(read(&path).is_err() && read(&std::env::temp_dir()).is_err());
    }
}
