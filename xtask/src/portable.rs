//! The command, the library and the swap for systems older than this one, for packages that people
//! install wherever they are.
//!
//! Zig links them with the symbols of an old glibc. They need version 2.28 at most, as official
//! Node.js does and the wheels that most of PyPI has, and no other shared library; each build is
//! checked for that. For musl the command is static, and the library needs nothing but musl.

use crate::compile::run_quietly;
use crate::library::{self, SWAP};
use crate::platform::Platform;
use crate::target::{Processor, Purpose, Target};
use crate::workspace;
use anyhow::{Context, Result, ensure};
use object::Endianness;
use object::elf::{DT_NEEDED, PT_LOAD, STB_WEAK};
use object::read::elf::{ElfFile64, ProgramHeader, Sym};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The newest glibc whose symbols may be needed.
pub(crate) const GLIBC: [u32; 2] = [2, 28];

/// What links, and what has Cargo use it. PyPI has both, with all that they need inside.
const TOOLS: [&str; 2] = ["ziglang==0.17.0", "cargo-zigbuild==0.24.0"];

/// Where the files lie in an installation: the command finds the others by its own place.
const FILES: [&str; 3] = [
    "bin/blacklight",
    "lib/libuv.so.1",
    "lib/libblacklight_swap.so",
];

/// Where the archive lies, for those who link.
pub(crate) const ARCHIVE: &str = "lib/libuv.a";

/// The parts of a C library beside its dynamic linker, which are everywhere where it is. The first is musl's.
const SYSTEM: [&str; 6] = [
    "libc.so",
    "libc.so.6",
    "libdl.so.2",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
];

/// Functions that musl has had since later versions than 1.2.0 only.
const NEW_IN_MUSL: [&str; 8] = [
    "_Fork",
    "gettid",
    "preadv2",
    "pthread_getname_np",
    "pwritev2",
    "qsort_r",
    "reallocarray",
    "statx",
];

/// The files that there are for a platform. The swap is the last.
pub(crate) fn files(platform: &Platform) -> &'static [&'static str] {
    match platform.has_swap() {
        true => &FILES,
        false => &FILES[..2],
    }
}

/// Builds all, checks it, and lays [`files`] and the [`ARCHIVE`] out below the directory that it returns.
pub(crate) fn stage(platform: &Platform) -> Result<PathBuf> {
    let (built, archive) = match platform.target {
        None => built_here(&build()?),
        Some(target) if target.is_musl() => {
            let command = library::command_for(target)?;
            let lib = library::stage_for(target)?;
            (vec![command, lib.join("libuv.so.1")], lib.join("libuv.a"))
        }
        Some(target) => built_here(&build_for(target)?),
    };
    let stage = match platform.target {
        None => workspace::target_subdir("portable/stage")?,
        Some(target) => target.dir()?.join("portable"),
    };
    for (from, to) in built.iter().zip(files(platform)) {
        let to = stage.join(to);
        let dir = to.parent().context("a file without a directory")?;
        fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        workspace::copy_into_place(from, &to)?;
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755))
            .with_context(|| format!("cannot set the mode of {}", to.display()))?;
        Needs::read(&to)?
            .check(platform)
            .with_context(|| format!("{} is not for every system", to.display()))?;
    }
    workspace::copy_into_place(&archive, &stage.join(ARCHIVE))?;
    Ok(stage)
}

/// The paths of what is built, in the order of [`FILES`], and of the archive.
fn built_here(release: &Path) -> (Vec<PathBuf>, PathBuf) {
    let names = ["blacklight", "libuv.so", SWAP];
    let files = names.map(|name| release.join(name));
    (files.into(), release.join("libuv.a"))
}

/// As [`build`], for another machine with glibc.
fn build_for(target: Target) -> Result<PathBuf> {
    let mut command = target.cargo("build", Purpose::Portable)?;
    command
        .args(["--release", "--package", "blacklight-cli"])
        .args(["--package", "blacklight-uv"])
        .args(target.has_swap().then_some("--package=blacklight-swap"))
        .env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
    run_quietly(command)?;
    target.built(Purpose::Portable)
}

/// Has Cargo build with Zig; returns where the files are.
fn build() -> Result<PathBuf> {
    let tools = tools()?;
    let dir = workspace::target_subdir("portable")?;
    let triple = Platform::this().triple;
    let mut command = Command::new(tools.join("bin/cargo-zigbuild"));
    configure_zig(&mut command, &tools)?;
    command
        .args(["zigbuild", "--quiet", "--release", "--target"])
        .arg(format!("{triple}.{}.{}", GLIBC[0], GLIBC[1]))
        .args(["--package", "blacklight-cli", "--package", "blacklight-uv"])
        .args(["--package", "blacklight-swap", "--target-dir"])
        .arg(&dir)
        .arg("--config")
        .arg(remap_sources(triple, &[])?)
        .current_dir(workspace::root())
        .env("CARGO_PROFILE_RELEASE_DEBUG", "none")
        .env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
    run_quietly(command)?;
    Ok(dir.join(triple).join("release"))
}

/// Tells `cargo-zigbuild` where Zig is, and where both may keep what they make.
pub(crate) fn configure_zig(command: &mut Command, tools: &Path) -> Result<()> {
    let dir = workspace::target_subdir("portable")?;
    command
        .env("CARGO_ZIGBUILD_ZIG_PATH", tools.join("ziglang/zig"))
        .env("CARGO_ZIGBUILD_CACHE_DIR", dir.join("wrappers"))
        .env("ZIG_GLOBAL_CACHE_DIR", dir.join("zig"))
        .env("ZIG_LOCAL_CACHE_DIR", dir.join("zig"));
    Ok(())
}

/// Keeps the place of the packages that Cargo has downloaded, and of other sources with the names that they
/// are to have, out of the files, so that they are the same wherever they are built.
pub(crate) fn remap_sources(triple: &str, others: &[(&Path, &str)]) -> Result<OsString> {
    let cargo_home = match std::env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => PathBuf::from(std::env::var_os("HOME").context("there is no HOME")?).join(".cargo"),
    };
    let all = [&[(cargo_home.as_path(), "cargo")], others].concat();
    let flag = |(from, to): &(&Path, &str)| format!("--remap-path-prefix={}={to}", from.display());
    let flags: Vec<String> = all.iter().map(flag).collect();
    // Debug formatting quotes as TOML does.
    Ok(format!("target.{triple}.rustflags={flags:?}").into())
}

/// Has pip fetch the tools, once; returns where they lie.
pub(crate) fn tools() -> Result<PathBuf> {
    workspace::require_tool("pip", "python3-pip")?;
    let name = TOOLS.join("-").replace("==", "-");
    let dir = workspace::target_subdir("tools")?.join(name);
    if dir.exists() {
        return Ok(dir);
    }
    let draft = dir.with_extension(format!("draft-{}", std::process::id()));
    let mut pip = Command::new("/usr/bin/python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps"])
        .args(["--only-binary=:all:", "--target"])
        .arg(&draft)
        .args(TOOLS);
    run_quietly(pip)?;
    fs::rename(&draft, &dir).with_context(|| format!("cannot make {}", dir.display()))?;
    Ok(dir)
}

/// What a program or library needs of a system.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// The libraries that the dynamic linker is to load.
    libraries: BTreeSet<String>,
    /// The versions of symbols that those must have.
    versions: BTreeSet<String>,
    /// The functions without which the dynamic linker does not load it.
    functions: BTreeSet<String>,
    /// The largest pages that it can be loaded in: what its parts are aligned to.
    pages: u64,
}

impl Needs {
    pub(crate) fn read(path: &Path) -> Result<Needs> {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Needs::parse(&bytes).with_context(|| format!("cannot make out {}", path.display()))
    }

    fn parse(bytes: &[u8]) -> Result<Needs> {
        let file: ElfFile64<'_, Endianness> = ElfFile64::parse(bytes)?;
        let endian = file.endian();
        let parts = file.elf_program_headers().iter();
        let loaded = parts.filter(|part| part.p_type(endian) == PT_LOAD);
        let pages = loaded.map(|part| part.p_align(endian)).min();
        let mut needs = Needs {
            pages: pages.context("it has no parts to load")?,
            ..Needs::default()
        };
        let dynamic = file.elf_dynamic_table()?;
        for entry in dynamic.iter().filter(|entry| entry.tag == DT_NEEDED) {
            needs.libraries.insert(text(dynamic.string(entry)?));
        }
        let sections = file.elf_section_table();
        if let Some((mut files, names)) = sections.gnu_verneed(endian, bytes)? {
            let names = sections.strings(endian, bytes, names)?;
            while let Some((_, mut versions)) = files.next()? {
                while let Some(version) = versions.next()? {
                    needs.versions.insert(text(version.name(endian, names)?));
                }
            }
        }
        let symbols = file.elf_dynamic_symbol_table();
        for symbol in symbols.iter().skip(1) {
            if symbol.is_undefined(endian) && symbol.st_bind() != STB_WEAK {
                let name = text(symbol.name(endian, symbols.strings())?);
                needs.functions.insert(name);
            }
        }
        Ok(needs)
    }

    /// Fails for what a system with [`GLIBC`], or with musl, may not have, and for what does not fit its pages.
    pub(crate) fn check(&self, platform: &Platform) -> Result<()> {
        let largest = largest_page(platform);
        ensure!(
            self.pages >= largest,
            "its parts are aligned to {} bytes, and a page may have {largest}",
            self.pages
        );
        for library in &self.libraries {
            let is_linker = Path::new(platform.linker).ends_with(library);
            let is_there = is_linker || SYSTEM.contains(&library.as_str());
            ensure!(is_there, "it needs {library}");
        }
        for version in &self.versions {
            let number = version.strip_prefix("GLIBC_").and_then(numbers);
            let is_there = number.is_some_and(|number| number[..] <= GLIBC[..]);
            ensure!(is_there, "it needs {version}");
        }
        if platform.is_musl() {
            for function in NEW_IN_MUSL {
                let is_needed = self.functions.contains(function);
                ensure!(!is_needed, "it needs {function}, which musl 1.2.0 lacks");
            }
        }
        Ok(())
    }

    /// The oldest glibc that has every version of it that is needed.
    pub(crate) fn glibc(&self) -> Vec<u32> {
        let of_glibc = |version: &String| numbers(version.strip_prefix("GLIBC_")?);
        let newest = self.versions.iter().filter_map(of_glibc).max();
        newest.unwrap_or_default()
    }
}

/// The largest page that kernels for the processor may have been built for. The dynamic linker loads nothing whose
/// parts are aligned to less.
fn largest_page(platform: &Platform) -> u64 {
    match platform.target.map(Target::processor) {
        Some(Processor::Aarch64) => 64 * 1024,
        Some(Processor::X86_64 | Processor::Riscv64) | None => 4 * 1024,
    }
}

/// The numbers of a version; there are none in `GLIBC_PRIVATE`.
fn numbers(version: &str) -> Option<Vec<u32>> {
    version.split('.').map(|part| part.parse().ok()).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needing(versions: &[&str]) -> Needs {
        Needs {
            libraries: BTreeSet::from(["libc.so.6".to_owned()]),
            versions: versions.iter().map(|&version| version.into()).collect(),
            functions: BTreeSet::new(),
            pages: 4096,
        }
    }

    #[test]
    fn versions_are_compared_number_by_number() {
        let needs = needing(&["GLIBC_2.2.5", "GLIBC_2.28", "GLIBC_2.9"]);
        assert_eq!(needs.glibc(), [2, 28]);
        needs.check(Platform::this()).unwrap();
        for version in ["GLIBC_2.29", "GLIBC_3.0", "GLIBC_PRIVATE", "GCC_3.0"] {
            let needs = needing(&["GLIBC_2.2.5", version]);
            let error = needs.check(Platform::this()).unwrap_err();
            assert_eq!(error.to_string(), format!("it needs {version}"));
        }
    }

    #[test]
    fn what_an_old_musl_lacks_may_not_be_needed() {
        let mut needs = needing(&[]);
        needs.libraries = BTreeSet::from(["libc.so".to_owned()]);
        needs.functions = BTreeSet::from(["read".to_owned(), "statx".to_owned()]);
        needs.check(Platform::this()).unwrap();
        let musl = Platform::of(Some(Target::X86_64Musl));
        let error = needs.check(musl).unwrap_err();
        assert_eq!(error.to_string(), "it needs statx, which musl 1.2.0 lacks");
    }

    #[test]
    fn only_the_c_library_may_be_needed() {
        let mut needs = needing(&[]);
        needs.libraries.insert("libgcc_s.so.1".to_owned());
        assert_eq!(
            needs.check(Platform::this()).unwrap_err().to_string(),
            "it needs libgcc_s.so.1"
        );
    }

    #[test]
    fn parts_are_aligned_to_the_largest_pages() {
        let arm = Platform::of(Some(Target::Aarch64Gnu));
        let mut needs = needing(&[]);
        needs.check(Platform::this()).unwrap();
        assert_eq!(
            needs.check(arm).unwrap_err().to_string(),
            "its parts are aligned to 4096 bytes, and a page may have 65536"
        );
        needs.pages = 65536;
        needs.check(arm).unwrap();
    }

    #[test]
    fn needs_are_read_from_what_a_linker_has_made() {
        let dir = std::env::temp_dir().join(format!("blacklight-needs-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let link = |output: &str, source: &str, arguments: &[&str]| {
            fs::write(dir.join("library.c"), source).unwrap();
            let mut command = Command::new("gcc");
            command
                .current_dir(&dir)
                .args(["-shared", "-fPIC", "-nostdlib"]);
            command.args(["-o", output, "library.c"]).args(arguments);
            assert!(command.status().unwrap().success());
        };
        fs::write(dir.join("versions"), "GLIBC_2.99 { future; };").unwrap();
        let versioned = ["-Wl,-soname,libc.so.6", "-Wl,--version-script=versions"];
        link("provider.so", "int future(void) { return 0; }", &versioned);
        let source = "int future(void); int now(void) { return future(); }";
        link("needy.so", source, &["provider.so"]);
        let needs = Needs::read(&dir.join("needy.so"));
        fs::remove_dir_all(&dir).unwrap();
        let needs = needs.unwrap();
        let mut expected = needing(&["GLIBC_2.99"]);
        expected.functions.insert("future".to_owned());
        assert_eq!(needs, expected);
        assert_eq!(
            needs.check(Platform::this()).unwrap_err().to_string(),
            "it needs GLIBC_2.99"
        );
    }
}
