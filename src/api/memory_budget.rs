//! How much memory may be used for values that are kept.

use ovos_toolbox_wire::Object;
use serde_json::Value;

/// The bytes counted for a value in addition to its text.
const VALUE: usize = 32;

/// How many bytes of memory are left for values that are kept.
#[derive(Debug)]
pub(super) struct MemoryBudget(usize);

impl MemoryBudget {
    /// A room of so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Self(bytes)
    }

    /// Subtracts the size of a value, or nothing if the value does not fit.
    pub(super) fn takes_value(&mut self, value: &Value) -> bool {
        self.takes(|room| fits(value, room))
    }

    /// Adds room that was reserved.
    pub(super) fn add(&mut self, bytes: usize) {
        self.0 += bytes;
    }

    /// Subtracts so many bytes, or nothing if they do not fit.
    pub(super) fn takes_bytes(&mut self, bytes: usize) -> bool {
        self.takes(|room| take(bytes, room))
    }

    /// Subtracts the size of a part, or nothing if the part does not fit.
    pub(super) fn takes(&mut self, fits: impl FnOnce(&mut usize) -> bool) -> bool {
        let mut left = self.0;
        let takes = fits(&mut left);
        if takes {
            self.0 = left;
        }
        takes
    }

    /// Returns the part if it fits; otherwise adds its name to `left_out`.
    pub(super) fn keep<'a>(
        &mut self,
        name: &'static str,
        part: &'a Value,
        left_out: &mut Vec<&'static str>,
    ) -> Option<&'a Value> {
        let fitting = self.takes(|room| fits(part, room)).then_some(part);
        if fitting.is_none() {
            left_out.push(name);
        }
        fitting
    }
}

/// Subtracts the size of a value; false, without a look at the rest, as soon as there is no room left.
pub(super) fn fits(value: &Value, room: &mut usize) -> bool {
    let own = match value {
        Value::String(text) => text.len(),
        Value::Number(number) => number.as_str().len(),
        _ => 0,
    };
    take(VALUE + own, room)
        && match value {
            Value::Array(items) => items.iter().all(|item| fits(item, room)),
            Value::Object(entries) => entries_fit(entries, room),
            _ => true,
        }
}

pub(super) fn entries_fit(entries: &Object, room: &mut usize) -> bool {
    entries
        .iter()
        .all(|(key, value)| take(key.len(), room) && fits(value, room))
}

fn take(bytes: usize, room: &mut usize) -> bool {
    match room.checked_sub(bytes) {
        Some(left) => {
            *room = left;
            true
        }
        None => false,
    }
}
