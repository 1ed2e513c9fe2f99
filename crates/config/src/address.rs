//! The bus address: the `websocket` section that every OVOS service reads, or `--bus URL`.

use std::net::Ipv6Addr;
use std::path::PathBuf;

use serde_json::{Value, json};
use url::{Host, Url};

use super::error::ConfigError;
use super::layers::Stack;
use super::origin::{Origin, Setting, dotted};
use super::paths::Xdg;
use super::section::Section;
use super::text::truthy;

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
    pub(super) fn read(
        xdg: &Xdg,
        stack: &Stack,
        bus: Option<&str>,
    ) -> (Self, Vec<Setting>, Vec<ConfigError>) {
        let mut section = Section::new(stack, xdg, &["websocket"]);
        let it = &mut section;
        let text = |value: &Value| {
            value
                .as_str()
                .map(str::trim)
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        let host = it.take(
            "host",
            "127.0.0.1".to_owned(),
            "a host name or address",
            text,
            |host| json!(host),
        );
        let port = it.take("port", 8181, "a port from 1 to 65535", port_number, |port| {
            json!(port)
        });
        let route = it.take(
            "route",
            "/core".to_owned(),
            "a path such as \"/core\"",
            text,
            |route| json!(route),
        );
        let ssl = it.flag("ssl", false);
        let ssl_cert = it.optional_path("ssl_cert");
        let size = |value: &Value| value.as_f64().filter(|mb| (0.0625..=1024.0).contains(mb));
        let megabytes = it.take(
            "max_msg_size",
            25.0,
            "a number of MB from 0.0625 to 1024",
            size,
            |mb| json!(mb),
        );
        if stack.get(&["websocket", "secret_key"]).is_some_and(truthy) {
            it.errors.push(ConfigError::Encrypted {
                origin: stack.origin(&["websocket", "secret_key"]),
            });
        }

        let mut written = String::from(if ssl { "wss://" } else { "ws://" });
        let host = if host.parse::<Ipv6Addr>().is_ok() {
            format!("[{host}]")
        } else {
            host
        };
        written.push_str(&format!("{host}:{port}/{}", route.trim_start_matches('/')));
        let mut origin = None;
        let url = match bus {
            // An address without a path gets the configured route: no OVOS bus answers on "/".
            Some(given) => parse(given).map(|mut url| {
                origin = Some(Origin::Option("--bus"));
                if matches!(url.path(), "" | "/") {
                    url.set_path(&route);
                }
                url
            }),
            None => parse(&written),
        };
        let url = url.unwrap_or_else(|| {
            match bus {
                Some(given) => it.errors.push(ConfigError::WrongValue {
                    origin: Origin::Option("--bus"),
                    key: "URL".to_owned(),
                    found: format!("{given:?}"),
                    accepted: "an address such as ws://127.0.0.1:8181/core (ws or wss)".to_owned(),
                }),
                None => it.wrong("host", format!("{host:?}"), "a host name or address"),
            }
            default_url()
        });
        let (mut settings, errors) = (section.settings, section.errors);
        settings.push(Setting {
            key: dotted(["bus"]),
            value: json!(url.as_str()),
            origin: origin.unwrap_or_else(|| {
                let parts = ["host", "port", "route", "ssl"].map(|key| stack.origin(&["websocket", key]));
                parts
                    .into_iter()
                    .rev()
                    .find(|origin| *origin != Origin::Default)
                    .unwrap_or(Origin::Default)
            }),
        });
        // The range above keeps this between 65536 and 2^30.
        let max_message_bytes = (megabytes * 1_048_576.0) as usize;
        (
            Self {
                url,
                ssl_cert,
                max_message_bytes,
            },
            settings,
            errors,
        )
    }
}

fn parse(text: &str) -> Option<Url> {
    Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "ws" | "wss") && url.has_host())
}

/// Accepts a number or its text: other services format the port into a URL, so a text works for them.
fn port_number(value: &Value) -> Option<u16> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_u64().and_then(|port| u16::try_from(port).ok()),
    };
    number.filter(|port| *port != 0)
}

#[expect(
    clippy::expect_used,
    reason = "a constant that the first test to load a configuration would trip over"
)]
fn default_url() -> Url {
    Url::parse("ws://127.0.0.1:8181/core").expect("a constant that is a URL")
}
