//! Limits on what a client may send, checked before any other work is done on it.
//!
//! Every limit is an error text that says what to change. The one that needs explaining is [`Bounds::fan`]: a
//! validator tries the alternatives of a union one after another, so a union of two objects that both contain
//! the union again costs 2^depth. Such schemas are legal; only arguments that would take seconds are refused.

use serde_json::{Map, Value};

use super::scalar::tidy;
use super::tree::Tree;
use super::{Problem, shorten};

/// Levels of nesting, the limit of `serde_json` itself: deeper values would need a deeper stack everywhere.
const MAX_DEPTH: usize = 128;

/// Validation steps one call may cost in the worst case, about 0.1 s.
const MAX_STEPS: f64 = 4e6;

#[derive(Debug)]
pub(super) struct Bounds {
    /// Largest number of alternatives of one union that lead back to it and cannot be told apart at once.
    fan: usize,
}

impl Bounds {
    pub(super) fn of(tree: &Tree) -> Self {
        Self {
            fan: tree.recursive_fan(),
        }
    }

    pub(super) fn survey(&self, value: &Value) -> Result<(), Problem> {
        let mut survey = Survey::default();
        let outcome = survey.value(value, 0);
        self.finish(&survey, outcome)
    }

    pub(super) fn survey_map(&self, map: &Map<String, Value>) -> Result<(), Problem> {
        let mut survey = Survey::default();
        let outcome = survey.map(map, 0);
        self.finish(&survey, outcome)
    }

    fn finish(&self, survey: &Survey, outcome: Result<(), Found>) -> Result<(), Problem> {
        if let Err(mut found) = outcome {
            found.path.reverse();
            return Err(Problem {
                path: found.path.concat().trim_start_matches('.').to_owned(),
                message: found.message,
            });
        }
        if self.fan < 2 {
            return Ok(());
        }
        let depth = i32::try_from(survey.depth).unwrap_or(i32::MAX);
        if (self.fan as f64).powi(depth) * survey.count as f64 > MAX_STEPS {
            return Err(Problem {
                path: String::new(),
                message: format!(
                    "nested {depth} levels deep with {} values: too much for a schema whose alternatives contain \
                     themselves, expected less nesting",
                    survey.count
                ),
            });
        }
        Ok(())
    }
}

#[derive(Default)]
struct Survey {
    depth: usize,
    count: usize,
}

struct Found {
    /// Innermost first.
    path: Vec<String>,
    message: String,
}

impl Survey {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Found> {
        self.count += 1;
        self.depth = self.depth.max(depth);
        match value {
            Value::Array(_) | Value::Object(_) if depth >= MAX_DEPTH => Err(Found {
                path: Vec::new(),
                message: format!("expected at most {MAX_DEPTH} levels of nesting"),
            }),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.value(item, depth + 1)
                        .map_err(|found| found.under(|| format!("[{index}]")))?;
                }
                Ok(())
            }
            Value::Object(map) => self.map(map, depth),
            Value::Number(number) if tidy(number).is_none() => {
                let what = if super::scalar::is_integer_text(number.as_str()) {
                    format!("expected at most {} digits", super::scalar::MAX_DIGITS)
                } else {
                    "expected a finite number".to_owned()
                };
                Err(Found {
                    path: Vec::new(),
                    message: format!("{what}, got {}", shorten(value)),
                })
            }
            _ => Ok(()),
        }
    }

    fn map(&mut self, map: &Map<String, Value>, depth: usize) -> Result<(), Found> {
        for (key, value) in map {
            self.value(value, depth + 1)
                .map_err(|found| found.under(|| format!(".{key}")))?;
        }
        Ok(())
    }
}

impl Found {
    fn under(mut self, segment: impl FnOnce() -> String) -> Self {
        // Enough to find the place; 128 keys of a hostile length are not worth copying.
        if self.path.len() < 16 {
            self.path.push(super::shorten::shorten_text(&segment(), 80));
        }
        self
    }
}
