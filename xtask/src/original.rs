//! The original: libuv as shipped inside the Cargo package `libuv-sys2`, downloaded like any
//! dependency and compiled here as the library to compare with.
//!
//! The package is named by a manifest outside the workspace, so it is neither a dependency of
//! ours nor in our lock file, and its build script never runs. Everything made from it lies in
//! `target/original`. The runners of its tests and benchmarks are linked with the original for
//! their symbols, but find `libuv.so.1` when they start, and bind each function when it is
//! first called: a library that lacks a function fails the tests that call it, not the others.

use crate::compile::{self, Objects};
use crate::sandbox::init::REPORTS;
use crate::sanitize::Sanitizer;
use crate::target::Target;
use crate::workspace;
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

const PACKAGE: &str = "libuv-sys2";
const VERSION: &str = "1.53.1";

/// The translation units of libuv on Linux, below its `src`.
const SOURCES: [&str; 35] = [
    "fs-poll",
    "idna",
    "inet",
    "random",
    "strscpy",
    "strtok",
    "thread-common",
    "threadpool",
    "timer",
    "uv-common",
    "uv-data-getter-setters",
    "version",
    "unix/async",
    "unix/core",
    "unix/dl",
    "unix/fs",
    "unix/getaddrinfo",
    "unix/getnameinfo",
    "unix/linux",
    "unix/loop",
    "unix/loop-watcher",
    "unix/pipe",
    "unix/poll",
    "unix/process",
    "unix/procfs-exepath",
    "unix/proctitle",
    "unix/random-devurandom",
    "unix/random-getrandom",
    "unix/random-sysctl-linux",
    "unix/signal",
    "unix/stream",
    "unix/tcp",
    "unix/thread",
    "unix/tty",
    "unix/udp",
];

/// What the test runner and the benchmark runner have in common, below `test`.
const RUNNER_SOURCES: [&str; 4] = ["runner", "runner-unix", "blackhole-server", "echo-server"];

/// Test files that include files of libuv's `src`, which in turn want headers beyond the
/// public ones.
const INCLUDES_INTERNALS: [&str; 4] = [
    "test-idna",
    "test-strscpy",
    "test-strtok",
    "test-thread-name",
];

const DEFINES: [&str; 4] = [
    "-D_FILE_OFFSET_BITS=64",
    "-D_LARGEFILE_SOURCE",
    "-D_GNU_SOURCE",
    "-D_POSIX_C_SOURCE=200112",
];

const SYSTEM_LIBRARIES: [&str; 4] = ["-lpthread", "-ldl", "-lrt", "-lm"];

/// Whose `uv.h` the runners are compiled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Header {
    /// The header in `crates/uv/include`.
    Ours,
    /// The header that comes with libuv.
    Original,
}

impl fmt::Display for Header {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Header::Ours => "ours",
            Header::Original => "original",
        })
    }
}

/// How a runner gets to the library.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Linkage {
    /// It loads one when it starts.
    Shared,
    /// It has the original inside and exports its functions.
    Inside,
}

/// The original's sources and what is built from them.
pub(crate) struct Original {
    /// The directory `libuv` of the package.
    root: PathBuf,
    /// `target/original`, or the directory in it of the target to build for.
    build: PathBuf,
    /// What to build for, if not for this machine.
    target: Option<Target>,
    /// The C compiler that builds for it.
    compiler: String,
}

impl Original {
    /// Downloads the package if this machine does not have it yet.
    pub(crate) fn obtain() -> Result<Original> {
        Original::obtain_for(None)
    }

    /// As [`Original::obtain`]; everything is built for a target.
    pub(crate) fn obtain_for(target: Option<Target>) -> Result<Original> {
        let build = workspace::target_subdir("original")?;
        let _guard = compile::lock(&build)?;
        let manifest = write_manifest(&build.join("package"))?;
        let metadata = workspace::cargo_metadata(&manifest, &["--quiet", "--offline"])
            .or_else(|_| workspace::cargo_metadata(&manifest, &["--quiet"]))
            .with_context(|| format!("cannot obtain {PACKAGE} {VERSION}"))?;
        let packages = metadata["packages"]
            .as_array()
            .context("cargo metadata lists no packages")?;
        let package = packages
            .iter()
            .find(|package| package["name"] == PACKAGE)
            .with_context(|| format!("cargo metadata does not know {PACKAGE}"))?;
        let manifest = package["manifest_path"]
            .as_str()
            .context("a package without a manifest")?;
        let root = Path::new(manifest).with_file_name("libuv");
        ensure!(
            root.join("include/uv.h").exists(),
            "there is no libuv in {}",
            root.display()
        );
        let (build, compiler) = match target {
            None => (build, "gcc".to_owned()),
            Some(target) => (build.join(target.triple()), target.compiler()?),
        };
        fs::create_dir_all(&build).with_context(|| format!("cannot make {}", build.display()))?;
        Ok(Original {
            root,
            build,
            target,
            compiler,
        })
    }

    /// What everything is built for, if not for this machine.
    pub(crate) fn target(&self) -> Option<Target> {
        self.target
    }

    /// The C compiler that builds for the target, or for this machine.
    pub(crate) fn compiler(&self) -> &str {
        &self.compiler
    }

    /// The public headers of the original.
    pub(crate) fn include_dir(&self) -> PathBuf {
        self.root.join("include")
    }

    /// The files that tests expect in `test/fixtures`.
    pub(crate) fn fixtures(&self) -> PathBuf {
        self.root.join("test/fixtures")
    }

    /// Builds the shared library as CMake's release build does; returns the path of `libuv.so.1`.
    pub(crate) fn library(&self) -> Result<PathBuf> {
        let _guard = compile::lock(&self.build)?;
        self.library_locked()
    }

    /// Compiles the library in a way of its own, for programs that carry it inside.
    pub(crate) fn objects(&self, name: &str, way: &[&str]) -> Result<Vec<PathBuf>> {
        self.objects_by(&self.compiler, name, way)
    }

    /// As [`Original::objects`], with another compiler.
    pub(crate) fn objects_by(
        &self,
        compiler: &str,
        name: &str,
        way: &[&str],
    ) -> Result<Vec<PathBuf>> {
        let _guard = compile::lock(&self.build)?;
        self.objects_locked(compiler, name, way)
    }

    fn objects_locked(&self, compiler: &str, name: &str, way: &[&str]) -> Result<Vec<PathBuf>> {
        let source = self.root.join("src");
        let mut flags = strings(&["-std=gnu11"]);
        flags.extend(strings(way));
        flags.extend(strings(&["-DNDEBUG", "-fPIC", "-fvisibility=hidden"]));
        flags.extend(strings(&[
            "-fno-strict-aliasing",
            "-w",
            "-DBUILDING_UV_SHARED=1",
        ]));
        flags.extend(strings(&DEFINES));
        flags.push(include(&self.include_dir()));
        flags.push(include(&source));
        Objects {
            label: "the original library",
            compiler,
            dir: self.build.join("objects").join(name),
            flags,
            headers: Vec::new(),
            sources: SOURCES
                .iter()
                .map(|name| source.join(format!("{name}.c")))
                .collect(),
        }
        .build()
    }

    fn library_locked(&self) -> Result<PathBuf> {
        let objects = self.objects_locked(&self.compiler, "library", &["-O3"])?;
        let dir = self.build.join("lib");
        fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let library = dir.join("libuv.so.1");
        let mut flags = strings(&["-shared", "-Wl,-soname,libuv.so.1"]);
        flags.extend(strings(&SYSTEM_LIBRARIES));
        compile::link(&self.compiler, &library, &objects, &flags)?;
        let development_name = dir.join("libuv.so");
        if !development_name.exists() {
            std::os::unix::fs::symlink("libuv.so.1", &development_name)
                .with_context(|| format!("cannot link {}", development_name.display()))?;
        }
        Ok(library)
    }

    /// Builds the runner of libuv's test suite against a header, and for a sanitizer if one is
    /// given.
    pub(crate) fn test_runner(
        &self,
        header: Header,
        sanitizer: Option<Sanitizer>,
    ) -> Result<PathBuf> {
        let files = self.files_called("test-")?;
        self.runner("run-tests", header, &files, sanitizer, Linkage::Shared)
    }

    /// Builds the runner of libuv's test suite with the original inside, whose functions it exports.
    pub(crate) fn carrying_test_runner(&self, header: Header) -> Result<PathBuf> {
        let files = self.files_called("test-")?;
        self.runner("run-tests", header, &files, None, Linkage::Inside)
    }

    /// Builds the runner of libuv's benchmarks against the original's header.
    pub(crate) fn benchmark_runner(&self) -> Result<PathBuf> {
        self.runner(
            "run-benchmarks",
            Header::Original,
            &self.files_called("benchmark-")?,
            None,
            Linkage::Shared,
        )
    }

    /// The C files in `test` whose names begin with `prefix`, without their endings, in order.
    fn files_called(&self, prefix: &str) -> Result<Vec<String>> {
        let dir = self.root.join("test");
        let entries =
            fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))?;
        let mut stems = Vec::new();
        for entry in entries {
            let name = entry?.file_name().to_string_lossy().into_owned();
            stems.extend(
                name.strip_suffix(".c")
                    .filter(|stem| stem.starts_with(prefix))
                    .map(str::to_owned),
            );
        }
        stems.sort();
        Ok(stems)
    }

    fn runner(
        &self,
        name: &str,
        header: Header,
        sources: &[String],
        sanitizer: Option<Sanitizer>,
        linkage: Linkage,
    ) -> Result<PathBuf> {
        let _guard = compile::lock(&self.build)?;
        let build = match sanitizer {
            Some(sanitizer) => &self.build.join(sanitizer.to_string()),
            None => &self.build,
        };
        let variant = format!("{name}-{header}");
        let instrument = sanitizer.map(|sanitizer| format!("-fsanitize={sanitizer}"));
        let (internal, public): (Vec<&str>, Vec<&str>) = sources
            .iter()
            .map(String::as_str)
            .chain(RUNNER_SOURCES)
            .chain([name])
            .partition(|source| INCLUDES_INTERNALS.contains(source));
        let compile = |kind: &str, mut flags: Vec<String>, sources: &[&str]| {
            flags.extend(instrument.clone());
            Objects {
                label: &format!("{name} with the header of {header}"),
                compiler: &self.compiler,
                dir: build.join("objects").join(&variant).join(kind),
                flags,
                headers: vec![self.header_dir(header)],
                sources: sources
                    .iter()
                    .map(|source| self.root.join(format!("test/{source}.c")))
                    .collect(),
            }
            .build()
        };
        let mut objects = compile("public", self.runner_flags(header), &public)?;
        let mut flags = self.runner_flags(header);
        flags.push(include(&self.root.join("src")));
        flags.push(format!("-idirafter{}", self.include_dir().display()));
        objects.extend(compile("internal", flags, &internal)?);
        let mut dir = build.join("bin").join(header.to_string());
        match linkage {
            Linkage::Shared => objects.push(self.library_locked()?),
            Linkage::Inside => {
                objects.splice(
                    0..0,
                    self.objects_locked(&self.compiler, "library", &["-O3"])?,
                );
                dir.set_file_name(format!("{header}-inside"));
            }
        }
        fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let runner = dir.join(name);
        // The run path serves tests that start themselves with an empty environment.
        let mut flags = strings(&["-Wl,-z,lazy", "-Wl,--enable-new-dtags"]);
        flags.push(self.position().replacen("-f", "-", 1));
        flags.extend(strings(&["-Wl,-rpath,$ORIGIN/../lib", "-lutil"]));
        if let Some(target) = self.target {
            flags.extend(target.program_flags());
        }
        if linkage == Linkage::Inside {
            // Some tests bring copies of internal functions along.
            flags.extend(strings(&["-rdynamic", "-Wl,-z,muldefs"]));
        }
        if let Some(sanitizer) = sanitizer {
            objects.push(sanitizer_defaults(build, sanitizer)?);
            flags.extend(whole_runtime(sanitizer)?);
        }
        flags.extend(strings(&SYSTEM_LIBRARIES));
        compile::link(&self.compiler, &runner, &objects, &flags)?;
        Ok(runner)
    }

    /// The flag that decides whether runners have a fixed address. Zig cannot link such programs
    /// for musl: they and the library would each have an `environ`.
    fn position(&self) -> &'static str {
        match self.target.is_some_and(Target::is_musl) {
            true => "-fpie",
            false => "-fno-pie",
        }
    }

    fn header_dir(&self, header: Header) -> PathBuf {
        match header {
            Header::Ours => workspace::include_dir(),
            Header::Original => self.include_dir(),
        }
    }

    /// Hidden visibility keeps the copies of internals that some tests compile in from
    /// taking the place of the library's own functions. In an executable with a fixed address even a
    /// function whose address is taken is bound when it is first called.
    fn runner_flags(&self, header: Header) -> Vec<String> {
        let mut flags = strings(&["-std=gnu11", "-O2", "-g1", "-fvisibility=hidden"]);
        flags.push(self.position().to_owned());
        flags.extend(strings(&[
            "-fno-strict-aliasing",
            "-w",
            "-DUSING_UV_SHARED=1",
        ]));
        flags.extend(strings(&DEFINES));
        flags.push(include(&self.header_dir(header)));
        // Failed assertions name their file as `test/…`.
        flags.push(format!("-fmacro-prefix-map={}/=", self.root.display()));
        flags
    }
}

/// Compiles what the runner tells the sanitizer's runtime: in the program itself it also reaches
/// tests that start themselves without an environment.
fn sanitizer_defaults(build: &Path, sanitizer: Sanitizer) -> Result<PathBuf> {
    let source = format!("xtask/conformance/{sanitizer}-sanitizer.c");
    let mut objects = Objects {
        label: "the sanitizer's defaults",
        compiler: "gcc",
        dir: build.join("objects/defaults"),
        flags: vec![format!("-DREPORTS=\"{REPORTS}\"")],
        headers: Vec::new(),
        sources: vec![workspace::root().join(source)],
    }
    .build()?;
    objects.pop().context("one source and no object")
}

/// The flags that link the runtime of the compiler that builds our library, for the library to
/// find in the program: all of it, since no object calls the interceptors.
fn whole_runtime(sanitizer: Sanitizer) -> Result<Vec<String>> {
    let runtime = sanitizer.runtime()?;
    Ok(vec![
        "-Wl,--export-dynamic".to_owned(),
        format!(
            "-Wl,--whole-archive,{},--no-whole-archive",
            runtime.display()
        ),
        "-lresolv".to_owned(),
    ])
}

/// Writes the manifest of a package whose only purpose is to depend on the original.
fn write_manifest(dir: &Path) -> Result<PathBuf> {
    let manifest = dir.join("Cargo.toml");
    let text = format!(
        "[package]\nname = \"original\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [lib]\npath = \"lib.rs\"\n\n[dependencies]\n{PACKAGE} = \"={VERSION}\"\n\n[workspace]\n"
    );
    if fs::read_to_string(&manifest).is_ok_and(|old| old == text) {
        return Ok(manifest);
    }
    fs::create_dir_all(dir)
        .and_then(|()| fs::write(dir.join("lib.rs"), ""))
        .and_then(|()| fs::write(&manifest, text))
        .with_context(|| format!("cannot write {}", manifest.display()))?;
    Ok(manifest)
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn include(dir: &Path) -> String {
    format!("-I{}", dir.display())
}
