//! The two stops, which every client of every door has besides the tools that it may see.

use ovos_toolbox_wire::Effect;

use crate::OwnTool;

/// One of the two stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopTool {
    /// Stops and latches every toolbox.
    EmergencyStop,
    /// Ends the calls of this door.
    StopMoving,
}

impl OwnTool for StopTool {
    const ALL: &'static [Self] = &[Self::EmergencyStop, Self::StopMoving];

    fn name(self) -> &'static str {
        match self {
            Self::EmergencyStop => "emergency_stop",
            Self::StopMoving => "stop_moving",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::EmergencyStop => {
                "Stop every machine at once, at any sign of danger; never wait or ask first. Nothing moves until a person lifts it."
            }
            Self::StopMoving => {
                "Cancel the calls started here and bring what they move to rest, when the user says stop, wait or cancel."
            }
        }
    }

    fn effect(self) -> Effect {
        Effect::Stop
    }
}
