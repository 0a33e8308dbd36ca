//! `cargo xtask swap`: programs that carry the original libuv inside run on ours.
//!
//! One C program, linked with the original's objects in many ways, prints which library its calls
//! get to, from its main thread, from another thread and from a child. Where ours cannot take the
//! original's place the program must run as it would alone, and `blacklight run` say why, in
//! one line.

use crate::compile::run_quietly;
use crate::original::Original;
use crate::{clients, library, selection, workspace};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

/// What a process that may not do what a check needs ends with.
const SKIPPED: i32 = 77;

/// Which checks to make.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Names of checks. All if none is named.
    names: Vec<String>,
    /// Only list the checks.
    #[arg(long)]
    list: bool,
}

/// What a check needs.
struct Kit {
    original: Original,
    /// Where programs are built.
    dir: PathBuf,
    /// Our library and the swap.
    lib: PathBuf,
    /// The `blacklight` command.
    command: PathBuf,
}

/// What has a program start with the library and the swap in `lib`.
pub(crate) fn environment(lib: &Path) -> [(&'static str, String); 2] {
    let library = lib.join("libuv.so.1").display().to_string();
    let swap = lib.join(library::SWAP).display().to_string();
    [
        ("LD_PRELOAD", format!("{library}:{swap}")),
        ("BLACKLIGHT_SWAP", format!("library={library}")),
    ]
}

/// Makes sure that the library in `lib` takes the place of the one in a program.
pub(crate) fn ensure_it_works(program: &Path, lib: &Path) -> Result<()> {
    let [(preload, list), (name, settings)] = environment(lib);
    let output = Command::new(program)
        .env(preload, list)
        .env(name, format!("probe=1;{settings}"))
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let answer = String::from_utf8_lossy(&output.stdout);
    ensure!(
        answer.starts_with("way jumps"),
        "the swap does not work: {answer}"
    );
    Ok(())
}

type Check = fn(&Kit) -> Result<()>;

const CHECKS: [(&str, Check); 29] = [
    ("a_program_at_a_fixed_address", fixed_address),
    ("a_program_at_any_address", any_address),
    ("a_program_with_landing_pads", landing_pads),
    ("a_stripped_program", stripped),
    ("one_function_more", one_more),
    ("a_newer_version", newer),
    ("another_size", other_size),
    ("functions_without_room", without_room),
    ("link_time_optimisation", link_time_optimisation),
    ("another_compiler", other_compiler),
    ("the_tripwire", tripwire),
    ("require", require),
    ("only_this", only_this),
    ("a_child_with_the_same_build_id", same_build_id),
    ("report", report),
    ("a_script", script),
    ("another_preload", other_preload),
    ("a_preload_with_threads", threads),
    ("code_that_may_not_be_changed", forbidden),
    ("code_that_may_not_be_run_any_more", forbidden_late),
    ("a_module", module),
    ("a_module_that_calls_directly", direct_module),
    ("a_module_bound_to_itself", deepbound_module),
    ("a_module_with_one_function_more", newer_module),
    ("modules_that_threads_open_and_close", reopened_module),
    ("a_module_optimised_at_link_time", optimised_module),
    ("a_native_addon", addon),
    ("doctor", doctor),
    ("obstacles", obstacles),
];

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let all: Vec<&str> = CHECKS.iter().map(|(name, _)| *name).collect();
    let chosen = if options.names.is_empty() {
        all
    } else {
        selection::select(&all, &options.names)?
    };
    if options.list {
        chosen.iter().for_each(|name| println!("{name}"));
        return Ok(ExitCode::SUCCESS);
    }
    let kit = Kit {
        original: Original::obtain()?,
        dir: workspace::target_subdir("swap")?,
        lib: library::stage_ours()?,
        command: library::command("dev")?,
    };
    let mut failed = 0;
    for (name, check) in CHECKS.iter().filter(|(name, _)| chosen.contains(name)) {
        match check(&kit) {
            Ok(()) => println!("{name}: ok"),
            Err(error) => {
                println!(
                    "{name}: FAILED\n    {}",
                    format!("{error:#}").replace('\n', "\n    ")
                );
                failed += 1;
            }
        }
    }
    println!("{} passed, {failed} failed", chosen.len() - failed);
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

impl Kit {
    /// Links `sources` and the original, compiled in the way called `objects`, with `flags`.
    fn link(
        &self,
        name: &str,
        source: &str,
        objects: &[PathBuf],
        flags: &[&str],
    ) -> Result<PathBuf> {
        self.link_by("gcc", name, source, objects, flags)
    }

    /// As [`Kit::link`], with another compiler.
    fn link_by(
        &self,
        compiler: &str,
        name: &str,
        source: &str,
        objects: &[PathBuf],
        flags: &[&str],
    ) -> Result<PathBuf> {
        let program = self.dir.join(name);
        let mut command = Command::new(compiler);
        command
            .args(["-O2", "-Wall", "-Wextra", "-o"])
            .arg(&program)
            .arg(workspace::root().join("xtask/swap").join(source))
            .arg("-I")
            .arg(self.original.include_dir())
            .args(objects)
            .args(flags)
            .args(["-lpthread", "-ldl"]);
        run_quietly(command)?;
        Ok(program)
    }

    /// A program that carries the original as everybody builds it, and exports it.
    fn carrier(&self, name: &str, flags: &[&str]) -> Result<PathBuf> {
        let objects = self.original.objects("library", &["-O3"])?;
        self.link(
            name,
            "program.c",
            &objects,
            &[&["-rdynamic"], flags].concat(),
        )
    }

    /// A module that carries the original and exports it, and a program that opens it.
    fn module(&self, name: &str, flags: &[&str]) -> Result<(PathBuf, PathBuf)> {
        let objects = self.original.objects("library", &["-O3"])?;
        let shared = ["-shared", "-fPIC", "-Dmain=module_main"];
        let module = self.link(name, "program.c", &objects, &[&shared, flags].concat())?;
        Ok((self.link("host", "host.c", &[], &[])?, module))
    }

    /// `blacklight run`, on a poller by which our loops are told from the original's.
    fn run(&self, options: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command
            .arg("60")
            .arg(&self.command)
            .args(["run", "--poller", "poll", "--library"])
            .arg(&self.lib)
            .args(options)
            .arg("--")
            .env_remove("LD_PRELOAD");
        command
    }
}

/// What a program has written, with what `blacklight run` has said before.
struct Said {
    status: Option<i32>,
    program: String,
    lines: Vec<String>,
}

fn said(command: &mut Command) -> Result<Said> {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    let lines = String::from_utf8_lossy(&stderr);
    Ok(Said {
        status: status.code(),
        program: String::from_utf8_lossy(&stdout).into_owned(),
        lines: lines.lines().map(str::to_owned).collect(),
    })
}

impl Said {
    /// The program ended well, got to these libraries, and one line was said that has `words` in it.
    fn is(&self, libraries: &[&str], words: &str) -> Result<()> {
        self.got_to(libraries)?;
        self.said_only(words)
    }

    fn got_to(&self, libraries: &[&str]) -> Result<()> {
        ensure!(
            self.status == Some(0),
            "it ended with {:?}: {}",
            self.status,
            self.all()
        );
        let is_about_one = |line: &&str| !line.starts_with("timers ");
        let mut found: Vec<&str> = self.program.lines().filter(is_about_one).collect();
        found.sort_unstable();
        ensure!(
            found == libraries,
            "it got to {found:?}, not {libraries:?}: {}",
            self.all()
        );
        Ok(())
    }

    fn said_only(&self, words: &str) -> Result<()> {
        let [line] = &self.lines[..] else {
            bail!("more or less than one line was said: {}", self.all());
        };
        ensure!(
            line.starts_with("blacklight: ") && line.contains(words),
            "{words:?} was not said: {line}"
        );
        Ok(())
    }

    fn all(&self) -> String {
        format!("\n{}{}", self.program, self.lines.join("\n"))
    }
}

const OURS: [&str; 3] = ["child: ours", "main: ours", "thread: ours"];
const CARRIED: [&str; 3] = ["child: carried", "main: carried", "thread: carried"];

fn is_swapped(kit: &Kit, program: &Path) -> Result<()> {
    said(kit.run(&[]).arg(program))?.is(&OURS, "in place of the 1.53.0 inside it")
}

/// The program runs on its own library, and this is given as the reason.
fn is_left_alone(kit: &Kit, program: &Path, reason: &str) -> Result<()> {
    said(kit.run(&[]).arg(program))?.is(&CARRIED, &format!("{reason}; it runs as it is"))
}

fn fixed_address(kit: &Kit) -> Result<()> {
    is_swapped(kit, &kit.carrier("fixed", &["-no-pie", "-fno-pie"])?)
}

fn any_address(kit: &Kit) -> Result<()> {
    is_swapped(kit, &kit.carrier("any", &["-pie", "-fPIE"])?)
}

fn landing_pads(kit: &Kit) -> Result<()> {
    let pads = "-fcf-protection=full";
    let objects = kit.original.objects("landing-pads", &["-O2", pads])?;
    is_swapped(
        kit,
        &kit.link("pads", "program.c", &objects, &["-rdynamic", pads])?,
    )
}

fn stripped(kit: &Kit) -> Result<()> {
    is_swapped(kit, &kit.carrier("stripped", &["-s"])?)
}

fn one_more(kit: &Kit) -> Result<()> {
    let program = kit.carrier("one-more", &["-DONE_MORE"])?;
    is_left_alone(
        kit,
        &program,
        "its libuv has uv_from_the_future, which ours has not; it is newer than ours, or changed",
    )
}

fn newer(kit: &Kit) -> Result<()> {
    let program = kit.carrier("newer", &["-DNEWER", "-Wl,-z,muldefs"])?;
    is_left_alone(
        kit,
        &program,
        "its libuv is 1.54.0, and ours stands in for 1.44.0 to 1.53.0",
    )
}

fn other_size(kit: &Kit) -> Result<()> {
    let program = kit.carrier("other-size", &["-DOTHER_SIZE", "-Wl,-z,muldefs"])?;
    is_left_alone(
        kit,
        &program,
        "its libuv has another size for a loop than ours",
    )
}

fn without_room(kit: &Kit) -> Result<()> {
    let way = ["-Os", "-fno-align-functions"];
    let objects = kit.original.objects("without-room", &way)?;
    let program = kit.link("without-room", "program.c", &objects, &["-rdynamic"])?;
    is_left_alone(kit, &program, "is too short to be replaced")
}

/// Link-time optimisation copies functions to where they are called, whoever does it. What is left
/// in a stripped file must tell as well.
fn link_time_optimisation(kit: &Kit) -> Result<()> {
    workspace::require_tool("clang", "clang")?;
    workspace::require_tool("ld.lld", "lld")?;
    let ways: [(&str, &str, &[&str]); 3] = [
        ("optimised", "gcc", &["-flto=auto"]),
        ("optimised-clang", "clang", &["-flto", "-fuse-ld=lld"]),
        ("optimised-thin", "clang", &["-flto=thin", "-fuse-ld=lld"]),
    ];
    let reason = "link-time optimisation has copied parts of its libuv to where they are called";
    for (name, compiler, flags) in ways {
        let objects = kit
            .original
            .objects_by(compiler, name, &["-O2", flags[0]])?;
        for strip in [&[][..], &["-s"]] {
            let flags = [&["-rdynamic", "-O2"], flags, strip].concat();
            let program = kit.link_by(compiler, name, "program.c", &objects, &flags)?;
            is_left_alone(kit, &program, reason).with_context(|| format!("{name} {strip:?}"))?;
        }
    }
    Ok(())
}

/// The linker has put ours into its table, but not in the place of what was copied.
fn optimised_module(kit: &Kit) -> Result<()> {
    workspace::require_tool("clang", "clang")?;
    workspace::require_tool("ld.lld", "lld")?;
    let way = ["-O2", "-flto=thin"];
    let objects = kit.original.objects_by("clang", "optimised-thin", &way)?;
    let shared = ["-shared", "-fPIC", "-Dmain=module_main"];
    for strip in [&[][..], &["-s"]] {
        let flags = [&shared, &way[..], &["-fuse-ld=lld"], strip].concat();
        let module = kit.link_by("clang", "optimised.so", "program.c", &objects, &flags)?;
        let host = kit.link("host", "host.c", &[], &[])?;
        opens(kit, &(host, module), "module: carried", false)?;
    }
    Ok(())
}

/// What clang compiles file by file fits as what GCC does.
fn other_compiler(kit: &Kit) -> Result<()> {
    workspace::require_tool("clang", "clang")?;
    let objects = kit
        .original
        .objects_by("clang", "other-compiler", &["-O2"])?;
    for strip in [&[][..], &["-s"]] {
        let flags = [&["-rdynamic"], strip].concat();
        let program = kit.link_by("clang", "other", "program.c", &objects, &flags)?;
        is_swapped(kit, &program)?;
    }
    Ok(())
}

/// A program that gets into the carried library by another way than its functions ends there.
fn tripwire(kit: &Kit) -> Result<()> {
    let program = kit.carrier("internals", &["-DCALLS_INTERNALS"])?;
    let alone = said(&mut Command::new(&program))?;
    ensure!(
        alone.status == Some(0),
        "it does not run alone: {}",
        alone.all()
    );
    let said = said(kit.run(&[]).arg(&program))?;
    ensure!(
        said.status == Some(70),
        "it ended with {:?}: {}",
        said.status,
        said.all()
    );
    ensure!(
        said.lines.len() == 2 && said.lines[1].contains("has got into its own libuv"),
        "the tripwire's line is missing: {}",
        said.all()
    );
    Ok(())
}

fn require(kit: &Kit) -> Result<()> {
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

fn only_this(kit: &Kit) -> Result<()> {
    let program = kit.carrier("fixed", &["-no-pie", "-fno-pie"])?;
    let libraries = ["child: carried", "main: ours", "thread: ours"];
    said(kit.run(&["--only-this"]).arg(program))?.is(&libraries, "in place of the 1.53.0 inside it")
}

/// What is known of a program does not hold for a child with another layout, whatever its build ID.
fn same_build_id(kit: &Kit) -> Result<()> {
    let id = "-Wl,--build-id=0x5ca1ab1e";
    let program = kit.carrier("same-id", &[id])?;
    let other = kit.carrier("same-id-one-more", &[id, "-DONE_MORE"])?;
    let libraries = ["child: carried", "main: ours", "thread: ours"];
    let mut command = kit.run(&[]);
    command.arg(program).env("CHILD", other);
    said(&mut command)?.is(&libraries, "in place of the 1.53.0 inside it")
}

/// A file tells of children and modules that are left alone, since nothing else does.
fn report(kit: &Kit) -> Result<()> {
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
fn script(kit: &Kit) -> Result<()> {
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

/// What the user preloads is loaded all the same, and handed on by `--only-this`.
fn other_preload(kit: &Kit) -> Result<()> {
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
fn threads(kit: &Kit) -> Result<()> {
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

fn forbidden(kit: &Kit) -> Result<()> {
    forbids(kit, "writing")
}

/// The program's code has been changed when it turns out that it may not be run any more.
fn forbidden_late(kit: &Kit) -> Result<()> {
    forbids(kit, "restoring")
}

fn forbids(kit: &Kit, what: &str) -> Result<()> {
    let program = kit.carrier("fixed", &["-no-pie", "-fno-pie"])?;
    let forbid = kit.link("forbid", "forbid.c", &[], &[])?;
    // Without the trial, so that the program itself meets the policy.
    let [(preload, list), (name, settings)] = environment(&kit.lib);
    let mut direct = Command::new(&forbid);
    direct
        .arg(what)
        .arg(&program)
        .env(preload, list)
        .env(name, settings);
    direct.env("BLACKLIGHT_POLLER", "poll");
    let alone = said(&mut direct)?;
    if alone.status == Some(SKIPPED) {
        println!("this kernel cannot forbid {what}");
        return Ok(());
    }
    ensure!(
        alone.lines.is_empty(),
        "something was said: {}",
        alone.all()
    );
    alone.got_to(&CARRIED)?;
    let run = kit.run(&[]);
    let mut command = Command::new(forbid);
    command
        .arg(what)
        .arg(run.get_program())
        .args(run.get_args())
        .arg(program)
        .env_remove("LD_PRELOAD");
    let reason = "the system does not let its code be changed; it runs as it is";
    said(&mut command)?.is(&CARRIED, reason)
}

fn opens(kit: &Kit, module: &(PathBuf, PathBuf), library: &str, deepbind: bool) -> Result<()> {
    let (host, module) = module;
    let mut command = kit.run(&[]);
    command.arg(host).arg(module);
    if deepbind {
        command.env("DEEPBIND", "1");
    }
    said(&mut command)?.is(&[library], "does not load libuv itself")
}

fn module(kit: &Kit) -> Result<()> {
    opens(kit, &kit.module("module.so", &[])?, "module: ours", false)
}

fn direct_module(kit: &Kit) -> Result<()> {
    opens(
        kit,
        &kit.module("direct.so", &["-Wl,-Bsymbolic"])?,
        "module: ours",
        false,
    )
}

fn deepbound_module(kit: &Kit) -> Result<()> {
    opens(kit, &kit.module("module.so", &[])?, "module: ours", true)
}

/// The linker has given it ours, and it gets its own functions back.
fn newer_module(kit: &Kit) -> Result<()> {
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
fn reopened_module(kit: &Kit) -> Result<()> {
    for flags in [&[][..], &["-Wl,-Bsymbolic"], &["-DONE_MORE"]] {
        let (host, module) = kit.module("reopened.so", flags)?;
        let library = match flags {
            ["-DONE_MORE"] => "module: carried",
            _ => "module: ours",
        };
        let mut command = kit.run(&[]);
        command.arg(host).arg(module).env("REOPEN", "1");
        said(&mut command)?
            .is(&[library], "does not load libuv itself")
            .with_context(|| format!("{flags:?}"))?;
    }
    Ok(())
}

/// An addon of Node's own build uses the loops of the main thread and of a worker.
fn addon(kit: &Kit) -> Result<()> {
    let root = clients::official_node()?;
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

/// `blacklight doctor` says all of this of a file.
fn tells(kit: &Kit, file: &Path, lines: &[&str]) -> Result<()> {
    let mut command = Command::new(&kit.command);
    command
        .args(["doctor", "--library"])
        .arg(&kit.lib)
        .arg(file);
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

fn doctor(kit: &Kit) -> Result<()> {
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
    )
}

fn obstacles(kit: &Kit) -> Result<()> {
    let objects = kit.original.objects("library", &["-O3"])?;
    let carries = "carries a libuv inside and does not export its functions";
    tells(
        kit,
        &kit.link("hidden", "program.c", &objects, &[])?,
        &[carries],
    )?;
    tells(
        kit,
        &kit.link("hidden-stripped", "program.c", &objects, &["-s"])?,
        &[carries],
    )?;
    let program = kit.link("static", "program.c", &objects, &["-static", "-w"])?;
    tells(kit, &program, &["it is linked statically"])?;
    let musl = "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1";
    tells(
        kit,
        &kit.carrier("musl", &[musl])?,
        &["it is made for musl"],
    )?;
    let program = kit.carrier("set-uid", &[])?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755))?;
    tells(kit, &program, &["it is set-uid or set-gid"])?;
    let program = kit.carrier("capable", &[])?;
    workspace::require_tool("setcap", "libcap2-bin")?;
    let mut setcap = Command::new("setcap");
    setcap.arg("cap_net_bind_service=ep").arg(&program);
    run_quietly(setcap)?;
    tells(kit, &program, &["its file has capabilities"])?;
    let small = kit.dir.join("small");
    fs::write(&small, b"\x7fELF\x01\x01\x01").context("cannot write a file")?;
    tells(kit, &small, &["it is not made for x86-64"])
}
