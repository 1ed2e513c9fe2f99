//! Promise: a refusal names the argument, the value and what is accepted; a bad schema is refused with its place; and
//! no schema or input makes the service slow or ends it.

mod native;

use ovos_tools_schema::{ArgumentSchema, OutputSchema, Problem, Unknown};
use serde_json::{Map, Value, json};

fn prepared(schema: &Value, args: &str, unknown: Unknown) -> Result<Value, Vec<String>> {
    let args: Map<String, Value> = serde_json::from_str(args).unwrap();
    let schema = ArgumentSchema::compile(schema).unwrap();
    schema
        .prepare(&args, unknown)
        .map(Value::Object)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

fn check(schema: &Value, args: &str, expected: Result<&str, &str>) {
    let found = prepared(schema, args, Unknown::Drop)
        .map(|value| value.to_string())
        .map_err(|problems| problems.join("; "));
    assert_eq!(
        found.as_deref().map_err(String::as_str),
        expected,
        "{args} with {schema}"
    );
}

#[test]
fn problems_name_argument_value_and_what_is_accepted() {
    let schema = json!({"type": "object", "required": ["a", "b"], "properties": {
        "a": {"type": "integer"}, "b": {"type": "integer", "minimum": 1, "maximum": 10},
        "c": {"enum": ["left", "right"]}, "d": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "e": {"type": "array", "items": {"$ref": "#/$defs/P"}, "maxItems": 2},
        "f": {"type": "string", "pattern": "^a+$", "minLength": 2},
        "g": {"anyOf": [{"$ref": "#/$defs/P"}, {"type": "null"}]},
    }, "$defs": {"P": {"type": "object", "required": ["x"], "properties": {"x": {"type": "integer"}}}}});
    for (args, text) in [
        (r#"{"a": "abc", "b": 1}"#, r#"a: expected integer, got "abc""#),
        (r#"{"a": 1}"#, "b: required"),
        (r#"{}"#, "a: required; b: required"),
        (
            r#"{"a": 1, "b": 11}"#,
            "b: expected integer at least 1 and at most 10, got 11",
        ),
        (
            r#"{"a": 1, "b": "x"}"#,
            r#"b: expected integer at least 1 and at most 10, got "x""#,
        ),
        (
            r#"{"a": 1, "b": 1, "c": "up"}"#,
            r#"c: expected one of "left", "right", got "up""#,
        ),
        (
            r#"{"a": 1, "b": 1, "d": "nan"}"#,
            r#"d: expected number or null, got "nan""#,
        ),
        (
            r#"{"a": 1, "b": 1, "d": 1e999}"#,
            "d: expected a finite number, got 1e+999",
        ),
        (
            r#"{"a": 1e20, "b": 1}"#,
            "a: expected integer, got 1e+20: write an integer of this size with all digits, without fraction or exponent",
        ),
        (
            r#"{"a": 1, "b": 1, "e": [{"x": 1}, {"x": "?"}]}"#,
            r#"e[1].x: expected integer, got "?""#,
        ),
        (r#"{"a": 1, "b": 1, "e": [{}]}"#, "e[0].x: required"),
        (
            r#"{"a": 1, "b": 1, "e": [{"x":1},{"x":1},{"x":1}]}"#,
            "e: expected at most 2 items, got 3",
        ),
        (
            r#"{"a": 1, "b": 1, "f": "b"}"#,
            r#"f: expected at least 2 characters, got 1: "b"; f: expected text that matches /^a+$/, got "b""#,
        ),
        (
            r#"{"a": 1, "b": 1, "g": {"x": null}}"#,
            "g.x: expected integer, got null",
        ),
        (r#"{"a": 1, "b": 1, "g": {}}"#, "g.x: required"),
        (r#"{"a": 1, "b": 1, "g": 5}"#, "g: expected object or null, got 5"),
    ] {
        check(&schema, args, Err(text));
    }
    let long = format!(r#"{{"a": "{}", "b": 1}}"#, "x".repeat(1_000_000));
    assert!(prepared(&schema, &long, Unknown::Drop).unwrap_err()[0].len() < 120);
}

#[test]
fn defaults_extras_and_parts() {
    let pet = json!({"properties": {"pet": {"oneOf": [
        {"type": "object", "properties": {"Cat": {"type": "integer"}}, "required": ["Cat"], "additionalProperties": false},
        {"type": "object", "properties": {"Dog": {"type": "number"}}, "required": ["Dog"], "additionalProperties": false},
    ]}}});
    let conditional = json!({"type": "object", "properties": {"mode": {"type": "string"}},
        "if": {"properties": {"mode": {"const": "fast"}}}, "then": {"properties": {"speed": {"type": "integer"}}}});
    for (schema, args, expected) in [
        (
            &json!({"type": "object", "properties": {"a": {"type": "integer", "default": 3}}, "required": ["a"]}),
            "{}",
            Ok(r#"{"a":3}"#),
        ),
        (
            &json!({"properties": {}, "additionalProperties": false}),
            r#"{"x": 1}"#,
            Ok("{}"),
        ),
        (
            &json!({"properties": {}, "additionalProperties": true}),
            r#"{"x": 1}"#,
            Ok(r#"{"x":1}"#),
        ),
        (
            &json!({"additionalProperties": {"type": "integer"}}),
            r#"{"x": "1"}"#,
            Ok(r#"{"x":1}"#),
        ),
        (
            &json!({"additionalProperties": {"type": "integer"}}),
            r#"{"x": "y"}"#,
            Err(r#"x: expected integer, got "y""#),
        ),
        (&json!({}), r#"{"x": 1}"#, Ok("{}")),
        (
            &json!({"properties": {"free": {"type": "object"}}}),
            r#"{"free": {"x": "1"}}"#,
            Ok(r#"{"free":{"x":"1"}}"#),
        ),
        (
            &json!({"required": ["a"], "properties": {}}),
            r#"{"a": "1", "b": 1}"#,
            Ok(r#"{"a":"1"}"#),
        ),
        (
            &json!({"allOf": [{"properties": {"a": {"type": "integer"}}}, {"properties": {"b": {"type": "integer", "default": 2}}}]}),
            r#"{"a": "1", "c": 1}"#,
            Ok(r#"{"a":1,"b":2}"#),
        ),
        (
            &json!({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"a": {"type": "integer"}}}}}),
            r#"{"a": "1", "c": 1}"#,
            Ok(r#"{"a":1}"#),
        ),
        (
            &json!({"anyOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"properties": {"b": {"type": "integer"}}, "required": ["b"]}]}),
            r#"{"b": "1", "c": 1}"#,
            Ok(r#"{"b":1}"#),
        ),
        (&pet, r#"{"pet": {"Dog": "1"}}"#, Ok(r#"{"pet":{"Dog":1.0}}"#)),
        (
            &pet,
            r#"{"pet": {"Dog": 1, "Cat": 1}}"#,
            Err("pet: expected an object without Dog or an object without Cat, got {\"Dog\":1,\"Cat\":1}"),
        ),
        (
            &conditional,
            r#"{"mode": "fast", "speed": "3", "x": 1}"#,
            Ok(r#"{"mode":"fast","speed":3}"#),
        ),
        (
            &json!({"properties": {"a": {"type": ["integer", "null"]}}}),
            r#"{"a": "7"}"#,
            Ok(r#"{"a":7}"#),
        ),
        (
            &json!({"properties": {"a": {"type": "integer"}}}),
            r#"{"a": 123456789012345678901234567890}"#,
            Ok(r#"{"a":123456789012345678901234567890}"#),
        ),
        (
            &json!({"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"items": [{"type": "integer"}, {"type": "boolean"}]}}}),
            r#"{"a": ["1", "yes", "x"]}"#,
            Ok(r#"{"a":[1,true,"x"]}"#),
        ),
    ] {
        check(schema, args, expected);
    }
}

#[test]
fn bad_schemas_are_refused_with_a_place() {
    for (schema, text) in [
        (json!([]), "schema: expected a JSON object, got []"),
        (
            json!({"type": "string"}),
            r#"schema at #/type: arguments are an object, so `type` must be "object", got "string""#,
        ),
        (
            json!({"properties": {"a": {"type": "int"}}}),
            r#"schema at #/properties/a/type: expected one of "array", "boolean""#,
        ),
        (
            json!({"properties": {"a": {"minimum": "1"}}}),
            r#"schema at #/properties/a/minimum: expected number, got "1""#,
        ),
        (
            json!({"properties": {"a": {"$ref": "#/$defs/Nope"}}}),
            "cannot be resolved, expected",
        ),
        (
            json!({"properties": {"a": {"$ref": "https://example.org/x"}}}),
            "cannot be resolved, expected",
        ),
        (
            json!({"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]}}}),
            "refers to itself",
        ),
        (
            json!({"properties": {"a": {"$dynamicRef": "#x"}}}),
            "#/properties/a: `$dynamicRef` is not supported",
        ),
        (json!({"properties": {"a": {"pattern": "(?=x)"}}}), "bounded time"),
        (
            json!({"properties": {"a": {"pattern": "((a{1000}){1000}){1000}"}}}),
            "bounded time",
        ),
        (
            json!({"properties": {"a": {"type": "integer", "default": "x"}}}),
            r##"schema at #/properties/a/default: the default does not fit its own schema: expected integer, got "x""##,
        ),
    ] {
        let found = ArgumentSchema::compile(&schema).unwrap_err().to_string();
        assert!(found.contains(text), "{schema}: {found}");
    }
}

#[test]
fn unknown_arguments_are_refused_where_the_schema_is_closed() {
    let pose =
        json!({"type": "object", "properties": {"x": {"type": "number"}}, "additionalProperties": false});
    let closed =
        json!({"properties": {"speed": {"type": "number"}, "pose": pose}, "additionalProperties": false});
    for (schema, args, expected) in [
        (
            &closed,
            r#"{"speed": 1, "pose": {"x": 2}}"#,
            Ok(r#"{"speed":1.0,"pose":{"x":2.0}}"#),
        ),
        (
            &closed,
            r#"{"sped": 1}"#,
            Err("unknown argument 'sped' (did you mean 'speed'?); known: speed, pose"),
        ),
        (
            &closed,
            r#"{"a": 1, "b": 2}"#,
            Err("unknown arguments 'a', 'b'; known: speed, pose"),
        ),
        (
            &closed,
            r#"{"pose": {"z": 1}}"#,
            Err("pose: unknown argument 'z'; known: x"),
        ),
        (
            &json!({"properties": {}, "additionalProperties": false}),
            r#"{"a": 1}"#,
            Err("unknown argument 'a'; known: none"),
        ),
        (
            &json!({"properties": {"speed": {}}}),
            r#"{"speed": 1, "b": 2}"#,
            Ok(r#"{"speed":1}"#),
        ),
    ] {
        let found = |unknown| {
            let found = prepared(schema, args, unknown);
            found
                .map(|value| value.to_string())
                .map_err(|problems| problems.join("; "))
        };
        let refused = found(Unknown::Refuse);
        assert_eq!(
            refused.as_deref().map_err(String::as_str),
            expected,
            "{args} with {schema}"
        );
        assert!(found(Unknown::Drop).is_ok(), "{args} with {schema}");
    }
}

#[test]
fn outputs_are_checked_and_not_changed() {
    let schema = OutputSchema::compile(
        &json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}),
    )
    .unwrap();
    assert_eq!(schema.check(&json!({"n": 1, "more": 2})), Ok(()));
    let problems = schema.check(&json!({"n": "1"})).unwrap_err();
    assert_eq!(
        problems,
        [Problem {
            path: "n".to_owned(),
            message: "expected integer, got \"1\"".to_owned()
        }]
    );
}

/// Inputs that are made to be slow. The deadline is far above the time they take, and far below the time they would
/// take without limits.
#[test]
fn hostile_arguments_cost_little() {
    let tree = |choices: Value| json!({"properties": {"v": {"$ref": "#/$defs/T"}}, "$defs": {"T": {"anyOf": choices}}});
    let node = |extra: &str| json!({"type": "object", "properties": {"n": {"$ref": "#/$defs/T"}, extra: {"type": "integer"}}, "required": [extra]});
    let nested = |depth: usize, leaf: &str| {
        format!(
            r#"{{"v": {}{leaf}{}}}"#,
            r#"{"b": 1, "n": "#.repeat(depth),
            "}".repeat(depth)
        )
    };
    let many = |item: &str| format!(r#"{{"v": [{}]}}"#, vec![item; 100_000].join(","));
    let list = json!({"properties": {"v": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}}}});
    let set = json!({"properties": {"v": {"type": "array", "uniqueItems": true}}});
    let distinct = format!(
        r#"{{"v": [{}]}}"#,
        (0..100_000)
            .map(|n| format!("[{n}]"))
            .collect::<Vec<_>>()
            .join(",")
    );
    let any = json!({"properties": {"v": {}}});
    let tagged = |tag: &str| json!({"type": "object", "properties": {"b": {"const": tag}, "n": {"$ref": "#/$defs/T"}}, "required": ["b"]});
    let three_tags = || tree(json!([tagged("1"), tagged("2"), tagged("3"),]));
    let tagged_args = |leaf: &str| nested(110, leaf).replace(r#""b": 1"#, r#""b": "2""#);
    // Not recursive, but every level doubles the number of ways.
    let shared = {
        let mut schemas = Map::new();
        for level in 0..40 {
            let next =
                json!({"type": "object", "properties": {"n": {"$ref": format!("#/$defs/T{}", level + 1)}}});
            schemas.insert(format!("T{level}"), json!({"anyOf": [next, next]}));
        }
        schemas.insert("T40".to_owned(), json!({"type": "integer"}));
        json!({"properties": {"v": {"$ref": "#/$defs/T0"}}, "$defs": schemas})
    };
    for (name, schema, args, accepted) in [
        (
            "ambiguous tree",
            tree(json!([node("a"), node("b"), {"type": "integer"}])),
            nested(100, "1"),
            false,
        ),
        (
            "ambiguous tree with a bad leaf",
            tree(json!([node("b"), node("b"), {"type": "integer"}])),
            nested(100, r#""x""#),
            false,
        ),
        (
            "shallow ambiguous tree",
            tree(json!([node("a"), node("b"), {"type": "integer"}])),
            nested(8, r#""1""#),
            true,
        ),
        (
            "plain tree",
            tree(json!([node("b"), {"type": "integer"}])),
            nested(100, r#""1""#),
            true,
        ),
        (
            "plain tree with a bad leaf",
            tree(json!([node("b"), {"type": "integer"}])),
            nested(100, r#""x""#),
            false,
        ),
        ("tags", three_tags(), tagged_args(r#"{"b": "3"}"#), true),
        (
            "tags with a bad leaf",
            three_tags(),
            tagged_args(r#"{"b": "4"}"#),
            false,
        ),
        ("shared alternatives", shared.clone(), nested(40, "1"), false),
        (
            "shared alternatives with a bad leaf",
            shared,
            nested(40, r#""x""#),
            false,
        ),
        ("100k items", list.clone(), many(r#""1""#), true),
        ("100k bad items", list, many(r#""x""#), false),
        ("a set of 100k", set, distinct, true),
        (
            "exponent",
            any.clone(),
            r#"{"v": [1e-999999999, 1e-400]}"#.to_owned(),
            true,
        ),
        (
            "exponent against a limit",
            json!({"properties": {"v": {"type": "number", "multipleOf": 0.1}}}),
            r#"{"v": 1e300}"#.to_owned(),
            true,
        ),
        (
            "digits",
            any.clone(),
            format!(r#"{{"v": [{}]}}"#, "9".repeat(100_000)),
            false,
        ),
        (
            "digits as text",
            json!({"properties": {"v": {"type": "integer"}}}),
            format!(r#"{{"v": "{}"}}"#, "9".repeat(1_000_000)),
            false,
        ),
        (
            "pattern",
            json!({"properties": {"v": {"type": "string", "pattern": "^(a+)+$"}}}),
            format!(r#"{{"v": "{}b"}}"#, "a".repeat(100_000)),
            false,
        ),
    ] {
        let started = std::time::Instant::now();
        let outcome = prepared(&schema, &args, Unknown::Drop);
        assert_eq!(outcome.is_ok(), accepted, "{name}: {:?}", outcome.err());
        if let Err(problems) = outcome {
            assert!(
                !problems.is_empty() && problems.iter().all(|text| text.len() < 700),
                "{name}: {problems:?}"
            );
        }
        assert!(started.elapsed().as_secs() < 5, "{name}: {:?}", started.elapsed());
    }
    // Deeper than a JSON parser accepts.
    let deep = (0..500).fold(json!(1), |inner, _| json!([inner]));
    let schema = ArgumentSchema::compile(&any).unwrap();
    let problems = schema
        .prepare(&Map::from_iter([("v".to_owned(), deep)]), Unknown::Drop)
        .unwrap_err();
    assert!(problems[0].message.contains("128 levels"), "{problems:?}");
}

/// The limits on nesting keep the recursion within the 2 MiB stack of a test thread or a runtime thread.
#[test]
fn nesting_that_is_accepted_fits_the_stack() {
    let chain = |length: usize, last: Value| {
        let mut schemas = Map::new();
        for n in 0..length {
            schemas.insert(
                format!("D{n}"),
                json!({"allOf": [{"$ref": format!("#/$defs/D{}", n + 1)}]}),
            );
        }
        schemas.insert(format!("D{length}"), last);
        json!({"properties": {"v": {"$ref": "#/$defs/D0"}}, "$defs": schemas})
    };
    let list = json!({"type": "array", "items": {"$ref": "#/$defs/D0"}});
    let deep = |levels: usize| {
        let value = (0..levels).fold(json!([]), |inner, _| json!([inner]));
        Map::from_iter([("v".to_owned(), value)])
    };
    let schema = ArgumentSchema::compile(&chain(7, list.clone())).unwrap();
    assert_eq!(schema.prepare(&deep(126), Unknown::Drop).unwrap(), deep(126));
    assert!(schema.prepare(&deep(127), Unknown::Drop).is_err());
    let wrong = (0..120).fold(json!("x"), |inner, _| json!([inner]));
    assert!(
        schema
            .prepare(&Map::from_iter([("v".to_owned(), wrong)]), Unknown::Drop)
            .is_err()
    );
    assert!(
        ArgumentSchema::compile(&chain(9, list))
            .unwrap_err()
            .to_string()
            .contains("more than 16")
    );

    let nested = |length: usize| {
        let mut schemas = Map::new();
        for n in 0..length {
            let next = json!({"$ref": format!("#/$defs/D{}", n + 1)});
            schemas.insert(
                format!("D{n}"),
                json!({"type": "object", "properties": {"n": next}}),
            );
        }
        schemas.insert(format!("D{length}"), json!({"type": "integer"}));
        json!({"properties": {"v": {"$ref": "#/$defs/D0"}}, "$defs": schemas})
    };
    assert!(ArgumentSchema::compile(&nested(95)).is_ok());
    let error = ArgumentSchema::compile(&nested(100_000)).unwrap_err().to_string();
    assert!(error.contains("at most 200 schemas"), "{error}");
}
