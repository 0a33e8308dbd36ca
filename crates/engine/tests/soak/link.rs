//! How two ends come together.

use crate::end::{End, Finale};
use crate::world::{Name, Sockets, World};
use blacklight_engine::{Descriptor, Errno, Key};
use std::os::fd::{IntoRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Kind {
    Tcp,
    /// A Unix socket that is connected to.
    Unix,
    Pair,
    /// A pipe, which goes one way.
    Pipe,
}

pub(crate) fn descriptor(file: impl Into<OwnedFd>) -> Descriptor {
    // SAFETY: whoever had it has given it away.
    unsafe { Descriptor::adopt(file.into().into_raw_fd()) }
}

fn new_end(world: &mut World, kind: Kind, peer: usize) -> Key {
    let name = Name::End(world.ends.len());
    let key = match kind {
        Kind::Tcp => world.engine.tcp_init(name.token(), None),
        _ => world.engine.pipe_init(name.token(), false),
    };
    let key = key.expect("a handle");
    let ticks = world.random.below(40) as u32;
    let finale = match world.random.below(10) {
        0 | 1 => Finale::Close(ticks),
        2 if kind == Kind::Tcp => Finale::Reset(ticks),
        _ => Finale::Polite,
    };
    let messages = world.random.below(8) as u32;
    let offset = world.random.below(crate::world::PERIOD as u64) as usize;
    let end = End::new(key, kind, peer, finale, messages, offset);
    world.ends.push(end);
    key
}

/// Makes a connection, or begins to.
pub(crate) fn begin(world: &mut World, sockets: Sockets) {
    let all = [Kind::Tcp, Kind::Unix, Kind::Pair, Kind::Pipe];
    let choices = match sockets {
        Sockets::All => &all[..],
        Sockets::Local => &all[1..],
    };
    let kind = world.random.pick(choices);
    let one = world.ends.len();
    let ours = new_end(world, kind, one + 1);
    let theirs = new_end(world, kind, one);
    let open = |world: &mut World, key, file: OwnedFd, readable, writable| {
        let opened = world
            .engine
            .stream_open(key, descriptor(file), readable, writable);
        opened.expect("a new descriptor");
    };
    match kind {
        Kind::Tcp | Kind::Unix => return connect(world, one, kind, ours),
        Kind::Pair => {
            let (left, right) = UnixStream::pair().expect("a pair of sockets");
            open(world, ours, left.into(), true, true);
            open(world, theirs, right.into(), true, true);
        }
        Kind::Pipe => {
            let (reader, writer) = std::io::pipe().expect("a pipe");
            open(world, ours, writer.into(), false, true);
            open(world, theirs, reader.into(), true, false);
            world.ends[one].goes_one_way(true);
            world.ends[one + 1].goes_one_way(false);
        }
    }
    world.open_end(one);
    world.open_end(one + 1);
}

/// Has one end connect to a server that waits for it alone.
fn connect(world: &mut World, one: usize, kind: Kind, client: Key) {
    let engine = &mut world.engine;
    let token = Name::Server(one + 1).token();
    let server = match kind {
        Kind::Tcp => engine.tcp_init(token, None),
        _ => engine.pipe_init(token, false),
    };
    let server = server.expect("a handle");
    if kind == Kind::Unix {
        // The kernel chooses the name.
        engine.pipe_bind(server, b"").expect("a name");
    }
    engine.stream_listen(server, 8).expect("a server");
    let address = engine.stream_address(server, false).expect("a name");
    let token = Name::Connect(one).token();
    let begun = match kind {
        Kind::Tcp => engine.tcp_connect(client, token, &address),
        _ => engine.pipe_connect(client, token, address.unix_name()),
    };
    world.ends[one + 1].server = Some(server);
    match begun {
        Ok(()) => world.ends[one].is_connecting = true,
        Err(error) => {
            assert!(world.is_destructive, "connecting fails: {error:?}");
            world.coverage.failed_connects += 1;
            world.close_end(one);
        }
    }
}

impl World {
    /// A server has a connection for its end.
    /// A server had no descriptors for those who waited. It goes on listening.
    pub(crate) fn turned_away(&mut self, name: Name, error: Errno) {
        assert!(matches!(name, Name::Server(_)), "{name:?} is no server");
        assert!(self.is_destructive, "accepting fails: {error:?}");
        assert!(matches!(error, Errno::EMFILE | Errno::ENFILE), "{error:?}");
        self.coverage.turned_away += 1;
    }

    pub(crate) fn connection(&mut self, name: Name, result: Result<(), Errno>) {
        let Name::Server(end) = name else {
            panic!("{name:?} is no server");
        };
        let server = self.ends[end].server.expect("a server that is open");
        if let Err(error) = result {
            assert!(self.is_destructive, "accepting fails: {error:?}");
            self.coverage.failed_accepts += 1;
            // If the poller has refused it, it is to try again.
            self.engine.stream_listen(server, 8).expect("a server");
            return;
        }
        let key = self.ends[end].key;
        self.engine
            .stream_accept(server, key)
            .expect("a connection waits");
        assert_eq!(
            self.engine.stream_accept(server, key),
            Err(Errno::EAGAIN),
            "only one has come"
        );
        self.close_server(end);
        if !self.ends[end].is_closing() {
            self.open_end(end);
        }
    }

    pub(crate) fn close_server(&mut self, end: usize) {
        if let Some(server) = self.ends[end].server.take() {
            self.engine.close(server).expect("it is open");
        }
    }
}
