//! Servers whose tools are called like those of a machine: like its aliases, its stops, topics of the bus, in other cases and
//! scripts. None of them is called by a name that means the machine, and no rule for the machine is a rule for them.

use std::collections::BTreeSet;
use std::time::Instant;

use serde_json::{Value, json};

use crate::mounts::scene::{Scene, fake};
use crate::support::process::DEADLINE;
use crate::support::service::testbed_plugins;

/// The tools of the server, and the names that its mount gives them.
const TOOLS: [(&str, &str); 22] = [
    ("testbed__assemble", "testbed__assemble"),
    ("testbed::assemble", "testbed__assemble"),
    ("testbed__nothing", "testbed__nothing"),
    ("TestBed__Assemble", "TestBed__Assemble"),
    ("testbed--echo", "testbed--echo"),
    ("testbed__stop", "testbed__stop"),
    ("Testbed__Stop", "Testbed__Stop"),
    ("testbed//STOP", "testbed__STOP"),
    ("stop", "stop"),
    ("Stop", "Stop"),
    ("off__wave", "off__wave"),
    ("off__stop", "off__stop"),
    ("OFF__Stop", "OFF__Stop"),
    ("broken__wave", "broken__wave"),
    ("broken__emergency_stop", "broken__emergency_stop"),
    ("ovos.tools.stop", "ovos_tools_stop"),
    ("agent.run", "agent_run"),
    ("emergency_stop", "emergency_stop"),
    ("EMERGENCY-STOP", "EMERGENCY-STOP"),
    ("ｔestbed__echo", "_estbed__echo"),
    ("stоp", "st_p"),
    ("hello", "hello"),
];

/// The server's tools that keep their own names.
const PLAIN: [&str; 7] = [
    "ovos_tools_stop",
    "agent_run",
    "emergency_stop",
    "EMERGENCY-STOP",
    "_estbed__echo",
    "st_p",
    "hello",
];

/// The names of the server's tools, once each.
fn names() -> BTreeSet<&'static str> {
    TOOLS.iter().map(|(_, name)| *name).collect()
}

/// What a call by the name of a tool of the server does.
#[derive(Debug, PartialEq)]
enum Does {
    /// It calls the server.
    Server,
    /// It stops testbed.
    Stops,
    /// It stops everything, because the tools of the toolbox that the name means are not known.
    StopsAll,
    /// It calls testbed.
    Testbed,
    /// Nothing.
    Nothing,
}

fn does(name: &str) -> Does {
    match name {
        name if PLAIN.contains(&name) => Does::Server,
        "off__stop" | "OFF__Stop" | "broken__emergency_stop" => Does::StopsAll,
        "stop" | "Stop" | "testbed__stop" | "Testbed__Stop" | "testbed__STOP" => Does::Stops,
        "testbed__assemble" => Does::Testbed,
        _ => Does::Nothing,
    }
}

/// A service with testbed, which drives a simulator, and the server.
fn scene(policy: &Value) -> Scene {
    let sections = json!({
        "off": {"enabled": false}, "broken": {"limits": {"grace": 1}},
        "service": {"policy": policy, "operator_tools": true},
    });
    let mut scene = Scene::beside(Some(testbed_plugins()), &[], |sandbox| {
        let words: Vec<String> = TOOLS.iter().map(|(name, _)| format!("named:{name}")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        (json!({ "fake": fake(sandbox, "fake", &words) }), sections)
    });
    scene.until("fake", "ready");
    scene
}

/// The toolboxes that are in emergency stop, which are resumed.
fn latched(scene: &mut Scene) -> Vec<String> {
    let status = scene.client.ask("ovos.tools.status", &json!({}));
    let toolboxes = status["toolboxes"].as_array().unwrap().iter();
    let latched: Vec<&Value> = toolboxes.filter(|toolbox| toolbox["latched"] == true).collect();
    for toolbox in &latched {
        let lift = json!({"toolbox_id": toolbox["toolbox_id"], "stop_id": toolbox["stop_id"]});
        let lifted = scene.client.ask("ovos.tools.resume", &lift);
        assert_eq!(lifted["toolboxes"][0]["ok"], true, "{lifted}");
    }
    let ids = latched
        .iter()
        .map(|toolbox| toolbox["toolbox_id"].as_str().unwrap().to_owned());
    ids.collect()
}

/// The answer to a call that names a tool and no toolbox.
fn invoke(scene: &mut Scene, name: &str) -> Value {
    let call = json!({ "name": name, "args": {} });
    scene.client.ask("ovos.tools.invoke", &call)
}

/// How many calls the server has got.
fn calls(scene: &Scene) -> usize {
    scene.trace("fake").matches("call ").count()
}

#[test]
fn a_server_is_called_only_by_names_that_mean_it() {
    let mut scene = scene(&json!([]));
    for name in names() {
        let before = calls(&scene);
        let answer = invoke(&mut scene, name);
        let to_server = calls(&scene) - before;
        let stopped = latched(&mut scene);
        let error = answer["error"].as_str().unwrap_or_default();
        let found = match (to_server, stopped.as_slice()) {
            (1, []) => Does::Server,
            (0, [one]) if one == "testbed" => Does::Stops,
            (0, [_, ..]) => Does::StopsAll,
            (0, []) if error.starts_with("Unknown tool: '") => Does::Nothing,
            _ => Does::Testbed,
        };
        assert_eq!(found, does(name), "{name}: {answer} {stopped:?}");
        // Its alias means it, and so does its name together with the id of its toolbox.
        let before = calls(&scene);
        let alias = invoke(&mut scene, &format!("fake__{name}"));
        let own = scene.call("fake", name, &json!({}));
        let persona = json!({ "name": name, "kwargs": {} });
        let persona = scene.client.ask("ovos.persona.tools.fake.call", &persona);
        assert_eq!(calls(&scene), before + 3, "{name}: {alias} {own} {persona}");
        assert_eq!(latched(&mut scene), [""; 0], "{name}");
    }
}

#[test]
fn a_toolbox_that_is_off_keeps_its_aliases() {
    let mut scene = scene(&json!([]));
    let off = json!({ "testbed": {"enabled": false}, "service": {"operator_tools": true} });
    let mounts = Scene::mounts_of(&scene.sandbox);
    scene.reload_with(&mounts, &off);
    // The copy that is closed behind the reload's answer is still stopped by its id.
    let end = Instant::now() + DEADLINE;
    let stop = json!({"toolbox_id": "testbed"});
    while scene.client.ask("ovos.tools.stop", &stop)["toolboxes"]
        .as_array()
        .unwrap()
        .len()
        == 1
    {
        assert!(Instant::now() < end, "its last copy never closes");
    }
    assert!(latched(&mut scene).contains(&"fake".to_owned()));
    for (name, stops) in [
        ("testbed__assemble", false),
        ("testbed__nothing", false),
        ("testbed__stop", true),
        ("Testbed__Stop", true),
    ] {
        let before = calls(&scene);
        let answer = invoke(&mut scene, name);
        assert_eq!(calls(&scene), before, "{name}: {answer}");
        let stopped = latched(&mut scene);
        assert_eq!(stopped.contains(&"fake".to_owned()), stops, "{name}: {answer}");
        let error = answer["error"].as_str().unwrap_or_default();
        assert_eq!(error.starts_with("Unknown tool: '"), !stops, "{name}: {answer}");
    }
}

#[test]
fn the_lists_have_one_name_for_each_tool_and_say_which_are_renamed() {
    let mut scene = scene(&json!([]));
    let exported = scene.client.ask("ovos.tools.export", &json!({ "format": "mcp" }));
    let mut seen = BTreeSet::new();
    for tool in exported["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        assert!(seen.insert(name.to_owned()), "{name} is exported twice");
        let own = tool["title"].as_str().unwrap_or(name);
        let found = scene.client.ask("ovos.tools.get", &json!({ "name": name }));
        assert_eq!(found["name"], own, "{name}: {found}");
        assert_eq!(found["description"], tool["description"], "{name}");
    }
    for name in names() {
        let plain = PLAIN.contains(&name);
        assert_eq!(seen.contains(&format!("fake__{name}")), !plain, "{name}");
    }
    let status = scene.client.ask("ovos.tools.status", &json!({}));
    let mut toolboxes = status["toolboxes"].as_array().unwrap().iter();
    let fake = toolboxes.find(|toolbox| toolbox["toolbox_id"] == "fake").unwrap();
    let renamed = fake["renamed_tools"].to_string();
    for name in names().into_iter().filter(|name| !PLAIN.contains(name)) {
        let text = format!("`{name}` is called `fake__{name}`: ");
        assert!(renamed.contains(&text), "no {text:?} in {renamed}");
    }
    // A second server with tools of these names makes more of them ambiguous.
    let mut mounts = Scene::mounts_of(&scene.sandbox);
    mounts["other"] = fake_named(&scene, &["hello", "free"]);
    let operators = json!({ "service": {"operator_tools": true} });
    scene.reload_with(&mounts, &operators);
    scene.until("other", "ready");
    let reloaded = scene.client.ask("ovos.tools.reload", &json!({ "detail": true }));
    assert!(
        reloaded.get("renamed").is_none(),
        "nothing changed since: {reloaded}"
    );
    let list = scene.client.ask("ovos.tools.status", &json!({})).to_string();
    for told in [
        "`hello` is called `fake__hello`: other also has a tool with this name",
        "`hello` is called `other__hello`: fake also has a tool with this name",
    ] {
        assert!(list.contains(told), "no {told:?} in {list}");
    }
    let answer = invoke(&mut scene, "hello");
    let advice = "give toolbox_id, or call 'fake__hello' or 'other__hello'";
    assert!(answer["error"].as_str().unwrap().ends_with(advice), "{answer}");
    let answer = invoke(&mut scene, "fre");
    assert_eq!(answer["error"], "Unknown tool: 'fre': did you mean 'free'?");
}

fn fake_named(scene: &Scene, names: &[&str]) -> Value {
    let words: Vec<String> = names.iter().map(|name| format!("named:{name}")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    fake(&scene.sandbox, "other", &words)
}

#[test]
fn no_rule_for_a_machine_is_a_rule_for_a_server() {
    let wave = json!({ "subsystems": ["left_arm"], "step_ms": 1, "steps": 1 });
    // The columns: a rule; whether the machine's tool runs, and the server's tool of the same name.
    for (rule, machine, server) in [
        (json!({"tools": ["testbed__*"], "decide": "allow"}), true, false),
        (
            json!({"tools": ["testbed__assemble"], "decide": "allow"}),
            true,
            false,
        ),
        (json!({"tools": ["*__assemble"], "decide": "allow"}), true, false),
        (json!({"tools": ["assemble"], "decide": "allow"}), true, false),
        (json!({"tools": ["fake__*"], "decide": "allow"}), false, true),
        (
            json!({"tools": ["fake__testbed__*"], "decide": "allow"}),
            false,
            true,
        ),
        (json!({"tools": ["*"], "decide": "allow"}), true, true),
    ] {
        let mut scene = scene(&json!([rule, {"effects": ["write", "motion"], "decide": "confirm"}]));
        for (toolbox_id, name, args, runs) in [
            ("testbed", "assemble", &wave, machine),
            ("fake", "testbed__assemble", &json!({}), server),
        ] {
            let answer = scene.ask(toolbox_id, name, args, &json!({ "detail": true }));
            assert_eq!(answer.get("result").is_some(), runs, "{rule}: {answer}");
            // Nothing states what a server's tool does, so the question says where that is stated.
            let note = answer["confirm"]["note"].as_str().unwrap_or_default();
            let stated = note.contains("\"testbed__assemble\": \"read\"")
                && note.contains("`service.mounts.fake.effects`");
            assert_eq!(stated, !runs && toolbox_id == "fake", "{rule}: {answer}");
            let error = answer["error"].as_str().unwrap_or_default();
            assert!(
                runs || error.starts_with("ConfirmationRequired: "),
                "{rule}: {answer}"
            );
        }
    }
}
