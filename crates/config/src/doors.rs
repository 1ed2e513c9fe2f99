//! The keys of the doors, `service.doors.<name>`. A door is a program that brings a kind of client to the tools.

use serde_json::json;

use super::reader::Reader;
use super::service::ServiceConfig;

mod agent;
mod console;
mod mcp;
mod patience;
mod schedule;
mod sign_in;
mod toolset;
mod voice;

pub use agent::{AgentBudgets, AgentDoor, CallStyle};
pub use console::ConsoleDoor;
pub use mcp::McpDoor;
pub use schedule::ScheduleDoor;
pub use sign_in::{Allowed, SignIn};
pub use toolset::Toolset;
pub use voice::{HumeVoice, Interrupt, LongCalls, OpenAiVoice, VoiceDoor, is_this_machine, speech_service};

use toolset::at;

/// `service.doors`.
#[derive(Debug, Clone, PartialEq)]
pub struct Doors {
    /// `agent`: a language model that pursues a goal.
    pub agent: AgentDoor,
    /// `console`: people with a browser, and the history.
    pub console: ConsoleDoor,
    /// `mcp`: clients of the Model Context Protocol.
    pub mcp: McpDoor,
    /// `schedule`: calls at a time, every so often, or on an event.
    pub schedule: ScheduleDoor,
    /// `voice`: live speech services.
    pub voice: VoiceDoor,
}

impl Doors {
    /// The names of the doors that come with the service: each is a folder in `doors` and a key of `service.doors`.
    pub const NAMES: [&'static str; 5] = ["agent", "console", "mcp", "schedule", "voice"];

    /// The tools that each door for models shows, by its name. People see all of them.
    #[must_use]
    pub fn toolsets(&self) -> [(&'static str, &Toolset); 4] {
        [
            ("agent", &self.agent.toolset),
            ("mcp", &self.mcp.toolset),
            ("schedule", &self.schedule.toolset),
            ("voice", &self.voice.toolset),
        ]
    }

    /// The doors that the service starts (`start: true`): their names, and the arguments of their programs.
    #[must_use]
    pub fn started(&self) -> Vec<(&'static str, Vec<String>)> {
        let http = ["--http".to_owned(), self.mcp.http_address.to_string()];
        let doors = [
            (self.agent.start, "agent", vec!["--serve".to_owned()]),
            (self.console.start, "console", Vec::new()),
            (self.mcp.start, "mcp", http.to_vec()),
            (self.schedule.start, "schedule", Vec::new()),
            (self.voice.start, "voice", Vec::new()),
        ];
        let started = doors.into_iter().filter(|(start, ..)| *start);
        started.map(|(_, name, arguments)| (name, arguments)).collect()
    }

    /// Whether the service starts a door of this name; `None` if there is none.
    #[must_use]
    pub fn starts(&self, name: &str) -> Option<bool> {
        let is_door = Self::NAMES.contains(&name);
        is_door.then(|| self.started().iter().any(|(started, _)| *started == name))
    }

    pub(super) fn read(reader: &mut Reader<'_>, service: &ServiceConfig) -> Self {
        let written = reader.written(&at(&[]));
        reader.refuse(&at(&[]), &json!({}), written, &Self::NAMES);
        Self {
            agent: AgentDoor::read(reader),
            console: ConsoleDoor::read(reader, service),
            mcp: McpDoor::read(reader, service),
            schedule: ScheduleDoor::read(reader),
            voice: VoiceDoor::read(reader),
        }
    }
}
