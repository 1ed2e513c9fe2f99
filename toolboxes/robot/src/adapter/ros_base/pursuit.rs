//! How a goal of any kind is pursued to its end, and how a stop ends it.

use std::sync::Arc;
use std::time::Duration;

use ros_graph::error::GraphError;
use ros_graph::goals::{OpenGoal, cancel_all};
use ros_graph::graph::{Goal, GoalEnd, GoalStatus};
use serde_json::Value;

use super::base::{Outcome, RosBase};
use super::channels::ActionChannel;
use super::emergency;
use super::goals::{GOAL_ENDS, report_open, shortfall};
use super::link::BaseLink;
use crate::adapter::{ActionError, Control};
use crate::ros::RosError;
use crate::subsystem::Subsystem;

/// How often the end of a goal is looked for while its feedback is waited for.
const LOOK: Duration = Duration::from_millis(100);
/// How long the halt waits to be told that something could not be ended. It has to return within 50 ms.
const AT_ONCE: Duration = Duration::from_millis(25);

impl RosBase {
    /// Pursues a goal that moves a part to its end, whatever that is. Dropping this does not end the goal: the halt does. `watch` is called
    /// again and again, with each feedback: it says how far the goal is, or why it is given up, which cancels it.
    pub(super) async fn pursue(
        &self,
        (action, on): (&str, Subsystem),
        goal: Value,
        mut watch: impl FnMut(Option<&Value>) -> Outcome<Option<(f64, String)>> + Send,
        control: &Control,
    ) -> Outcome<GoalEnd> {
        let link = self.remote.there(control).await?;
        // It goes on where this is dropped, so that a goal which is accepted late is cancelled.
        let sending = self.remote.command(control, || {
            let (graph, goals, stops) = (
                Arc::clone(&link.graph),
                Arc::clone(&link.goals),
                (on, link.goals.stops(on)),
            );
            let (action, notify) = (action.to_owned(), self.remote.notify().clone());
            let send = async move {
                let sent = goals.send(graph.as_ref(), (&action, &goal), stops).await;
                // The call that waited for it may be gone.
                if let Err(error @ GraphError::GoalGoesOn { .. }) = &sent {
                    report_open(&notify, std::slice::from_ref(error));
                }
                sent
            };
            link.spawn(send).ok_or(RosError::Closed)
        })?;
        let sent = control.unless_cancelled(sending).await?;
        let sent = sent.map_err(|error| self.trouble(error.to_string()))?;
        let sent: Option<Arc<Goal>> = sent.map_err(|error| match error {
            GraphError::GoalGoesOn { .. } => self.trouble(format!("{error}: press the robot's own button")),
            other => self.failed(other),
        })?;
        let sent = sent.ok_or(ActionError::Cancelled)?;
        let open = OpenGoal::Accepted(Arc::clone(&sent));
        let given_up = loop {
            match sent.end(Duration::ZERO).await {
                Ok(None) => {}
                // Neither says that the robot has ended it.
                Ok(Some(end)) if end.status == GoalStatus::Unknown => {
                    let why = shortfall(action, &end).unwrap_or_default();
                    break self.trouble(why);
                }
                Err(error) => break self.failed(error),
                Ok(Some(end)) => {
                    link.goals.open.close(&open);
                    return Ok(end);
                }
            }
            let feedback = match control.unless_cancelled(sent.feedback(LOOK)).await? {
                Ok(feedback) => feedback,
                // Its end says the same.
                Err(_) => {
                    control.sleep(LOOK).await?;
                    None
                }
            };
            match watch(feedback.as_ref()) {
                Ok(far) => {
                    if let Some((done, said)) = far {
                        control.progress(done.clamp(0.0, 1.0), &said);
                    }
                }
                Err(given_up) => break given_up,
            }
        };
        let failed = link
            .goals
            .open
            .cancel(link.graph.as_ref(), &[open], GOAL_ENDS)
            .await;
        Err(match failed.first() {
            None => given_up,
            Some(error) => self.trouble(format!("{given_up}; {error}: press the robot's own button")),
        })
    }

    /// # Errors
    /// The goal has ended otherwise than by being reached.
    pub(super) fn reached(&self, action: &str, end: &GoalEnd) -> Outcome<()> {
        shortfall(action, end).map_or(Ok(()), |why| Err(self.trouble(why)))
    }

    /// What moves these parts, in the order in which they come to rest: goals of our own, and in an emergency actions whose goals are
    /// cancelled whoever pursues them.
    fn moving(
        &self,
        link: &BaseLink,
        parts: &[Subsystem],
        emergency: bool,
    ) -> (Vec<OpenGoal>, Vec<ActionChannel>) {
        let parts = self.stop.groups(parts).concat();
        let mut actions = self.config.actions();
        actions.retain(|action| emergency && action.on.each().iter().any(|on| parts.contains(on)));
        (link.goals.stop(&parts), actions)
    }

    /// Ends what parts do of their own, after the base was told to stand: their goals, all at the same time, then by the vendor's
    /// stop. It goes on after this has returned, for a second at most; what has not confirmed its end is said, and stays open.
    pub(super) fn end(
        &self,
        link: &BaseLink,
        parts: &[Subsystem],
        emergency: bool,
    ) -> Result<(), ActionError> {
        let (open, actions) = self.moving(link, parts, emergency);
        let vendor = self.config.emergency.clone().filter(|_| emergency);
        if open.is_empty() && actions.is_empty() && vendor.is_none() {
            return Ok(());
        }
        let (graph, goals) = (Arc::clone(&link.graph), Arc::clone(&link.goals));
        let notify = self.remote.notify().clone();
        let (sender, ended) = std::sync::mpsc::channel();
        let zero = self.remote.sayer();
        let work = async move {
            let names = actions.iter().map(|action| action.name.as_str());
            let all = cancel_all(graph.as_ref(), names, GOAL_ENDS);
            let own = goals.open.cancel(graph.as_ref(), &open, GOAL_ENDS);
            let (mut failed, others) = tokio::join!(own, all);
            failed.extend(others);
            // What pursued a goal may have said a velocity of its own meanwhile.
            zero();
            if let Some(vendor) = vendor {
                let asked = emergency::ask(graph.as_ref(), &vendor.service, &vendor.on, GOAL_ENDS);
                failed.extend(asked.await.err());
            }
            if !failed.is_empty() {
                report_open(&notify, &failed);
            }
            let _ = sender.send(failed.into_iter().next());
        };
        link.spawn(work);
        match ended.recv_timeout(AT_ONCE) {
            Ok(Some(error)) => Err(self.failed(error)),
            _ => Ok(()),
        }
    }
}
