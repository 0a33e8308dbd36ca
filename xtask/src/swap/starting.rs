//! The ways in which people start programs, and what `blacklight run` says of them.

use super::{CARRIED, Kit, OURS, is_left_alone, is_swapped, said};
use crate::compile::run_quietly;
use crate::{library, workspace};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) fn require(kit: &Kit) -> Result<()> {
    let program = kit.carrier("one-more", &["-DONE_MORE"])?;
    let said = said(kit.run(&["--require"]).arg(&program))?;
    ensure!(
        said.status == Some(1),
        "it ended with {:?}: {}",
        said.status,
        said.all()
    );
    ensure!(said.program.is_empty(), "the program ran: {}", said.all());
    said.said_only("its libuv has uv_from_the_future")
}

pub(super) fn only_this(kit: &Kit) -> Result<()> {
    let program = kit.carrier("fixed", &["-no-pie", "-fno-pie"])?;
    let libraries = ["child: carried", "main: ours", "thread: ours"];
    said(kit.run(&["--only-this"]).arg(program))?.is(&libraries, "in place of the 1.53.0 inside it")
}

/// A program that becomes another one has been told of already.
pub(super) fn another_in_its_place(kit: &Kit) -> Result<()> {
    let program = kit.carrier("fixed", &["-no-pie", "-fno-pie"])?;
    let other = kit.carrier("any", &["-pie", "-fPIE"])?;
    let mut command = kit.run(&[]);
    command.arg(program).env("BECOME", other);
    said(&mut command)?.is(&OURS, "in place of the 1.53.0 inside it")
}

/// The inner of two takes the place of the outer, with a library of its own.
pub(super) fn run_inside_run(kit: &Kit) -> Result<()> {
    let program = kit.carrier("fixed", &["-no-pie", "-fno-pie"])?;
    let other = kit.dir.join("other-lib");
    fs::create_dir_all(&other).context("cannot make a directory")?;
    for file in ["libuv.so.1", library::SWAP] {
        fs::copy(kit.lib.join(file), other.join(file)).context("cannot copy our library")?;
    }
    let mut command = kit.run(&[]);
    command
        .arg(&kit.command)
        .args(["run", "--poller", "poll", "--library"])
        .arg(&other)
        .arg("--")
        .arg(program);
    let mut said = said(&mut command)?;
    ensure!(said.lines.len() == 2, "it said: {}", said.all());
    said.lines.remove(0);
    let place = format!(
        "{} with poll, in place of",
        other.join("libuv.so.1").display()
    );
    said.is(&OURS, &place)
}

/// What the children of a program that is left alone load is their own, too.
pub(super) fn children_left_alone(kit: &Kit) -> Result<()> {
    let program = kit.carrier("one-more", &["-DONE_MORE"])?;
    let child = kit.carrier("fixed", &["-no-pie", "-fno-pie"])?;
    let mut command = kit.run(&[]);
    command.arg(program).env("CHILD", child);
    said(&mut command)?.is(&CARRIED, "its libuv has uv_from_the_future")
}

/// A name that cannot be passed to the swap: the program is tried first.
pub(super) fn a_separator_in_the_name(kit: &Kit) -> Result<()> {
    let program = kit.carrier("fixed", &["-no-pie", "-fno-pie"])?;
    let other = program.with_file_name("fixed;library=x");
    fs::copy(&program, &other).with_context(|| format!("cannot copy {}", program.display()))?;
    is_swapped(kit, &other)
}

/// A file tells of children and modules that are left alone, since nothing else does.
pub(super) fn report(kit: &Kit) -> Result<()> {
    let file = kit.dir.join("report");
    fs::write(&file, "").context("cannot clear the report")?;
    let option = format!("--report={}", file.display());
    let program = kit.carrier("any", &["-pie", "-fPIE"])?;
    let other = kit.carrier("one-more", &["-DONE_MORE"])?;
    said(kit.run(&[&option]).arg(&program).env("CHILD", &other))?.got_to(&[
        "child: carried",
        "main: ours",
        "thread: ours",
    ])?;
    let (host, module) = kit.module("module.so", &[])?;
    said(kit.run(&[&option]).arg(host).arg(&module))?.got_to(&["module: ours"])?;
    let report = fs::read_to_string(&file).context("there is no report")?;
    let lines: Vec<&str> = report.lines().collect();
    let expected = [
        format!("{}: ours in place of 1.53.0", program.display()),
        format!(
            "{}: left alone: its libuv has uv_from_the_future",
            other.display()
        ),
        format!("{}: ours in place of 1.53.0", module.display()),
    ];
    let is_said = lines
        .iter()
        .zip(&expected)
        .all(|(line, words)| line.contains(words));
    ensure!(lines.len() == 3 && is_said, "the report says: {report}");
    Ok(())
}

/// `env` comes between, and passes everything on to the program that it becomes.
pub(super) fn script(kit: &Kit) -> Result<()> {
    let program = kit.carrier("fixed", &["-no-pie", "-fno-pie"])?;
    let dir = program.parent().context("a program without a directory")?;
    let script = dir.join("script");
    fs::write(&script, "#!/usr/bin/env fixed\n").context("cannot write the script")?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    let path = std::env::join_paths([dir, Path::new("/usr/bin"), Path::new("/bin")])?;
    let expected = format!("{}: ours", script.display());
    for options in [&[][..], &["--only-this"]] {
        let said = said(kit.run(options).arg(&script).env("PATH", &path))?;
        said.is(&[&expected], "in place of the 1.53.0 inside it")?;
    }
    Ok(())
}

fn write_script(kit: &Kit, name: &str, text: &str) -> Result<PathBuf> {
    let script = kit.dir.join(name);
    fs::write(&script, text).context("cannot write the script")?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    Ok(script)
}

/// What a script names may be a script itself, as version managers have it, and `env` has options.
pub(super) fn scripts_of_all_kinds(kit: &Kit) -> Result<()> {
    let program = kit.carrier("fixed", &["-no-pie", "-fno-pie"])?;
    let path = std::env::join_paths([&kit.dir, Path::new("/usr/bin"), Path::new("/bin")])?;
    let shim = format!("#!/bin/sh\nexec {} \"$@\"\n", program.display());
    write_script(kit, "shim", &shim)?;
    let cases = [
        (
            "by-shim",
            "#!/usr/bin/env shim\n",
            "ours",
            "is a script for /bin/sh",
        ),
        (
            "by-two",
            "#!/usr/bin/env by-shim\n",
            "ours",
            "is a script for /bin/sh",
        ),
        (
            "split",
            "#!/usr/bin/env -S FOO=1 fixed\n",
            "ours",
            "in place of the 1.53.0",
        ),
        (
            "cleared",
            "#!/usr/bin/env -iS PATH=@ fixed\n",
            "carried",
            "clears the environment",
        ),
    ];
    for (name, line, library, words) in cases {
        let line = line.replace('@', &kit.dir.display().to_string());
        let script = write_script(kit, name, &line)?;
        let said = said(kit.run(&[]).arg(&script).env("PATH", &path))?;
        // Each script is an argument of the next one.
        let expected = format!(": {library}");
        let is_on = said.program.lines().all(|line| line.ends_with(&expected));
        ensure!(
            said.status == Some(0) && is_on && !said.program.is_empty(),
            "{name}: {}",
            said.all()
        );
        said.said_only(words).with_context(|| name.to_owned())?;
    }
    let plain = write_script(kit, "plain", &format!("{}\n", program.display()))?;
    said(kit.run(&[]).arg(plain))?.is(&OURS, "is a script for /bin/sh")
}

/// Programs into which the linker preloads nothing, and programs that do not tell where their libuv is.
pub(super) fn nothing_is_preloaded(kit: &Kit) -> Result<()> {
    let objects = kit.original.objects("library", &["-O3"])?;
    for (name, flag) in [("static", "-static"), ("static-pie", "-static-pie")] {
        let program = kit.link(name, "program.c", &objects, &[flag, "-fPIE", "-w"])?;
        is_left_alone(kit, &program, "it is linked statically and loads no libuv")?;
    }
    for (name, flags) in [("hidden", &[][..]), ("hidden-stripped", &["-s"])] {
        let program = kit.link(name, "program.c", &objects, flags)?;
        is_left_alone(kit, &program, "does not export its functions")?;
    }
    let program = kit.carrier("set-uid", &[])?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755))?;
    is_left_alone(kit, &program, "nothing is preloaded into such a program")?;
    workspace::require_tool("setcap", "libcap2-bin")?;
    let program = kit.carrier("capable", &[])?;
    let mut setcap = Command::new("setcap");
    setcap.arg("cap_net_bind_service=ep").arg(&program);
    run_quietly(setcap)?;
    is_left_alone(kit, &program, "nothing is preloaded into such a program")
}

/// The linker takes a space and a colon for the end of a path, and a dollar sign for a variable.
pub(super) fn separators_in_the_path(kit: &Kit) -> Result<()> {
    let program = kit.carrier("any", &["-pie", "-fPIE"])?;
    let dir = kit.dir.join("a b:c $ORIGIN");
    let runtime = kit.dir.join("runtime");
    for dir in [&dir, &runtime] {
        fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    }
    fs::set_permissions(&runtime, fs::Permissions::from_mode(0o700))?;
    for (from, to) in [
        ("libuv.so.1", "libuv.so.1"),
        ("libuv.so.1", "lib uv.so.1"),
        (library::SWAP, library::SWAP),
    ] {
        workspace::copy_into_place(&kit.lib.join(from), &dir.join(to))?;
    }
    for place in [runtime, dir.clone()] {
        let mut command = kit.run_with(&dir, &[]);
        command.arg(&program).env("XDG_RUNTIME_DIR", place);
        said(&mut command)?.is(&OURS, "in place of the 1.53.0 inside it")?;
    }
    let mut command = kit.run_with(&dir.join("lib uv.so.1"), &[]);
    command.arg(&program);
    said(&mut command)?.is(
        &CARRIED,
        "has a space, a colon or a dollar sign in its path",
    )
}

/// The linker says why it does not load our library, and we what becomes of the program.
pub(super) fn our_library_is_broken(kit: &Kit) -> Result<()> {
    let program = kit.carrier("any", &["-pie", "-fPIE"])?;
    let dir = kit.dir.join("broken");
    fs::create_dir_all(&dir).context("cannot make a directory")?;
    fs::write(dir.join("libuv.so.1"), "no library").context("cannot write a file")?;
    workspace::copy_into_place(&kit.lib.join(library::SWAP), &dir.join(library::SWAP))?;
    let said = said(kit.run_with(&dir, &[]).arg(&program))?;
    said.got_to(&CARRIED)?;
    let reason = "our library cannot be loaded into it; it runs as it is";
    let is_said = said
        .lines
        .iter()
        .filter(|line| line.contains(reason))
        .count();
    ensure!(is_said == 1, "it is not said once: {}", said.all());
    Ok(())
}

/// What was found out about a program is kept for the next start, as long as its file and the swap
/// are the same.
pub(super) fn facts_are_kept(kit: &Kit) -> Result<()> {
    let cache = kit.dir.join("facts");
    if cache.exists() {
        fs::remove_dir_all(&cache).context("cannot clear the cache")?;
    }
    let program = kit.carrier("kept", &["-DCALLS_INTERNALS"])?;
    let status_with = |lib| {
        let mut command = kit.run_with(lib, &[]);
        command.arg(&program).env("XDG_CACHE_HOME", &cache);
        anyhow::Ok(said(&mut command)?.status)
    };
    let status = || status_with(&kit.lib);
    ensure!(status()? == Some(70), "the wire is not tripped");
    let entries = fs::read_dir(cache.join("blacklight")).context("nothing is kept")?;
    let files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let [file] = &files[..] else {
        anyhow::bail!("not one file is kept but {files:?}");
    };
    let mode = file.metadata()?.mode() & 0o777;
    ensure!(mode == 0o600, "others may look at it: {mode:o}");
    ensure!(status()? == Some(70), "the wire is not in the facts");
    // Facts without wires: that they are used shows in that none is tripped.
    let text = fs::read_to_string(file)?;
    let mut parts: Vec<&str> = text.split(':').collect();
    ensure!(parts.len() == 3, "these are no facts: {text}");
    parts[2] = "\n";
    fs::write(file, parts.join(":"))?;
    ensure!(status()? != Some(70), "the facts are not used");
    // Facts that another swap has found out.
    let other = kit.dir.join("other-swap");
    fs::create_dir_all(&other).context("cannot make a directory")?;
    for name in ["libuv.so.1", library::SWAP] {
        workspace::copy_into_place(&kit.lib.join(name), &other.join(name))?;
    }
    ensure!(
        status_with(&other)? == Some(70),
        "another swap's facts are used"
    );
    // Facts about functions that lie elsewhere are found out to be wrong.
    fs::write(file, text.replacen(parts[1], "1", 1))?;
    ensure!(status()? == Some(70), "wrong facts are used");
    // Facts about another file of the same name.
    fs::write(file, parts.join(":"))?;
    fs::File::options()
        .append(true)
        .open(&program)?
        .set_modified(std::time::UNIX_EPOCH)?;
    ensure!(status()? == Some(70), "facts about another file are used");
    Ok(())
}
