//! Integers of any size as arguments and results.

use std::borrow::Cow;

use num_bigint::BigInt;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::value::RawValue;

/// A JSON integer of any size, where `i64` would refuse and `f64` would round.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Integer(pub BigInt);

// Parses the raw text: serde_json without `arbitrary_precision` keeps large integers as floats, and a toolbox does not
// control that feature of its build.
impl<'de> Deserialize<'de> for Integer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let text = raw.get().trim();
        // Python has the same limit; parsing takes quadratic time.
        if text.len() > 4_300 {
            return Err(de::Error::custom("an integer of more than 4300 digits"));
        }
        text.parse().map(Self).map_err(|_| {
            let text: String = text.chars().take(40).collect();
            de::Error::custom(format!("expected an integer, got {text}"))
        })
    }
}

impl Serialize for Integer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.0.to_string())
            .map_err(ser::Error::custom)?
            .serialize(serializer)
    }
}

impl JsonSchema for Integer {
    fn schema_name() -> Cow<'static, str> {
        "Integer".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer"})
    }
}
