//! A thousand calls of the robot toolbox through the real service, valid ones and hostile ones, at hundreds of times real
//! time: every call is answered once, no servo is ever sent beyond its joint's limit or speed,
//! and no two calls interleave on a part of the robot.
//!
//! `OVOS_TOOLS_SEED` repeats a run, `OVOS_TOOLS_CALLS` makes it longer or shorter.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::support::robot::RobotScene;
use serde_json::{Value, json};

/// How many calls wait for their answer at any time.
const AT_ONCE: usize = 32;
/// Simulated seconds in a real one.
const TIME_SCALE: f64 = 1_000.0;
/// Half a step of a servo, in degrees.
const STEP: f64 = 0.05;
/// The speed below which a servo stutters, in degrees a second: no motion is slower.
const SLOWEST: f64 = 1.8;

/// Range in degrees (millimetres for the lift) and largest speed of every joint, from the robot's specification, not
/// from its file.
const LIMITS: [(&str, &str, f64, f64, f64); 16] = [
    ("left_arm", "base", -150.0, 150.0, 120.0),
    ("left_arm", "shoulder", -90.0, 90.0, 120.0),
    ("left_arm", "elbow", 0.0, 180.0, 120.0),
    ("left_arm", "wrist_pitch", -90.0, 90.0, 120.0),
    ("left_arm", "wrist_roll", -180.0, 180.0, 180.0),
    ("left_arm", "gripper", 0.0, 80.0, 120.0),
    ("right_arm", "base", -150.0, 150.0, 120.0),
    ("right_arm", "shoulder", -90.0, 90.0, 120.0),
    ("right_arm", "elbow", 0.0, 180.0, 120.0),
    ("right_arm", "wrist_pitch", -90.0, 90.0, 120.0),
    ("right_arm", "wrist_roll", -180.0, 180.0, 180.0),
    ("right_arm", "gripper", 0.0, 80.0, 120.0),
    ("gantry", "pan", -90.0, 90.0, 120.0),
    ("gantry", "tilt", -45.0, 45.0, 120.0),
    ("lift", "lift", 0.0, 300.0, 50.0),
    ("hitch", "hitch", 0.0, 80.0, 60.0),
];

#[test]
fn random_calls_stay_within_the_limits_and_apart() {
    random_calls(&json!([]));
}

/// What one part cannot do holds up no call of another.
#[test]
fn random_calls_stay_within_the_limits_and_apart_where_the_hitch_is_stuck() {
    random_calls(&json!([{ "stuck": "hitch" }]));
}

fn random_calls(faults: &Value) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("OVOS_TOOLS_SEED").unwrap_or_else(|| fastrand::u64(..));
    let total = usize::try_from(number("OVOS_TOOLS_CALLS").unwrap_or(1_000)).unwrap();
    println!("OVOS_TOOLS_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut scene = RobotScene::new(&json!({ "time_scale": TIME_SCALE, "faults": faults }));
    let tools = tools(&mut scene);

    let mut waiting: Vec<String> = Vec::new();
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut examples: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for nth in 0..total {
        let (tool, args) = draw(&mut random, &tools);
        let call_id = format!(
            "r{nth}.{}",
            tool.chars()
                .filter(char::is_ascii_alphanumeric)
                .take(20)
                .collect::<String>()
        );
        scene.client.send(
            "ovos.tools.invoke",
            &json!({ "name": tool, "args": args, "call_id": call_id, "toolbox_id": "robot" }),
        );
        waiting.push(call_id);
        if waiting.len() >= AT_ONCE {
            scene.client.until_any_answered(&waiting);
            waiting.retain(|call_id| scene.client.answer_of(call_id).is_none());
        }
        if nth % 500 == 499 {
            // An operator's stop, whatever is under way.
            let stop_id = scene.stop();
            scene.resume(&stop_id);
        }
    }
    scene.client.until_answered(waiting.iter());
    scene.client.ask("ovos.tools.status", &json!({}));
    for call_id in scene.client.answered() {
        let answer = scene.client.only_answer(&call_id);
        let outcome = match (answer.get("error"), &answer["result"]["success"]) {
            (Some(_), _) => "refused",
            (None, Value::Bool(true)) => "done",
            (None, _) => "not done",
        };
        *outcomes.entry(outcome).or_default() += 1;
        if let Some(error) = answer["error"].as_str() {
            let kind = error.split(':').next().unwrap_or_default().to_owned();
            examples.entry(kind).or_insert_with(|| (error.to_owned(), 0)).1 += 1;
        }
    }
    println!("{outcomes:?}, refused with {examples:?}");
    assert_eq!(
        outcomes.values().sum::<usize>(),
        total,
        "calls that were answered once"
    );
    for outcome in ["done", "refused", "not done"] {
        assert!(
            outcomes.get(outcome).is_some_and(|count| *count > total / 100),
            "too few {outcome}: {outcomes:?}"
        );
    }
    check_trace(&scene.trace(), seed);
}

/// The argument schemas of everything that a client may call.
fn tools(scene: &mut RobotScene) -> Vec<(String, Value)> {
    let answer = scene
        .client
        .ask("ovos.tools.list", &json!({ "toolbox_id": "robot" }));
    let tools = answer["tools"].as_array().unwrap();
    let tools: Vec<(String, Value)> = tools
        .iter()
        .filter(|tool| tool["name"] != "stop" && tool["name"] != "reset_stop")
        .map(|tool| {
            let name = tool["name"].as_str().unwrap().to_owned();
            let schema = tool
                .get("argument_schema")
                .or_else(|| tool.get("parameters"))
                .cloned();
            (name, schema.unwrap_or_else(|| panic!("no schema: {tool:#}")))
        })
        .collect();
    assert!(tools.len() > 50, "{}", tools.len());
    tools
}

/// A random tool with arguments: mostly valid by the schema, sometimes a known good call, sometimes nonsense.
fn draw(random: &mut fastrand::Rng, tools: &[(String, Value)]) -> (String, Value) {
    let catalogue = crate::robot::calls::calls();
    match random.u8(..100) {
        0..40 => {
            let (tool, args) = catalogue[random.usize(..catalogue.len())].clone();
            // A robot that loses a servo id is the subject of another test.
            if tool == "set_motor_id" {
                return ("nod".to_owned(), json!({}));
            }
            (tool.to_owned(), args)
        }
        40..80 => {
            let (tool, schema) = &tools[random.usize(..tools.len())];
            (tool.clone(), sample(random, schema))
        }
        80..95 => {
            let (tool, schema) = &tools[random.usize(..tools.len())];
            let mut args = sample(random, schema);
            let keys: Vec<String> = schema["properties"]
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect();
            if !keys.is_empty() {
                args[&keys[random.usize(..keys.len())]] = nonsense(random);
            }
            (tool.clone(), args)
        }
        95..98 => {
            let (tool, _) = &tools[random.usize(..tools.len())];
            (tool.clone(), nonsense(random))
        }
        _ => ("no_such_tool".to_owned(), json!({})),
    }
}

/// A value that the schema allows, at its ends more often than in between.
fn sample(random: &mut fastrand::Rng, schema: &Value) -> Value {
    if let Some(options) = schema["enum"].as_array() {
        return options[random.usize(..options.len())].clone();
    }
    if let Some(options) = schema["oneOf"].as_array() {
        let option = &options[random.usize(..options.len())];
        return sample(random, option);
    }
    if let Some(constant) = schema.get("const") {
        return constant.clone();
    }
    if let Some(options) = schema["anyOf"].as_array() {
        let option = &options[random.usize(..options.len())];
        return sample(random, option);
    }
    let bound = |key: &str, other: f64| schema[key].as_f64().unwrap_or(other);
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds[random.usize(..kinds.len())].as_str(),
        kind => kind.as_str(),
    };
    match kind {
        Some("object") => {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let properties = schema["properties"].as_object().unwrap();
            let mut args = json!({});
            for (name, property) in properties {
                if required.contains(&json!(name)) || random.bool() {
                    args[name] = sample(random, property);
                }
            }
            args
        }
        Some("number") => {
            let (min, max) = (bound("minimum", -50.0), bound("maximum", 50.0));
            json!(match random.u8(..4) {
                0 => min,
                1 => max,
                _ => min + (max - min) * random.f64(),
            })
        }
        Some("integer") => {
            #[allow(clippy::cast_possible_truncation, reason = "ids are small")]
            let (min, max) = (bound("minimum", 1.0) as i64, bound("maximum", 12.0) as i64);
            json!(random.i64(min..=max))
        }
        Some("boolean") => json!(random.bool()),
        Some("array") => {
            let count = random.usize(..4);
            json!(
                (0..count)
                    .map(|_| sample(random, &schema["items"]))
                    .collect::<Vec<_>>()
            )
        }
        Some("string") => {
            let words = [
                "home",
                "ready",
                "wave",
                "cup",
                "table",
                "left",
                "right",
                "Ada",
                "Grace",
                "90",
                "-30,10",
                "around",
                "up",
                "unicorn",
                "[0,-45,90,45,0,0]",
                "[500,0,0,0,0,0]",
                "[1,2]",
                "workshop",
                "left:3",
                "",
            ];
            json!(words[random.usize(..words.len())])
        }
        _ => Value::Null,
    }
}

fn nonsense(random: &mut fastrand::Rng) -> Value {
    match random.u8(..12) {
        0 => Value::Null,
        1 => json!(f64::MAX),
        2 => json!(-1e308),
        3 => json!("x".repeat(random.usize(..5_000))),
        4 => json!([[[[[]]]]]),
        5 => json!({ "robot": { "robot": 1 } }),
        6 => json!("NaN"),
        7 => json!(u64::MAX),
        8 => json!("\u{0}\u{202e}../../etc"),
        9 => json!(true),
        10 => json!([1, "2", null]),
        _ => json!("inf,inf"),
    }
}

fn floats(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value.as_f64().unwrap())
        .collect()
}

/// Reads every command.
fn check_trace(trace: &[Value], seed: u64) {
    let mut holders: HashMap<String, String> = HashMap::new();
    let mut past: HashMap<String, HashSet<String>> = HashMap::new();
    let mut moves = 0;
    for line in trace {
        let at = || format!("seed {seed}: {line}");
        let on = line["on"].as_str().unwrap_or_default();
        match line["do"].as_str().unwrap() {
            "begin" if line["moves"] == true => take_turn(on, line, &mut holders, &mut past, seed),
            "move" => {
                moves += 1;
                let this =
                    |limits: &&(&str, &str, f64, f64, f64)| limits.0 == on && line["joint"] == limits.1;
                let (_, _, min, max, largest) = LIMITS.iter().find(this).unwrap();
                let (to, speed) = (line["to"].as_f64().unwrap(), line["speed"].as_f64().unwrap());
                assert!(to >= min - STEP && to <= max + STEP, "beyond its limit: {}", at());
                assert!(
                    speed <= largest + STEP || speed <= SLOWEST,
                    "faster than {largest}: {}",
                    at()
                );
            }
            "drive" => {
                moves += 1;
                for (speed, largest) in floats(&line["velocity"]).iter().zip([0.26, 0.23, 1.570_796_4]) {
                    assert!(speed.abs() <= largest + 0.01, "faster than {largest}: {}", at());
                }
            }
            _ => {}
        }
    }
    assert!(
        moves > 100 || trace.len() < 1_000,
        "the calls moved too little: {moves}"
    );
}

/// A part belongs to one call until another call moves it; the first call must not move it again.
fn take_turn(
    on: &str,
    line: &Value,
    holders: &mut HashMap<String, String>,
    past: &mut HashMap<String, HashSet<String>>,
    seed: u64,
) {
    let call = line["for"]
        .as_str()
        .unwrap()
        .split('/')
        .next()
        .unwrap()
        .to_owned();
    let holder = holders.entry(on.to_owned()).or_default();
    if *holder != call {
        let past = past.entry(on.to_owned()).or_default();
        assert!(
            !past.contains(&call),
            "seed {seed}: {call} came back to {on} after {holder}: {line}"
        );
        past.insert(std::mem::replace(holder, call));
    }
}
