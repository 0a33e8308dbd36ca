//! Values of one thread where `Send` is asked for.

use futures_core::Stream;
use futures_io::{AsyncRead, AsyncWrite};
use pin_project_lite::pin_project;
use send_wrapper::SendWrapper;
use std::fmt;
use std::io::{self, IoSlice};
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::task::{Context, Poll};

pin_project! {
    /// A value that may be passed where `Send` is asked for, and that checks on each use that it
    /// is still on the thread that made it.
    ///
    /// Loops, their handles and their futures stay on one thread, so none of them is `Send`. Many
    /// libraries ask for `Send` all the same, since they are written for runtimes that move tasks
    /// between threads. On a loop nothing moves: the bound is a formality, and this wrapper meets
    /// it. It passes on [`Future`], [`Stream`], and the traits of readers and writers.
    ///
    /// ```
    /// use blacklight::{Local, Loop};
    /// use std::time::Duration;
    ///
    /// fn handler() -> impl Future<Output = ()> + Send {
    ///     async { Local::new(blacklight::sleep(Duration::from_millis(1))).await }
    /// }
    ///
    /// Loop::new()?.block_on(handler());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// Every use on another thread panics, dropping included.
    ///
    /// ```
    /// use blacklight::Local;
    /// use std::{cell::Cell, panic, thread};
    ///
    /// let local = Local::new(Cell::new(7));
    /// assert_eq!(local.get(), 7);
    /// thread::scope(|scope| {
    ///     let used = scope.spawn(|| {
    ///         let used = panic::catch_unwind(panic::AssertUnwindSafe(|| local.get()));
    ///         assert!(used.is_err());
    ///     });
    ///     used.join().unwrap();
    /// });
    /// ```
    pub struct Local<T> {
        #[pin]
        value: SendWrapper<T>,
    }
}

impl<T> Local<T> {
    /// Binds a value to this thread.
    ///
    /// ```
    /// use blacklight::Local;
    /// use std::rc::Rc;
    ///
    /// fn is_send(_: impl Send) {}
    ///
    /// is_send(Local::new(Rc::new("of this thread")));
    /// ```
    pub fn new(value: T) -> Local<T> {
        let value = SendWrapper::new(value);
        Local { value }
    }

    /// Returns the value.
    ///
    /// ```
    /// use blacklight::Local;
    ///
    /// assert_eq!(Local::new(7).into_inner(), 7);
    /// ```
    ///
    /// # Panics
    ///
    /// On another thread.
    #[track_caller]
    pub fn into_inner(self) -> T {
        self.value.take()
    }

    /// Whether this is the thread that made it.
    ///
    /// ```
    /// use blacklight::Local;
    ///
    /// let local = Local::new(7);
    /// assert!(local.is_here());
    /// std::thread::scope(|scope| scope.spawn(|| assert!(!local.is_here())).join().unwrap());
    /// ```
    pub fn is_here(&self) -> bool {
        self.value.valid()
    }
}

impl<T> Deref for Local<T> {
    type Target = T;

    #[track_caller]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Local<T> {
    #[track_caller]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: Clone> Clone for Local<T> {
    #[track_caller]
    fn clone(&self) -> Local<T> {
        Local::new(T::clone(self))
    }
}

impl<T> fmt::Debug for Local<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local").finish_non_exhaustive()
    }
}

impl<F: Future> Future for Local<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.project().value.poll(context)
    }
}

impl<S: Stream> Stream for Local<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        self.project().value.poll_next(context)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (**self).size_hint()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Local<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut **self).poll_read(context, buf)
    }
}

#[cfg(feature = "tokio")]
impl<S: tokio::io::AsyncRead + Unpin> tokio::io::AsyncRead for Local<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut **self).poll_read(context, buf)
    }
}

#[cfg(feature = "hyper")]
impl<S: hyper::rt::Read + Unpin> hyper::rt::Read for Local<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut **self).poll_read(context, buf)
    }
}

/// Implements a writer trait, if the value has it.
macro_rules! writer {
    ($write:path, $close:ident $(, $is_vectored:ident)?) => {
        impl<S: $write + Unpin> $write for Local<S> {
            fn poll_write(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                Pin::new(&mut **self).poll_write(context, bytes)
            }

            fn poll_write_vectored(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
                slices: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                Pin::new(&mut **self).poll_write_vectored(context, slices)
            }

            $(fn $is_vectored(&self) -> bool {
                (**self).$is_vectored()
            })?

            fn poll_flush(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
            ) -> Poll<io::Result<()>> {
                Pin::new(&mut **self).poll_flush(context)
            }

            fn $close(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
            ) -> Poll<io::Result<()>> {
                Pin::new(&mut **self).$close(context)
            }
        }
    };
}

writer!(AsyncWrite, poll_close);
#[cfg(feature = "tokio")]
writer!(tokio::io::AsyncWrite, poll_shutdown, is_write_vectored);
#[cfg(feature = "hyper")]
writer!(hyper::rt::Write, poll_shutdown, is_write_vectored);
