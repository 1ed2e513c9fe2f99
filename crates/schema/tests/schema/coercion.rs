//! Promise: arguments are coerced as in pydantic's lax mode.
//!
//! `tests/data/pydantic_lax.json` has the answers of pydantic itself (`tests/python/pydantic_lax.py` writes it). Every
//! difference is in `DELIBERATE`, with its reason; an entry that is no longer a difference fails the test.

use std::sync::LazyLock;

use ovos_tools_schema::{ArgumentSchema, Unknown};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Deserialize)]
struct Recorded {
    tables: Vec<Table>,
}

#[derive(Deserialize)]
struct Table {
    name: String,
    schema: Value,
    /// Input text (`None`: the argument is missing) and pydantic's output text (`None`: refused).
    rows: Vec<(Option<String>, Option<String>)>,
}

/// (table, input or `*` for every input of the table, reason of the difference).
const DELIBERATE: &[(&str, &str, &str)] = &[
    (
        "datetime",
        "*",
        "`format` is not asserted and text is left as it is: the toolbox parses it, the schema says string",
    ),
    (
        "literal_int",
        "*",
        "the schema of Literal[1, 2] is that of an IntEnum, which takes \"1\": we take it for both",
    ),
];

#[test]
fn agrees_with_pydantic() {
    let recorded: Recorded = serde_json::from_str(include_str!("../data/pydantic_lax.json")).unwrap();
    let mut used = vec![false; DELIBERATE.len()];
    let mut failures = Vec::new();
    let mut compared = 0;
    for table in &recorded.tables {
        let schema =
            ArgumentSchema::compile(&table.schema).unwrap_or_else(|error| panic!("{}: {error}", table.name));
        for (input, output) in &table.rows {
            compared += 1;
            let ours = schema.prepare(&arguments(input.as_deref()), Unknown::Drop);
            if let Ok(prepared) = &ours {
                assert_eq!(
                    schema.prepare(prepared, Unknown::Refuse).as_ref(),
                    Ok(prepared),
                    "{}: prepared twice",
                    table.name
                );
            }
            if agrees(ours.as_ref().ok(), output.as_deref()) {
                continue;
            }
            let row = DELIBERATE.iter().position(|(name, text, _)| {
                *name == table.name && (*text == "*" || Some(*text) == input.as_deref())
            });
            match row {
                Some(index) => used[index] = true,
                None => failures.push(format!(
                    "{} {}: pydantic {}, ours {}",
                    table.name,
                    input.as_deref().unwrap_or("(missing)"),
                    output.as_deref().unwrap_or("refused"),
                    ours.map_or_else(
                        |problems| format!("refused: {}", problems[0]),
                        |map| Value::Object(map).to_string()
                    )
                )),
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {compared} differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
    let stale: Vec<_> = DELIBERATE
        .iter()
        .zip(used)
        .filter(|(_, used)| !used)
        .map(|(entry, _)| entry)
        .collect();
    assert!(
        stale.is_empty(),
        "no longer different, remove from DELIBERATE: {stale:?}"
    );
    assert!(
        compared > 3000,
        "the recorded table is cut short: {compared} rows"
    );
}

fn arguments(input: Option<&str>) -> Map<String, Value> {
    let mut args = Map::new();
    if let Some(input) = input {
        args.insert("v".to_owned(), serde_json::from_str(input).unwrap());
        args.insert("ignored".to_owned(), json!(1));
    }
    args
}

/// Whether both agree. Pydantic accepts `nan` and `inf`, which are not JSON and are refused here: that counts as
/// agreement.
fn agrees(ours: Option<&Map<String, Value>>, pydantic: Option<&str>) -> bool {
    match (ours, pydantic) {
        (None, None | Some("not finite")) => true,
        (Some(ours), Some(text)) => {
            serde_json::from_str::<Value>(text).is_ok_and(|value| equal(&Value::Object(ours.clone()), &value))
        }
        _ => false,
    }
}

/// Equality in which an integer equals only an integer, and a float only a float.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => {
            let is_float = |text: &str| text.contains(['.', 'e', 'E']);
            match (is_float(a.as_str()), is_float(b.as_str())) {
                (false, false) => a.as_str() == b.as_str(),
                (true, true) => a.as_str().parse::<f64>().unwrap() == b.as_str().parse::<f64>().unwrap(),
                _ => false,
            }
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| equal(a, b)))
        }
        _ => left == right,
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof!["[-+]?[0-9_]{0,4}(\\.[0-9]{0,2})?", "true|off|red|cat|a", ".{0,3}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-20_i64..20).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let key = "x|y|z|a|b|kind|name|label|value|children|lives|weight";
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((key, inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any input: no panic, every refusal has at least one problem, and preparing prepared arguments changes nothing.
    #[test]
    fn any_arguments_are_prepared_or_refused(value in any_value()) {
        static SCHEMAS: LazyLock<Vec<ArgumentSchema>> = LazyLock::new(|| {
            let recorded: Recorded = serde_json::from_str(include_str!("../data/pydantic_lax.json")).unwrap();
            recorded.tables.iter().map(|table| ArgumentSchema::compile(&table.schema).unwrap()).collect()
        });
        let args = Map::from_iter([("v".to_owned(), value)]);
        for schema in SCHEMAS.iter() {
            match schema.prepare(&args, Unknown::Drop) {
                Ok(prepared) => prop_assert_eq!(schema.prepare(&prepared, Unknown::Refuse), Ok(prepared)),
                Err(problems) => prop_assert!(!problems.is_empty()),
            }
        }
    }
}
