//! OVOS's own agents use the tools: python/ovos-tools-toolbox in the published loops, in a persona and behind ovos-core.
//!
//! Each test starts processes and runs one script of tests/python, which asserts and prints. The model is a script, too.

use std::path::Path;

use crate::support::client::Client;
use crate::support::process::{Process, Sandbox};
use crate::support::python::skills_python;
use crate::support::robot::RobotScene;
use crate::support::scene::Scene;
use crate::support::service::BusKind;
use serde_json::json;

/// A script of tests/python in the environment of OVOS's agents.
fn script(python: &Path, name: &str, args: &[&str], sandbox: &Sandbox) -> Process {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python");
    let mut command = sandbox.command(python);
    command.arg("-u").arg(folder.join(name)).args(args);
    Process::start(name, sandbox, command)
}

/// A robot that is four times as fast as a real one.
fn robot() -> RobotScene {
    RobotScene::new(&json!({ "time_scale": 4 }))
}

#[test]
fn the_toolbox_mirrors_the_service() {
    let Some(python) = skills_python() else { return };
    let scene = Scene::new(&json!({}));
    let testbed = json!({ "testbed": { "simulated": false } });
    scene.configure(
        &json!({}),
        &json!({ "PHAL": { "ovos-phal-plugin-tools": testbed } }),
    );
    let (_bus, service, _client) = scene.open();
    let args = [scene.url(), env!("CARGO_BIN_EXE_ovos-tools").to_owned()];
    let output = script(
        python,
        "agents_mirror.py",
        &args.each_ref().map(String::as_str),
        &scene.sandbox,
    )
    .finish();
    assert!(
        output.contains("the toolbox mirrors the service"),
        "{output}\n{}",
        service.log()
    );
}

#[test]
fn a_call_ends_when_the_service_or_the_bus_is_lost() {
    let Some(python) = skills_python() else { return };
    let scene = Scene::new(&json!({}));
    let mut bus = scene.bus(BusKind::Embedded);
    let mut client = Client::connect(scene.port);
    let mut service = scene.service(&mut client);
    let mut agent = script(python, "agents_lost.py", &[], &scene.sandbox);
    let calling = |agent: &mut Process, client: &mut Client, word: &str, tool: &str| {
        agent.until(word, |agent| {
            let calls = agent
                .output()
                .contains(word)
                .then(|| client.ask("ovos.tools.status", &json!({})))?;
            (calls["calls"][0]["name"] == tool).then_some(())
        });
    };
    calling(&mut agent, &mut client, "KILL THE SERVICE", "slow");
    service.kill();
    agent.until("an error", |agent| {
        agent.output().contains("LOST THE SERVICE").then_some(())
    });
    let _service = scene.service(&mut client);
    calling(&mut agent, &mut client, "KILL THE BUS", "assemble");
    bus.kill();
    let _bus = scene.bus(BusKind::Embedded);
    let output = agent.finish();
    assert!(output.contains("the toolbox outlives both"), "{output}");
}

#[test]
fn a_loop_waves_the_arm_and_what_stops_it_brings_it_to_rest() {
    let Some(python) = skills_python() else { return };
    let robot = robot();
    let trace = robot.scene.sandbox.path("trace.jsonl");
    let args = [&robot.scene.url(), trace.to_str().unwrap()];
    let output = script(python, "agents_loop.py", &args, &robot.scene.sandbox).finish();
    assert!(
        output.contains("the loops wave and stop"),
        "{output}\n{}",
        robot.service.log()
    );
}

/// Runs a script that speaks to ovos-core, which is started when the script has written its configuration.
fn spoken(python: &Path, name: &str, robot: &RobotScene) -> String {
    let sandbox = &robot.scene.sandbox;
    let trace = sandbox.path("trace.jsonl");
    let args = [&robot.scene.url(), trace.to_str().unwrap()];
    let mut user = script(python, name, &args, sandbox);
    user.until("a configuration", |user| {
        user.output().contains("START OVOS-CORE").then_some(())
    });
    let mut command = sandbox.command(python);
    command.args(["-m", "ovos_core", "--disable-installer", "--disable-file-watcher"]);
    let core = Process::start("ovos-core", sandbox, command);
    let output = user.finish();
    format!("{output}\n{}", core.log())
}

#[test]
fn an_utterance_waves_the_arm_through_a_persona() {
    let Some(python) = skills_python() else { return };
    let output = spoken(python, "agents_persona.py", &robot());
    assert!(output.contains("the persona waves and stops"), "{output}");
}

#[test]
fn a_persona_asks_by_voice_before_the_arm_moves() {
    let Some(python) = skills_python() else { return };
    let confirm = json!({ "who": "door:toolbox", "effects": ["motion"], "decide": "confirm" });
    let trace = json!({ "five": { "sim": { "time_scale": 4, "trace": "TRACE" } } });
    let robot = RobotScene::with(&json!({ "policy": [confirm] }), &trace);
    let output = spoken(python, "agents_asks.py", &robot);
    assert!(output.contains("the persona asks its user"), "{output}");
}

#[test]
fn an_utterance_has_the_arm_wave_later_through_a_persona() {
    let Some(python) = skills_python() else { return };
    let trace = json!({ "five": { "sim": { "time_scale": 4, "trace": "TRACE" } } });
    let doors = json!({ "schedule": { "start": true } });
    let robot = RobotScene::with(&json!({ "doors": doors }), &trace);
    let output = spoken(python, "agents_later.py", &robot);
    assert!(output.contains("the robot waves in one minute"), "{output}");
}

#[test]
fn a_skill_asks_waves_and_stops_in_real_intents() {
    let Some(python) = skills_python() else { return };
    let confirm = json!({ "who": "bus", "effects": ["motion"], "decide": "confirm" });
    let trace = json!({ "five": { "sim": { "time_scale": 4, "trace": "TRACE" } } });
    let robot = RobotScene::with(&json!({ "policy": [confirm] }), &trace);
    let output = spoken(python, "skill_intent.py", &robot);
    assert!(output.contains("the skill waves and stops"), "{output}");
}
