//! Names for the code of another process.
//!
//! Native code is named by the symbol tables of the files that the process has mapped, and its file and line by their debug information. Code
//! that a just-in-time compiler has made is named by the map that Node.js and Python write to `/tmp/perf-PID.map` when they
//! are asked to. Everything is read when it is first needed, and once. All of it is the process's to choose: nothing is trusted to be sound, and
//! names come out without control characters.

use crate::closures::{self, Places};
use crate::maps::{Image, Maps, Origin, open_regular};
use crate::words::clean;
use anyhow::Result;
use gimli::{EndianArcSlice, RunTimeEndian};
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// The most that is read of a map of compiled code.
const LARGEST_MAP: u64 = 256 << 20;
/// The longest name that is shown.
const LONGEST_NAME: usize = 400;

/// The longest list of a template's arguments that is shown.
const LONGEST_LIST: usize = 40;

/// What a piece of code was written in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Language {
    /// A language that is compiled to files.
    Native,
    JavaScript,
    Python,
}

/// What is known of the code at an address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Symbol {
    /// The function.
    pub(crate) name: Option<String>,
    /// The file that it was compiled from.
    pub(crate) file: Option<String>,
    /// The line in that file.
    pub(crate) line: Option<u32>,
    /// The program or library that has the code.
    pub(crate) module: Option<String>,
    /// The address in the module, or in memory where there is none.
    pub(crate) offset: u64,
    /// What it was written in.
    pub(crate) language: Language,
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, &self.module) {
            (Some(name), _) => f.write_str(name)?,
            (None, Some(module)) => return write!(f, "?? ({module}+{:#x})", self.offset),
            (None, None) => return write!(f, "?? ({:#x})", self.offset),
        }
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, " ({file}:{line})"),
            (Some(file), None) => write!(f, " ({file})"),
            _ => Ok(()),
        }
    }
}

impl Symbol {
    /// The name in about `width` characters: a file is named without its directory, and what is too long is left out of the function.
    pub(crate) fn brief(&self, width: usize) -> String {
        let Some(name) = &self.name else {
            return crate::words::shorten(&self.to_string(), width);
        };
        let file = self
            .file
            .as_deref()
            .map(|file| match file.rsplit_once('/') {
                Some((_, last)) if !last.is_empty() => last,
                _ => file,
            });
        let place = match (file, self.line) {
            (Some(file), Some(line)) => format!(" ({file}:{line})"),
            (Some(file), None) => format!(" ({file})"),
            _ => String::new(),
        };
        let room = width.saturating_sub(place.chars().count()).max(16);
        crate::words::shorten(name, room) + &place
    }
}

/// A function: where it ends, and its name.
type Function = (u64, Rc<str>);

/// The debug information of one file.
struct Lines {
    dwarf: Arc<gimli::Dwarf<EndianArcSlice<RunTimeEndian>>>,
    context: addr2line::Context<EndianArcSlice<RunTimeEndian>>,
    /// Where closures are written, once that was asked for.
    closures: OnceCell<Places>,
}

/// The names of one file.
struct Names {
    /// Functions by their first address.
    functions: BTreeMap<u64, Function>,
    lines: Option<Lines>,
    image: Image,
}

/// The names of a process's code.
pub(crate) struct Symbols {
    maps: Maps,
    files: HashMap<PathBuf, Option<Names>>,
    /// Files that are open, of which nothing was read yet.
    held: HashMap<PathBuf, Image>,
    compiled: Compiled,
}

impl Symbols {
    /// The names of a process's code. Files are read when they are needed.
    pub(crate) fn of(pid: u32) -> Result<Symbols> {
        Ok(Symbols {
            maps: Maps::of(pid)?,
            files: HashMap::new(),
            held: HashMap::new(),
            compiled: Compiled::of(pid),
        })
    }

    /// Opens the files of all code that is there now, so that it can still be named when the process has ended.
    pub(crate) fn hold_files(&mut self) {
        // What is known stays if the process has ended.
        let _ = self.maps.refresh();
        for mapping in self.maps.iter() {
            if let Origin::File(file) = &mapping.origin
                && !self.held.contains_key(&file.path)
                && !self.files.contains_key(&file.path)
                && let Some(image) = self.maps.open(mapping)
            {
                self.held.insert(file.path.clone(), image);
            }
        }
        self.compiled.refresh();
    }

    /// What is known of the code at an address.
    pub(crate) fn name(&mut self, address: u64) -> Symbol {
        if self.maps.find(address).is_none() {
            // The process may have gone on since.
            let _ = self.maps.refresh();
        }
        let mapping = self.maps.find(address).cloned();
        let Some(mapping) = mapping else {
            return unknown(address);
        };
        let file = match &mapping.origin {
            Origin::File(file) => file,
            // It is the kernel's, and no function that was compiled at run time.
            Origin::Vdso => {
                return Symbol {
                    module: Some("[vdso]".into()),
                    ..unknown(address - mapping.range.start)
                };
            }
            Origin::Anonymous => {
                return self
                    .compiled
                    .name(address)
                    .unwrap_or_else(|| unknown(address));
            }
        };
        let path = file.path.clone();
        let names = self.files.entry(path.clone()).or_insert_with(|| {
            let held = self.held.remove(&path);
            let image = held.or_else(|| self.maps.open(&mapping))?;
            Some(Names::read(image, &self.maps))
        });
        let module = path.file_name().map(|name| clean(&name.to_string_lossy()));
        let inside = mapping.file_offset(address);
        let inside = inside
            .zip(names.as_ref())
            .and_then(|(offset, names)| names.image.address_of(offset));
        let mut symbol = Symbol {
            module,
            ..unknown(address)
        };
        if let (Some(inside), Some(names)) = (inside, names) {
            symbol.offset = inside;
            symbol.name = names.function(inside);
            if let Some((file, line)) = names.line(inside) {
                (symbol.file, symbol.line) = (Some(file), line);
            }
        }
        // Node.js has its builtin functions in its file, under names of their own in the map.
        if symbol.name.is_none()
            && let Some(compiled) = self.compiled.name(address)
        {
            return compiled;
        }
        symbol
    }
}

fn unknown(address: u64) -> Symbol {
    Symbol {
        name: None,
        file: None,
        line: None,
        module: None,
        offset: address,
        language: Language::Native,
    }
}

/// A name as the programmer wrote it.
fn demangle(name: &str) -> String {
    let text = match rustc_demangle::try_demangle(name) {
        Ok(name) => {
            let name = format!("{name:#}");
            closures::named(&name).unwrap_or(&name).to_owned()
        }
        Err(_) if name.starts_with("_Z") => {
            let symbol = cpp_demangle::Symbol::new(name).ok();
            // The types of its parameters hardly ever tell a callback from another, and fill the line.
            let options = cpp_demangle::DemangleOptions::new().no_params();
            let options = options.no_return_type();
            let symbol = symbol.and_then(|symbol| symbol.demangle_with_options(&options).ok());
            symbol.map_or_else(|| name.to_owned(), |name| without_types(&name))
        }
        Err(_) => name.to_owned(),
    };
    shorten(&text)
}

/// A name of C++ without what nobody looks for in it: long lists of types that a template or an enclosing function takes, and how a
/// compiler numbers lambdas.
fn without_types(name: &str) -> String {
    let name = name.replace("(anonymous namespace)::", "");
    let mut text = String::new();
    let mut list = String::new();
    let mut depth = 0_usize;
    for c in name.chars() {
        // An arrow closes nothing, and there are operators of these names.
        let is_operator = depth == 0 && (text.ends_with("operator") || text.ends_with("operator<"));
        match c {
            '(' | '<' if !is_operator => depth += 1,
            ')' | '>' if depth > 0 && !list.ends_with('-') => depth -= 1,
            _ => {}
        }
        list.push(c);
        if depth > 0 {
            continue;
        }
        match c {
            ')' if list.len() > 2 => text.push_str("()"),
            '>' if list.len() > LONGEST_LIST => text.push_str("<…>"),
            _ => text.push_str(&list),
        }
        list.clear();
    }
    if depth > 0 {
        return name;
    }
    let text = text.strip_suffix("::__invoke").unwrap_or(&text);
    match text.rsplit_once("::$_") {
        Some((rest, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{rest}::{{lambda}}")
        }
        _ => text.to_owned(),
    }
}

/// The beginning of a name, without control characters.
fn shorten(text: &str) -> String {
    clean(blacklight_record::beginning(text, LONGEST_NAME))
}

impl Names {
    fn read(image: Image, maps: &Maps) -> Names {
        let mut functions = BTreeMap::new();
        let debug = maps.open_debug(&image);
        for image in [Some(&image), debug.as_ref()].into_iter().flatten() {
            for name in [&b".symtab"[..], b".dynsym"] {
                read_symbols(image, name, &mut functions);
            }
        }
        let lines = debug
            .as_ref()
            .and_then(read_lines)
            .or_else(|| read_lines(&image));
        Names {
            functions,
            lines,
            image,
        }
    }

    fn function(&self, address: u64) -> Option<String> {
        let (start, (end, name)) = self.functions.range(..=address).next_back()?;
        // A symbol without a size goes on up to the next one.
        (address < *end || end == start).then(|| demangle(name))
    }

    /// Whether a function begins at this address that does nothing but to name a closure.
    fn names_closure(&self, address: u64) -> bool {
        let function = self.functions.get(&address);
        function.is_some_and(|(_, name)| {
            let name = rustc_demangle::try_demangle(name).map(|name| format!("{name:#}"));
            name.is_ok_and(|name| closures::named(&name).is_some())
        })
    }

    fn line(&self, address: u64) -> Option<(String, Option<u32>)> {
        let lines = self.lines.as_ref()?;
        if self.names_closure(address) {
            let places = lines.closures.get_or_init(|| Places::read(&lines.dwarf));
            let (file, line) = places.get(address)?;
            return Some((shorten(file), Some(line)));
        }
        let location = lines.context.find_location(address).ok()??;
        Some((shorten(location.file?), location.line))
    }
}

/// Adds the functions of a symbol table.
fn read_symbols(image: &Image, name: &[u8], functions: &mut BTreeMap<u64, Function>) {
    let Some(section) = image.section(name) else {
        return;
    };
    let strings = image.sections().get(section.link as usize);
    let (Some(table), Some(strings)) = (image.data(section), strings.and_then(|it| image.data(it)))
    else {
        return;
    };
    // An entry is: name (4 bytes), kind (1), other (1), section (2), value (8), size (8).
    for entry in table.chunks_exact(24) {
        let number = |range: std::ops::Range<usize>| {
            let mut bytes = [0; 8];
            bytes[..range.len()].copy_from_slice(&entry[range]);
            u64::from_le_bytes(bytes)
        };
        let (kind, section, value, size) =
            (entry[4] & 0xf, number(6..8), number(8..16), number(16..24));
        let is_function = matches!(kind, 2 | 10) && section != 0 && value != 0;
        let text = strings.get(number(0..4) as usize..).filter(|_| is_function);
        let text = text.and_then(|text| text.split(|byte| *byte == 0).next());
        let Some(text) = text.and_then(|text| std::str::from_utf8(text).ok()) else {
            continue;
        };
        if !text.is_empty() {
            let function = (value.saturating_add(size), Rc::from(text));
            functions.entry(value).or_insert(function);
        }
    }
}

/// The debug information of an image.
fn read_lines(image: &Image) -> Option<Lines> {
    image.section(b".debug_info")?;
    let load = |id: gimli::SectionId| -> Result<_, gimli::Error> {
        let section = image.section(id.name().as_bytes());
        let data = section
            .and_then(|section| image.data(section))
            .unwrap_or_default();
        Ok(EndianArcSlice::new(Arc::from(data), RunTimeEndian::Little))
    };
    let dwarf = Arc::new(gimli::Dwarf::load(load).ok()?);
    let context = addr2line::Context::from_arc_dwarf(dwarf.clone()).ok()?;
    Some(Lines {
        dwarf,
        context,
        closures: OnceCell::new(),
    })
}

/// The functions that a just-in-time compiler has made.
struct Compiled {
    path: PathBuf,
    file: Option<File>,
    uid: Option<u32>,
    /// How much of the map has been read.
    read: u64,
    /// Functions by their first address. Later lines of the map take the place of earlier ones.
    functions: BTreeMap<u64, Function>,
}

impl Compiled {
    fn of(pid: u32) -> Compiled {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        // The process names the file by its number in its own namespace.
        let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        let inner = line.and_then(|line| line.split_whitespace().last()?.parse().ok());
        let inner: u32 = inner.unwrap_or(pid);
        let uid = std::fs::metadata(format!("/proc/{pid}")).ok();
        Compiled {
            path: PathBuf::from(format!("/proc/{pid}/root/tmp/perf-{inner}.map")),
            file: None,
            uid: uid.map(|metadata| metadata.uid()),
            read: 0,
            functions: BTreeMap::new(),
        }
    }

    fn name(&mut self, address: u64) -> Option<Symbol> {
        self.refresh();
        let (start, (end, name)) = self.functions.range(..=address).next_back()?;
        (*start <= address && address < *end).then(|| parse_name(name, address))
    }

    /// Reads what has been added to the map. It stays open, to be read when the process has ended.
    fn refresh(&mut self) {
        if self.file.is_none() {
            self.file = open_regular(Path::new(&self.path)).ok();
        }
        let Some(file) = self.file.take() else {
            return;
        };
        if let Ok(metadata) = file.metadata() {
            let is_trusted = metadata.uid() == 0 || Some(metadata.uid()) == self.uid;
            let length = metadata.len().min(LARGEST_MAP);
            if is_trusted && length > self.read {
                self.read_tail(&file, length);
            }
        }
        self.file = Some(file);
    }

    fn read_tail(&mut self, file: &File, length: u64) {
        let mut bytes = vec![0; (length - self.read) as usize];
        if file.read_exact_at(&mut bytes, self.read).is_err() {
            return;
        }
        // The last line may be half written.
        let whole = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        self.read += whole as u64;
        self.add(&String::from_utf8_lossy(&bytes[..whole]));
    }

    /// Adds the lines of a map: first address, length and name.
    fn add(&mut self, text: &str) {
        for line in text.lines() {
            let mut parts = line.splitn(3, ' ');
            let mut number = || u64::from_str_radix(parts.next()?, 16).ok();
            let (Some(start), Some(size)) = (number(), number()) else {
                continue;
            };
            let Some(name) = parts.next().filter(|name| !name.is_empty()) else {
                continue;
            };
            let Some(end) = start.checked_add(size).filter(|end| *end > start) else {
                continue;
            };
            // Code that lay here before has been moved or thrown away.
            let overlapping = self.functions.range(start..end).map(|(start, _)| *start);
            for old in overlapping.collect::<Vec<_>>() {
                self.functions.remove(&old);
            }
            let name = blacklight_record::beginning(name, 2 * LONGEST_NAME);
            self.functions.insert(start, (end, Rc::from(name)));
        }
    }
}

/// Takes the name of compiled code apart: `JS:~crunch /app/server.js:12:18`, `py::crunch:/app/server.py`.
fn parse_name(name: &str, address: u64) -> Symbol {
    let mut symbol = Symbol {
        name: Some(shorten(name)),
        ..unknown(address)
    };
    if let Some(rest) = name.strip_prefix("py::") {
        symbol.language = Language::Python;
        let (function, file) = rest.split_once(':').unwrap_or((rest, ""));
        symbol.name = Some(shorten(function));
        symbol.file = (!file.is_empty()).then(|| shorten(file));
        return symbol;
    }
    let kinds = ["JS:", "LazyCompile:", "Function:", "Script:", "Eval:"];
    let Some(rest) = kinds.iter().find_map(|kind| name.strip_prefix(kind)) else {
        return symbol;
    };
    symbol.language = Language::JavaScript;
    // A mark says by which of V8's compilers: interpreted, baseline or optimised, the last perhaps in the middle of a run.
    let marks = ['~', '^', '*', '+', '\''];
    let in_the_middle = rest
        .strip_prefix('o')
        .filter(|rest| rest.starts_with(marks));
    let rest = in_the_middle.unwrap_or(rest).trim_start_matches(marks);
    let (function, place) = rest.rsplit_once(' ').unwrap_or(("", rest));
    let mut parts = place.rsplitn(3, ':');
    let (column, line) = (parts.next(), parts.next());
    let numbers = column.zip(line).and_then(|(column, line)| {
        column.parse::<u32>().ok()?;
        line.parse::<u32>().ok()
    });
    let function = if function.is_empty() {
        "(anonymous)"
    } else {
        function
    };
    symbol.name = Some(shorten(function));
    match (numbers, parts.next()) {
        (Some(line), Some(file)) => {
            symbol.line = Some(line);
            symbol.file = Some(shorten(file.strip_prefix("file://").unwrap_or(file)));
        }
        _ if !place.is_empty() && place != rest => symbol.file = Some(shorten(place)),
        _ => symbol.name = Some(shorten(rest)),
    }
    symbol
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(text: &str) -> Compiled {
        let mut compiled = Compiled::of(0);
        compiled.add(text);
        compiled
    }

    #[test]
    fn the_kernels_functions_are_not_taken_for_those_of_a_compiler() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let vdso = maps.lines().find(|line| line.ends_with("[vdso]")).unwrap();
        let start = u64::from_str_radix(vdso.split('-').next().unwrap(), 16).unwrap();
        let symbol = Symbols::of(std::process::id()).unwrap().name(start + 0x10);
        assert_eq!(symbol.to_string(), "?? ([vdso]+0x10)");
    }

    #[test]
    fn names_of_javascript_have_function_file_and_line() {
        for (name, shown) in [
            (
                "JS:~crunch /app/server.js:12:18",
                "crunch (/app/server.js:12)",
            ),
            (
                "LazyCompile:*crunch file:///app/x.mjs:3:1",
                "crunch (/app/x.mjs:3)",
            ),
            (
                "JS:o*crunch /app/server.js:2:16",
                "crunch (/app/server.js:2)",
            ),
            ("JS:~open /app/server.js:4:1", "open (/app/server.js:4)"),
            ("JS:^ /app/server.js:1:1", "(anonymous) (/app/server.js:1)"),
            (
                "JS:~get size node:internal/x:5:9",
                "get size (node:internal/x:5)",
            ),
            ("py::crunch:/app/server.py", "crunch (/app/server.py)"),
            ("Builtin:CallFunction", "Builtin:CallFunction"),
            ("JS:~", ""),
            ("JS:~only", "only"),
        ] {
            assert_eq!(parse_name(name, 1).to_string(), shown, "{name}");
        }
    }

    #[test]
    fn names_of_cpp_have_no_long_lists_of_types() {
        let long = "std::map<std::string, std::vector<std::pair<int, int>, Allocator>, Other>";
        for (name, shown) in [
            (
                "node::Environment::RunTimers",
                "node::Environment::RunTimers",
            ),
            (
                "node::LibuvStreamWrap::ReadStart()::$_1::__invoke",
                "node::LibuvStreamWrap::ReadStart()::{lambda}",
            ),
            (
                "a::Start(std::shared_ptr<b> const&, bool)::$_0",
                "a::Start()::{lambda}",
            ),
            (
                "node::ConnectionWrap<node::TCPWrap, uv_tcp_s>::OnConnection",
                "node::ConnectionWrap<node::TCPWrap, uv_tcp_s>::OnConnection",
            ),
            (&format!("f<{long}>::g"), "f<…>::g"),
            ("v8::(anonymous namespace)::Invoke", "v8::Invoke"),
            ("a::operator()", "a::operator()"),
            ("a::operator<", "a::operator<"),
            ("a::operator<<", "a::operator<<"),
            ("a::operator->", "a::operator->"),
            ("half(of<a", "half(of<a"),
            ("f(a->b)::g", "f()::g"),
        ] {
            assert_eq!(without_types(name), shown, "{name}");
        }
    }

    #[test]
    fn a_brief_name_keeps_the_line() {
        let named = |name: &str, file: &str| Symbol {
            name: Some(name.into()),
            file: Some(file.into()),
            line: Some(7),
            ..unknown(1)
        };
        let symbol = named("crunch", "/a/long/way/server.js");
        assert_eq!(symbol.brief(48), "crunch (server.js:7)");
        assert_eq!(
            named("emit", "node:events").brief(48),
            "emit (node:events:7)"
        );
        let long = named(&"f".repeat(60), "/a/b.c").brief(30);
        assert_eq!(long, format!("{}… (b.c:7)", "f".repeat(21)));
        assert_eq!(unknown(0x12).brief(48), "?? (0x12)");
    }

    #[test]
    fn later_code_takes_the_place_of_earlier() {
        let mut map = compiled("1000 100 JS:~old /a.js:1:1\n1080 80 JS:~new /a.js:2:1\n");
        let name = |map: &mut Compiled, address| map.name(address).map(|symbol| symbol.to_string());
        assert_eq!(name(&mut map, 0x1090).as_deref(), Some("new (/a.js:2)"));
        assert_eq!(name(&mut map, 0x1000).as_deref(), Some("old (/a.js:1)"));
        map.add("f00 1000 JS:~all /a.js:3:1\n");
        assert_eq!(name(&mut map, 0x1090).as_deref(), Some("all (/a.js:3)"));
        assert_eq!(name(&mut map, 0x1f00), None);
    }

    #[test]
    fn lines_that_are_none_are_passed_over() {
        let text = "zz 10 a\n10\n10 10\n10 0 empty\nffffffffffffffff 2 over\n-1 5 b\n\n10 5 \u{1b}[31mred\n";
        let mut map = compiled(text);
        assert_eq!(map.functions.len(), 1);
        let name = map.name(0x12).unwrap().to_string();
        assert!(!name.contains('\u{1b}'), "{name:?}");
    }

    #[inline(never)]
    fn landmark() -> u64 {
        std::hint::black_box(landmark as fn() -> u64 as usize as u64)
    }

    #[test]
    fn the_functions_of_a_process_are_named() {
        let mut symbols = Symbols::of(std::process::id()).unwrap();
        let symbol = symbols.name(landmark());
        assert!(
            symbol.name.as_deref().unwrap_or("").ends_with("landmark"),
            "{symbol}"
        );
        assert!(
            symbol.file.as_deref().unwrap_or("").ends_with("symbols.rs"),
            "{symbol:?}"
        );
        assert!(symbol.line.is_some_and(|line| line > 0), "{symbol:?}");
        assert_eq!(symbols.name(8).to_string(), "?? (0x8)");
        let libc = symbols.name(libc_function());
        assert!(libc.module.is_some_and(|module| module.starts_with("libc")));
    }

    #[test]
    fn what_was_held_is_named_when_the_process_has_ended() {
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let maps = format!("/proc/{}/maps", child.id());
        // The linker maps the C library some time after the child has become another program.
        let line = loop {
            let maps = std::fs::read_to_string(&maps).unwrap();
            let mut lines = maps.lines();
            let libc = lines.find(|line| line.contains("libc.so") && line.contains("r-xp"));
            if let Some(line) = libc {
                break line.to_owned();
            }
        };
        let start = line.split('-').next().unwrap();
        let address = u64::from_str_radix(start, 16).unwrap() + 0x1000;
        let mut symbols = Symbols::of(child.id()).unwrap();
        symbols.hold_files();
        child.kill().unwrap();
        child.wait().unwrap();
        let module = symbols.name(address).module.unwrap();
        assert!(module.starts_with("libc"), "{module}");
        let held = symbols.files.values().flatten().count();
        assert_eq!(held, 1, "the file was read after the end");
    }

    /// An address in the C library.
    fn libc_function() -> u64 {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps
            .lines()
            .find(|line| line.contains("libc.so") && line.contains("r-xp"));
        let start = line.unwrap().split('-').next().unwrap();
        u64::from_str_radix(start, 16).unwrap() + 0x1000
    }
}
