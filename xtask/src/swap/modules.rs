//! Modules that carry the original, and addons of a program that does.

use super::{Kit, said, stripped_copy};
use crate::target::{Processor, Target};
use crate::{clients, workspace};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};

/// The linker has put ours into its table, but not in the place of what was copied.
pub(super) fn optimised_module(kit: &Kit) -> Result<()> {
    workspace::require_tool("clang", "clang")?;
    workspace::require_tool("ld.lld", "lld")?;
    let of_clang = kit.flags_of_clang();
    let of_clang: Vec<&str> = of_clang.iter().map(String::as_str).collect();
    let way = [&["-O2", "-flto=thin"], &of_clang[..]].concat();
    let objects = kit.original.objects_by("clang", "optimised-thin", &way)?;
    let shared = ["-shared", "-fPIC", "-Dmain=module_main"];
    let flags = [&shared, &way[..], &["-fuse-ld=lld"]].concat();
    let module = kit.link_by("clang", "optimised.so", "program.c", &objects, &flags)?;
    let host = kit.link("host", "host.c", &[], &[])?;
    for module in [stripped_copy(kit, &module)?, module] {
        opens(kit, &(host.clone(), module), "module: carried", false)?;
    }
    Ok(())
}

fn opens(kit: &Kit, module: &(PathBuf, PathBuf), library: &str, deepbind: bool) -> Result<()> {
    let ways: &[&str] = if deepbind { &["DEEPBIND"] } else { &[] };
    opens_by(kit, module, library, ways)
}

fn opens_by(kit: &Kit, module: &(PathBuf, PathBuf), library: &str, ways: &[&str]) -> Result<()> {
    let (host, module) = module;
    let mut command = kit.run(&[]);
    command.arg(host).arg(module);
    command.envs(ways.iter().map(|way| (*way, "1")));
    said(&mut command)?.is(&[library], "does not load libuv itself")
}

pub(super) fn module(kit: &Kit) -> Result<()> {
    opens(kit, &kit.module("module.so", &[])?, "module: ours", false)
}

pub(super) fn direct_module(kit: &Kit) -> Result<()> {
    opens(
        kit,
        &kit.module("direct.so", &["-Wl,-Bsymbolic"])?,
        "module: ours",
        false,
    )
}

/// The processor refuses to enter its code elsewhere than at landing pads, before the swap and after it.
pub(super) fn guarded_module(kit: &Kit) -> Result<()> {
    // What the compiler would add, and the start files, have no landing pads.
    let way = [
        "-O2",
        "-mbranch-protection=standard",
        "-mno-outline-atomics",
    ];
    let objects = kit.original.objects("guarded", &way)?;
    let shared = ["-shared", "-fPIC", "-Dmain=module_main", "-DGUARDED"];
    let linked = ["-nostartfiles", "-Wl,-Bsymbolic,-z,force-bti"];
    let flags = [&shared[..], &way, &linked].concat();
    let module = kit.link("guarded.so", "program.c", &objects, &flags)?;
    let host = kit.link("host", "host.c", &[], &[])?;
    let alone = said(kit.start(&host).arg(&module))?;
    alone.got_to(&["code: guarded", "module: carried"])?;
    let mut command = kit.run(&[]);
    command.arg(&host).arg(&module);
    said(&mut command)?.is(
        &["code: guarded", "module: ours"],
        "does not load libuv itself",
    )
}

/// It is there when the program starts, and so may be a thread that runs its code.
pub(super) fn linked_module(kit: &Kit) -> Result<()> {
    let linker = kit.target.and_then(Target::linker_flag);
    let linked_with = |module: &Path| {
        let path = module.display().to_string();
        let mut flags = vec!["-Wl,--no-as-needed", &path];
        flags.extend(linker.as_deref());
        kit.link("linked", "host.c", &[], &flags)
    };
    let (_, module) = kit.module("linked.so", &["-Wl,-Bsymbolic"])?;
    let host = linked_with(&module)?;
    let flags = ["-shared", "-fPIC", "-DTHREAD"];
    let threads = kit.link("threads.so", "preloaded.c", &[], &flags)?;
    let mut command = kit.run(&[]);
    command.arg(&host).arg(&module);
    said(&mut command)?.is(&["module: ours"], "does not load libuv itself")?;
    command.env("LD_PRELOAD", &threads);
    said(&mut command)?.is(&["module: carried"], "does not load libuv itself")?;
    // The linker has bound this one to ours, and its code stays as it is: it has no wire.
    let (_, module) = kit.module("linked-bound.so", &["-DCALLS_INTERNALS"])?;
    let host = linked_with(&module)?;
    let mut command = kit.run(&[]);
    command.arg(&host).arg(&module);
    for (threads, is_tripped) in [(None, true), (Some(threads), false)] {
        command.envs(threads.map(|threads| ("LD_PRELOAD", threads)));
        let said = said(&mut command)?;
        ensure!(
            said.program.starts_with("module: ours\n") && (said.status == Some(70)) == is_tripped,
            "it ended with {:?}: {}",
            said.status,
            said.all()
        );
    }
    Ok(())
}

pub(super) fn deepbound_module(kit: &Kit) -> Result<()> {
    opens(kit, &kit.module("module.so", &[])?, "module: ours", true)
}

/// When it is opened its linkage table leads to itself, whatever its calls will be bound to.
pub(super) fn lazy_module(kit: &Kit) -> Result<()> {
    for (flags, library) in [
        (&["-Wl,-z,lazy"][..], "module: ours"),
        (&["-Wl,-z,lazy", "-DONE_MORE"], "module: carried"),
    ] {
        let (host, module) = kit.module("lazy.so", flags)?;
        for module in [stripped_copy(kit, &module)?, module] {
            for ways in [&["LAZY"][..], &["LAZY", "DEEPBIND"]] {
                opens_by(kit, &(host.clone(), module.clone()), library, ways)?;
            }
        }
    }
    Ok(())
}

/// The linker has given it ours, and it gets its own functions back.
pub(super) fn newer_module(kit: &Kit) -> Result<()> {
    let relro = ["-DONE_MORE", "-Wl,-z,relro,-z,now"];
    opens(
        kit,
        &kit.module("newer.so", &["-DONE_MORE"])?,
        "module: carried",
        false,
    )?;
    opens(
        kit,
        &kit.module("newer-relro.so", &relro)?,
        "module: carried",
        false,
    )?;
    let direct = ["-DONE_MORE", "-Wl,-Bsymbolic"];
    opens(
        kit,
        &kit.module("newer-direct.so", &direct)?,
        "module: carried",
        false,
    )
}

/// Jumps are put into a module each time that it is opened, and no thread meets half of them.
pub(super) fn reopened_module(kit: &Kit) -> Result<()> {
    for flags in [&[][..], &["-Wl,-Bsymbolic"], &["-DONE_MORE"]] {
        let (host, module) = kit.module("reopened.so", flags)?;
        let library = match flags {
            ["-DONE_MORE"] => "module: carried",
            _ => "module: ours",
        };
        let file = kit.dir.join("reopened-report");
        fs::write(&file, "").context("cannot clear the report")?;
        let mut command = kit.run(&[&format!("--report={}", file.display())]);
        command.arg(host).arg(module).env("REOPEN", "1");
        said(&mut command)?
            .is(&[library], "does not load libuv itself")
            .with_context(|| format!("{flags:?}"))?;
        let report = fs::read_to_string(&file).context("there is no report")?;
        ensure!(report.lines().count() == 1, "it says again: {report}");
    }
    Ok(())
}

/// Where the linker would find the same file for us, a name is as good as a path. Where it depends
/// on the caller, the file that the caller means is opened, and left alone for ever: when it could be
/// examined it may be in use.
pub(super) fn by_name(kit: &Kit) -> Result<()> {
    let (host, direct) = kit.module("direct.so", &["-Wl,-Bsymbolic"])?;
    let (_, other) = kit.module("other-direct.so", &["-Wl,-Bsymbolic"])?;
    let dir = kit.dir.display().to_string();
    let said_of = |host: &Path, modules: &[&Path], libraries: &[&str]| {
        let mut command = kit.run(&[]);
        command.arg(host).args(modules).env("AGAIN", "1");
        command.env("LD_LIBRARY_PATH", &dir);
        said(&mut command)?.is(libraries, "does not load libuv itself")
    };
    let name = Path::new("direct.so");
    said_of(&host, &[name], &["module: ours", "module: ours"])?;
    let search = format!("-Wl,--enable-new-dtags,-rpath,{dir}");
    let host = kit.link("host-with-path", "host.c", &[], &[&search])?;
    let (carried, ours) = ("module: carried", "module: ours");
    said_of(&host, &[name, &other], &[carried, carried, ours, ours])?;
    said_of(&host, &[name, &direct], &[carried; 4])?;
    let own = Path::new("$ORIGIN/direct.so");
    said_of(&host, &[own, &other], &[carried, carried, ours, ours])
}

/// The linker has bound it to ours, and it gets into its own all the same.
pub(super) fn tripwire_in_module(kit: &Kit) -> Result<()> {
    let (host, module) = kit.module("internals.so", &["-DCALLS_INTERNALS"])?;
    let said = said(kit.run(&[]).arg(host).arg(module))?;
    let is_tripped = said
        .lines
        .last()
        .is_some_and(|line| line.contains("has got into its own libuv"));
    ensure!(
        said.status == Some(70) && is_tripped,
        "it ended with {:?}: {}",
        said.status,
        said.all()
    );
    Ok(())
}

/// A program that must run on ours does not run on with a module that does not.
pub(super) fn require_module(kit: &Kit) -> Result<()> {
    let (host, module) = kit.module("newer.so", &["-DONE_MORE"])?;
    let refused = said(kit.run(&["--require"]).arg(&host).arg(&module))?;
    let is_said = refused.lines.len() == 2 && refused.lines[1].contains("uv_from_the_future");
    ensure!(
        refused.status == Some(1) && refused.program.is_empty() && is_said,
        "it ended with {:?}: {}",
        refused.status,
        refused.all()
    );
    let (host, module) = kit.module("module.so", &[])?;
    let mut command = kit.run(&["--require"]);
    command.arg(host).arg(module);
    said(&mut command)?.is(&["module: ours"], "does not load libuv itself")
}

/// An addon of Node's own build uses the loops of the main thread and of a worker.
pub(super) fn addon(kit: &Kit) -> Result<()> {
    let root = match kit.processor() {
        Processor::Aarch64 => clients::official_node_for_arm()?,
        _ => clients::official_node()?,
    };
    let headers = format!("-I{}", root.join("include/node").display());
    let addon = kit.link(
        "addon.node",
        "addon.c",
        &[],
        &["-shared", "-fPIC", &headers],
    )?;
    let load = format!("require('{}').use()", addon.display());
    let worker = format!("new (require('worker_threads').Worker)(`{load}`, {{ eval: true }})");
    for program in [&load, &worker] {
        let mut command = kit.run(&["--require"]);
        command.arg(root.join("bin/node")).args(["-e", program]);
        said(&mut command)?.is(&["async", "ours", "timer", "work"], "in place of the 1.5")?;
    }
    Ok(())
}
