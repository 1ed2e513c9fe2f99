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
    fn begin(self, host: &Host, moving: &Arc<Moving>, number: u64) -> Result<(), GraphError> {
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
                let moving = Arc::clone(moving);
                host.spawn(async move {
                    if let Err(error) = moving.cancel(number, &goal).await {
                        tracing::warn!(%error, "a goal was not ended; the next stop cancels it again");
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
    /// The goals that no call waits for, and whose end was not confirmed: every halt of their part cancels them again.
    unconfirmed: Vec<(u64, String, End)>,
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

    /// What a call lets go of, to end it. A goal stays open until its end is confirmed.
    fn release(&self, number: u64) -> Option<End> {
        let mut open = self.lock();
        let at = open.ends.iter().position(|(one, ..)| *one == number)?;
        let entry = open.ends.swap_remove(at);
        let end = entry.2.clone();
        if let End::Cancel(_) = end {
            open.unconfirmed.push(entry);
        }
        Some(end)
    }

    /// Cancels a goal, and forgets it when it has ended.
    async fn cancel(&self, number: u64, goal: &Goal) -> Result<(), GraphError> {
        goal.cancel(GOAL_ENDS).await?;
        self.lock().unconfirmed.retain(|(one, ..)| *one != number);
        Ok(())
    }

    /// Begins the end of all that a halt names. What moves is removed by its own call, which says the end once more.
    ///
    /// # Errors
    /// One of them could not be said; the others were.
    pub(crate) fn halt(self: &Arc<Self>, host: &Host, halt: &Halt) -> Result<(), GraphError> {
        let open = self.lock();
        let all = open.ends.iter().chain(&open.unconfirmed);
        let named = all.filter(|(_, name, _)| halt.includes(name));
        let named: Vec<(u64, End)> = named.map(|(number, _, end)| (*number, end.clone())).collect();
        drop(open);
        let begin = |(number, end): (u64, End)| end.begin(host, self, number);
        let begun: Vec<Result<(), GraphError>> = named.into_iter().map(begin).collect();
        begun.into_iter().collect()
    }

    /// Whether no call moves anything.
    pub(crate) fn is_still(&self) -> bool {
        self.lock().ends.is_empty()
    }
}

impl HeldMotion {
    /// It has ended by itself.
    pub(crate) fn ended(self) {
        self.moving.lock().ends.retain(|(one, ..)| *one != self.number);
    }

    /// Ends it, and waits until it has ended or the last message was said.
    ///
    /// # Errors
    /// The goal goes on, and every later halt cancels it again; or the message could not be said.
    ///
    /// # Cancel safety
    /// The end has begun.
    pub(crate) async fn end(self) -> Result<(), GraphError> {
        match self.moving.release(self.number) {
            None => Ok(()),
            Some(End::Say(publisher, message)) => {
                let published = publisher.publish(&message);
                say(publisher.as_ref(), &message, TIMES - 1).await;
                published
            }
            Some(End::Cancel(goal)) => self.moving.cancel(self.number, &goal).await,
        }
    }
}

impl Drop for HeldMotion {
    fn drop(&mut self) {
        if let Some(end) = self.moving.release(self.number)
            && let Err(error) = end.begin(&self.host, &self.moving, self.number)
        {
            tracing::warn!(%error, "the last message was not sent");
        }
    }
}
