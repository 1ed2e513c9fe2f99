//! The topics that a call speaks on until a last message, and how each of it is ended.

use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio::time::sleep;
use parking_lot::Mutex;
use ros_graph::error::GraphError;
use ros_graph::graph::Publisher;

use crate::name::subsystem;

/// How often the last message is said: a reader that does not ask for what it missed may miss one.
const TIMES: u32 = 3;
/// The pause between two of them.
const PAUSE: Duration = Duration::from_millis(50);

/// The last message of a topic, which ends what the messages before it began.
#[derive(Clone)]
pub(crate) struct LastMessage {
    pub(crate) publisher: Arc<dyn Publisher>,
    pub(crate) message: Value,
}

impl LastMessage {
    /// Says it at once, and goes on with it beside the caller.
    fn begin(self, host: &Host) -> Result<(), GraphError> {
        let published = self.publisher.publish(&self.message);
        host.spawn(async move { self.repeat().await });
        // Nothing that is not there any more moves.
        match published {
            Err(GraphError::Unheard { .. } | GraphError::Closed) => Ok(()),
            published => published,
        }
    }

    /// Says it again.
    async fn repeat(&self) {
        for _ in 1..TIMES {
            sleep(PAUSE).await;
            let _ = self.publisher.publish(&self.message);
        }
    }
}

/// What moves now.
#[derive(Default)]
pub(crate) struct Moving(Mutex<Open>);

#[derive(Default)]
struct Open {
    count: u64,
    ends: Vec<(u64, String, LastMessage)>,
}

/// Something that moves until it has ended. Dropping it begins the end.
pub(crate) struct HeldMotion {
    moving: Arc<Moving>,
    host: Host,
    number: u64,
}

impl Moving {
    /// Something of this name moves from now on.
    pub(crate) fn hold(self: &Arc<Self>, host: &Host, name: &str, end: LastMessage) -> HeldMotion {
        let mut open = self.0.lock();
        open.count += 1;
        let number = open.count;
        open.ends.push((number, subsystem(name), end));
        HeldMotion {
            moving: Arc::clone(self),
            host: host.clone(),
            number,
        }
    }

    fn remove(&self, number: u64) -> Option<LastMessage> {
        let mut open = self.0.lock();
        let at = open.ends.iter().position(|(one, ..)| *one == number)?;
        Some(open.ends.swap_remove(at).2)
    }

    /// Begins the end of all that a halt names. What moves is removed by its own call, which says the end once more.
    ///
    /// # Errors
    /// One of them could not be said; the others were.
    pub(crate) fn halt(&self, host: &Host, halt: &Halt) -> Result<(), GraphError> {
        let open = self.0.lock();
        let named = open.ends.iter().filter(|(_, name, _)| halt.includes(name));
        let named: Vec<LastMessage> = named.map(|(.., end)| end.clone()).collect();
        drop(open);
        let begun: Vec<Result<(), GraphError>> = named.into_iter().map(|end| end.begin(host)).collect();
        begun.into_iter().collect()
    }

    /// Whether nothing moves.
    pub(crate) fn is_still(&self) -> bool {
        self.0.lock().ends.is_empty()
    }
}

impl HeldMotion {
    /// Ends it, and waits until the last message was said.
    ///
    /// # Errors
    /// The message could not be said, or nothing is known to have heard it.
    ///
    /// # Cancel safety
    /// The end has begun.
    pub(crate) async fn end(self) -> Result<(), GraphError> {
        let Some(end) = self.moving.remove(self.number) else {
            return Ok(());
        };
        let published = end.publisher.publish(&end.message);
        end.repeat().await;
        published
    }
}

impl Drop for HeldMotion {
    fn drop(&mut self) {
        if let Some(end) = self.moving.remove(self.number)
            && let Err(error) = end.begin(&self.host)
        {
            tracing::warn!(%error, "the last message may not have been heard");
        }
    }
}
