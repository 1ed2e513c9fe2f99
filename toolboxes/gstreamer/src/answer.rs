//! The answers to the questions that only GStreamer can answer. Read [`answer`].

mod board;
mod elements;
mod encoders;

use ovos_toolbox_sdk::prelude::*;
use serde_json::value::{RawValue, to_raw_value};

pub(crate) use board::{AudioDevices, Board, VideoDevices};
pub(crate) use encoders::Encoders;

use crate::holders::Holders;
use crate::machine::Machine;
use crate::question::Question;
use crate::validate::{Kind, Validation, validate};

/// Answers a question. Blocks for milliseconds, or seconds if plugins have to be loaded or a package is looked up.
///
/// # Errors
/// Those of the tool that asks.
pub(crate) fn answer(
    machine: &Machine,
    question: Question,
    holders: &Holders,
) -> Result<Box<RawValue>, ToolError> {
    Ok(match question {
        Question::Pipeline(text) => to_raw_value(&pipeline(machine, &text, holders)),
        Question::Element(name) => to_raw_value(&*elements::one(machine, &name)?),
        Question::Elements(search) => to_raw_value(&elements::search(machine, search)?),
        Question::Encoders { encoder, media } => to_raw_value(&encoders::find(machine, &encoder, media)?),
        Question::Board => to_raw_value(&board::sum_up(machine, holders)),
        Question::Video => to_raw_value(&board::video(machine, holders)),
        Question::Audio => to_raw_value(&board::audio(machine, holders)),
        Question::Devices => to_raw_value(&Value::Null),
    }?)
}

fn pipeline(machine: &Machine, text: &str, holders: &Holders) -> Validation {
    let found = validate(machine, text, holders);
    if found.error_kind != Some(Kind::NoElement) || machine.suggestions.is_fresh() {
        return found;
    }
    machine.suggestions.refresh();
    validate(machine, text, holders)
}
