//! The bus as a subcommand sees it: ask under a topic, get the data of the answer.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};

use super::context::Address;
use super::error::CliError;
use bus::{Caller, Message};

/// The data of a message.
pub(super) type Data = Map<String, Value>;

/// A connection with a session of its own.
pub(super) struct Asker {
    caller: Caller,
    address: Address,
}

impl Asker {
    pub(super) async fn connect(address: &Address, wait: Duration) -> Result<Self, CliError> {
        let caller = Caller::connect(address.url.clone(), address.certificate.clone(), wait).await?;
        Ok(Self {
            caller,
            address: address.clone(),
        })
    }

    /// Asks and waits for the answer.
    pub(super) async fn ask(&mut self, topic: &str, data: Data, wait: Duration) -> Result<Data, CliError> {
        self.ask_hearing(topic, data, wait, |_| {}).await
    }

    /// Asks and waits; what else comes in this session goes to `other`.
    pub(super) async fn ask_hearing(
        &mut self,
        topic: &str,
        data: Data,
        wait: Duration,
        other: impl FnMut(Message),
    ) -> Result<Data, CliError> {
        Ok(self.caller.request(topic, data, wait, other).await?.data)
    }

    /// Asks several things under one topic, all at once, and waits for as many answers, in whatever order.
    pub(super) async fn ask_each(
        &mut self,
        topic: &str,
        requests: Vec<Data>,
        wait: Duration,
    ) -> Result<Vec<Data>, CliError> {
        let deadline = Instant::now() + wait;
        let expected = requests.len();
        for data in requests {
            self.caller.send(topic, data).await?;
        }
        let answer = format!("{topic}.response");
        let mut answers = Vec::new();
        while answers.len() < expected {
            let message = match timeout_at(deadline, self.caller.next()).await {
                Ok(message) => message?,
                Err(_) => return Err(self.silence(wait)),
            };
            if message.kind == answer && message.session_id() == Some(self.caller.session_id()) {
                answers.push(message.data);
            }
        }
        Ok(answers)
    }

    /// Sends and waits for nothing.
    pub(super) async fn send(&mut self, topic: &str, data: Data) -> Result<(), CliError> {
        Ok(self.caller.send(topic, data).await?)
    }

    /// The error of a question without an answer.
    pub(super) fn silence(&self, wait: Duration) -> CliError {
        CliError::NoAnswer {
            url: self.address.url.to_string(),
            wait,
            advice: String::new(),
        }
    }
}

/// The object that `json!({...})` makes.
pub(super) fn object(value: Value) -> Data {
    match value {
        Value::Object(data) => data,
        _ => Data::new(),
    }
}

/// The error an answer consists of, if it does.
pub(super) fn error_of(data: &Data) -> Option<String> {
    match data.get("error")? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// `Err` when the answer is an error.
pub(super) fn accepted(data: &Data) -> Result<(), CliError> {
    error_of(data).map_or(Ok(()), |text| Err(CliError::Refused(text)))
}

/// Reads an answer.
pub(super) fn read<T: DeserializeOwned>(topic: &'static str, data: &Data) -> Result<T, CliError> {
    serde_json::from_value(Value::Object(data.clone())).map_err(|cause| CliError::Answer { topic, cause })
}
