//! The graph, joined with the first call that needs it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio::sync::Mutex;
use ovos_toolbox_sdk::tokio::time::sleep;
use ros_graph::cdr::Cdr;
use ros_graph::dds::{Dds, DdsConfig};
use ros_graph::definition::{Kind, TypeName};
use ros_graph::error::GraphError;
use ros_graph::graph::{Entities, Graph};
use ros_graph::library::Library;
use ros_graph::rosbridge::Rosbridge;
use ros_graph::shape::Shape;

use crate::config::Config;

/// The name of the node in the graph.
const NODE: &str = "ovos_tools_ros";
/// How long a graph that was just joined is given to show what is in it.
const KNOWN: Duration = Duration::from_secs(2);
/// So long nothing new has come where it is known.
const QUIET: Duration = Duration::from_millis(400);
/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// The graph of the configuration.
pub(crate) struct JoinedGraph {
    config: Config,
    graph: Mutex<Option<Arc<dyn Graph>>>,
}

impl JoinedGraph {
    /// Joins nothing yet.
    ///
    /// # Errors
    /// A definition of the owner's folders cannot be read.
    pub(crate) fn new(config: Config) -> Result<Self, ToolError> {
        library(&config)?;
        Ok(Self {
            config,
            graph: Mutex::new(None),
        })
    }

    /// The graph. The first call joins it, and waits until it shows what is in it: 2.5 s at most.
    ///
    /// # Errors
    /// The domain or the address cannot be used.
    ///
    /// # Cancel safety
    /// Safe: the next call joins.
    pub(crate) async fn graph(&self) -> Result<Arc<dyn Graph>, GraphError> {
        let mut joined = self.graph.lock().await;
        if let Some(graph) = joined.as_ref() {
            return Ok(Arc::clone(graph));
        }
        let graph = join(&self.config).await?;
        if self.config.rosbridge.is_none() {
            settle(graph.as_ref()).await?;
        }
        *joined = Some(Arc::clone(&graph));
        Ok(graph)
    }

    /// The graph, where it was joined.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn current(&self) -> Option<Arc<dyn Graph>> {
        self.graph.lock().await.clone()
    }

    /// Leaves the graph.
    pub(crate) async fn leave(&self) {
        self.graph.lock().await.take();
    }
}

fn library(config: &Config) -> Result<Library, GraphError> {
    let mut library = Library::shipped(config.distro)?;
    for folder in &config.types {
        library.add_folder(folder)?;
    }
    Ok(library)
}

/// How the domain of the configuration is joined.
pub(crate) fn dds(config: &Config) -> DdsConfig {
    DdsConfig {
        domain: config.domain,
        interfaces: config.interfaces.clone(),
    }
}

/// Joins the graph of the configuration.
pub(crate) async fn join(config: &Config) -> Result<Arc<dyn Graph>, GraphError> {
    let library = library(config)?;
    Ok(match &config.rosbridge {
        Some(url) => Arc::new(Rosbridge::connect(url, library, Cdr::default()).await?),
        None => {
            let graph = Dds::join(&dds(config), library, Cdr::default())?;
            // The tools of ROS show who speaks here.
            graph.announce(NODE)?;
            Arc::new(graph)
        }
    })
}

/// Waits until the graph shows something, and nothing new.
async fn settle(graph: &dyn Graph) -> Result<(), GraphError> {
    let start = Instant::now();
    let (mut known, mut since) = (Entities::default(), Instant::now());
    while start.elapsed() < KNOWN {
        let now = graph.entities().await?;
        if now != known {
            (known, since) = (now, Instant::now());
        } else if known != Entities::default() && since.elapsed() >= QUIET {
            break;
        }
        sleep(LOOK).await;
    }
    Ok(())
}

/// The message of this type, with all that lies in it.
///
/// # Errors
/// The type is neither known here nor described by the graph.
pub(crate) async fn shape(graph: &dyn Graph, of: &TypeName) -> Result<Arc<Shape>, GraphError> {
    let mut library = Library::empty();
    for definition in graph.definitions(of).await? {
        library.add(definition);
    }
    Ok(library.shape(of)?)
}

/// The type that a caller names; `geometry_msgs/Twist` is a message.
///
/// # Errors
/// It is not the name of a type, or not of this kind.
pub(crate) fn type_name(text: &str, kind: Kind) -> Result<TypeName, ToolError> {
    let of: TypeName = text.trim().parse().map_err(ToolError::bad_args)?;
    match of.kind == kind {
        true => Ok(of),
        false => Err(ToolError::bad_args(format!(
            "{of} is not a type of this kind: expected PACKAGE/{}/NAME",
            kind.folder()
        ))),
    }
}
