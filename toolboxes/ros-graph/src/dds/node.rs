//! How a participant announces its ROS node with the node's readers and writers.
//!
//! ROS tools read the names of nodes from `ros_discovery_info`; without it an endpoint has no name. Read [`Node`].

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rustdds::GUID;
use serde_json::{Value, json};

use super::raw::{Raw, Writer};
use crate::cdr::{Cdr, Order};
use crate::definition::Count;
use crate::shape::{Element, Shape};

/// The readers and writers of a participant, which are announced once the node has a name. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Node(Arc<Mutex<Endpoints>>);

#[derive(Default)]
struct Endpoints {
    readers: Vec<GUID>,
    writers: Vec<GUID>,
    announcement: Option<Announcement>,
}

struct Announcement {
    writer: Writer,
    shape: Arc<Shape>,
    cdr: Cdr,
    participant: GUID,
    name: String,
}

impl Node {
    /// Announces the node of `participant` under this name; `shape` is that of rmw_dds_common/ParticipantEntitiesInfo.
    pub(super) fn announce(
        &self,
        participant: GUID,
        name: &str,
        writer: Writer,
        shape: Arc<Shape>,
        cdr: Cdr,
    ) {
        let name = name.to_owned();
        let announcement = Announcement {
            writer,
            shape,
            cdr,
            participant,
            name,
        };
        self.change(|endpoints| endpoints.announcement = Some(announcement));
    }

    /// The node has this reader.
    pub(super) fn reads(&self, reader: GUID) {
        self.change(|endpoints| endpoints.readers.push(reader));
    }

    /// The node has this writer.
    pub(super) fn writes(&self, writer: GUID) {
        self.change(|endpoints| endpoints.writers.push(writer));
    }

    /// The node has this reader or writer no more.
    pub(super) fn gone(&self, one: GUID) {
        self.change(|endpoints| {
            endpoints.readers.retain(|reader| *reader != one);
            endpoints.writers.retain(|writer| *writer != one);
        });
    }

    fn change(&self, change: impl FnOnce(&mut Endpoints)) {
        let mut endpoints: MutexGuard<'_, Endpoints> = self.0.lock();
        change(&mut endpoints);
        if let Some(announcement) = &endpoints.announcement
            && let Err(reason) = announcement.say(&endpoints.readers, &endpoints.writers)
        {
            // Topics work without it: only ROS tools show no name.
            tracing::warn!(
                node = announcement.name,
                reason,
                "the node could not be announced"
            );
        }
    }
}

impl Announcement {
    fn say(&self, readers: &[GUID], writers: &[GUID]) -> Result<(), String> {
        let length = gid_length(&self.shape);
        let gid = |guid: &GUID| {
            // Humble has room for eight bytes more.
            let bytes = guid.to_bytes().into_iter().chain(std::iter::repeat(0));
            json!({"data": bytes.take(length).collect::<Vec<u8>>()})
        };
        let gids = |guids: &[GUID]| guids.iter().map(gid).collect::<Vec<Value>>();
        let info = json!({
            "gid": gid(&self.participant),
            "node_entities_info_seq": [{
                "node_namespace": "/",
                "node_name": self.name,
                "reader_gid_seq": gids(readers),
                "writer_gid_seq": gids(writers),
            }],
        });
        let bytes = self
            .cdr
            .encode(&self.shape, &info)
            .map_err(|error| error.to_string())?;
        let raw = Raw {
            bytes,
            order: Order::Little,
        };
        self.writer
            .write(raw, None)
            .map_err(|_| "it was not accepted".to_owned())
    }
}

/// The bytes of an id, which differ by distribution.
fn gid_length(shape: &Shape) -> usize {
    let Some(Element::Message(gid)) = shape.field("gid").map(|field| &field.of) else {
        return 0;
    };
    match gid.field("data").map(|data| data.count) {
        Some(Count::Array(length)) => length,
        _ => 0,
    }
}
