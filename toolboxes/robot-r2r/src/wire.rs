//! What goes out on one topic: the bytes of our codec, after the four that say how they are written.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use r2r::PublisherUntyped;
use ros_graph::cdr::{Cdr, Order};
use ros_graph::error::GraphError;
use ros_graph::graph::Publisher;
use ros_graph::shape::Shape;
use serde_json::Value;

use crate::orders::{Orders, lost};

/// How long a reader must have been known before it hears what is published.
const SETTLE: Duration = Duration::from_millis(200);
/// Plain CDR, little endian.
const LITTLE: [u8; 4] = [0, 1, 0, 0];

/// The value of a message that came.
///
/// # Errors
/// The bytes are not of the type.
pub(crate) fn read(shape: &Shape, bytes: &[u8]) -> Result<Value, GraphError> {
    let order = match bytes.get(1) {
        Some(0) => Order::Big,
        _ => Order::Little,
    };
    Ok(Cdr::default().decode(shape, bytes.get(4..).unwrap_or_default(), order)?)
}

pub(crate) struct R2rPublisher {
    topic: String,
    /// `None` when it is dropped.
    publisher: Mutex<Option<PublisherUntyped>>,
    shape: Arc<Shape>,
    /// Since when it has a reader.
    heard_since: Mutex<Option<Instant>>,
    orders: Orders,
}

impl R2rPublisher {
    pub(crate) fn new(topic: &str, publisher: PublisherUntyped, shape: Arc<Shape>, orders: Orders) -> Self {
        Self {
            topic: topic.to_owned(),
            publisher: Mutex::new(Some(publisher)),
            shape,
            heard_since: Mutex::default(),
            orders,
        }
    }

    fn publisher(&self) -> MutexGuard<'_, Option<PublisherUntyped>> {
        self.publisher.lock()
    }

    /// Whether a reader is there, and has been for long enough.
    fn readers(&self) -> Result<bool, GraphError> {
        let readers = self
            .publisher()
            .as_ref()
            .map(PublisherUntyped::get_inter_process_subscription_count);
        let mut heard_since = self.heard_since.lock();
        match readers {
            Some(Ok(1..)) => Ok(heard_since.get_or_insert_with(Instant::now).elapsed() >= SETTLE),
            _ => {
                *heard_since = None;
                Err(GraphError::Unheard {
                    topic: self.topic.clone(),
                })
            }
        }
    }
}

impl Publisher for R2rPublisher {
    fn publish(&self, value: &Value) -> Result<(), GraphError> {
        self.readers()?;
        let bytes = [&LITTLE[..], &Cdr::default().encode(&self.shape, value)?].concat();
        let publisher = self.publisher();
        let publisher = publisher.as_ref().ok_or(GraphError::Closed)?;
        publisher
            .publish_raw(&bytes)
            .map_err(|error| lost(&self.topic, error))
    }

    fn check_listener(&self) -> Result<(), GraphError> {
        match self.readers()? {
            true => Ok(()),
            false => Err(GraphError::Unheard {
                topic: self.topic.clone(),
            }),
        }
    }
}

impl Drop for R2rPublisher {
    fn drop(&mut self) {
        if let Some(publisher) = self.publisher().take() {
            // A node that has ended has destroyed it.
            let _ = self
                .orders
                .give(move |spun| spun.node.destroy_publisher_untyped(publisher));
        }
    }
}
