//! The serving side of the API: this client answers requests of other clients.

use std::task::{Context, Poll, Waker};

use bus::AnswerError;
use serde::Serialize;
use serde_json::Value;

use super::Client;
use crate::error::ClientError;
use crate::requests::{self, Request, Requests};

impl Client {
    /// Receives the requests under these topics from now on. The caller answers them. Other clients of the bus receive them, too.
    #[must_use]
    pub fn serve(&self, topics: &'static [&'static str]) -> Requests {
        let (served, requests) = requests::serve(topics);
        self.0.routes.serve(served);
        requests
    }

    /// Answers a request under `<its topic>.response`, in its context. If the bus is away, the answer is sent when the bus is
    /// back.
    ///
    /// # Errors
    /// [`ClientError::NotSent`], [`ClientError::TooLarge`], [`ClientError::Unwritable`]: nothing was sent.
    pub fn answer(&self, request: &Request, answer: &impl Serialize) -> Result<(), ClientError> {
        let text = self.written(request, &format!("{}.response", request.topic()), answer)?;
        let bus = self.0.bus.clone();
        let mut sending = Box::pin(async move { bus.answer(text).await });
        // If there is room, the message is queued at once, so that it is not lost when the client closes right after this.
        let sent = match sending.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(sent) => sent,
            Poll::Pending => {
                self.0.tasks.spawn(sending);
                Ok(())
            }
        };
        sent.map_err(|error| match error {
            AnswerError::TooBig { size, limit } => ClientError::TooLarge {
                topic: "an answer",
                size,
                limit,
            },
            AnswerError::Closed => ClientError::NotSent {
                url: self.0.address.url.clone(),
            },
        })
    }

    /// Sends a message to the sender of a request, in its context.
    ///
    /// # Errors
    /// [`ClientError::NotSent`], [`ClientError::Unwritable`]: nothing was sent.
    pub fn reply(&self, request: &Request, topic: &str, data: &impl Serialize) -> Result<(), ClientError> {
        let text = self.written(request, topic, data)?;
        if self.0.bus.notify(text) {
            return Ok(());
        }
        let url = self.0.address.url.clone();
        Err(ClientError::NotSent { url })
    }

    /// Returns the text of a message to the sender of a request.
    fn written(&self, request: &Request, topic: &str, data: &impl Serialize) -> Result<String, ClientError> {
        let unwritable = |cause| ClientError::Unwritable {
            topic: "an answer",
            cause,
        };
        match serde_json::to_value(data).map_err(unwritable)? {
            Value::Object(data) => Ok(request.reply(topic, data, &self.0.source).to_text()),
            _ => Err(unwritable(serde::ser::Error::custom(
                "the answer is not an object",
            ))),
        }
    }
}
