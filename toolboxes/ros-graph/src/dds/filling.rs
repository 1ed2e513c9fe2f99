//! What comes on a topic of DDS, put into an inbox: in one quality, or in one that every publisher offers.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::names::dds_type;
use super::participant::{Guard, Participant, Quality};
use super::peers::{Endpoint, of_topic};
use super::raw::Raw;
use crate::cdr::Cdr;
use crate::error::GraphError;
use crate::inbox::Inbox;
use crate::shape::Shape;

/// The pause between two looks at what the publishers offer.
const LOOK: Duration = Duration::from_millis(100);

/// Fills an inbox with what comes on a topic of DDS.
pub(super) struct Filling {
    pub(super) participant: Arc<Participant>,
    pub(super) topic: String,
    pub(super) shape: Arc<Shape>,
    pub(super) cdr: Cdr,
    pub(super) inbox: Arc<Inbox>,
    /// The end of the graph.
    pub(super) end: CancellationToken,
}

impl Filling {
    /// Fills it in this quality until the guard is dropped.
    pub(super) fn begin(&self, quality: Quality) -> Result<Guard, GraphError> {
        let end = self.end.child_token();
        let (shape, cdr, filled) = (Arc::clone(&self.shape), self.cdr, Arc::clone(&self.inbox));
        let deliver = move |raw: Raw, _, received| {
            let shape = Arc::clone(&shape);
            filled.put_received(
                raw.bytes.len(),
                received,
                Box::new(move || Ok(cdr.decode(&shape, &raw.bytes, raw.order)?)),
            );
        };
        let name = dds_type(&self.shape.name);
        self.participant
            .read(&self.topic, &name, quality, end.clone(), deliver)?;
        Ok(Guard::new(end, &self.participant))
    }

    /// Fills it in the best quality that every publisher offers until the guard is dropped. Where one joins that offers less, it
    /// begins anew: until that reader and the publishers know each other, for about a fifth of a second, nothing is heard.
    pub(super) fn fit(self) -> Result<Guard, GraphError> {
        let mut reading = self.read_fitting()?;
        let end = self.end.child_token();
        let guard = Guard::new(end.clone(), &self.participant);
        let participant = Arc::clone(&self.participant);
        let follow = async move {
            loop {
                tokio::time::sleep(LOOK).await;
                let (asked, _) = &reading;
                if self.offers(|writers| writers.iter().all(|writer| asked.is_offered(writer))) {
                    continue;
                }
                match self.read_fitting() {
                    Ok(fitting) => reading = fitting,
                    Err(error) => tracing::warn!(topic = self.topic, %error, "a publisher is not heard"),
                }
            }
        };
        participant.run(end, follow)?;
        Ok(guard)
    }

    fn read_fitting(&self) -> Result<(Quality, Guard), GraphError> {
        let quality = self.offers(Quality::offered);
        Ok((quality, self.begin(quality)?))
    }

    /// What the publishers of the topic and type say of themselves now.
    fn offers<T>(&self, read: impl FnOnce(&[&Endpoint]) -> T) -> T {
        let own = dds_type(&self.shape.name);
        let endpoints = self.participant.peers.now();
        let mut writers = of_topic(&endpoints.writers, &self.topic);
        writers.retain(|writer| writer.dds_type == own);
        read(&writers)
    }
}

impl Quality {
    /// The best that every writer offers.
    fn offered(writers: &[&Endpoint]) -> Self {
        let all =
            |has: fn(&Endpoint) -> bool| !writers.is_empty() && writers.iter().all(|writer| has(writer));
        Self {
            reliable: all(|writer| writer.reliable),
            keeps: all(|writer| writer.keeps),
            depth: 10,
        }
    }

    /// Whether a reader that asks for it hears this writer.
    fn is_offered(self, writer: &Endpoint) -> bool {
        (writer.reliable || !self.reliable) && (writer.keeps || !self.keeps)
    }
}
