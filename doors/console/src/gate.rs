//! Which requests are answered: those of the page itself, under a name of this machine. Pure.
//!
//! A page of another site can make a browser send requests here, and can make the browser look its own name up as the address of this
//! machine. So the name in `Host` has to be a known one; what acts needs the `Origin` of the page and a header that no form of
//! another site can send.

use std::net::{IpAddr, Ipv6Addr};

use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method};

/// The names of this machine for itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The header that every request that acts carries.
pub(crate) const OURS: &str = "x-ovos-tools";

/// The two ends of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Here {
    /// The address of this machine that the browser used: a page of another site cannot have it as its name.
    pub(crate) ip: IpAddr,
    /// The address of the browser.
    pub(crate) peer: IpAddr,
    /// Whether the connection is that of the page's own TLS.
    pub(crate) tls: bool,
}

/// Why a request is not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Foreign {
    #[error(
        "the host name {0:?} is not one of this machine: to allow it, list it in service.doors.console.hosts"
    )]
    Host(String),
    #[error("only the page of this console may send this request")]
    Page,
}

/// Reads a name of this machine: a name or an address, with or without a port. `None` if it is none.
pub(crate) fn named(host: &str) -> Option<Authority> {
    let host = host.trim();
    match host.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]").parse().ok(),
        Err(_) => host.parse().ok(),
    }
}

/// The name or the address in it, as certificates have it.
pub(crate) fn name_of(host: &Authority) -> &str {
    host.host().trim_matches(['[', ']'])
}

/// Decides on a request from its head. `path` begins with `/api/` where it is one for data.
pub(crate) fn admit(
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    hosts: &[String],
    here: Here,
) -> Result<(), Foreign> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(HOST).unwrap_or_default();
    let foreign = || Foreign::Host(host.to_owned());
    let asked: Authority = host.parse().map_err(|_| foreign())?;
    let is = |allowed: &str| {
        named(allowed).is_some_and(|allowed| {
            asked.host().eq_ignore_ascii_case(allowed.host())
                && allowed
                    .port_u16()
                    .is_none_or(|port| asked.port_u16() == Some(port))
        })
    };
    let own = name_of(&asked).parse() == Ok(here.ip);
    if !own && !LOOPBACK.iter().any(|name| is(name)) && !hosts.iter().any(|name| is(name)) {
        return Err(foreign());
    }
    if !path.starts_with("/api/") && method == Method::GET {
        // The page itself: a link may lead to it.
        return Ok(());
    }
    let mut origins = headers.get_all(ORIGIN).iter();
    let own = match (origins.next(), origins.next()) {
        (None, _) => method == Method::GET,
        (Some(origin), None) => {
            let origin = origin.to_str().unwrap_or_default();
            // A proxy that adds TLS passes its own name on.
            let plain = origin.strip_prefix("http://").filter(|_| !here.tls);
            let rest = plain.or(origin.strip_prefix("https://"));
            rest.is_some_and(|rest| rest.eq_ignore_ascii_case(host))
        }
        (Some(_), Some(_)) => false,
    };
    let site = text("sec-fetch-site".parse().map_err(|_| Foreign::Page)?);
    let from_here = site.is_none_or(|site| matches!(site, "same-origin" | "none"));
    let marked = method == Method::GET || text(OURS.parse().map_err(|_| Foreign::Page)?) == Some("1");
    if own && from_here && marked {
        Ok(())
    } else {
        Err(Foreign::Page)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn only_the_page_itself_acts_and_only_under_a_name_of_this_machine() {
        const MARK: (&str, &str) = (OURS, "1");
        const HERE: (&str, &str) = ("host", "127.0.0.1:8770");
        const OWN: (&str, &str) = ("origin", "http://127.0.0.1:8770");
        let hosts = ["robot.test".to_owned()];
        for (method, path, headers, expected) in [
            ("GET", "/", &[HERE][..], Ok(())),
            ("GET", "/", &[HERE, ("sec-fetch-site", "cross-site")], Ok(())),
            ("GET", "/", &[], foreign("")),
            ("GET", "/", &[("host", "evil.test")], foreign("evil.test")),
            (
                "GET",
                "/",
                &[("host", "127.0.0.1.evil.test")],
                foreign("127.0.0.1.evil.test"),
            ),
            ("GET", "/", &[("host", "robot.test")], Ok(())),
            ("GET", "/", &[("host", "LOCALHOST:1")], Ok(())),
            ("GET", "/", &[("host", "[::1]:8770")], Ok(())),
            ("GET", "/api/state", &[HERE], Ok(())),
            (
                "GET",
                "/api/state",
                &[HERE, ("sec-fetch-site", "same-origin")],
                Ok(()),
            ),
            (
                "GET",
                "/api/state",
                &[HERE, ("sec-fetch-site", "cross-site")],
                Err(Foreign::Page),
            ),
            (
                "GET",
                "/api/state",
                &[HERE, ("sec-fetch-site", "same-site")],
                Err(Foreign::Page),
            ),
            (
                "GET",
                "/api/facts",
                &[HERE, ("origin", "http://evil.test")],
                Err(Foreign::Page),
            ),
            ("POST", "/api/stop", &[HERE, OWN, MARK], Ok(())),
            (
                "POST",
                "/api/stop",
                &[
                    ("host", "robot.test"),
                    ("origin", "https://robot.test"),
                    MARK,
                    ("sec-fetch-site", "same-origin"),
                ],
                Ok(()),
            ),
            ("POST", "/api/stop", &[HERE, OWN], Err(Foreign::Page)),
            ("POST", "/api/stop", &[HERE, OWN, (OURS, "2")], Err(Foreign::Page)),
            ("POST", "/api/stop", &[HERE, MARK], Err(Foreign::Page)),
            ("POST", "/", &[HERE], Err(Foreign::Page)),
            (
                "POST",
                "/api/stop",
                &[HERE, ("origin", "null"), MARK],
                Err(Foreign::Page),
            ),
            (
                "POST",
                "/api/stop",
                &[HERE, ("origin", "http://127.0.0.1:1"), MARK],
                Err(Foreign::Page),
            ),
            (
                "POST",
                "/api/stop",
                &[HERE, ("origin", "http://localhost:8770"), MARK],
                Err(Foreign::Page),
            ),
            ("POST", "/api/stop", &[HERE, OWN, OWN, MARK], Err(Foreign::Page)),
            (
                "POST",
                "/api/stop",
                &[HERE, OWN, MARK, ("sec-fetch-site", "cross-site")],
                Err(Foreign::Page),
            ),
            (
                "POST",
                "/api/stop",
                &[("host", "evil.test"), ("origin", "http://evil.test"), MARK],
                foreign("evil.test"),
            ),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            let found = admit(
                &method.parse().unwrap(),
                path,
                &map,
                &hosts,
                here("127.0.0.1", false),
            );
            assert_eq!(found, expected, "{method} {path} {headers:?}");
        }
    }

    fn foreign(host: &str) -> Result<(), Foreign> {
        Err(Foreign::Host(host.to_owned()))
    }

    fn here(ip: &str, tls: bool) -> Here {
        let ip = ip.parse().unwrap();
        Here { ip, peer: ip, tls }
    }

    /// Beyond loopback: the machine's address, which no page of another site has as its name, and nothing without TLS.
    #[test]
    fn in_the_network_the_page_is_at_the_address_of_the_machine_and_has_tls() {
        for (ip, tls, host, origin, expected) in [
            (
                "192.0.2.7",
                true,
                "192.0.2.7:8770",
                "https://192.0.2.7:8770",
                Ok(()),
            ),
            (
                "192.0.2.7",
                true,
                "192.0.2.7:8770",
                "http://192.0.2.7:8770",
                Err(Foreign::Page),
            ),
            (
                "192.0.2.7",
                true,
                "192.0.2.8:8770",
                "https://192.0.2.8:8770",
                foreign("192.0.2.8:8770"),
            ),
            (
                "192.0.2.7",
                true,
                "192.0.2.7.evil.test",
                "https://192.0.2.7.evil.test",
                foreign("192.0.2.7.evil.test"),
            ),
            (
                "192.0.2.7",
                true,
                "evil.test",
                "https://evil.test",
                foreign("evil.test"),
            ),
            (
                "192.0.2.7",
                true,
                "robot.test:8770",
                "https://robot.test:8770",
                Ok(()),
            ),
            (
                "2001:db8::7",
                true,
                "[2001:db8::7]:1",
                "https://[2001:db8::7]:1",
                Ok(()),
            ),
            (
                "2001:db8::7",
                true,
                "[2001:db8::8]:1",
                "https://[2001:db8::8]:1",
                foreign("[2001:db8::8]:1"),
            ),
            ("127.0.0.1", false, "127.0.0.1:1", "http://127.0.0.1:1", Ok(())),
            // A proxy on this machine.
            ("127.0.0.1", false, "robot.test", "https://robot.test", Ok(())),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in [("host", host), ("origin", origin), (OURS, "1")] {
                map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            let hosts = ["robot.test".to_owned()];
            let found = admit(&Method::POST, "/api/stop", &map, &hosts, here(ip, tls));
            assert_eq!(found, expected, "{ip} {host} {origin}");
        }
    }
}
