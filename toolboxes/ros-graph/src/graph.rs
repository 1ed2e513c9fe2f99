//! What can be done in a ROS graph, whatever carries it.
//!
//! A carrier implements [`Graph`]; nothing here knows one. Every wait has an end that its caller names, and nothing is
//! reported as done that was only sent: a topic of another type, a topic without a listener and a peer that left are
//! errors.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::watch;

use crate::definition::{Definition, TypeName};
use crate::error::GraphError;
use crate::inbox::{Bounds, Inbox, Message, Unread};

/// The pause between two looks at the listeners of a topic.
const LOOK: Duration = Duration::from_millis(5);

/// What a carrier answers with.
pub type Reply<'a, T> = BoxFuture<'a, Result<T, GraphError>>;

/// A ROS graph that was joined.
pub trait Graph: Send + Sync {
    /// What is in the graph now.
    fn entities(&self) -> Reply<'_, Entities>;

    /// What a message is made of, itself first, with all types that lie in it: as the graph describes it, or as it is known here.
    ///
    /// Errors: a type without a definition, [`GraphError::Unsupported`].
    fn definitions<'a>(&'a self, of: &'a TypeName) -> Reply<'a, Vec<Definition>>;

    /// Hears a topic. Its type is the one that its publishers have, or `of` where there is none yet; `patience` is how
    /// long a publisher is waited for where `of` is not given.
    ///
    /// Errors: [`GraphError::Absent`], [`GraphError::OtherType`], [`GraphError::Busy`], a type without a definition.
    fn subscribe<'a>(
        &'a self,
        topic: &'a str,
        of: Option<&'a TypeName>,
        bounds: Bounds,
        patience: Duration,
    ) -> Reply<'a, Subscription>;

    /// The types in which others hear a topic, as the graph writes them; none where nothing hears it.
    fn heard_as<'a>(&'a self, topic: &'a str) -> Reply<'a, BTreeSet<String>> {
        async move {
            let topics = self.entities().await?.topics;
            let found = topics.into_iter().find(|found| found.name == topic);
            let listened = found.filter(|topic| topic.sinks != Some(0));
            Ok(listened.map(|topic| topic.types).unwrap_or_default())
        }
        .boxed()
    }

    /// The types that the graph has an action as: none where the carrier does not tell, `None` where nothing serves it.
    fn action_types<'a>(&'a self, action: &'a str) -> Reply<'a, Option<BTreeSet<String>>> {
        async move {
            let actions = self.entities().await?.actions;
            let served = actions.into_iter().find(|served| served.name == action);
            Ok(served.map(|served| served.types))
        }
        .boxed()
    }

    /// Announces a topic, on which nothing is sent yet.
    ///
    /// Errors: [`GraphError::OtherType`] where the graph has the name with other types alone.
    fn publisher<'a>(&'a self, topic: &'a str, of: &'a TypeName) -> Reply<'a, Arc<dyn Publisher>>;

    /// Calls a service, whose type is the one in the graph, and waits for its answer. `patience` is for the service to
    /// be there and its answer together.
    ///
    /// Errors: [`GraphError::Absent`], [`GraphError::NoAnswer`] (it may have been done), [`GraphError::Lost`].
    fn call<'a>(&'a self, service: &'a str, request: &'a Value, patience: Duration) -> Reply<'a, Value>;

    /// Sends a goal and waits until it is accepted.
    ///
    /// Errors: [`GraphError::Refused`], and those of a call. Nothing moves after an error, but for [`GraphError::GoalGoesOn`]: the goal may
    /// have been accepted, and nothing knows its id.
    fn send_goal<'a>(&'a self, action: &'a str, goal: &'a Value, patience: Duration) -> Reply<'a, Goal>;

    /// Cancels every goal of an action, whoever sent it. It is answered when the action has taken the cancel.
    ///
    /// Errors: those of a call.
    fn cancel_all<'a>(&'a self, action: &'a str, patience: Duration) -> Reply<'a, ()>;
}

/// What is in a graph, each list in order of the names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entities {
    /// The topics.
    pub topics: Vec<Entity>,
    /// The services, without those of actions.
    pub services: Vec<Entity>,
    /// The actions.
    pub actions: Vec<Entity>,
}

/// A topic, a service or an action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entity {
    /// Its name: `/cmd_vel`.
    pub name: String,
    /// Its types as they are written in the graph; more than one where nodes disagree.
    pub types: BTreeSet<String>,
    /// How many publish it, or serve it; `None` where the carrier does not tell.
    pub sources: Option<usize>,
    /// How many subscribe to it; `None` where the carrier does not tell.
    pub sinks: Option<usize>,
}

/// Sends messages of one topic. Dropping it takes the announcement back.
pub trait Publisher: Send + Sync {
    /// Sends a message at once, never waiting.
    ///
    /// # Errors
    /// The value does not fit, nothing of this type is known to listen ([`GraphError::Unheard`], [`GraphError::OtherType`]), too
    /// much waits to be sent, or the graph was left. A carrier that does not know the listeners itself has sent what is
    /// [`GraphError::Unheard`] all the same: it may be a stop.
    fn publish(&self, value: &Value) -> Result<(), GraphError>;

    /// Whether what is sent now is heard.
    ///
    /// # Errors
    /// Nothing of this type listens, or not for long enough: [`GraphError::Unheard`], [`GraphError::OtherType`]; or the graph was left.
    fn check_listener(&self) -> Result<(), GraphError>;

    /// Waits until what is sent now is heard.
    ///
    /// Errors: those of [`check_listener`](Self::check_listener) after `patience`.
    fn ready(&self, patience: Duration) -> Reply<'_, ()> {
        async move {
            let end = Instant::now() + patience;
            loop {
                let listener = self.check_listener();
                if listener.is_ok() || Instant::now() >= end {
                    return listener;
                }
                tokio::time::sleep(LOOK).await;
            }
        }
        .boxed()
    }
}

/// Whether a topic still has a publisher.
pub type Sources = Box<dyn Fn() -> bool + Send + Sync>;

/// Hears one topic. Dropping it ends that.
pub struct Subscription {
    topic: String,
    of: TypeName,
    inbox: Arc<Inbox>,
    sources: Sources,
    /// What ends the subscription when it is dropped.
    _held: Box<dyn Send + Sync>,
}

impl Subscription {
    /// What a carrier hands out: it fills the inbox until `held` is dropped.
    #[must_use]
    pub fn new(
        topic: &str,
        of: TypeName,
        inbox: Arc<Inbox>,
        sources: Sources,
        held: Box<dyn Send + Sync>,
    ) -> Self {
        Self {
            topic: topic.to_owned(),
            of,
            inbox,
            sources,
            _held: held,
        }
    }

    /// The type of its messages.
    #[must_use]
    pub fn type_name(&self) -> &TypeName {
        &self.of
    }

    /// How many messages went because nothing took them.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.inbox.dropped()
    }

    /// How many messages came, those that were not taken with them.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.inbox.received()
    }

    /// The next message, in the order in which they came.
    ///
    /// # Errors
    /// Nothing came within `patience` ([`GraphError::Silent`], or [`GraphError::Lost`] where no publisher is left), or
    /// what came is not of the type.
    ///
    /// # Cancel safety
    /// Safe: no message is lost.
    pub async fn next(&mut self, patience: Duration) -> Result<Message, GraphError> {
        self.take(false, patience).await
    }

    /// The newest message of those that wait, or the next one.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn newest(&mut self, patience: Duration) -> Result<Message, GraphError> {
        self.take(true, patience).await
    }

    /// The next message, unread: for a topic on which more is said than is asked for.
    ///
    /// # Errors
    /// As [`next`](Self::next), but for what is not of the type: that is an error of its reading.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn unread(&mut self, patience: Duration) -> Result<Unread, GraphError> {
        let taken = self.inbox.parcel(false, patience).await;
        let parcel = self.received_message(taken, patience)?;
        Ok(parcel.unread)
    }

    async fn take(&mut self, newest: bool, patience: Duration) -> Result<Message, GraphError> {
        let taken = self.inbox.next(newest, patience).await;
        self.received_message(taken, patience)
    }

    fn received_message<T>(
        &self,
        taken: Option<Result<T, GraphError>>,
        patience: Duration,
    ) -> Result<T, GraphError> {
        match taken {
            Some(taken) => taken,
            None if (self.sources)() => Err(GraphError::Silent {
                topic: self.topic.clone(),
                waited: patience,
            }),
            None => Err(GraphError::Lost {
                name: self.topic.clone(),
                reason: "nothing publishes it any more".to_owned(),
            }),
        }
    }
}

/// How a goal ended.
#[derive(Clone, Debug, PartialEq)]
pub struct GoalEnd {
    /// Whether it was reached, cancelled, or given up by the robot.
    pub status: GoalStatus,
    /// What the action says of it.
    pub result: Value,
}

/// The ends of a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoalStatus {
    /// It was reached.
    Succeeded,
    /// It was cancelled.
    Canceled,
    /// The robot gave it up.
    Aborted,
    /// The robot does not say: it is known to the action no more.
    Unknown,
}

impl GoalStatus {
    /// The end that action_msgs/GoalStatus numbers so.
    #[must_use]
    pub fn of_number(number: i64) -> Self {
        match number {
            4 => Self::Succeeded,
            5 => Self::Canceled,
            6 => Self::Aborted,
            _ => Self::Unknown,
        }
    }
}

/// What is known of the end of a goal.
pub type End = watch::Receiver<Option<Result<GoalEnd, GraphError>>>;

/// Asks the action to cancel a goal; answered when it has taken the cancel, or, by a carrier that does not tell, when it was sent.
pub type Cancel = Box<dyn Fn(Duration) -> Reply<'static, ()> + Send + Sync>;

/// A goal that was accepted. Dropping it does not end it: a goal goes on until it is cancelled.
pub struct Goal {
    action: String,
    feedback: Arc<Inbox>,
    end: End,
    cancel: Cancel,
}

impl Goal {
    /// What a carrier hands out when the action has accepted it.
    #[must_use]
    pub fn new(action: &str, feedback: Arc<Inbox>, end: End, cancel: Cancel) -> Self {
        Self {
            action: action.to_owned(),
            feedback,
            end,
            cancel,
        }
    }

    /// The action that pursues it.
    #[must_use]
    pub fn action(&self) -> &str {
        &self.action
    }

    /// The next feedback, or `None` where none came within `patience`.
    ///
    /// # Errors
    /// What came is not of the type, or the action is away.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn feedback(&self, patience: Duration) -> Result<Option<Value>, GraphError> {
        let taken = self.feedback.next(false, patience).await;
        taken
            .transpose()
            .map(|message| message.map(|message| message.value))
    }

    /// The end of the goal, or `None` where it has not come within `patience`.
    ///
    /// # Errors
    /// The action is away, its result is not of the type, or it was not accepted after all ([`GraphError::Refused`]).
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn end(&self, patience: Duration) -> Result<Option<GoalEnd>, GraphError> {
        let mut end = self.end.clone();
        let awaited = tokio::time::timeout(patience, end.wait_for(Option::is_some)).await;
        match awaited {
            Err(_) => Ok(None),
            Ok(Err(_)) => Err(GraphError::Closed),
            Ok(Ok(end)) => end.clone().transpose(),
        }
    }

    /// Asks the action to cancel the goal, by its id, and waits for the answer.
    ///
    /// # Errors
    /// [`GraphError::Refused`]: the action refuses. [`GraphError::UnknownGoal`]: it does not know the goal. [`GraphError::Lost`]: nothing reaches it by its id any more. And
    /// those of a call.
    ///
    /// # Cancel safety
    /// The cancel may have been sent.
    pub async fn request_cancel(&self, limit: Duration) -> Result<(), GraphError> {
        (self.cancel)(limit).await
    }

    /// Cancels the goal and waits until it has ended, `limit` at most for both.
    ///
    /// # Errors
    /// [`GraphError::GoalGoesOn`] where it has not ended by then; the cancel was not taken or not answered; how it ended
    /// is not known.
    ///
    /// # Cancel safety
    /// The cancel may have been sent.
    pub async fn cancel(&self, limit: Duration) -> Result<GoalEnd, GraphError> {
        let start = tokio::time::Instant::now();
        let taken = self.request_cancel(limit).await;
        // A goal that ended meanwhile cannot be cancelled, and needs not be.
        let left = limit.saturating_sub(start.elapsed());
        match (self.end(left).await?, taken) {
            // The action knows it no more, which ends nothing.
            (Some(end), Err(error)) if end.status == GoalStatus::Unknown => Err(error),
            (Some(end), _) => Ok(end),
            (None, Err(error)) => Err(error),
            (None, Ok(())) => Err(GraphError::GoalGoesOn {
                action: self.action.clone(),
                waited: limit,
            }),
        }
    }
}

/// The one type of a name, which is `expected` where that is given.
///
/// # Errors
/// The graph has it with none, with several, or with others than the expected one.
pub fn one_type(
    name: &str,
    expected: Option<&TypeName>,
    found: &BTreeSet<String>,
) -> Result<TypeName, GraphError> {
    let other = |expected: String| GraphError::OtherType {
        name: name.to_owned(),
        expected,
        found: found.iter().cloned().collect(),
    };
    match expected {
        Some(expected) if found.is_empty() || found.contains(&expected.to_string()) => Ok(expected.clone()),
        Some(expected) => Err(other(expected.to_string())),
        None => match found.first() {
            Some(only) if found.len() == 1 => Ok(only.parse()?),
            _ => Err(other("one type".to_owned())),
        },
    }
}
