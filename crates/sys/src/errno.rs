//! One error type for the whole project, with libuv's numbers, names and messages.

use std::ffi::CStr;
use std::fmt;

/// An error as libuv numbers it: the negated `errno` where the system has one, and a
/// number below −3000 where libuv adds its own.
///
/// ```
/// use blacklight_sys::Errno;
///
/// assert_eq!(Errno::ENOENT.code(), -libc::ENOENT);
/// assert_eq!(Errno::ENOENT.name(), Some("ENOENT"));
/// assert_eq!(Errno::EOF.to_string(), "EOF: end of file");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(i32);

/// The C form of a literal of the table below.
fn nul_terminated(text: &'static str) -> &'static CStr {
    CStr::from_bytes_with_nul(text.as_bytes()).expect("one NUL, at the end")
}

macro_rules! errnos {
    ($($name:ident = $code:expr, $message:literal;)*) => {
        #[allow(missing_docs, reason = "each constant's meaning is its message")]
        impl Errno {
            $(pub const $name: Errno = Errno($code);)*

            /// Every error that has a name, in libuv's order.
            pub const ALL: &'static [Errno] = &[$(Errno::$name),*];
        }

        impl Errno {
            /// The symbolic name as a C string, or `None` for a code without one.
            pub fn name_c(self) -> Option<&'static CStr> {
                match self {
                    $(Errno::$name => Some(nul_terminated(concat!(stringify!($name), "\0"))),)*
                    _ => None,
                }
            }

            /// The message as a C string, or `None` for a code without one.
            pub fn message_c(self) -> Option<&'static CStr> {
                match self {
                    $(Errno::$name => Some(nul_terminated(concat!($message, "\0"))),)*
                    _ => None,
                }
            }
        }
    };
}

errnos! {
    E2BIG = -libc::E2BIG, "argument list too long";
    EACCES = -libc::EACCES, "permission denied";
    EADDRINUSE = -libc::EADDRINUSE, "address already in use";
    EADDRNOTAVAIL = -libc::EADDRNOTAVAIL, "address not available";
    EAFNOSUPPORT = -libc::EAFNOSUPPORT, "address family not supported";
    EAGAIN = -libc::EAGAIN, "resource temporarily unavailable";
    EAI_ADDRFAMILY = -3000, "address family not supported";
    EAI_AGAIN = -3001, "temporary failure";
    EAI_BADFLAGS = -3002, "bad ai_flags value";
    EAI_BADHINTS = -3013, "invalid value for hints";
    EAI_CANCELED = -3003, "request canceled";
    EAI_FAIL = -3004, "permanent failure";
    EAI_FAMILY = -3005, "ai_family not supported";
    EAI_MEMORY = -3006, "out of memory";
    EAI_NODATA = -3007, "no address";
    EAI_NONAME = -3008, "unknown node or service";
    EAI_OVERFLOW = -3009, "argument buffer overflow";
    EAI_PROTOCOL = -3014, "resolved protocol is unknown";
    EAI_SERVICE = -3010, "service not available for socket type";
    EAI_SOCKTYPE = -3011, "socket type not supported";
    EALREADY = -libc::EALREADY, "connection already in progress";
    EBADF = -libc::EBADF, "bad file descriptor";
    EBUSY = -libc::EBUSY, "resource busy or locked";
    ECANCELED = -libc::ECANCELED, "operation canceled";
    ECHARSET = -4080, "invalid Unicode character";
    ECONNABORTED = -libc::ECONNABORTED, "software caused connection abort";
    ECONNREFUSED = -libc::ECONNREFUSED, "connection refused";
    ECONNRESET = -libc::ECONNRESET, "connection reset by peer";
    EDESTADDRREQ = -libc::EDESTADDRREQ, "destination address required";
    EEXIST = -libc::EEXIST, "file already exists";
    EFAULT = -libc::EFAULT, "bad address in system call argument";
    EFBIG = -libc::EFBIG, "file too large";
    EHOSTUNREACH = -libc::EHOSTUNREACH, "host is unreachable";
    EINTR = -libc::EINTR, "interrupted system call";
    EINVAL = -libc::EINVAL, "invalid argument";
    EIO = -libc::EIO, "i/o error";
    EISCONN = -libc::EISCONN, "socket is already connected";
    EISDIR = -libc::EISDIR, "illegal operation on a directory";
    ELOOP = -libc::ELOOP, "too many symbolic links encountered";
    EMFILE = -libc::EMFILE, "too many open files";
    EMSGSIZE = -libc::EMSGSIZE, "message too long";
    ENAMETOOLONG = -libc::ENAMETOOLONG, "name too long";
    ENETDOWN = -libc::ENETDOWN, "network is down";
    ENETUNREACH = -libc::ENETUNREACH, "network is unreachable";
    ENFILE = -libc::ENFILE, "file table overflow";
    ENOBUFS = -libc::ENOBUFS, "no buffer space available";
    ENODEV = -libc::ENODEV, "no such device";
    ENOENT = -libc::ENOENT, "no such file or directory";
    ENOMEM = -libc::ENOMEM, "not enough memory";
    ENONET = -libc::ENONET, "machine is not on the network";
    ENOPROTOOPT = -libc::ENOPROTOOPT, "protocol not available";
    ENOSPC = -libc::ENOSPC, "no space left on device";
    ENOSYS = -libc::ENOSYS, "function not implemented";
    ENOTCONN = -libc::ENOTCONN, "socket is not connected";
    ENOTDIR = -libc::ENOTDIR, "not a directory";
    ENOTEMPTY = -libc::ENOTEMPTY, "directory not empty";
    ENOTSOCK = -libc::ENOTSOCK, "socket operation on non-socket";
    ENOTSUP = -libc::ENOTSUP, "operation not supported on socket";
    EOVERFLOW = -libc::EOVERFLOW, "value too large for defined data type";
    EPERM = -libc::EPERM, "operation not permitted";
    EPIPE = -libc::EPIPE, "broken pipe";
    EPROTO = -libc::EPROTO, "protocol error";
    EPROTONOSUPPORT = -libc::EPROTONOSUPPORT, "protocol not supported";
    EPROTOTYPE = -libc::EPROTOTYPE, "protocol wrong type for socket";
    ERANGE = -libc::ERANGE, "result too large";
    EROFS = -libc::EROFS, "read-only file system";
    ESHUTDOWN = -libc::ESHUTDOWN, "cannot send after transport endpoint shutdown";
    ESPIPE = -libc::ESPIPE, "invalid seek";
    ESRCH = -libc::ESRCH, "no such process";
    ETIMEDOUT = -libc::ETIMEDOUT, "connection timed out";
    ETXTBSY = -libc::ETXTBSY, "text file is busy";
    EXDEV = -libc::EXDEV, "cross-device link not permitted";
    UNKNOWN = -4094, "unknown error";
    EOF = -4095, "end of file";
    ENXIO = -libc::ENXIO, "no such device or address";
    EMLINK = -libc::EMLINK, "too many links";
    EHOSTDOWN = -libc::EHOSTDOWN, "host is down";
    EREMOTEIO = -libc::EREMOTEIO, "remote I/O error";
    ENOTTY = -libc::ENOTTY, "inappropriate ioctl for device";
    EFTYPE = -4028, "inappropriate file type or format";
    EILSEQ = -libc::EILSEQ, "illegal byte sequence";
    ESOCKTNOSUPPORT = -libc::ESOCKTNOSUPPORT, "socket type not supported";
    ENODATA = -libc::ENODATA, "no data available";
    EUNATCH = -libc::EUNATCH, "protocol driver not attached";
    ENOEXEC = -libc::ENOEXEC, "exec format error";
}

impl Errno {
    /// The error with this libuv code (negative), whether it has a name or not.
    pub const fn from_code(code: i32) -> Errno {
        Errno(code)
    }

    /// The error that the calling thread's last failed libc call left behind.
    pub fn last() -> Errno {
        std::io::Error::last_os_error().into()
    }

    /// Whether the kernel has no room at the moment for the data to be sent.
    pub fn is_full(self) -> bool {
        matches!(self, Errno::EAGAIN | Errno::ENOBUFS)
    }

    /// The error for a sender that does not wait: `EAGAIN` where the kernel has no room.
    pub fn full_is_again(self) -> Errno {
        match self.is_full() {
            true => Errno::EAGAIN,
            false => self,
        }
    }

    /// The symbolic name, or `None` for a code that libuv does not name.
    pub fn name(self) -> Option<&'static str> {
        self.name_c()?.to_str().ok()
    }

    /// The message, or `None` for a code that libuv does not name.
    pub fn message(self) -> Option<&'static str> {
        self.message_c()?.to_str().ok()
    }

    /// libuv's number for this error, which is negative.
    pub const fn code(self) -> i32 {
        self.0
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name(), self.message()) {
            (Some(name), Some(message)) => write!(f, "{name}: {message}"),
            _ => write!(f, "Unknown system error {}", self.0),
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "Errno({})", self.0),
        }
    }
}

impl std::error::Error for Errno {}

impl From<std::io::Error> for Errno {
    fn from(error: std::io::Error) -> Errno {
        Errno(error.raw_os_error().map_or(Errno::UNKNOWN.0, |code| -code))
    }
}

impl From<rustix::io::Errno> for Errno {
    fn from(error: rustix::io::Errno) -> Errno {
        Errno(-error.raw_os_error())
    }
}

impl From<std::collections::TryReserveError> for Errno {
    fn from(_: std::collections::TryReserveError) -> Errno {
        Errno::ENOMEM
    }
}

impl From<Errno> for std::io::Error {
    fn from(error: Errno) -> std::io::Error {
        if error.0 > -3000 {
            std::io::Error::from_raw_os_error(-error.0)
        } else if error == Errno::EOF {
            std::io::ErrorKind::UnexpectedEof.into()
        } else {
            std::io::Error::other(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_are_unique() {
        for (i, a) in Errno::ALL.iter().enumerate() {
            for b in &Errno::ALL[i + 1..] {
                assert_ne!(a.code(), b.code(), "{a} and {b}");
            }
        }
    }

    #[test]
    fn unknown_codes_have_no_name_but_print() {
        let error = Errno::from_code(-99_999);
        assert_eq!(error.name(), None);
        assert_eq!(error.message(), None);
        assert_eq!(error.to_string(), "Unknown system error -99999");
    }

    #[test]
    fn converts_to_and_from_io_errors() {
        let io: std::io::Error = Errno::EAGAIN.into();
        assert_eq!(io.kind(), std::io::ErrorKind::WouldBlock);
        assert_eq!(Errno::from(io), Errno::EAGAIN);
        let eof: std::io::Error = Errno::EOF.into();
        assert_eq!(eof.kind(), std::io::ErrorKind::UnexpectedEof);
    }
}
