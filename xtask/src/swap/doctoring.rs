//! What `blacklight doctor` says.

use super::{Kit, said};
use crate::workspace;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;

/// `blacklight doctor` says all of this of a file.
fn tells(kit: &Kit, file: &Path, lines: &[&str]) -> Result<()> {
    tells_with_modules(kit, file, &kit.dir.join("no modules"), lines)
}

/// As [`tells`], where Python finds the modules of a directory.
fn tells_with_modules(kit: &Kit, file: &Path, modules: &Path, lines: &[&str]) -> Result<()> {
    let mut command = kit.start(&kit.command);
    command
        .env("PYTHONPATH", modules)
        .args(["doctor", "--library"])
        .arg(&kit.lib)
        .arg(file)
        // What the program would be given does not matter.
        .args(["app:app", "--reload"])
        .env("XDG_CACHE_HOME", kit.dir.join("cache"));
    let said = said(&mut command)?;
    for line in lines {
        ensure!(
            said.program.contains(line),
            "doctor does not say {line:?}: {}",
            said.all()
        );
    }
    Ok(())
}

pub(super) fn doctor(kit: &Kit) -> Result<()> {
    let inside = "carries a libuv 1.53.0 inside and exports 319 of its functions";
    let jumps = "its 319 functions would be replaced by jumps to ours";
    tells(
        kit,
        &kit.carrier("any", &["-pie", "-fPIE"])?,
        &[inside, jumps],
    )?;
    let reason = "it would run as it is: its libuv has uv_from_the_future";
    tells(kit, &kit.carrier("one-more", &["-DONE_MORE"])?, &[reason])?;
    let (_, module) = kit.module("module.so", &[])?;
    tells(
        kit,
        &module,
        &[inside, "through its linkage table", "has all of them"],
    )?;
    let (_, module) = kit.module("direct.so", &["-Wl,-Bsymbolic"])?;
    tells(
        kit,
        &module,
        &["it calls them directly; they would be replaced by jumps"],
    )?;
    let flags = ["-DNEWER", "-Wl,-z,muldefs,-Bsymbolic"];
    let (_, module) = kit.module("newer-version.so", &flags)?;
    let reason = "it would run as it is: ours stands in for 1.44.0 to 1.53.0";
    tells(kit, &module, &["carries a libuv 1.54.0", reason])?;
    if kit.target.is_some() {
        // Python is a program of this machine.
        return Ok(());
    }
    workspace::require_tool("python3", "python3")?;
    // It tells nothing of where its modules are.
    let silent = kit.dir.join("python3-silent");
    fs::copy("/bin/true", &silent).context("cannot copy a program")?;
    tells(kit, &silent, &["finds no module that uses one"])?;
    let python = Path::new("/usr/bin/python3");
    let modules = kit.dir.join("modules");
    let package = modules.join("package");
    fs::create_dir_all(&package).context("cannot make a directory")?;
    fs::write(package.join("__init__.py"), "").context("cannot write a file")?;
    let (_, module) = kit.module("imported.so", &[])?;
    // A library beside it is no module.
    for name in ["imported.so", "libimported.so"] {
        fs::copy(&module, package.join(name)).context("cannot copy a module")?;
    }
    let found = format!("{}/imported.so {inside}", package.display());
    tells_with_modules(
        kit,
        python,
        &modules,
        &["what it finds and may import", &found],
    )
}

/// Those that cannot be run here; [`super::starting`] runs the others.
pub(super) fn obstacles(kit: &Kit) -> Result<()> {
    let musl = "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1";
    tells(
        kit,
        &kit.carrier("musl", &[musl])?,
        &["it is made for musl"],
    )?;
    let small = kit.dir.join("small");
    fs::write(&small, b"\x7fELF\x01\x01\x01").context("cannot write a file")?;
    tells(kit, &small, &["it is not made for x86-64"])
}
