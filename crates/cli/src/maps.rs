//! The executable mappings of another process, and the ELF images behind them.
//!
//! [`Maps`] owns the list of mappings, sorted by address and without overlaps. An [`Image`] owns
//! the headers of one ELF file and reads its sections only on request. The process chooses what
//! it maps, so the files are treated as hostile: every length is checked before memory is
//! allocated for it, and a file that is no sound ELF file of a 64-bit little-endian machine has
//! no image.

use anyhow::{Context, Result, anyhow, bail};
use object::elf::{FileHeader64, PT_LOAD, SHF_COMPRESSED};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::read::{CompressedData, CompressionFormat};
use object::{Endianness, ReadCache, ReadRef};
use rustix::fs::{Mode, OFlags};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The largest section that is read. The debug information of the largest programs is smaller.
const LARGEST_SECTION: u64 = 1 << 30;

/// The most sections or segments that a file may have; real ones have some dozens.
const MOST_HEADERS: u32 = 100_000;

/// Where the bytes of a mapping come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    /// A file.
    File(FileId),
    /// The functions that the kernel maps into every process.
    Vdso,
    /// No file: such memory holds the code of a just-in-time compiler.
    Anonymous,
}

/// A mapped file, as the kernel names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileId {
    /// The path in the file system of the process.
    pub(crate) path: PathBuf,
    /// The device, as text, that holds the file.
    device: String,
    /// The number of the file on the device.
    inode: u64,
    /// Whether the path no longer leads to the file.
    is_deleted: bool,
}

/// One executable mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// The addresses.
    pub(crate) range: Range<u64>,
    /// The offset of the first byte in the file.
    pub(crate) offset: u64,
    /// Where the bytes come from.
    pub(crate) origin: Origin,
}

impl Mapping {
    /// The offset in the file of an address inside the mapping.
    pub(crate) fn file_offset(&self, address: u64) -> Option<u64> {
        address
            .checked_sub(self.range.start)?
            .checked_add(self.offset)
    }
}

/// The executable mappings of a process.
pub(crate) struct Maps {
    /// The process.
    pid: u32,
    /// The mappings, by address.
    mappings: Vec<Mapping>,
}

impl Maps {
    /// Reads the mappings of a process.
    pub(crate) fn of(pid: u32) -> Result<Maps> {
        let mut maps = Maps {
            pid,
            mappings: Vec::new(),
        };
        match maps.refresh() {
            Ok(()) => {}
            Err(error) if is_gone(&error) => bail!("there is no process {pid}"),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                bail!("process {pid} belongs to another user, or may not be looked into")
            }
            Err(error) => {
                return Err(error).with_context(|| format!("cannot look into process {pid}"));
            }
        }
        if maps.mappings.is_empty() {
            // The kernel keeps the entry of a process until its parent asks for its end.
            return Err(anyhow!("process {pid} has ended, or runs no program"));
        }
        Ok(maps)
    }

    /// Reads the mappings again; keeps the known ones on an error.
    pub(crate) fn refresh(&mut self) -> io::Result<()> {
        let text = std::fs::read(format!("/proc/{}/maps", self.pid))?;
        let mappings = parse(&text);
        // A process that has ended has none, and what is known of it is still to be named.
        if !mappings.is_empty() {
            self.mappings = mappings;
        }
        Ok(())
    }

    /// The mapping that holds an address.
    pub(crate) fn find(&self, address: u64) -> Option<&Mapping> {
        let after = self
            .mappings
            .partition_point(|mapping| mapping.range.start <= address);
        let mapping = self.mappings.get(after.checked_sub(1)?)?;
        mapping.range.contains(&address).then_some(mapping)
    }

    /// All mappings.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.mappings.iter()
    }

    /// Opens the image behind a mapping; `None` if there is none that can be read.
    pub(crate) fn open(&self, mapping: &Mapping) -> Option<Image> {
        match &mapping.origin {
            Origin::Anonymous => None,
            Origin::Vdso => Image::of_vdso(),
            Origin::File(file) => Image::parse(Bytes::File(self.open_file(mapping, file)?)),
        }
    }

    /// Opens a mapped file.
    fn open_file(&self, mapping: &Mapping, file: &FileId) -> Option<File> {
        let pid = self.pid;
        // This leads to the mapped file even after its deletion, but only the administrator may
        // follow it.
        let Range { start, end } = mapping.range;
        let exact = format!("/proc/{pid}/map_files/{start:x}-{end:x}");
        if let Ok(file) = File::open(exact)
            && file.metadata().is_ok_and(|data| data.is_file())
        {
            return Some(file);
        }
        if !file.is_deleted {
            let relative = file.path.strip_prefix("/").ok()?;
            return open_regular(&Path::new(&format!("/proc/{pid}/root")).join(relative)).ok();
        }
        // The path may now lead to another build, whose names would be wrong ones. The program
        // itself can still be opened.
        let program = format!("/proc/{pid}/exe");
        let target = std::fs::read_link(&program).ok()?;
        let target = target.as_os_str().as_bytes().strip_suffix(DELETED)?;
        (target == file.path.as_os_str().as_bytes())
            .then(|| File::open(&program).ok())
            .flatten()
    }

    /// Opens the debug information that a distribution ships apart from an image.
    pub(crate) fn open_debug(&self, image: &Image) -> Option<Image> {
        let id = image.build_id()?;
        let (first, rest) = id.split_first()?;
        let hex = |bytes: &[u8]| -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() };
        let path = format!("usr/lib/debug/.build-id/{:02x}/{}.debug", first, hex(rest));
        [
            format!("/proc/{}/root/{path}", self.pid),
            format!("/{path}"),
        ]
        .iter()
        .filter_map(|path| open_regular_or_link(Path::new(path)).ok())
        .find_map(|file| Image::parse(Bytes::File(file)))
    }
}

/// Whether an error says that the process is no longer there.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

/// Opens a file that must be a regular one and no link. Never waits, as opening a pipe would.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    open_checked(path, OFlags::NOFOLLOW)
}

/// Opens a file that must be a regular one, possibly through a link.
fn open_regular_or_link(path: &Path) -> io::Result<File> {
    open_checked(path, OFlags::empty())
}

/// Opens a file without waiting, and checks that it is a regular one.
fn open_checked(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    Ok(file)
}

/// What the kernel appends to the path of a deleted file.
const DELETED: &[u8] = b" (deleted)";

/// Parses the text of `/proc/PID/maps` and keeps what is executable.
fn parse(text: &[u8]) -> Vec<Mapping> {
    let mut mappings: Vec<Mapping> = text.split(|byte| *byte == b'\n').filter_map(line).collect();
    // The kernel sorts them, but reads of a long list may see a process in the middle of a change.
    mappings.sort_by_key(|mapping| mapping.range.start);
    mappings.dedup_by(|next, kept| next.range.start < kept.range.end);
    mappings
}

/// Parses one line, `START-END PERMISSIONS OFFSET DEVICE INODE PATH`, if it is executable.
fn line(line: &[u8]) -> Option<Mapping> {
    // A path may have spaces, so it is whatever follows the five fields.
    let mut fields = [&[] as &[u8]; 5];
    let mut rest = line;
    for field in &mut fields {
        rest = rest.trim_ascii_start();
        let end = rest.iter().position(|byte| *byte == b' ');
        (*field, rest) = rest.split_at(end.unwrap_or(rest.len()));
    }
    let [range, permissions, offset, device, inode] = fields;
    if permissions.get(2) != Some(&b'x') {
        return None;
    }
    let mut ends = range.splitn(2, |byte| *byte == b'-');
    let range = hexadecimal(ends.next()?)?..hexadecimal(ends.next()?)?;
    if range.is_empty() {
        return None;
    }
    let path = rest.trim_ascii_start();
    let inode = std::str::from_utf8(inode).ok()?.parse().ok()?;
    let origin = match path.first() {
        Some(b'/') if inode != 0 => {
            let kept = path.strip_suffix(DELETED);
            Origin::File(FileId {
                path: PathBuf::from(OsStr::from_bytes(&unescape(kept.unwrap_or(path)))),
                device: String::from_utf8_lossy(device).into_owned(),
                inode,
                is_deleted: kept.is_some(),
            })
        }
        _ if path == b"[vdso]" => Origin::Vdso,
        _ => Origin::Anonymous,
    };
    Some(Mapping {
        range,
        offset: hexadecimal(offset)?,
        origin,
    })
}

/// Parses a hexadecimal number without a sign, which the standard library would allow.
pub(crate) fn hexadecimal(text: &[u8]) -> Option<u64> {
    if !text.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}

/// Undoes the kernel's only escape: a line feed in a path is `\012`.
fn unescape(path: &[u8]) -> Vec<u8> {
    let mut result = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((first, tail)) = rest.split_first() {
        if let Some(tail) = rest.strip_prefix(b"\\012") {
            result.push(b'\n');
            rest = tail;
        } else {
            result.push(*first);
            rest = tail;
        }
    }
    result
}

/// The bytes of an image.
enum Bytes {
    /// A file, read on request.
    File(File),
    /// A copy of memory.
    Memory(Vec<u8>),
}

/// A part of an image that is loaded into memory.
struct Segment {
    /// Its offset and length in the file.
    file: Range<u64>,
    /// Its address before the image is moved to where it is mapped.
    address: u64,
}

/// A named part of an image.
#[derive(Clone)]
pub(crate) struct Section {
    /// The name.
    name: Vec<u8>,
    /// The index of the section that this one refers to, such as its strings.
    pub(crate) link: u32,
    /// The addresses before the image is moved; empty if it is not loaded.
    pub(crate) addresses: Range<u64>,
    /// The offset and the length in the file; `None` if the file does not hold it.
    file: Option<(u64, u64)>,
    /// Whether the bytes are compressed.
    is_compressed: bool,
}

/// An ELF file: its headers, and a way to its sections.
pub(crate) struct Image {
    bytes: Bytes,
    segments: Vec<Segment>,
    sections: Vec<Section>,
}

impl Image {
    /// The kernel's own functions. Every process of this architecture has the same ones, so they
    /// are read from this process, which needs no permission.
    fn of_vdso() -> Option<Image> {
        let maps = parse(&std::fs::read("/proc/self/maps").ok()?);
        let own = maps.iter().find(|own| own.origin == Origin::Vdso)?;
        let length = own.range.end.checked_sub(own.range.start)?;
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        let memory = File::open("/proc/self/mem").ok()?;
        memory.read_exact_at(&mut bytes, own.range.start).ok()?;
        Image::parse(Bytes::Memory(bytes))
    }

    /// Reads the headers.
    fn parse(bytes: Bytes) -> Option<Image> {
        let (segments, sections) = match &bytes {
            Bytes::File(file) => headers(&ReadCache::new(file))?,
            Bytes::Memory(bytes) => headers(bytes.as_slice())?,
        };
        Some(Image {
            bytes,
            segments,
            sections,
        })
    }

    /// The address, before the image is moved, of the byte at an offset in the file.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        // A mapping starts at a page, and so may start before its segment does.
        let page = |offset: u64| offset & !0xfff;
        let holds =
            |segment: &&Segment| (page(segment.file.start)..segment.file.end).contains(&offset);
        // Where two segments share a page, the later one is the mapping's only if it starts first.
        let segment = self
            .segments
            .iter()
            .find(|segment| segment.file.contains(&offset))
            .or_else(|| self.segments.iter().find(holds))?;
        Some(
            segment
                .address
                .wrapping_add(offset)
                .wrapping_sub(segment.file.start),
        )
    }

    /// The section of a name.
    pub(crate) fn section(&self, name: &[u8]) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The sections.
    pub(crate) fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Reads a section, and decompresses it.
    pub(crate) fn data(&self, section: &Section) -> Option<Vec<u8>> {
        let (offset, length) = section.file?;
        if length > LARGEST_SECTION {
            return None;
        }
        let raw = match &self.bytes {
            Bytes::Memory(bytes) => {
                let start = usize::try_from(offset).ok()?;
                let end = start.checked_add(usize::try_from(length).ok()?)?;
                bytes.get(start..end)?.to_vec()
            }
            Bytes::File(file) => {
                // A length beyond the end of the file must not become an allocation.
                if offset.checked_add(length)? > file.metadata().ok()?.len() {
                    return None;
                }
                let mut raw = vec![0; usize::try_from(length).ok()?];
                file.read_exact_at(&mut raw, offset).ok()?;
                raw
            }
        };
        if section.is_compressed {
            decompress(&raw)
        } else {
            Some(raw)
        }
    }

    /// The identity of the build, by which debug information is found.
    fn build_id(&self) -> Option<Vec<u8>> {
        let note = self.data(self.section(b".note.gnu.build-id")?)?;
        let word = |at: usize| -> Option<usize> {
            let bytes = note.get(at..at.checked_add(4)?)?;
            usize::try_from(u32::from_le_bytes(bytes.try_into().ok()?)).ok()
        };
        // The name is `GNU` and its zero byte, which fills the four bytes.
        let length = word(4).filter(|length| *length <= 64)?;
        (word(0)? == 4).then(|| note.get(16..16 + length).map(<[u8]>::to_vec))?
    }
}

/// Reads the segments and sections of an ELF file.
fn headers<'data, R: ReadRef<'data>>(data: R) -> Option<(Vec<Segment>, Vec<Section>)> {
    let header = FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    if endian != Endianness::Little
        || header.phnum(endian, data).ok()? > MOST_HEADERS
        || header.shnum(endian, data).ok()? > MOST_HEADERS
    {
        return None;
    }
    let segments = header.program_headers(endian, data).ok()?;
    let segments = segments.iter().filter_map(|segment| {
        let start = segment.p_offset(endian);
        let is_loaded = segment.p_type(endian) == PT_LOAD;
        let end = start.checked_add(segment.p_filesz(endian))?;
        is_loaded.then(|| Segment {
            file: start..end,
            address: segment.p_vaddr(endian),
        })
    });
    let table = header.sections(endian, data).ok()?;
    let sections = table.iter().map(|section| {
        let address = section.sh_addr(endian);
        Section {
            name: table.section_name(endian, section).unwrap_or(b"").to_vec(),
            link: section.sh_link(endian),
            addresses: address..address.saturating_add(section.sh_size(endian)),
            file: section.file_range(endian),
            is_compressed: section.sh_flags(endian).contains(SHF_COMPRESSED),
        }
    });
    Some((segments.collect(), sections.collect()))
}

/// Decompresses a section, which starts with its format, padding, its full length and alignment.
fn decompress(raw: &[u8]) -> Option<Vec<u8>> {
    let format = u32::from_le_bytes(raw.get(..4)?.try_into().ok()?);
    let format = match format {
        1 => CompressionFormat::Zlib,
        2 => CompressionFormat::Zstandard,
        _ => return None,
    };
    let uncompressed_size = u64::from_le_bytes(raw.get(8..16)?.try_into().ok()?);
    if uncompressed_size > LARGEST_SECTION {
        return None;
    }
    let data = raw.get(24..)?;
    let compressed = CompressedData {
        format,
        data,
        uncompressed_size,
    };
    Some(compressed.decompress().ok()?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"\
00400000-00b6f000 r--p 00000000 fe:00 123                                /usr/bin/node
00b6f000-00b71000 r-xp 0076f000 fe:00 123                                /usr/bin/node
7f00-7f80 rwxp 00000000 00:00 0
7f80-8000 r-xp 00001000 08:01 7      /opt/my app/lib\\012x.so (deleted)
9000-a000 r-xp 00000000 00:00 0                          [vdso]
";

    #[test]
    fn only_executable_mappings_are_kept() {
        let mappings = parse(TEXT);
        assert_eq!(mappings.len(), 4);
        let Origin::File(node) = &mappings[3].origin else {
            panic!("{mappings:?}");
        };
        assert_eq!(node.path, Path::new("/usr/bin/node"));
        assert_eq!(mappings[3].file_offset(0xb6_f010), Some(0x76_f010));
        assert_eq!(mappings[0].origin, Origin::Anonymous);
        assert_eq!(mappings[2].origin, Origin::Vdso);
    }

    #[test]
    fn paths_have_spaces_line_feeds_and_ends() {
        let Origin::File(file) = &parse(TEXT)[1].origin else {
            panic!("not a file");
        };
        assert_eq!(file.path, Path::new("/opt/my app/lib\nx.so"));
        assert!(file.is_deleted);
    }

    #[test]
    fn broken_lines_are_skipped() {
        for text in [
            "",
            "x",
            "1-2",
            "2-1 r-xp 0 0:0 0",
            "1-2 r-x",
            "+1-2 r-xp 0 0:0 0 /x",
            "1-2 r-xp 0 0:0 x /x",
            "fffffffffffffffff-2 r-xp 0 0:0 0",
        ] {
            assert_eq!(parse(text.as_bytes()), [], "{text}");
        }
    }

    #[test]
    fn the_image_of_this_process_has_its_sections() {
        let maps = Maps::of(std::process::id()).expect("own mappings");
        let program = std::env::current_exe().expect("own path");
        let mapping = maps
            .iter()
            .find(|mapping| matches!(&mapping.origin, Origin::File(id) if id.path == program))
            .expect("own program");
        let image = maps.open(mapping).expect("own image");
        assert!(image.section(b".eh_frame").is_some());
        assert!(image.address_of(mapping.offset).is_some());
    }

    #[test]
    fn a_missing_process_is_named() {
        let Err(error) = Maps::of(u32::MAX) else {
            panic!("found");
        };
        assert_eq!(error.to_string(), "there is no process 4294967295");
    }
}
