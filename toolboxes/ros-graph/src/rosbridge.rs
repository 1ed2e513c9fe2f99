//! The graph over rosbridge: JSON over a websocket, for ROS 1 and 2, containers and networks that DDS does not cross.
//!
//! What it does not tell is not guessed: whether a goal was accepted is known from its first feedback or its end, and an
//! infinity is the same `null` as a NaN. Types come from rosapi, and from a [`Library`] where rosapi is not there. Read
//! [`Rosbridge`].

mod details;
mod link;
mod values;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::link::{Deliver, Link};
use self::values::{canonical, outgoing};
use crate::cdr::Cdr;
use crate::definition::{Definition, Kind, TypeName};
use crate::error::GraphError;
use crate::graph::{
    Entities, Entity, Goal, GoalEnd, GoalStatus, Graph, Publisher, Reply, Subscription, one_type,
};
use crate::inbox::{Bounds, Inbox};
use crate::library::Library;
use crate::shape::Shape;

/// How long rosapi is given to answer.
const ROSAPI: Duration = Duration::from_secs(2);
/// A goal that was not refused by then is under way.
const REFUSING: Duration = Duration::from_millis(500);
/// How often the listeners of a topic are looked at.
const LOOK: Duration = Duration::from_millis(500);
/// The pause between two looks where something is waited for.
const AGAIN: Duration = Duration::from_millis(50);
/// Feedback that waits to be taken.
const FEEDBACK: Bounds = Bounds {
    messages: 16,
    bytes: 4 << 20,
};

/// A ROS graph over rosbridge. Clones share the connection; the last one closes it.
#[derive(Clone)]
pub struct Rosbridge {
    inner: Arc<Inner>,
}

struct Inner {
    link: Link,
    library: Library,
    cdr: Cdr,
}

impl Rosbridge {
    /// Connects to a rosbridge: `ws://robot:9090`. A connection that breaks later is made again.
    ///
    /// # Errors
    /// There is none at the address.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn connect(url: &str, library: Library, cdr: Cdr) -> Result<Self, GraphError> {
        Ok(Self {
            inner: Arc::new(Inner {
                link: Link::connect(url).await?,
                library,
                cdr,
            }),
        })
    }

    /// Whether the connection stands now.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.inner.link.is_connected()
    }

    async fn request(&self, service: &str, args: &Value, patience: Duration) -> Result<Value, GraphError> {
        let message = json!({"op": "call_service", "service": service, "args": args});
        let mut answer = self.inner.link.ask(service, message, patience).await?;
        match answer["result"].as_bool() {
            // rosbridge of ROS 1 has no `result` in some versions.
            Some(true) | None => Ok(answer["values"].take()),
            Some(false) => Err(GraphError::Refused {
                name: service.to_owned(),
                reason: answer["values"]
                    .as_str()
                    .unwrap_or("without a reason")
                    .chars()
                    .take(300)
                    .collect(),
            }),
        }
    }

    /// The type of a name by rosapi; none where there is no such name, or no rosapi.
    async fn type_of(&self, what: &str, name: &str) -> BTreeSet<String> {
        let key = if what == "topic" { "topic" } else { "service" };
        let key = if what == "action" { "action" } else { key };
        let answer = self
            .request(&format!("/rosapi/{what}_type"), &json!({key: name}), ROSAPI)
            .await;
        let of = answer
            .ok()
            .and_then(|answer| answer["type"].as_str().map(str::to_owned));
        of.filter(|of| !of.is_empty()).into_iter().collect()
    }

    /// The type of an action by rosapi, of versions that tell it only by the topic of its feedback, too.
    async fn action_type(&self, action: &str) -> BTreeSet<String> {
        let of = self.type_of("action", action).await;
        if !of.is_empty() {
            return of;
        }
        let feedback = format!("{}/_action/feedback", action.trim_end_matches('/'));
        let of = self.type_of("topic", &feedback).await;
        of.iter()
            .filter_map(|of| of.strip_suffix("_FeedbackMessage").map(str::to_owned))
            .collect()
    }

    /// The shape of a type: as the graph has it where rosapi tells, as it is known here elsewhere.
    async fn shape(&self, name: &TypeName, service: &str, of: &str) -> Result<Arc<Shape>, GraphError> {
        match self.described(name, service, of).await? {
            Some(own) => Ok(own.shape(name)?),
            None => Ok(self.inner.library.shape(name)?),
        }
    }

    /// A type with all that lies in it, where rosapi tells.
    async fn described(
        &self,
        name: &TypeName,
        service: &str,
        of: &str,
    ) -> Result<Option<Library>, GraphError> {
        if let Ok(answer) = self.request(service, &json!({"type": of}), ROSAPI).await
            && answer["typedefs"]
                .as_array()
                .is_some_and(|typedefs| !typedefs.is_empty())
        {
            let described = details::definitions(name, &answer["typedefs"])?;
            let mut own = Library::empty();
            for definition in described {
                own.add(definition);
            }
            return Ok(Some(own));
        }
        Ok(None)
    }
}

/// Both ways of writing one type are one: `std_msgs/String` and `std_msgs/msg/String`.
fn unified(found: &BTreeSet<String>) -> BTreeSet<String> {
    let unify = |of: &String| {
        of.parse::<TypeName>()
            .map_or_else(|_| of.clone(), |of| of.to_string())
    };
    found.iter().map(unify).collect()
}

impl Graph for Rosbridge {
    fn entities(&self) -> Reply<'_, Entities> {
        async move {
            let nothing = json!({});
            let list = |value: &Value| -> Vec<String> {
                let names = value.as_array().map(Vec::as_slice).unwrap_or_default();
                names
                    .iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect()
            };
            let entity = |name: String, of: Option<String>| Entity {
                name,
                types: of.into_iter().collect(),
                sources: None,
                sinks: None,
            };
            let topics = self.request("/rosapi/topics", &nothing, ROSAPI).await?;
            let types = list(&topics["types"]);
            let mut types = types.into_iter();
            let topics = list(&topics["topics"])
                .into_iter()
                .map(|name| entity(name, types.next()));
            let services = self.request("/rosapi/services", &nothing, ROSAPI).await?;
            let services = list(&services["services"])
                .into_iter()
                .filter(|name| !name.contains("/_action/"));
            // ROS 1 has no such list.
            let actions = self
                .request("/rosapi/action_servers", &nothing, ROSAPI)
                .await
                .unwrap_or_default();
            let mut entities = Entities {
                topics: topics.filter(|topic| !topic.name.contains("/_action/")).collect(),
                services: services.map(|name| entity(name, None)).collect(),
                actions: list(&actions["action_servers"])
                    .into_iter()
                    .map(|name| entity(name, None))
                    .collect(),
            };
            for list in [
                &mut entities.topics,
                &mut entities.services,
                &mut entities.actions,
            ] {
                list.sort_by(|one, other| one.name.cmp(&other.name));
            }
            Ok(entities)
        }
        .boxed()
    }

    fn action_types<'a>(&'a self, action: &'a str) -> Reply<'a, Option<BTreeSet<String>>> {
        async move {
            let types = unified(&self.action_type(action).await);
            if !types.is_empty() {
                return Ok(Some(types));
            }
            let servers = self.request("/rosapi/action_servers", &json!({}), ROSAPI).await?;
            let served = servers["action_servers"].as_array();
            let is_served = served.is_some_and(|names| names.iter().any(|name| *name == *action));
            Ok(is_served.then(BTreeSet::new))
        }
        .boxed()
    }

    fn definitions<'a>(&'a self, of: &'a TypeName) -> Reply<'a, Vec<Definition>> {
        async move {
            // rosapi describes parts by their whole.
            let (details, whole) = match (of.kind, of.name.rsplit_once('_')) {
                (Kind::Service, Some((whole, "Request"))) => ("service_request", whole),
                (Kind::Service, Some((whole, "Response"))) => ("service_response", whole),
                (Kind::Action, Some((whole, part))) => match part {
                    "Goal" => ("action_goal", whole),
                    "Result" => ("action_result", whole),
                    _ => ("action_feedback", whole),
                },
                _ => ("message", of.name.as_str()),
            };
            let written = TypeName::new(&of.package, of.kind, whole).to_string();
            let described = self
                .described(of, &format!("/rosapi/{details}_details"), &written)
                .await?;
            Ok(described.as_ref().unwrap_or(&self.inner.library).whole(of)?)
        }
        .boxed()
    }

    fn subscribe<'a>(
        &'a self,
        topic: &'a str,
        of: Option<&'a TypeName>,
        bounds: Bounds,
        patience: Duration,
    ) -> Reply<'a, Subscription> {
        async move {
            let end = Instant::now() + patience;
            let mut found = self.type_of("topic", topic).await;
            while found.is_empty() && of.is_none() {
                if Instant::now() >= end {
                    return Err(GraphError::absent("topic", topic, patience));
                }
                tokio::time::sleep(AGAIN).await;
                found = self.type_of("topic", topic).await;
            }
            let of = one_type(topic, of, &unified(&found))?;
            let written = found.first().cloned().unwrap_or_else(|| of.to_string());
            let shape = self.shape(&of, "/rosapi/message_details", &written).await?;
            let inbox = Arc::new(Inbox::new(bounds));
            let (cdr, filled) = (self.inner.cdr, Arc::clone(&inbox));
            let deliver: Arc<Deliver> = Arc::new(Box::new(move |value, size| {
                let shape = Arc::clone(&shape);
                filled.put(size, Box::new(move || canonical(cdr, &shape, value)));
            }));
            // What comes at once, such as a latched message, finds who hears it.
            self.inner.link.hear(topic, &deliver);
            let message = json!({"type": written, "queue_length": bounds.messages.max(1)});
            let id = self.inner.link.stand("subscribe", topic, message);
            let rosbridge = self.clone();
            let sources = Box::new(move || rosbridge.is_connected());
            let held = Box::new(Hearing {
                rosbridge: self.clone(),
                topic: topic.to_owned(),
                id,
                _deliver: deliver,
            });
            Ok(Subscription::new(topic, of, inbox, sources, held))
        }
        .boxed()
    }

    fn publisher<'a>(&'a self, topic: &'a str, of: &'a TypeName) -> Reply<'a, Arc<dyn Publisher>> {
        async move {
            let found = self.type_of("topic", topic).await;
            one_type(topic, Some(of), &unified(&found))?;
            let written = found.first().cloned().unwrap_or_else(|| of.to_string());
            let shape = self.shape(of, "/rosapi/message_details", &written).await?;
            let publisher: Arc<dyn Publisher> =
                Arc::new(TopicPublisher::announce(self, topic, &written, shape));
            Ok(publisher)
        }
        .boxed()
    }

    fn call<'a>(&'a self, service: &'a str, request: &'a Value, patience: Duration) -> Reply<'a, Value> {
        async move {
            let start = Instant::now();
            let found = self.type_of("service", service).await;
            let Some(written) = found.first() else {
                // Without rosapi the type is not known: what is asked for is not checked then.
                return Err(GraphError::absent("service", service, start.elapsed()));
            };
            let of: TypeName = match written.parse::<TypeName>()? {
                // ROS 1 and rosapi of some versions do not say the kind.
                of if of.kind == Kind::Message => TypeName::new(&of.package, Kind::Service, &of.name),
                of => of,
            };
            let shape = self
                .shape(&of.part("_Request"), "/rosapi/service_request_details", written)
                .await?;
            let args = outgoing(self.inner.cdr, &shape, request)?;
            let shape = self
                .shape(&of.part("_Response"), "/rosapi/service_response_details", written)
                .await?;
            let left = patience.saturating_sub(start.elapsed());
            let answer = self.request(service, &args, left).await?;
            canonical(self.inner.cdr, &shape, answer)
        }
        .boxed()
    }

    fn send_goal<'a>(&'a self, action: &'a str, goal: &'a Value, patience: Duration) -> Reply<'a, Goal> {
        async move {
            let found = self.action_type(action).await;
            let Some(written) = found.first() else {
                return Err(GraphError::absent("action", action, patience));
            };
            let of: TypeName = written.parse()?;
            let [goal_type, feedback_type, result_type] =
                ["_Goal", "_Feedback", "_Result"].map(|part| of.part(part));
            let (goal_shape, feedback_shape, result_shape) = tokio::try_join!(
                self.shape(&goal_type, "/rosapi/action_goal_details", written),
                self.shape(&feedback_type, "/rosapi/action_feedback_details", written),
                self.shape(&result_type, "/rosapi/action_result_details", written),
            )?;
            let args = outgoing(self.inner.cdr, &goal_shape, goal)?;
            let message = json!({
                "op": "send_action_goal", "action": action, "action_type": of.to_string(), "args": args, "feedback": true
            });
            let (id, mut said) = self.inner.link.goal(action, message)?;
            let (sender, mut end) = watch::channel(None);
            let feedback = Arc::new(Inbox::new(FEEDBACK));
            let (cdr, name, filled) = (self.inner.cdr, action.to_owned(), Arc::clone(&feedback));
            let (first, begun) = tokio::sync::oneshot::channel();
            tokio::spawn(async move {
                let mut first = Some(first);
                let ended = loop {
                    let Some(mut message) = said.recv().await else {
                        break Err(GraphError::Lost {
                            name,
                            reason: "the connection broke; the goal may still be running".to_owned(),
                        });
                    };
                    let values = message["values"].take();
                    if message["op"] == "action_feedback" {
                        let shape = Arc::clone(&feedback_shape);
                        filled.put(1, Box::new(move || canonical(cdr, &shape, values)));
                        first.take().map(|first| first.send(()));
                    } else if message["result"] == false {
                        break Err(GraphError::Refused {
                            name,
                            reason: values.as_str().unwrap_or("without a reason").chars().take(300).collect(),
                        });
                    } else {
                        let status = GoalStatus::of_number(message["status"].as_i64().unwrap_or_default());
                        break canonical(cdr, &result_shape, values).map(|result| GoalEnd { status, result });
                    }
                };
                if let Err(error) = &ended {
                    filled.end(error.clone());
                }
                sender.send_replace(Some(ended));
            });
            tokio::select! {
                // A refusal ends what would say that it began as well.
                biased;
                ended = async { end.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone()) } => {
                    match ended {
                        // It was sent, and may have been accepted.
                        Some(Err(GraphError::Lost { .. })) => {
                            return Err(GraphError::GoalGoesOn { action: action.to_owned(), waited: REFUSING });
                        }
                        Some(Err(error)) => return Err(error),
                        Some(Ok(_)) | None => {}
                    }
                }
                Ok(()) = begun => {}
                () = tokio::time::sleep(REFUSING.min(patience)) => {}
            }
            let (rosbridge, name) = (self.clone(), action.to_owned());
            let cancel = move |_| -> Reply<'static, ()> {
                let link = &rosbridge.inner.link;
                let message = json!({"op": "cancel_action_goal", "id": id, "action": name});
                // Its end is said only to the connection over which it was sent.
                let sent = match link.follows(&id) {
                    true => link.send(&name, message),
                    false => Err(GraphError::Lost {
                        name: name.clone(),
                        reason: "the connection over which its goal was sent is gone, or has said its end".to_owned(),
                    }),
                };
                async move { sent }.boxed()
            };
            Ok(Goal::new(action, feedback, end, Box::new(cancel)))
        }
        .boxed()
    }

    fn cancel_all<'a>(&'a self, action: &'a str, patience: Duration) -> Reply<'a, ()> {
        async move {
            let start = Instant::now();
            let service = format!("{}/_action/cancel_goal", action.trim_end_matches('/'));
            let taken = self.request(&service, &json!({}), patience).await.map(drop);
            let Err(refused @ GraphError::Refused { .. }) = taken else {
                return taken;
            };
            // A rosbridge refuses what there is not.
            let left = patience.saturating_sub(start.elapsed());
            match tokio::time::timeout(left, self.action_types(action)).await {
                Ok(Ok(None)) => Err(GraphError::absent("action", action, patience)),
                _ => Err(refused),
            }
        }
        .boxed()
    }
}

/// Ends a subscription of its own: rosbridge sends what comes on a topic until its last one has ended.
struct Hearing {
    rosbridge: Rosbridge,
    topic: String,
    id: String,
    _deliver: Arc<Deliver>,
}

impl Drop for Hearing {
    fn drop(&mut self) {
        let link = &self.rosbridge.inner.link;
        link.withdraw("unsubscribe", &self.topic, &self.id);
    }
}

/// The number of the connection over which rosapi named a listener last; none is 0. It says nothing of a later connection.
type Heard = Arc<AtomicU64>;

/// The number of no connection.
const NOBODY: u64 = 0;

struct TopicPublisher {
    rosbridge: Rosbridge,
    topic: String,
    /// The id of its announcement.
    id: String,
    shape: Arc<Shape>,
    heard: Heard,
    _watching: DropGuard,
}

impl TopicPublisher {
    /// Announces a topic in a type as the graph writes it.
    fn announce(rosbridge: &Rosbridge, topic: &str, written: &str, shape: Arc<Shape>) -> Self {
        let id = rosbridge
            .inner
            .link
            .stand("advertise", topic, json!({"type": written}));
        let (end, heard) = (CancellationToken::new(), Heard::default());
        tokio::spawn({
            let (rosbridge, topic, heard, end) = (
                rosbridge.clone(),
                topic.to_owned(),
                Arc::clone(&heard),
                end.clone(),
            );
            async move {
                end.run_until_cancelled(watch_listeners(rosbridge, topic, heard))
                    .await
            }
        });
        Self {
            rosbridge: rosbridge.clone(),
            topic: topic.to_owned(),
            id,
            shape,
            heard,
            _watching: end.drop_guard(),
        }
    }
}

/// Keeps up to date whether something listens to a topic. Only an answer of rosapi changes what is known: one that is late, or an
/// error, tells nothing of the listeners. Without rosapi nothing is ever known to listen.
async fn watch_listeners(rosbridge: Rosbridge, topic: String, heard: Heard) {
    loop {
        let connection = rosbridge.inner.link.connection();
        let answer = rosbridge
            .request("/rosapi/subscribers", &json!({"topic": topic}), ROSAPI)
            .await;
        if let (Some(connection), Ok(answer)) = (connection, answer)
            && let Some(listeners) = answer["subscribers"].as_array()
        {
            let known = if listeners.is_empty() { NOBODY } else { connection };
            heard.store(known, Ordering::SeqCst);
        }
        tokio::time::sleep(LOOK).await;
    }
}

impl Drop for TopicPublisher {
    fn drop(&mut self) {
        let link = &self.rosbridge.inner.link;
        link.withdraw("unadvertise", &self.topic, &self.id);
    }
}

impl Publisher for TopicPublisher {
    fn publish(&self, value: &Value) -> Result<(), GraphError> {
        let message = outgoing(self.rosbridge.inner.cdr, &self.shape, value)?;
        // It may be a stop, which is sent whatever is known of the listeners.
        self.rosbridge.inner.link.send(
            &self.topic,
            json!({"op": "publish", "topic": self.topic, "msg": message}),
        )?;
        self.check_listener()
    }

    fn check_listener(&self) -> Result<(), GraphError> {
        match self.rosbridge.inner.link.connection() {
            Some(connection) if self.heard.load(Ordering::SeqCst) == connection => Ok(()),
            _ => Err(GraphError::Unheard {
                topic: self.topic.clone(),
            }),
        }
    }
}
