//! What follows from the channels of a robot in a graph: its parts, what drives it, and its safe stop.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use ros_graph::error::GraphError;
use ros_graph::goals::cancel_all;
use ros_graph::graph::Graph;
use ros_graph::velocity::Velocity;

use super::base::RosBase;
use super::channels::{RosBaseConfig, TRAJECTORY};
use super::emergency;
use super::goals::type_of;
use super::link::join;
use crate::adapter::{ActionError, Adapter, Estop, Notify};
use crate::capability::{Capabilities, OwnTool, Services};
use crate::conduct::Stop;
use crate::driver::{DrivenRobot, Driver, parts_of};
use crate::model::{Model, ModelError};
use crate::ros::{RosError, carrier};
use crate::subsystem::Subsystem;

/// How long the stop without an instance looks for the robot, all of it at the same time, and what it takes after that. The service
/// gives it 5 s.
const PATIENCE: Duration = Duration::from_secs(3);
const AGAIN: Duration = Duration::from_secs(1);
/// The longest wait for a connection to the graph.
const JOINING: Duration = Duration::from_millis(800);

impl Driver for RosBaseConfig {
    fn equip(&self, parts: &mut Capabilities) {
        let own = self.tools.iter().map(|(name, tool)| OwnTool {
            name: name.clone(),
            about: tool.about.clone(),
            effect: tool.effect,
            seconds: tool.seconds,
        });
        parts.services = Services {
            motor_status: self.joints().is_some(),
            self_test: parts_of(parts, &[]),
            position: self.odometry.is_some(),
            navigates: self.navigate.is_some(),
            trajectories: !self.arms.is_empty(),
            battery: self.battery.is_some(),
            way_ahead: self.scan.is_some(),
            own: own.collect(),
            ..Services::default()
        };
    }

    fn in_graph(&self) -> bool {
        true
    }

    fn fit(&self, model: Model) -> Result<Model, ModelError> {
        self.check()?;
        let parts = &model.capabilities;
        let wrong = |what: String| Err(ModelError::parse("the channels", what));
        for part in parts.subsystems() {
            let gripper = parts.arm(part).and_then(|arm| arm.gripper.as_ref());
            let hand = self.arms.get(&part).and_then(|arm| arm.gripper.as_ref());
            match part {
                Subsystem::Base => {}
                arm if !arm.is_arm() => {
                    return wrong(format!(
                        "parts.{part}: the driver ros moves a base and arms, and nothing else; leave it out"
                    ));
                }
                arm if !self.arms.contains_key(&arm) => {
                    return wrong(format!(
                        "channels.arms.{arm}: missing; expected the action of its controller, such as trajectory = \
                         \"/joint_trajectory_controller/follow_joint_trajectory\""
                    ));
                }
                _ if gripper.is_some_and(|gripper| gripper.joint.is_some()) => {
                    return wrong(format!(
                        "parts.{part}.gripper.joint: a hand in ROS is moved by an action of its own; leave it out, and give open and \
                         closed in percent"
                    ));
                }
                _ if gripper.is_some_and(|gripper| gripper.open <= gripper.closed) => {
                    return wrong(format!(
                        "parts.{part}.gripper: open has to be above closed, both in percent of the way between open and closed of \
                         channels.arms.{part}.gripper"
                    ));
                }
                _ if gripper.is_some() != hand.is_some() => {
                    return wrong(format!(
                        "parts.{part}.gripper and channels.arms.{part}.gripper: expected both, or neither"
                    ));
                }
                _ => {}
            }
        }
        if let Some(arm) = self.arms.keys().find(|arm| !parts.has(**arm)) {
            return wrong(format!("channels.arms.{arm}: the robot has no parts.{arm}"));
        }
        for (key, is_there) in [
            ("odometry", self.odometry.is_some()),
            ("scan", self.scan.is_some()),
            ("navigate", self.navigate.is_some()),
        ] {
            if is_there && parts.base.is_none() {
                return wrong(format!(
                    "channels.{key}: it is for a base, and the robot has no parts.base"
                ));
            }
        }
        Ok(model)
    }

    fn stops(&self, name: &str, stop: &Stop) -> Result<(), ActionError> {
        match stop.emergency {
            None | Some(Estop::Hold) => Ok(()),
            Some(_) => Err(ActionError::NotSupported {
                robot: name.to_owned(),
                what: "estop other than hold: a base stands, and an arm holds; the vendor's own stop is channels.emergency"
                    .to_owned(),
            }),
        }
    }

    fn drive(&self, robot: DrivenRobot<'_>, notify: Notify) -> Result<Arc<dyn Adapter>, ActionError> {
        self.stops(robot.name, robot.stop)?;
        Ok(Arc::new(RosBase::new(robot, self, notify)))
    }

    fn safe_stop(&self, robot: DrivenRobot<'_>) -> Result<(), ActionError> {
        let not_connected = |error: RosError| ActionError::NotConnected {
            robot: robot.name.to_owned(),
            reason: format!("{error}; press the robot's own button"),
        };
        let runtime = carrier::runtime(robot.name).map_err(not_connected)?;
        let stopped: Result<Vec<GraphError>, RosError> = runtime.block_on(async {
            let joined = tokio::time::timeout(JOINING, join(robot.name, self, carrier::visit)).await;
            let graph = joined.unwrap_or_else(|_| {
                Err(RosError::Graph(GraphError::Lost {
                    name: self.rosbridge.clone().unwrap_or_default(),
                    reason: format!("no connection within {JOINING:?}"),
                }))
            })?;
            let config = robot.capabilities.base.as_ref().map(|_| self.velocity());
            let zero = async |patience| match &config {
                Some(config) => Velocity::shout_zero(graph.as_ref(), config, patience).await,
                None => Ok(()),
            };
            // Together, because a goal outlives its client and would move the robot again.
            let (_, mut failed) = tokio::join!(zero(PATIENCE), self.cancel_in_order(graph.as_ref(), robot));
            let vendor = async {
                match &self.emergency {
                    Some(vendor) => emergency::ask(graph.as_ref(), &vendor.service, &vendor.on, AGAIN).await,
                    None => Ok(()),
                }
            };
            // The last zero counts: nothing commands the base after it.
            let (zero_said, vendor) = tokio::join!(zero(AGAIN), vendor);
            failed.extend([zero_said, vendor].into_iter().filter_map(Result::err));
            Ok(failed)
        });
        runtime.shutdown_background();
        let failed = stopped.map_err(not_connected)?;
        if failed.is_empty() {
            return Ok(());
        }
        let (_, left_out) = self.ros.dds().present();
        let left_out = left_out.filter(|_| self.rosbridge.is_none());
        let failed: Vec<GraphError> = failed.into_iter().chain(left_out).collect();
        let failed: Vec<String> = failed.iter().map(ToString::to_string).collect();
        Err(ActionError::Hardware {
            robot: robot.name.to_owned(),
            what: format!("{}; press the robot's own button", failed.join("; ")),
        })
    }
}

impl RosBaseConfig {
    /// Cancels all goals of all clients in parallel; the requests go out in the order of the stop. Returns the cancels that were
    /// not taken; without a base also what is not served that moves an arm: then nothing shows that the robot was reached.
    async fn cancel_in_order(&self, graph: &dyn Graph, robot: DrivenRobot<'_>) -> Vec<GraphError> {
        let mut actions = self.actions();
        actions.sort_by_key(|action| robot.stop.place(action.on));
        let arms = self.arms.values().filter(|_| robot.capabilities.base.is_none());
        let reached = arms.map(|arm| type_of(graph, &arm.trajectory, &[TRAJECTORY]));
        let names = actions.iter().map(|action| action.name.as_str());
        let (mut failed, reached) = tokio::join!(cancel_all(graph, names, PATIENCE), join_all(reached));
        failed.extend(reached.into_iter().filter_map(Result::err));
        failed
    }
}
