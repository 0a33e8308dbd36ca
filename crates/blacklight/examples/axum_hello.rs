//! A web service with axum, as it is: routes, state, tower's layers, and a connection that is
//! upgraded to another protocol.
//!
//! ```sh
//! cargo run --example axum_hello          # and elsewhere:
//! curl http://127.0.0.1:8080/hello/you
//! curl http://127.0.0.1:8080/slow
//! ```
//!
//! The first argument is the address to listen at. axum asks for handlers and connections that are
//! `Send`; `Local` makes those of a loop so, and checks that they stay on its thread.

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use blacklight::{Local, Loop, LoopExecutor, LoopTimer, TcpListener};
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tower::ServiceBuilder;
use tower::util::MapResponseLayer;

async fn hello(State(visits): State<Arc<AtomicU64>>, Path(name): Path<String>) -> String {
    let visit = visits.fetch_add(1, Ordering::Relaxed) + 1;
    format!("Hello, {name}! You are visitor {visit}.\n")
}

async fn slow() -> &'static str {
    Local::new(blacklight::sleep(Duration::from_millis(100))).await;
    "Good things take time.\n"
}

/// Switches to a protocol that sends everything back.
async fn echo(mut request: Request) -> Response {
    let upgrade = hyper::upgrade::on(&mut request);
    blacklight::spawn(async move {
        if let Ok(upgraded) = upgrade.await {
            let (mut reader, mut writer) = tokio::io::split(TokioIo::new(upgraded));
            let _ = tokio::io::copy(&mut reader, &mut writer).await;
            let _ = tokio::io::AsyncWriteExt::shutdown(&mut writer).await;
        }
    });
    let headers = [(header::CONNECTION, "upgrade"), (header::UPGRADE, "echo")];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

fn app() -> Router {
    let named = MapResponseLayer::new(|mut response: Response| {
        let name = header::HeaderValue::from_static("blacklight");
        response.headers_mut().insert(header::SERVER, name);
        response
    });
    Router::new()
        .route("/hello/{name}", get(hello))
        .route("/slow", get(slow))
        .route("/echo", get(echo))
        .layer(ServiceBuilder::new().layer(named))
        .with_state(Arc::default())
}

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:8080");

    let app = app();
    let lp = Loop::new()?;
    lp.block_on(async {
        let listener = TcpListener::bind(address).await?;
        println!("listening on {}", listener.local_addr()?);
        loop {
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Mostly for want of descriptors: others end meanwhile.
                    eprintln!("cannot accept: {error}");
                    continue;
                }
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
