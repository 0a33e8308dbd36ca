//! The names of hosts, on their way to the resolver.
//!
//! Here the resolver is [`getaddrinfo`] below, which notes what it is asked for. A name is refused,
//! or asked for in ASCII, with no more than 255 bytes. A name that UTS #46 does not change is asked
//! for as the original does, and so is one that it does not allow; what it changes (capitals,
//! compatibility forms, compositions) the original encodes as it stands, so that the same host has
//! several names there. What is not UTF-8 is refused.

use crate::api::{Api, OURS};
use crate::input::Input;
use crate::original::compare_for;
use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use uv_binding::Room;

const UV_EAI_NONAME: c_int = -3008;

/// What names are made of.
const PARTS: &[&str] = &[
    ".", "a", "b", "-", "xn--", "com", "ü", "é", "日", "本", "ß", "A", "Ü", "。", "．", "｡", "💩",
    "\u{301}", "\u{200d}", "א", "ا", "1", "_", " ", "xn--tda", "ł", "я", "字", "aaaaaaaa", "م",
    "üüüü", "中文",
];

thread_local! {
    static ASKED: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Stands in for the C library's: finds nothing, and notes the name.
///
/// # Safety
///
/// `node` is null or ends in a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getaddrinfo(
    node: *const c_char,
    _service: *const c_char,
    _hints: *const libc::addrinfo,
    _found: *mut *mut libc::addrinfo,
) -> c_int {
    if !node.is_null() {
        // SAFETY: the caller vouches for it.
        let node = unsafe { CStr::from_ptr(node) };
        ASKED.set(Some(node.to_bytes().to_vec()));
    }
    libc::EAI_NONAME
}

/// What a library answers for a name, and what it asks the resolver for.
fn ask(api: &Api, name: &CStr) -> (c_int, Option<Vec<u8>>) {
    ASKED.set(None);
    let (mut loop_, mut request) = (Room::new(), Room::new());
    // SAFETY: without a callback nothing of the request is used after the call, and nothing of the
    // loop at all.
    let code = unsafe {
        let none = std::ptr::null();
        (api.uv_getaddrinfo)(
            loop_.ptr(),
            request.ptr(),
            None,
            name.as_ptr(),
            none,
            none.cast(),
        )
    };
    (code, ASKED.take())
}

/// Looks a name up.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let raw = input.flip();
    let name: Vec<u8> = match raw {
        true => input.rest().to_vec(),
        false => {
            let part = |&byte: &u8| PARTS[usize::from(byte) % PARTS.len()].as_bytes();
            input.rest().iter().flat_map(part).copied().collect()
        }
    };
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    let name = CString::new(name).expect("no NUL");
    let (code, asked) = ask(&OURS, &name);
    match &asked {
        Some(asked) => {
            assert_eq!(code, UV_EAI_NONAME, "what the resolver said");
            assert!(asked.is_ascii() && (1..=255).contains(&asked.len()));
            // What was put into ASCII once is left as it is.
            let asked = CString::new(asked.clone()).expect("no NUL");
            let again = ask(&OURS, &asked);
            assert_eq!(again, (code, Some(asked.into_bytes())));
        }
        None => assert_eq!(code, -libc::EINVAL),
    }
    let Ok(text) = name.to_str() else {
        // The original makes something of bytes that are not UTF-8.
        assert_eq!(asked, None);
        return;
    };
    match mapped(text) {
        Some(mapped) if mapped.len() <= 255 => assert_eq!(asked, Some(mapped)),
        Some(_) => assert_eq!(asked, None),
        None => drop(compare_for(&name, |api| ask(api, &name))),
    }
}

/// What UTS #46 makes of a name, if it is more than putting labels into Punycode.
fn mapped(text: &str) -> Option<Vec<u8>> {
    if text.is_ascii() {
        return None;
    }
    let mapped = Uts46::new()
        .to_ascii(
            text.as_bytes(),
            AsciiDenyList::EMPTY,
            Hyphens::Allow,
            DnsLength::Ignore,
        )
        .ok()?;
    let labels = text.split(['.', '\u{3002}', '\u{ff0e}', '\u{ff61}']);
    let plain = labels.map(|label| match label.is_ascii() {
        true => Some(label.to_owned()),
        false => Some(format!("xn--{}", idna::punycode::encode_str(label)?)),
    });
    let plain = plain.collect::<Option<Vec<_>>>()?.join(".");
    (plain != mapped).then(|| mapped.into_owned().into_bytes())
}
