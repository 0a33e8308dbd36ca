//! Programs that carry the original in all the ways in which it is compiled and linked.

use super::{
    CARRIED, Kit, SKIPPED, Said, environment, is_left_alone, is_swapped, said, stripped_copy,
};
use crate::target::Processor;
use crate::workspace;
use anyhow::{Context, Result, ensure};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;

pub(super) fn fixed_address(kit: &Kit) -> Result<()> {
    is_swapped(kit, &kit.carrier("fixed", &["-no-pie", "-fno-pie"])?)
}

pub(super) fn any_address(kit: &Kit) -> Result<()> {
    is_swapped(kit, &kit.carrier("any", &["-pie", "-fPIE"])?)
}

pub(super) fn landing_pads(kit: &Kit) -> Result<()> {
    let pads = match kit.processor() {
        Processor::Aarch64 => "-mbranch-protection=standard",
        _ => "-fcf-protection=full",
    };
    let objects = kit.original.objects("landing-pads", &["-O2", pads])?;
    is_swapped(
        kit,
        &kit.link("pads", "program.c", &objects, &["-rdynamic", pads])?,
    )
}

pub(super) fn stripped(kit: &Kit) -> Result<()> {
    is_swapped(kit, &kit.carrier("stripped", &["-s"])?)
}

pub(super) fn one_more(kit: &Kit) -> Result<()> {
    let program = kit.carrier("one-more", &["-DONE_MORE"])?;
    is_left_alone(
        kit,
        &program,
        "its libuv has uv_from_the_future, which ours has not; it is newer than ours, or changed",
    )
}

pub(super) fn newer(kit: &Kit) -> Result<()> {
    let program = kit.carrier("newer", &["-DNEWER", "-Wl,-z,muldefs"])?;
    is_left_alone(
        kit,
        &program,
        "its libuv is 1.54.0, and ours stands in for 1.44.0 to 1.53.0",
    )
}

pub(super) fn other_size(kit: &Kit) -> Result<()> {
    let program = kit.carrier("other-size", &["-DOTHER_SIZE", "-Wl,-z,muldefs"])?;
    is_left_alone(
        kit,
        &program,
        "its libuv has another size for a loop than ours",
    )
}

pub(super) fn without_room(kit: &Kit) -> Result<()> {
    let way = ["-Os", "-fno-align-functions"];
    let objects = kit.original.objects("without-room", &way)?;
    let program = kit.link("without-room", "program.c", &objects, &["-rdynamic"])?;
    match kit.processor() {
        // A jump is one instruction there, and every function has one.
        Processor::Aarch64 => is_swapped(kit, &program),
        _ => is_left_alone(kit, &program, "is too short to be replaced"),
    }
}

/// Link-time optimisation copies functions to where they are called, whoever does it. What is left
/// in a stripped file must tell as well.
pub(super) fn link_time_optimisation(kit: &Kit) -> Result<()> {
    workspace::require_tool("clang", "clang")?;
    workspace::require_tool("ld.lld", "lld")?;
    let ways: [(&str, &str, &[&str]); 3] = [
        ("optimised", kit.original.compiler(), &["-flto=auto"]),
        ("optimised-clang", "clang", &["-flto", "-fuse-ld=lld"]),
        ("optimised-thin", "clang", &["-flto=thin", "-fuse-ld=lld"]),
    ];
    let reason = "link-time optimisation has copied parts of its libuv to where they are called";
    let of_clang = kit.flags_of_clang();
    for (name, compiler, flags) in ways {
        let mut flags = flags.to_vec();
        if compiler == "clang" {
            flags.extend(of_clang.iter().map(String::as_str));
        }
        let way = [&["-O2"], &flags[..]].concat();
        let objects = kit.original.objects_by(compiler, name, &way)?;
        let flags = [&["-rdynamic", "-O2"], &flags[..]].concat();
        let program = kit.link_by(compiler, name, "program.c", &objects, &flags)?;
        for program in [&program, &stripped_copy(kit, &program)?] {
            is_left_alone(kit, program, reason)?;
        }
    }
    Ok(())
}

/// What clang compiles file by file fits as what GCC does.
pub(super) fn other_compiler(kit: &Kit) -> Result<()> {
    workspace::require_tool("clang", "clang")?;
    let of_clang = kit.flags_of_clang();
    let of_clang: Vec<&str> = of_clang.iter().map(String::as_str).collect();
    let way = [&["-O2"], &of_clang[..]].concat();
    let objects = kit.original.objects_by("clang", "other-compiler", &way)?;
    for strip in [&[][..], &["-s"]] {
        let linker = kit.target.map(|_| "-fuse-ld=lld");
        let linker: Vec<&str> = linker.into_iter().collect();
        let flags = [&["-rdynamic"], &of_clang[..], &linker, strip].concat();
        let program = kit.link_by("clang", "other", "program.c", &objects, &flags)?;
        is_swapped(kit, &program)?;
    }
    Ok(())
}

/// A linker that merges equal functions gives one of libuv's and one of the program's the same code.
pub(super) fn folded(kit: &Kit) -> Result<()> {
    workspace::require_tool("ld.lld", "lld")?;
    let sections = "-ffunction-sections";
    let objects = kit.original.objects("sections", &["-O2", sections])?;
    let flags = ["-rdynamic", sections, "-fuse-ld=lld", "-Wl,--icf=all"];
    let program = kit.link("folded", "program.c", &objects, &flags)?;
    for program in [&program, &stripped_copy(kit, &program)?] {
        is_left_alone(kit, program, "shares its code with another function")?;
    }
    Ok(())
}

/// Nothing of a program is called before it is known to carry a libuv.
pub(super) fn stubs(kit: &Kit) -> Result<()> {
    let program = kit.link("stubs", "stubs.c", &[], &["-rdynamic"])?;
    said(kit.run(&[]).arg(&program))?.is(&["ran"], "it runs as it is")?;
    let mut command = kit.run(&[]);
    command
        .args(["sh", "-c", "$STUBS; exit"])
        .env("STUBS", program);
    said(&mut command)?.is(&["ran"], "sh does not load libuv itself")
}

/// A program that gets into the carried library by another way than its functions ends there.
pub(super) fn tripwire(kit: &Kit) -> Result<()> {
    let program = kit.carrier("internals", &["-DCALLS_INTERNALS"])?;
    let alone = said(&mut kit.start(&program))?;
    ensure!(
        alone.status == Some(0),
        "it does not run alone: {}",
        alone.all()
    );
    // Each message is what one call has written: a line that takes several may be torn.
    let (ours, its) = UnixDatagram::pair().context("cannot make sockets")?;
    let mut command = kit.run(&[]);
    command
        .arg(&program)
        .stdout(Stdio::null())
        .stderr(OwnedFd::from(its));
    let status = command.status().context("cannot run it")?;
    ours.set_nonblocking(true)?;
    let mut written = Vec::new();
    let mut message = [0; 4096];
    while let Ok(length) = ours.recv(&mut message) {
        written.push(String::from_utf8_lossy(&message[..length]).into_owned());
    }
    ensure!(
        status.code() == Some(70),
        "it ended with {status}: {written:?}"
    );
    let is_line = |line: &String| line.starts_with("blacklight: ") && line.ends_with('\n');
    ensure!(
        written.len() == 2
            && written.iter().all(is_line)
            && written[1].contains("has got into its own libuv"),
        "the tripwire's line is missing or torn: {written:?}"
    );
    Ok(())
}

/// Old linkers make a table of another format.
pub(super) fn old_hash_table(kit: &Kit) -> Result<()> {
    is_swapped(kit, &kit.carrier("old-hash", &["-Wl,--hash-style=sysv"])?)
}

/// What is known of a program does not hold for a child with another layout, whatever its build ID.
pub(super) fn same_build_id(kit: &Kit) -> Result<()> {
    let id = "-Wl,--build-id=0x5ca1ab1e";
    let program = kit.carrier("same-id", &[id])?;
    let other = kit.carrier("same-id-one-more", &[id, "-DONE_MORE"])?;
    let libraries = ["child: carried", "main: ours", "thread: ours"];
    let mut command = kit.run(&[]);
    command.arg(program).env("CHILD", other);
    said(&mut command)?.is(&libraries, "in place of the 1.53.0 inside it")
}

/// What the user preloads is loaded all the same, and handed on by `--only-this`.
pub(super) fn other_preload(kit: &Kit) -> Result<()> {
    let program = kit.carrier("fixed", &["-no-pie", "-fno-pie"])?;
    let shared = ["-shared", "-fPIC"];
    let other = kit.link("other-preload.so", "preloaded.c", &[], &shared)?;
    for (options, child) in [(&[][..], "ours"), (&["--only-this"], "carried")] {
        let mut command = kit.run(options);
        command.arg(&program).env("LD_PRELOAD", &other);
        let child = format!("child: {child}");
        let libraries = [
            child.as_str(),
            "main: ours",
            "preloaded",
            "preloaded",
            "thread: ours",
        ];
        said(&mut command)?.is(&libraries, "in place of the 1.53.0 inside it")?;
    }
    Ok(())
}

/// Such a thread may be running code that would be changed.
pub(super) fn threads(kit: &Kit) -> Result<()> {
    let program = kit.carrier("fixed", &["-no-pie", "-fno-pie"])?;
    let other = kit.link(
        "threads.so",
        "preloaded.c",
        &[],
        &["-shared", "-fPIC", "-DTHREAD"],
    )?;
    let mut command = kit.run(&[]);
    command.arg(&program).env("LD_PRELOAD", &other);
    said(&mut command)?.is(
        &CARRIED,
        "has started threads in it already; it runs as it is",
    )
}

pub(super) fn forbidden(kit: &Kit) -> Result<()> {
    let [alone, run] = forbids(kit, "writing")?;
    is_restored(alone, run)
}

/// The program's code has been changed when it turns out that it may not be run any more.
pub(super) fn forbidden_late(kit: &Kit) -> Result<()> {
    let [alone, run] = forbids(kit, "restoring")?;
    is_restored(alone, run)
}

/// Nor may it be read from the file again: there is no code left that the program could run.
pub(super) fn forbidden_for_good(kit: &Kit) -> Result<()> {
    let [alone, run] = forbids(kit, "mapping")?;
    if let Some(alone) = alone {
        let is_ended = alone.status == Some(70) && alone.program.is_empty();
        ensure!(
            is_ended,
            "it ended with {:?}: {}",
            alone.status,
            alone.all()
        );
        alone.said_only("does not let it be restored")?;
    }
    // It is tried first, unless it is known already.
    let reason = "the system lets its code be changed and not restored; it runs as it is";
    run.map_or(Ok(()), |run| run.is(&CARRIED, reason))
}

fn is_restored(alone: Option<Said>, run: Option<Said>) -> Result<()> {
    if let Some(alone) = alone {
        ensure!(
            alone.lines.is_empty(),
            "something was said: {}",
            alone.all()
        );
        alone.got_to(&CARRIED)?;
    }
    let reason = "the system does not let its code be changed; it runs as it is";
    run.map_or(Ok(()), |run| run.is(&CARRIED, reason))
}

/// What a program says under a policy: preloaded without `blacklight run`, so that nothing tries it
/// before, and with it. Nothing if the kernel knows no such policy.
fn forbids(kit: &Kit, what: &str) -> Result<[Option<Said>; 2]> {
    let program = kit.carrier("forbidden", &["-no-pie", "-fno-pie"])?;
    let forbid = kit.link("forbid", "forbid.c", &[], &[])?;
    let [(preload, list), (name, settings)] = environment(&kit.lib);
    let mut direct = kit.start(&forbid);
    direct
        .arg(what)
        .arg(&program)
        .env(preload, list)
        .env(name, settings);
    direct.env("BLACKLIGHT_POLLER", "poll");
    let alone = said(&mut direct)?;
    if alone.status == Some(SKIPPED) {
        println!("this kernel cannot forbid {what}");
        return Ok([None, None]);
    }
    let run = kit.run(&[]);
    let mut command = kit.start(forbid);
    command
        .arg(what)
        .arg(run.get_program())
        .args(run.get_args())
        .arg(program)
        .env_remove("LD_PRELOAD")
        .env("XDG_CACHE_HOME", kit.dir.join("cache"));
    Ok([Some(alone), Some(said(&mut command)?)])
}
