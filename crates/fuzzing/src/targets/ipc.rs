//! Messages with descriptors on a pipe between processes.
//!
//! A script decides what the peer sends (bytes, descriptors of several kinds, other ancillary data)
//! and what the program does with what it gets (accept or leave it, stop, close). Both libraries
//! report the same, and every descriptor that came is handed out or closed: nothing is open at the
//! end that was not at the beginning.

use crate::api::{Api, OURS};
use crate::input::Input;
use crate::original::{compare_for, original};
use crate::uses::Held;
use std::ffi::{c_char, c_int};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use uv_binding::{Room, uv_buf_t, uv_handle_t, uv_loop_t, uv_pipe_t, uv_stream_t};

const NOWAIT: c_int = 2;
const UV_NAMED_PIPE: c_int = 7;
const UV_TCP: c_int = 12;
const UV_UDP: c_int = 15;

/// The most descriptors in one message that both libraries have room for.
const MOST: usize = 60;

/// What the peer sends at once.
#[derive(Debug)]
struct Message {
    bytes: usize,
    descriptors: Vec<u8>,
    credentials: bool,
}

/// What the program does in a read callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Leave,
    AcceptOne,
    AcceptAll,
    Stop,
    Close,
}

#[derive(Debug)]
struct Script {
    messages: Vec<Message>,
    actions: Vec<Action>,
    room: usize,
    /// Whether the peer goes away after its last message.
    hang_up: bool,
}

impl Script {
    fn new(data: &[u8]) -> Script {
        let mut input = Input::new(data);
        let room = input.pick(&[1, 2, 7, 64, 4096]);
        let hang_up = input.flip();
        let mut actions = Vec::new();
        for _ in 0..input.below(8) {
            use Action::{AcceptAll, AcceptOne, Close, Leave, Stop};
            actions.push(input.pick(&[AcceptAll, AcceptOne, Leave, Stop, Close]));
        }
        let mut messages = Vec::new();
        while !input.is_empty() && messages.len() < 8 {
            let (bytes, count) = (input.pick(&[1, 2, 8, 100]), input.below(MOST + 1));
            let credentials = input.below(8) == 1;
            let kinds = input.bytes(count.min(4));
            let descriptors = (0..count)
                .map(|at| kinds.get(at % 4).copied().unwrap_or(0) % 4)
                .collect();
            messages.push(Message {
                bytes,
                descriptors,
                credentials,
            });
        }
        Script {
            messages,
            actions,
            room,
            hang_up,
        }
    }
}

/// One descriptor of each kind that a message may carry.
struct Kinds([OwnedFd; 4]);

impl Kinds {
    fn new() -> Kinds {
        let socket = |domain, kind| {
            // SAFETY: the call takes no pointers, and the descriptor is ours alone.
            unsafe {
                let fd = libc::socket(domain, kind | libc::SOCK_CLOEXEC, 0);
                assert!(fd >= 0);
                <OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(fd)
            }
        };
        Kinds([
            socket(libc::AF_UNIX, libc::SOCK_STREAM),
            socket(libc::AF_INET, libc::SOCK_STREAM),
            socket(libc::AF_INET, libc::SOCK_DGRAM),
            std::fs::File::open("/dev/null").expect("a device").into(),
        ])
    }
}

/// Appends one piece of ancillary data.
fn append(control: &mut Vec<u64>, used: &mut usize, kind: c_int, data: &[u8]) {
    // SAFETY: these only compute.
    let (space, len) = unsafe {
        (
            libc::CMSG_SPACE(data.len() as u32) as usize,
            libc::CMSG_LEN(data.len() as u32) as usize,
        )
    };
    control.resize((*used + space).div_ceil(8), 0);
    // SAFETY: there is room for the header and the data from `used` on, which is aligned.
    unsafe {
        let header = control.as_mut_ptr().cast::<u8>().add(*used);
        header.cast::<libc::cmsghdr>().write(libc::cmsghdr {
            cmsg_len: len,
            cmsg_level: libc::SOL_SOCKET,
            cmsg_type: kind,
        });
        libc::CMSG_DATA(header.cast()).copy_from_nonoverlapping(data.as_ptr(), data.len());
    }
    *used += space;
}

fn send(peer: RawFd, message: &Message, kinds: &Kinds) {
    let bytes = vec![b'x'; message.bytes];
    let (mut control, mut used) = (Vec::new(), 0);
    if message.credentials {
        // SAFETY: these calls have no preconditions.
        let own = unsafe { [libc::getpid() as u32, libc::getuid(), libc::getgid()] };
        let own: Vec<u8> = own.iter().flat_map(|number| number.to_ne_bytes()).collect();
        append(&mut control, &mut used, libc::SCM_CREDENTIALS, &own);
    }
    if !message.descriptors.is_empty() {
        let numbers: Vec<u8> = message
            .descriptors
            .iter()
            .flat_map(|&kind| kinds.0[usize::from(kind)].as_raw_fd().to_ne_bytes())
            .collect();
        append(&mut control, &mut used, libc::SCM_RIGHTS, &numbers);
    }
    let mut iovec = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: all zeros are a valid message, and its parts live through the call.
    let sent = unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &mut iovec;
        header.msg_iovlen = 1;
        if used > 0 {
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = used as _;
        }
        libc::sendmsg(peer, &header, libc::MSG_NOSIGNAL)
    };
    assert_eq!(sent, bytes.len() as isize);
}

/// The program: what it has heard, and what it is to do.
struct Program<'a> {
    api: &'static Api,
    script: &'a Script,
    loop_: *mut uv_loop_t,
    reads: usize,
    room: Vec<u8>,
    trace: Vec<String>,
    #[allow(clippy::vec_box, reason = "handles must not move")]
    accepted: Vec<Box<Room>>,
}

unsafe extern "C" fn lend(pipe: *mut uv_handle_t, _: usize, buf: *mut uv_buf_t) {
    // SAFETY: the handle's data is the program, which nobody else looks at meanwhile.
    unsafe {
        let program = &mut *(*pipe).data.cast::<Program<'_>>();
        (*buf).base = program.room.as_mut_ptr().cast::<c_char>();
        (*buf).len = program.script.room;
    }
}

unsafe extern "C" fn heard(pipe: *mut uv_stream_t, nread: isize, _: *const uv_buf_t) {
    // SAFETY: as above; the handle is open.
    unsafe {
        let program = &mut *(*pipe).data.cast::<Program<'_>>();
        program.read(pipe.cast(), nread);
    }
}

impl Program<'_> {
    /// # Safety
    ///
    /// `pipe` is the open handle.
    unsafe fn read(&mut self, pipe: *mut uv_pipe_t, nread: isize) {
        // SAFETY: the caller vouches for the handle.
        unsafe {
            let pending = (self.api.uv_pipe_pending_count)(pipe);
            let kind = (self.api.uv_pipe_pending_type)(pipe);
            self.trace
                .push(format!("read {nread}, {pending} pending, of type {kind}"));
            if nread < 0 {
                (self.api.uv_close)(pipe.cast(), None);
                return;
            }
            let action = self.script.actions.get(self.reads);
            self.reads += 1;
            match action.unwrap_or(&Action::AcceptAll) {
                Action::Leave => {}
                Action::AcceptOne => drop(self.accept(pipe)),
                Action::AcceptAll => while self.accept(pipe) {},
                Action::Stop => {
                    let code = (self.api.uv_read_stop)(pipe.cast());
                    self.trace.push(format!("stop {code}"));
                }
                Action::Close => (self.api.uv_close)(pipe.cast(), None),
            }
        }
    }

    /// Accepts one descriptor as what it is, or says that there is none.
    ///
    /// # Safety
    ///
    /// As for [`Program::read`].
    unsafe fn accept(&mut self, pipe: *mut uv_pipe_t) -> bool {
        // SAFETY: the caller vouches for the handle; what is accepted lives until the loop's end.
        unsafe {
            if (self.api.uv_pipe_pending_count)(pipe) == 0 {
                return false;
            }
            let kind = (self.api.uv_pipe_pending_type)(pipe);
            let mut handle = Room::new();
            let init = match kind {
                UV_TCP => (self.api.uv_tcp_init)(self.loop_, handle.ptr()),
                UV_UDP => (self.api.uv_udp_init)(self.loop_, handle.ptr()),
                _ => (self.api.uv_pipe_init)(self.loop_, handle.ptr(), 0),
            };
            assert_eq!(init, 0);
            let code = (self.api.uv_accept)(pipe.cast(), handle.ptr());
            self.trace.push(format!("accept {kind}: {code}"));
            self.accepted.push(handle);
            // A descriptor that cannot be accepted would be offered for ever.
            code == 0 && [UV_NAMED_PIPE, UV_TCP, UV_UDP].contains(&kind)
        }
    }
}

fn play(api: &'static Api, script: &Script) -> Vec<String> {
    let held = Held::now();
    let kinds = Kinds::new();
    let (own, peer) = UnixStream::pair().expect("two sockets");
    let (mut loop_, mut pipe) = (Room::new(), Room::new());
    let mut program = Program {
        api,
        script,
        loop_: loop_.ptr(),
        reads: 0,
        room: vec![0; script.room],
        trace: Vec::new(),
        accepted: Vec::new(),
    };
    for message in &script.messages {
        send(peer.as_raw_fd(), message, &kinds);
    }
    let peer = (!script.hang_up).then_some(peer);
    let data = (&raw mut program).cast();
    // SAFETY: loop and handles are initialised before they are used, and outlive the loop. The
    // program is used by the callbacks only while the loop runs.
    unsafe {
        assert_eq!((api.uv_loop_init)(loop_.ptr()), 0);
        assert_eq!((api.uv_pipe_init)(loop_.ptr(), pipe.ptr(), 1), 0);
        assert_eq!((api.uv_pipe_open)(pipe.ptr(), own.into_raw_fd()), 0);
        pipe.data = data;
        // Whoever has stopped goes on.
        for _ in 0..script.messages.len() + 2 {
            if (api.uv_is_closing)(pipe.ptr()) == 0 {
                let _ = (api.uv_read_start)(pipe.ptr(), Some(lend), Some(heard));
            }
            for _ in 0..script.messages.len() * 8 + 2 {
                (api.uv_run)(loop_.ptr(), NOWAIT);
            }
        }
        if (api.uv_is_closing)(pipe.ptr()) == 0 {
            (api.uv_close)(pipe.ptr(), None);
        }
        for handle in &mut program.accepted {
            (api.uv_close)(handle.ptr(), None);
        }
        assert_eq!((api.uv_run)(loop_.ptr(), 0), 0);
        assert_eq!((api.uv_loop_close)(loop_.ptr()), 0);
    }
    drop((peer, kinds));
    held.assert_unchanged();
    program.trace
}

/// Plays a script.
pub fn run(data: &[u8]) {
    let script = Script::new(data);
    // Libraries keep some descriptors for good once they are used.
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        for api in [Some(&OURS), original()].into_iter().flatten() {
            let mut loop_ = Room::new();
            // SAFETY: the loop is initialised, and closed at once.
            unsafe {
                assert_eq!((api.uv_loop_init)(loop_.ptr()), 0);
                assert_eq!((api.uv_loop_close)(loop_.ptr()), 0);
            }
        }
    });
    compare_for(&script, |api| play(api, &script));
}
