//! The serving side of the API: this client answers requests of other clients.

use std::task::{Context, Poll, Waker};

use bus::{AnswerError, Message};
use ovos_toolbox_wire::Object;
use serde::Serialize;
use serde_json::Value;

use super::connection::{Client, write_data};
use crate::error::ClientError;
use crate::requests::{self, Request, Requests};
use crate::routes::IDENT;

impl Client {
    /// Receives the requests under these topics from now on. The caller answers them. Other clients of the bus receive them, too.
    #[must_use]
    pub fn serve(&self, topics: &'static [&'static str]) -> Requests {
        let (served, requests) = requests::serve(topics);
        self.0.routes.serve(served);
        requests
    }

    /// Answers a request under `<its topic>.response`, in its context. If the bus is away, or there is no room for the answer, it
    /// waits and is sent later.
    ///
    /// # Errors
    /// [`ClientError::NotSent`], [`ClientError::TooLarge`], [`ClientError::Unwritable`]: nothing was sent.
    pub fn answer(&self, request: &Request, answer: &impl Serialize) -> Result<(), ClientError> {
        let topic = format!("{}.response", request.topic());
        let text = self.write_reply(request, &topic, answer)?;
        self.deliver(&topic, text)
    }

    /// Sends a message with exactly this context, such as that of an earlier request by another client: nothing in it is replaced by
    /// what names this client. If the bus is away, the message is sent when the bus is back.
    ///
    /// # Errors
    /// [`ClientError::NotSent`], [`ClientError::TooLarge`]: nothing was sent.
    pub fn publish(&self, topic: &str, data: Object, context: Object) -> Result<(), ClientError> {
        let mut message = Message::new(topic, data);
        message.context = context;
        self.deliver(topic, message.to_text())
    }

    /// Whether this client itself has sent a request: the bus sends each message to its sender, too.
    #[must_use]
    pub fn is_own(&self, request: &Request) -> bool {
        let ident = request.context().get(IDENT).and_then(Value::as_str);
        ident.is_some_and(|ident| ident.starts_with(&self.0.ident))
    }

    fn deliver(&self, topic: &str, text: String) -> Result<(), ClientError> {
        let bus = self.0.bus.clone();
        let mut sending = Box::pin(async move { bus.answer(text).await });
        // If there is room, the message is queued at once, so that it is not lost when the client closes right after this.
        let sent = match sending.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(sent) => sent,
            Poll::Pending => {
                let topic = topic.to_owned();
                self.0.tasks.spawn(async move {
                    if let Err(error) = sending.await {
                        tracing::warn!(topic, %error, "a message that waited for room was not sent");
                    }
                });
                Ok(())
            }
        };
        sent.map_err(|error| match error {
            AnswerError::TooBig { size, limit } => ClientError::TooLarge {
                topic: topic.to_owned(),
                size,
                limit,
            },
            AnswerError::Closed => ClientError::NotSent {
                url: self.0.address.url.clone(),
            },
        })
    }

    /// Sends a message to the sender of a request, in its context. Unlike an answer it is dropped if the bus is
    /// away or too many messages wait for it.
    ///
    /// # Errors
    /// [`ClientError::NotSent`], [`ClientError::Unwritable`]: nothing was sent.
    pub fn reply(&self, request: &Request, topic: &str, data: &impl Serialize) -> Result<(), ClientError> {
        let text = self.write_reply(request, topic, data)?;
        if self.0.bus.notify(text) {
            return Ok(());
        }
        let url = self.0.address.url.clone();
        Err(ClientError::NotSent { url })
    }

    /// Returns the text of a message to the sender of a request, in its context.
    ///
    /// # Errors
    /// [`ClientError::Unwritable`]: the data is not a JSON object.
    fn write_reply(
        &self,
        request: &Request,
        topic: &str,
        data: &impl Serialize,
    ) -> Result<String, ClientError> {
        let data = write_data(topic, data)?;
        Ok(request.reply(topic, data, &self.0.source).to_text())
    }
}
