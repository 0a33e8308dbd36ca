//! The server: hyper on a loop of our own. Everything of the crate's that the view needs is used here, and in [`demo`](super::demo).
//!
//! A connection is a task. A stream of documents is made frame by frame as the connection takes them, so that nothing is queued for a
//! browser that does not read.

use super::guard::{Guard, MISSING, Route, headers};
use super::hub::{Export, Hub, Reply, Told, Trace};
use super::peer;
use anyhow::{Context, Result};
use blacklight::{Async, Loop, LoopTimer, SignalKind, Signals, TcpListener, TcpStream};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{CONNECTION, CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue, LOCATION};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::future::poll_fn;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::{Arc, PoisonError};
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

/// How long a client may take for the head of a request.
const PATIENCE: Duration = Duration::from_secs(3);
/// The connections that are served at a time.
const CONNECTIONS: usize = 64;
/// The bytes that a connection may hold, and the system for it, that its client has not taken.
const BUFFER: usize = 64 * 1024;
/// The pause after the system has refused a connection, mostly for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// The header with the times that a trace is of.
const RANGE: &str = "blacklight-range";

/// What is shown.
pub(super) enum Content {
    /// Processes that run.
    Live,
    /// The frames of a recording.
    Recording(Rc<Vec<String>>),
}

/// A server that listens.
pub(super) struct Server {
    lp: Loop,
    listeners: Vec<TcpListener>,
    signals: Signals,
    news: Async,
    state: Rc<State>,
}

/// What all connections share.
struct State {
    guard: RefCell<Guard>,
    hub: Arc<Hub>,
    content: Content,
    connections: Cell<usize>,
    /// Connections that have shown no token, the oldest first.
    strangers: RefCell<VecDeque<Rc<Stranger>>>,
    /// The tasks that wait for news, by their numbers.
    waiting: RefCell<HashMap<u64, Waker>>,
    tickets: Cell<u64>,
}

/// A connection that has shown no token. It has to go when there are too many.
#[derive(Default)]
struct Stranger {
    /// From where it comes, and to where.
    ends: Option<(SocketAddr, SocketAddr)>,
    /// Whether it is of another user, once that was asked for.
    is_foreign: OnceCell<bool>,
    is_evicted: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Stranger {
    /// Whether it is of another user of the machine: an intruder, or the user of a desktop on which this runs by `sudo`. The system has to be
    /// asked for its table of all sockets, so that it is asked where that decides something, and once.
    fn is_foreign(&self) -> bool {
        let ask = || {
            self.ends
                .is_some_and(|(from, to)| peer::is_foreign(from, to))
        };
        *self.is_foreign.get_or_init(ask)
    }
}

/// A task that waits for news now and then.
struct Ticket {
    number: u64,
    state: Rc<State>,
}

impl Ticket {
    fn new(state: &Rc<State>) -> Ticket {
        let number = state.tickets.get();
        state.tickets.set(number + 1);
        let state = Rc::clone(state);
        Ticket { number, state }
    }

    /// Has the task woken by the next news.
    fn wait(&self, context: &TaskContext<'_>) {
        let mut waiting = self.state.waiting.borrow_mut();
        waiting.insert(self.number, context.waker().clone());
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.state.waiting.borrow_mut().remove(&self.number);
    }
}

/// Listens at an address. The system keeps little for a client that does not read.
fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    rustix::net::sockopt::set_socket_send_buffer_size(&listener, BUFFER)?;
    TcpListener::from_std(listener)
}

/// Letters and digits that nobody can guess.
fn secret() -> Result<String> {
    let mut bytes = [0; 20];
    blacklight::random(&mut bytes).context("the system has no random numbers")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Server {
    /// Listens on this machine only. Port 0 is any that is free.
    pub(super) fn new(port: u16, hub: Arc<Hub>, content: Content) -> Result<Server> {
        let lp = Loop::builder().name("live").build()?;
        // Before anything is told of the port, so that no signal leaves it open.
        let signals = Signals::new([SignalKind::SIGINT, SignalKind::SIGTERM, SignalKind::SIGHUP])?;
        let first = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = listen(first);
        let listener = listener.with_context(|| format!("cannot listen at {first}"))?;
        let port = listener.local_addr()?.port();
        let mut listeners = vec![listener];
        // `localhost` may mean either; a machine without the other is served as well.
        listeners.extend(listen((Ipv6Addr::LOCALHOST, port).into()).ok());
        let guard = Guard {
            port,
            token: secret()?,
            once: secret()?,
        };
        let state = Rc::new(State {
            guard: RefCell::new(guard),
            hub,
            content,
            connections: Cell::new(0),
            strangers: RefCell::default(),
            waiting: RefCell::default(),
            tickets: Cell::new(0),
        });
        let told = Rc::clone(&state);
        let news = Async::new(move |_, _| told.wake())?;
        Ok(Server {
            lp,
            listeners,
            signals,
            news,
            state,
        })
    }

    /// Where the page is, and an address that leads there once.
    pub(super) fn addresses(&self) -> (String, String) {
        let guard = self.state.guard.borrow();
        let base = format!("http://127.0.0.1:{}", guard.port);
        (
            format!("{base}/{}/", guard.token),
            format!("{base}/open/{}", guard.once),
        )
    }

    /// Tells the server from any thread that there is something new.
    pub(super) fn teller(&self) -> Box<dyn Fn() + Send + Sync> {
        let sender = self.news.sender();
        Box::new(move || {
            sender.send();
        })
    }

    /// Serves until a signal comes or all ends.
    pub(super) fn run(self) {
        let Server {
            lp,
            listeners,
            mut signals,
            news,
            state,
        } = self;
        lp.block_on(async {
            for listener in listeners {
                blacklight::spawn(accept(listener, Rc::clone(&state)));
            }
            let ticket = Ticket::new(&state);
            poll_fn(|context| {
                ticket.wait(context);
                match state.hub.lock().end.is_some() {
                    true => Poll::Ready(()),
                    false => signals.poll_recv(context).map(drop),
                }
            })
            .await;
            let end = || "blacklight live was stopped".to_owned();
            state.hub.lock().end.get_or_insert_with(end);
            state.hub.wake_sampler();
            state.wake();
            // Pages are told before their connections are closed.
            let mut patience = 20;
            while state.connections.get() > 0 && patience > 0 {
                blacklight::sleep(Duration::from_millis(10)).await;
                patience -= 1;
            }
        });
        drop(news);
    }
}

/// Takes connections, each into a task of its own.
async fn accept(listener: TcpListener, state: Rc<State>) {
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            blacklight::sleep(PAUSE).await;
            continue;
        };
        if state.hub.lock().end.is_some() {
            continue;
        }
        if state.connections.get() >= CONNECTIONS && !state.evict() {
            continue;
        }
        state.connections.set(state.connections.get() + 1);
        let to = stream.local_addr();
        let stranger = Rc::new(Stranger {
            ends: to.ok().map(|to| (from, to)),
            ..Stranger::default()
        });
        let mut strangers = state.strangers.borrow_mut();
        strangers.push_back(Rc::clone(&stranger));
        drop(strangers);
        let state = Rc::clone(&state);
        blacklight::spawn(async move {
            // A client that leaves or talks nonsense has only itself to blame.
            let _ = connection(stream, &state, &stranger).await;
            state.meet(&stranger);
            state.connections.set(state.connections.get() - 1);
        });
    }
}

async fn connection(stream: TcpStream, state: &Rc<State>, stranger: &Rc<Stranger>) -> Result<()> {
    stream.set_nodelay(true)?;
    let service = service_fn(|request: Request<Incoming>| {
        let (state, stranger) = (Rc::clone(state), Rc::clone(stranger));
        async move { Ok::<_, Infallible>(state.answer(&request, &stranger).await) }
    });
    let mut server = http1::Builder::new();
    server
        .timer(LoopTimer)
        .header_read_timeout(PATIENCE)
        .max_buf_size(BUFFER);
    let mut serving = pin!(server.serve_connection(stream, service));
    let served = poll_fn(|context| {
        if stranger.is_evicted.get() {
            return Poll::Ready(Ok(()));
        }
        *stranger.waker.borrow_mut() = Some(context.waker().clone());
        serving.as_mut().poll(context)
    });
    Ok(served.await?)
}

impl State {
    fn wake(&self) {
        let waiting = std::mem::take(&mut *self.waiting.borrow_mut());
        waiting.into_values().for_each(Waker::wake);
    }

    /// A connection has shown the token, or is over.
    fn meet(&self, known: &Rc<Stranger>) {
        let mut strangers = self.strangers.borrow_mut();
        strangers.retain(|of| !Rc::ptr_eq(of, known));
    }

    /// Closes the oldest connection that has shown no token, those of other users first. Returns whether there was one.
    fn evict(&self) -> bool {
        let mut strangers = self.strangers.borrow_mut();
        let foreign = strangers.iter().position(|of| of.is_foreign());
        let Some(oldest) = strangers.remove(foreign.unwrap_or(0)) else {
            return false;
        };
        drop(strangers);
        oldest.is_evicted.set(true);
        if let Some(waker) = oldest.waker.take() {
            waker.wake();
        }
        true
    }

    async fn answer(
        self: Rc<State>,
        request: &Request<Incoming>,
        stranger: &Rc<Stranger>,
    ) -> Response<Answer> {
        let uri = request.uri();
        let routed = {
            let guard = self.guard.borrow();
            let routed = guard.route(
                (request.method(), uri.path(), uri.query()),
                request.headers(),
            );
            match routed {
                // Other users can have read the key in the arguments of the browser, where the token never is.
                Ok(Route::Open) if stranger.is_foreign() => Err(MISSING),
                routed => routed,
            }
        };
        if routed.is_ok() {
            self.meet(stranger);
        }
        let mut response = match routed {
            Err((status, sentence)) => {
                let mut response = plain(status, sentence);
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(CONNECTION, close);
                response
            }
            Ok(Route::Open) => {
                let mut guard = self.guard.borrow_mut();
                guard.once.clear();
                let mut response = plain(StatusCode::SEE_OTHER, "the page is elsewhere");
                // A token is of digits.
                if let Ok(to) = HeaderValue::from_str(&format!("/{}/", guard.token)) {
                    response.headers_mut().insert(LOCATION, to);
                }
                response
            }
            Ok(Route::File(file)) => whole(file.kind, Bytes::from_static(file.bytes)),
            Ok(Route::Events(root, from_ns)) => {
                let content = match &self.content {
                    Content::Live => {
                        let id = self.hub.lock().join(root);
                        self.hub.wake_sampler();
                        Answer::Live(Stream {
                            id,
                            told: Told {
                                from_ns: from_ns.filter(|_| root.is_some()),
                                ..Told::default()
                            },
                            ticket: Ticket::new(&self),
                            has_ended: false,
                        })
                    }
                    Content::Recording(frames) => {
                        Answer::Recording(Rc::clone(frames), None, Ticket::new(&self))
                    }
                };
                let mut response = Response::new(content);
                let kind = HeaderValue::from_static("text/event-stream");
                response.headers_mut().insert(CONTENT_TYPE, kind);
                response
            }
            Ok(Route::Trace(pid, from, to)) => self.trace(pid, from, to).await,
        };
        response.headers_mut().extend(headers());
        response
    }

    /// Has the sampler make a trace.
    async fn trace(self: &Rc<State>, pid: u32, from_ns: u64, to_ns: u64) -> Response<Answer> {
        if let Content::Recording(_) = self.content {
            return plain(
                StatusCode::NOT_FOUND,
                "a recording has no events to make a trace of",
            );
        }
        let reply = Reply::default();
        let answer = Arc::clone(&reply);
        self.hub.lock().exports.push_back(Export {
            pid,
            from_ns,
            to_ns,
            answer,
        });
        self.hub.wake_sampler();
        let ticket = Ticket::new(self);
        let made = poll_fn(|context| {
            ticket.wait(context);
            let made = reply.lock().unwrap_or_else(PoisonError::into_inner).take();
            match made {
                Some(made) => Poll::Ready(made),
                // Nobody makes it any more.
                None if Arc::strong_count(&reply) == 1 => {
                    Poll::Ready(Err("the trace could not be made".into()))
                }
                None if self.hub.lock().end.is_some() => Poll::Ready(Err("it has ended".into())),
                None => Poll::Pending,
            }
        });
        match made.await {
            Ok(Trace { bytes, range }) => {
                let mut response = whole("application/octet-stream", Bytes::from(bytes));
                // It may be less than what was asked for.
                let range = format!("{} {}", range.0, range.1);
                if let Ok(range) = HeaderValue::from_str(&range) {
                    response.headers_mut().insert(RANGE, range);
                }
                let name = format!("attachment; filename=\"blacklight-{pid}.pftrace\"");
                if let Ok(name) = HeaderValue::from_str(&name) {
                    response.headers_mut().insert(CONTENT_DISPOSITION, name);
                }
                response
            }
            Err(error) => {
                let mut response = plain(StatusCode::NOT_FOUND, "");
                *response.body_mut() = Answer::Whole(Some(Bytes::from(error)));
                response
            }
        }
    }
}

fn plain(status: StatusCode, sentence: &'static str) -> Response<Answer> {
    let mut response = whole(
        "text/plain; charset=utf-8",
        Bytes::from_static(sentence.as_bytes()),
    );
    *response.status_mut() = status;
    response
}

fn whole(kind: &'static str, bytes: Bytes) -> Response<Answer> {
    let mut response = Response::new(Answer::Whole(Some(bytes)));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// The documents of running processes, for one client.
struct Stream {
    id: u64,
    told: Told,
    ticket: Ticket,
    has_ended: bool,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.ticket.state.hub.lock().leave(self.id);
    }
}

/// The body of an answer.
enum Answer {
    Whole(Option<Bytes>),
    Live(Stream),
    /// A recording, and the number of the next frame; none before the page was told that it is one.
    Recording(Rc<Vec<String>>, Option<usize>, Ticket),
}

/// A message of server-sent events. JSON has no line breaks in it.
fn message(event: &str, data: &str) -> Bytes {
    Bytes::from(format!("event: {event}\ndata: {data}\n\n"))
}

/// The message by which a page learns that this was all.
fn farewell(end: &str) -> Bytes {
    message("end", &serde_json::Value::from(end).to_string())
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut *self {
            Answer::Whole(bytes) => bytes.take(),
            Answer::Live(stream) => return stream.poll(context),
            Answer::Recording(frames, next, ticket) => {
                let at = next.map_or(0, |at| at + 1);
                let message = match next.map(|at| frames.get(at)) {
                    None => message("recording", "null"),
                    Some(Some(frame)) => message("frame", frame),
                    Some(None) if at == frames.len() + 1 => message("whole", "null"),
                    Some(None) if at == frames.len() + 2 => {
                        // The connection stays, so that the page learns when it is left alone.
                        let Some(end) = ticket.state.hub.lock().end.clone() else {
                            ticket.wait(context);
                            return Poll::Pending;
                        };
                        farewell(&end)
                    }
                    Some(None) => return Poll::Ready(None),
                };
                *next = Some(at);
                Some(message)
            }
        };
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Answer::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Answer::Live(_) | Answer::Recording(..) => SizeHint::default(),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Answer::Whole(None))
    }
}

impl Stream {
    /// The next message. This is asked for when the connection has room, and not before.
    fn poll(
        &mut self,
        context: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let hub = &self.ticket.state.hub;
        let mut shared = hub.lock();
        let was_watched = shared.is_watched();
        if let Some(end) = &shared.end {
            self.has_ended = true;
            return Poll::Ready(Some(Ok(Frame::data(farewell(end)))));
        }
        let was_past = self.told.from_ns.is_some();
        let frame = shared.take(self.id, &mut self.told);
        drop(shared);
        if !was_watched {
            hub.wake_sampler();
        }
        let mut text = String::new();
        if was_past && self.told.from_ns.is_none() {
            // What follows is the present.
            text.push_str("event: now\ndata: null\n\n");
        }
        if let Some(frame) = frame {
            let at_ns = self.told.at_ns;
            // By its number the browser says what it knows when it connects anew.
            text.push_str(&format!("id: {at_ns}\nevent: frame\ndata: {frame}\n\n"));
        }
        if text.is_empty() {
            self.ticket.wait(context);
            return Poll::Pending;
        }
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(text)))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_other_users_are_closed_first() {
        let state = State {
            guard: RefCell::new(Guard {
                port: 0,
                token: String::new(),
                once: String::new(),
            }),
            hub: Arc::default(),
            content: Content::Live,
            connections: Cell::default(),
            strangers: RefCell::default(),
            waiting: RefCell::default(),
            tickets: Cell::default(),
        };
        let strangers = [false, true, false, true].map(|is_foreign| {
            Rc::new(Stranger {
                is_foreign: OnceCell::from(is_foreign),
                ..Stranger::default()
            })
        });
        state.strangers.borrow_mut().extend(strangers.clone());
        for (at, stranger) in [1, 3, 0, 2].map(|at| (at, &strangers[at])) {
            assert!(!stranger.is_evicted.get() && state.evict());
            assert!(stranger.is_evicted.get(), "{at} is next");
        }
        assert!(!state.evict());
    }
}
