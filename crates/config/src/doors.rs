//! The keys of the doors, `service.doors.<name>`. A door is a program that brings a kind of client to the tools.

use ovos_toolbox_wire::Effect;
use serde_json::{Value, json};

use super::reader::Reader;
use super::service::ServiceConfig;
use super::toolbox::ToolFilter;

mod agent;
mod mcp;
mod voice;

pub use agent::{AgentBudgets, AgentDoor, CallStyle};
pub use mcp::McpDoor;
pub use voice::{HumeVoice, Interrupt, LongCalls, OpenAiVoice, VoiceDoor, is_this_machine, speech_service};

/// `service.doors`.
#[derive(Debug, Clone, PartialEq)]
pub struct Doors {
    /// `agent`: a language model that pursues a goal.
    pub agent: AgentDoor,
    /// `mcp`: clients of the Model Context Protocol.
    pub mcp: McpDoor,
    /// `voice`: live speech services.
    pub voice: VoiceDoor,
}

/// Which tools a door shows: those that all three filters permit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Toolset {
    /// The filter of the tools, by name, or by `<toolbox_id>__<name>`.
    pub tools: ToolFilter,
    /// The filter of the toolboxes that own the tools.
    pub toolboxes: ToolFilter,
    /// The filter of the tools' effects.
    pub effects: ToolFilter,
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

impl Doors {
    pub(super) fn read(reader: &mut Reader<'_>, service: &ServiceConfig) -> Self {
        let written = reader.written(&at(&[]));
        reader.refuse(&at(&[]), &json!({}), written, &["agent", "mcp", "voice"]);
        Self {
            agent: AgentDoor::read(reader),
            mcp: McpDoor::read(reader, service),
            voice: VoiceDoor::read(reader),
        }
    }
}

impl Toolset {
    /// The keys `tools`, `toolboxes` and `effects` of a door.
    fn read(reader: &mut Reader<'_>, door: &'static str) -> Self {
        let mut filter = |part| reader.closed(&at(&[door, part]), ToolFilter::default());
        let toolset = Self {
            tools: filter("tools"),
            toolboxes: filter("toolboxes"),
            effects: filter("effects"),
        };
        let known = |word: &String| Effect::ALL.iter().any(|effect| effect.as_str() == word.as_str());
        let words = [
            ("allow", toolset.effects.allow.as_deref().unwrap_or_default()),
            ("deny", toolset.effects.deny.as_slice()),
        ];
        for (key, words) in words {
            if let Some(word) = words.iter().find(|word| !known(word)) {
                let effects = Effect::ALL.map(|effect| format!("\"{}\"", effect.as_str()));
                let accepted = format!("a list of {}", effects.join(", "));
                reader.wrong(&at(&[door, "effects", key]), Value::from(word.as_str()), accepted);
            }
        }
        toolset
    }
}

fn at(keys: &[&'static str]) -> Vec<&'static str> {
    [&ServiceConfig::PATH[..], &["doors"], keys].concat()
}
