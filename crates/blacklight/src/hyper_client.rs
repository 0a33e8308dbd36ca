//! hyper-util's pooled client on the current loop.

use crate::local::Local;
use crate::tcp::TcpStream;
use hyper::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Connects the pooled client of hyper-util on the loop that runs on this thread, by plain TCP.
///
/// ```
/// use blacklight::{Loop, LoopConnector, LoopExecutor, LoopTimer, TcpListener};
/// use http_body_util::{BodyExt, Empty};
/// use hyper::{Uri, body::Bytes};
/// use hyper_util::client::legacy::Client;
///
/// let lp = Loop::new()?;
/// lp.block_on(async {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let url = format!("http://localhost:{}/", listener.local_addr()?.port());
///     let url = Uri::try_from(url).expect("an address of the web");
///     blacklight::spawn(async move {
///         let (stream, _) = listener.accept().await.unwrap();
///         stream.read(&mut [0; 4096]).await.unwrap();
///         let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nlight";
///         stream.write_all(answer).await.unwrap();
///         stream.read_to_end(&mut Vec::new()).await.unwrap();
///     });
///     let client: Client<_, Empty<Bytes>> = Client::builder(LoopExecutor)
///         .pool_timer(LoopTimer)
///         .build(LoopConnector);
///     let answer = client.get(url).await.unwrap();
///     let body = answer.into_body().collect().await.unwrap().to_bytes();
///     assert_eq!(&body[..], b"light");
///     # Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Default, Debug)]
pub struct LoopConnector;

impl tower_service::Service<Uri> for LoopConnector {
    type Response = Local<TcpStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Local<TcpStream>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(Local::new(connect(uri)))
    }
}

async fn connect(uri: Uri) -> io::Result<Local<TcpStream>> {
    let invalid = |why| io::Error::new(io::ErrorKind::InvalidInput, why);
    if uri.scheme_str() != Some("http") {
        return Err(invalid("only http, which needs no TLS, can be connected"));
    }
    let host = uri
        .host()
        .ok_or_else(|| invalid("the address has no host"))?;
    let stream = TcpStream::connect((host, uri.port_u16().unwrap_or(80))).await?;
    stream.set_nodelay(true)?;
    Ok(Local::new(stream))
}

impl Connection for Local<TcpStream> {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}
