//! Where the checks happen: a small machine with programs, users and the command.
//!
//! It has a network of loopback only, its own processes, and file systems in memory of its own. Everything that was started in
//! it ends with it.

use super::Rooms;
use crate::sandbox::init::{HOUSE, cover_null_device, set_up_network};
use anyhow::{Context, Result, bail, ensure};
use nix::mount::{MntFlags, MsFlags, mount, umount, umount2};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// What anything may take on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(120);

/// Who runs the programs of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum User {
    /// The administrator.
    Root,
    /// A user who may do nothing that others may not.
    Ordinary,
}

impl User {
    /// The user's name in the list of checks.
    pub(super) fn name(self) -> &'static str {
        match self {
            User::Root => "root",
            User::Ordinary => "user",
        }
    }

    pub(super) fn id(self) -> u32 {
        match self {
            User::Root => 0,
            User::Ordinary => 61_337,
        }
    }

    pub(super) fn other(self) -> User {
        match self {
            User::Root => User::Ordinary,
            User::Ordinary => User::Root,
        }
    }
}

/// Furnishes the namespaces that `unshare` has made.
pub(super) fn furnish(rooms: &Rooms) -> Result<()> {
    set_up_network()?;
    mount_in_memory(Path::new(HOUSE), "mode=755")?;
    for (name, source) in rooms {
        let target = Path::new(HOUSE).join(name);
        fs::create_dir(&target).with_context(|| format!("cannot make {}", target.display()))?;
        mount(
            Some(source),
            &target,
            None::<&str>,
            MsFlags::MS_BIND,
            None::<&str>,
        )
        .with_context(|| format!("cannot mount {}", source.display()))?;
    }
    // The rooms may lie in here.
    for place in ["/dev/shm", "/tmp"] {
        mount_in_memory(Path::new(place), "mode=1777")?;
    }
    cover_null_device()
}

/// Mounts a file system in memory.
pub(super) fn mount_in_memory(place: &Path, options: &str) -> Result<()> {
    let none = MsFlags::empty();
    mount(Some("tmpfs"), place, Some("tmpfs"), none, Some(options))
        .with_context(|| format!("cannot mount a tmpfs on {}", place.display()))
}

/// A user at the machine.
pub(super) struct Stage {
    pub(super) user: User,
    /// The user's directory, which is empty at first.
    pub(super) home: PathBuf,
    runtime: PathBuf,
}

impl Stage {
    /// Sets the user up for one check.
    pub(super) fn new(user: User) -> Result<Stage> {
        let home = Path::new(HOUSE).join("home").join(user.name());
        let runtime = Path::new(HOUSE).join("runtime").join(user.name());
        for dir in [&home, &runtime] {
            if dir.exists() {
                fs::remove_dir_all(dir)
                    .with_context(|| format!("cannot clear {}", dir.display()))?;
            }
            fs::create_dir_all(dir)
                .and_then(|()| chown(dir, Some(user.id()), Some(user.id())))
                .and_then(|()| fs::set_permissions(dir, Permissions::from_mode(0o700)))
                .with_context(|| format!("cannot make {}", dir.display()))?;
        }
        Ok(Stage {
            user,
            home,
            runtime,
        })
    }

    /// A user whose records are in this directory.
    pub(super) fn with_runtime(user: User, runtime: &Path) -> Result<Stage> {
        let runtime = runtime.to_owned();
        Ok(Stage {
            runtime,
            ..Stage::new(user)?
        })
    }

    /// A command as the user gives it; `blacklight` is found, and so is every room's `bin`.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .env_clear()
            .env("PATH", format!("{HOUSE}/bin:/usr/local/bin:/usr/bin:/bin"))
            .env("HOME", &self.home)
            .env("XDG_RUNTIME_DIR", &self.runtime)
            .env("PYTHONPATH", format!("{HOUSE}/uvloop"))
            .current_dir(&self.home)
            .uid(self.user.id())
            .gid(self.user.id())
            .stdin(Stdio::null());
        command
    }

    /// A named pipe into which nobody writes.
    pub(super) fn silent_pipe(&self) -> Result<SilentPipe> {
        let path = self.home.join("pipe");
        mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).context("cannot make a named pipe")?;
        chown(&path, Some(self.user.id()), None).context("cannot give it away")?;
        // With a writer that says nothing, opening succeeds and reading waits.
        let mut writer = fs::File::options();
        let writer = writer.read(true).write(true).open(&path);
        Ok(SilentPipe {
            path,
            _writer: writer.context("no writer")?,
        })
    }

    /// Starts a program and waits until it says that it is ready.
    pub(super) fn start(&self, words: &[&str]) -> Result<Program> {
        self.start_with(words, &[])
    }

    /// The same with variables in its environment.
    pub(super) fn start_with(&self, words: &[&str], variables: &[(&str, &str)]) -> Result<Program> {
        let mut command = self.command(words);
        command.envs(variables.iter().copied());
        let errors = self.home.join("errors");
        let file = fs::File::create(&errors).context("cannot make a file")?;
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .with_context(|| format!("cannot start {words:?}"))?;
        let output = child.stdout.take().context("no output")?;
        let (sender, receiver) = mpsc::channel();
        // What it says later is read too, so that it never waits for a reader.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let mut program = Program {
            child,
            said: Vec::new(),
        };
        let begun = Instant::now();
        loop {
            match receiver.recv_timeout(PATIENCE.saturating_sub(begun.elapsed())) {
                Ok(line) => {
                    let mut said = line.split(' ').map(str::to_owned);
                    if said.next().as_deref() == Some("ready") {
                        program.said = said.collect();
                        return Ok(program);
                    }
                }
                Err(error) => {
                    let errors = fs::read_to_string(&errors).unwrap_or_default();
                    bail!("{words:?} did not become ready ({error}): {errors}");
                }
            }
        }
    }

    /// Runs the command to its end.
    pub(super) fn blacklight(&self, arguments: &[&str]) -> Result<Output> {
        let seconds = PATIENCE.as_secs().to_string();
        let words = [
            &["timeout", "--kill-after=5", &seconds, "blacklight"],
            arguments,
        ]
        .concat();
        let output = self.command(&words).output();
        let output = output.with_context(|| format!("cannot run {words:?}"))?;
        ensure!(
            output.status.code() != Some(124),
            "blacklight {arguments:?} was not over after {seconds} s"
        );
        Ok(output)
    }

    /// What the command prints if all goes well.
    pub(super) fn view(&self, arguments: &[&str]) -> Result<String> {
        let output = self.blacklight(arguments)?;
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "blacklight {arguments:?}: {}: {told}",
            output.status
        );
        String::from_utf8(output.stdout).context("it prints something that is no text")
    }

    /// What the command says when it fails: one sentence.
    pub(super) fn refusal(&self, arguments: &[&str]) -> Result<String> {
        refusal(arguments, &self.blacklight(arguments)?)
    }

    /// Starts the command and does not wait for its end.
    pub(super) fn start_blacklight(&self, arguments: &[&str]) -> Result<Child> {
        let words = [&["blacklight"], arguments].concat();
        let mut command = self.command(&words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
            .spawn()
            .with_context(|| format!("cannot run {words:?}"))
    }

    /// Asks for a view again and again until it is as it should be: a record is a turn of its loop behind.
    pub(super) fn eventually(
        &self,
        arguments: &[&str],
        check: impl Fn(&str) -> Result<()>,
    ) -> Result<String> {
        let begun = Instant::now();
        loop {
            let text = self.view(arguments)?;
            match check(&text) {
                Ok(()) => return Ok(text),
                Err(error) if begun.elapsed() > PATIENCE => return Err(error),
                Err(_) => {}
            }
        }
    }
}

/// See [`Stage::silent_pipe`].
pub(super) struct SilentPipe {
    path: PathBuf,
    _writer: fs::File,
}

impl SilentPipe {
    /// Where it is.
    pub(super) fn path(&self) -> Result<&str> {
        self.path.to_str().context("a path that is no text")
    }
}

/// The directory that a session manager makes for a user, until this is dropped.
pub(super) struct Session(String);

impl Session {
    pub(super) fn start(user: User) -> Result<Session> {
        let id = user.id();
        let directory = format!("/run/user/{id}");
        fs::create_dir_all(&directory).with_context(|| format!("cannot make {directory}"))?;
        let options = format!("mode=700,uid={id},gid={id}");
        mount_in_memory(Path::new(&directory), &options)?;
        Ok(Session(directory))
    }

    pub(super) fn directory(&self) -> &str {
        &self.0
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Programs may still have files there, whose namespace ends with the checks.
        let _ = umount2(self.0.as_str(), MntFlags::MNT_DETACH);
    }
}

/// A name server that answers nothing, and which all programs ask until this is dropped.
pub(super) struct SilentNameServer(UdpSocket);

impl SilentNameServer {
    const SETTINGS: &str = "/etc/resolv.conf";

    pub(super) fn start() -> Result<SilentNameServer> {
        let socket = UdpSocket::bind("127.0.0.1:53").context("no name server")?;
        let settings = Path::new(HOUSE).join("resolv.conf");
        fs::write(
            &settings,
            // The most that there is of both: two and a half minutes, in which nobody gives up.
            "nameserver 127.0.0.1\noptions timeout:30 attempts:5\n",
        )?;
        mount(
            Some(&settings),
            SilentNameServer::SETTINGS,
            None::<&str>,
            MsFlags::MS_BIND,
            None::<&str>,
        )
        .context("cannot mount the settings of the resolver")?;
        Ok(SilentNameServer(socket))
    }

    /// Waits for a question.
    pub(super) fn hear(&self) -> Result<()> {
        self.0.set_read_timeout(Some(PATIENCE))?;
        self.0.recv(&mut [0; 512]).context("nobody asks")?;
        Ok(())
    }
}

impl Drop for SilentNameServer {
    fn drop(&mut self) {
        // The next one says if this has failed.
        let _ = umount(SilentNameServer::SETTINGS);
    }
}

/// Checks that the command has failed as it should, and returns its sentence.
pub(super) fn refusal(arguments: &[&str], output: &Output) -> Result<String> {
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(
        output.status.code() == Some(1),
        "blacklight {arguments:?} ended with {} and not with exit code 1: {told}",
        output.status
    );
    let printed = String::from_utf8_lossy(&output.stdout);
    ensure!(printed.is_empty(), "it has failed and printed: {printed}");
    let sentence = told
        .strip_prefix("blacklight: ")
        .and_then(|rest| rest.strip_suffix('\n'));
    let sentence = sentence.filter(|sentence| !sentence.contains('\n'));
    sentence
        .map(str::to_owned)
        .with_context(|| format!("it does not say one sentence: {told}"))
}

/// A program that runs until this is dropped.
pub(super) struct Program {
    child: Child,
    /// What it has said after "ready".
    pub(super) said: Vec<String>,
}

impl Program {
    /// Its number.
    pub(super) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Something that it has said.
    pub(super) fn word(&self, at: usize) -> Result<&str> {
        let word = self.said.get(at).map(String::as_str);
        word.with_context(|| format!("the program has said only {:?}", self.said))
    }

    /// The port that it listens on.
    pub(super) fn port(&self) -> Result<u16> {
        self.word(0)?.parse().context("no port")
    }

    /// Ends it and waits for that.
    pub(super) fn end(mut self) -> Result<()> {
        self.child.kill().context("cannot end the program")?;
        self.child.wait().context("cannot wait for the program")?;
        Ok(())
    }

    /// Fails unless the program still runs.
    pub(super) fn must_run(&mut self) -> Result<()> {
        match self
            .child
            .try_wait()
            .context("cannot look at the program")?
        {
            None => Ok(()),
            Some(status) => bail!("the program has ended: {status}"),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a request to a server on loopback and returns the answer.
pub(super) fn request(port: u16) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).context("nobody listens")?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).context("no answer")?;
    ensure!(
        answer.starts_with("HTTP/1.1 200"),
        "the server says {answer}"
    );
    Ok(answer)
}

/// Asks a server one thing after the other while something is done.
pub(super) fn under_requests<T>(port: u16, act: impl FnOnce() -> Result<T>) -> Result<T> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                request(port)?;
            }
            anyhow::Ok(())
        });
        let result = act();
        is_over.store(true, Ordering::Relaxed);
        match client.join() {
            Ok(served) => served.and(result),
            Err(_) => bail!("the client has panicked"),
        }
    })
}
