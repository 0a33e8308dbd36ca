//! `uv_guess_handle`: what kind of handle suits a descriptor.

use crate::abi::{UV_FILE, UV_NAMED_PIPE, UV_TCP, UV_TTY, UV_UDP, UV_UNKNOWN_HANDLE};
use blacklight_sys::{fd, socket};
use std::ffi::c_int;

#[unsafe(no_mangle)]
pub(crate) extern "C" fn uv_guess_handle(file: c_int) -> c_int {
    if fd::is_terminal(file) {
        return UV_TTY;
    }
    match fd::file_type(file) {
        Ok(libc::S_IFREG | libc::S_IFCHR) => UV_FILE,
        Ok(libc::S_IFIFO) => UV_NAMED_PIPE,
        Ok(libc::S_IFSOCK) => guess_socket(file),
        _ => UV_UNKNOWN_HANDLE,
    }
}

fn guess_socket(file: c_int) -> c_int {
    let kind = socket::option(file, libc::SOL_SOCKET, libc::SO_TYPE);
    let family = socket::local_address(file).map(|address| address.family());
    match (kind, family) {
        (Ok(libc::SOCK_DGRAM), Ok(libc::AF_INET | libc::AF_INET6)) => UV_UDP,
        (Ok(libc::SOCK_STREAM), Ok(libc::AF_INET | libc::AF_INET6)) => UV_TCP,
        (Ok(libc::SOCK_STREAM), Ok(libc::AF_UNIX)) => UV_NAMED_PIPE,
        _ => UV_UNKNOWN_HANDLE,
    }
}
