//! Users and groups.
//!
//! Each `get` fills one piece of memory, at the address of the name. Freeing it leaves null behind,
//! so that a second free is harmless.

use crate::engine::code;
use crate::packed::Packed;
use crate::{alloc, text};
use blacklight_engine::Errno;
use blacklight_sys::user::{Group, User};
use std::ffi::{c_char, c_int, c_ulong};
use std::ptr::null_mut;

/// A user.
#[repr(C)]
pub struct uv_passwd_t {
    username: *mut c_char,
    uid: c_ulong,
    gid: c_ulong,
    shell: *mut c_char,
    homedir: *mut c_char,
}

/// A group.
#[repr(C)]
pub struct uv_group_t {
    groupname: *mut c_char,
    gid: c_ulong,
    members: *mut *mut c_char,
}

/// # Safety
///
/// `passwd` has room for a user.
unsafe fn fill_passwd(passwd: *mut uv_passwd_t, user: User) -> Result<(), Errno> {
    let bytes = user.name.len() + user.home.len() + user.shell.len() + 3;
    let memory = alloc::malloc(bytes).cast::<c_char>();
    if memory.is_null() {
        return Err(Errno::ENOMEM);
    }
    // SAFETY: the memory has room for the three texts; the caller guarantees `passwd`.
    unsafe {
        let homedir = memory.add(user.name.len() + 1);
        let shell = homedir.add(user.home.len() + 1);
        text::write(memory, &user.name);
        text::write(homedir, &user.home);
        text::write(shell, &user.shell);
        passwd.write(uv_passwd_t {
            username: memory,
            uid: user.uid.into(),
            gid: user.gid.into(),
            shell,
            homedir,
        });
    }
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_os_get_passwd(passwd: *mut uv_passwd_t) -> c_int {
    if passwd.is_null() {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller passes room for a user.
    code(User::effective().and_then(|user| unsafe { fill_passwd(passwd, user) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_os_get_passwd2(passwd: *mut uv_passwd_t, uid: libc::uid_t) -> c_int {
    if passwd.is_null() {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller passes room for a user.
    code(User::of(uid).and_then(|user| unsafe { fill_passwd(passwd, user) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_os_free_passwd(passwd: *mut uv_passwd_t) {
    // SAFETY: the caller passes null, or a struct that one of the functions above has filled.
    unsafe {
        let Some(passwd) = passwd.as_mut() else {
            return;
        };
        alloc::free(passwd.username.cast());
        passwd.username = null_mut();
        passwd.shell = null_mut();
        passwd.homedir = null_mut();
    }
}

/// # Safety
///
/// `group` has room for a group.
unsafe fn fill_group(group: *mut uv_group_t, found: Group) -> Result<(), Errno> {
    let texts = || std::iter::once(&found.name).chain(&found.members);
    let bytes = texts().map(|text| text.len() + 1).sum();
    // The members, and null at their end; the group's name follows.
    let mut packed = Packed::new(found.members.len() + 1, bytes)?;
    let groupname = packed.text(&found.name);
    for member in &found.members {
        let member = packed.text(member);
        packed.push(member);
    }
    packed.push(null_mut());
    // SAFETY: the caller upholds the contract.
    unsafe {
        group.write(uv_group_t {
            groupname,
            gid: found.gid.into(),
            members: packed.finish(),
        });
    }
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_os_get_group(group: *mut uv_group_t, gid: libc::uid_t) -> c_int {
    if group.is_null() {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller passes room for a group.
    code(Group::of(gid).and_then(|found| unsafe { fill_group(group, found) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_os_free_group(group: *mut uv_group_t) {
    // SAFETY: the caller passes null, or a struct that the function above has filled.
    unsafe {
        let Some(group) = group.as_mut() else {
            return;
        };
        alloc::free(group.members.cast());
        group.groupname = null_mut();
        group.members = null_mut();
    }
}
