//! A robot in a graph of ROS, and what its failures are called.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use ros_graph::error::GraphError;

use super::channels::RosBaseConfig;
use super::link::BaseLink;
use crate::adapter::remote::Remote;
use crate::adapter::{ActionError, ActionOutput, Notify};
use crate::conduct::Stop;
use crate::driver::DrivenRobot;
use crate::geometry::Geometry;
use crate::subsystem::Subsystem;

pub(super) type Outcome<T = ActionOutput> = Result<T, ActionError>;

/// A base, arms, or both.
pub struct RosBase {
    pub(super) config: RosBaseConfig,
    pub(super) remote: Remote<BaseLink>,
    pub(super) stop: Stop,
    /// The shapes of its arms, where its file has them.
    pub(super) shapes: BTreeMap<Subsystem, Arc<Geometry>>,
    /// How far each hand was open when it was told to close: `None` where it held nothing then.
    pub(super) hands: Mutex<BTreeMap<Subsystem, Option<f64>>>,
    /// What places are remembered in where the base counts its own wheels: that begins anew.
    pub(super) frame: String,
}

impl RosBase {
    /// A robot that is not connected yet.
    pub(super) fn new(robot: DrivenRobot<'_>, config: &RosBaseConfig, notify: Notify) -> Self {
        Self {
            remote: Remote::new(robot.name, &config.ros, robot.capabilities.clone(), notify),
            config: config.clone(),
            stop: robot.stop.clone(),
            shapes: Subsystem::EACH
                .into_iter()
                .filter_map(|arm| Some((arm, Arc::clone(robot.model.geometry(arm)?))))
                .collect(),
            hands: Mutex::default(),
            frame: format!("odom-{:08x}", fastrand::u32(..)),
        }
    }

    pub(super) fn trouble(&self, what: String) -> ActionError {
        ActionError::Hardware {
            robot: self.remote.name().to_owned(),
            what,
        }
    }

    pub(super) fn failed(&self, error: GraphError) -> ActionError {
        match error {
            GraphError::Lost { .. } | GraphError::Closed | GraphError::Absent { .. } => {
                self.remote.away(&error.to_string())
            }
            other => self.trouble(other.to_string()),
        }
    }
}
