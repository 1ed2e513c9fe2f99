//! The same calls as to OVOS's own math toolbox give the same answers.
//!
//! tests/data/reference.json holds that toolbox's answers; tests/data/reference.py generates it.

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::{Harness, built};

fn open() -> Harness {
    Harness::load(&built("math"), json!({})).unwrap()
}

/// Ours is exact where theirs sums or rounds floats: units by definition, sums without rounding, roots to the last bit.
fn tolerance(tool: &str, args: &Value) -> f64 {
    match tool {
        "unit_convert" => 1e-5,
        "solve_equation" => 1e-9,
        "statistics_summary" => {
            let magnitudes = args["numbers"]
                .as_array()
                .unwrap()
                .iter()
                .map(|number| number.as_f64().unwrap().abs());
            1e-12 * magnitudes.fold(1.0, f64::max)
        }
        _ => 1e-12,
    }
}

fn same(ours: &Value, theirs: &Value, tolerance: f64) -> bool {
    match (ours, theirs) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= tolerance * b.abs().max(1.0)
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b, tolerance))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && b.iter().all(|(key, b)| {
                    a.get(key).is_some_and(|a| match (key.as_str(), a, b) {
                        // Error messages may differ.
                        ("error", Value::String(a), Value::String(b)) => !a.is_empty() && !b.is_empty(),
                        _ => same(a, b, tolerance),
                    })
                })
        }
        (a, b) => a == b,
    }
}

#[test]
fn answers_are_those_of_the_python_toolbox() {
    let rows: Vec<Value> = serde_json::from_str(include_str!("../data/reference.json")).unwrap();
    assert!(rows.len() > 200);
    let math = open();
    let mut wrong = Vec::new();
    for row in &rows {
        let (tool, args, theirs) = (row["tool"].as_str().unwrap(), &row["args"], &row["output"]);
        let ours = math.call(tool, args.clone());
        let agrees = match &ours {
            Ok(output) => same(output, theirs, tolerance(tool, args)),
            Err(failure) => theirs.is_null() && !failure.message.is_empty(),
        };
        if !agrees {
            wrong.push(format!("{tool} {args}\n  ours   {ours:?}\n  theirs {theirs}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        rows.len(),
        wrong.join("\n")
    );
}

#[test]
fn names_are_the_published_ones() {
    let math = open();
    for (tool, arguments, results) in [
        (
            "evaluate_expression",
            vec!["expression"],
            vec!["result", "expression", "error"],
        ),
        (
            "unit_convert",
            vec!["value", "from_unit", "to_unit"],
            vec!["result", "from_unit", "to_unit", "category", "error"],
        ),
        (
            "statistics_summary",
            vec!["numbers"],
            vec![
                "count", "mean", "median", "stdev", "minimum", "maximum", "total", "error",
            ],
        ),
        (
            "solve_equation",
            vec!["equation"],
            vec!["solutions", "equation", "method", "error"],
        ),
        ("add", vec!["a", "b"], vec!["result"]),
    ] {
        let definition = math.tool(tool);
        let keys = |schema: &Value| -> Vec<String> {
            schema["properties"]
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect()
        };
        assert_eq!(keys(&definition.argument_schema), arguments, "{tool}");
        assert_eq!(keys(&definition.output_schema), results, "{tool}");
        assert_eq!(definition.effect, Effect::Read, "{tool}");
        assert!(!definition.description.is_empty(), "{tool}");
    }
}
