//! The participant in the domain, and the one thread on which its readers are read.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use parking_lot::Mutex;
use rustdds::no_key::DeserializedCacheChange;
use rustdds::policy::{Durability, History, Reliability};
use rustdds::rpc::SampleIdentity;
use rustdds::{
    DomainParticipant, DomainParticipantBuilder, GUID, QosPolicies, QosPolicyBuilder, RTPSEntity, Timestamp,
    Topic, TopicKind,
};
use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio::task::LocalSet;
use tokio_util::sync::CancellationToken;

use super::config::DdsConfig;
use super::node::Node;
use super::peers::Peers;
use super::raw::{Raw, RawAdapter, Reader, Writer, greet};
use crate::error::GraphError;

/// The quality of a reader or a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quality {
    pub(super) reliable: bool,
    /// What was said before is said to those that come later.
    pub(super) keeps: bool,
    pub(super) depth: i32,
}

/// A future of the library stays on the thread that made it.
type Task = Box<dyn FnOnce() -> LocalBoxFuture<'static, ()> + Send>;

/// Readers that wait to be begun, and what watches over them.
const TASKS: usize = 256;

pub(super) struct Participant {
    participant: DomainParticipant,
    publisher: rustdds::Publisher,
    subscriber: rustdds::Subscriber,
    pub(super) peers: Peers,
    pub(super) node: Node,
    tasks: mpsc::Sender<Task>,
    end: CancellationToken,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Participant {
    pub(super) fn join(config: &DdsConfig) -> Result<Self, GraphError> {
        config.check()?;
        let mut builder = DomainParticipantBuilder::new(config.domain);
        if !config.interfaces.is_empty() {
            builder = builder.with_only_networks(config.interfaces.iter().copied());
        }
        let participant = builder.build().map_err(|error| config.failed(error))?;
        let usual = Quality {
            reliable: true,
            keeps: false,
            depth: 10,
        }
        .policies();
        let publisher = participant
            .create_publisher(&usual)
            .map_err(|error| config.failed(error))?;
        let subscriber = participant
            .create_subscriber(&usual)
            .map_err(|error| config.failed(error))?;
        let (tasks, mut begun) = mpsc::channel::<Task>(TASKS);
        let end = CancellationToken::new();
        let peers = Peers::default();
        let runtime = Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|error| config.failed(error))?;
        let thread = std::thread::Builder::new()
            .name("ros-graph".to_owned())
            .spawn({
                let (participant, peers, end) = (participant.clone(), peers.clone(), end.clone());
                move || {
                    let lost = end.clone();
                    let work = async move {
                        tokio::task::spawn_local(vital(lost, peers.follow(participant)));
                        while let Some(task) = begun.recv().await {
                            tokio::task::spawn_local(task());
                        }
                    };
                    LocalSet::new().block_on(&runtime, end.run_until_cancelled(work).map(drop));
                }
            })
            .map_err(|error| config.failed(error))?;
        Ok(Self {
            participant,
            publisher,
            subscriber,
            peers,
            node: Node::default(),
            tasks,
            end,
            thread: Mutex::new(Some(thread)),
        })
    }

    fn topic(&self, name: &str, dds_type: &str, quality: &QosPolicies) -> Result<Topic, GraphError> {
        self.participant
            .create_topic(name.to_owned(), dds_type.to_owned(), quality, TopicKind::NoKey)
            .map_err(|error| unusable(name, error))
    }

    /// A writer of a topic of DDS.
    pub(super) fn writer(&self, name: &str, dds_type: &str, quality: Quality) -> Result<Writer, GraphError> {
        let policies = quality.policies();
        let topic = self.topic(name, dds_type, &policies)?;
        let writer = self
            .publisher
            .create_datawriter_no_key::<Raw, RawAdapter>(&topic, Some(policies))
            .map_err(|error| unusable(name, error))?;
        // To a late reader, what is kept is said again.
        if quality.reliable && !quality.keeps && !greet(&writer) {
            return Err(unusable(name, "the writer is full"));
        }
        self.node.writes(writer.guid());
        Ok(writer)
    }

    /// Reads a topic of DDS until `end`: what is received from now on and, where the quality keeps, what is there. `deliver` is given
    /// when a sample was received; it runs on the participant's thread, for what is there on this one, and returns soon.
    pub(super) fn read(
        &self,
        name: &str,
        dds_type: &str,
        quality: Quality,
        end: CancellationToken,
        deliver: impl Fn(Raw, Option<SampleIdentity>, Instant) + Send + 'static,
    ) -> Result<(), GraphError> {
        let made = Instant::now();
        let policies = quality.policies();
        let topic = self.topic(name, dds_type, &policies)?;
        let reader: Reader = self
            .subscriber
            .create_simple_datareader_no_key(&topic, Some(policies))
            .map_err(|error| unusable(name, error))?;
        let take = move |sample: DeserializedCacheChange<Raw>, received| {
            let identity = sample.write_options.related_sample_identity();
            deliver(sample.into_value(), identity, received);
        };
        // The library gives a new reader what earlier ones of the topic received, of publishers that are gone, too.
        let mut earlier = Vec::new();
        while let Some(sample) = reader.try_take_one().transpose() {
            earlier.extend(sample.ok().filter(|_| quality.keeps));
        }
        let known = self.peers.now();
        earlier.retain(|sample| {
            known
                .writers
                .iter()
                .any(|writer| writer.guid == sample.writer_guid)
        });
        earlier.sort_by_key(|sample| sample.receive_instant);
        for sample in earlier {
            let received = received(sample.receive_instant);
            take(sample, received);
        }
        let (name, guid) = (name.to_owned(), reader.guid());
        self.node.reads(guid);
        let (node, lost) = (self.node.clone(), self.end.clone());
        let task = move || {
            let listen = async move {
                let mut stream = Box::pin(reader.as_async_stream());
                while let Some(sample) = stream.next().await {
                    match sample {
                        Ok(sample) => {
                            let received = received(sample.receive_instant);
                            // What was withheld then comes only now.
                            if quality.keeps || received >= made {
                                take(sample, received);
                            }
                        }
                        Err(error) => tracing::warn!(topic = name, %error, "a sample that cannot be read"),
                    }
                }
            };
            let listening = end.run_until_cancelled_owned(listen);
            vital(lost, listening.map(move |_| node.gone(guid))).boxed_local()
        };
        self.tasks
            .try_send(Box::new(task))
            .map_err(|_| GraphError::Closed)
    }

    /// Runs work on the participant's thread until `end`.
    pub(super) fn run(
        &self,
        end: CancellationToken,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), GraphError> {
        let lost = self.end.clone();
        let task = move || vital(lost, end.run_until_cancelled_owned(work).map(drop)).boxed_local();
        self.tasks
            .try_send(Box::new(task))
            .map_err(|_| GraphError::Closed)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.end.is_cancelled()
    }

    /// Completes when nothing is heard any more: it was closed, or its thread has panicked.
    pub(super) fn closed(&self) -> impl Future<Output = ()> + Send + 'static {
        self.end.clone().cancelled_owned()
    }

    pub(super) fn guid(&self) -> GUID {
        self.participant.guid()
    }
}

/// When something was received, on the clock that is never set.
fn received(at: Timestamp) -> Instant {
    // In this order a pause between the two makes nothing older than it is.
    let ticks = Timestamp::now().to_ticks().saturating_sub(at.to_ticks());
    let now = Instant::now();
    // The lower half of a tick's number is a fraction of a second.
    let nanoseconds = ((ticks & 0xFFFF_FFFF) * 1_000_000_000) >> 32;
    let age = Duration::from_secs(ticks >> 32) + Duration::from_nanos(nanoseconds);
    now.checked_sub(age).unwrap_or(now)
}

/// Closes the participant where its work panics: one that hears nothing any more would look alive.
async fn vital(end: CancellationToken, work: impl Future<Output = ()>) {
    struct Vital(CancellationToken);
    impl Drop for Vital {
        fn drop(&mut self) {
            if std::thread::panicking() {
                self.0.cancel();
            }
        }
    }
    let _vital = Vital(end);
    work.await;
}

impl Drop for Participant {
    fn drop(&mut self) {
        self.end.cancel();
        let thread = self.thread.lock().take();
        // The last holder may be a task of the thread itself.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            let _ = thread.join();
        }
    }
}

impl Quality {
    fn policies(self) -> QosPolicies {
        let reliability = match self.reliable {
            // A write fails at once where no subscriber acknowledges.
            true => Reliability::Reliable {
                max_blocking_time: rustdds::Duration::ZERO,
            },
            false => Reliability::BestEffort,
        };
        let durability = match self.keeps {
            true => Durability::TransientLocal,
            false => Durability::Volatile,
        };
        QosPolicyBuilder::new()
            .reliability(reliability)
            .durability(durability)
            .history(History::KeepLast { depth: self.depth })
            .build()
    }
}

fn unusable(name: &str, reason: impl ToString) -> GraphError {
    GraphError::Lost {
        name: name.to_owned(),
        reason: reason.to_string(),
    }
}

/// Ends what it was made for when it is dropped; the participant stays as long.
pub(super) struct Guard {
    end: CancellationToken,
    _participant: Arc<Participant>,
}

impl Guard {
    pub(super) fn new(end: CancellationToken, participant: &Arc<Participant>) -> Self {
        Self {
            end,
            _participant: Arc::clone(participant),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.end.cancel();
    }
}
