//! Orders to the thread that spins a node. Read [`Orders`].

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use futures::channel::oneshot;
use futures::executor::LocalSpawner;
use parking_lot::Mutex;
use r2r::Node;
use ros_graph::error::GraphError;

/// Orders that may wait for the thread.
pub(crate) const QUEUE: usize = 256;
/// How long the thread may take to make an endpoint.
const MAKING: Duration = Duration::from_secs(2);

/// What the thread has: the node stays on the thread that made it.
pub(crate) struct Spun {
    pub(crate) node: Node,
    pub(crate) spawner: LocalSpawner,
    pub(crate) actions: HashMap<String, r2r::ActionClientUntyped>,
}

/// What the thread is to do.
pub(crate) type Order = Box<dyn FnOnce(&mut Spun) + Send>;

/// Orders to the thread. Clones give orders to the same one.
#[derive(Clone)]
pub(crate) struct Orders(pub(crate) Arc<Mutex<Option<SyncSender<Order>>>>);

impl Orders {
    /// Has the thread do something, soon.
    pub(crate) fn give(&self, order: impl FnOnce(&mut Spun) + Send + 'static) -> Result<(), GraphError> {
        let orders = self.0.lock();
        let orders = orders.as_ref().ok_or(GraphError::Closed)?;
        orders.try_send(Box::new(order)).map_err(|_| GraphError::Busy {
            what: "orders that wait for the node",
            limit: QUEUE,
        })
    }

    /// Has the thread make something, and waits for it.
    pub(crate) async fn make<T: Send + 'static>(
        &self,
        name: &str,
        make: impl FnOnce(&mut Spun) -> r2r::Result<T> + Send + 'static,
    ) -> Result<T, GraphError> {
        let (made, result) = oneshot::channel();
        self.give(move |spun| drop(made.send(make(spun))))?;
        match tokio::time::timeout(MAKING, result).await {
            Ok(Ok(made)) => made.map_err(|error| lost(name, error)),
            _ => Err(GraphError::Closed),
        }
    }
}

pub(crate) fn lost(name: &str, error: impl ToString) -> GraphError {
    GraphError::Lost {
        name: name.to_owned(),
        reason: error.to_string(),
    }
}
