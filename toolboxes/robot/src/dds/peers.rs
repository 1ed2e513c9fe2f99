//! Which endpoints of other participants match one of ours, and since when.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use rustdds::{DomainParticipant, DomainParticipantStatusEvent, GUID, StatusEvented};

/// How long two endpoints must have known each other before one of them hears what the other writes.
pub const SETTLE: Duration = Duration::from_millis(200);

/// How often a peer is looked up whose type is not known yet.
const AGAIN: Duration = Duration::from_millis(20);

/// For each endpoint of ours, the endpoints of other participants that match it, with their types. Clones share them.
///
/// The library matches by name and quality alone: a reader of another type counts as matched, and hears nothing.
#[derive(Clone, Default)]
pub(super) struct Matched(Arc<Mutex<HashMap<GUID, Theirs>>>);

/// The endpoints of others by their id, with the type of their topic once it is known.
type Theirs = HashMap<GUID, Option<String>>;

impl Matched {
    /// The peers of an endpoint of ours, whose topic has this type in DDS.
    pub(super) fn of(&self, guid: GUID, dds_type: String) -> Peers {
        Peers {
            guid,
            dds_type,
            matched: self.clone(),
            since: Arc::default(),
        }
    }

    /// Keeps up to date which readers match our writers, and which writers match our readers.
    pub(super) async fn follow(self, participant: DomainParticipant) {
        let listener = participant.status_listener();
        let mut events = listener.as_async_status_stream();
        loop {
            let event = match self.has_unknown() {
                true => match tokio::time::timeout(AGAIN, events.next()).await {
                    Ok(event) => event,
                    Err(_) => {
                        self.look_up(&participant);
                        continue;
                    }
                },
                false => events.next().await,
            };
            let Some(event) = event else { return };
            if self.took(event) {
                self.look_up(&participant);
            }
        }
    }

    fn has_unknown(&self) -> bool {
        lock(&self.0)
            .values()
            .any(|peers| peers.values().any(Option::is_none))
    }

    /// Notes an event; returns whether there is a new peer.
    fn took(&self, event: DomainParticipantStatusEvent) -> bool {
        use DomainParticipantStatusEvent as Event;
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
                return false;
            }
            _ => return false,
        };
        let mut matched = lock(&self.0);
        matched.entry(ours).or_default().entry(theirs).or_insert(None);
        true
    }

    /// Fills in the types that the others have announced.
    fn look_up(&self, participant: &DomainParticipant) {
        let readers = participant.discovered_readers();
        let readers = readers.iter().map(|reader| {
            let guid = reader.reader_proxy.remote_reader_guid;
            (guid, reader.subscription_topic_data.type_name().clone())
        });
        let writers = participant.discovered_writers();
        let writers = writers.iter().map(|writer| {
            let guid = writer.writer_proxy.remote_writer_guid;
            (guid, writer.publication_topic_data.type_name.clone())
        });
        let types: HashMap<GUID, String> = readers.chain(writers).collect();
        for peers in lock(&self.0).values_mut() {
            for (guid, dds_type) in peers {
                if dds_type.is_none() {
                    *dds_type = types.get(guid).cloned();
                }
            }
        }
    }
}

/// The peers of one endpoint: the readers of a writer, the writers of a reader.
#[derive(Clone)]
pub struct Peers {
    guid: GUID,
    dds_type: String,
    matched: Matched,
    /// Since when there is a peer.
    since: Arc<Mutex<Option<Instant>>>,
}

impl Peers {
    /// Whether a peer of the same type has been there for [`SETTLE`], so that what is written now is heard.
    #[must_use]
    pub fn are_ready(&self) -> bool {
        let matched = lock(&self.matched.0);
        let of_type = |dds_type: &Option<String>| dds_type.as_ref() == Some(&self.dds_type);
        let known = matched
            .get(&self.guid)
            .is_some_and(|peers| peers.values().any(of_type));
        drop(matched);
        let mut since = lock(&self.since);
        if !known {
            *since = None;
            return false;
        }
        since.get_or_insert_with(Instant::now).elapsed() >= SETTLE
    }
}

/// A lock that survives a panic of the library.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic in the library leaves none of our data half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
