//! Services over DDS: whose answer is whose, in the way of either middleware.
//!
//! Cyclone DDS has the caller and a number in the first 16 bytes of request and reply. Fast DDS has nothing there, and
//! tells with each reply the identity of the sample that it answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustdds::rpc::SampleIdentity;
use rustdds::{GUID, RTPSEntity, WriteOptionsBuilder};
use tokio::sync::oneshot;

use super::peers::{Endpoint, MUTE, Peers, SETTLE, of_topic};
use super::raw::{Raw, Writer, is_known};
use crate::cdr::Order;
use crate::error::GraphError;
use crate::shape::Shape;

/// Requests of one client that wait for their answers.
const OPEN: usize = 256;

/// The bytes before a message of Cyclone DDS.
pub(super) const HEADER: usize = 16;

/// How a server tells which request it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Convention {
    /// By a header in both samples: Cyclone DDS.
    Header,
    /// By the identity of the request's sample: Fast DDS, Connext.
    Identity,
}

impl Convention {
    /// The vendor is in the first two bytes of an endpoint's id.
    pub(super) fn of(server: &GUID) -> Self {
        match server.to_bytes()[..2] {
            [0x01, 0x10] => Self::Header,
            _ => Self::Identity,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Number(i64),
    Sample(SampleIdentity),
}

#[derive(Default)]
struct OpenRequests {
    last: i64,
    waiting: HashMap<Key, oneshot::Sender<Raw>>,
}

/// A client of one service.
pub(super) struct Client {
    pub(super) request: Arc<Shape>,
    pub(super) response: Arc<Shape>,
    service: String,
    topics: [String; 2],
    writer: Writer,
    id: [u8; 8],
    made: Instant,
    open: Mutex<OpenRequests>,
    /// The server that has known the writer.
    known: Mutex<Option<GUID>>,
    peers: Peers,
}

/// A server that is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Server {
    convention: Convention,
    /// Its reader and ours know each other, and so do the writers.
    pub(super) settled: bool,
}

impl Client {
    pub(super) fn new(
        service: &str,
        topics: [String; 2],
        shapes: [Arc<Shape>; 2],
        writer: Writer,
        peers: Peers,
    ) -> Self {
        let mut id = [0; 8];
        id.copy_from_slice(&writer.guid().to_bytes()[8..]);
        let [request, response] = shapes;
        Self {
            request,
            response,
            service: service.to_owned(),
            topics,
            writer,
            id,
            made: Instant::now(),
            open: Mutex::default(),
            known: Mutex::default(),
            peers,
        }
    }

    /// The server, where it hears requests and is heard.
    pub(super) fn server(&self) -> Option<Server> {
        let endpoints = self.peers.now();
        let hears = of_topic(&endpoints.readers, &self.topics[0]);
        let answers = of_topic(&endpoints.writers, &self.topics[1]);
        let (hears, answers) = (hears.first()?, answers.first()?);
        let have_been = |time: Duration| {
            let settled = |endpoint: &Endpoint| endpoint.since.elapsed() >= time;
            self.made.elapsed() >= time && settled(hears) && settled(answers)
        };
        Some(Server {
            convention: Convention::of(&hears.guid),
            settled: have_been(SETTLE) && (self.knows(hears.guid) || have_been(MUTE)),
        })
    }

    /// Whether the reader of a server knows the writer: what is written before that is lost to it.
    fn knows(&self, server: GUID) -> bool {
        let mut known = self.known.lock();
        if *known != Some(server) && is_known(&self.writer) {
            *known = Some(server);
        }
        *known == Some(server)
    }

    /// Sends a request, and returns what its answer comes through.
    pub(super) fn send(&self, server: Server, message: &[u8]) -> Result<oneshot::Receiver<Raw>, GraphError> {
        let (answer, receiver) = oneshot::channel();
        // An answer that comes at once waits until its request is noted.
        let mut open = self.open.lock();
        open.waiting.retain(|_, waiting| !waiting.is_closed());
        if open.waiting.len() >= OPEN {
            return Err(GraphError::Busy {
                what: "requests without an answer",
                limit: OPEN,
            });
        }
        open.last += 1;
        let mut bytes = Vec::with_capacity(HEADER + message.len());
        if server.convention == Convention::Header {
            bytes.extend(self.id);
            bytes.extend(open.last.to_le_bytes());
        }
        bytes.extend(message);
        let raw = Raw {
            bytes,
            order: Order::Little,
        };
        let sent = self
            .writer
            .write_with_options(raw, WriteOptionsBuilder::new().build());
        let identity = sent.map_err(|_| GraphError::Lost {
            name: self.service.clone(),
            reason: "the request was not acknowledged".to_owned(),
        })?;
        let key = match server.convention {
            Convention::Header => Key::Number(open.last),
            Convention::Identity => Key::Sample(identity),
        };
        open.waiting.insert(key, answer);
        Ok(receiver)
    }

    /// A reply that was heard, with the identity of what it answers; those of other clients are heard as well.
    pub(super) fn deliver(&self, mut raw: Raw, identity: Option<SampleIdentity>) {
        let mut open = self.open.lock();
        if let Some(waiting) = identity.and_then(|identity| open.waiting.remove(&Key::Sample(identity))) {
            drop(open);
            let _ = waiting.send(raw);
            return;
        }
        let Some((id, rest)) = raw.bytes.split_first_chunk::<8>() else {
            return;
        };
        let Some(number) = rest.first_chunk::<8>() else {
            return;
        };
        // The number is in the order of the reply's bytes; the id is ours, as it was sent, or turned around.
        let (is_ours, number) = match raw.order {
            Order::Little => (*id == self.id, i64::from_le_bytes(*number)),
            Order::Big => (id.iter().rev().eq(&self.id), i64::from_be_bytes(*number)),
        };
        if !is_ours {
            return;
        }
        let waiting = open.waiting.remove(&Key::Number(number));
        drop(open);
        if let Some(waiting) = waiting {
            raw.bytes.drain(..HEADER);
            let _ = waiting.send(raw);
        }
    }
}
