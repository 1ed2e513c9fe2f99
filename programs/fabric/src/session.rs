//! The sessions of Zenoh: what the two sides listen to, dial and let through. Read [`host_config`], then [`mount_config`].

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use serde_json::{Value, json};
use zenoh::Config;

use crate::folder::{Folder, Identity};
use crate::messages::{Right, every_key, key};
use crate::peers::PeerList;

/// The variable that sets the threads of Zenoh.
const RUNTIME: &str = "ZENOH_RUNTIME";

/// One thread reads and writes. Zenoh's link over TLS uses one rustls connection for both without a lock: a write during a read
/// closed a healthy link (`handshake not complete`), and with it every run on it; with two readers messages vanished. See
/// <https://github.com/eclipse-zenoh/zenoh/issues/2557>. So a callback of Zenoh never sends what waits for room in the network: the
/// thread that would make the room is the one that waits.
const ONE_THREAD: &str = "(rx: (worker_threads: 1), tx: (handover: rx))";

/// Starts this program again with the threads that Zenoh needs. Returns at once if it has them, and with an error if it cannot.
///
/// # Errors
/// The program cannot be started.
pub(crate) fn with_one_thread() -> Result<(), std::io::Error> {
    if std::env::var_os(RUNTIME).as_deref() == Some(ONE_THREAD.as_ref()) {
        return Ok(());
    }
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let mut command = Command::new("/proc/self/exe");
    Err(command.args(arguments).env(RUNTIME, ONE_THREAD).exec())
}

/// The port of a host that names none.
pub(crate) const PORT: u16 = 7447;

/// An address as Zenoh has it, from one that a person wrote: `robot1.local`, `192.168.1.20:7447`, `[::1]:7447`.
///
/// # Errors
/// It is not an address, or would not be encrypted.
pub(crate) fn endpoint(written: &str) -> Result<String, String> {
    let address = match written.split_once('/') {
        None => written,
        Some(("tls", address)) => address,
        Some((other, _)) => {
            return Err(format!(
                "{written:?} is an address of the protocol {other}, expected tls, the only one of the fabric: write tls/HOST:{PORT}"
            ));
        }
    };
    let wrong =
        || format!("{written:?} is not an address; write HOST or HOST:{PORT}, and [::1] for one of IPv6");
    let (host, after) = match address.find(']') {
        Some(end) => address.split_at(end + 1),
        None => address.split_at(address.find(':').unwrap_or(address.len())),
    };
    let name = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_plain = |byte: u8| {
        byte.is_ascii_alphanumeric() || b".-_%".contains(&byte) || (name.is_some() && byte == b':')
    };
    let name = name.unwrap_or(host);
    if name.is_empty() || !name.bytes().all(is_plain) {
        return Err(wrong());
    }
    let port = match after.strip_prefix(':') {
        Some(port) => port.parse().map_err(|_| wrong())?,
        None if after.is_empty() => PORT,
        None => return Err(wrong()),
    };
    Ok(format!("tls/{host}:{port}"))
}

/// The session of a host: it listens, and lets its peers ask for what their role allows.
///
/// # Errors
/// A bug: the text is not a configuration of Zenoh.
pub(crate) fn host_config(
    folder: &Folder,
    identity: &Identity,
    listen: &[String],
    peers: &PeerList,
) -> Result<Config, String> {
    let mut config = common(folder);
    config["mode"] = json!("peer");
    config["listen"] = json!({ "endpoints": listen, "exit_on_failure": true, "timeout_ms": 0 });
    config["access_control"] = access_control(&identity.name, peers);
    read(&config)
}

/// The session of a machine that asks hosts: it dials, and nobody reaches it.
///
/// # Errors
/// As [`host_config`].
pub(crate) fn mount_config(folder: &Folder, endpoint: &str) -> Result<Config, String> {
    let mut config = common(folder);
    config["mode"] = json!("client");
    config["connect"] = json!({
        "endpoints": [endpoint], "timeout_ms": 0, "exit_on_failure": true,
        "retry": { "period_init_ms": 100, "period_max_ms": 500, "period_increase_factor": 2 },
    });
    read(&config)
}

/// Slots of a queue: Zenoh's maximum. They are allocated when they are needed.
const QUEUE: usize = 16;

fn common(folder: &Folder) -> Value {
    let (certificate, key) = (folder.certificate(), folder.key());
    json!({
        "scouting": { "multicast": { "enabled": false }, "gossip": { "enabled": false } },
        // A dial that was lost in a dark network is given up, and made again.
        "transport": { "unicast": { "open_timeout": 3000, "accept_timeout": 3000 }, "link": {
            "tls": {
                "root_ca_certificate": folder.authority(), "enable_mtls": true,
                "listen_certificate": certificate, "listen_private_key": key,
                "connect_certificate": certificate, "connect_private_key": key,
                // Machines change their addresses: the peer is identified by the name in its certificate instead.
                "verify_name_on_connect": false, "close_link_on_expiration": true,
            },
            "tx": {
                "lease": 1000, "keep_alive": 4,
                "queue": {
                    // Each urgent message needs a slot, and is dropped if none is free within 1 ms. With Zenoh's default of 2,
                    // heartbeats can fill the queue while the writing thread waits for a processor.
                    "size": { "real_time": QUEUE, "data": QUEUE },
                    "congestion_control": { "block": { "wait_before_close": 500_000 } },
                },
            },
        } },
    })
}

/// Each peer may send the queries of its own name and of its rights; everybody else nothing.
fn access_control(host: &str, peers: &PeerList) -> Value {
    let (mut rules, mut subjects, mut policies) = (Vec::new(), Vec::new(), Vec::new());
    for (name, role) in peers.peers.iter().filter(|(name, _)| peers.role(name).is_some()) {
        let keys: Vec<String> = Right::ALL
            .into_iter()
            .filter(|right| right.is_of(*role))
            .map(|right| key(host, name, right))
            .collect();
        rules.push(json!({
            "id": name, "permission": "allow", "flows": ["ingress", "egress"], "key_exprs": keys,
            "messages": ["query", "reply"],
        }));
        subjects.push(json!({ "id": name, "cert_common_names": [name] }));
        policies.push(json!({ "rules": [name, DECLARED], "subjects": [name] }));
    }
    if rules.is_empty() {
        return json!({ "enabled": true, "default_permission": "deny" });
    }
    rules.push(json!({
        "id": DECLARED, "permission": "allow", "flows": ["egress"], "key_exprs": [every_key(host)],
        "messages": ["declare_queryable"],
    }));
    json!({
        "enabled": true, "default_permission": "deny", "rules": rules, "subjects": subjects, "policies": policies,
    })
}

/// The id of the rule that lets a host declare its queryables. No machine has a name with `_`.
const DECLARED: &str = "_declared";

fn read(config: &Value) -> Result<Config, String> {
    Config::from_json5(&config.to_string())
        .map_err(|error| format!("bug in the fabric: its session cannot be configured: {error}"))
}

/// What an error of Zenoh says, without the places in its source, which tell a user nothing.
pub(crate) fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let text = error.to_string();
    let mut parts = text.split(" at /");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(".rs:") {
            // After a place there is what caused the error, if something did.
            Some((path, line)) if !path.contains(' ') => {
                plain += line.trim_start_matches(|digit: char| digit.is_ascii_digit());
            }
            _ => plain = plain + " at /" + part,
        }
    }
    plain.trim_end_matches(|end: char| ".! ".contains(end)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::Role;

    #[test]
    fn an_address_is_completed_and_never_unencrypted() {
        for (written, expected) in [
            ("robot1.local", Some("tls/robot1.local:7447")),
            ("10.0.0.2:99", Some("tls/10.0.0.2:99")),
            ("tls/10.0.0.2", Some("tls/10.0.0.2:7447")),
            ("[::1]", Some("tls/[::1]:7447")),
            ("tls/[::1]:99", Some("tls/[::1]:99")),
            ("tcp/10.0.0.2:99", None),
            ("", None),
            ("a b", None),
            ("10.0.0.2#so_sndbuf=1", None),
            ("[fe80::1%eth0]", Some("tls/[fe80::1%eth0]:7447")),
            ("fe80::1", None),
            ("[fe80::1", None),
            ("[]", None),
            ("robot1:", None),
            ("robot1:abc", None),
            ("robot1:70000", None),
            ("[::1]99", None),
        ] {
            assert_eq!(endpoint(written).ok().as_deref(), expected, "{written:?}");
        }
    }

    #[test]
    fn the_reason_of_an_error_is_for_people() {
        for (text, expected) in [
            (
                "Unable to connect to any of [tls/10.0.0.2:1]!  at /root/zenoh-1.10.2/src/net/orchestrator.rs:447.",
                "Unable to connect to any of [tls/10.0.0.2:1]",
            ),
            (
                "no listener at /a/b.rs:12. - Caused by: Address in use at /a/c.rs:7.",
                "no listener. - Caused by: Address in use",
            ),
            ("no file at /dev/x", "no file at /dev/x"),
        ] {
            let error = std::io::Error::other(text);
            assert_eq!(reason(&error), expected, "{text}");
        }
    }

    #[test]
    fn zenoh_takes_the_configurations() {
        let folder = Folder::new(Some("/nowhere".into()));
        let identity = Identity {
            name: "robot1".to_owned(),
            authority: "robot1".to_owned(),
            valid_from: 0,
            valid_until: 0,
        };
        let mut peers = PeerList::default();
        let listen = ["tls/127.0.0.1:0".to_owned()];
        host_config(&folder, &identity, &listen, &peers).unwrap();
        peers.peers.insert("laptop".to_owned(), Role::Operator);
        peers.peers.insert("tablet".to_owned(), Role::Viewer);
        peers.peers.insert("declared".to_owned(), Role::Viewer);
        peers.peers.insert("lost".to_owned(), Role::Operator);
        peers.revoked.push("lost".to_owned());
        host_config(&folder, &identity, &listen, &peers).unwrap();
        mount_config(&folder, "tls/127.0.0.1:7447").unwrap();
        let rules = access_control("robot1", &peers).to_string();
        assert!(rules.contains("ovos-tools/v1/robot1/laptop/resume"), "{rules}");
        assert!(!rules.contains("robot1/tablet/command"), "{rules}");
        assert!(!rules.contains("lost"), "{rules}");
    }
}
