//! The data of a message, as unparsed JSON and as its type.

use std::marker::PhantomData;

use ovos_toolbox_wire::Object;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{ClientError, Refusal};

/// The data of a message, which should be an `A`.
#[derive(Clone, Debug)]
pub struct Received<A> {
    /// The JSON data, including the keys that `A` does not have.
    pub data: Object,
    topic: &'static str,
    is: PhantomData<fn() -> A>,
}

impl<A> Received<A> {
    pub(crate) fn new(topic: &'static str, data: Object) -> Self {
        Self {
            data,
            topic,
            is: PhantomData,
        }
    }

    /// The error, if the answer is one.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        match self.data.get("error")? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    /// Checks that the answer is no error.
    ///
    /// # Errors
    /// [`ClientError::Refused`].
    pub fn accepted(&self) -> Result<(), ClientError> {
        let Some(text) = self.error() else {
            return Ok(());
        };
        let detail = self.data.get("error_detail").cloned();
        let detail = detail.and_then(|detail| serde_json::from_value(detail).ok());
        Err(ClientError::Refused(Box::new(Refusal { text, detail })))
    }
}

impl<A: DeserializeOwned> Received<A> {
    /// The data as its type. An error is read like any other answer; [`accepted`](Self::accepted) recognises it.
    ///
    /// # Errors
    /// [`ClientError::Unreadable`].
    pub fn read(&self) -> Result<A, ClientError> {
        let data = Value::Object(self.data.clone());
        serde_json::from_value(data).map_err(|cause| ClientError::Unreadable {
            topic: self.topic,
            cause,
        })
    }

    /// The data as its type, if it is no error.
    ///
    /// # Errors
    /// [`ClientError::Refused`], [`ClientError::Unreadable`].
    pub fn good(&self) -> Result<A, ClientError> {
        self.accepted()?;
        self.read()
    }
}
