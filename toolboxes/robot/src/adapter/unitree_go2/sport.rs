//! The connection to a Go2: its sport service, and what it says of itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::config::UnitreeGo2Config;
use crate::action::Velocity;
use crate::adapter::remote::{Link, node_name};
use crate::dds::Participant;
use crate::dds::asked::DdsRequest;
use crate::dds::latest::Latest;
use crate::dds::unitree::{Rpc, SPORT_MODE_STATE, SportModeState, go2};
use crate::ros::RosError;

/// One of the robot's own routines, which is a tool.
pub(super) struct Routine {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// Functions of the sport service, one after another.
    pub(super) functions: &'static [i64],
    /// How long each takes, in seconds: our estimate, for the robot does not say.
    pub(super) seconds: f64,
}

/// The routines that keep the robot on its feet or lay it down; jumps and flips are left to its remote control.
pub(super) const ROUTINES: [Routine; 6] = [
    Routine {
        name: "stand_up",
        about: "Have the robot stand up and balance, so that it can walk",
        functions: &[go2::STAND_UP, go2::BALANCE_STAND],
        seconds: 2.0,
    },
    Routine {
        name: "lie_down",
        about: "Have the robot lie down",
        functions: &[go2::STAND_DOWN],
        seconds: 3.0,
    },
    Routine {
        name: "recover",
        about: "Have the robot get up after a fall",
        functions: &[go2::RECOVERY_STAND],
        seconds: 4.0,
    },
    Routine {
        name: "greet",
        about: "Have the robot wave with a foreleg; it needs free space around it",
        functions: &[go2::HELLO],
        seconds: 5.0,
    },
    Routine {
        name: "stretch",
        about: "Have the robot stretch",
        functions: &[go2::STRETCH],
        seconds: 6.0,
    },
    Routine {
        name: "heart",
        about: "Have the robot draw a heart with its forelegs",
        functions: &[go2::HEART],
        seconds: 6.0,
    },
];

pub(super) fn routine(name: &str) -> Option<&'static Routine> {
    ROUTINES.iter().find(|routine| routine.name == name)
}

/// The sport service of a robot.
pub(super) struct Sport {
    participant: Arc<Participant>,
    rpc: Rpc,
    state: Latest<SportModeState>,
}

impl Sport {
    pub(super) fn open(name: &str, config: &UnitreeGo2Config) -> Result<Self, RosError> {
        let participant = Arc::new(Participant::join(&config.ros, &node_name(name))?);
        let timeout = Duration::from_millis(config.answer_ms.clamp(100, 5000));
        Ok(Self {
            rpc: Rpc::new(&participant, "sport", timeout)?,
            state: Latest::of(&participant, "/sportmodestate", SPORT_MODE_STATE)?,
            participant,
        })
    }

    pub(super) fn rpc(&self) -> &Rpc {
        &self.rpc
    }

    /// What the robot says of itself, unless it has fallen silent.
    pub(super) fn state(&self) -> Option<SportModeState> {
        let state = self.state.lock();
        let state = state.as_ref().map(|state| state.message.clone());
        state.filter(|_| !self.state.is_silent())
    }

    /// What the robot has said of itself since then.
    pub(super) fn state_since(&self, since: Instant) -> Option<SportModeState> {
        let state = self.state.lock();
        let state = state.as_ref().filter(|state| state.at >= since);
        state.map(|state| state.message.clone())
    }

    pub(super) fn leave(&self) {
        self.participant.close();
    }
}

/// The function that a velocity is, and its parameter.
pub(super) fn velocity(velocity: &Velocity) -> (i64, Value) {
    if *velocity == Velocity::default() {
        return (go2::STOP_MOVE, json!({}));
    }
    let parameter = json!({"x": velocity.x, "y": velocity.y, "z": velocity.turn});
    (go2::MOVE, parameter)
}

impl Link for Sport {
    const AGAIN: Duration = Duration::from_millis(100);
    const LEASE: Duration = Duration::from_millis(400);
    const SILENT: &str = "the robot is silent: nothing has come on /sportmodestate for a second; check its power, and that its \
                          motion control runs";

    fn say(&self, said: &Velocity) -> Result<(), RosError> {
        let (function, parameter) = velocity(said);
        self.rpc.send(function, &parameter)
    }

    fn tell(&self, said: &Velocity) -> Result<Option<DdsRequest>, RosError> {
        let (function, parameter) = velocity(said);
        self.rpc.ask(function, &parameter).map(Some)
    }

    fn is_there(&self) -> bool {
        self.rpc.requests().is_ready() && self.state().is_some()
    }

    fn is_silent(&self) -> bool {
        self.rpc.requests().is_ready() && self.state.is_silent()
    }
}
