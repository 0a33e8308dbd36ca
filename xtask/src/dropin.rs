//! `cargo xtask dropin`: a program compiled and linked with another libuv runs on ours.
//!
//! One C program, built four ways: with the original's header and library, with Debian's
//! `libuv1-dev` of years ago, with our own header, and statically with our `libuv.a`. The
//! first two are then run twice without a rebuild: on the library they were linked with, to
//! show that the program is fair, and on ours. The examples in C are compiled and run too.

use crate::compile::run_quietly;
use crate::original::Original;
use crate::{library, workspace};
use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// What ours says that it is.
const OUR_VERSION: &str = "1.53.0";

/// How many seconds a program may take on a machine that is busy with other things.
const LIMIT: &str = "300";

/// A libuv to build with.
struct Kit {
    name: &'static str,
    include: PathBuf,
    /// The directory with its `libuv.so`.
    lib: PathBuf,
}

fn compile(kit: &Kit, dir: &Path) -> Result<PathBuf> {
    let program = dir.join(format!("program-{}", kit.name));
    let mut command = Command::new("gcc");
    command
        .args(["-O1", "-Wall", "-Wextra", "-D_GNU_SOURCE", "-o"])
        .arg(&program)
        .arg(workspace::root().join("xtask/dropin/program.c"))
        .arg("-I")
        .arg(&kit.include)
        .arg("-L")
        .arg(&kit.lib)
        .args(["-luv", "-lpthread"]);
    run_quietly(command)?;
    Ok(program)
}

/// Runs the program on a library and returns the version that it saw.
fn version_seen(program: &Path, lib: &Path) -> Result<String> {
    let output = Command::new("timeout")
        .arg(LIMIT)
        .arg(program)
        .env("LD_LIBRARY_PATH", lib)
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    ensure!(
        output.status.success(),
        "{} fails on {} ({}):\n{}",
        program.display(),
        lib.display(),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Debian's library and headers, unpacked below the target directory and not installed.
fn debian(dir: &Path) -> Result<Kit> {
    let root = dir.join("debian");
    let kit = Kit {
        name: "debian",
        include: root.join("usr/include"),
        lib: root.join("usr/lib/x86_64-linux-gnu"),
    };
    // Of two packages one may have been unpacked, and not the other.
    let files = [kit.include.join("uv.h"), kit.lib.join("libuv.so.1")];
    if files.iter().all(|file| file.exists()) {
        return Ok(kit);
    }
    std::fs::create_dir_all(&root).with_context(|| format!("cannot make {}", root.display()))?;
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(arguments).current_dir(&root);
        run_quietly(command)
    };
    let packages = ["libuv1-dev", "libuv1"];
    let download = ["download", packages[0], packages[1]];
    if apt(&download).is_err() {
        apt(&["update", "-qq"])?;
        apt(&download)?;
    }
    for package in std::fs::read_dir(&root)?
        .flatten()
        .map(|entry| entry.path())
    {
        if package
            .extension()
            .is_some_and(|extension| extension == "deb")
        {
            let mut command = Command::new("dpkg");
            command.arg("-x").arg(&package).arg(&root);
            run_quietly(command)?;
        }
    }
    Ok(kit)
}

/// Runs the chore.
pub(crate) fn run() -> Result<ExitCode> {
    let ours = library::stage_ours()?;
    let dir = workspace::target_subdir("dropin")?;
    let original = Original::obtain()?;
    let original_lib = original.library()?;
    let original_lib = original_lib
        .parent()
        .context("a library without a directory")?;
    let original_dir = dir.join("original-lib");
    library::snapshot(&original_lib.join("libuv.so.1"), &original_dir)?;
    let kits = [
        Kit {
            name: "original",
            include: original.include_dir(),
            lib: original_dir,
        },
        debian(&dir)?,
    ];
    for kit in &kits {
        let program = compile(kit, &dir)?;
        let before = version_seen(&program, &kit.lib)?;
        let after = version_seen(&program, &ours)?;
        println!("linked with {} ({before}), run on ours: {after}", kit.name);
        ensure!(
            after == OUR_VERSION,
            "the program did not run on our library"
        );
    }
    let own = Kit {
        name: "ours",
        include: workspace::include_dir(),
        lib: ours.clone(),
    };
    let program = compile(&own, &dir)?;
    println!(
        "compiled with our header: {}",
        version_seen(&program, &ours)?
    );
    let version = version_seen(&link_statically(&own, &dir)?, Path::new("/nonexistent"))?;
    println!("linked statically: {version}");
    ensure!(version == OUR_VERSION, "the static program is not ours");
    run_examples(&own, &dir)?;
    println!("6 passed, 0 failed");
    Ok(ExitCode::SUCCESS)
}

/// Compiles an example in C with a kit.
fn compile_example(kit: &Kit, dir: &Path, name: &str) -> Result<PathBuf> {
    let program = dir.join(name);
    let mut command = Command::new("gcc");
    command
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-o"])
        .arg(&program)
        .arg(workspace::root().join(format!("examples/c/{name}.c")))
        .arg("-I")
        .arg(&kit.include)
        .arg("-L")
        .arg(&kit.lib)
        .arg("-luv");
    run_quietly(command)?;
    Ok(program)
}

/// The examples in C do what they say.
fn run_examples(kit: &Kit, dir: &Path) -> Result<()> {
    let greeting = version_seen(&compile_example(kit, dir, "ipc-chat")?, &kit.lib)?;
    ensure!(
        greeting == "hello from the child",
        "the chat says {greeting:?}"
    );
    println!("the example ipc-chat: {greeting}");
    let mut server = Command::new("timeout")
        .arg(LIMIT)
        .arg(compile_example(kit, dir, "echo-server")?)
        .env("LD_LIBRARY_PATH", &kit.lib)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run the echo server")?;
    let mut port = String::new();
    BufReader::new(server.stdout.take().context("a server without output")?)
        .read_line(&mut port)?;
    let mut client = TcpStream::connect(("127.0.0.1", port.trim().parse()?))?;
    let mut answer = [0; 5];
    client.write_all(b"hello")?;
    client.read_exact(&mut answer)?;
    ensure!(&answer == b"hello", "the echo server says {answer:?}");
    // The signal is passed on to the server, which closes what it has and ends well.
    let mut kill = Command::new("kill");
    kill.arg(server.id().to_string());
    run_quietly(kill)?;
    let status = server.wait()?;
    ensure!(status.success(), "the echo server ends badly: {status}");
    println!("the example echo-server: hello");
    Ok(())
}

fn link_statically(kit: &Kit, dir: &Path) -> Result<PathBuf> {
    let program = dir.join("static");
    let mut command = Command::new("gcc");
    command
        .args(["-O1", "-Wall", "-Wextra", "-D_GNU_SOURCE", "-o"])
        .arg(&program)
        .arg(workspace::root().join("xtask/dropin/program.c"))
        .arg("-I")
        .arg(&kit.include)
        .arg(kit.lib.join("libuv.a"))
        .args(["-lpthread", "-ldl", "-lm"]);
    run_quietly(command)?;
    Ok(program)
}
