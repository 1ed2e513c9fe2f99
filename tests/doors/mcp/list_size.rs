//! How much of a model's attention the list of tools costs, with the toolboxes that ship.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::mcp::door::binary;
use crate::mcp::sessions::{initialize, message};
use crate::support::client::Client;
use crate::support::process::Process;
use crate::support::scene::{Scene, ready};
use crate::support::service::BusKind;

/// What `make run` shows: every toolbox, with simulators.
const WITH_SIMULATORS: usize = 25_000;

/// What an installed service shows where nothing was asked for.
const INSTALLED: usize = 8_000;

/// The list of a door as a client at its stdin gets it.
fn listed(scene: &Scene) -> Vec<Value> {
    let mut command = scene.sandbox.command(binary());
    let mut door = command
        .args(["--bus", &scene.url()])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = door.stdin.take().unwrap();
    let mut lines = BufReader::new(door.stdout.take().unwrap()).lines();
    writeln!(stdin, "{}", initialize()).unwrap();
    lines.next().expect("an answer").unwrap();
    let list = message(2, &json!({"method": "tools/list", "params": {}}), false);
    writeln!(stdin, "{list}").unwrap();
    let answer = lines.find(|line| line.as_ref().unwrap().contains("\"id\":2"));
    let answer: Value = serde_json::from_str(&answer.expect("an answer").unwrap()).unwrap();
    drop(stdin);
    door.wait().unwrap();
    answer["result"]["tools"].as_array().expect("tools").clone()
}

/// A service with the toolboxes that ship, and the bus it is on.
fn service(scene: &Scene, plugins: &Path, toolboxes: &[&str], more: &[&str]) -> (Process, Process) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = Command::new(root.join("scripts/plugins.sh"))
        .arg("debug")
        .arg(plugins)
        .args(toolboxes)
        .status()
        .expect("scripts/plugins.sh runs");
    assert!(built.success(), "the toolboxes that ship do not build");
    let bus = scene.bus(BusKind::Embedded);
    let mut client = Client::connect(scene.port);
    let folder = plugins.to_str().unwrap();
    let arguments = [&["serve", "--plugins", folder], more].concat();
    let mut service = scene.ours("service", &arguments);
    ready(&mut service, &mut client);
    (bus, service)
}

fn check(toolboxes: &[&str], more: &[&str], most: usize) -> Vec<String> {
    let (scene, plugins) = (Scene::new(&json!({})), tempfile::tempdir().unwrap());
    let _running = service(&scene, plugins.path(), toolboxes, more);
    let tools = listed(&scene);
    let bytes = json!({ "tools": tools }).to_string().len();
    let mut sizes: Vec<(usize, &str)> = tools
        .iter()
        .map(|tool| (tool.to_string().len(), tool["name"].as_str().unwrap()))
        .collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    println!("{} tools in {bytes} bytes", tools.len());
    assert!(
        bytes < most,
        "{} tools in {bytes} bytes, at most {most} are wanted; the largest are {:?}",
        tools.len(),
        &sizes[..10]
    );
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn every_toolbox_with_simulators_is_a_list_of_25_kb() {
    let folders = [
        "examples/hello",
        "examples/hello_c",
        "toolboxes/math",
        "toolboxes/robot",
        "toolboxes/drone",
        "toolboxes/gstreamer",
    ];
    let names = check(&folders, &["--simulators"], WITH_SIMULATORS);
    let has = |name: &str| names.iter().any(|listed| listed == name);
    for shown in [
        "emergency_stop",
        "stop_moving",
        "wave",
        "turn",
        "pick_object",
        "takeoff",
        "hold",
        "land",
        "add",
    ] {
        assert!(has(shown), "{shown} is shown");
    }
    // The toolboxes' own emergency stops, the workshop, and what waits for a recogniser.
    for hidden in [
        "stop",
        "emergency_brake",
        "reset_stop",
        "calibrate_arm",
        "set_motor_id",
        "get_visible_people",
    ] {
        assert!(!has(hidden), "{hidden} is hidden");
    }
}

#[test]
fn an_installed_service_is_a_list_of_8_kb() {
    check(&["toolboxes/math", "toolboxes/gstreamer"], &[], INSTALLED);
}
