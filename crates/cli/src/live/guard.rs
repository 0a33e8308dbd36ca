//! Who may have what: every request goes through [`route`] before anything else is done with it.
//!
//! A page of another origin can send requests to any port of this machine, and by a name of its own that leads here (DNS rebinding) it
//! could read the answers. So the host must be one of this machine's names with the right port, the origin must be the page's own where
//! there is one, and the path must begin with a token that only the user was told.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};

/// What is served.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Route {
    /// The key that opens the page once: leads on to the page.
    Open,
    /// A file of the page.
    File(&'static File),
    /// The stream of documents of a process and its descendants, or of no process; and from which time on, if that is in the past.
    Events(Option<u32>, Option<u64>),
    /// A trace of a process between two times.
    Trace(u32, u64, u64),
}

/// A file of the page.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct File {
    pub(super) name: &'static str,
    pub(super) kind: &'static str,
    pub(super) bytes: &'static [u8],
}

/// The files of the page, as `cargo xtask page` has built them from `web`.
pub(super) const FILES: [File; 4] = [
    File {
        name: "",
        kind: "text/html; charset=utf-8",
        bytes: include_bytes!("page/index.html"),
    },
    File {
        name: "page.js",
        kind: "text/javascript; charset=utf-8",
        bytes: include_bytes!("page/page.js"),
    },
    File {
        name: "page.css",
        kind: "text/css; charset=utf-8",
        bytes: include_bytes!("page/page.css"),
    },
    File {
        name: "page.svg",
        kind: "image/svg+xml",
        bytes: include_bytes!("page/page.svg"),
    },
];

/// The answer to whoever shows no secret that opens anything.
pub(super) const MISSING: (StatusCode, &str) = (StatusCode::NOT_FOUND, "there is nothing here");

/// Headers of every answer. The page loads nothing from elsewhere, runs no script but its own, makes no markup from text, and is in no frame.
pub(super) const HEADERS: [(&str, &str); 7] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// The headers as hyper has them.
pub(super) fn headers() -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    HEADERS.into_iter().map(|(name, value)| {
        (
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )
    })
}

/// What is secret, and what requests are compared with.
pub(super) struct Guard {
    pub(super) port: u16,
    pub(super) token: String,
    /// Opens the page once; other users can see it in the arguments of the browser.
    pub(super) once: String,
}

/// Compares without telling by its time how much is equal.
fn is_equal(one: &str, other: &str) -> bool {
    let pairs = one.bytes().zip(other.bytes());
    one.len() == other.len() && pairs.fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

impl Guard {
    /// What a request gets, or the status and the sentence with which it is turned away.
    pub(super) fn route(
        &self,
        (method, path, query): (&Method, &str, Option<&str>),
        headers: &HeaderMap,
    ) -> Result<Route, (StatusCode, &'static str)> {
        self.check_host(headers)?;
        let mut parts = path.strip_prefix('/').unwrap_or_default().splitn(2, '/');
        let token = parts.next().unwrap_or_default();
        let Some(name) = parts.next() else {
            return Err(MISSING);
        };
        let is_once = token == "open" && !self.once.is_empty() && is_equal(name, &self.once);
        if !is_once && !is_equal(token, &self.token) {
            return Err(MISSING);
        }
        if method != Method::GET {
            let sentence = "nothing here can be changed: the method must be GET";
            return Err((StatusCode::METHOD_NOT_ALLOWED, sentence));
        }
        let number = |name: &str| {
            let mut pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name)?.1.parse::<u64>().ok()
        };
        let pid = number("pid").and_then(|pid| u32::try_from(pid).ok());
        match name {
            _ if is_once => Ok(Route::Open),
            "events" => {
                // A browser that connects anew says by itself up to when it knows all.
                let last = headers.get("last-event-id");
                let last = last.and_then(|last| last.to_str().ok()?.parse().ok());
                Ok(Route::Events(
                    pid,
                    number("past").map(|from| last.unwrap_or(from)),
                ))
            }
            "trace" => match (pid, number("from"), number("to")) {
                (Some(pid), Some(from), Some(to)) if from < to => Ok(Route::Trace(pid, from, to)),
                _ => Err((
                    StatusCode::BAD_REQUEST,
                    "a trace is of a process and a range",
                )),
            },
            name => match FILES.iter().find(|file| file.name == name) {
                Some(file) => Ok(Route::File(file)),
                None => Err(MISSING),
            },
        }
    }

    fn check_host(&self, headers: &HeaderMap) -> Result<(), (StatusCode, &'static str)> {
        let port = self.port;
        let own = ["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}:{port}"));
        let mut hosts = headers.get_all("host").iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().unwrap_or_default(),
            _ => "",
        };
        if !own.iter().any(|own| own == host) {
            return Err((
                StatusCode::FORBIDDEN,
                "this is not the name of this machine",
            ));
        }
        let mut origins = headers.get_all("origin").iter();
        let own = format!("http://{host}");
        match (origins.next(), origins.next()) {
            (None, _) => Ok(()),
            (Some(origin), None) if origin == own.as_str() => Ok(()),
            _ => Err((StatusCode::FORBIDDEN, "another page may not have this")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> Guard {
        Guard {
            port: 9000,
            token: "secret".into(),
            once: "once".into(),
        }
    }

    /// The status with which a request is turned away; 200 for others.
    fn status(method: &str, path: &str, headers: &[(&'static str, &str)]) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().expect("a value"));
        }
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path, None),
        };
        let method = method.parse().expect("a method");
        let route = guard().route((&method, path, query), &map);
        route.map_or_else(|(status, _)| status.as_u16(), |_| 200)
    }

    const HOST: (&str, &str) = ("host", "127.0.0.1:9000");

    #[test]
    fn only_names_of_this_machine_are_served() {
        for host in ["127.0.0.1:9000", "localhost:9000", "[::1]:9000"] {
            assert_eq!(status("GET", "/secret/", &[("host", host)]), 200, "{host}");
        }
        for host in [
            "evil.example:9000",
            "127.0.0.1",
            "127.0.0.1:90",
            "127.0.0.2:9000",
            "",
            "localhost:9000.x",
            "LOCALHOST:9000",
        ] {
            assert_eq!(status("GET", "/secret/", &[("host", host)]), 403, "{host}");
        }
        assert_eq!(status("GET", "/secret/", &[]), 403);
        assert_eq!(status("GET", "/secret/", &[HOST, ("host", "evil")]), 403);
    }

    #[test]
    fn only_the_page_itself_may_ask() {
        let ask = |origin| status("GET", "/secret/events?pid=1", &[HOST, ("origin", origin)]);
        assert_eq!(ask("http://127.0.0.1:9000"), 200);
        for origin in [
            "null",
            "http://evil.example",
            "http://localhost:9000",
            "https://127.0.0.1:9000",
            "http://127.0.0.1:9000.evil.example",
            "http://127.0.0.1:90",
        ] {
            assert_eq!(ask(origin), 403, "{origin}");
        }
        let two = [
            HOST,
            ("origin", "http://127.0.0.1:9000"),
            ("origin", "null"),
        ];
        assert_eq!(status("GET", "/secret/", &two), 403);
    }

    #[test]
    fn nothing_is_served_without_the_token() {
        for path in [
            "/",
            "",
            "/secret",
            "/Secret/",
            "/secre/",
            "/secrets/",
            "/wrong/events",
            "/page.js",
            "/open/",
            "/open/wrong",
            "/open/secret",
            "/%73ecret/",
            "//secret/",
            "/x/secret/",
        ] {
            assert_eq!(status("GET", path, &[HOST]), 404, "{path}");
        }
        for path in [
            "/secret/",
            "/secret/page.js",
            "/secret/page.css",
            "/open/once",
        ] {
            assert_eq!(status("GET", path, &[HOST]), 200, "{path}");
        }
        for path in [
            "/secret/x",
            "/secret/../secret/",
            "/secret//",
            "/secret/page.js/",
        ] {
            assert_eq!(status("GET", path, &[HOST]), 404, "{path}");
        }
        let spent = Guard {
            once: String::new(),
            ..guard()
        };
        let mut headers = HeaderMap::new();
        headers.append("host", HeaderValue::from_static("127.0.0.1:9000"));
        assert!(
            spent
                .route((&Method::GET, "/open/", None), &headers)
                .is_err()
        );
    }

    #[test]
    fn nothing_can_be_changed() {
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH"] {
            for path in ["/secret/", "/secret/events", "/open/once"] {
                assert_eq!(status(method, path, &[HOST]), 405, "{method}");
            }
            assert_eq!(status(method, "/wrong/", &[HOST]), 404, "{method}");
        }
    }

    #[test]
    fn a_stream_may_begin_in_the_past() {
        let route = |query, last: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.append("host", HeaderValue::from_static(HOST.1));
            headers.extend(last.map(|last| {
                let name = HeaderName::from_static("last-event-id");
                (name, HeaderValue::from_static(last))
            }));
            let asked = (&Method::GET, "/secret/events", Some(query));
            guard().route(asked, &headers)
        };
        for (query, last, events) in [
            ("pid=7", None, Route::Events(Some(7), None)),
            ("pid=7&past=0", None, Route::Events(Some(7), Some(0))),
            ("pid=7&past=0", Some("90"), Route::Events(Some(7), Some(90))),
            ("pid=7&past=5", Some("x"), Route::Events(Some(7), Some(5))),
            ("pid=7", Some("90"), Route::Events(Some(7), None)),
            ("past=-1", None, Route::Events(None, None)),
        ] {
            assert_eq!(route(query, last), Ok(events), "{query} {last:?}");
        }
    }

    #[test]
    fn a_trace_is_of_a_process_and_a_range() {
        assert_eq!(
            status("GET", "/secret/trace?pid=1&from=2&to=3", &[HOST]),
            200
        );
        for query in [
            "",
            "pid=1",
            "pid=1&from=3&to=3",
            "pid=-1&from=1&to=2",
            "pid=1&from=a&to=2",
        ] {
            assert_eq!(
                status("GET", &format!("/secret/trace?{query}"), &[HOST]),
                400,
                "{query}"
            );
        }
    }

    #[test]
    fn the_page_is_small_and_has_no_script_of_its_own_in_its_markup() {
        let size: usize = FILES.iter().map(|file| file.bytes.len()).sum();
        assert!(size < 200_000, "{size} bytes");
        let markup = std::str::from_utf8(FILES[0].bytes).expect("it is text");
        assert!(
            !markup.contains("http") && !markup.contains("style="),
            "{markup}"
        );
        assert!(
            !markup.contains("<script>") && !markup.contains("<style"),
            "{markup}"
        );
    }
}
