//! `uv_getaddrinfo` and `uv_getnameinfo`, as C sees them, without any network.

#[path = "support/event_loop.rs"]
mod event_loop;
#[path = "support/pool.rs"]
mod pool;

use event_loop::alone;
use libc::{addrinfo, sockaddr_in, sockaddr_in6};
use pool::*;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr::{null, null_mut};
use std::sync::Barrier;

/// What came of a lookup: the status, and the addresses with their ports.
#[derive(PartialEq, Debug, Default)]
struct Found(Vec<(c_int, Vec<(IpAddr, u16)>)>);

fn hints(flags: c_int, family: c_int, socktype: c_int) -> addrinfo {
    // SAFETY: all zeros is what unused hints are to be.
    let mut hints: addrinfo = unsafe { std::mem::zeroed() };
    (hints.ai_flags, hints.ai_family, hints.ai_socktype) = (flags, family, socktype);
    hints
}

/// # Safety
///
/// The list is null or fresh from `uv_getaddrinfo`.
unsafe fn addresses(mut list: *const addrinfo) -> Vec<(IpAddr, u16)> {
    let mut found = Vec::new();
    // SAFETY: the caller vouches for the list; addresses are as their families say.
    unsafe {
        while let Some(entry) = list.as_ref() {
            found.push(match entry.ai_family {
                libc::AF_INET => {
                    let address = &*entry.ai_addr.cast::<sockaddr_in>();
                    let ip = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
                    (ip.into(), u16::from_be(address.sin_port))
                }
                libc::AF_INET6 => {
                    let address = &*entry.ai_addr.cast::<sockaddr_in6>();
                    let ip = Ipv6Addr::from(address.sin6_addr.s6_addr);
                    (ip.into(), u16::from_be(address.sin6_port))
                }
                family => panic!("family {family}"),
            });
            list = entry.ai_next;
        }
    }
    found
}

unsafe extern "C" fn found(req: *mut Request, status: c_int, list: *mut addrinfo) {
    // SAFETY: the tests put a cell into the request; the list is for us to free.
    unsafe {
        assert_eq!((*req).addrinfo(), list, "the field that programs read");
        assert_eq!(list.is_null(), status != 0);
        let cell = Request::data::<RefCell<Found>>(req);
        cell.borrow_mut().0.push((status, addresses(list)));
        uv_freeaddrinfo(list);
    }
}

fn as_ptr(text: &Option<CString>) -> *const c_char {
    text.as_ref().map_or(null(), |text| text.as_ptr())
}

/// Looks up the same in both ways, which must agree; the code, or what was found.
fn lookup(
    node: Option<&[u8]>,
    service: Option<&str>,
    hints: Option<addrinfo>,
) -> Result<Vec<(IpAddr, u16)>, c_int> {
    let node = node.map(|node| CString::new(node).unwrap());
    let service = service.map(|service| CString::new(service).unwrap());
    let hints_ptr = hints.as_ref().map_or(null(), |hints| hints);
    let mut sync = Request::new();
    // SAFETY: everything lives through the call, which does not use the loop.
    let (code, list) = unsafe {
        let (node, service) = (as_ptr(&node), as_ptr(&service));
        let code = uv_getaddrinfo(null_mut(), &mut sync, None, node, service, hints_ptr);
        let list = match code {
            0 => addresses(sync.addrinfo()),
            _ => Vec::new(),
        };
        if code == 0 {
            uv_freeaddrinfo(sync.addrinfo());
        }
        (code, list)
    };
    let mut lp = new_loop();
    let cell = RefCell::new(Found::default());
    let mut request = Request::with_data(&cell);
    // SAFETY: the request lives until the loop has run; the rest only up to the call.
    let started = unsafe {
        let (node_ptr, service_ptr) = (as_ptr(&node), as_ptr(&service));
        uv_getaddrinfo(
            &mut *lp,
            &mut request,
            Some(found),
            node_ptr,
            service_ptr,
            hints_ptr,
        )
    };
    drop((node, service, hints));
    run(&mut lp);
    close(lp);
    let told = cell.into_inner().0;
    match started {
        0 => assert_eq!(told, [(code, list.clone())], "both ways are the same"),
        refused => assert_eq!((refused, told), (code, vec![])),
    }
    match code {
        0 => Ok(list),
        code => Err(code),
    }
}

fn name(node: &str) -> Option<&[u8]> {
    Some(node.as_bytes())
}

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

#[test]
fn addresses_in_numbers() {
    let _alone = alone();
    let stream = hints(0, libc::AF_UNSPEC, libc::SOCK_STREAM);
    let found = lookup(name("127.0.0.1"), Some("80"), Some(stream));
    assert_eq!(found, Ok(vec![(LOCAL, 80)]));
    let found = lookup(name("::1"), None, Some(stream));
    assert_eq!(found, Ok(vec![(Ipv6Addr::LOCALHOST.into(), 0)]));
    // Full stops of other scripts are full stops.
    let found = lookup(name("127。0．0｡1"), Some("65535"), Some(stream));
    assert_eq!(found, Ok(vec![(LOCAL, 65535)]));
    let passive = hints(libc::AI_PASSIVE, libc::AF_INET, libc::SOCK_DGRAM);
    let found = lookup(None, Some("7"), Some(passive));
    assert_eq!(found, Ok(vec![(Ipv4Addr::UNSPECIFIED.into(), 7)]));
    // Each type of socket once; musl leaves out raw ones.
    let types = if cfg!(target_env = "musl") { 2 } else { 3 };
    let found = lookup(name("127.0.0.1"), None, None).unwrap();
    assert_eq!(found.len(), types, "no hints: all types");
}

#[test]
fn errors_in_libuvs_numbers() {
    let _alone = alone();
    let numeric = |family, socktype| Some(hints(libc::AI_NUMERICHOST, family, socktype));
    let ask = |node, service, hints| lookup(name(node), service, hints).unwrap_err();
    assert_eq!(lookup(None, None, None), Err(-libc::EINVAL));
    assert_eq!(ask("", Some("80"), None), -libc::EINVAL);
    assert_eq!(ask("localhost", None, numeric(0, 0)), UV_EAI_NONAME);
    assert_eq!(ask("127.0.0.1", None, numeric(999, 0)), -3005, "EAI_FAMILY");
    // musl asks for no type of socket where there is no service.
    #[cfg(not(target_env = "musl"))]
    assert_eq!(
        ask("127.0.0.1", None, numeric(0, 77)),
        -3011,
        "EAI_SOCKTYPE"
    );
    assert_eq!(
        ask("127.0.0.1", None, Some(hints(c_int::MAX, 0, 0))),
        -3002,
        "EAI_BADFLAGS"
    );
    // EAI_ADDRFAMILY; musl has no name like that in this family.
    let expected = match cfg!(target_env = "musl") {
        true => UV_EAI_NONAME,
        false => -3000,
    };
    let found = ask("127.0.0.1", None, numeric(libc::AF_INET6, 0));
    assert_eq!(found, expected);
    let service = ask(
        "127.0.0.1",
        Some("no such thing"),
        numeric(0, libc::SOCK_STREAM),
    );
    assert_eq!(service, -3010, "EAI_SERVICE");
    // SAFETY: a request that is not there is refused before it is looked at.
    unsafe {
        let refused = uv_getaddrinfo(
            null_mut(),
            null_mut::<uv_getaddrinfo_t>(),
            None,
            c"a".as_ptr(),
            null(),
            null(),
        );
        assert_eq!(refused, -libc::EINVAL);
        uv_freeaddrinfo(null_mut());
    }
}

/// A name that is cut is the name of somebody else: CVE-2024-24806.
#[test]
fn a_name_is_never_cut() {
    let _alone = alone();
    let numeric = Some(hints(libc::AI_NUMERICHOST, 0, 0));
    let ask = |name: &[u8]| lookup(Some(name), None, numeric).unwrap_err();
    assert_eq!(ask(&[b'1'; 255]), UV_EAI_NONAME, "the resolver was asked");
    for len in [256, 257, 300, 1024, 100_000] {
        assert_eq!(ask(&vec![b'1'; len]), -libc::EINVAL);
        let mut zeros = vec![b'0'; len];
        zeros[..9].copy_from_slice(b"127.0.0.1");
        zeros[9] = b'.';
        assert_eq!(ask(&zeros), -libc::EINVAL);
    }
    assert_eq!(ask("ü.".repeat(60).as_bytes()), -libc::EINVAL);
    for bad in [
        &b"\xC0\x80"[..],
        b"\xFF",
        b"a\xED\xA0\x80.com",
        b"127.0.0.1\xC2",
    ] {
        assert_eq!(ask(bad), -libc::EINVAL);
    }
}

unsafe extern "C" fn named(
    req: *mut Request,
    status: c_int,
    host: *const c_char,
    service: *const c_char,
) {
    // SAFETY: the test puts a cell into the request; the texts are there on success.
    unsafe {
        let text = |text: *const c_char| match text.is_null() {
            true => String::new(),
            false => CStr::from_ptr(text).to_str().unwrap().to_owned(),
        };
        let cell = Request::data::<RefCell<Vec<(c_int, String, String)>>>(req);
        cell.borrow_mut().push((status, text(host), text(service)));
        if status == 0 {
            assert_eq!((*req).names(), (text(host), text(service)));
        }
    }
}

#[test]
fn names_of_addresses() {
    let _alone = alone();
    let mut lp = new_loop();
    // SAFETY: all zeros is an address of no family.
    let (mut four, mut six): (sockaddr_in, sockaddr_in6) = unsafe { std::mem::zeroed() };
    let numbers = libc::NI_NUMERICHOST | libc::NI_NUMERICSERV;
    let told = RefCell::new(Vec::<(c_int, String, String)>::new());
    let mut request = Request::with_data(&told);
    let ask =
        |lp: &mut uv_loop_t, request: &mut Request, address: *const libc::sockaddr, flags, cb| {
            // SAFETY: the address is valid for its family, and the request lives long enough.
            unsafe { uv_getnameinfo(lp, request, cb, address, flags) }
        };
    let four_ptr = &raw const four as *const libc::sockaddr;
    assert_eq!(
        ask(&mut lp, &mut request, null(), 0, Some(named as NameInfoCb)),
        -libc::EINVAL
    );
    assert_eq!(
        ask(&mut lp, &mut request, four_ptr, 0, None),
        -libc::EINVAL,
        "no family"
    );
    four.sin_family = libc::AF_INET as _;
    four.sin_port = 80u16.to_be();
    six.sin6_family = libc::AF_INET6 as _;
    six.sin6_addr.s6_addr[15] = 1;
    let (four_ptr, six_ptr) = (
        &raw const four as *const libc::sockaddr,
        &raw const six as *const libc::sockaddr,
    );
    assert_eq!(ask(&mut lp, &mut request, four_ptr, numbers, None), 0);
    assert_eq!(request.names(), ("0.0.0.0".into(), "80".into()));
    // musl refuses no flags.
    #[cfg(not(target_env = "musl"))]
    assert_eq!(
        ask(&mut lp, &mut request, six_ptr, c_int::MAX, None),
        -3002,
        "EAI_BADFLAGS"
    );
    assert_eq!(ask(&mut lp, &mut request, six_ptr, numbers, Some(named)), 0);
    // The address was copied.
    six.sin6_addr.s6_addr[15] = 2;
    std::hint::black_box(&six);
    run(&mut lp);
    close(lp);
    assert_eq!(told.into_inner(), [(0, "::1".into(), "0".into())]);
}

unsafe extern "C" fn hold(req: *mut Request) {
    // SAFETY: the test puts a barrier into the request.
    let gate = unsafe { Request::data::<Barrier>(req) };
    gate.wait();
    gate.wait();
}

#[test]
fn a_cancelled_lookup_says_so() {
    let _alone = alone();
    let mut lp = new_loop();
    let gate = Barrier::new(5);
    let mut held: [Request; 4] = std::array::from_fn(|_| Request::with_data(&gate));
    let cell = RefCell::new(Found::default());
    let names = RefCell::new(Vec::<(c_int, String, String)>::new());
    let mut address = Request::with_data(&cell);
    let mut name = Request::with_data(&names);
    // SAFETY: everything lives until the loop has run.
    unsafe {
        for request in &mut held {
            assert_eq!(uv_queue_work(&mut *lp, request, Some(hold), None), 0);
        }
        gate.wait();
        let host = c"cancelled.invalid".as_ptr();
        let hints = hints(0, 0, 0);
        assert_eq!(
            uv_getaddrinfo(&mut *lp, &mut address, Some(found), host, host, &hints),
            0
        );
        let mut from: sockaddr_in = std::mem::zeroed();
        from.sin_family = libc::AF_INET as _;
        let from = &raw const from;
        assert_eq!(uv_getnameinfo(&mut *lp, &mut name, Some(named), from, 0), 0);
        assert_eq!(uv_cancel(&mut address), 0);
        assert_eq!(uv_cancel(&mut name), 0);
        gate.wait();
    }
    run(&mut lp);
    close(lp);
    assert_eq!(cell.into_inner().0, [(UV_EAI_CANCELED, vec![])]);
    assert_eq!(
        names.into_inner(),
        [(UV_EAI_CANCELED, String::new(), String::new())]
    );
}
