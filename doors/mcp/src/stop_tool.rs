//! The door's own tools: the two stops that every client has, whatever else it may see.

use std::sync::Arc;

use rmcp::model::Tool;
use serde_json::{Map, json};

/// A tool of the door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopTool {
    /// Stops and latches every toolbox.
    EmergencyStop,
    /// Ends the calls of this door.
    StopMoving,
}

impl StopTool {
    pub(crate) const ALL: [Self; 2] = [Self::EmergencyStop, Self::StopMoving];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::EmergencyStop => "emergency_stop",
            Self::StopMoving => "stop_moving",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::EmergencyStop => {
                "Emergency stop of every machine, at once. Nothing moves afterwards until a person lifts the stop with \
                 `ovos-tools resume`. Use it when anybody or anything is in danger; never wait or ask first."
            }
            Self::StopMoving => {
                "Ends everything that was started here and brings what moves to rest. Nothing is locked: tools can be \
                 called again. Use it when the user says stop, wait or cancel."
            }
        }
    }

    /// As clients see it.
    pub(crate) fn definition(self) -> Tool {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), json!({}));
        Tool::new(self.name(), self.description(), Arc::new(schema))
    }
}
