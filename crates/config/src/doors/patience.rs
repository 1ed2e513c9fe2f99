//! How long a client waits for an answer: a time in milliseconds, or null.

use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
use serde_json::Value;

use section::fields::Millis;

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    match Value::deserialize(from)? {
        Value::Null => Ok(None),
        written => Millis::<100, 600_000>::deserialize(written)
            .map(Some)
            .map_err(D::Error::custom),
    }
}

pub(super) fn serialize<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_millis()).serialize(to)
}
