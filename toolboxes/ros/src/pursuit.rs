//! The goals that calls pursue, and how each of them is ended.

use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio::sync::oneshot;
use ros_graph::error::GraphError;
use ros_graph::goals::{Goals, Limits, OpenGoal, cancel_all};
use ros_graph::graph::{Goal, Graph};

use crate::graph::JoinedGraph;
use crate::name::subsystem;

/// How long an action is given to accept a goal, and to end it after its cancel.
const LIMITS: Limits = Limits {
    accept: Duration::from_secs(6),
    end: GOAL_ENDS,
};
/// How long a goal is given to end after its cancel.
pub(crate) const GOAL_ENDS: Duration = Duration::from_secs(3);
/// How long what is open is given to end when the instance closes.
const CLOSING: Duration = Duration::from_millis(500);

/// The goals of the graph that this instance sent. What a goal moves is its action.
pub(crate) struct Pursuits {
    joined: Arc<JoinedGraph>,
    goals: Goals<String>,
}

/// A goal that a call follows until it has ended. Dropping it begins the end.
pub(crate) struct HeldGoal {
    pursuits: Arc<Pursuits>,
    host: Host,
    graph: Arc<dyn Graph>,
    goal: Arc<Goal>,
    is_held: bool,
}

impl Pursuits {
    /// Begins to cancel what outlives its action or its connection as soon as something answers.
    pub(crate) fn new(host: &Host, joined: Arc<JoinedGraph>) -> Arc<Self> {
        let pursuits = Arc::new(Self {
            joined,
            goals: Goals::default(),
        });
        let unreached = Arc::clone(&pursuits);
        host.spawn(async move { unreached.end_unreached().await });
        pursuits
    }

    async fn end_unreached(&self) {
        loop {
            let unreached = self.goals.unreached().await;
            if let Some(graph) = self.joined.current().await {
                for error in self.goals.cancel(graph.as_ref(), &unreached, GOAL_ENDS).await {
                    tracing::debug!(%error, "a goal may still be running");
                }
            }
        }
    }

    /// Sends a goal beside the call: one that is accepted after the call was dropped or halted is cancelled all the same.
    ///
    /// # Errors
    /// It was not accepted, or the call was halted.
    pub(crate) async fn send<T: Toolbox>(
        self: &Arc<Self>,
        context: &Context<T>,
        action: &str,
        goal: Value,
    ) -> Result<HeldGoal, ToolError> {
        let graph = self.joined.graph().await?;
        context.command(|| ())?;
        let (sender, receiver) = oneshot::channel();
        let (pursuits, context, action) = (Arc::clone(self), context.clone(), action.to_owned());
        let host = context.host().clone();
        let sending = async move {
            let is_stopped = || context.command(|| ()).is_err();
            let on = subsystem(&action);
            let sent = pursuits
                .goals
                .send(graph.as_ref(), (&action, &goal), on, LIMITS, is_stopped);
            let held = match sent.await {
                Ok(Some(goal)) => Ok(HeldGoal {
                    pursuits: Arc::clone(&pursuits),
                    host: context.host().clone(),
                    graph,
                    goal,
                    is_held: true,
                }),
                Ok(None) => Err(context.command(|| ()).err().unwrap_or_else(ToolError::cancelled)),
                Err(error) => Err(error.into()),
            };
            // Where nothing waits for it any more, its drop cancels it.
            let _ = sender.send(held);
        };
        host.spawn(sending);
        receiver.await.unwrap_or_else(|_| Err(ToolError::cancelled()))
    }

    /// Begins to cancel all goals that a halt names, and in an emergency those of everyone, of each of these actions that it names.
    pub(crate) fn halt<'a>(
        self: &Arc<Self>,
        host: &Host,
        halt: &Halt,
        actions: impl Iterator<Item = &'a String>,
    ) {
        let open = self.goals.of(|on| halt.includes(on).then_some(0));
        let everyones = actions.filter(|action| halt.emergency && halt.includes(&subsystem(action)));
        let everyones: Vec<String> = everyones.cloned().collect();
        if open.is_empty() && everyones.is_empty() {
            return;
        }
        let pursuits = Arc::clone(self);
        host.spawn(async move {
            // What was never joined has no goal of ours.
            let Some(graph) = pursuits.joined.current().await else {
                return;
            };
            let own = pursuits.goals.cancel(graph.as_ref(), &open, GOAL_ENDS);
            let all = cancel_all(graph.as_ref(), everyones.iter().map(String::as_str), GOAL_ENDS);
            let (own, all) = ovos_toolbox_sdk::tokio::join!(own, all);
            for error in own.into_iter().chain(all) {
                tracing::warn!(%error, "the stop did not end everything; the next one cancels it again");
            }
        });
    }

    /// Whether no call pursues anything.
    pub(crate) fn is_still(&self) -> bool {
        self.goals.is_still()
    }

    /// Cancels what is open once more: nothing does so afterwards.
    pub(crate) async fn close(&self) {
        if let Some(graph) = self.joined.current().await {
            let open = self.goals.of(|_| Some(0));
            for error in self.goals.cancel(graph.as_ref(), &open, CLOSING).await {
                tracing::warn!(%error, "a goal may still be running");
            }
        }
    }
}

impl HeldGoal {
    pub(crate) fn goal(&self) -> &Arc<Goal> {
        &self.goal
    }

    fn open(&self) -> [OpenGoal; 1] {
        [OpenGoal::Accepted(Arc::clone(&self.goal))]
    }

    /// It has ended by itself.
    pub(crate) fn ended(mut self) {
        self.is_held = false;
        self.open()
            .iter()
            .for_each(|goal| self.pursuits.goals.close(goal));
    }

    /// Cancels it, and waits until it has ended.
    ///
    /// # Errors
    /// It may go on, and every later halt cancels it again.
    ///
    /// # Cancel safety
    /// It is cancelled all the same.
    pub(crate) async fn end(mut self) -> Result<(), GraphError> {
        let goals = &self.pursuits.goals;
        let failed = goals.cancel(self.graph.as_ref(), &self.open(), GOAL_ENDS).await;
        self.is_held = false;
        failed.into_iter().next().map_or(Ok(()), Err)
    }
}

impl Drop for HeldGoal {
    fn drop(&mut self) {
        if !self.is_held {
            return;
        }
        let (pursuits, graph, open) = (Arc::clone(&self.pursuits), Arc::clone(&self.graph), self.open());
        self.host.spawn(async move {
            for error in pursuits.goals.cancel(graph.as_ref(), &open, GOAL_ENDS).await {
                tracing::warn!(%error, "a goal was not ended; the next stop cancels it again");
            }
        });
    }
}
