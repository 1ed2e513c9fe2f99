//! Promise: one reader for the arguments of every native tool. The table of forms is run over every tool of the shipped
//! toolboxes, as their schemas are committed.

use std::fs;
use std::path::Path;

use ovos_toolbox_wire::{Effect, ToolDefinition};
use ovos_tools_schema::{ArgumentSchema, CompiledTool, Reading, ToolArguments};
use serde_json::{Map, Value, json};

fn read(schema: &Value, effect: Effect, args: &str) -> Result<ToolArguments, String> {
    let args: Map<String, Value> = serde_json::from_str(args).unwrap();
    let schema = ArgumentSchema::compile(schema).unwrap();
    let read = schema.read(&args, Reading::native(effect));
    read.map_err(|problems| {
        let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
        texts.join("; ")
    })
}

#[track_caller]
fn check(schema: &Value, effect: Effect, args: &str, expected: Result<(&str, &[&str]), &str>) {
    let found = read(schema, effect, args);
    let found = found.map(|prepared| (Value::Object(prepared.arguments).to_string(), prepared.ignored));
    let expected = expected
        .map(|(arguments, ignored)| {
            (
                arguments.to_owned(),
                ignored.iter().map(ToString::to_string).collect(),
            )
        })
        .map_err(str::to_owned);
    assert_eq!(found, expected, "{args} with {schema}");
}

/// A tool of one argument `v`, which moves.
#[track_caller]
fn one(v: &Value, input: &str, expected: Result<&str, &str>) {
    let schema = json!({"type": "object", "properties": {"v": v}});
    let args = format!(r#"{{"v": {input}}}"#);
    check(
        &schema,
        Effect::Motion,
        &args,
        expected.map(|arguments| (arguments, &[][..])),
    );
}

#[test]
fn unknown_arguments_are_refused_or_named_by_the_effect() {
    let step =
        json!({"type": "object", "properties": {"lat": {"type": "number"}, "speed": {"type": "number"}}});
    let schema = json!({"type": "object", "properties": {
        "direction": {"enum": ["forward", "backward"], "default": "forward"}, "duration": {"type": "number"},
        "steps": {"type": "array", "items": step}, "free": {"type": "object"},
    }});
    let (known, all) = (
        "known: direction, duration, steps, free",
        r#"{"direction":"forward"}"#,
    );
    for (args, refusal, rest, ignored) in [
        (
            r#"{"durration": 2}"#,
            format!("unknown argument 'durration' (did you mean 'duration'?); {known}"),
            all,
            &["durration"][..],
        ),
        // The value says what is meant where the name does not.
        (
            r#"{"heading": "backward"}"#,
            format!("unknown argument 'heading' (did you mean 'direction'?); {known}"),
            all,
            &["heading"],
        ),
        (
            r#"{"a": 1, "b": null}"#,
            format!("unknown arguments 'a', 'b'; {known}"),
            all,
            &["a", "b"],
        ),
        (
            r#"{"steps": [{"lat": 1}, {"lat": 1, "sped": 2}]}"#,
            "steps[1]: unknown argument 'sped' (did you mean 'speed'?); known: lat, speed".to_owned(),
            r#"{"direction":"forward","steps":[{"lat":1.0},{"lat":1.0}]}"#,
            &["steps[1].sped"],
        ),
    ] {
        // What `additionalProperties` says makes no difference, unless it declares them.
        for closed in [false, true] {
            let mut schema = schema.clone();
            if closed {
                schema["additionalProperties"] = json!(false);
            }
            for effect in [Effect::Motion, Effect::Write] {
                check(&schema, effect, args, Err(&refusal));
            }
            for effect in [Effect::Read, Effect::Safe, Effect::Stop, Effect::Resume] {
                check(&schema, effect, args, Ok((rest, ignored)));
            }
        }
    }
    let free = r#"{"direction":"forward","free":{"x":1}}"#;
    check(&schema, Effect::Motion, r#"{"free": {"x": 1}}"#, Ok((free, &[])));
    for declared in [json!(true), json!({"type": "integer"})] {
        let open = json!({"properties": {}, "additionalProperties": declared});
        check(&open, Effect::Motion, r#"{"x": 1}"#, Ok((r#"{"x":1}"#, &[])));
    }
    check(
        &json!({}),
        Effect::Motion,
        r#"{"x": 1}"#,
        Err("unknown argument 'x'; known: none"),
    );
}

#[test]
fn null_is_not_given_unless_the_schema_has_it() {
    let pose = json!({"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}, "required": ["x"]});
    let schema = json!({"type": "object", "required": ["must"], "properties": {
        "must": {"type": "integer"}, "way": {"enum": ["a", "b"], "default": "a"}, "speed": {"type": "number"},
        "unit": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "any": {}, "pose": pose,
        "poses": {"type": "array", "items": pose},
    }});
    for (args, expected) in [
        (
            r#"{"must": 1, "way": null, "speed": null}"#,
            Ok(r#"{"must":1,"way":"a"}"#),
        ),
        (
            r#"{"must": 1, "unit": null, "any": null}"#,
            Ok(r#"{"must":1,"way":"a","unit":null,"any":null}"#),
        ),
        (
            r#"{"must": 1, "pose": {"x": 1, "y": null}, "poses": [{"x": 2, "y": null}]}"#,
            Ok(r#"{"must":1,"way":"a","pose":{"x":1.0},"poses":[{"x":2.0}]}"#),
        ),
        (r#"{"must": null}"#, Err("must: required")),
        (r#"{"must": 1, "pose": {"x": null}}"#, Err("pose.x: required")),
        (
            r#"{"must": 1, "poses": [null]}"#,
            Err("poses[0]: expected object, got null"),
        ),
    ] {
        check(
            &schema,
            Effect::Motion,
            args,
            expected.map(|arguments| (arguments, &[][..])),
        );
    }
    // The result of another tool is no form of a client.
    let args = Map::from_iter([("must".to_owned(), json!(1)), ("way".to_owned(), Value::Null)]);
    let reading = Reading::Native {
        effect: Effect::Motion,
        null_is_absent: false,
    };
    assert!(
        ArgumentSchema::compile(&schema)
            .unwrap()
            .read(&args, reading)
            .is_err()
    );
}

#[test]
fn lists_and_objects_are_read_from_text_where_they_are_wanted() {
    let numbers = json!({"type": "array", "items": {"type": "number"}, "maxItems": 3});
    let words = json!({"type": "array", "items": {"type": "string"}});
    let point = json!({"type": "object", "properties": {"x": {"type": "number"}, "label": {"type": "string"}}, "required": ["x"]});
    let free = json!({"type": "object"});
    let maybe = json!({"anyOf": [numbers, {"type": "null"}]});
    let pose = json!({"anyOf": [{"type": "string"}, numbers]});
    let anything = json!({"type": ["string", "array", "object"]});
    for (v, input, expected) in [
        (&numbers, r#""[1, 2]""#, Ok(r#"{"v":[1.0,2.0]}"#)),
        (&numbers, r#"" [] ""#, Ok(r#"{"v":[]}"#)),
        (
            &numbers,
            r#""[1, \"x\"]""#,
            Err(r#"v[1]: expected number, got "x""#),
        ),
        (&numbers, r#""[1, true]""#, Err("v[1]: expected number, got true")),
        (
            &numbers,
            r#""[1,2,3,4]""#,
            Err("v: expected at most 3 items, got 4"),
        ),
        (&numbers, r#""[1""#, Err(r#"v: expected array, got "[1""#)),
        (&numbers, r#""{}""#, Err(r#"v: expected array, got "{}""#)),
        (&words, r#""[\"left:3\"]""#, Ok(r#"{"v":["left:3"]}"#)),
        // A text in a text stays a text.
        (&words, r#""[\"[1]\"]""#, Ok(r#"{"v":["[1]"]}"#)),
        (
            &point,
            r#""{\"x\": \"1\", \"label\": \"[1]\"}""#,
            Ok(r#"{"v":{"x":1.0,"label":"[1]"}}"#),
        ),
        (
            &point,
            r#""{\"x\": 1, \"lable\": 2}""#,
            Err("v: unknown argument 'lable' (did you mean 'label'?); known: x, label"),
        ),
        (&free, r#""{\"a\": [1]}""#, Ok(r#"{"v":{"a":[1]}}"#)),
        (&maybe, r#""[1]""#, Ok(r#"{"v":[1.0]}"#)),
        (&pose, r#""[0, -45]""#, Ok(r#"{"v":[0.0,-45.0]}"#)),
        (&pose, r#""home""#, Ok(r#"{"v":"home"}"#)),
        (&pose, r#""[home]""#, Ok(r#"{"v":"[home]"}"#)),
        // The schema wants a text, or does not say what a list would hold.
        (&json!({"type": "string"}), r#""[1]""#, Ok(r#"{"v":"[1]"}"#)),
        (&anything, r#""[1]""#, Ok(r#"{"v":"[1]"}"#)),
        (&json!({}), r#""[1]""#, Ok(r#"{"v":"[1]"}"#)),
    ] {
        one(v, input, expected);
    }
    // What is read from a text is bound by the same limits, and costs little.
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let list = json!({"type": "array"});
    for (levels, accepted) in [(127, true), (128, false), (10_000, false)] {
        let args = json!({"v": deep(levels)}).to_string();
        let schema = json!({"properties": {"v": list}});
        assert_eq!(read(&schema, Effect::Motion, &args).is_ok(), accepted, "{levels}");
    }
    let digits = json!({"v": format!("[{}]", "9".repeat(100_000))}).to_string();
    assert!(read(&json!({"properties": {"v": list}}), Effect::Motion, &digits).is_err());
}

#[test]
fn flags_words_and_units() {
    let (number, integer) = (
        json!({"type": "number", "minimum": 0.01, "maximum": 2}),
        json!({"type": "integer"}),
    );
    let maybe = json!({"anyOf": [{"type": "number"}, {"type": "null"}]});
    let target = json!({"type": ["string", "number"]});
    let numbers = json!({"type": "array", "items": {"type": "number"}});
    let side = json!({"type": "string", "enum": ["left", "right", "ÄRM"], "default": "left"});
    let odd = json!({"type": "string", "enum": ["k", "K", "m"]});
    let mixed = json!({"enum": ["on", 1]});
    for (v, input, expected) in [
        (
            &number,
            "true",
            Err("v: expected number at least 0.01 and at most 2, got true"),
        ),
        (
            &number,
            r#""true""#,
            Err(r#"v: expected number at least 0.01 and at most 2, got "true""#),
        ),
        (&integer, "false", Err("v: expected integer, got false")),
        (&maybe, "true", Err("v: expected number or null, got true")),
        (&numbers, "[1, true]", Err("v[1]: expected number, got true")),
        (&target, "true", Err("v: expected number or string, got true")),
        (&mixed, "true", Err(r#"v: expected one of "on", 1, got true"#)),
        (&integer, "2.0", Ok(r#"{"v":2}"#)),
        (&integer, r#""3""#, Ok(r#"{"v":3}"#)),
        (&json!({"type": "boolean"}), r#""yes""#, Ok(r#"{"v":true}"#)),
        (&side, r#""Left""#, Ok(r#"{"v":"left"}"#)),
        (&side, r#""RIGHT""#, Ok(r#"{"v":"right"}"#)),
        (&side, r#""ärm""#, Ok(r#"{"v":"ÄRM"}"#)),
        (
            &side,
            r#""lefty""#,
            Err(r#"v: expected one of "left", "right", "ÄRM", got "lefty""#),
        ),
        (&odd, r#""K""#, Ok(r#"{"v":"K"}"#)),
        (&odd, r#""M""#, Ok(r#"{"v":"m"}"#)),
        (&mixed, r#""On""#, Ok(r#"{"v":"on"}"#)),
    ] {
        one(v, input, expected);
    }
    // Two words that differ in case alone are not folded.
    let twice = json!({"type": "string", "enum": ["ab", "AB"]});
    one(
        &twice,
        r#""Ab""#,
        Err(r#"v: expected one of "ab", "AB", got "Ab""#),
    );

    let schema = json!({"properties": {
        "distance": {"type": "number", "description": "How far, in metres; for turns in radians."},
        "wait_ms": {"type": "integer"}, "cm": {"type": "integer", "description": "How far."},
        "speed": {"type": "number", "description": "How fast: 1 is 90 degrees per second."},
        "duration": {"type": "number", "description": "Seconds."},
        "yaw_deg": {"anyOf": [{"type": "number"}, {"type": "null"}], "description": "Heading."},
        "angles": {"type": "array", "items": {"type": "number"}, "description": "Each in degrees."},
        "name": {"type": "string"},
    }});
    for (args, end) in [
        (
            r#"{"distance": "10 cm"}"#,
            r#"got "10 cm"; write the number alone, in metres"#,
        ),
        (r#"{"distance": "0.1m"}"#, "write the number alone, in metres"),
        (r#"{"wait_ms": "2 s"}"#, "write the number alone, in milliseconds"),
        (r#"{"cm": "1,5 m"}"#, "write the number alone, in centimetres"),
        (r#"{"speed": "45°/s"}"#, "write the number alone, without a unit"),
        (r#"{"duration": "3 sec"}"#, "write the number alone, in seconds"),
        (r#"{"yaw_deg": "90°"}"#, "write the number alone, in degrees"),
        (
            r#"{"angles": [1, "90 deg"]}"#,
            "write the number alone, in degrees",
        ),
        (
            r#"{"distance": "far"}"#,
            r#"distance: expected number, got "far""#,
        ),
        (r#"{"distance": ""}"#, r#"distance: expected number, got """#),
    ] {
        let refused = read(&schema, Effect::Read, args).unwrap_err();
        assert!(refused.ends_with(end), "{args}: {refused}");
    }
    check(
        &schema,
        Effect::Motion,
        r#"{"name": "10 cm"}"#,
        Ok((r#"{"name":"10 cm"}"#, &[])),
    );
}

/// A `safe` tool is carried out although a detail does not fit; what it cannot do without is named.
#[test]
fn what_brings_to_safety_is_not_refused_for_a_detail() {
    let schema = json!({"properties": {"vehicle": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null},
        "ms": {"type": "integer", "default": 0}}, "additionalProperties": false});
    let args = r#"{"vehicle": 5, "ms": "soon", "speed": 9}"#;
    check(
        &schema,
        Effect::Safe,
        args,
        Ok((r#"{"vehicle":null,"ms":0}"#, &["speed", "vehicle", "ms"])),
    );
    let several = json!({"properties": {"vehicle": {"enum": ["one", "two"]}}, "required": ["vehicle"]});
    check(
        &several,
        Effect::Safe,
        args,
        Err(r#"vehicle: expected one of "one", "two", got 5"#),
    );
    check(
        &several,
        Effect::Safe,
        r#"{"vehicle": "Two"}"#,
        Ok((r#"{"vehicle":"two"}"#, &[])),
    );
}

fn shipped() -> Vec<(String, CompiledTool)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/toolboxes");
    let mut tools = Vec::new();
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let list: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        for tool in list["tools"].as_array().unwrap() {
            let definition: ToolDefinition = serde_json::from_value(tool.clone()).unwrap();
            let toolbox = path.file_stem().unwrap().to_string_lossy().into_owned();
            tools.push((
                format!("{toolbox}.{}", definition.name),
                CompiledTool::new(definition),
            ));
        }
    }
    assert!(tools.len() > 100, "{} tools", tools.len());
    tools
}

/// A value that a property accepts.
fn accepted(property: &Value) -> Value {
    if let Some(members) = property["enum"].as_array() {
        return members[0].clone();
    }
    if let Some(choices) = property["anyOf"].as_array() {
        return accepted(&choices[0]);
    }
    let kind = match &property["type"] {
        Value::Array(kinds) => kinds[0].as_str(),
        kind => kind.as_str(),
    };
    match kind {
        // The only pattern of a tool is that of an address.
        Some("string") if property["pattern"].is_string() => json!("https://example.org/"),
        Some("string") => json!("x"),
        Some("boolean") => json!(true),
        Some("array") => json!([accepted(&property["items"])]),
        Some("object") => Value::Object(required(property)),
        _ => property.get("minimum").cloned().unwrap_or(json!(1)),
    }
}

/// The arguments that a tool cannot do without.
fn required(schema: &Value) -> Map<String, Value> {
    let names = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    names
        .map(|name| (name.to_owned(), accepted(&schema["properties"][name])))
        .collect()
}

/// Whether a part of a schema takes a value of this type.
fn takes(property: &Value, kind: &str) -> bool {
    let own = match &property["type"] {
        Value::Array(kinds) => kinds.iter().any(|one| one == kind),
        one => one == kind,
    };
    own || property["anyOf"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|choice| takes(choice, kind))
}

#[test]
fn every_shipped_tool_reads_the_forms_of_clients_alike() {
    let mut rows = [0; 5];
    for (tool, compiled) in shipped() {
        let schema = &compiled.definition.argument_schema;
        let effect = compiled.definition.effect;
        let plain = required(schema);
        let read = |args: &Map<String, Value>| compiled.prepare(args, true);
        let usual = read(&plain).unwrap_or_else(|problems| panic!("{tool} {plain:?}: {problems:?}"));
        let with = |name: &str, value: Value| {
            let mut args = plain.clone();
            args.insert(name.to_owned(), value);
            args
        };
        // An unknown argument.
        rows[0] += 1;
        match (effect, read(&with("bogus_arg", json!(1)))) {
            (Effect::Motion | Effect::Write, Err(problems)) => {
                let text = problems[0].to_string();
                assert!(text.starts_with("unknown argument 'bogus_arg'"), "{tool}: {text}");
                for (name, _) in schema["properties"].as_object().unwrap() {
                    assert!(text.contains(name.as_str()), "{tool}: {text}");
                }
            }
            (Effect::Motion | Effect::Write, Ok(read)) => panic!("{tool}: {read:?}"),
            (_, found) => {
                let found = found.unwrap_or_else(|problems| panic!("{tool}: {problems:?}"));
                assert_eq!(
                    (found.arguments, found.ignored),
                    (usual.arguments.clone(), vec!["bogus_arg".to_owned()]),
                    "{tool}"
                );
            }
        }
        for (name, property) in schema["properties"].as_object().unwrap() {
            let accepted_value = accepted(property);
            let anything = ["type", "enum", "anyOf"]
                .iter()
                .all(|key| property.get(key).is_none());
            let nullable = anything || takes(property, "null");
            let null = read(&with(name, Value::Null));
            if nullable && plain.contains_key(name) {
                assert_eq!(null.unwrap().arguments[name], Value::Null, "{tool}.{name}");
            } else if plain.contains_key(name) {
                assert!(
                    null.unwrap_err().iter().any(|problem| problem.path == *name),
                    "{tool}.{name}"
                );
            } else {
                rows[1] += 1;
                let mut arguments = null
                    .unwrap_or_else(|problems| panic!("{tool}.{name}: {problems:?}"))
                    .arguments;
                if nullable {
                    assert_eq!(arguments.shift_remove(name), Some(Value::Null), "{tool}.{name}");
                }
                let mut usual = usual.arguments.clone();
                if nullable {
                    usual.shift_remove(name);
                }
                assert_eq!(arguments, usual, "{tool}.{name}");
            }
            if takes(property, "array") || takes(property, "object") {
                rows[2] += 1;
                let list = match property["anyOf"].as_array() {
                    Some(choices) => accepted(
                        choices
                            .iter()
                            .find(|one| takes(one, "array") || takes(one, "object"))
                            .unwrap(),
                    ),
                    None => accepted_value.clone(),
                };
                let as_text = read(&with(name, json!(list.to_string())));
                assert_eq!(as_text, read(&with(name, list)), "{tool}.{name}");
            }
            if (takes(property, "number") || takes(property, "integer")) && !takes(property, "boolean") {
                rows[3] += 1;
                for flag in [json!(true), json!(false)] {
                    let found = read(&with(name, flag));
                    // A detail of what brings to safety is left out; nothing reads it as 1.
                    match found {
                        Err(problems) => assert!(
                            problems.iter().any(|problem| problem.path == *name),
                            "{tool}.{name}"
                        ),
                        Ok(read) => assert!(
                            effect == Effect::Safe && read.ignored == [name.as_str()],
                            "{tool}.{name}"
                        ),
                    }
                }
            }
            if let Some(word) = accepted_value.as_str().filter(|_| property["enum"].is_array()) {
                rows[4] += 1;
                let same = read(&with(name, accepted_value.clone()));
                assert_eq!(
                    read(&with(name, json!(word.to_uppercase()))),
                    same,
                    "{tool}.{name}"
                );
            }
        }
    }
    assert!(rows.iter().all(|count| *count >= 5), "{rows:?}");
}
