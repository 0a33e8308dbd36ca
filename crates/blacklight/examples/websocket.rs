//! WebSockets in an axum service: hyper switches the protocol, tungstenite speaks it.
//!
//! ```sh
//! cargo run --example websocket          # and elsewhere, with any client:
//! websocat ws://127.0.0.1:8080/echo
//! ```
//!
//! The first argument is the address to listen at. axum's own extractor for WebSockets spawns on
//! a runtime of tokio's. What it does besides is little: this handler answers the handshake, and
//! spawns on the loop what talks to the client then.

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use blacklight::{Local, Loop, LoopExecutor, LoopTimer, TcpListener};
use futures_util::{SinkExt, StreamExt};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use std::io;
use std::time::Duration;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Error, Message};

type WebSocket = WebSocketStream<TokioIo<Upgraded>>;

/// How long a client may be silent.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends each message back, until the client closes the connection or is silent for long.
async fn talk(mut socket: WebSocket) -> Result<(), Error> {
    while let Ok(Some(message)) = blacklight::timeout(PATIENCE, socket.next()).await {
        // tungstenite itself answers pings and the closing handshake.
        if let message @ (Message::Text(_) | Message::Binary(_)) = message? {
            socket.send(message).await?;
        }
    }
    match socket.close(None).await {
        Err(Error::ConnectionClosed | Error::AlreadyClosed) => Ok(()),
        closed => closed,
    }
}

/// Answers the handshake, and talks to the client once the protocol is switched.
async fn upgrade(mut request: Request) -> Response {
    let headers = request.headers();
    let is = |name, wanted: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| value.eq_ignore_ascii_case(wanted))
    };
    let asks = is(header::UPGRADE, "websocket") && is(header::SEC_WEBSOCKET_VERSION, "13");
    let key = headers.get(header::SEC_WEBSOCKET_KEY).filter(|_| asks);
    let Some(key) = key else {
        let versions = [(header::SEC_WEBSOCKET_VERSION, "13")];
        return (StatusCode::UPGRADE_REQUIRED, versions).into_response();
    };
    let accept = derive_accept_key(key.as_bytes());
    let upgraded = hyper::upgrade::on(&mut request);
    blacklight::spawn(async move {
        // A client that goes before the protocol is switched is nobody's concern.
        let Ok(upgraded) = upgraded.await else { return };
        let stream = TokioIo::new(upgraded);
        let socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
        if let Err(error) = talk(socket).await {
            eprintln!("a client is lost: {error}");
        }
    });
    let headers = [
        (header::CONNECTION, "upgrade"),
        (header::UPGRADE, "websocket"),
        (header::SEC_WEBSOCKET_ACCEPT, accept.as_str()),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:8080");

    let app = Router::new().route("/echo", get(upgrade));
    let lp = Loop::new()?;
    lp.block_on(async {
        let listener = TcpListener::bind(address).await?;
        println!("listening on {}", listener.local_addr()?);
        loop {
            // An error is that of one client, or passes, as a lack of descriptors does.
            let Ok((stream, peer)) = listener.accept().await else {
                continue;
            };
            let service = TowerToHyperService::new(app.clone());
            blacklight::spawn(async move {
                let mut server = auto::Builder::new(LoopExecutor);
                server.http1().timer(LoopTimer);
                let stream = Local::new(stream);
                let served = server.serve_connection_with_upgrades(stream, service);
                if let Err(error) = served.await {
                    eprintln!("{peer}: {error}");
                }
            });
        }
    })
}
