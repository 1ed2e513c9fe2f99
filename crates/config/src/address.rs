//! The bus address: the `websocket` section that every OVOS service reads, or `--bus URL`.

use std::net::Ipv6Addr;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use url::{Host, Url};

use super::error::ConfigError;
use super::origin::{Origin, Setting};
use super::reader::Reader;
use super::text::truthy;
use section::fields::{checked, host, optional_path, trimmed};

/// The messagebus to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusConfig {
    /// The URL from `host`, `port`, `route` and `ssl` of `websocket`, or from `--bus`. Default
    /// `ws://127.0.0.1:8181/core`.
    pub url: Url,
    /// `ssl_cert`: a PEM file with the certificate of a `wss` bus, trusted in addition to those of the system.
    /// Default none.
    pub ssl_cert: Option<PathBuf>,
    /// `max_msg_size`: the largest frame the bus accepts, in bytes (written in MB of 2^20, 0.0625 to 1024). Default
    /// 25 MB.
    pub max_message_bytes: usize,
}

impl BusConfig {
    /// Whether the address is local: `localhost`, a loopback address or an unspecified one.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self.url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback() || address.is_unspecified(),
            Some(Host::Ipv6(address)) => address.is_loopback() || address.is_unspecified(),
            None => false,
        }
    }

    /// Reads the section. Unknown keys are ignored: they belong to other services.
    pub(super) fn read(reader: &mut Reader<'_>, argument: Option<&str>) -> Self {
        let stack = reader.stack;
        let written = reader.written(&["websocket"]);
        let (section, _) = reader.open(&["websocket"], written, Websocket::default());
        if stack.get(&["websocket", "secret_key"]).is_some_and(truthy) {
            reader.errors.push(ConfigError::Encrypted {
                origin: stack.origin(&["websocket", "secret_key"]),
            });
        }
        let url = match argument {
            // An address without a path gets the configured route: no OVOS bus answers on "/".
            Some(argument) => parse(argument).map(|mut url| {
                if matches!(url.path(), "" | "/") {
                    url.set_path(&section.route);
                }
                url
            }),
            None => parse(&section.url()),
        };
        if url.is_none() {
            match argument {
                Some(argument) => reader.errors.push(ConfigError::WrongValue {
                    origin: Origin::Option("--bus"),
                    key: "URL".to_owned(),
                    // A password may stand before the host.
                    found: match argument.rsplit_once('@') {
                        Some((_, host)) => format!("an address of {host:?}"),
                        None => format!("{argument:?}"),
                    },
                    accepted: "an address such as ws://127.0.0.1:8181/core (ws or wss)".to_owned(),
                }),
                None => reader.wrong(
                    &["websocket", "host"],
                    format!("{:?}", section.host),
                    "a host name or address",
                ),
            }
        }
        let url = url.unwrap_or_else(default_url);
        let parts = ["ssl", "route", "port", "host"].map(|key| stack.origin(&["websocket", key]));
        let written = parts.into_iter().find(|origin| *origin != Origin::Default);
        reader.settings.push(Setting {
            key: "bus".to_owned(),
            value: json!(url.as_str()),
            origin: match argument {
                Some(_) => Origin::Option("--bus"),
                None => written.unwrap_or(Origin::Default),
            },
        });
        Self {
            url,
            ssl_cert: section.ssl_cert,
            // The range of the key keeps this between 65536 and 2^30.
            max_message_bytes: (section.max_msg_size * 1_048_576.0) as usize,
        }
    }
}

/// The keys of `websocket` that this service reads.
#[derive(Serialize, Deserialize)]
struct Websocket {
    #[serde(deserialize_with = "host")]
    host: String,
    #[serde(deserialize_with = "port")]
    port: u16,
    #[serde(deserialize_with = "route")]
    route: String,
    ssl: bool,
    #[serde(deserialize_with = "optional_path")]
    ssl_cert: Option<PathBuf>,
    #[serde(deserialize_with = "megabytes")]
    max_msg_size: f64,
}

impl Default for Websocket {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 8181,
            route: "/core".to_owned(),
            ssl: false,
            ssl_cert: None,
            max_msg_size: 25.0,
        }
    }
}

impl Websocket {
    fn url(&self) -> String {
        let scheme = if self.ssl { "wss" } else { "ws" };
        let host = match self.host.parse::<Ipv6Addr>() {
            Ok(address) => format!("[{address}]"),
            Err(_) => self.host.clone(),
        };
        format!(
            "{scheme}://{host}:{}/{}",
            self.port,
            self.route.trim_start_matches('/')
        )
    }
}

/// Accepts a number or its text: other services format the port into a URL, so a text works for them.
fn port<'de, D: Deserializer<'de>>(from: D) -> Result<u16, D::Error> {
    checked(from, "a port from 1 to 65535", |written: Value| {
        let number = match written {
            Value::String(text) => text.trim().parse().ok(),
            other => other.as_u64().and_then(|port| u16::try_from(port).ok()),
        };
        number.filter(|port| *port != 0)
    })
}

fn route<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    checked(from, "a path such as \"/core\"", |text: String| trimmed(&text))
}

fn megabytes<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    checked(from, "a number of MB from 0.0625 to 1024", |mb: f64| {
        (0.0625..=1024.0).contains(&mb).then_some(mb)
    })
}

fn parse(text: &str) -> Option<Url> {
    Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "ws" | "wss") && url.has_host())
}

#[expect(
    clippy::expect_used,
    reason = "a constant that the first test to load a configuration would trip over"
)]
fn default_url() -> Url {
    Url::parse("ws://127.0.0.1:8181/core").expect("a constant that is a URL")
}
