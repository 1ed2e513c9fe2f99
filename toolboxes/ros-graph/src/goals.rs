//! Goals that were sent, each kept until the robot has said that it has ended.
//!
//! Owns which goals are open, for everything that sends goals. A stop cancels those of what it names, and every later one those again
//! whose end was not confirmed. A goal whose cancel reached nothing, because its action, its connection or its network was away, is
//! cancelled as soon as something answers.
//!
//! **Whom a cancel reaches.** A goal is cancelled by its own id. All goals of its action, those of other clients too, are cancelled where
//! nothing else surely reaches it: its acceptance was lost, so that nothing knows its id; the action says that it does not know the id; or
//! the connection that knew it is gone (a rosbridge confirms the end of a goal only to the connection over which it was sent). Besides
//! that only an emergency stop and a stop without an instance cancel the goals of everyone ([`cancel_all`]).

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;

use crate::error::GraphError;
use crate::graph::{Goal, GoalStatus, Graph};

/// The pause before what was not reached is cancelled again.
const AGAIN: Duration = Duration::from_millis(500);

/// How long the steps of a goal may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For the action to accept it.
    pub accept: Duration,
    /// For its end after a cancel.
    pub end: Duration,
}

/// A goal that may still move something.
#[derive(Clone)]
pub enum OpenGoal {
    /// One that was accepted.
    Accepted(Arc<Goal>),
    /// One of this action that may have been accepted, and whose id nothing knows.
    Nameless(String),
}

impl OpenGoal {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Accepted(one), Self::Accepted(other)) => Arc::ptr_eq(one, other),
            (Self::Nameless(one), Self::Nameless(other)) => one == other,
            _ => false,
        }
    }

    /// Cancels it, and waits until it has ended, `limit` at most for all of it. Where its end cannot be told any more, that the cancel was
    /// taken is all that there is to know.
    async fn cancel(&self, graph: &dyn Graph, limit: Duration) -> Result<(), GraphError> {
        let goal = match self {
            Self::Accepted(goal) => goal,
            Self::Nameless(action) => return graph.cancel_all(action, limit).await,
        };
        let start = Instant::now();
        let left = || limit.saturating_sub(start.elapsed());
        if let Ok(None) = goal.end(Duration::ZERO).await {
            let cancelled = goal.cancel(limit).await.map(drop);
            // A controller that was started anew answers for the one that accepted the goal, before that one is known to be gone.
            let is_unknown = matches!(cancelled, Err(GraphError::UnknownGoal { .. }));
            // Otherwise it was lost meanwhile.
            if cancelled.is_ok() || !is_unknown && matches!(goal.end(Duration::ZERO).await, Ok(None)) {
                return cancelled;
            }
        }
        match goal.end(Duration::ZERO).await {
            Ok(Some(end)) if end.status != GoalStatus::Unknown => return Ok(()),
            // It was never accepted.
            Err(GraphError::Refused { .. }) => return Ok(()),
            _ => {}
        }
        match goal.request_cancel(left()).await {
            Err(GraphError::Refused { .. } | GraphError::UnknownGoal { .. } | GraphError::Lost { .. }) => {
                graph.cancel_all(goal.action(), left()).await
            }
            taken => taken,
        }
    }
}

/// Who cares for the end of a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Care {
    /// A call waits for it.
    Call,
    /// The next stop of what it moves: its cancel was refused, or it goes on.
    NextStop,
    /// The next that answers: its cancel reached nothing, or nothing has said what became of it.
    NextAnswer,
}

struct Entry<P> {
    on: P,
    goal: OpenGoal,
    care: Care,
}

/// The goals that were sent, and of which the robot has not said that they have ended. `P` is what a goal moves.
pub struct Goals<P> {
    entries: Mutex<Vec<Entry<P>>>,
    /// There is a goal for [`Care::NextAnswer`].
    unreached: Notify,
}

impl<P> Default for Goals<P> {
    fn default() -> Self {
        Self {
            entries: Mutex::default(),
            unreached: Notify::new(),
        }
    }
}

impl<P> Goals<P> {
    /// Sends a goal, and keeps it for the stops to come. `is_stopped` is asked when it is kept: whether what it moves was stopped since the
    /// goal was wanted, in which case it is cancelled at once.
    ///
    /// # Errors
    /// Those of [`Graph::send_goal`], and [`GraphError::GoalGoesOn`] where it may go on: then it is kept. `None` where it was stopped
    /// meanwhile and has ended.
    ///
    /// # Cancel safety
    /// The goal may be accepted and kept by nothing: run it to its end.
    pub async fn send(
        &self,
        graph: &dyn Graph,
        (action, goal): (&str, &Value),
        on: P,
        limits: Limits,
        is_stopped: impl FnOnce() -> bool,
    ) -> Result<Option<Arc<Goal>>, GraphError> {
        let goal = match graph.send_goal(action, goal, limits.accept).await {
            Ok(goal) => Arc::new(goal),
            Err(error) => {
                if let GraphError::GoalGoesOn { .. } = error {
                    self.open(on, OpenGoal::Nameless(action.to_owned()), Care::NextAnswer);
                    self.unreached.notify_one();
                }
                return Err(error);
            }
        };
        let open = OpenGoal::Accepted(Arc::clone(&goal));
        // Kept first: a stop either finds it or is seen.
        self.open(on, open.clone(), Care::Call);
        if !is_stopped() {
            return Ok(Some(goal));
        }
        match self.cancel(graph, &[open], limits.end).await.is_empty() {
            true => Ok(None),
            // Whatever keeps it from ending, it may go on.
            false => Err(GraphError::GoalGoesOn {
                action: action.to_owned(),
                waited: limits.end,
            }),
        }
    }

    fn open(&self, on: P, goal: OpenGoal, care: Care) {
        let mut entries = self.entries.lock();
        if !entries.iter().any(|known| known.goal.is(&goal)) {
            entries.push(Entry { on, goal, care });
        }
    }

    /// The robot has said that the goal has ended.
    pub fn close(&self, goal: &OpenGoal) {
        self.entries.lock().retain(|open| !open.goal.is(goal));
    }

    /// Whether no call waits for a goal.
    pub fn is_still(&self) -> bool {
        self.entries.lock().iter().all(|entry| entry.care != Care::Call)
    }

    /// The open goals of what has a place in a stop, in the order of these places.
    pub fn of(&self, place: impl Fn(&P) -> Option<usize>) -> Vec<OpenGoal> {
        let entries = self.entries.lock();
        let concerned = entries
            .iter()
            .filter_map(|entry| Some((place(&entry.on)?, &entry.goal)));
        let mut concerned: Vec<(usize, &OpenGoal)> = concerned.collect();
        concerned.sort_by_key(|(place, _)| *place);
        concerned.into_iter().map(|(_, goal)| goal.clone()).collect()
    }

    /// Cancels goals at the same time, and waits until they have ended, `limit` at most for all. Returns why some may go on: those stay
    /// open.
    ///
    /// # Cancel safety
    /// The cancels may have been sent, and all that has not been confirmed stays open.
    pub async fn cancel(&self, graph: &dyn Graph, goals: &[OpenGoal], limit: Duration) -> Vec<GraphError> {
        let each = goals.iter().map(async |goal| {
            let failed = goal.cancel(graph, limit).await.err();
            match &failed {
                None => self.close(goal),
                Some(error) => self.abandon(goal, error),
            }
            failed
        });
        join_all(each).await.into_iter().flatten().collect()
    }

    fn abandon(&self, goal: &OpenGoal, error: &GraphError) {
        let is_unreached = matches!(
            error,
            GraphError::Absent { .. } | GraphError::Lost { .. } | GraphError::NoAnswer { .. }
        );
        for entry in self.entries.lock().iter_mut().filter(|entry| entry.goal.is(goal)) {
            entry.care = if is_unreached {
                Care::NextAnswer
            } else {
                Care::NextStop
            };
        }
        if is_unreached {
            self.unreached.notify_one();
        }
    }

    /// Waits until there are goals whose cancel reached nothing, or whose acceptance was lost, and half a second more: the owner of the graph
    /// cancels them again, and asks again, for as long as the graph is joined.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn unreached(&self) -> Vec<OpenGoal> {
        loop {
            let unreached: Vec<OpenGoal> = {
                let entries = self.entries.lock();
                let unreached = entries.iter().filter(|entry| entry.care == Care::NextAnswer);
                unreached.map(|entry| entry.goal.clone()).collect()
            };
            if !unreached.is_empty() {
                tokio::time::sleep(AGAIN).await;
                return unreached;
            }
            self.unreached.notified().await;
        }
    }
}

/// Cancels every goal of these actions at the same time, those of other clients too. An action that is not there pursues nothing.
/// Returns why some have not taken the cancel.
pub async fn cancel_all<'a>(
    graph: &dyn Graph,
    actions: impl IntoIterator<Item = &'a str>,
    patience: Duration,
) -> Vec<GraphError> {
    let cancels = actions
        .into_iter()
        .map(|action| graph.cancel_all(action, patience));
    let failed = join_all(cancels).await.into_iter().filter_map(Result::err);
    failed
        .filter(|error| !matches!(error, GraphError::Absent { .. }))
        .collect()
}
