//! Which requests may open a websocket: protects the bus from web pages. Pure.
//!
//! A browser lets every page open a websocket to this machine. It sends the page's address as `Origin`, and the
//! name under which it reached the bus as `Host`. A page that rebinds its own name to this machine has the same name in both. So
//! an `Origin` has to be that of the bus, and the `Host` a name that no stranger can own: an address, `localhost`, a
//! name of this machine, or one that the configuration lists. Read [`OriginPolicy::check`].

use std::net::IpAddr;

use tungstenite::http::HeaderMap;
use tungstenite::http::header::{AsHeaderName, HOST, ORIGIN};
use url::Url;

/// The rules for `Host` and `Origin`.
#[derive(Debug)]
pub(crate) struct OriginPolicy {
    /// Host names, some with a port, in lower case.
    hosts: Vec<String>,
    /// Origins, in lower case and without a slash at the end.
    origins: Vec<String>,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Foreign {
    #[error("expected exactly one Host header and at most one Origin header, both readable as text")]
    Malformed,
    #[error(
        "the host name {0:?} is not one of this machine: to allow it, list it in \
         service.embedded_bus_http_hosts"
    )]
    Host(String),
    #[error(
        "the Origin {origin:?} is not that of the bus at {host:?}; if this page may use the bus, and with it every tool, list it in \
         service.embedded_bus_http_origins"
    )]
    Origin { origin: String, host: String },
}

impl OriginPolicy {
    pub(crate) fn new<'a>(
        hosts: impl IntoIterator<Item = &'a str>,
        origins: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let lower = |text: &str| text.trim().trim_end_matches('/').to_ascii_lowercase();
        Self {
            hosts: hosts.into_iter().map(lower).collect(),
            origins: origins.into_iter().map(lower).collect(),
        }
    }

    /// Decides whether a request with these headers may open a websocket.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Foreign> {
        let host = one(headers, HOST)?.ok_or(Foreign::Malformed)?;
        let (name, port) = authority(host).ok_or_else(|| Foreign::Host(shortened(host)))?;
        if !self.knows(&name, port) {
            return Err(Foreign::Host(shortened(host)));
        }
        let Some(origin) = one(headers, ORIGIN)? else {
            return Ok(());
        };
        let plain = origin.trim().trim_end_matches('/').to_ascii_lowercase();
        if self.origins.contains(&plain) || is_of(&plain, &name, port) {
            return Ok(());
        }
        Err(Foreign::Origin {
            origin: shortened(origin),
            host: shortened(host),
        })
    }

    fn knows(&self, name: &str, port: Option<u16>) -> bool {
        let with_port = port.map(|port| format!("{name}:{port}"));
        let is_allowed = |host: &String| host == name || Some(host) == with_port.as_ref();
        address(name).is_some()
            || name == "localhost"
            || name.ends_with(".localhost")
            || self.hosts.iter().any(is_allowed)
    }
}

/// The only value of a header; none if it is missing.
fn one(headers: &HeaderMap, name: impl AsHeaderName) -> Result<Option<&str>, Foreign> {
    let mut values = headers.get_all(name).iter();
    let value = values.next();
    if values.next().is_some() {
        return Err(Foreign::Malformed);
    }
    value
        .map(|value| value.to_str().map_err(|_| Foreign::Malformed))
        .transpose()
}

/// The name in lower case, and the port, of `name`, `name:port`, `[::1]` or `[::1]:port`.
fn authority(text: &str) -> Option<(String, Option<u16>)> {
    let text = text.trim().to_ascii_lowercase();
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (name, after) = rest.split_once(']')?;
            (format!("[{name}]"), after)
        }
        None => match text.find(':') {
            Some(at) => (text[..at].to_owned(), &text[at..]),
            None => (text.clone(), ""),
        },
    };
    let port = match port {
        "" => None,
        port => Some(port.strip_prefix(':')?.parse().ok()?),
    };
    // A dot at the end makes a name absolute and names the same host.
    let name = name.strip_suffix('.').map_or(name.clone(), str::to_owned);
    let legal = |c: char| !c.is_whitespace() && !"/\\@?#,".contains(c);
    (!name.is_empty() && name.chars().all(legal)).then_some((name, port))
}

fn address(name: &str) -> Option<IpAddr> {
    let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    match inner {
        Some(inner) => inner.parse().ok().map(IpAddr::V6),
        None => name.parse().ok().map(IpAddr::V4),
    }
}

/// Whether an origin is that of this host. Python's websocket-client sends such an origin, as a page of the bus itself
/// would.
fn is_of(origin: &str, name: &str, port: Option<u16>) -> bool {
    let Ok(url) = Url::parse(origin) else { return false };
    let default = match url.scheme() {
        "http" | "ws" => 80,
        "https" | "wss" => 443,
        _ => return false,
    };
    let is_bare = url.path() == "/" && url.query().is_none() && url.username().is_empty();
    let same = url
        .host_str()
        .is_some_and(|host| host == name || (address(name).is_some() && address(host) == address(name)));
    is_bare && same && url.port().unwrap_or(default) == port.unwrap_or(default)
}

/// A header in a message: what a stranger wrote is cut.
fn shortened(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tungstenite::http::HeaderValue;

    fn policy() -> OriginPolicy {
        OriginPolicy::new(
            ["robot", "robot.local", "Bus.Example", "proxy.example:9000"],
            ["http://localhost:3000", "https://Page.example/"],
        )
    }

    fn headers(hosts: &[&str], origins: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, values) in [(HOST, hosts), (ORIGIN, origins)] {
            for value in values {
                headers.append(name.clone(), HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
        }
        headers
    }

    #[test]
    fn a_host_is_a_name_that_no_stranger_can_own() {
        for (host, known) in [
            ("127.0.0.1:8181", true),
            ("127.0.0.1", true),
            ("192.168.1.5:8181", true),
            ("[::1]:8181", true),
            ("[fd00::5]", true),
            ("localhost:8181", true),
            ("LOCALHOST.", true),
            ("bus.localhost:8181", true),
            ("robot:8181", true),
            ("Robot.local", true),
            ("bus.example:1", true),
            ("proxy.example:9000", true),
            ("proxy.example:9001", false),
            ("proxy.example", false),
            ("evil.example", false),
            ("evil.example:8181", false),
            ("robot.evil.example", false),
            ("127.0.0.1.evil.example:8181", false),
            ("localhost.evil.example", false),
            ("evil-localhost", false),
            ("evil.example:8181@127.0.0.1", false),
            ("127.0.0.1, evil.example", false),
            ("[evil.example]", false),
            ("::1", false),
            ("127.0.0.1:x", false),
            ("", false),
        ] {
            assert_eq!(policy().check(&headers(&[host], &[])).is_ok(), known, "{host}");
        }
        for hosts in [
            &[][..],
            &["127.0.0.1", "127.0.0.1"],
            &["127.0.0.1", "evil.example"],
        ] {
            assert_eq!(
                policy().check(&headers(hosts, &[])),
                Err(Foreign::Malformed),
                "{hosts:?}"
            );
        }
    }

    #[test]
    fn an_origin_is_the_hosts_or_listed() {
        let bus = "127.0.0.1:8181";
        for (host, origin, own) in [
            (bus, "http://127.0.0.1:8181", true),
            (bus, "HTTP://127.0.0.1:8181/", true),
            (bus, "https://127.0.0.1:8181", true),
            (bus, "ws://127.0.0.1:8181", true),
            ("robot.local:8181", "http://robot.local:8181", true),
            ("[::1]:8181", "http://[::1]:8181", true),
            ("[0:0::1]:8181", "http://[::1]:8181", true),
            ("127.0.0.1", "http://127.0.0.1", true),
            ("127.0.0.1:80", "http://127.0.0.1", true),
            ("127.0.0.1", "https://127.0.0.1:443", true),
            (bus, "http://localhost:3000", true),
            (bus, "https://page.example", true),
            (bus, "http://page.example", false),
            (bus, "https://page.example:444", false),
            (bus, "http://127.0.0.1", false),
            (bus, "http://127.0.0.1:8080", false),
            (bus, "http://localhost:8181", false),
            ("localhost:8181", "http://127.0.0.1:8181", false),
            (bus, "https://evil.example", false),
            (bus, "http://127.0.0.1:8181.evil.example", false),
            (bus, "http://127.0.0.1:8181@evil.example", false),
            (bus, "http://evil.example/127.0.0.1:8181", false),
            (bus, "http://127.0.0.1:8181/page", false),
            (bus, "file://127.0.0.1:8181", false),
            (bus, "chrome-extension://abcdef", false),
            (bus, "null", false),
            (bus, "", false),
            // A name that was rebound to this machine.
            ("evil.example", "http://evil.example", false),
            ("evil.example:8181", "http://evil.example:8181", false),
        ] {
            let checked = policy().check(&headers(&[host], &[origin]));
            assert_eq!(checked.is_ok(), own, "{origin} at {host}: {checked:?}");
        }
        let two = headers(&[bus], &["http://127.0.0.1:8181", "https://evil.example"]);
        assert_eq!(policy().check(&two), Err(Foreign::Malformed));
        let text = policy().check(&headers(&[bus], &["https://evil.example"]));
        let text = text.unwrap_err().to_string();
        assert!(
            text.contains("https://evil.example") && text.contains("embedded_bus_http_origins"),
            "{text}"
        );
    }
}
