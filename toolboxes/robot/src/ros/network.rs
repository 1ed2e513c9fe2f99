//! The network of ROS that a robot is in.

use std::sync::Arc;

use ros_graph::error::GraphError;
use ros_graph::library::Library;

use super::backend::{DdsBackend, RosBackend};
use super::carrier;
use super::config::RosConfig;
use super::error::RosError;
use super::graph_backend::GraphBackend;

/// Joins the network: in the graph of a carrier that was linked in, over DDS otherwise.
pub(crate) fn join(config: &RosConfig, node: &str) -> Result<Arc<dyn RosBackend>, RosError> {
    Ok(match carrier::linked(config)? {
        Some(join) => {
            let library = Library::shipped(config.distribution()).map_err(GraphError::from)?;
            Arc::new(GraphBackend::over(node, join(node, library)?)?)
        }
        None => Arc::new(DdsBackend::join(config, node)?),
    })
}
