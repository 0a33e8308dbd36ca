//! The description of a child to start.

use super::child::{Child, Running};
use crate::unix::Pipe;
use blacklight_engine::{Command as Raw, Stdio as Place};
use blacklight_sys::process::StringsBuf;
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output};

/// The highest descriptor number that a child can get; kernels have a lower limit.
const MAX_FD: u32 = 0xffff;

/// What a standard stream of a child is connected to.
///
/// ```
/// use blacklight::{Loop, process::{Command, Stdio}};
/// use std::io::{Read, pipe};
///
/// let lp = Loop::new()?;
/// let (mut reader, writer) = pipe()?;
/// let mut command = Command::new("echo");
/// command.arg("to a pipe").stdout(Stdio::from_fd(writer));
/// assert!(lp.block_on(command.status())?.success());
/// // The command owns the writing end, which must be closed before the reader sees the end.
/// drop(command);
/// let mut text = String::new();
/// reader.read_to_string(&mut text)?;
/// assert_eq!(text, "to a pipe\n");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Stdio(Kind);

#[derive(Debug)]
enum Kind {
    Inherit,
    Null,
    Piped,
    Fd(OwnedFd),
}

impl Stdio {
    /// Inherits the parent's stream.
    ///
    /// ```
    /// use blacklight::{Loop, process::{Command, Stdio}};
    ///
    /// let lp = Loop::new()?;
    /// // The child writes to our standard output, so `output` is empty.
    /// let output = lp.block_on(Command::new("echo").stdout(Stdio::inherit()).output())?;
    /// assert!(output.stdout.is_empty());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn inherit() -> Stdio {
        Stdio(Kind::Inherit)
    }

    /// `/dev/null`.
    ///
    /// ```
    /// use blacklight::{Loop, process::{Command, Stdio}};
    ///
    /// let lp = Loop::new()?;
    /// let status = lp.block_on(Command::new("cat").stdin(Stdio::null()).status())?;
    /// assert!(status.success(), "there was nothing to wait for");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn null() -> Stdio {
        Stdio(Kind::Null)
    }

    /// A new pipe between the child and this process.
    ///
    /// ```
    /// use blacklight::{Loop, process::{Command, Stdio}};
    ///
    /// let lp = Loop::new()?;
    /// let mut child = Command::new("echo").arg("light").stdout(Stdio::piped()).spawn()?;
    /// let pipe = child.stdout.take().unwrap();
    /// assert_eq!(lp.block_on(pipe.read(&mut [0; 16]))?, 6);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn piped() -> Stdio {
        Stdio(Kind::Piped)
    }

    /// A descriptor, such as a file, a pipe or a socket. It becomes blocking, as programs expect.
    ///
    /// ```
    /// use blacklight::{Loop, process::{Command, Stdio}};
    /// use std::io::Read;
    ///
    /// let lp = Loop::new()?;
    /// let (mut reader, writer) = std::io::pipe()?;
    /// let mut command = Command::new("sh");
    /// command.args(["-c", "echo out; echo err >&2"]);
    /// command.stdout(Stdio::from_fd(writer.try_clone()?)).stderr(Stdio::from_fd(writer));
    /// assert!(lp.block_on(command.status())?.success());
    /// drop(command); // It owns the descriptors, for further children.
    /// let mut text = String::new();
    /// reader.read_to_string(&mut text)?;
    /// assert_eq!(text, "out\nerr\n");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_fd(fd: impl Into<OwnedFd>) -> Stdio {
        Stdio(Kind::Fd(fd.into()))
    }
}

impl<Fd: Into<OwnedFd>> From<Fd> for Stdio {
    fn from(fd: Fd) -> Stdio {
        Stdio::from_fd(fd)
    }
}

/// A builder of child processes, like [`std::process::Command`].
///
/// A program whose name has no slash is searched for in the child's `PATH`.
///
/// ```
/// use blacklight::{Loop, Mode, process::{Command, Stdio}};
/// use std::{cell::Cell, rc::Rc};
///
/// let lp = Loop::new()?;
/// let mut command = Command::new("sh");
/// command.args(["-c", "exit $CODE"]).env("CODE", "7").stdin(Stdio::null());
/// let child = command.spawn()?;
/// let code = Rc::new(Cell::new(None));
/// let its_code = code.clone();
/// child.on_exit(move |_, status| its_code.set(status.unwrap().code()));
/// lp.run(Mode::Default);
/// assert_eq!(code.get(), Some(7));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Command {
    program: OsString,
    /// The first is the program's name.
    args: Vec<OsString>,
    clears_env: bool,
    env: BTreeMap<OsString, Option<OsString>>,
    directory: Option<PathBuf>,
    stdio: [Option<Stdio>; 3],
    fds: BTreeMap<u32, OwnedFd>,
    uid: Option<u32>,
    gid: Option<u32>,
    detached: bool,
    kill_on_drop: bool,
}

impl Command {
    /// Creates a command without arguments, with the environment and directory of this process.
    ///
    /// ```
    /// use blacklight::{Loop, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let output = lp.block_on(Command::new("pwd").output())?;
    /// assert_eq!(output.stdout, format!("{}\n", std::env::current_dir()?.display()).as_bytes());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new(program: impl AsRef<OsStr>) -> Command {
        let program = program.as_ref().to_owned();
        Command {
            args: vec![program.clone()],
            program,
            clears_env: false,
            env: BTreeMap::new(),
            directory: None,
            stdio: [None, None, None],
            fds: BTreeMap::new(),
            uid: None,
            gid: None,
            detached: false,
            kill_on_drop: false,
        }
    }

    /// Adds an argument.
    ///
    /// ```
    /// use blacklight::{Loop, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let output = lp.block_on(Command::new("echo").arg("black").arg("light").output())?;
    /// assert_eq!(output.stdout, b"black light\n");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn arg(&mut self, arg: impl AsRef<OsStr>) -> &mut Command {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    ///
    /// ```
    /// use blacklight::{Loop, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let output = lp.block_on(Command::new("echo").args(["-n", "a  b", "$HOME"]).output())?;
    /// assert_eq!(output.stdout, b"a  b $HOME", "no shell sees them");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn args(&mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> &mut Command {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        self.args.extend(args);
        self
    }

    /// Sets the name that the program receives as `argv[0]`.
    ///
    /// ```
    /// use blacklight::{Loop, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let mut command = Command::new("sh");
    /// let output = lp.block_on(command.arg0("shell").args(["-c", "echo $0"]).output())?;
    /// assert_eq!(output.stdout, b"shell\n");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn arg0(&mut self, name: impl AsRef<OsStr>) -> &mut Command {
        self.args[0] = name.as_ref().to_owned();
        self
    }

    /// Sets an environment variable.
    ///
    /// ```
    /// use blacklight::{Loop, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let mut command = Command::new("sh");
    /// command.args(["-c", "echo $LIGHT"]).env("LIGHT", "white").env("LIGHT", "black");
    /// assert_eq!(lp.block_on(command.output())?.stdout, b"black\n");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn env(&mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Command {
        let value = Some(value.as_ref().to_owned());
        self.env.insert(key.as_ref().to_owned(), value);
        self
    }

    /// Sets environment variables.
    ///
    /// ```
    /// use blacklight::{Loop, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let mut command = Command::new("sh");
    /// command.args(["-c", "echo $KIND $COLOUR"]).envs([("COLOUR", "black"), ("KIND", "light")]);
    /// assert_eq!(lp.block_on(command.output())?.stdout, b"light black\n");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn envs(
        &mut self,
        variables: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>,
    ) -> &mut Command {
        for (key, value) in variables {
            self.env(key, value);
        }
        self
    }

    /// Removes an environment variable.
    ///
    /// ```
    /// use blacklight::{Loop, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let mut command = Command::new("sh");
    /// command.args(["-c", "echo ${HOME-nowhere}"]).env_remove("HOME");
    /// assert_eq!(lp.block_on(command.output())?.stdout, b"nowhere\n");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn env_remove(&mut self, key: impl AsRef<OsStr>) -> &mut Command {
        self.env.insert(key.as_ref().to_owned(), None);
        self
    }

    /// Clears the environment, including variables set so far.
    ///
    /// ```
    /// use blacklight::{Loop, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let mut command = Command::new("/usr/bin/env");
    /// command.env_clear().envs([("COLOUR", "black"), ("KIND", "light")]);
    /// assert_eq!(lp.block_on(command.output())?.stdout, b"COLOUR=black\nKIND=light\n");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn env_clear(&mut self) -> &mut Command {
        self.clears_env = true;
        self.env.clear();
        self
    }

    /// Sets the working directory. A relative path of the program starts there.
    ///
    /// ```
    /// use blacklight::{Loop, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let output = lp.block_on(Command::new("pwd").current_dir("/").output())?;
    /// assert_eq!(output.stdout, b"/\n");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn current_dir(&mut self, directory: impl AsRef<Path>) -> &mut Command {
        self.directory = Some(directory.as_ref().to_owned());
        self
    }

    /// Sets the standard input. The default is inherited, or `/dev/null` for
    /// [`output`](Command::output).
    ///
    /// ```
    /// use blacklight::{Loop, process::{Command, Stdio}};
    ///
    /// let lp = Loop::new()?;
    /// let mut command = Command::new("tr");
    /// command.args(["a-z", "A-Z"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    /// let mut child = command.spawn()?;
    /// let output = lp.block_on(async {
    ///     child.stdin.take().unwrap().write_all(b"black light").await?;
    ///     child.wait_with_output().await
    /// })?;
    /// assert_eq!(output.stdout, b"BLACK LIGHT");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stdin(&mut self, stdio: impl Into<Stdio>) -> &mut Command {
        self.stdio[0] = Some(stdio.into());
        self
    }

    /// Sets the standard output. The default is inherited, or a pipe for
    /// [`output`](Command::output).
    ///
    /// ```
    /// use blacklight::{Loop, fs::TempFile, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let file = TempFile::new("stdout").await?;
    ///     let path = file.path().to_owned();
    ///     let mut command = Command::new("echo");
    ///     command.arg("into a file").stdout(file.file.into_std().await?);
    ///     command.status().await?;
    ///     println!("{} is gone with the `TempFile`", path.display());
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stdout(&mut self, stdio: impl Into<Stdio>) -> &mut Command {
        self.stdio[1] = Some(stdio.into());
        self
    }

    /// Sets the standard error. The default is inherited, or a pipe for
    /// [`output`](Command::output).
    ///
    /// ```
    /// use blacklight::{Loop, process::{Command, Stdio}};
    ///
    /// let lp = Loop::new()?;
    /// let mut command = Command::new("sh");
    /// command.args(["-c", "echo out; echo err >&2"]);
    /// command.stdout(Stdio::null()).stderr(Stdio::piped());
    /// let output = lp.block_on(command.output())?;
    /// assert_eq!((&output.stdout[..], &output.stderr[..]), (&b""[..], &b"err\n"[..]));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stderr(&mut self, stdio: impl Into<Stdio>) -> &mut Command {
        self.stdio[2] = Some(stdio.into());
        self
    }

    /// Passes a further descriptor to the child, under a number above two.
    ///
    /// ```
    /// use blacklight::{Loop, process::Command};
    /// use std::io::{Read, pipe};
    ///
    /// let lp = Loop::new()?;
    /// let (mut reader, writer) = pipe()?;
    /// let mut command = Command::new("sh");
    /// command.args(["-c", "echo three >&3"]).fd(3, writer);
    /// lp.block_on(command.status())?;
    /// drop(command);
    /// let mut text = String::new();
    /// reader.read_to_string(&mut text)?;
    /// assert_eq!(text, "three\n");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn fd(&mut self, number: u32, fd: impl Into<OwnedFd>) -> &mut Command {
        self.fds.insert(number, fd.into());
        self
    }

    /// Sets the user ID of the child. Supplementary groups are dropped.
    ///
    /// ```no_run
    /// use blacklight::{Loop, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// // Only root may change the user.
    /// let output = lp.block_on(Command::new("id").uid(65534).gid(65534).output())?;
    /// println!("{}", output.stdout.escape_ascii());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn uid(&mut self, id: u32) -> &mut Command {
        self.uid = Some(id);
        self
    }

    /// Sets the group ID of the child. Supplementary groups are dropped.
    ///
    /// ```no_run
    /// use blacklight::{Loop, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// // Only root may change the group.
    /// let output = lp.block_on(Command::new("id").arg("-g").gid(65534).output())?;
    /// assert_eq!(output.stdout, b"65534\n");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn gid(&mut self, id: u32) -> &mut Command {
        self.gid = Some(id);
        self
    }

    /// Makes the child the leader of a new session, so that signals of this terminal do not reach
    /// it.
    ///
    /// ```
    /// use blacklight::{Loop, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let script = "read pid _ _ _ _ session _ < /proc/self/stat; echo $((session == pid))";
    /// let mut command = Command::new("sh");
    /// command.args(["-c", script]).detached(true);
    /// assert_eq!(lp.block_on(command.output())?.stdout, b"1\n");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn detached(&mut self, detached: bool) -> &mut Command {
        self.detached = detached;
        self
    }

    /// Kills the child with `SIGKILL` when its [`Child`] is dropped. By default it keeps running.
    ///
    /// ```
    /// use blacklight::{Loop, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let child = Command::new("sleep").arg("1000").kill_on_drop(true).spawn()?;
    /// drop(child);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn kill_on_drop(&mut self, kill: bool) -> &mut Command {
        self.kill_on_drop = kill;
        self
    }

    /// Starts the child. Returns an error if the program cannot be run.
    ///
    /// ```
    /// use blacklight::{Loop, process::Command};
    /// use std::io::ErrorKind;
    ///
    /// let lp = Loop::new()?;
    /// let error = Command::new("/no/such/program").spawn().unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::NotFound);
    /// let mut child = Command::new("true").spawn()?;
    /// assert!(lp.block_on(child.wait())?.success());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn spawn(&self) -> io::Result<Child> {
        self.spawn_with([Kind::Inherit, Kind::Inherit, Kind::Inherit])
    }

    /// Starts the child and waits for its exit.
    ///
    /// ```
    /// use blacklight::{Loop, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// assert!(lp.block_on(Command::new("true").status())?.success());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn status(&self) -> impl Future<Output = io::Result<ExitStatus>> + use<> {
        let child = self.spawn();
        async move { child?.wait().await }
    }

    /// Starts the child, reads its output, and waits for its exit.
    ///
    /// ```
    /// use blacklight::{Loop, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let output = lp.block_on(Command::new("echo").arg("light").output())?;
    /// assert_eq!(output.stdout, b"light\n");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn output(&self) -> impl Future<Output = io::Result<Output>> + use<> {
        let child = self.spawn_with([Kind::Null, Kind::Piped, Kind::Piped]);
        async move { child?.wait_with_output().await }
    }

    fn spawn_with(&self, defaults: [Kind; 3]) -> io::Result<Child> {
        let file = c_string(&self.program)?;
        let args = c_strings(&self.args)?;
        let args: StringsBuf<'_> = args.iter().map(CString::as_c_str).collect();
        let env = c_strings(&self.environment())?;
        let env: StringsBuf<'_> = env.iter().map(CString::as_c_str).collect();
        let cwd = match &self.directory {
            Some(directory) => Some(c_string(directory.as_os_str())?),
            None => None,
        };
        let mut plan = Plan::default();
        for (number, (stdio, default)) in (0..).zip(self.stdio.iter().zip(&defaults)) {
            let kind = stdio.as_ref().map_or(default, |stdio| &stdio.0);
            plan.standard(number, kind)?;
        }
        plan.add(&self.fds)?;
        let command = Raw {
            file: &file,
            args: args.strings(),
            env: env.strings(),
            cwd: cwd.as_deref(),
            detached: self.detached,
            uid: self.uid,
            gid: self.gid,
            stdio: &plan.places,
        };
        let (handle, pid) = Running::start(&command)?;
        let [stdin, stdout, stderr] = plan.pipes;
        Ok(Child {
            handle,
            pid,
            is_detached: false,
            kill_on_drop: self.kill_on_drop,
            stdin,
            stdout,
            stderr,
        })
    }

    /// The environment of the child. This process's variables are read through the standard
    /// library, whose lock keeps other threads from changing them meanwhile.
    fn environment(&self) -> Vec<OsString> {
        let ours = std::env::vars_os().filter(|_| !self.clears_env);
        let ours = ours.filter(|(key, _)| !self.env.contains_key(key));
        let set = self.env.iter();
        let set = set.filter_map(|(key, value)| Some((key.clone(), value.clone()?)));
        let entry = |(mut key, value): (OsString, OsString)| {
            key.push("=");
            key.push(value);
            key
        };
        ours.chain(set).map(entry).collect()
    }
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
}

fn c_strings(texts: &[OsString]) -> io::Result<Vec<CString>> {
    texts.iter().map(|text| c_string(text)).collect()
}

/// The descriptors of the child, and both ends of its new pipes.
#[derive(Default)]
struct Plan {
    places: Vec<Place>,
    /// The parent's ends, for the standard streams.
    pipes: [Option<Pipe>; 3],
    theirs: Vec<OwnedFd>,
}

impl Plan {
    fn standard(&mut self, number: usize, kind: &Kind) -> io::Result<()> {
        let place = match kind {
            Kind::Inherit => Place::Inherit(number as RawFd),
            Kind::Null => Place::Ignore,
            Kind::Fd(fd) => Place::Inherit(fd.as_raw_fd()),
            Kind::Piped => {
                let (reader, writer) = io::pipe()?;
                let (ours, theirs): (OwnedFd, OwnedFd) = match number {
                    0 => (writer.into(), reader.into()),
                    _ => (reader.into(), writer.into()),
                };
                let place = Place::Inherit(theirs.as_raw_fd());
                self.theirs.push(theirs);
                self.pipes[number] = Some(Pipe::from_fd(ours)?);
                place
            }
        };
        self.places.push(place);
        Ok(())
    }

    fn add(&mut self, fds: &BTreeMap<u32, OwnedFd>) -> io::Result<()> {
        for (&number, fd) in fds {
            if !(3..=MAX_FD).contains(&number) {
                let why = "a child's further descriptors have numbers above two";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
            }
            self.places.resize(number as usize, Place::Ignore);
            self.places.push(Place::Pass(fd.as_raw_fd()));
        }
        Ok(())
    }
}
