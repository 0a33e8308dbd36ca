//! `cargo xtask install`: our library where programs and build systems look for it.
//!
//! `libuv.so.1` with its links, `libuv.a`, the headers, what `pkg-config` and CMake's
//! `find_package` read, and the `blacklight` command with the swap. Those files find the installation from where they lie themselves, so
//! the directory can be moved as a whole.

use crate::platform::Platform;
use crate::{library, workspace};
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The version of libuv that ours takes the place of, and therefore says it is.
pub(crate) const VERSION: &str = "1.53.0";

/// The file behind the links; the number is that of the interface.
const REAL_NAME: &str = "libuv.so.1.0.0";

/// What a program that links `libuv.a` needs besides.
const STATIC_LIBRARIES: &str = "-lpthread -ldl -lrt -lm";

/// Where to install.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The directory that gets `lib`, `include` and the rest.
    #[arg(long)]
    prefix: PathBuf,
    /// The directory for libraries, below the prefix.
    #[arg(long, default_value = "lib")]
    libdir: PathBuf,
    /// Install below this directory what is to be used at the prefix, as packagers do.
    #[arg(long)]
    destdir: Option<PathBuf>,
}

/// The directories of an installation: where files go now, and where they will be used.
pub(crate) struct Layout {
    /// Where the prefix is while installing.
    pub(crate) root: PathBuf,
    /// The directory for libraries, below the prefix.
    pub(crate) libdir: PathBuf,
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let root = match &options.destdir {
        Some(destdir) => destdir.join(options.prefix.strip_prefix("/").unwrap_or(&options.prefix)),
        None => options.prefix.clone(),
    };
    let layout = Layout {
        root,
        libdir: options.libdir.clone(),
    };
    layout.install_what_is_built_here()?;
    println!(
        "installed libuv {VERSION} (Blacklight) in {}",
        layout.root.display()
    );
    Ok(ExitCode::SUCCESS)
}

impl Layout {
    /// The directory for libraries.
    pub(crate) fn lib(&self) -> PathBuf {
        self.root.join(&self.libdir)
    }

    /// Builds all for this machine and its C library, and puts it in place.
    pub(crate) fn install_what_is_built_here(&self) -> Result<()> {
        let command = library::command("release")?;
        self.install(Platform::this(), &library::stage_ours()?, &command)
    }

    /// Puts the libraries in `stage` and the command in place, with all that goes with them.
    pub(crate) fn install(&self, platform: &Platform, stage: &Path, command: &Path) -> Result<()> {
        let lib = self.lib();
        for dir in ["pkgconfig", "cmake/libuv"] {
            let dir = lib.join(dir);
            fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        }
        put(&stage.join("libuv.so.1"), &lib.join(REAL_NAME), 0o755)?;
        put(&stage.join("libuv.a"), &lib.join("libuv.a"), 0o644)?;
        if platform.has_swap() {
            put(&stage.join(library::SWAP), &lib.join(library::SWAP), 0o755)?;
        }
        let bin = self.root.join("bin");
        fs::create_dir_all(&bin).with_context(|| format!("cannot make {}", bin.display()))?;
        put(command, &bin.join("blacklight"), 0o755)?;
        link(REAL_NAME, &lib.join("libuv.so.1"))?;
        link("libuv.so.1", &lib.join("libuv.so"))?;
        put_tree(&workspace::include_dir(), &self.root.join("include"))?;
        write(&lib.join("pkgconfig/libuv.pc"), &self.pkg_config(false))?;
        write(
            &lib.join("pkgconfig/libuv-static.pc"),
            &self.pkg_config(true),
        )?;
        let cmake = lib.join("cmake/libuv");
        write(&cmake.join("libuvConfig.cmake"), &self.cmake_config())?;
        write(&cmake.join("libuvConfigVersion.cmake"), &cmake_version())
    }

    /// `${pcfiledir}` is `LIBDIR/pkgconfig`; this is the way from there to the prefix.
    fn way_up(&self) -> String {
        vec![".."; self.libdir.components().count() + 1].join("/")
    }

    fn pkg_config(&self, is_static: bool) -> String {
        let (name, libs) = if is_static {
            (
                "libuv-static",
                format!("${{libdir}}/libuv.a {STATIC_LIBRARIES}"),
            )
        } else {
            ("libuv", "-L${libdir} -luv".to_owned())
        };
        format!(
            "prefix=${{pcfiledir}}/{up}\n\
             libdir=${{prefix}}/{libdir}\n\
             includedir=${{prefix}}/include\n\n\
             Name: {name}\n\
             Description: libuv's event loop, rewritten in Rust (Blacklight)\n\
             Version: {VERSION}\n\
             Libs: {libs}\n\
             Libs.private: {STATIC_LIBRARIES}\n\
             Cflags: -I${{includedir}}\n",
            up = self.way_up(),
            libdir = self.libdir.display(),
        )
    }

    /// The targets have the names that libuv's own package gives them, `uv` and `uv_a` too,
    /// which older projects link.
    fn cmake_config(&self) -> String {
        let template = r#"# Finds Blacklight's libuv from where this file lies.
get_filename_component(_uv_prefix "${CMAKE_CURRENT_LIST_DIR}/@UP@" ABSOLUTE)

if(NOT TARGET libuv::uv)
  add_library(libuv::uv SHARED IMPORTED)
  set_target_properties(libuv::uv PROPERTIES
    IMPORTED_LOCATION "${_uv_prefix}/@LIBDIR@/@REAL_NAME@"
    IMPORTED_SONAME "libuv.so.1"
    INTERFACE_COMPILE_DEFINITIONS "USING_UV_SHARED=1"
    INTERFACE_INCLUDE_DIRECTORIES "${_uv_prefix}/include")
  add_library(libuv::uv_a STATIC IMPORTED)
  set_target_properties(libuv::uv_a PROPERTIES
    IMPORTED_LOCATION "${_uv_prefix}/@LIBDIR@/libuv.a"
    IMPORTED_LINK_INTERFACE_LANGUAGES "C"
    INTERFACE_LINK_LIBRARIES "pthread;dl;rt;m"
    INTERFACE_INCLUDE_DIRECTORIES "${_uv_prefix}/include")
endif()

unset(_uv_prefix)
"#;
        template
            .replace("@UP@", &self.way_up().replacen("..", "../..", 1))
            .replace("@LIBDIR@", &self.libdir.to_string_lossy())
            .replace("@REAL_NAME@", REAL_NAME)
    }
}

/// A project that asks for some 1.x is content with a later 1.x.
fn cmake_version() -> String {
    format!(
        r#"set(PACKAGE_VERSION "{VERSION}")
if(PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION
    OR NOT "${{PACKAGE_FIND_VERSION_MAJOR}}" MATCHES "^(1|0|)$")
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION STREQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
if(NOT CMAKE_SIZEOF_VOID_P STREQUAL "" AND NOT CMAKE_SIZEOF_VOID_P STREQUAL "8")
  set(PACKAGE_VERSION_UNSUITABLE TRUE)
endif()
"#
    )
}

fn put(from: &Path, to: &Path, mode: u32) -> Result<()> {
    workspace::copy_into_place(from, to)?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))
        .with_context(|| format!("cannot set the mode of {}", to.display()))
}

fn put_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            put_tree(&source, &target)?;
        } else {
            put(&source, &target, 0o644)?;
        }
    }
    Ok(())
}

/// Makes or replaces a symbolic link.
fn link(target: &str, name: &Path) -> Result<()> {
    if name.symlink_metadata().is_ok() {
        fs::remove_file(name).with_context(|| format!("cannot replace {}", name.display()))?;
    }
    symlink(target, name).with_context(|| format!("cannot link {}", name.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
