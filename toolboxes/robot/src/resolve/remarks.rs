//! What a result says of the difference between an action and the request.

use ovos_toolbox_sdk::wire::Object;
use serde_json::json;

use crate::adapter::ActionOutput;

/// How an action differs from the request.
#[derive(Debug, Default)]
pub struct Remarks {
    notes: Vec<String>,
    clamped: Object,
}

impl Remarks {
    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Notes that `used` was taken for `asked`, both in the unit of the argument.
    pub(super) fn clamp(&mut self, argument: &str, asked: f64, used: f64) {
        let numbers = json!({"asked": hundredth(asked), "used": hundredth(used)});
        self.clamped.insert(argument.to_string(), numbers);
    }

    /// Adds the remarks to the output of the action.
    #[must_use]
    pub fn on(self, mut output: ActionOutput) -> ActionOutput {
        output.notes.extend(self.notes);
        match self.clamped.is_empty() {
            true => output,
            false => output.with("clamped", self.clamped),
        }
    }
}

fn hundredth(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
