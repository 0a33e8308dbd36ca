//! Users and groups: <https://man7.org/linux/man-pages/man3/getpwuid_r.3.html>,
//! <https://man7.org/linux/man-pages/man3/getgrgid_r.3.html>.

use crate::sync::check_number;
use crate::{Errno, fallible};
use std::ffi::{CStr, c_char, c_int};
use std::mem::MaybeUninit;

/// The first buffer size for an entry.
const FIRST_GUESS: usize = 1024;

/// A user of the system.
#[derive(Clone, Debug)]
pub struct User {
    /// The login name.
    pub name: Vec<u8>,
    /// The user's number.
    pub uid: u32,
    /// The number of the user's primary group.
    pub gid: u32,
    /// The login shell.
    pub shell: Vec<u8>,
    /// The home directory.
    pub home: Vec<u8>,
}

/// A group of the system.
#[derive(Clone, Debug)]
pub struct Group {
    /// The name.
    pub name: Vec<u8>,
    /// The group's number.
    pub gid: u32,
    /// The names of its members, except those whose primary group it is.
    pub members: Vec<Vec<u8>>,
}

/// Calls one of the C library's functions with growing buffers until one suffices. `ENOENT` if
/// there is no entry.
fn look_up<Entry, R>(
    call: impl Fn(*mut Entry, *mut c_char, usize, *mut *mut Entry) -> c_int,
    copy: impl FnOnce(&Entry) -> Result<R, Errno>,
) -> Result<R, Errno> {
    let mut room: Vec<c_char> = Vec::new();
    let mut size = FIRST_GUESS;
    loop {
        room.try_reserve_exact(size)?;
        let mut entry = MaybeUninit::uninit();
        let mut found = std::ptr::null_mut();
        match check_number(call(
            entry.as_mut_ptr(),
            room.as_mut_ptr(),
            size,
            &mut found,
        )) {
            Ok(()) if found.is_null() => return Err(Errno::ENOENT),
            // SAFETY: the function has filled the entry, whose texts are in `room`, which is still
            // alive.
            Ok(()) => return copy(unsafe { entry.assume_init_ref() }),
            Err(Errno::ERANGE) => size *= 2,
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// # Safety
///
/// `text` is null or a C string.
unsafe fn copied(text: *const c_char) -> Result<Vec<u8>, Errno> {
    match text.is_null() {
        true => Ok(Vec::new()),
        // SAFETY: the caller upholds the contract.
        false => fallible::copied(unsafe { CStr::from_ptr(text) }.to_bytes()),
    }
}

impl User {
    /// The user with that number, or `ENOENT`.
    pub fn of(uid: u32) -> Result<User, Errno> {
        look_up(
            // SAFETY: `look_up` passes valid pointers to an entry, `size` bytes and a pointer.
            |entry, room, size, found| unsafe { libc::getpwuid_r(uid, entry, room, size, found) },
            // SAFETY: the entry was filled, and its texts are C strings.
            |entry: &libc::passwd| unsafe {
                Ok(User {
                    name: copied(entry.pw_name)?,
                    uid: entry.pw_uid,
                    gid: entry.pw_gid,
                    shell: copied(entry.pw_shell)?,
                    home: copied(entry.pw_dir)?,
                })
            },
        )
    }

    /// The effective user of this process.
    pub fn effective() -> Result<User, Errno> {
        User::of(rustix::process::geteuid().as_raw())
    }
}

impl Group {
    /// The group with that number, or `ENOENT`.
    pub fn of(gid: u32) -> Result<Group, Errno> {
        look_up(
            // SAFETY: `look_up` passes valid pointers to an entry, `size` bytes and a pointer.
            |entry, room, size, found| unsafe { libc::getgrgid_r(gid, entry, room, size, found) },
            // SAFETY: the entry was filled, and its texts are C strings; a null ends the members.
            |entry: &libc::group| unsafe {
                let mut members = Vec::new();
                let mut member = entry.gr_mem;
                while !member.is_null() && !(*member).is_null() {
                    fallible::push(&mut members, copied(*member)?)?;
                    member = member.add(1);
                }
                Ok(Group {
                    name: copied(entry.gr_name)?,
                    gid: entry.gr_gid,
                    members,
                })
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_a_user_and_a_group() {
        let root = User::of(0).unwrap();
        assert_eq!(root.name, b"root");
        assert!(!root.home.is_empty());
        assert_eq!(Group::of(root.gid).unwrap().gid, root.gid);
    }

    #[test]
    fn an_unused_number_is_not_found() {
        assert_eq!(User::of(3_999_999_999).unwrap_err(), Errno::ENOENT);
        assert_eq!(Group::of(3_999_999_999).unwrap_err(), Errno::ENOENT);
    }

    #[test]
    fn more_room_is_offered_until_it_suffices() {
        let calls = std::cell::Cell::new(0);
        let found = look_up(
            |entry: *mut u8, _, size, found| {
                calls.set(calls.get() + 1);
                if size < 100_000 {
                    return libc::ERANGE;
                }
                // SAFETY: `look_up` passes valid pointers to both.
                unsafe {
                    *entry = 7;
                    *found = entry;
                }
                0
            },
            |entry| Ok(*entry),
        );
        assert_eq!(found, Ok(7));
        assert_eq!(calls.get(), 8);
    }
}
