//! Every tool of the catalogue: listed with what a model chooses by, and done on the simulated robot.

use std::collections::{BTreeMap, BTreeSet};

use crate::calls::calls;
use crate::catalogue;
use ovos_toolbox_sdk::testing::Harness;
use ovos_toolbox_sdk::wire::{Effect, ToolDefinition};
use robot::robots::Robots;
use serde_json::{Value, json};

/// 53 tools of the source, `walk`, four for places, and the way out of a stop.
const TOOLS: usize = 60;

fn fast(folder: &tempfile::TempDir) -> Value {
    json!({
        "data_dir": folder.path(),
        "recognition_timeout_ms": 100,
        "robots": {"five": {"sim": {"time_scale": 500}}},
    })
}

fn as_model(model: &str) -> Harness {
    Harness::open::<Robots>(json!({"robots": {"it": {"sim": {"model": model, "time_scale": 500}}}})).unwrap()
}

fn names(harness: &Harness) -> BTreeSet<String> {
    harness.tools().into_iter().map(|tool| tool.name).collect()
}

/// What a person is asked before a call runs.
#[test]
fn what_changes_or_moves_something_says_so_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let robot = Harness::open::<Robots>(fast(&folder)).unwrap();
    let tools = robot.tools().into_iter();
    let asked: BTreeMap<String, ToolDefinition> = tools
        .filter(|tool| matches!(tool.effect, Effect::Motion | Effect::Write))
        .map(|tool| (tool.name.clone(), tool))
        .collect();
    let mut unsaid: BTreeSet<&String> = asked.keys().collect();
    robot
        .invoke("remember_place", json!({"place": "kitchen"}))
        .unwrap();
    for (tool, mut args) in calls() {
        let Some(definition) = asked.get(tool) else {
            continue;
        };
        // The service fills the defaults in before it plans.
        for (name, argument) in definition.argument_schema["properties"].as_object().unwrap() {
            if let (Some(default), true) = (argument.get("default"), args[name].is_null()) {
                args[name] = default.clone();
            }
        }
        let sentences = robot.planned(tool, args.clone()).unwrap().unwrap().sentences;
        let english = sentences
            .get("en")
            .unwrap_or_else(|| panic!("{tool} {args} has no sentence"));
        assert!(!english.contains(['{', '}']), "{tool} {args}: {english}");
        unsaid.remove(&definition.name);
    }
    assert!(unsaid.is_empty(), "never tried: {unsaid:?}");
    for (tool, args, english, german) in [
        (
            "spin",
            json!({"direction": "clockwise", "degrees": 30.0, "speed": 0.5}),
            "turn the robot 30 degrees to the right",
            "den Roboter um 30 Grad nach rechts drehen",
        ),
        (
            "turn",
            json!({"target": -45.5, "speed": 0.5}),
            "turn the robot 45.5 degrees to the right",
            "den Roboter um 45,5 Grad nach rechts drehen",
        ),
        (
            "walk",
            json!({"direction": "backward", "speed": 0.3, "duration": 2.0}),
            "walk backward for 2 seconds at 0.3 metres a second",
            "2 Sekunden lang mit 0,3 Metern in der Sekunde rückwärts gehen",
        ),
        (
            "wave",
            json!({"arm": "left", "style": "friendly"}),
            "wave with the left arm",
            "mit dem linken Arm winken",
        ),
        (
            "pick_object",
            json!({"object": "cup\" and run", "hand": "left"}),
            "pick up \"cup' and run\" with the left hand",
            "\"cup' and run\" mit der linken Hand aufheben",
        ),
    ] {
        let sentences = robot.planned(tool, args.clone()).unwrap().unwrap().sentences;
        assert_eq!(
            (sentences["en"].as_str(), sentences["de"].as_str()),
            (english, german),
            "{tool} {args}"
        );
    }
}

#[test]
fn every_tool_is_done_on_the_simulator() {
    let folder = tempfile::tempdir().unwrap();
    let robot = Harness::open::<Robots>(fast(&folder)).unwrap();
    let mut untried = names(&robot);
    // In an order in which the motors have no power where a tool writes into them.
    for (tool, args) in catalogue::calls() {
        if ["stop", "reset_stop"].contains(&tool) {
            continue;
        }
        untried.remove(tool);
        // By then the robot has turned away from who stood to its left.
        let args = match tool {
            "identify_person" => json!({}),
            // Her face is asked for afterwards.
            "forget_person" => json!({"name": "Ada", "forget_face": false}),
            _ => args,
        };
        let output = robot
            .invoke(tool, args.clone())
            .unwrap_or_else(|error| panic!("{tool} {args}: {error}"));
        assert_eq!(output["success"], true, "{tool} {args}: {output:#}");
        let message = output["message"].as_str().unwrap();
        assert!(
            message.starts_with(&format!("Completed {tool}")),
            "{tool} {args}: {message}"
        );
        assert!(output["data"]["duration_ms"].is_u64(), "{tool}: {output:#}");
        assert!(output["data"]["subsystems"].is_array(), "{tool}: {output:#}");
        assert_eq!(output["data"]["simulated"], true, "{tool}: {output:#}");
    }
    let stop: BTreeSet<String> = ["stop", "reset_stop"].map(String::from).into();
    assert_eq!(untried, stop, "tools without a call in this test");
    assert!(robot.close().is_clean());
}

#[test]
fn the_catalogue_is_complete_and_written_for_a_model() {
    let robot = Harness::open::<Robots>(json!({})).unwrap();
    let tools = robot.tools();
    assert_eq!(tools.len(), TOOLS);
    for ToolDefinition {
        name,
        description,
        argument_schema,
        category,
        ..
    } in &tools
    {
        assert!(description.len() > 20, "{name}: {description:?}");
        assert!(
            description.to_lowercase().contains("robot"),
            "{name} does not say whose tool it is: {description:?}"
        );
        assert!(
            category.as_ref().is_some_and(|category| !category.is_empty()),
            "{name}"
        );
        assert_eq!(argument_schema["type"], "object", "{name}");
        assert!(argument_schema.get("description").is_none(), "{name}: said twice");
        assert!(
            !argument_schema.to_string().contains("oneOf"),
            "{name}: words are an enum"
        );
        for (argument, schema) in argument_schema["properties"].as_object().unwrap() {
            let described = schema["description"].as_str().unwrap_or_default();
            assert!(!described.is_empty(), "{name}.{argument} has no description");
            assert!(
                schema.get("$ref").is_none(),
                "{name}.{argument}: models do not follow references"
            );
        }
    }
}

/// A model that has to guess a pose guesses wrong.
#[test]
fn go_to_pose_names_the_poses_of_its_robots() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("poses.toml");
    std::fs::write(&file, "[poses]\ngreet = { right_arm = [0, -45, 90, 45, 0, 0] }\n").unwrap();
    let plain = json!({"sim": {}});
    let taught = json!({"sim": {}, "poses": file});
    let g1 = json!({"sim": {"model": "unitree_g1"}});
    for (robots, has, has_not) in [
        (json!({"a": plain}), "arms_up", "greet"),
        (json!({"a": taught}), "greet", "moonwalk"),
        (json!({"a": plain, "b": taught}), "greet", "moonwalk"),
        (json!({"a": g1}), "arms_up", "look_up"),
    ] {
        let robot = Harness::open::<Robots>(json!({"robots": robots})).unwrap();
        let tools = robot.tools();
        let tool = tools.iter().find(|tool| tool.name == "go_to_pose").unwrap();
        let pose = &tool.argument_schema["properties"]["pose"];
        let poses = pose["enum"].as_array().unwrap();
        assert!(poses.contains(&json!(has)), "{robots}: {pose}");
        assert!(!poses.contains(&json!(has_not)), "{robots}: {pose}");
        if robots.as_object().unwrap().len() == 1 {
            for pose in poses {
                let plan = robot.plan("go_to_pose", json!({"pose": pose})).unwrap();
                assert!(!plan.unwrap().is_empty(), "{robots}: {pose} moves nothing");
            }
        }
    }
}

#[test]
fn effects_are_those_of_the_catalogue() {
    let robot = Harness::open::<Robots>(json!({})).unwrap();
    let of = |effect: Effect| -> Vec<String> {
        let tools = robot.tools().into_iter();
        tools
            .filter(|tool| tool.effect == effect)
            .map(|tool| tool.name)
            .collect()
    };
    assert_eq!(of(Effect::Stop), ["stop"]);
    assert_eq!(of(Effect::Resume), ["reset_stop"]);
    assert_eq!(of(Effect::Safe), Vec::<String>::new());
    assert_eq!(
        of(Effect::Read),
        [
            "list_places",
            "motor_status",
            "check_torque",
            "check_servos",
            "servo_health_report",
            "get_visible_people",
            "identify_person",
            "get_speaker_direction",
            "identify_speaker",
            "get_known_people",
            "who_said_that",
            "get_last_seen",
            "what_is_there",
        ]
    );
    assert_eq!(
        of(Effect::Write),
        [
            "gesture_while_speaking",
            "remember_place",
            "forget_place",
            "enable_fire_detection",
            "scan_motors",
            "recover_servo",
            "enable_degraded_mode",
            "set_motor_id",
            "set_home_position",
            "save_config",
            "load_config",
            "enroll_person",
            "enroll_voice",
            "forget_person",
        ]
    );
    assert_eq!(of(Effect::Motion).len(), TOOLS - 2 - 13 - 14);
}

#[test]
fn what_a_robot_lacks_is_not_listed() {
    let everything = names(&as_model("johnny5"));
    let lacking = |model: &str| -> Vec<String> {
        let has = names(&as_model(model));
        everything
            .iter()
            .filter(|name| !has.contains(*name))
            .cloned()
            .collect()
    };
    let legged = [
        "calibrate_arm",
        "calibrate_base",
        "calibrate_gantry",
        "calibrate_hitch",
        "calibrate_lift",
        "check_servos",
        "check_torque",
        "dock_charger",
        "enable_degraded_mode",
        "enable_torque",
        "forget_place",
        "go_to_place",
        "hitch",
        "lift",
        "list_places",
        "load_config",
        "recover_servo",
        "remember_place",
        "save_config",
        "scan_motors",
        "servo_health_report",
        "set_home_position",
        "set_motor_id",
        "setup_robot",
        "test_motor",
        "tow_cart",
    ];
    assert_eq!(lacking("booster_k1"), legged);
    let mut headless: Vec<&str> = legged
        .into_iter()
        .chain(["look_at", "look_at_speaker", "nod"])
        .collect();
    headless.sort_unstable();
    assert_eq!(lacking("unitree_g1"), headless);
}

#[test]
fn a_lost_part_degrades_and_says_so() {
    let headless = as_model("unitree_g1");
    for (tool, args) in [
        ("express", json!({"emotion": "proud"})),
        ("pick_object", json!({"object": "cup"})),
        ("place_object", json!({"location": "table"})),
        ("dance", json!({})),
        ("turn", json!({"target": "right"})),
    ] {
        let output = headless.invoke(tool, args).unwrap();
        // Its hand feels nothing: what it closed on, and what it put down, may be air.
        let sure = !tool.ends_with("_object");
        assert_eq!(output["success"], sure, "{tool}: {output:#}");
        assert_eq!(
            output["message"]
                .to_string()
                .contains("cannot tell whether right_arm h"),
            !sure,
            "{tool}: {output:#}"
        );
        let notes = output["data"]["notes"].to_string();
        assert!(notes.contains("it has no gantry"), "{tool}: {notes}");
    }
    let output = headless.invoke("motor_status", json!({"subsystem": "lift"}));
    let error = output.unwrap_err().to_string();
    assert_eq!(error, "NotSupported: not supported by it: lift");
}

#[test]
fn with_several_robots_a_call_names_one() {
    let two = Harness::open::<Robots>(json!({"robots": {
        "five": {"sim": {"time_scale": 500}},
        "one": {"sim": {"time_scale": 500, "model": "unitree_g1"}},
    }}))
    .unwrap();
    let wave = two.tool("wave").argument_schema;
    assert_eq!(wave["properties"]["robot"]["enum"], json!(["five", "one"]));
    assert_eq!(wave["required"], json!(["robot"]));

    let plan = two
        .plan("wave", json!({"robot": "one", "arm": "right"}))
        .unwrap()
        .unwrap();
    assert_eq!(plan[0].subsystems, ["one/right_arm"]);
    let output = two.invoke("wave", json!({"robot": "five"})).unwrap();
    assert_eq!(output["data"]["robot"], "five");
    let output = two
        .invoke("gesture_while_speaking", json!({"robot": "one"}))
        .unwrap();
    assert_eq!(output["success"], true, "{output:#}");

    for (args, expected) in [
        (
            json!({}),
            "ValueError: robot: required, expected one of five, one",
        ),
        (
            json!({"robot": "six"}),
            "ValueError: robot: unknown robot \"six\", expected one of five, one",
        ),
        (json!({"robot": 6}), "ValueError: robot: expected a name"),
    ] {
        assert_eq!(two.invoke("wave", args).unwrap_err().to_string(), expected);
    }
    // The tool is there because one robot has a lift; the other says that it has none.
    let error = two
        .invoke("lift", json!({"robot": "one", "action": "up"}))
        .unwrap_err();
    assert_eq!(error.to_string(), "NotSupported: not supported by one: lift");
}

#[test]
fn degrees_are_taken_as_numbers_too() {
    let robot = as_model("johnny5");
    for (tool, degrees) in [("turn", json!(-45)), ("turn", json!("-45"))] {
        let schema = &robot.tool(tool).argument_schema["properties"]["target"];
        assert_eq!(schema["type"], json!(["string", "number"]), "{tool}: {schema:#}");
        assert!(schema.get("anyOf").is_none(), "{tool}: {schema:#}");
        let done = robot.invoke(tool, json!({"target": degrees})).unwrap();
        assert_eq!(done["success"], true, "{tool} {degrees}: {done:#}");
    }
    let beyond = robot.plan("turn", json!({"target": 400})).unwrap_err();
    assert!(
        beyond
            .failure
            .to_string()
            .contains("target: expected -360 to 360")
    );
}

#[test]
fn a_note_outlives_what_the_call_has_changed() {
    // It has no head to look with.
    let robot = as_model("unitree_g1");
    let pointed = robot.invoke("point_at_person", json!({"name": "Ada"})).unwrap();
    assert_eq!(
        (&pointed["success"], &pointed["data"]["notes"][0]),
        (&json!(true), &json!("it has no gantry")),
        "{pointed:#}"
    );
    let again = robot
        .invoke("point_at_person", json!({"name": "Ada"}))
        .unwrap_err();
    assert_eq!(again.kind, "RateLimited");
}

#[test]
fn what_was_not_done_is_no_success() {
    let config = json!({"robots": {"five": {"sim": {"time_scale": 500, "cart": false}}}});
    let robot = Harness::open::<Robots>(config).unwrap();
    for (tool, args, reason) in [
        (
            "place_object",
            json!({"location": "table"}),
            "right_arm holds nothing",
        ),
        ("tow_cart", json!({}), "no cart is attached"),
    ] {
        let done = robot.invoke(tool, args).unwrap();
        assert!(
            done["success"] == false && done["message"].to_string().contains(reason),
            "{tool}: {done:#}"
        );
    }
    // It drives as without a cart: sideways, too.
    let aside = robot
        .invoke("move_base", json!({"direction": "left", "distance": 0.1}))
        .unwrap();
    assert_eq!(aside["success"], true, "{aside:#}");
}
