//! Limits on the arguments of a client, checked before any other work on them.
//!
//! Every limit has an error text that says what to change. The limit on the number of validation steps needs an
//! explanation: a validator tries the alternatives of a union one after another, so a union of two objects that both
//! contain the union again costs 2^depth. Such schemas are legal; only arguments that would take seconds are refused.
//! An error text needs the errors of every alternative (tags do not help there), so it has a limit of its own.

use serde_json::{Map, Value};

use super::problem::Problem;
use super::scalar::{MAX_DIGITS, is_integer_text, tidy};
use super::shorten::{shorten, shorten_text};
use super::tree::Tree;
use super::validate::Words;

/// The largest number of levels of nesting, which is the limit of `serde_json` itself: deeper values would need a
/// deeper stack everywhere.
const MAX_DEPTH: usize = 128;

/// The largest number of validation steps that one call may cost in the worst case, about 0.1 s.
const MAX_STEPS: f64 = 4e6;

/// The largest number of steps for the error text of a refusal. Each step may copy the refused value.
const MAX_WORDS: f64 = 2e5;

#[derive(Debug)]
pub(super) struct Bounds {
    /// The number of ways to look at a part of a value, by the depth of the value: for validation and for error texts.
    to_check: Vec<f64>,
    to_word: Vec<f64>,
}

impl Bounds {
    pub(super) fn of(tree: &Tree) -> Self {
        Self {
            to_check: tree.ways_by_depth(MAX_DEPTH, true),
            to_word: tree.ways_by_depth(MAX_DEPTH, false),
        }
    }

    pub(super) fn survey(&self, value: &Value) -> Result<Words, Problem> {
        let mut survey = Survey::default();
        let outcome = survey.value(value, 0);
        self.finish(&survey, outcome)
    }

    pub(super) fn survey_map(&self, map: &Map<String, Value>) -> Result<Words, Problem> {
        let mut survey = Survey::default();
        let outcome = survey.map(map, 0);
        self.finish(&survey, outcome)
    }

    fn finish(&self, survey: &Survey, outcome: Result<(), TooLarge>) -> Result<Words, Problem> {
        outcome.map_err(TooLarge::into_problem)?;
        let (depth, count) = (survey.depth, survey.count as f64);
        let ways = |by_depth: &[f64]| by_depth.get(depth).copied().unwrap_or(f64::INFINITY);
        let to_check = ways(&self.to_check);
        if to_check > 1.0 && to_check * count > MAX_STEPS {
            let message = format!(
                "too deeply nested for this recursive schema ({depth} levels, {count} values), expected less nesting"
            );
            return Err(Problem {
                path: String::new(),
                message,
            });
        }
        let to_word = ways(&self.to_word);
        // The errors of alternatives own copies of the refused value, one for each level.
        let copies = if depth > 16 { count * depth as f64 } else { 0.0 };
        let brief = (to_word > 1.0 && to_word * count > MAX_WORDS) || copies > MAX_WORDS;
        Ok(if brief { Words::Brief } else { Words::Full })
    }
}

/// Checks the limits of nesting and of numbers, which hold for every schema.
pub(super) fn survey(map: &Map<String, Value>) -> Result<(), Problem> {
    Survey::default().map(map, 0).map_err(TooLarge::into_problem)
}

#[derive(Default)]
struct Survey {
    depth: usize,
    count: usize,
}

struct TooLarge {
    /// The segments of the path, innermost first.
    path: Vec<String>,
    message: String,
}

impl Survey {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), TooLarge> {
        self.count += 1;
        self.depth = self.depth.max(depth);
        match value {
            Value::Array(_) | Value::Object(_) if depth >= MAX_DEPTH => Err(TooLarge {
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
                let what = if is_integer_text(number.as_str()) {
                    format!("expected at most {} digits", MAX_DIGITS)
                } else {
                    "expected a finite number".to_owned()
                };
                Err(TooLarge {
                    path: Vec::new(),
                    message: format!("{what}, got {}", shorten(value)),
                })
            }
            _ => Ok(()),
        }
    }

    fn map(&mut self, map: &Map<String, Value>, depth: usize) -> Result<(), TooLarge> {
        for (key, value) in map {
            self.value(value, depth + 1)
                .map_err(|found| found.under(|| format!(".{key}")))?;
        }
        Ok(())
    }
}

impl TooLarge {
    fn into_problem(mut self) -> Problem {
        self.path.reverse();
        Problem {
            path: self.path.concat().trim_start_matches('.').to_owned(),
            message: self.message,
        }
    }

    fn under(mut self, segment: impl FnOnce() -> String) -> Self {
        // 16 segments are enough to find the place; 128 keys of any length would be expensive to copy.
        if self.path.len() < 16 {
            self.path.push(shorten_text(&segment(), 80));
        }
        self
    }
}
