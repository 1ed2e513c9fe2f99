//! What moves because of a call, and how each of it is ended.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio::time::sleep;
use ros_graph::error::GraphError;
use ros_graph::graph::{Goal, Publisher};

use crate::name::subsystem;

/// How long a goal is given to end after its cancel.
pub(crate) const GOAL_ENDS: Duration = Duration::from_secs(3);
/// How often the last message is said: a reader that does not ask for what it missed may miss one.
const TIMES: u32 = 3;
/// The pause between two of them.
const PAUSE: Duration = Duration::from_millis(50);

/// How something is ended.
#[derive(Clone)]
pub(crate) enum End {
    /// By a last message.
    Say(Arc<dyn Publisher>, Value),
    /// By a cancel.
    Cancel(Arc<Goal>),
}

impl End {
    /// Begins the end at once, and goes on with it beside the caller.
    fn begin(self, host: &Host) -> Result<(), GraphError> {
        match self {
            Self::Say(publisher, message) => {
                let published = publisher.publish(&message);
                host.spawn(async move { say(publisher.as_ref(), &message, TIMES - 1).await });
                // Nothing that is not there any more moves.
                match published {
                    Err(GraphError::Unheard { .. } | GraphError::Closed) => Ok(()),
                    published => published,
                }
            }
            Self::Cancel(goal) => {
                host.spawn(async move {
                    if let Err(error) = goal.cancel(GOAL_ENDS).await {
                        tracing::warn!(%error, "a goal was not ended");
                    }
                });
                Ok(())
            }
        }
    }
}

/// Says the last message so many times.
async fn say(publisher: &dyn Publisher, message: &Value, times: u32) {
    for _ in 0..times {
        sleep(PAUSE).await;
        let _ = publisher.publish(message);
    }
}

/// What moves now.
#[derive(Default)]
pub(crate) struct Moving(Mutex<Open>);

#[derive(Default)]
struct Open {
    last: u64,
    ends: Vec<(u64, String, End)>,
}

/// Something that moves until it has ended. Dropping it begins the end.
pub(crate) struct HeldMotion {
    moving: Arc<Moving>,
    host: Host,
    number: u64,
}

impl Moving {
    fn lock(&self) -> MutexGuard<'_, Open> {
        // Every change is one insertion or removal.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something of this name moves from now on.
    pub(crate) fn hold(self: &Arc<Self>, host: &Host, name: &str, end: End) -> HeldMotion {
        let mut open = self.lock();
        open.last += 1;
        let number = open.last;
        open.ends.push((number, subsystem(name), end));
        HeldMotion {
            moving: Arc::clone(self),
            host: host.clone(),
            number,
        }
    }

    fn remove(&self, number: u64) -> Option<End> {
        let mut open = self.lock();
        let at = open.ends.iter().position(|(one, ..)| *one == number)?;
        Some(open.ends.swap_remove(at).2)
    }

    /// Begins the end of all that a halt names. What moves is removed by its own call, which says the end once more.
    ///
    /// # Errors
    /// One of them could not be said; the others were.
    pub(crate) fn halt(&self, host: &Host, halt: &Halt) -> Result<(), GraphError> {
        let named = |(_, name, end): &(u64, String, End)| halt.includes(name).then(|| end.clone());
        let ends: Vec<End> = self.lock().ends.iter().filter_map(named).collect();
        let begun: Vec<Result<(), GraphError>> = ends.into_iter().map(|end| end.begin(host)).collect();
        begun.into_iter().collect()
    }

    /// Whether nothing moves.
    pub(crate) fn is_still(&self) -> bool {
        self.lock().ends.is_empty()
    }
}

impl HeldMotion {
    /// It has ended by itself.
    pub(crate) fn ended(self) {
        let _ = self.moving.remove(self.number);
    }

    /// Ends it, and waits until it has ended or the last message was said.
    ///
    /// # Errors
    /// The goal goes on, or the message could not be said.
    ///
    /// # Cancel safety
    /// The end has begun.
    pub(crate) async fn end(self) -> Result<(), GraphError> {
        match self.moving.remove(self.number) {
            None => Ok(()),
            Some(End::Say(publisher, message)) => {
                let published = publisher.publish(&message);
                say(publisher.as_ref(), &message, TIMES - 1).await;
                published
            }
            Some(End::Cancel(goal)) => goal.cancel(GOAL_ENDS).await.map(drop),
        }
    }
}

impl Drop for HeldMotion {
    fn drop(&mut self) {
        if let Some(end) = self.moving.remove(self.number)
            && let Err(error) = end.begin(&self.host)
        {
            tracing::warn!(%error, "the last message was not sent");
        }
    }
}
