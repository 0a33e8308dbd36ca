//! A web server with TLS: rustls between hyper and the loop.
//!
//! ```sh
//! cargo run --example https_hello -- 127.0.0.1:8443 hello.pem     # and elsewhere:
//! curl --cacert hello.pem https://localhost:8443/
//! ```
//!
//! The first argument is the address to listen at; the second, where to write the certificate,
//! which is made anew for each run.
//! With the feature `tokio`, whatever is written for tokio's streams works with ours, such as
//! tokio-rustls; no runtime of tokio's runs.

use blacklight::{Loop, LoopExecutor, LoopTimer, TcpListener};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto;
use std::{convert::Infallible, fs, io, sync::Arc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("Hello, secret world!\n")))
}

/// Does TLS with a new certificate, which is written to a file if there is to be one.
fn acceptor(file: Option<String>) -> io::Result<TlsAcceptor> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
    let made = made.map_err(io::Error::other)?;
    if let Some(file) = file {
        fs::write(file, made.cert.pem())?;
    }
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .map_err(io::Error::other)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:8443");

    let acceptor = acceptor(std::env::args().nth(2))?;
    let lp = Loop::new()?;
    let listener = lp.block_on(TcpListener::bind(address))?;
    println!("listening on {}", listener.local_addr()?);
    lp.block_on(async {
        loop {
            // An error is that of one client, or passes, as a lack of descriptors does.
            let Ok((stream, peer)) = listener.accept().await else {
                continue;
            };
            let tls = acceptor.accept(stream);
            blacklight::spawn(async move {
                let mut server = auto::Builder::new(LoopExecutor);
                server.http1().timer(LoopTimer);
                let served = match tls.await {
                    Ok(stream) => {
                        server
                            .serve_connection(TokioIo::new(stream), service_fn(hello))
                            .await
                    }
                    Err(error) => Err(error.into()),
                };
                if let Err(error) = served {
                    eprintln!("{peer}: {error}");
                }
            });
        }
    })
}
