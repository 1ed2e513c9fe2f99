//! The connection to a robot: its graph, whether its base hears velocities, and what it told last.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use ros_graph::cdr::Cdr;
use ros_graph::error::GraphError;
use ros_graph::graph::Graph;
use ros_graph::library::Library;
use ros_graph::rosbridge::Rosbridge;
use ros_graph::velocity::{Speed, Velocity as Channel};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::channels::RosBaseConfig;
use super::goals::{GOAL_ENDS, Goals};
use super::hearing::{PATIENCE, Readings, hear, heard_topics};
use super::lacks::{Lacks, compare};
use crate::action::Velocity;
use crate::adapter::remote::{Link, node_name};
use crate::capability::Capabilities;
use crate::dds::asked::DdsRequest;
use crate::ros::{RosConfig, RosError, carrier};
use crate::subsystem::Subsystem;

/// The pause between two looks whether the base still hears.
const LOOK: Duration = Duration::from_millis(100);
/// The channel of velocities, kept in the type that the base hears.
type Kept = Arc<Mutex<Result<Arc<Channel>, GraphError>>>;

/// The graph of a robot. Dropping it leaves the graph.
pub(super) struct BaseLink {
    pub(super) graph: Arc<dyn Graph>,
    pub(super) readings: Arc<Readings>,
    pub(super) goals: Arc<Goals>,
    /// For a robot with a base.
    channel: Option<Kept>,
    /// The joints of its arms, and where they are told.
    joints: (Vec<String>, String),
    lacks: Arc<Lacks>,
    odometry: Option<String>,
    /// The domain, of a robot that is not behind a rosbridge.
    domain: Option<u16>,
    runtime: Option<Runtime>,
}

impl Drop for BaseLink {
    fn drop(&mut self) {
        // The last holder may be a task of another runtime, where waiting is not allowed.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// How a graph over DDS is joined.
pub(super) type Join = fn(&RosConfig, &str, Library) -> Result<Arc<dyn Graph>, RosError>;

/// Joins the graph in which a robot is.
pub(super) async fn join(name: &str, config: &RosBaseConfig, join: Join) -> Result<Arc<dyn Graph>, RosError> {
    let mut library = Library::shipped(config.ros.distro).map_err(GraphError::from)?;
    for folder in &config.interfaces {
        library.add_folder(folder).map_err(GraphError::from)?;
    }
    match &config.rosbridge {
        Some(url) => Ok(Arc::new(Rosbridge::connect(url, library, Cdr::default()).await?)),
        None => join(&config.ros, &node_name(name), library),
    }
}

impl BaseLink {
    pub(super) fn open(name: &str, config: &RosBaseConfig, parts: &Capabilities) -> Result<Self, RosError> {
        let runtime = carrier::runtime(name)?;
        let graph = runtime.block_on(join(name, config, carrier::join))?;
        let readings: Arc<Readings> = Arc::default();
        let channel = parts.base.as_ref().map(|_| -> Kept {
            Arc::new(Mutex::new(Err(GraphError::Unheard {
                topic: config.velocity.topic.clone(),
            })))
        });
        if let Some(channel) = &channel {
            runtime.spawn(keep(Arc::clone(&graph), config.clone(), Arc::clone(channel)));
        }
        let goals: Arc<Goals> = Arc::default();
        runtime.spawn({
            let (graph, goals) = (Arc::clone(&graph), Arc::clone(&goals));
            async move { end_unreached(graph.as_ref(), &goals).await }
        });
        let lacks: Arc<Lacks> = Arc::default();
        runtime.spawn({
            let (graph, config, lacks) = (Arc::clone(&graph), config.clone(), Arc::clone(&lacks));
            async move { compare(graph.as_ref(), &config, &lacks).await }
        });
        for topic in heard_topics(config) {
            let (graph, readings, lacks) = (Arc::clone(&graph), Arc::clone(&readings), Arc::clone(&lacks));
            runtime.spawn(async move { hear(graph.as_ref(), &topic, &readings, &lacks).await });
        }
        Ok(Self {
            graph,
            readings,
            goals,
            channel,
            joints: (
                config.arms.keys().flat_map(|arm| names(parts, *arm)).collect(),
                config.joints().unwrap_or_default().to_owned(),
            ),
            lacks,
            odometry: config.odometry.clone(),
            domain: config.rosbridge.is_none().then_some(config.ros.domain),
            runtime: Some(runtime),
        })
    }

    /// Runs work of the graph to its end, also where the action that began it is dropped.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<JoinHandle<T>> {
        // It is there until the link is dropped.
        self.runtime.as_ref().map(|runtime| runtime.spawn(work))
    }

    /// What is wrong where nothing else is in the domain.
    fn alone(&self) -> Option<GraphError> {
        let domain = self.domain?;
        // A carrier that is in a domain knows its graph at once.
        let found = self.graph.entities().now_or_never()?.ok()?;
        found.topics.is_empty().then(|| GraphError::Join {
            carrier: format!("DDS domain {domain}"),
            reason: "nothing else is in it; check the robot's power, ros.domain and ros.interfaces"
                .to_owned(),
        })
    }

    /// The channel of velocities, where the base hears one.
    ///
    /// # Errors
    /// Nothing listens, or it listens to another type.
    fn ready_channel(kept: &Kept) -> Result<Arc<Channel>, GraphError> {
        let channel = now(kept)?;
        channel.check_listener()?;
        Ok(channel)
    }

    /// The joint of an arm that has not been told for a second.
    fn untold(&self) -> Option<&String> {
        let (joints, _) = &self.joints;
        joints
            .iter()
            .find(|joint| self.readings.joints.fresh(joint).is_none())
    }
}

/// The names of an arm's joints.
fn names(parts: &Capabilities, arm: Subsystem) -> impl Iterator<Item = String> {
    let joints = parts.joints(arm).unwrap_or_default().iter();
    joints.map(|joint| joint.name.clone())
}

/// The channel as it is now.
fn now(kept: &Kept) -> Result<Arc<Channel>, GraphError> {
    kept.lock().clone()
}

/// Cancels goals that outlive the connection or their controller as soon as something answers, for as long as it is polled.
async fn end_unreached(graph: &dyn Graph, goals: &Goals) {
    loop {
        let unreached = goals.open.unreached().await;
        for error in goals.open.cancel(graph, &unreached, GOAL_ENDS).await {
            tracing::debug!(%error, "a goal may still be running");
        }
    }
}

/// Keeps the channel of velocities in the type that the base hears. One that was heard stays until another one is: over it a stop is
/// said whatever the graph tells of its listeners.
async fn keep(graph: Arc<dyn Graph>, config: RosBaseConfig, kept: Kept) {
    loop {
        if BaseLink::ready_channel(&kept).is_err() {
            // A publisher that is new has to be known to the base before it is heard: less patience would give up each.
            let opened = Channel::open(graph.as_ref(), config.velocity(), PATIENCE).await;
            let mut kept = kept.lock();
            if opened.is_ok() || kept.is_err() {
                *kept = opened.map(Arc::new);
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

impl Link for BaseLink {
    const AGAIN: Duration = Duration::from_millis(50);
    const LEASE: Duration = Duration::from_millis(300);
    const SILENT: &str = "the robot is silent: its odometry, or the positions of its joints, have not arrived for a second; check its \
        power, and that what publishes them runs";

    fn say(&self, velocity: &Velocity) -> Result<(), RosError> {
        let Some(kept) = &self.channel else {
            return Ok(());
        };
        now(kept)?.say(Speed {
            forward: velocity.x,
            left: velocity.y,
            turn: velocity.turn,
        })?;
        Ok(())
    }

    fn tell(&self, velocity: &Velocity) -> Result<Option<DdsRequest>, RosError> {
        self.say(velocity).map(|()| None)
    }

    fn is_there(&self) -> bool {
        match &self.channel {
            Some(kept) => {
                Self::ready_channel(kept).is_ok()
                    && (self.odometry.is_none() || self.readings.odometry.fresh().is_some())
            }
            None => self.untold().is_none(),
        }
    }

    fn is_silent(&self) -> bool {
        match &self.channel {
            Some(kept) => Self::ready_channel(kept).is_ok() && self.readings.odometry.is_silent(),
            None => self
                .untold()
                .is_some_and(|joint| self.readings.joints.get(joint).is_some()),
        }
    }

    fn lacks(&self) -> Option<String> {
        self.lacks.summary()
    }

    fn fits(&self) -> Result<(), RosError> {
        let Some(kept) = &self.channel else {
            return match self.untold() {
                None => Ok(()),
                Some(joint) => Err(RosError::Graph(self.alone().unwrap_or_else(|| GraphError::Lost {
                    name: self.joints.1.clone(),
                    reason: format!(
                        "no position of {joint} has arrived for a second: start what publishes it on the robot, or correct the joint's \
                         name in `parts` or the topic in channels.joints"
                    ),
                }))),
            };
        };
        match (Self::ready_channel(kept), &self.odometry) {
            (Err(unheard @ GraphError::Unheard { .. }), _) => Err(self.alone().unwrap_or(unheard)),
            (Err(error), _) => Err(error),
            (Ok(_), Some(topic)) if self.readings.odometry.get().is_none() => Err(GraphError::Lost {
                name: topic.clone(),
                reason:
                    "no odometry has come on it; start what publishes it on the robot, or name its topic in \
                         channels.odometry"
                        .to_owned(),
            }),
            (Ok(_), _) => Ok(()),
        }
        .map_err(RosError::Graph)
    }
}
