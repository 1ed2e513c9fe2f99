//! The network addresses that a pipeline may use.
//!
//! Owns the configured targets, with their host names resolved once, and the strict parsing of addresses: an ambiguous
//! address is refused. Sends nothing. Read [`Targets`].

use std::net::{IpAddr, ToSocketAddrs};

use super::refusal::Refusal;
use crate::config::ConfigError;

/// The configured targets.
#[derive(Debug)]
pub(super) struct Targets {
    written: Vec<String>,
    read: Vec<Target>,
}

#[derive(Debug)]
struct Target {
    /// Lower case; `*` for any host, empty for none.
    name: String,
    /// Networks: an address and the length of its prefix.
    networks: Vec<(IpAddr, u8)>,
    port: Option<u16>,
}

impl Targets {
    /// Resolves host names; blocks as long as the system's resolver does.
    pub(super) fn resolve(written: &[String]) -> Result<Self, ConfigError> {
        let read = written.iter().map(|text| {
            target(text).ok_or_else(|| ConfigError::Target {
                found: text.to_owned(),
            })
        });
        Ok(Self {
            read: read.collect::<Result<_, _>>()?,
            written: written.to_vec(),
        })
    }

    /// Whether a host, and its port if known, is allowed. An empty host means every interface.
    pub(super) fn check(&self, host: &str, port: Option<u16>) -> Result<(), Refusal> {
        let text = port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let refuse = |why: String| Err(Refusal::new(why, "network_targets"));
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        let bare = if bare.is_empty() { "0.0.0.0" } else { bare };
        let address = bare.parse::<IpAddr>().ok().map(|address| address.to_canonical());
        if address.is_none() && !is_name(bare) {
            return refuse(format!("{text:?} is not a host name or an address"));
        }
        let name = bare.trim_end_matches('.').to_ascii_lowercase();
        if self.read.iter().any(|target| target.covers(&name, address, port)) {
            return Ok(());
        }
        if address.is_some_and(|address| address.is_unspecified()) {
            let why = format!(
                "it listens on every network interface ({text:?}); give an address such as 127.0.0.1, or allow {bare}"
            );
            return Err(Refusal::new(why, "network_targets").allowed_by(&self.written, bare));
        }
        let all = if self.written.is_empty() {
            "(none)".to_owned()
        } else {
            self.written.join(", ")
        };
        let refusal = Refusal::new(
            format!("{text:?} is not among the allowed targets {all}"),
            "network_targets",
        );
        Err(refusal.allowed_by(&self.written, bare))
    }
}

impl Target {
    fn covers(&self, name: &str, address: Option<IpAddr>, port: Option<u16>) -> bool {
        // An unknown port is checked again when there is an element.
        let fits = self.port.is_none() || port.is_none() || self.port == port;
        // `localhost` is the one name that no name server can redirect.
        let address = address.or_else(|| (name == "localhost").then_some(IpAddr::from([127, 0, 0, 1])));
        let covered = |address| {
            self.networks
                .iter()
                .any(|(net, prefix)| covers(*net, *prefix, address))
        };
        fits && (self.name == "*" || self.name == name || address.is_some_and(covered))
    }
}

/// Reads `*`, a network, an address, or a host with or without a port.
fn target(text: &str) -> Option<Target> {
    let of = |name: &str, networks, port| Target {
        name: name.to_ascii_lowercase(),
        networks,
        port,
    };
    if text == "*" {
        return Some(of("*", Vec::new(), None));
    }
    if let Some((address, prefix)) = text.split_once('/') {
        let (address, prefix) = (address.parse().ok()?, prefix.parse().ok()?);
        return (prefix <= full(address)).then(|| of("", vec![(address, prefix)], None));
    }
    // An IPv6 address may stand without brackets.
    let (host, port) = match text.parse::<IpAddr>() {
        Ok(_) => (text.to_owned(), None),
        Err(_) => authority(text).filter(|(host, _)| !host.is_empty())?,
    };
    let whole = |address: IpAddr| (address, full(address));
    if let Ok(address) = host.parse() {
        return Some(of("", vec![whole(address)], port));
    }
    let found = (host.as_str(), 0).to_socket_addrs();
    let networks = match found {
        Ok(found) => found.map(|found| whole(found.ip().to_canonical())).collect(),
        Err(error) => {
            tracing::warn!(host, %error, "a network target cannot be resolved: only its name is allowed");
            Vec::new()
        }
    };
    Some(of(&host, networks, port))
}

fn full(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn covers(network: IpAddr, prefix: u8, address: IpAddr) -> bool {
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            network.to_bits() & mask == address.to_bits() & mask
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            network.to_bits() & mask == address.to_bits() & mask
        }
        _ => false,
    }
}

fn is_name(text: &str) -> bool {
    text.len() <= 253
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
        && text.bytes().any(|byte| byte.is_ascii_alphanumeric())
}

/// Parses `host`, `host:port` or `[ipv6]:port`, without a login before `@`. The host may be empty.
pub(super) fn authority(text: &str) -> Option<(String, Option<u16>)> {
    let mut parts = text.split('@');
    let (first, second, third) = (parts.next()?, parts.next(), parts.next());
    let host = match (first, second, third) {
        (host, None, _) => host,
        (login, Some(host), None)
            if login
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._~!$&'()*+,;=:%-".contains(&b)) =>
        {
            host
        }
        _ => return None,
    };
    if let Some(rest) = host.strip_prefix('[') {
        let (address, rest) = rest.split_once(']')?;
        let address: IpAddr = address.parse().ok()?;
        let port = match rest {
            "" => None,
            rest => Some(rest.strip_prefix(':')?.parse().ok()?),
        };
        return Some((address.to_string(), port));
    }
    let (host, port) = match host.split_once(':') {
        Some((host, port)) => (host, Some(port.parse().ok()?)),
        None => (host, None),
    };
    (host.is_empty() || is_name(host)).then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::{Targets, authority};

    fn targets(written: &[&str]) -> Targets {
        let written: Vec<String> = written.iter().map(ToString::to_string).collect();
        Targets::resolve(&written).unwrap()
    }

    #[test]
    fn hosts_are_compared_as_addresses_and_by_name() {
        let loopback = &["localhost", "127.0.0.0/8", "::1"][..];
        let one = &["10.1.2.3:5000", "192.168.0.0/16"][..];
        for (written, host, port, allowed) in [
            (loopback, "127.0.0.1", Some(5000), true),
            (loopback, "127.9.9.9", None, true),
            (loopback, "localhost", None, true),
            (loopback, "LOCALHOST.", None, true),
            (loopback, "::1", None, true),
            (loopback, "[::1]", None, true),
            (loopback, "::ffff:127.0.0.1", None, true),
            (loopback, "", Some(5000), false),
            (loopback, "0.0.0.0", None, false),
            (loopback, "::", None, false),
            (loopback, "127.0.0.1.evil.example", None, false),
            (loopback, "2130706433", None, false),
            (loopback, "0x7f.1", None, false),
            (loopback, "unix:/run/x", None, false),
            (loopback, "8.8.8.8", None, false),
            (one, "10.1.2.3", Some(5000), true),
            (one, "10.1.2.3", Some(5001), false),
            (one, "10.1.2.3", None, true),
            (one, "192.168.7.7", Some(1), true),
            (one, "localhost", None, false),
            (&["*"][..], "8.8.8.8", None, true),
            (&["0.0.0.0"][..], "", Some(5000), true),
            (&["0.0.0.0"][..], "8.8.8.8", None, false),
        ] {
            let checked = targets(written).check(host, port);
            assert_eq!(
                checked.is_ok(),
                allowed,
                "{host:?} {port:?} with {written:?}: {checked:?}"
            );
        }
    }

    #[test]
    fn an_authority_is_read_strictly() {
        for (text, expected) in [
            ("host:1", Some(("host", Some(1)))),
            (":5000", Some(("", Some(5000)))),
            ("me:pw@host", Some(("host", None))),
            ("[::1]:7", Some(("::1", Some(7)))),
            ("good@evil@host", None),
            ("host\\@evil", None),
            ("host:99999", None),
            ("ho st", None),
        ] {
            let read = authority(text);
            let read = read.as_ref().map(|(host, port)| (host.as_str(), *port));
            assert_eq!(read, expected, "{text}");
        }
    }
}
