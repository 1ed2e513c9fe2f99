//! Which carrier a graph of ROS has where its robot is not behind a rosbridge: DDS, or what the library that links this one brings.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ros_graph::cdr::Cdr;
use ros_graph::dds::{Dds, DdsConfig};
use ros_graph::error::GraphError;
use ros_graph::graph::Graph;
use ros_graph::library::Library;
use ros_graph::velocity::{Velocity, VelocityConfig};
use tokio::runtime::{Builder, Runtime};

use super::config::RosConfig;
use super::error::RosError;

/// Joins a graph as a node of this name, with the types that are known.
pub type Join = fn(&str, Library) -> Result<Arc<dyn Graph>, GraphError>;

/// A library chooses its carrier when it is linked. This is the only state outside of an instance.
static JOIN: OnceLock<Join> = OnceLock::new();

/// Lets a crate that links this one carry graphs of ROS. Once, before a toolbox is opened; later calls change nothing.
pub fn carry_graphs_with(join: Join) {
    let _ = JOIN.set(join);
}

/// The carrier that was linked in, which is in the domain of its environment; `None` where there is none.
///
/// # Errors
/// The environment's domain is not the configured one, to which a stop after a crash goes.
pub(crate) fn linked(config: &RosConfig) -> Result<Option<Join>, RosError> {
    let Some(join) = JOIN.get() else {
        return Ok(None);
    };
    config.is_domain(std::env::var("ROS_DOMAIN_ID").ok().as_deref())?;
    Ok(Some(*join))
}

/// Joins the graph of a domain as a node of this name.
///
/// # Errors
/// As of [`linked`]; or the domain or an interface cannot be used.
pub(crate) fn join(config: &RosConfig, name: &str, library: Library) -> Result<Arc<dyn Graph>, RosError> {
    if let Some(join) = linked(config)? {
        return Ok(join(name, library)?);
    }
    let dds = dds(&config.dds(), library)?;
    dds.announce(name)?;
    Ok(Arc::new(dds))
}

/// Joins the graph for one stop: where the carrier allows it without a name, because it is heard sooner then.
///
/// # Errors
/// As of [`join`].
pub(crate) fn visit(config: &RosConfig, name: &str, library: Library) -> Result<Arc<dyn Graph>, RosError> {
    match linked(config)? {
        Some(join) => Ok(join(name, library)?),
        None => Ok(Arc::new(dds(&config.dds().present().0, library)?)),
    }
}

/// Joins a domain over DDS, without a name.
///
/// # Errors
/// The domain or an interface cannot be used.
pub(crate) fn dds(config: &DdsConfig, library: Library) -> Result<Dds, RosError> {
    Ok(Dds::join(config, library, Cdr::default())?)
}

/// Brings a base to rest without an instance: says zero in every type that its topic is heard in. Blocks for a little more than
/// `patience` at most.
///
/// # Errors
/// The graph cannot be joined, nothing listens, or it listens to another type.
pub(crate) fn stand(
    config: &RosConfig,
    name: &str,
    velocity: &VelocityConfig,
    patience: Duration,
) -> Result<(), RosError> {
    let runtime = runtime(name)?;
    let library = Library::shipped(config.distro).map_err(GraphError::from)?;
    let stood = runtime.block_on(async {
        let graph = visit(config, name, library)?;
        Ok(Velocity::shout_zero(graph.as_ref(), velocity, patience).await?)
    });
    runtime.shutdown_background();
    stood.map_err(|error| config.explain(error))
}

/// A runtime for one graph: what it carries does not wait for what else the toolbox does.
pub(crate) fn runtime(name: &str) -> Result<Runtime, RosError> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name(format!("ros-{name}"))
        .enable_all()
        .build();
    runtime.map_err(|error| {
        RosError::Graph(GraphError::Join {
            carrier: "the graph".to_owned(),
            reason: error.to_string(),
        })
    })
}
