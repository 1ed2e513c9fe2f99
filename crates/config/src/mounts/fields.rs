//! The values of a mount's keys: functions that check them, and texts that say what is accepted.

use std::collections::BTreeMap;

use ovos_toolbox_wire::Effect;
use serde::Deserializer;
use serde_json::{Map, Value};
use url::Url;

use super::transport::MountTransport;
use crate::toolbox::ToolFilter;
use section::fields::checked;

pub(super) fn transport<'de, D: Deserializer<'de>>(from: D) -> Result<Option<MountTransport>, D::Error> {
    let accepted = "\"stdio\" or \"http\"; the older \"sse\" is not supported: such servers usually offer streamable HTTP as well, at /mcp";
    checked(from, accepted, |word: Option<String>| {
        let Some(word) = word else { return Some(None) };
        match word.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
            "stdio" => Some(Some(MountTransport::Stdio)),
            "http" | "streamablehttp" => Some(Some(MountTransport::Http)),
            _ => None,
        }
    })
}

pub(super) fn command<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let accepted = "an absolute path, one that starts with ~/ or the name of a program in PATH; arguments go into `args`";
    checked(from, accepted, |word: Option<String>| {
        let Some(word) = word else { return Some(None) };
        let name = !word.is_empty() && !word.contains('/') && !word.contains(char::is_whitespace);
        let good = !word.contains('\0') && (word.starts_with('/') || name);
        good.then_some(Some(word))
    })
}

pub(super) fn args<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    checked(from, "a list of strings", |words: Vec<String>| {
        words.iter().all(|word| !word.contains('\0')).then_some(words)
    })
}

pub(super) fn variables<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let accepted = "an object of variable names and strings";
    let good = |(name, text): (&String, &String)| {
        !name.is_empty() && !name.contains(['=', '\0']) && !text.contains('\0')
    };
    checked(from, accepted, |env: BTreeMap<String, String>| {
        env.iter().all(good).then_some(env)
    })
}

pub(super) fn headers<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let accepted = "an object of header names and strings in ASCII";
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let good = |(name, text): (&String, &String)| {
        let visible = text.bytes().all(|b| b == b' ' || b.is_ascii_graphic());
        !name.is_empty() && name.bytes().all(token) && visible
    };
    checked(from, accepted, |headers: BTreeMap<String, String>| {
        headers.iter().all(good).then_some(headers)
    })
}

pub(super) fn variable<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let accepted = "the name of a variable in the service's environment, such as \"HOME_ASSISTANT_TOKEN\" (not the token)";
    let letter = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    checked(from, accepted, |name: Option<String>| match name {
        None => Some(None),
        Some(name) => {
            let good = !name.is_empty() && name.bytes().all(letter) && !name.as_bytes()[0].is_ascii_digit();
            good.then_some(Some(name))
        }
    })
}

pub(super) fn address<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let accepted = "a URL that starts with http:// or https://";
    checked(from, accepted, |text: Option<String>| {
        let Some(text) = text else { return Some(None) };
        let url = Url::parse(&text).ok()?;
        let good = matches!(url.scheme(), "http" | "https") && url.has_host();
        good.then_some(Some(text))
    })
}

pub(super) fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    checked(from, "a number of seconds from 0.1 to 86400", |seconds: f64| {
        (0.1..=86_400.0).contains(&seconds).then_some(seconds)
    })
}

pub(super) fn filter<'de, D: Deserializer<'de>>(from: D) -> Result<ToolFilter, D::Error> {
    let accepted = "an object {allow, deny} of lists of tool names, * for any run of characters";
    let names = |written: Option<&Value>| -> Option<Option<Vec<String>>> {
        let Some(written) = written.filter(|written| !written.is_null()) else {
            return Some(None);
        };
        let names: Vec<String> = serde_json::from_value(written.clone()).ok()?;
        names.iter().all(|name| !name.is_empty()).then_some(Some(names))
    };
    checked(from, accepted, |written: Map<String, Value>| {
        let is_known = written.keys().all(|key| matches!(key.as_str(), "allow" | "deny"));
        Some(ToolFilter {
            allow: names(written.get("allow"))?,
            deny: names(written.get("deny"))?.unwrap_or_default(),
        })
        .filter(|_| is_known)
    })
}

pub(super) fn effects<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, Effect>, D::Error> {
    let accepted = "an object of tool names and \"read\" or \"write\": a mounted server cannot be halted, so a tool that \
                    moves a machine cannot be mounted (docs/mounts.md)";
    checked(from, accepted, |effects: BTreeMap<String, Effect>| {
        let all = effects
            .values()
            .all(|effect| matches!(effect, Effect::Read | Effect::Write));
        all.then_some(effects)
    })
}

pub(super) fn description<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    checked(from, "a string", |text: Option<String>| Some(text))
}
