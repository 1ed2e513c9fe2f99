//! A K1, and its connection in one of the two profiles.
//!
//! Owns how a velocity is sent. Read [`Speech`].

use std::time::Duration;

use super::config::{self, BoosterK1Config, Profile};
use super::rpc::RpcLink;
use super::sent::LastAngles;
use super::topics::TopicsLink;
use crate::action::Velocity;
use crate::adapter::contract::Notify;
use crate::adapter::part_reading::PartReading;
use crate::adapter::remote::{Link, Remote};
use crate::capability::{Capabilities, Joint};
use crate::conduct::Estop;
use crate::dds::asked::DdsRequest;
use crate::driver::DrivenRobot;
use crate::error::ActionError;
use crate::ros::RosError;
use crate::subsystem::Subsystem;

/// A K1.
pub struct BoosterK1 {
    pub(super) config: BoosterK1Config,
    pub(super) estop: Estop,
    pub(super) remote: Remote<Speech>,
}

impl BoosterK1 {
    /// A robot that is not connected yet.
    ///
    /// # Errors
    /// The robot cannot do what `estop` asks for in this profile.
    pub fn new(
        robot: DrivenRobot<'_>,
        config: &BoosterK1Config,
        notify: Notify,
    ) -> Result<Self, ActionError> {
        Ok(Self {
            estop: config::estop(robot.name, config, robot.stop.emergency)?,
            remote: Remote::new(robot.name, &config.ros, robot.capabilities.clone(), notify),
            config: config.clone(),
        })
    }
}

/// The connection of one of the two profiles.
#[allow(clippy::large_enum_variant, reason = "there is one of it for each robot")]
pub(in crate::adapter) enum Speech {
    Topics(TopicsLink),
    Rpc(RpcLink),
}

impl Speech {
    pub(super) fn open(
        name: &str,
        config: &BoosterK1Config,
        parts: &Capabilities,
        notify: &Notify,
    ) -> Result<Self, RosError> {
        Ok(match config.profile {
            Profile::Topics => Self::Topics(TopicsLink::open(name, config, parts)?),
            Profile::BoosterRpc => Self::Rpc(RpcLink::open(name, config, notify)?),
        })
    }

    /// Where the joints of an arm or the head are.
    pub(super) fn reading(&self, on: Subsystem, joints: &[Joint]) -> PartReading {
        match self {
            Self::Topics(link) => link.reading(on, joints),
            Self::Rpc(link) => link.reading(on, joints),
        }
    }

    /// The last commanded positions.
    pub(super) fn sent(&self) -> &LastAngles {
        match self {
            Self::Topics(link) => link.sent(),
            Self::Rpc(link) => link.sent(),
        }
    }

    pub(super) fn close(&self) {
        match self {
            Self::Topics(link) => link.close(),
            Self::Rpc(link) => link.close(),
        }
    }
}

impl Link for Speech {
    const AGAIN: Duration = Duration::from_millis(100);
    const LEASE: Duration = Duration::from_millis(300);

    fn say(&self, velocity: &Velocity) -> Result<(), RosError> {
        match self {
            Self::Topics(link) => link.velocity(velocity),
            Self::Rpc(link) => link.say(velocity),
        }
    }

    fn tell(&self, velocity: &Velocity) -> Result<Option<DdsRequest>, RosError> {
        match self {
            Self::Topics(link) => link.velocity(velocity).map(|()| None),
            Self::Rpc(link) => link.ask_velocity(velocity).map(Some),
        }
    }

    fn is_there(&self) -> bool {
        match self {
            Self::Topics(link) => link.is_there(),
            Self::Rpc(link) => link.is_there(),
        }
    }

    fn fits(&self) -> Result<(), RosError> {
        match self {
            Self::Topics(link) => link.fits(),
            Self::Rpc(_) => Ok(()),
        }
    }

    fn is_silent(&self) -> bool {
        match self {
            Self::Topics(link) => link.is_silent(),
            Self::Rpc(link) => link.is_silent(),
        }
    }

    fn unfit(&self) -> Option<String> {
        match self {
            // No topic of this profile reports whether the robot stands.
            Self::Topics(_) => None,
            Self::Rpc(link) => link.posture().unfit(),
        }
    }

    fn unreported(&self) -> Option<&'static str> {
        match self {
            Self::Topics(_) => None,
            Self::Rpc(link) => link.posture().unreported(),
        }
    }

    fn left(&self) {
        match self {
            Self::Topics(link) => link.left(),
            Self::Rpc(link) => link.left(),
        }
    }

    fn appeared(&self) {
        if let Self::Rpc(link) = self
            && let Err(error) = link.end_owed()
        {
            tracing::warn!(%error, "cannot end what the robot does of its own");
        }
    }
}
