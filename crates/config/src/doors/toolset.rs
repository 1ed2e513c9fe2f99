//! The keys of a door that say which tools it shows.

use std::net::SocketAddr;

use ovos_toolbox_wire::{Audience, Effect};
use section::fields::checked;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::reader::Reader;
use crate::service::ServiceConfig;
use crate::toolbox::ToolFilter;

/// Which tools a door shows: those for its audience that all three filters permit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolset {
    /// The filter of the tools, by name, or by `<toolbox_id>__<name>`.
    pub tools: ToolFilter,
    /// The filter of the toolboxes that own the tools.
    pub toolboxes: ToolFilter,
    /// The filter of the tools' effects.
    pub effects: ToolFilter,
    /// For whom tools are shown. A tool for another audience is hidden, and not refused.
    pub audience: Vec<Audience>,
}

impl Default for Toolset {
    fn default() -> Self {
        Self {
            tools: ToolFilter::default(),
            toolboxes: ToolFilter::default(),
            effects: ToolFilter::default(),
            audience: vec![Audience::Model],
        }
    }
}

impl Toolset {
    /// Whether a tool is shown.
    #[must_use]
    pub fn permits(&self, tool: &str, toolbox_id: &str, effect: Effect) -> bool {
        self.tools.permits_tool(toolbox_id, tool)
            && self.toolboxes.permits(toolbox_id)
            && self.effects.permits(effect.as_str())
    }
}

impl Toolset {
    /// The keys of a door that say which tools it shows.
    pub(super) const KEYS: [&str; 4] = ["tools", "toolboxes", "effects", "audience"];

    /// Reads the keys `tools`, `toolboxes`, `effects` and `audience` of a door.
    pub(super) fn read(reader: &mut Reader<'_>, door: &'static str) -> Self {
        let mut written = reader.written(&at(&[door]));
        written.retain(|key, _| key == "audience");
        let (shown, _) = reader.open(&at(&[door]), written, AudienceKey::default());
        let mut filter = |part| reader.closed(&at(&[door, part]), ToolFilter::default());
        let toolset = Self {
            tools: filter("tools"),
            toolboxes: filter("toolboxes"),
            effects: filter("effects"),
            audience: shown.audience,
        };
        let is_effect = |word: &String| Effect::ALL.iter().any(|effect| effect.as_str() == word.as_str());
        let words = [
            ("allow", toolset.effects.allow.as_deref().unwrap_or_default()),
            ("deny", toolset.effects.deny.as_slice()),
        ];
        for (key, words) in words {
            if let Some(word) = words.iter().find(|word| !is_effect(word)) {
                let effects = Effect::ALL.map(|effect| format!("\"{}\"", effect.as_str()));
                let accepted = format!("a list of {}", effects.join(", "));
                reader.wrong(&at(&[door, "effects", key]), Value::from(word.as_str()), accepted);
            }
        }
        toolset
    }
}

/// The key `audience` of a door.
#[derive(Serialize, Deserialize)]
struct AudienceKey {
    #[serde(deserialize_with = "audience")]
    audience: Vec<Audience>,
}

impl Default for AudienceKey {
    fn default() -> Self {
        Self {
            audience: Toolset::default().audience,
        }
    }
}

fn audience<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Audience>, D::Error> {
    let accepted = "a list of \"model\" and \"person\"";
    checked(from, accepted, |words: Vec<Audience>| {
        let is_one = |word: &Audience| Audience::ALL.contains(word);
        (!words.is_empty() && words.iter().all(is_one)).then_some(words)
    })
}

pub(super) fn at(keys: &[&'static str]) -> Vec<&'static str> {
    [&ServiceConfig::PATH[..], &["doors"], keys].concat()
}

/// Reads the address of a door's web server.
pub(super) fn socket<'de, D: Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    checked(
        from,
        "an IP address with a port, such as 127.0.0.1:8765",
        |text: String| text.parse().ok(),
    )
}
