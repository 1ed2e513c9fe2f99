//! A domain that was joined: its lists, the types of the graph, and the clients of its services.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use parking_lot::{Mutex, RwLock};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::config::DdsConfig;
use super::filling::Filling;
use super::names::{dds_name, dds_type, ros_name, ros_type};
use super::participant::{Participant, Quality};
use super::peers::of_topic;
use super::raw::Raw;
use super::service::Client;
use crate::cdr::Cdr;
use crate::definition::{Definition, Kind, TypeName};
use crate::description::definitions;
use crate::error::{GraphError, TypeError};
use crate::graph::{Entities, Entity, Reply, one_type};
use crate::inbox::Inbox;
use crate::library::Library;
use crate::shape::Shape;

/// The pause between two looks at the graph.
const LOOK: Duration = Duration::from_millis(5);

/// Services that have a client here at the same time.
const CLIENTS: usize = 128;

/// How long a node is given to describe a type.
const DESCRIBING: Duration = Duration::from_secs(4);

/// So many nodes are asked for a type.
const DESCRIBERS: usize = 8;

/// A ROS 2 graph over DDS. Dropping it leaves the domain. Clones share it.
#[derive(Clone)]
pub struct Dds {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) participant: Arc<Participant>,
    library: RwLock<Library>,
    pub(super) cdr: Cdr,
    clients: Mutex<HashMap<String, Arc<Client>>>,
    end: CancellationToken,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

impl Dds {
    /// Joins the domain. It takes about a tenth of a second, with Fast DDS up to a second, until the graph is known.
    ///
    /// # Errors
    /// The domain or an address cannot be used.
    pub fn join(config: &DdsConfig, library: Library, cdr: Cdr) -> Result<Self, GraphError> {
        Ok(Self {
            inner: Arc::new(Inner {
                participant: Arc::new(Participant::join(config)?),
                library: RwLock::new(library),
                cdr,
                clients: Mutex::default(),
                end: CancellationToken::new(),
            }),
        })
    }

    /// Tells the tools of ROS that what is read and written here belongs to the node of this name, in the root namespace.
    ///
    /// # Errors
    /// The library has no `rmw_dds_common`, or the topic of nodes cannot be used.
    pub fn announce(&self, name: &str) -> Result<(), GraphError> {
        let shape = self.known(&TypeName::new(
            "rmw_dds_common",
            Kind::Message,
            "ParticipantEntitiesInfo",
        ))?;
        let participant = &self.inner.participant;
        let quality = Quality {
            reliable: true,
            keeps: true,
            depth: 1,
        };
        let writer = participant.writer("ros_discovery_info", &dds_type(&shape.name), quality)?;
        participant
            .node
            .announce(participant.guid(), name, writer, shape, self.inner.cdr);
        Ok(())
    }

    /// Completes when nothing is heard any more: the graph was left, or what carries it has failed.
    pub fn left(&self) -> impl Future<Output = ()> + Send + 'static {
        self.inner.participant.closed()
    }

    /// Waits until `found` finds what it looks for, `patience` at most.
    pub(super) async fn wait<T>(
        &self,
        patience: Duration,
        mut found: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        let end = Instant::now() + patience;
        loop {
            if let Some(found) = found() {
                return Some(found);
            }
            if Instant::now() >= end {
                return None;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Runs a future until the graph is left.
    pub(super) fn run(&self, work: impl Future<Output = ()> + Send + 'static) {
        let end = self.inner.end.clone();
        tokio::spawn(async move { end.run_until_cancelled(work).await });
    }

    pub(super) fn known(&self, name: &TypeName) -> Result<Arc<Shape>, TypeError> {
        self.inner.library.read().shape(name)
    }

    /// The shape of a type, which a node of the graph is asked for where it is not known here.
    pub(super) fn shape<'a>(
        &'a self,
        name: &'a TypeName,
        whole: &'a TypeName,
        hash: Option<String>,
    ) -> Reply<'a, Arc<Shape>> {
        async move {
            let unknown = match self.known(name) {
                Ok(shape) => return Ok(shape),
                Err(error) => error,
            };
            let Some(hash) = hash else {
                return Err(unknown.into());
            };
            let services = self.list().services.into_iter().map(|service| service.name);
            let describers = services.filter(|service| service.ends_with("/get_type_description"));
            for describer in describers.take(DESCRIBERS) {
                let request =
                    json!({"type_name": whole.to_string(), "type_hash": hash, "include_type_sources": false});
                let answer = self.ask(&describer, None, &request, DESCRIBING).await;
                let Some(answer) = answer.ok().filter(|answer| answer["successful"] == true) else {
                    continue;
                };
                let described = definitions(&answer["type_description"])?;
                let mut library = self.inner.library.write();
                for definition in described {
                    // What is known here keeps its defaults and comments.
                    if library.definition(&definition.name).is_none() {
                        library.add(definition);
                    }
                }
                drop(library);
                return Ok(self.known(name)?);
            }
            Err(unknown.into())
        }
        .boxed()
    }

    /// A type with all that lies in it.
    pub(super) async fn describe(&self, of: &TypeName) -> Result<Vec<Definition>, GraphError> {
        // Descriptions are of whole services, by the hash of one of their endpoints; the parts of an action lie in its services.
        const PARTS: [(&str, &str); 5] = [
            ("_Request", ""),
            ("_Response", ""),
            ("_Goal", "_SendGoal"),
            ("_Result", "_GetResult"),
            ("_Feedback", "_FeedbackMessage"),
        ];
        let holder = |name: &TypeName| match name.kind {
            Kind::Message => None,
            _ => PARTS
                .iter()
                .find_map(|(part, holder)| Some(whole(name, part)?.part(holder))),
        };
        let asked = holder(of).unwrap_or_else(|| of.clone());
        let hash = {
            let endpoints = self.inner.participant.peers.now();
            let mut all = endpoints.readers.iter().chain(&endpoints.writers);
            all.find_map(|endpoint| {
                let name = ros_type(&endpoint.dds_type)?;
                let is_asked = name == asked || holder(&name).is_some_and(|name| name == asked);
                endpoint.hash.clone().filter(|_| is_asked)
            })
        };
        self.shape(of, &asked, hash).await?;
        let library = self.inner.library.read();
        Ok(library.whole(of)?)
    }

    pub(super) fn list(&self) -> Entities {
        let endpoints = self.inner.participant.peers.now();
        let mut topics: BTreeMap<String, Entity> = BTreeMap::new();
        let mut services: BTreeMap<String, Entity> = BTreeMap::new();
        let mut actions: BTreeMap<String, Entity> = BTreeMap::new();
        for (writes, endpoint) in std::iter::repeat(false)
            .zip(&endpoints.readers)
            .chain(std::iter::repeat(true).zip(&endpoints.writers))
        {
            let dds = endpoint.topic.as_str();
            let of = ros_type(&endpoint.dds_type);
            if let Some(name) = ros_name("rt", dds, "/_action/feedback").filter(|_| writes) {
                let of = of.and_then(|of| whole(&of, "_FeedbackMessage"));
                note(&mut actions, name, of.map(|of| of.to_string()), true);
            } else if let Some(name) =
                ros_name("rq", dds, "Request").filter(|name| !writes && !name.contains("/_action/"))
            {
                let of = of.and_then(|of| whole(&of, "_Request"));
                note(&mut services, name, of.map(|of| of.to_string()), true);
            } else if let Some(name) = ros_name("rt", dds, "").filter(|name| !name.contains("/_action/")) {
                let of = of.map_or_else(|| endpoint.dds_type.clone(), |of| of.to_string());
                note(&mut topics, name, Some(of), writes);
            }
        }
        Entities {
            topics: topics.into_values().collect(),
            services: services.into_values().collect(),
            actions: actions.into_values().collect(),
        }
    }

    /// The client of a service, which is made where there is none yet. `of` is given for the services of an action.
    pub(super) async fn client(
        &self,
        service: &str,
        of: Option<&TypeName>,
        patience: Duration,
    ) -> Result<Arc<Client>, GraphError> {
        let topics = [
            dds_name("rq", service, "Request")?,
            dds_name("rr", service, "Reply")?,
        ];
        if let Some(client) = self.inner.clients.lock().get(service) {
            return Ok(Arc::clone(client));
        }
        let served = || {
            let endpoints = self.inner.participant.peers.now();
            let readers = of_topic(&endpoints.readers, &topics[0]);
            let hash = readers.iter().find_map(|reader| reader.hash.clone());
            let found: BTreeSet<String> = readers
                .iter()
                .filter_map(|reader| whole(&ros_type(&reader.dds_type)?, "_Request"))
                .map(|of| of.to_string())
                .collect();
            (!readers.is_empty()).then_some((found, hash))
        };
        let (found, hash) = self
            .wait(patience, served)
            .await
            .ok_or_else(|| GraphError::absent("service", service, patience))?;
        let of = one_type(service, of, &found)?;
        let (request, response) = (of.part("_Request"), of.part("_Response"));
        let shapes = [
            self.shape(&request, &of, hash.clone()).await?,
            self.shape(&response, &of, hash).await?,
        ];
        let quality = Quality {
            reliable: true,
            keeps: false,
            depth: 100,
        };
        let participant = &self.inner.participant;
        let writer = participant.writer(&topics[0], &dds_type(&request), quality)?;
        let client = Arc::new(Client::new(
            service,
            topics.clone(),
            shapes,
            writer,
            participant.peers.clone(),
        ));
        let mut clients = self.inner.clients.lock();
        if let Some(client) = clients.get(service) {
            return Ok(Arc::clone(client));
        }
        if clients.len() >= CLIENTS {
            return Err(GraphError::Busy {
                what: "services that were called",
                limit: CLIENTS,
            });
        }
        let receiver = Arc::clone(&client);
        let deliver = move |raw, identity, _| receiver.deliver(raw, identity);
        participant.read(
            &topics[1],
            &dds_type(&response),
            quality,
            self.inner.end.child_token(),
            deliver,
        )?;
        clients.insert(service.to_owned(), Arc::clone(&client));
        Ok(client)
    }

    /// Sends a request when the server hears it.
    pub(super) async fn send(
        &self,
        service: &str,
        client: &Client,
        request: &Value,
        patience: Duration,
    ) -> Result<tokio::sync::oneshot::Receiver<Raw>, GraphError> {
        let bytes = self.inner.cdr.encode(&client.request, request)?;
        let settled = || client.server().filter(|server| server.settled);
        let server = self
            .wait(patience, settled)
            .await
            .ok_or_else(|| GraphError::absent("service", service, patience))?;
        client.send(server, &bytes)
    }

    pub(super) async fn ask(
        &self,
        service: &str,
        of: Option<&TypeName>,
        request: &Value,
        patience: Duration,
    ) -> Result<Value, GraphError> {
        let end = Instant::now() + patience;
        let client = self.client(service, of, patience).await?;
        let left = || end.saturating_duration_since(Instant::now());
        let answer = self.send(service, &client, request, left()).await?;
        self.answer(service, &client, answer, (left(), patience)).await
    }

    /// The answer to a request that was sent, which may take as long as is left of a patience.
    pub(super) async fn answer(
        &self,
        service: &str,
        client: &Client,
        answer: tokio::sync::oneshot::Receiver<Raw>,
        (left, patience): (Duration, Duration),
    ) -> Result<Value, GraphError> {
        match tokio::time::timeout(left, answer).await {
            Ok(Ok(raw)) => Ok(self.inner.cdr.decode(&client.response, &raw.bytes, raw.order)?),
            Ok(Err(_)) => Err(GraphError::Closed),
            Err(_) if client.server().is_none() => Err(GraphError::Lost {
                name: service.to_owned(),
                reason: "the service left before it answered".to_owned(),
            }),
            Err(_) => Err(GraphError::NoAnswer {
                service: service.to_owned(),
                waited: patience,
            }),
        }
    }

    /// Puts what comes on a topic of DDS into an inbox.
    pub(super) fn filling(&self, topic: &str, shape: &Arc<Shape>, inbox: &Arc<Inbox>) -> Filling {
        Filling {
            participant: Arc::clone(&self.inner.participant),
            topic: topic.to_owned(),
            shape: Arc::clone(shape),
            cdr: self.inner.cdr,
            inbox: Arc::clone(inbox),
            end: self.inner.end.clone(),
        }
    }
}

/// The type that this is a part of.
pub(super) fn whole(part: &TypeName, suffix: &str) -> Option<TypeName> {
    let name = part.name.strip_suffix(suffix)?;
    Some(TypeName::new(&part.package, part.kind, name))
}

fn note(entities: &mut BTreeMap<String, Entity>, name: String, of: Option<String>, is_source: bool) {
    let entity = entities.entry(name.clone()).or_insert_with(|| Entity {
        name,
        sources: Some(0),
        sinks: Some(0),
        ..Entity::default()
    });
    entity.types.extend(of);
    let count = if is_source {
        &mut entity.sources
    } else {
        &mut entity.sinks
    };
    *count = count.map(|count| count + 1);
}
