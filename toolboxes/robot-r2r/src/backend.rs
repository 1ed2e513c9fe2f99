//! ROS topics over r2r: one node and the thread that spins it.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::executor::LocalPool;
use futures::task::LocalSpawnExt;
use r2r::{Context, Node, Publisher, QosProfile};
use robot::ros::backend::{Deliver, RosBackend};
use robot::ros::{Kind, RosConfig, RosError, RosMessage};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How long one spin lasts: nothing is published or heard later than this.
const SPIN: Duration = Duration::from_millis(5);
/// The pause between two looks at the graph.
const LOOK: Duration = Duration::from_millis(100);
/// Messages that may wait to be published: a drive publishes ten a second.
const QUEUE: usize = 256;
/// How long a reader must have been known before it hears what is published.
const SETTLE: Duration = Duration::from_millis(200);

/// Carries ROS topics with the installation's own middleware.
pub struct R2rBackend {
    orders: Mutex<Option<SyncSender<Order>>>,
    /// Since when each topic has a reader.
    heard: Arc<Mutex<HashMap<String, Instant>>>,
    /// The types of each topic that others are on, as ROS writes them.
    graph: Arc<Mutex<HashMap<String, Vec<String>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

type Done = SyncSender<Result<(), RosError>>;

enum Order {
    Advertise(String, Kind, Done),
    Subscribe(String, Kind, Deliver, Done),
    Publish(String, RosMessage),
}

enum Typed {
    Twist(Publisher<r2r::geometry_msgs::msg::Twist>),
    TwistStamped(Publisher<r2r::geometry_msgs::msg::TwistStamped>),
    Float64MultiArray(Publisher<r2r::std_msgs::msg::Float64MultiArray>),
    JointState(Publisher<r2r::sensor_msgs::msg::JointState>),
}

impl R2rBackend {
    /// Starts a node. Domain and middleware are those of the environment (`ROS_DOMAIN_ID`, `RMW_IMPLEMENTATION`).
    ///
    /// # Errors
    /// The environment's domain is not the configured one, to which a stop after a crash goes; or ROS does not start.
    pub fn join(config: &RosConfig, name: &str) -> Result<Self, RosError> {
        config.is_domain(std::env::var("ROS_DOMAIN_ID").ok().as_deref())?;
        let (orders, taken) = sync_channel(QUEUE);
        let (started, result) = sync_channel(1);
        let heard: Arc<Mutex<HashMap<String, Instant>>> = Arc::default();
        let graph: Arc<Mutex<HashMap<String, Vec<String>>>> = Arc::default();
        let domain = config.domain;
        let failed = move |reason: String| RosError::Join { domain, reason };
        let thread = std::thread::Builder::new()
            .name(format!("ros-{name}"))
            .spawn({
                let (name, heard, graph) = (name.to_owned(), Arc::clone(&heard), Arc::clone(&graph));
                move || {
                    // The node stays on the thread that made it.
                    let node = Context::create().and_then(|context| Node::create(context, &name, ""));
                    match node {
                        Ok(node) => {
                            let _ = started.send(Ok(()));
                            spin(node, &taken, &heard, &graph);
                        }
                        Err(error) => drop(started.send(Err(error.to_string()))),
                    }
                }
            })
            .map_err(|error| failed(error.to_string()))?;
        result
            .recv()
            .unwrap_or_else(|_| Err("its thread has ended".to_owned()))
            .map_err(failed)?;
        Ok(Self {
            orders: Mutex::new(Some(orders)),
            heard,
            graph,
            thread: Mutex::new(Some(thread)),
        })
    }

    fn order(&self, order: Order) -> Result<(), RosError> {
        let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(orders) = orders.as_ref() else {
            return Err(RosError::Closed);
        };
        orders.try_send(order).map_err(|error| match error {
            TrySendError::Full(_) => RosError::Topic {
                topic: "all".to_owned(),
                reason: format!("{QUEUE} messages wait to be published"),
            },
            TrySendError::Disconnected(_) => RosError::Closed,
        })
    }

    fn order_and_wait(&self, order: impl FnOnce(Done) -> Order) -> Result<(), RosError> {
        let (done, result) = sync_channel(1);
        self.order(order(done))?;
        result
            .recv_timeout(Duration::from_secs(2))
            .unwrap_or(Err(RosError::Closed))
    }
}

impl RosBackend for R2rBackend {
    fn heard_as(&self, topic: &str) -> Vec<String> {
        let graph = self.graph.lock().unwrap_or_else(PoisonError::into_inner);
        graph.get(topic).cloned().unwrap_or_default()
    }

    fn advertise(&self, topic: &str, kind: Kind) -> Result<(), RosError> {
        self.order_and_wait(|done| Order::Advertise(topic.to_owned(), kind, done))
    }

    fn publish(&self, topic: &str, message: RosMessage) -> Result<(), RosError> {
        self.order(Order::Publish(topic.to_owned(), message))
    }

    fn subscribe(&self, topic: &str, kind: Kind, deliver: Deliver) -> Result<(), RosError> {
        self.order_and_wait(|done| Order::Subscribe(topic.to_owned(), kind, deliver, done))
    }

    fn is_heard(&self, topic: &str) -> bool {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.get(topic).is_some_and(|since| since.elapsed() >= SETTLE)
    }

    fn close(&self) {
        drop(self.orders.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }
}

impl Drop for R2rBackend {
    fn drop(&mut self) {
        self.close();
    }
}

fn spin(
    mut node: Node,
    orders: &Receiver<Order>,
    heard: &Mutex<HashMap<String, Instant>>,
    graph: &Mutex<HashMap<String, Vec<String>>>,
) {
    let mut publishers: HashMap<String, Typed> = HashMap::new();
    let mut next_look = Instant::now();
    let mut pool = LocalPool::new();
    loop {
        loop {
            match orders.recv_timeout(Duration::ZERO) {
                Ok(order) => obey(&mut node, &mut publishers, &pool, order),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        node.spin_once(SPIN);
        pool.run_until_stalled();
        if next_look <= Instant::now() {
            look(&node, graph);
            next_look = Instant::now() + LOOK;
        }
        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        for (topic, publisher) in &publishers {
            if publisher.readers() == 0 {
                heard.remove(topic);
            } else {
                heard.entry(topic.clone()).or_insert_with(Instant::now);
            }
        }
    }
}

/// Reads the types of all topics. A name with a writer alone counts, too: ROS does not tell the two apart here.
fn look(node: &Node, graph: &Mutex<HashMap<String, Vec<String>>>) {
    let Ok(found) = node.get_topic_names_and_types() else {
        return;
    };
    // `geometry_msgs/msg/Twist` is written `geometry_msgs/Twist` here.
    let short = |types: Vec<String>| types.into_iter().map(|one| one.replace("/msg/", "/")).collect();
    let found = found.into_iter().map(|(topic, types)| (topic, short(types)));
    *graph.lock().unwrap_or_else(PoisonError::into_inner) = found.collect();
}

fn obey(node: &mut Node, publishers: &mut HashMap<String, Typed>, pool: &LocalPool, order: Order) {
    match order {
        Order::Advertise(topic, kind, done) => {
            let made = Typed::new(node, &topic, kind);
            let failed = |error: r2r::Error| RosError::Topic {
                topic: topic.clone(),
                reason: error.to_string(),
            };
            let _ = done.send(
                made.map_err(failed)
                    .map(|made| drop(publishers.insert(topic.clone(), made))),
            );
        }
        Order::Publish(topic, message) => match publishers.get(&topic) {
            Some(publisher) => publisher.publish(message),
            None => tracing::warn!(topic, "was not announced"),
        },
        Order::Subscribe(topic, kind, deliver, done) => {
            let subscribed = match kind {
                Kind::Twist => hear(
                    node,
                    pool,
                    &topic,
                    move |twist: r2r::geometry_msgs::msg::Twist| {
                        if let Some(twist) = same(&twist) {
                            deliver(RosMessage::Twist(twist));
                        }
                    },
                ),
                Kind::TwistStamped => hear(
                    node,
                    pool,
                    &topic,
                    move |twist: r2r::geometry_msgs::msg::TwistStamped| {
                        if let Some(twist) = same(&twist) {
                            deliver(RosMessage::TwistStamped(twist));
                        }
                    },
                ),
                Kind::Float64MultiArray => hear(
                    node,
                    pool,
                    &topic,
                    move |array: r2r::std_msgs::msg::Float64MultiArray| {
                        if let Some(array) = same(&array) {
                            deliver(RosMessage::Float64MultiArray(array));
                        }
                    },
                ),
                Kind::JointState => hear(
                    node,
                    pool,
                    &topic,
                    move |joints: r2r::sensor_msgs::msg::JointState| {
                        if let Some(joints) = same(&joints) {
                            deliver(RosMessage::JointState(joints));
                        }
                    },
                ),
            };
            let _ = done.send(subscribed.map_err(|reason| RosError::Topic { topic, reason }));
        }
    }
}

fn hear<T: r2r::WrappedTypesupport + 'static>(
    node: &mut Node,
    pool: &LocalPool,
    topic: &str,
    deliver: impl Fn(T) + 'static,
) -> Result<(), String> {
    let mut stream = node
        .subscribe::<T>(topic, QosProfile::sensor_data())
        .map_err(|error| error.to_string())?;
    let task = async move {
        while let Some(message) = stream.next().await {
            deliver(message);
        }
    };
    pool.spawner()
        .spawn_local(task)
        .map_err(|error| error.to_string())
}

impl Typed {
    fn new(node: &mut Node, topic: &str, kind: Kind) -> r2r::Result<Self> {
        let quality = QosProfile::default();
        Ok(match kind {
            Kind::Twist => Self::Twist(node.create_publisher(topic, quality)?),
            Kind::TwistStamped => Self::TwistStamped(node.create_publisher(topic, quality)?),
            Kind::Float64MultiArray => Self::Float64MultiArray(node.create_publisher(topic, quality)?),
            Kind::JointState => Self::JointState(node.create_publisher(topic, quality)?),
        })
    }

    fn readers(&self) -> usize {
        match self {
            Self::Twist(publisher) => publisher.get_inter_process_subscription_count(),
            Self::TwistStamped(publisher) => publisher.get_inter_process_subscription_count(),
            Self::Float64MultiArray(publisher) => publisher.get_inter_process_subscription_count(),
            Self::JointState(publisher) => publisher.get_inter_process_subscription_count(),
        }
        .unwrap_or(0)
    }

    fn publish(&self, message: RosMessage) {
        let published = match (self, &message) {
            (Self::Twist(publisher), RosMessage::Twist(twist)) => {
                same(twist).map(|twist| publisher.publish(&twist))
            }
            (Self::TwistStamped(publisher), RosMessage::TwistStamped(twist)) => {
                same(twist).map(|twist| publisher.publish(&twist))
            }
            (Self::Float64MultiArray(publisher), RosMessage::Float64MultiArray(array)) => {
                same(array).map(|array| publisher.publish(&array))
            }
            (Self::JointState(publisher), RosMessage::JointState(joints)) => {
                same(joints).map(|joints| publisher.publish(&joints))
            }
            _ => None,
        };
        if !matches!(published, Some(Ok(()))) {
            tracing::warn!(?published, "a message could not be published");
        }
    }
}

/// Both sides have the same fields by the same names.
fn same<A: Serialize, B: DeserializeOwned>(message: &A) -> Option<B> {
    serde_json::from_value(serde_json::to_value(message).ok()?).ok()
}
