//! An element's data sheet: what is known about it, and the same as JSON text.
//!
//! The text is written once: nothing on the sheet changes until the registry does, and writing it takes longer than
//! everything else about an answer. Read [`Sheet`].

use std::borrow::Cow;

use ovos_toolbox_sdk::prelude::*;
use schemars::{Schema, SchemaGenerator};
use serde::Serializer;
use serde_json::value::{RawValue, to_raw_value};

use super::element::ElementInfo;

/// All about an element. As JSON it is its [`ElementInfo`].
#[derive(Debug)]
pub(crate) struct Sheet {
    pub(super) info: ElementInfo,
    text: Box<RawValue>,
}

impl Sheet {
    /// Writes the text.
    ///
    /// # Errors
    /// What is known cannot be written as JSON.
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
