//! Which web pages may use the door over HTTP, and under which names of this machine it is reached. Pure.
//!
//! A browser sends the page's origin with each request. Before the first one it asks, by a preflight that has no token, whether the
//! page may send it and read the answer.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, CACHE_CONTROL, HOST, ORIGIN, VARY,
};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use url::Url;

/// The names under which a machine reaches itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");

/// The headers of answers that a page may read.
const EXPOSED: HeaderValue = HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate");

/// How many seconds a browser may remember the answer to a preflight.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

const REQUEST_PRIVATE: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE: HeaderName = HeaderName::from_static("access-control-allow-private-network");
const YES: HeaderValue = HeaderValue::from_static("true");

/// The pages and names that are allowed.
#[derive(Debug)]
pub(crate) struct Allowed {
    pub(crate) origins: Vec<String>,
    pub(crate) hosts: Vec<String>,
    /// The door's own origins. It serves no pages, so they are of no foreign page.
    pub(crate) own: Vec<String>,
}

/// Where a request comes from.
#[derive(Debug, PartialEq)]
pub(crate) enum Source {
    /// A program, which sends no origin.
    Program,
    /// A page whose origin is listed.
    Page(HeaderValue),
    /// A page that may not use the door.
    Foreign,
}

impl Allowed {
    /// Whether the request names this machine as the configuration does. A page can make a browser look its own name up as the
    /// address of this machine, and then counts as of the same origin.
    pub(crate) fn host<B>(&self, request: &Request<B>) -> bool {
        let header = request.headers().get(HOST).and_then(|host| host.to_str().ok());
        let named = match header {
            Some(host) => host.parse().ok(),
            None => request.uri().authority().cloned(),
        };
        let Some(named) = named else { return false };
        let is = |allowed: &str| {
            allowed
                .trim()
                .parse::<Authority>()
                .is_ok_and(|allowed| is_within(&named, &allowed))
        };
        LOOPBACK.iter().any(|host| is(host)) || self.hosts.iter().any(|host| is(host))
    }

    /// Finds out where a request comes from.
    pub(crate) fn source(&self, headers: &HeaderMap) -> Source {
        let mut origins = headers.get_all(ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (None, _) => Source::Program,
            (Some(origin), None) => {
                let text = origin.to_str().unwrap_or_default();
                if self.origins.iter().any(|allowed| permits(allowed, text)) {
                    Source::Page(origin.clone())
                } else if self.own.iter().any(|own| permits(own, text)) {
                    Source::Program
                } else {
                    Source::Foreign
                }
            }
            (Some(_), Some(_)) => Source::Foreign,
        }
    }
}

impl Source {
    /// Lets the page read an answer.
    pub(crate) fn permit(&self, headers: &mut HeaderMap) {
        headers.append(VARY, HeaderValue::from_static("Origin"));
        if let Self::Page(origin) = self {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
            // No answer is for a browser's cache. Chromium also sends a DELETE twice while it has an aborted stream there.
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
    }

    /// Lets the page send what it asks for in a preflight.
    pub(crate) fn permit_sending(&self, asked: &HeaderMap, headers: &mut HeaderMap) {
        if !matches!(self, Self::Page(_)) {
            return;
        }
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        if let Some(wanted) = asked.get(ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
        }
        if asked.contains_key(REQUEST_PRIVATE) {
            headers.insert(ALLOW_PRIVATE, YES);
        }
    }
}

/// Whether a request is a preflight.
pub(crate) fn is_preflight<B>(request: &Request<B>) -> bool {
    request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Whether a name is the allowed one. Without a port, every port is allowed.
fn is_within(named: &Authority, allowed: &Authority) -> bool {
    named.host().eq_ignore_ascii_case(allowed.host())
        && allowed
            .port_u16()
            .is_none_or(|port| named.port_u16() == Some(port))
}

/// Whether an entry of the configuration stands for an origin. Without a port, and with `:*`, every port is allowed.
fn permits(allowed: &str, origin: &str) -> bool {
    let allowed = allowed.trim().trim_end_matches('/');
    if allowed == origin {
        return true;
    }
    let any_port = allowed.strip_suffix(":*");
    let (Ok(entry), Ok(origin)) = (Url::parse(any_port.unwrap_or(allowed)), Url::parse(origin)) else {
        return false;
    };
    let names_port = any_port.is_none()
        && allowed
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    entry.host_str().is_some()
        && entry.scheme() == origin.scheme()
        && entry.host_str() == origin.host_str()
        && (!names_port || entry.port_or_known_default() == origin.port_or_known_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> Allowed {
        Allowed {
            origins: [
                "http://localhost:3000",
                "https://app.test",
                "http://lan.test:*",
                "null",
            ]
            .map(str::to_owned)
            .to_vec(),
            hosts: ["robot.test", "other.test:8765"].map(str::to_owned).to_vec(),
            own: vec!["http://127.0.0.1:8765".to_owned()],
        }
    }

    #[test]
    fn only_listed_pages_read_answers() {
        for (origin, expected) in [
            ("http://localhost:3000", true),
            ("http://LOCALHOST:3000", true),
            ("http://localhost:3001", false),
            ("https://localhost:3000", false),
            ("https://app.test", true),
            ("https://app.test:8443", true),
            ("http://app.test", false),
            ("https://app.test.evil.test", false),
            ("https://evil.test/app.test", false),
            ("http://lan.test", true),
            ("http://lan.test:81", true),
            ("null", true),
            ("*", false),
            ("", false),
            ("file://", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ORIGIN, HeaderValue::from_str(origin).expect("a header"));
            let source = allowed().source(&headers);
            assert_eq!(
                matches!(source, Source::Page(_)),
                expected,
                "{origin}: {source:?}"
            );
            let mut answer = HeaderMap::new();
            source.permit(&mut answer);
            source.permit_sending(&headers, &mut answer);
            let read = answer.get(ACCESS_CONTROL_ALLOW_ORIGIN);
            assert_eq!(
                read,
                expected
                    .then(|| HeaderValue::from_str(origin).expect("it"))
                    .as_ref()
            );
            assert_eq!(answer.contains_key(ACCESS_CONTROL_ALLOW_METHODS), expected);
        }
        assert_eq!(allowed().source(&HeaderMap::new()), Source::Program);
        let mut own = HeaderMap::new();
        own.insert(ORIGIN, HeaderValue::from_static("http://127.0.0.1:8765"));
        assert_eq!(allowed().source(&own), Source::Program);
        own.append(ORIGIN, HeaderValue::from_static("http://evil.test"));
        assert_eq!(allowed().source(&own), Source::Foreign);
    }

    #[test]
    fn the_machine_is_reached_under_its_own_names() {
        for (host, expected) in [
            ("localhost", true),
            ("LocalHost:1", true),
            ("127.0.0.1:8765", true),
            ("[::1]:8765", true),
            ("robot.test:9", true),
            ("other.test:8765", true),
            ("other.test", false),
            ("robot.test.evil.test", false),
            ("evil.test", false),
            ("", false),
        ] {
            let request = Request::builder().header(HOST, host).body(()).expect("a request");
            assert_eq!(allowed().host(&request), expected, "{host}");
        }
    }
}
