//! A graph of ROS that an installation carries, over r2r: one node and the thread that spins it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures::channel::oneshot;
use futures::executor::{LocalPool, LocalSpawner};
use futures::future::{AbortHandle, abortable};
use futures::task::LocalSpawnExt;
use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;
use r2r::{Context, Node, QosProfile};
use ros_graph::cdr::Cdr;
use ros_graph::definition::{Definition, TypeName};
use ros_graph::error::GraphError;
use ros_graph::graph::{
    Entities, Entity, Goal, GoalEnd, GoalStatus, Graph, Publisher, Reply, Subscription, one_type,
};
use ros_graph::inbox::{Bounds, Inbox};
use ros_graph::library::Library;
use serde_json::Value;
use tokio::sync::watch;

use crate::orders::{Order, Orders, QUEUE, Spun, lost};
use crate::wire::{R2rPublisher, read};

/// How long one spin lasts: nothing is heard later than this.
const SPIN: Duration = Duration::from_millis(5);
/// The pause between two looks at the graph.
const LOOK: Duration = Duration::from_millis(100);
/// Feedback that may wait.
const FEEDBACK: Bounds = Bounds {
    messages: 32,
    bytes: 1 << 20,
};
const CARRIER: &str = "r2r";

/// The types of each topic, as ROS writes them.
type Types = Arc<Mutex<HashMap<String, Vec<String>>>>;

/// A graph of ROS. Dropping it leaves the graph.
pub struct R2rGraph {
    orders: Orders,
    library: Library,
    types: Types,
    thread: Option<JoinHandle<()>>,
}

impl R2rGraph {
    /// Starts a node. Domain and middleware are those of the environment (`ROS_DOMAIN_ID`, `RMW_IMPLEMENTATION`).
    ///
    /// # Errors
    /// ROS does not start.
    pub fn join(name: &str, library: Library) -> Result<Self, GraphError> {
        let failed = |reason: String| GraphError::Join {
            carrier: CARRIER.to_owned(),
            reason,
        };
        let (orders, taken) = sync_channel(QUEUE);
        let (started, result) = sync_channel(1);
        let types = Types::default();
        let thread = std::thread::Builder::new()
            .name(format!("ros-{name}"))
            .spawn({
                let (name, types) = (name.to_owned(), Arc::clone(&types));
                move || match Context::create().and_then(|context| Node::create(context, &name, "")) {
                    Ok(node) => {
                        let _ = started.send(Ok(()));
                        spin(node, &taken, &types);
                    }
                    Err(error) => drop(started.send(Err(error.to_string()))),
                }
            })
            .map_err(|error| failed(error.to_string()))?;
        let started = result.recv();
        started
            .unwrap_or_else(|_| Err("its thread has ended".to_owned()))
            .map_err(failed)?;
        Ok(Self {
            orders: Orders(Arc::new(Mutex::new(Some(orders)))),
            library,
            types,
            thread: Some(thread),
        })
    }

    /// The one type of a topic, as soon as the graph has it.
    async fn type_of(
        &self,
        what: &'static str,
        (name, topic): (&str, &str),
        patience: Duration,
    ) -> Result<BTreeSet<String>, GraphError> {
        let end = Instant::now() + patience;
        loop {
            let types = self.types.lock().get(topic).cloned();
            match types {
                Some(types) => return Ok(types.into_iter().collect()),
                None if Instant::now() >= end => {
                    return Err(GraphError::Absent {
                        what,
                        name: name.to_owned(),
                        waited: patience,
                    });
                }
                None => tokio::time::sleep(SPIN).await,
            }
        }
    }

    /// The value with everything that is not given, as r2r wants it.
    fn whole(&self, of: &TypeName, value: &Value) -> Result<Value, GraphError> {
        let shape = self.library.shape(of)?;
        let bytes = Cdr::default().encode(&shape, value)?;
        Ok(Cdr::default().decode(&shape, &bytes, ros_graph::cdr::Order::Little)?)
    }

    async fn send(&self, action: &str, goal: &Value, patience: Duration) -> Result<Goal, GraphError> {
        let feedback_topic = format!("{action}/_action/feedback");
        let found = self
            .type_of("action", (action, &feedback_topic), patience)
            .await?;
        let found = found
            .iter()
            .filter_map(|of| of.strip_suffix("_FeedbackMessage").map(str::to_owned))
            .collect();
        let of = one_type(action, None, &found)?;
        let goal = self.whole(&of.part("_Goal"), goal)?;
        let (accepted, answer) = oneshot::channel();
        let (ended, end) = watch::channel(None);
        let feedback = Arc::new(Inbox::new(FEEDBACK));
        let (filled, name) = (Arc::clone(&feedback), action.to_owned());
        self.orders.give(move |spun| {
            let (spawner, asked) = (spun.spawner.clone(), spun.action(&name, &of.to_string()));
            let work = async move {
                let sent = match asked.and_then(|client| client.send_goal_request(goal)) {
                    Ok(sent) => sent.await,
                    Err(error) => Err(error),
                };
                let (handle, result, mut told) = match sent {
                    Ok(sent) => sent,
                    Err(error) => return drop(accepted.send(Err(error))),
                };
                if accepted.send(Ok(handle.clone())).is_err() {
                    // Its caller is gone: nothing waits for this goal.
                    let _ = handle.cancel().map(|cancel| spawn(&spawner, cancel.map(drop)));
                }
                let fill = async move {
                    while let Some(Ok(value)) = told.next().await {
                        filled.put(0, Box::new(move || Ok(value)));
                    }
                };
                spawn(&spawner, fill);
                let end = result.await.and_then(|(status, result)| Ok((status, result?)));
                let end = end.map(|(status, result)| GoalEnd {
                    status: status_of(status),
                    result,
                });
                let _ = ended.send(Some(end.map_err(|error| lost(&name, error))));
            };
            spawn(&spun.spawner, work);
        })?;
        let handle = match tokio::time::timeout(patience, answer).await {
            Ok(Ok(Ok(handle))) => handle,
            Ok(Ok(Err(r2r::Error::RCL_RET_ACTION_GOAL_REJECTED))) => {
                return Err(GraphError::Refused {
                    name: action.to_owned(),
                    reason: "the goal".to_owned(),
                });
            }
            Ok(Ok(Err(error))) => return Err(lost(action, error)),
            _ => {
                // One that is accepted later is cancelled then, and nothing says whether it was.
                return Err(GraphError::GoalGoesOn {
                    action: action.to_owned(),
                    waited: patience,
                });
            }
        };
        let (orders, name, handle) = (self.orders.clone(), action.to_owned(), Mutex::new(handle));
        let cancel = Box::new(move |limit: Duration| -> Reply<'static, ()> {
            let (orders, handle, name) = (orders.clone(), handle.lock().clone(), name.clone());
            async move {
                let (taken, answer) = oneshot::channel();
                orders.give(move |spun| match handle.cancel() {
                    Ok(cancel) => spawn(&spun.spawner, cancel.map(|done| drop(taken.send(done)))),
                    Err(error) => drop(taken.send(Err(error))),
                })?;
                match tokio::time::timeout(limit, answer).await {
                    Ok(Ok(done)) => done.map_err(|error| lost(&name, error)),
                    _ => Err(GraphError::NoAnswer {
                        service: name,
                        waited: limit,
                    }),
                }
            }
            .boxed()
        });
        Ok(Goal::new(action, feedback, end, cancel))
    }

    async fn cancel_every(&self, action: &str, patience: Duration) -> Result<(), GraphError> {
        let feedback_topic = format!("{action}/_action/feedback");
        self.type_of("action", (action, &feedback_topic), patience)
            .await?;
        let service = format!("{action}/_action/cancel_goal");
        // An empty request is for every goal.
        let all = self.whole(
            &"action_msgs/srv/CancelGoal".parse::<TypeName>()?.part("_Request"),
            &Value::Object(Default::default()),
        )?;
        let (taken, answer) = oneshot::channel();
        let name = service.clone();
        self.orders.give(move |spun| {
            let client = spun.node.create_client_untyped(
                &name,
                "action_msgs/srv/CancelGoal",
                QosProfile::services_default(),
            );
            let work = async move {
                let asked = match client {
                    Ok(client) => match Node::is_available(&client) {
                        Ok(there) => match there.await.and_then(|()| client.request(all)) {
                            Ok(answer) => answer.await.and_then(|answer| answer).map(drop),
                            Err(error) => Err(error),
                        },
                        Err(error) => Err(error),
                    },
                    Err(error) => Err(error),
                };
                let _ = taken.send(asked);
            };
            spawn(&spun.spawner, work);
        })?;
        match tokio::time::timeout(patience, answer).await {
            Ok(Ok(done)) => done.map_err(|error| lost(&service, error)),
            _ => Err(GraphError::NoAnswer {
                service,
                waited: patience,
            }),
        }
    }
}

impl Graph for R2rGraph {
    fn entities(&self) -> Reply<'_, Entities> {
        let types = self.types.lock().clone();
        let mut found = Entities::default();
        for (name, types) in types.into_iter().collect::<BTreeMap<_, _>>() {
            if let Some(action) = name.strip_suffix("/_action/feedback") {
                let types = types
                    .iter()
                    .filter_map(|of| of.strip_suffix("_FeedbackMessage").map(str::to_owned));
                found.actions.push(Entity {
                    name: action.to_owned(),
                    types: types.collect(),
                    ..Entity::default()
                });
            } else if !name.contains("/_action/") {
                found.topics.push(Entity {
                    name,
                    types: types.into_iter().collect(),
                    ..Entity::default()
                });
            }
        }
        async move { Ok(found) }.boxed()
    }

    fn definitions<'a>(&'a self, of: &'a TypeName) -> Reply<'a, Vec<Definition>> {
        async move { Ok(self.library.whole(of)?) }.boxed()
    }

    fn subscribe<'a>(
        &'a self,
        topic: &'a str,
        of: Option<&'a TypeName>,
        bounds: Bounds,
        patience: Duration,
    ) -> Reply<'a, Subscription> {
        async move {
            let found = match self.type_of("topic", (topic, topic), patience).await {
                Err(GraphError::Absent { .. }) if of.is_some() => BTreeSet::new(),
                found => found?,
            };
            let of = one_type(topic, of, &found)?;
            let shape = self.library.shape(&of)?;
            let inbox = Arc::new(Inbox::new(bounds));
            let (filled, name, named) = (Arc::clone(&inbox), topic.to_owned(), of.to_string());
            let ending = self.orders.make(topic, move |spun| {
                let mut stream = spun
                    .node
                    .subscribe_raw(&name, &named, QosProfile::sensor_data())?;
                let hear = async move {
                    while let Some(bytes) = stream.next().await {
                        let shape = Arc::clone(&shape);
                        filled.put(bytes.len(), Box::new(move || read(&shape, &bytes)));
                    }
                };
                let (hear, ending) = abortable(hear);
                spawn(&spun.spawner, hear.map(drop));
                Ok(ending)
            });
            let held = AbortOnDrop(ending.await?);
            let (types, name) = (Arc::clone(&self.types), topic.to_owned());
            let sources = move || types.lock().contains_key(&name);
            Ok(Subscription::new(
                topic,
                of,
                inbox,
                Box::new(sources),
                Box::new(held),
            ))
        }
        .boxed()
    }

    fn publisher<'a>(&'a self, topic: &'a str, of: &'a TypeName) -> Reply<'a, Arc<dyn Publisher>> {
        async move {
            let found = self.types.lock().get(topic).cloned();
            one_type(topic, Some(of), &found.into_iter().flatten().collect())?;
            let shape = self.library.shape(of)?;
            let (name, named) = (topic.to_owned(), of.to_string());
            let made = self.orders.make(topic, move |spun| {
                spun.node
                    .create_publisher_untyped(&name, &named, QosProfile::default())
            });
            let publisher = R2rPublisher::new(topic, made.await?, shape, self.orders.clone());
            Ok(Arc::new(publisher) as Arc<dyn Publisher>)
        }
        .boxed()
    }

    fn call<'a>(&'a self, service: &'a str, _: &'a Value, _: Duration) -> Reply<'a, Value> {
        let what = format!(
            "call {service}: it does not tell which type a service has; use DDS or a rosbridge for it"
        );
        async move {
            Err(GraphError::Unsupported {
                carrier: CARRIER,
                what,
            })
        }
        .boxed()
    }

    fn send_goal<'a>(&'a self, action: &'a str, goal: &'a Value, patience: Duration) -> Reply<'a, Goal> {
        self.send(action, goal, patience).boxed()
    }

    fn cancel_all<'a>(&'a self, action: &'a str, patience: Duration) -> Reply<'a, ()> {
        self.cancel_every(action, patience).boxed()
    }
}

impl Drop for R2rGraph {
    fn drop(&mut self) {
        drop(self.orders.0.lock().take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Spun {
    /// The client of an action: one for each.
    fn action(&mut self, name: &str, of: &str) -> r2r::Result<r2r::ActionClientUntyped> {
        if let Some(client) = self.actions.get(name) {
            return Ok(client.clone());
        }
        let client = self.node.create_action_client_untyped(name, of)?;
        self.actions.insert(name.to_owned(), client.clone());
        Ok(client)
    }
}

/// Ends a subscription when it is dropped.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn status_of(status: r2r::GoalStatus) -> GoalStatus {
    match status {
        r2r::GoalStatus::Succeeded => GoalStatus::Succeeded,
        r2r::GoalStatus::Canceled => GoalStatus::Canceled,
        r2r::GoalStatus::Aborted => GoalStatus::Aborted,
        _ => GoalStatus::Unknown,
    }
}

fn spawn(spawner: &LocalSpawner, work: impl Future<Output = ()> + 'static) {
    if let Err(error) = spawner.spawn_local(work) {
        tracing::warn!(%error, "the node has ended");
    }
}

fn spin(node: Node, orders: &Receiver<Order>, types: &Types) {
    let mut pool = LocalPool::new();
    let mut spun = Spun {
        node,
        spawner: pool.spawner(),
        actions: HashMap::new(),
    };
    let mut next_look = Instant::now();
    loop {
        loop {
            match orders.recv_timeout(Duration::ZERO) {
                Ok(order) => order(&mut spun),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        spun.node.spin_once(SPIN);
        pool.run_until_stalled();
        if next_look <= Instant::now() {
            if let Ok(found) = spun.node.get_topic_names_and_types() {
                *types.lock() = found;
            }
            next_look = Instant::now() + LOOK;
        }
    }
}
