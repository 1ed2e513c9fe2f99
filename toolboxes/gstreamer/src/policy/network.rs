//! The network addresses that a pipeline may use.
//!
//! Owns the configured targets, with their host names resolved once, and the strict parsing of addresses: an ambiguous
//! address is refused. Sends nothing. Read [`Targets`].

use std::net::{IpAddr, ToSocketAddrs};

use crate::config::ConfigError;

/// The configured targets.
#[derive(Debug)]
pub(super) struct Targets(Vec<Target>);

#[derive(Debug)]
struct Target {
    host: Host,
    port: Option<u16>,
}

#[derive(Debug)]
enum Host {
    Any,
    Network { address: IpAddr, prefix: u8 },
    Name { name: String, addresses: Vec<IpAddr> },
}

impl Targets {
    /// Resolves host names; blocks as long as the system's resolver does.
    pub(super) fn resolve(written: &[String]) -> Result<Self, ConfigError> {
        written
            .iter()
            .map(|text| target(text))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether a host, and its port if known, is allowed. An empty host means every interface.
    pub(super) fn check(&self, host: &str, port: Option<u16>) -> Result<(), String> {
        let shown = match port {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        let bare = if bare.is_empty() { "0.0.0.0" } else { bare };
        let allowed = match bare.parse::<IpAddr>() {
            Ok(address) => self
                .0
                .iter()
                .any(|target| target.covers_address(address.to_canonical(), port)),
            Err(_) if is_name(bare) => self.0.iter().any(|target| target.covers_name(bare, port)),
            Err(_) => return Err(format!("{shown:?} is not a host name or an address")),
        };
        if allowed {
            return Ok(());
        }
        if bare
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_unspecified())
        {
            return Err(format!(
                "it listens on every network interface ({shown:?}); give an address such as 127.0.0.1, or allow 0.0.0.0"
            ));
        }
        Err(format!(
            "{shown:?} is not among the allowed targets {}",
            self.shown()
        ))
    }

    fn shown(&self) -> String {
        if self.0.is_empty() {
            return "(none)".to_owned();
        }
        let all: Vec<String> = self.0.iter().map(Target::shown).collect();
        all.join(", ")
    }
}

impl Target {
    fn covers_address(&self, address: IpAddr, port: Option<u16>) -> bool {
        let host = match &self.host {
            Host::Any => true,
            Host::Network {
                address: network,
                prefix,
            } => covers(*network, *prefix, address),
            Host::Name { addresses, .. } => addresses.contains(&address),
        };
        host && self.covers_port(port)
    }

    fn covers_name(&self, wanted: &str, port: Option<u16>) -> bool {
        let wanted = wanted.trim_end_matches('.');
        let host = match &self.host {
            Host::Any => true,
            Host::Name { name, .. } => name.eq_ignore_ascii_case(wanted),
            // `localhost` is the one name that no name server can redirect.
            Host::Network { address, prefix } => {
                wanted.eq_ignore_ascii_case("localhost")
                    && covers(*address, *prefix, IpAddr::from([127, 0, 0, 1]))
            }
        };
        host && self.covers_port(port)
    }

    /// An unknown port is checked again when there is an element.
    fn covers_port(&self, port: Option<u16>) -> bool {
        match (self.port, port) {
            (Some(allowed), Some(port)) => allowed == port,
            _ => true,
        }
    }

    fn shown(&self) -> String {
        let host = match &self.host {
            Host::Any => "*".to_owned(),
            Host::Network { address, prefix } if *prefix == full(*address) => address.to_string(),
            Host::Network { address, prefix } => format!("{address}/{prefix}"),
            Host::Name { name, .. } => name.clone(),
        };
        match self.port {
            Some(port) => format!("{host}:{port}"),
            None => host,
        }
    }
}

fn target(text: &str) -> Result<Target, ConfigError> {
    let wrong = || ConfigError::Target {
        found: text.to_owned(),
    };
    if text == "*" {
        return Ok(Target {
            host: Host::Any,
            port: None,
        });
    }
    if let Some((address, prefix)) = text.split_once('/') {
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let prefix: u8 = prefix.parse().map_err(|_| wrong())?;
        if prefix > full(address) {
            return Err(wrong());
        }
        return Ok(Target {
            host: Host::Network { address, prefix },
            port: None,
        });
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(Target {
            host: Host::Network {
                address,
                prefix: full(address),
            },
            port: None,
        });
    }
    let (host, port) = authority(text).ok_or_else(wrong)?;
    if host.is_empty() {
        return Err(wrong());
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(Target {
            host: Host::Network {
                address,
                prefix: full(address),
            },
            port,
        });
    }
    let addresses: Vec<IpAddr> = match (host.as_str(), 0).to_socket_addrs() {
        Ok(found) => found.map(|found| found.ip().to_canonical()).collect(),
        Err(error) => {
            tracing::warn!(host, %error, "a network target cannot be resolved: only its name is allowed");
            Vec::new()
        }
    };
    Ok(Target {
        host: Host::Name {
            name: host,
            addresses,
        },
        port,
    })
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
