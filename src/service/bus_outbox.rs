//! Passes outgoing frames of the API to the bus client.

use std::sync::OnceLock;

use futures_util::future::BoxFuture;

use crate::api::Outbox;
use bus::BusClient;

/// Passes frames to the bus client, which starts after the API because its handler needs the API.
#[derive(Default)]
pub(super) struct BusOutbox(OnceLock<BusClient>);

impl BusOutbox {
    pub(super) fn connect(&self, client: BusClient) {
        if self.0.set(client).is_err() {
            tracing::error!("the bus client was started twice");
        }
    }

    pub(super) fn client(&self) -> Option<&BusClient> {
        self.0.get()
    }
}

impl Outbox for BusOutbox {
    fn answer(&self, frame: String) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let Some(client) = self.0.get() else { return };
            if let Err(error) = client.answer(frame).await {
                tracing::error!(%error, "an answer was not sent");
            }
        })
    }

    fn answer_urgent(&self, frame: String) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let Some(client) = self.0.get() else { return };
            if let Err(error) = client.answer_urgent(frame).await {
                tracing::error!(%error, "the answer to a stop was not sent");
            }
        })
    }

    fn notify(&self, frame: String) {
        if let Some(client) = self.0.get() {
            client.notify(frame);
        }
    }
}
