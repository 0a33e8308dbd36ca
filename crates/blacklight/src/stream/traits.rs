//! The I/O traits of `futures-io`, tokio and hyper for streams.
//!
//! The buffers of tokio and hyper may be uninitialised. This crate has no `unsafe` code, so it
//! reads into the loop's scratch buffer and copies, which costs less than zeroing the whole
//! buffer.

use super::{ReadHalf, WriteHalf};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Implements the traits for a stream.
macro_rules! stream_traits {
    ($stream:ident) => {
        $crate::stream::stream_traits!(@futures $stream);
        $crate::stream::stream_traits!(@futures &$stream);
        #[cfg(feature = "tokio")]
        $crate::stream::stream_traits!(@tokio $stream);
        #[cfg(feature = "hyper")]
        $crate::stream::stream_traits!(@hyper $stream);
    };
    (@futures $stream:ty) => {
        impl futures_io::AsyncRead for $stream {
            fn poll_read(
                self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
                buf: &mut [u8],
            ) -> std::task::Poll<io::Result<usize>> {
                self.handle.poll_read(context, buf)
            }
        }

        $crate::stream::stream_traits!(@write futures_io::AsyncWrite, poll_close, $stream);
    };
    (@tokio $stream:ident) => {
        impl tokio::io::AsyncRead for $stream {
            fn poll_read(
                self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
                buf: &mut tokio::io::ReadBuf<'_>,
            ) -> std::task::Poll<io::Result<()>> {
                self.handle.poll_read_by_copy(context, buf.remaining(), |bytes| {
                    buf.put_slice(bytes);
                })
            }
        }

        $crate::stream::stream_traits!(
            @write tokio::io::AsyncWrite, poll_shutdown, $stream, is_write_vectored
        );
    };
    (@hyper $stream:ident) => {
        impl hyper::rt::Read for $stream {
            fn poll_read(
                self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
                mut buf: hyper::rt::ReadBufCursor<'_>,
            ) -> std::task::Poll<io::Result<()>> {
                self.handle.poll_read_by_copy(context, buf.remaining(), |bytes| {
                    buf.put_slice(bytes);
                })
            }
        }

        $crate::stream::stream_traits!(
            @write hyper::rt::Write, poll_shutdown, $stream, is_write_vectored
        );
    };
    (@write $write:path, $close:ident, $stream:ty $(, $is_vectored:ident)?) => {
        impl $write for $stream {
            fn poll_write(
                self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
                bytes: &[u8],
            ) -> std::task::Poll<io::Result<usize>> {
                self.handle.poll_write(context, &[io::IoSlice::new(bytes)])
            }

            fn poll_write_vectored(
                self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
                slices: &[io::IoSlice<'_>],
            ) -> std::task::Poll<io::Result<usize>> {
                self.handle.poll_write(context, slices)
            }

            $(fn $is_vectored(&self) -> bool {
                true
            })?

            fn poll_flush(
                self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
            ) -> std::task::Poll<io::Result<()>> {
                std::task::Poll::Ready(Ok(()))
            }

            fn $close(
                self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
            ) -> std::task::Poll<io::Result<()>> {
                self.handle.poll_shutdown(context)
            }
        }
    };
}

pub(crate) use stream_traits;

#[cfg(any(feature = "tokio", feature = "hyper"))]
impl crate::handle::Handle<super::Stream> {
    /// Reads up to `capacity` bytes into the scratch buffer, and passes them to `take`.
    pub(crate) fn poll_read_by_copy(
        &self,
        context: &Context<'_>,
        capacity: usize,
        take: impl FnOnce(&[u8]),
    ) -> Poll<io::Result<()>> {
        std::task::ready!(self.poll_drained(context))?;
        self.inner.with_scratch(|scratch| {
            let len = scratch.len().min(capacity);
            let read = self.poll_read(context, &mut scratch[..len]);
            read.map_ok(|count| take(&scratch[..count]))
        })
    }
}

impl<S: futures_io::AsyncRead + Unpin> futures_io::AsyncRead for ReadHalf<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_read(context, buf)
    }
}

#[cfg(feature = "tokio")]
impl<S: tokio::io::AsyncRead + Unpin> tokio::io::AsyncRead for ReadHalf<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buf)
    }
}

/// Implements a writer trait for the writing half, if the whole stream has it.
macro_rules! write_half {
    ($write:path, $close:ident $(, $is_vectored:ident)?) => {
        impl<S: $write + Unpin> $write for WriteHalf<S> {
            fn poll_write(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                Pin::new(&mut self.0).poll_write(context, bytes)
            }

            fn poll_write_vectored(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
                slices: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                Pin::new(&mut self.0).poll_write_vectored(context, slices)
            }

            $(fn $is_vectored(&self) -> bool {
                self.0.$is_vectored()
            })?

            fn poll_flush(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
            ) -> Poll<io::Result<()>> {
                Pin::new(&mut self.0).poll_flush(context)
            }

            fn $close(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
            ) -> Poll<io::Result<()>> {
                Pin::new(&mut self.0).$close(context)
            }
        }
    };
}

write_half!(futures_io::AsyncWrite, poll_close);
#[cfg(feature = "tokio")]
write_half!(tokio::io::AsyncWrite, poll_shutdown, is_write_vectored);
