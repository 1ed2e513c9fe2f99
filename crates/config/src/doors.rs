//! The keys of the doors, `service.doors.<name>`: programs that bring a kind of client to the tools.

use std::path::PathBuf;

use ovos_toolbox_wire::Effect;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::reader::Reader;
use super::service::ServiceConfig;
use super::toolbox::ToolFilter;
use section::fields::{Whole, path, texts};

/// `service.doors`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doors {
    /// `mcp`: clients of the Model Context Protocol.
    pub mcp: McpDoor,
}

/// `service.doors.mcp`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpDoor {
    /// Which tools clients see.
    #[serde(skip)]
    pub toolset: Toolset,
    /// Whether the list of tools holds the schemas of their outputs, which makes it several times as long.
    pub output_schemas: bool,
    /// Whether clients see the tool `run_steps`, which calls several tools of the list as one.
    pub run_steps: bool,
    /// The size of the list of tools, in bytes of JSON, above which the door warns and names the largest tools.
    #[serde(with = "Whole::<1024, 16_777_216>")]
    pub warn_list_bytes: usize,
    /// Names, with or without a port, under which clients may reach the door over HTTP, beside those of this machine.
    #[serde(deserialize_with = "texts")]
    pub http_hosts: Vec<String>,
    /// Origins of web pages that may use the door over HTTP, such as `http://localhost:3000`.
    #[serde(deserialize_with = "texts")]
    pub http_origins: Vec<String>,
    /// Whether clients have to show a token over HTTP. Without one the door listens on a loopback address only.
    pub http_token: bool,
    /// The file of the token; it is made where it is missing.
    #[serde(deserialize_with = "path")]
    pub token_file: PathBuf,
}

/// Which tools a door shows: those that all three filters permit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Toolset {
    /// By name.
    pub tools: ToolFilter,
    /// By the toolbox that owns them.
    pub toolboxes: ToolFilter,
    /// By effect.
    pub effects: ToolFilter,
}

impl Toolset {
    /// Whether a tool is shown.
    #[must_use]
    pub fn permits(&self, tool: &str, toolbox_id: &str, effect: Effect) -> bool {
        self.tools.permits(tool)
            && self.toolboxes.permits(toolbox_id)
            && self.effects.permits(effect.as_str())
    }
}

impl Doors {
    pub(super) fn read(reader: &mut Reader<'_>, service: &ServiceConfig) -> Self {
        let at = |keys: &[&'static str]| [&ServiceConfig::PATH[..], &["doors"], keys].concat();
        let mut unknown = reader.written(&at(&[]));
        unknown.shift_remove("mcp");
        reader.refuse(&at(&[]), &json!({"mcp": null}), &unknown);

        let path = at(&["mcp"]);
        let written = reader.written(&path);
        let defaults = McpDoor {
            toolset: Toolset::default(),
            output_schemas: false,
            run_steps: false,
            warn_list_bytes: 64 << 10,
            http_hosts: Vec::new(),
            http_origins: Vec::new(),
            http_token: true,
            token_file: service.state_dir.join("mcp-token"),
        };
        let (door, mut rest) = reader.open(&path, written, defaults);
        for part in ["tools", "toolboxes", "effects"] {
            rest.shift_remove(part);
        }
        reader.refuse(&path, &door, &rest);
        let mut filter = |part| reader.closed(&at(&["mcp", part]), ToolFilter::default());
        let toolset = Toolset {
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
                reader.wrong(
                    &at(&["mcp", "effects", key]),
                    Value::from(word.as_str()),
                    accepted,
                );
            }
        }
        Self {
            mcp: McpDoor { toolset, ..door },
        }
    }
}
