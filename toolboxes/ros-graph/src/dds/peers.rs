//! The endpoints of others in the domain, kept up to date beside what asks for them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use parking_lot::Mutex;
use rustdds::policy::{Durability, Reliability};
use rustdds::{DomainParticipant, GUID, QosPolicies, RTPSEntity, StatusEvented};

use super::names::ros_type;

/// How long two endpoints must have known each other before one of them hears what the other writes.
pub const SETTLE: Duration = Duration::from_millis(200);

/// A reader that has not acknowledged anything by then is not waited for any more: it does not live, or does not tell.
pub(super) const MUTE: Duration = Duration::from_secs(2);

/// The endpoints are looked at this often where no event says that they changed.
const AGAIN: Duration = Duration::from_millis(500);

/// A reader or a writer of another participant.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    pub(super) guid: GUID,
    pub(super) topic: String,
    pub(super) dds_type: String,
    pub(super) reliable: bool,
    pub(super) keeps: bool,
    /// The hash of its type, where it tells one.
    pub(super) hash: Option<String>,
    pub(super) since: Instant,
}

#[derive(Default)]
pub(super) struct Endpoints {
    pub(super) readers: Vec<Endpoint>,
    pub(super) writers: Vec<Endpoint>,
}

/// The endpoints as they are now. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Peers(Arc<Mutex<Arc<Endpoints>>>);

impl Peers {
    pub(super) fn now(&self) -> Arc<Endpoints> {
        Arc::clone(&self.0.lock())
    }

    /// Keeps them up to date for as long as it is polled.
    pub(super) async fn follow(self, participant: DomainParticipant) {
        let listener = participant.status_listener();
        let mut events = listener.as_async_status_stream();
        loop {
            self.look(&participant);
            let _ = tokio::time::timeout(AGAIN, events.next()).await;
            // What came with it is looked at together.
            tokio::task::yield_now().await;
        }
    }

    fn look(&self, participant: &DomainParticipant) {
        let ours = participant.guid().to_bytes();
        let is_theirs = |guid: &GUID| guid.to_bytes()[..12] != ours[..12];
        let before = self.now();
        let known: HashMap<GUID, Instant> = before
            .readers
            .iter()
            .chain(&before.writers)
            .map(|endpoint| (endpoint.guid, endpoint.since))
            .collect();
        let now = Instant::now();
        let since = |guid: &GUID| known.get(guid).copied().unwrap_or(now);
        let readers = participant.discovered_readers();
        let readers = readers
            .iter()
            .filter(|reader| is_theirs(&reader.reader_proxy.remote_reader_guid));
        let readers = readers.map(|reader| {
            let data = &reader.subscription_topic_data;
            let guid = reader.reader_proxy.remote_reader_guid;
            endpoint(
                guid,
                data.topic_name(),
                data.type_name(),
                &data.qos(),
                false,
                &reader.user_data,
                since(&guid),
            )
        });
        let writers = participant.discovered_writers();
        let writers = writers
            .iter()
            .filter(|writer| is_theirs(&writer.writer_proxy.remote_writer_guid));
        let writers = writers.map(|writer| {
            let data = &writer.publication_topic_data;
            let guid = writer.writer_proxy.remote_writer_guid;
            endpoint(
                guid,
                &data.topic_name,
                &data.type_name,
                &data.qos(),
                true,
                &writer.user_data,
                since(&guid),
            )
        });
        let endpoints = Endpoints {
            readers: readers.collect(),
            writers: writers.collect(),
        };
        *self.0.lock() = Arc::new(endpoints);
    }
}

fn endpoint(
    guid: GUID,
    topic: &str,
    dds_type: &str,
    quality: &QosPolicies,
    writes: bool,
    user_data: &[u8],
    since: Instant,
) -> Endpoint {
    Endpoint {
        guid,
        topic: topic.to_owned(),
        dds_type: dds_type.to_owned(),
        // What is not said is the default, which is another one for a writer than for a reader.
        reliable: match quality.reliability() {
            None => writes,
            Some(reliability) => matches!(reliability, Reliability::Reliable { .. }),
        },
        keeps: matches!(
            quality.durability(),
            Some(Durability::TransientLocal | Durability::Transient | Durability::Persistent)
        ),
        hash: hash(user_data),
        since,
    }
}

/// `typehash=RIHS01_...;` among what an endpoint tells.
fn hash(user_data: &[u8]) -> Option<String> {
    // The library hands it out with the four bytes of its length before it and padding after it.
    let text = String::from_utf8_lossy(user_data);
    let (_, hash) = text.split_once("typehash=")?;
    let (hash, _) = hash.split_once(';')?;
    (hash.len() == 71 && hash.starts_with("RIHS01_")).then(|| hash.to_owned())
}

/// The endpoints of a topic.
pub(super) fn of_topic<'a>(endpoints: &'a [Endpoint], topic: &str) -> Vec<&'a Endpoint> {
    endpoints
        .iter()
        .filter(|endpoint| endpoint.topic == topic)
        .collect()
}

/// The types of endpoints, as ROS writes them.
pub(super) fn types(endpoints: &[&Endpoint]) -> BTreeSet<String> {
    let shown = |endpoint: &&Endpoint| match ros_type(&endpoint.dds_type) {
        Some(name) => name.to_string(),
        None => endpoint.dds_type.clone(),
    };
    endpoints.iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn a_hash_is_found_among_what_an_endpoint_tells() {
        let own = format!("RIHS01_{}", "a".repeat(64));
        assert_eq!(hash(format!("typehash={own};").as_bytes()), Some(own.clone()));
        assert_eq!(
            hash(format!("enclave=/;typehash={own};").as_bytes()),
            Some(own.clone())
        );
        assert_eq!(
            hash(format!("\u{52}\0\0\0typehash={own};\0\0").as_bytes()),
            Some(own.clone())
        );
        let raw = [&[0xD1, 0, 0, 0][..], format!("typehash={own};").as_bytes()].concat();
        assert_eq!(hash(&raw), Some(own));
        for other in [
            &b""[..],
            b"typehash=RIHS02_;",
            b"\xff",
            b"typehash",
            b"typehash=x;",
        ] {
            assert_eq!(hash(other), None);
        }
    }
}
