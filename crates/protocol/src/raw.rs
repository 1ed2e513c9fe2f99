//! JSON that is passed on unread. Read [`Raw`].

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// The JSON text of a `T`, as it was written. It is known to be JSON, and not yet known to be a `T`.
pub struct Raw<T> {
    json: Box<RawValue>,
    of: PhantomData<fn() -> T>,
}

impl<T> Raw<T> {
    fn new(json: Box<RawValue>) -> Self {
        Self {
            json,
            of: PhantomData,
        }
    }

    /// Creates the value from a text that should be the JSON of a `T`.
    ///
    /// # Errors
    /// The text is not JSON.
    pub fn from_text(text: String) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text).map(Self::new)
    }

    /// The JSON text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.json.get()
    }

    /// The JSON text, without a copy.
    #[must_use]
    pub fn into_text(self) -> String {
        Box::<str>::from(self.json).into()
    }
}

impl<T: Serialize> Raw<T> {
    /// Writes a value. One that cannot be written is `null`; structs, and maps whose keys are strings, always can.
    #[must_use]
    pub fn of(value: &T) -> Self {
        Self::new(to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }
}

impl<T> Clone for Raw<T> {
    fn clone(&self) -> Self {
        Self::new(self.json.clone())
    }
}

impl<T> fmt::Debug for Raw<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl<T> Serialize for Raw<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(to)
    }
}

impl<'de, T> Deserialize<'de> for Raw<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(from).map(Self::new)
    }
}

impl<T: JsonSchema> JsonSchema for Raw<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
