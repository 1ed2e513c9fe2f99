//! How a participant announces its ROS node with the node's readers and writers.
//!
//! ROS tools read the names of nodes from `ros_discovery_info`; without it an endpoint has no name. Read
//! [`Announcement`].

use rustdds::no_key::DataWriterCdr;
use rustdds::policy::{Durability, History, Reliability};
use rustdds::{DomainParticipant, GUID, QosPolicyBuilder, RTPSEntity, TopicKind};
use serde::ser::SerializeTuple;
use serde::{Serialize, Serializer};

use crate::ros::config::Distro;

/// One node, and the writer that announces it.
pub(super) struct Announcement {
    writer: DataWriterCdr<Participant>,
    distro: Distro,
    participant: GUID,
    name: String,
    readers: Vec<GUID>,
    writers: Vec<GUID>,
}

/// rmw_dds_common/ParticipantEntitiesInfo.
#[derive(Clone, Debug, Serialize)]
struct Participant {
    gid: Gid,
    nodes: Vec<Node>,
}

/// rmw_dds_common/NodeEntitiesInfo.
#[derive(Clone, Debug, Serialize)]
struct Node {
    namespace: String,
    name: String,
    readers: Vec<Gid>,
    writers: Vec<Gid>,
}

/// rmw_dds_common/Gid: the 16 bytes of a GUID, and on Humble eight zeros more.
#[derive(Clone, Debug)]
struct Gid {
    guid: GUID,
    distro: Distro,
}

impl Serialize for Gid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let length = match self.distro {
            Distro::Humble => 24,
            Distro::Jazzy | Distro::Kilted => 16,
        };
        // A tuple is an array of fixed length on the wire.
        let mut tuple = serializer.serialize_tuple(length)?;
        for byte in self.guid.to_bytes().iter().chain(&[0; 8]).take(length) {
            tuple.serialize_element(byte)?;
        }
        tuple.end()
    }
}

impl Announcement {
    /// A node of this name in the root namespace, without readers and writers yet.
    pub(super) fn new(
        participant: &DomainParticipant,
        name: &str,
        distro: Distro,
    ) -> Result<Self, rustdds::dds::CreateError> {
        let quality = QosPolicyBuilder::new()
            .reliability(Reliability::Reliable {
                max_blocking_time: rustdds::Duration::ZERO,
            })
            .durability(Durability::TransientLocal)
            .history(History::KeepLast { depth: 1 })
            .build();
        let topic = participant.create_topic(
            "ros_discovery_info".to_owned(),
            "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_".to_owned(),
            &quality,
            TopicKind::NoKey,
        )?;
        let writer = participant
            .create_publisher(&quality)?
            .create_datawriter_no_key_cdr(&topic, None)?;
        let node = Self {
            participant: participant.guid(),
            name: name.to_owned(),
            distro,
            readers: Vec::new(),
            writers: vec![writer.guid()],
            writer,
        };
        node.say();
        Ok(node)
    }

    /// The node has this reader.
    pub(super) fn reads(&mut self, reader: GUID) {
        self.readers.push(reader);
        self.say();
    }

    /// The node has this writer.
    pub(super) fn writes(&mut self, writer: GUID) {
        self.writers.push(writer);
        self.say();
    }

    fn say(&self) {
        let gid = |guid: &GUID| Gid {
            guid: *guid,
            distro: self.distro,
        };
        let gids = |guids: &[GUID]| guids.iter().map(gid).collect();
        let info = Participant {
            gid: gid(&self.participant),
            nodes: vec![Node {
                namespace: "/".to_owned(),
                name: self.name.clone(),
                readers: gids(&self.readers),
                writers: gids(&self.writers),
            }],
        };
        if let Err(error) = self.writer.write(info, None) {
            // Topics work without it: only ROS tools show no name.
            tracing::warn!(node = self.name, %error, "the node could not be announced");
        }
    }
}
