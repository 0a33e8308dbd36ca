//! The settings that `blacklight run` passes in the environment variable `BLACKLIGHT_SWAP`.
//!
//! The settings are separated by semicolons: `only-this=PROGRAM`, `announce=PID:NAME`, `require=PID`,
//! `probe=FD`, `known=FACTS`, `report=PATH`, and last `library=PATH`, which may contain a semicolon.

use core::ffi::CStr;
use libc::c_int;

/// The name of the variable.
const NAME: &CStr = c"BLACKLIGHT_SWAP";

/// The parsed settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings<'a> {
    /// The path of our library, as in `LD_PRELOAD`.
    pub(crate) library: &'a str,
    /// The program whose children do not inherit the preloads. A program that runs before it in
    /// the same process, such as `env` for a script, passes them on.
    pub(crate) only_this: Option<&'a str>,
    /// The process that is to say in one line what became of it, and the name of its program: that which `blacklight run` has
    /// become.
    pub(crate) announce: Option<(u32, &'a str)>,
    /// The process that is not to run on any other library than ours.
    pub(crate) require: Option<u32>,
    /// The descriptor to write the result to, before ending the process without running the
    /// program.
    pub(crate) probe: Option<c_int>,
    /// Facts about the program, for [`crate::known::Known::parse`].
    pub(crate) known: Option<&'a str>,
    /// The path of the report file.
    pub(crate) report: Option<&'a str>,
}

impl<'a> Settings<'a> {
    fn parse(text: &'a str) -> Option<Settings<'a>> {
        let mut settings = Settings::default();
        let mut rest = text;
        loop {
            if let Some(path) = rest.strip_prefix("library=") {
                settings.library = path;
                return (!path.is_empty()).then_some(settings);
            }
            let (word, others) = rest.split_once(';')?;
            rest = others;
            match word.split_once('=') {
                Some(("only-this", program)) => settings.only_this = Some(program),
                Some(("announce", who)) => {
                    let (process, name) = who.split_once(':')?;
                    settings.announce = Some((process.parse().ok()?, name));
                }
                Some(("require", process)) => settings.require = Some(process.parse().ok()?),
                Some(("probe", fd)) => settings.probe = Some(fd.parse().ok()?),
                Some(("known", facts)) => settings.known = Some(facts),
                Some(("report", path)) => settings.report = Some(path),
                _ => {}
            }
        }
    }

    /// The name by which this process is to say what became of it, if it is.
    pub(crate) fn name_to_announce(&self) -> Option<&'a str> {
        let (process, name) = self.announce?;
        (process == std::process::id()).then_some(name)
    }

    /// Whether this process is not to run on any other library than ours.
    pub(crate) fn is_required(&self) -> bool {
        self.require == Some(std::process::id())
    }

    fn print(&self, known: &str) -> String {
        let (word, path, end) = match self.report {
            Some(path) => ("report=", path, ";"),
            None => ("", "", ""),
        };
        let known = ["known=", known, ";"].concat();
        [&known, word, path, end, "library=", self.library, "\0"].concat()
    }
}

/// Reads the settings from the environment, if they are set.
pub(crate) fn read() -> Option<Settings<'static>> {
    // SAFETY: the name is a C string. The value is copied, so later changes of the environment do
    // not affect it.
    let text = unsafe {
        let value = libc::getenv(NAME.as_ptr());
        if value.is_null() {
            return None;
        }
        CStr::from_ptr(value).to_str().ok()?.to_owned()
    };
    Settings::parse(String::leak(text))
}

/// Passes facts about the program to the children of this process.
pub(crate) fn pass_on(settings: &Settings<'_>, known: &str) {
    let text = settings.print(known);
    // SAFETY: both are C strings, and `setenv` copies them.
    unsafe { libc::setenv(NAME.as_ptr(), text.as_ptr().cast(), 1) };
}

/// Whether this process runs the program at this path.
pub(crate) fn is_running(program: &str) -> bool {
    let mut buf = [0; 4096];
    // SAFETY: the path is a C string, and the length is that of the buffer.
    let length = unsafe {
        let link = c"/proc/self/exe".as_ptr();
        libc::readlink(link, buf.as_mut_ptr().cast(), buf.len())
    };
    let length = usize::try_from(length).unwrap_or(0);
    buf[..length] == *program.as_bytes()
}

/// Removes our variable and our preloads from the environment that children inherit.
pub(crate) fn withdraw(settings: &Settings<'_>, this: &str) {
    const PRELOAD: &CStr = c"LD_PRELOAD";
    // SAFETY: names and values are C strings, and `setenv` copies them.
    unsafe {
        libc::unsetenv(NAME.as_ptr());
        let list = libc::getenv(PRELOAD.as_ptr());
        if list.is_null() {
            return;
        }
        let Ok(list) = CStr::from_ptr(list).to_str() else {
            return;
        };
        let others = without(list, &[settings.library, this]);
        if others.is_empty() {
            libc::unsetenv(PRELOAD.as_ptr());
        } else {
            let others = [others.as_str(), "\0"].concat();
            libc::setenv(PRELOAD.as_ptr(), others.as_ptr().cast(), 1);
        }
    }
}

/// A list for `LD_PRELOAD` without some of its entries.
fn without(list: &str, entries: &[&str]) -> String {
    let is_other = |entry: &&str| !entry.is_empty() && !entries.contains(entry);
    let others: Vec<&str> = list.split([':', ' ']).filter(is_other).collect();
    others.join(":")
}

#[cfg(test)]
mod tests {
    use super::{Settings, without};

    #[test]
    fn words_come_in_any_order_and_the_path_last() {
        let settings = Settings::parse(
            "only-this=/p q;known=ab:3:;probe=7;announce=12:a:b;require=12;report=/r;\
             library=/a;b/libuv.so.1",
        );
        let expected = Settings {
            library: "/a;b/libuv.so.1",
            only_this: Some("/p q"),
            announce: Some((12, "a:b")),
            require: Some(12),
            probe: Some(7),
            known: Some("ab:3:"),
            report: Some("/r"),
        };
        assert_eq!(settings, Some(expected));
        assert_eq!(Settings::parse(""), None);
        assert_eq!(Settings::parse("only-this=/a"), None);
        assert_eq!(Settings::parse("announce=12;library=/a"), None);
        assert_eq!(Settings::parse("announce=x:a;library=/a"), None);
        assert_eq!(Settings::parse("library="), None);
    }

    #[test]
    fn what_is_passed_on_is_read_again() {
        let settings = Settings {
            library: "/lib/libuv.so.1",
            only_this: None,
            announce: Some((1, "node")),
            require: None,
            probe: None,
            known: Some("old"),
            report: Some("/r s"),
        };
        let text = settings.print("cd:1:2+3");
        let read = Settings::parse(text.trim_end_matches('\0')).expect("it is complete");
        assert_eq!(read.known, Some("cd:1:2+3"));
        assert_eq!(read.announce, None);
        assert_eq!(read.library, settings.library);
        assert_eq!(read.report, settings.report);
    }

    #[test]
    fn other_entries_of_the_list_stay() {
        assert_eq!(without("/a:/b:/c d", &["/a", "/c"]), "/b:d");
        assert_eq!(without("/a:/b", &["/a", "/b"]), "");
    }
}
