//! The toolbox `ros` behind the real service: what it moves is ended when its process is killed.

use rustix::process::{Signal, kill_process};
use serde_json::json;

use crate::robot::peers::domain;
use crate::robot::ros_base::{base, velocities};
use crate::support::client::Client;
use crate::support::scene::{Scene, ready};
use crate::support::service::{BusKind, plugins_with};
use crate::support::status::{pid, toolbox};

/// The base follows its last velocity, or its goal, for ever: it comes to rest by the stop that the service has sent, or not at all.
#[test]
fn what_the_graph_was_told_is_ended_when_the_toolbox_is_killed() {
    let domain = domain();
    let Some(base) = base("twist", domain) else { return };
    let scene = Scene::new(&json!({}));
    let allow = json!({"publish": {"/cmd_vel": {"seconds": 60}}, "goal": {"/navigate_to_pose": {}}});
    let section = json!({"domain": domain, "interfaces": ["127.0.0.1"], "distro": "humble", "allow": allow});
    scene.configure(
        &json!({}),
        &json!({"PHAL": {"ovos-phal-plugin-tools": {"ros": section}}}),
    );
    let _bus = scene.bus(BusKind::Embedded);
    let mut client = Client::connect(scene.port);
    let plugins = plugins_with("ros");
    let mut service = scene.ours("service", &["serve", "--plugins", plugins.to_str().unwrap()]);
    ready(&mut service, &mut client);
    let drive = json!({"topic": "/cmd_vel", "message": {"linear": {"x": 0.2}}, "seconds": 60});
    let goal = json!({"action": "/navigate_to_pose", "goal": {"pose": {"pose": {"position": {"x": 500}, "orientation": {"w": 1}}}}});
    for (call_id, tool, args) in [("drive", "ros_publish", drive), ("goal", "ros_goal", goal)] {
        client.send(
            "ovos.tools.invoke",
            &json!({"name": tool, "args": args, "call_id": call_id}),
        );
    }
    base.until("\"twist\": 0.2");
    base.until("\"goal\"");
    kill_process(pid(&toolbox(&mut client, "ros")).unwrap(), Signal::KILL).unwrap();
    base.wait("zero last", |_| {
        velocities(&base)
            .last()
            .filter(|(_, speed)| *speed == 0.0)
            .map(|_| ())
    });
    base.until("\"canceled\"");
    for call_id in ["drive", "goal"] {
        let answer = client.until("the answer", |frame| {
            let is_answer =
                frame["type"] == "ovos.tools.invoke.response" && frame["data"]["call_id"] == call_id;
            is_answer.then(|| frame["data"].clone())
        });
        assert!(answer["error"].is_string(), "{answer:#}");
    }
    // It comes back in emergency stop, and moves nothing until a person has lifted that.
    let refused = client.ask(
        "ovos.tools.invoke",
        &json!({"name": "ros_publish", "args": {"topic": "/cmd_vel", "message": {}}}),
    );
    assert!(
        refused["error"]
            .as_str()
            .unwrap_or_default()
            .contains("emergency stop"),
        "{refused:#}"
    );
}
