//! Properties of the preparation of any arguments, with the schemas that were recorded from pydantic and with schemas
//! from the input. Built for tests and fuzzing only.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a finding panics")]

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::{ArgumentSchema, OutputSchema, Unknown};

/// Takes the next byte that the input is generated from; zero after the last one.
fn next(bytes: &mut &[u8]) -> u8 {
    bytes.split_off_first().copied().unwrap_or(0)
}

struct KnownSchema {
    arguments: ArgumentSchema,
    output: OutputSchema,
}

/// The schemas of the recorded tables: models, unions, enums, recursion.
static KNOWN: LazyLock<Vec<KnownSchema>> = LazyLock::new(|| {
    let recorded: Value =
        serde_json::from_str(include_str!("../tests/data/pydantic_lax.json")).expect("recorded JSON");
    let tables = recorded["tables"].as_array().expect("tables");
    let compile = |table: &Value| KnownSchema {
        arguments: ArgumentSchema::compile(&table["schema"]).expect("a recorded schema"),
        output: OutputSchema::compile(&table["schema"]).expect("a recorded schema"),
    };
    tables.iter().map(compile).collect()
});

/// Every refusal has at least one problem, and preparing prepared arguments changes nothing. The first byte selects the
/// input: JSON text for a recorded schema, a value generated from the bytes for a recorded schema, or a schema and
/// arguments, each a line of JSON.
pub fn prepare(data: &[u8]) {
    let [how, which, rest @ ..] = data else { return };
    let schema = &KNOWN[usize::from(*which) % KNOWN.len()];
    match how % 4 {
        0 | 1 => {
            if let Ok(value) = serde_json::from_slice(rest) {
                schema.check(value);
            }
        }
        2 => schema.check(drawn(&mut &*rest, 5)),
        _ => own(rest),
    }
}

impl KnownSchema {
    fn check(&self, value: Value) {
        let args = Map::from_iter([("v".to_owned(), value)]);
        match self.arguments.prepare(&args, Unknown::Drop) {
            Ok(prepared) => {
                assert_eq!(
                    self.arguments.prepare(&prepared, Unknown::Refuse).as_ref(),
                    Ok(&prepared)
                );
                // The schema itself accepts the result of defaults and coercion.
                assert_eq!(self.output.check(&Value::Object(prepared)), Ok(()));
            }
            Err(problems) => assert!(!problems.is_empty()),
        }
    }
}

fn own(lines: &[u8]) {
    let mut lines = lines.splitn(2, |byte| *byte == b'\n');
    let (Some(schema), Some(args)) = (lines.next(), lines.next()) else {
        return;
    };
    let (Ok(schema), Ok(args)) = (serde_json::from_slice(schema), serde_json::from_slice(args)) else {
        return;
    };
    let Ok(schema) = ArgumentSchema::compile(&schema) else {
        return;
    };
    if let Err(problems) = schema.prepare(&args, Unknown::Drop) {
        assert!(!problems.is_empty());
    }
}

/// A JSON value of at most `depth` levels; every byte string gives one.
fn drawn(bytes: &mut &[u8], depth: usize) -> Value {
    const TEXTS: [&str; 20] = [
        "",
        "true",
        "off",
        "1",
        "-1",
        "1.5",
        "1e3",
        "red",
        "cat",
        "dog",
        "a",
        "x",
        "é",
        " 7 ",
        "0x10",
        "1_000",
        "nan",
        "2024-01-01",
        "99999999999999999999",
        "null",
    ];
    const KEYS: [&str; 14] = [
        "v", "x", "y", "z", "a", "b", "kind", "name", "label", "value", "children", "lives", "weight",
        "other",
    ];
    const NUMBERS: [&str; 10] = [
        "0.0",
        "-0.0",
        "1.0",
        "0.5",
        "1e20",
        "1e400",
        "9007199254740993",
        "123456789012345678901234567890",
        "-1e-400",
        "1E2",
    ];
    match next(bytes) % if depth == 0 { 6 } else { 8 } {
        0 => Value::Null,
        1 => Value::Bool(next(bytes).is_multiple_of(2)),
        2 => Value::from(i64::from(next(bytes)) - 20),
        3 => serde_json::from_str(NUMBERS[usize::from(next(bytes)) % NUMBERS.len()]).unwrap_or_default(),
        4 | 5 => Value::from(TEXTS[usize::from(next(bytes)) % TEXTS.len()]),
        6 => (0..next(bytes) % 5).map(|_| drawn(bytes, depth - 1)).collect(),
        _ => {
            let entry = |bytes: &mut &[u8]| {
                let key = KEYS[usize::from(next(bytes)) % KEYS.len()];
                (key.to_owned(), drawn(bytes, depth - 1))
            };
            Value::Object((0..next(bytes) % 5).map(|_| entry(bytes)).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn arguments() {
        replay::check("arguments", super::prepare);
    }
}
