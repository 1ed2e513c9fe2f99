//! Which endpoints of other participants match one of ours, and since when.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use rustdds::{DomainParticipant, DomainParticipantStatusEvent, GUID, StatusEvented};

use super::lock;

/// How long two endpoints must have known each other before one of them hears what the other writes.
pub const SETTLE: Duration = Duration::from_millis(200);

/// For each endpoint of ours, the endpoints of other participants that match it. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Matched(Arc<Mutex<HashMap<GUID, HashSet<GUID>>>>);

impl Matched {
    /// The peers of an endpoint of ours.
    pub(super) fn of(&self, guid: GUID) -> Peers {
        Peers {
            guid,
            matched: self.clone(),
            since: Arc::default(),
        }
    }

    /// Keeps up to date which readers match our writers, and which writers match our readers.
    pub(super) async fn follow(self, participant: DomainParticipant) {
        use DomainParticipantStatusEvent as Event;
        let listener = participant.status_listener();
        let mut events = listener.as_async_status_stream();
        while let Some(event) = events.next().await {
            let (ours, theirs) = match event {
                Event::RemoteReaderMatched {
                    local_writer,
                    remote_reader,
                } => (local_writer, remote_reader),
                Event::RemoteWriterMatched {
                    local_reader,
                    remote_writer,
                } => (local_reader, remote_writer),
                Event::ReaderLost { guid, .. } | Event::WriterLost { guid, .. } => {
                    for peers in lock(&self.0).values_mut() {
                        peers.remove(&guid);
                    }
                    continue;
                }
                _ => continue,
            };
            lock(&self.0).entry(ours).or_default().insert(theirs);
        }
    }
}

/// The peers of one endpoint: the readers of a writer, the writers of a reader.
#[derive(Clone)]
pub struct Peers {
    guid: GUID,
    matched: Matched,
    /// Since when there is a peer.
    since: Arc<Mutex<Option<Instant>>>,
}

impl Peers {
    /// Whether a peer has been there for [`SETTLE`], so that what is written now is heard.
    #[must_use]
    pub fn are_ready(&self) -> bool {
        let known = lock(&self.matched.0).get(&self.guid).map_or(0, HashSet::len);
        let mut since = lock(&self.since);
        if known == 0 {
            *since = None;
            return false;
        }
        since.get_or_insert_with(Instant::now).elapsed() >= SETTLE
    }
}
