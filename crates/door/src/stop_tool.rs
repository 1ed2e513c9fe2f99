//! The two stops, which every client of every door has besides the tools that it may see.

use ovos_toolbox_wire::Object;
use serde_json::json;

/// One of the two stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopTool {
    /// Stops and latches every toolbox.
    EmergencyStop,
    /// Ends the calls of this door.
    StopMoving,
}

impl StopTool {
    /// Both, the harder one first.
    pub const ALL: [Self; 2] = [Self::EmergencyStop, Self::StopMoving];

    /// The name of the tool.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::EmergencyStop => "emergency_stop",
            Self::StopMoving => "stop_moving",
        }
    }

    /// The description that a model reads.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::EmergencyStop => {
                "Stop every machine at once, at any sign of danger; never wait or ask first. Nothing moves until a person lifts it."
            }
            Self::StopMoving => {
                "Cancel the calls started here and bring what they move to rest, when the user says stop, wait or cancel."
            }
        }
    }

    /// The schema of its arguments: it has none.
    #[must_use]
    pub fn arguments() -> Object {
        let mut schema = Object::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), json!({}));
        schema
    }

    /// The stop with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }
}
