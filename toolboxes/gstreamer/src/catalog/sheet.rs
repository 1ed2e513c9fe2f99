//! An element's data sheet, together with its JSON text.
//!
//! The text is written once: it changes only with the registry, and writing it takes longer than the rest of an answer.
//! Read [`Sheet`].

use std::borrow::Cow;

use ovos_toolbox_sdk::prelude::*;
use schemars::{Schema, SchemaGenerator};
use serde::Serializer;
use serde_json::value::{RawValue, to_raw_value};

use super::element::ElementInfo;

/// The data of an element. Its JSON is that of [`ElementInfo`].
#[derive(Debug)]
pub(crate) struct Sheet {
    pub(super) info: ElementInfo,
    text: Box<RawValue>,
}

impl Sheet {
    /// Serializes the text.
    ///
    /// # Errors
    /// The data cannot be written as JSON.
    pub(super) fn of(info: ElementInfo) -> serde_json::Result<Self> {
        let text = to_raw_value(&info)?;
        Ok(Self { info, text })
    }
}

impl Serialize for Sheet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl JsonSchema for Sheet {
    fn inline_schema() -> bool {
        ElementInfo::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        ElementInfo::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        ElementInfo::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        ElementInfo::json_schema(generator)
    }
}
