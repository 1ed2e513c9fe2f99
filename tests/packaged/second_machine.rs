//! Robot, drone and GStreamer on one machine, used from another one: its command line, its MCP door and its page drive them like
//! toolboxes of its own, and what breaks between the two ends the motion.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::page::{Machines, is_seen_and_stopped};
use crate::support::client::Client;
use crate::support::fabric::{self, succeeds};
use crate::support::mcp::StdioClient;
use crate::support::process::{DEADLINE, Process, free_port};
use crate::support::proxy::{Proxy, Weather};
use crate::support::scene::{Scene, ready};
use crate::support::service::BusKind;
use crate::support::status::{toolbox, toolbox_until};

const TOOLBOXES: [&str; 3] = ["robot", "drone", "gstreamer"];

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_ovos-tools")).with_file_name(name)
}

/// The machine with the hardware.
struct Robot {
    scene: Scene,
    machines: Machines,
    port: u16,
    host: Process,
}

impl Robot {
    /// `None` where something is missing that is named.
    fn new() -> Option<Self> {
        let scene = Scene::new(&json!({}));
        let machines = Machines::in_folder_of(&scene)?;
        scene.configure(&json!({}), &machines.sections);
        succeeds(&scene.sandbox, &["init", "robot1"]);
        succeeds(&scene.sandbox, &["invite", "laptop", "--role", "operator"]);
        let port = free_port();
        let host = Self::host(&scene, &machines, port);
        Some(Self {
            scene,
            machines,
            port,
            host,
        })
    }

    fn host(scene: &Scene, machines: &Machines, port: u16) -> Process {
        let mut command = scene.sandbox.command(fabric::program());
        command
            .args([
                "host",
                "--simulators",
                "--listen",
                &format!("127.0.0.1:{port}"),
                "--plugins",
            ])
            .arg(&machines.folder);
        let mut host = Process::start("host", &scene.sandbox, command);
        host.until("a host that is ready", |host| {
            host.output().contains("is ready on").then_some(())
        });
        host
    }

    fn restart(&mut self) {
        self.host = Self::host(&self.scene, &self.machines, self.port);
    }
}

impl Drop for Robot {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.host.log());
        }
    }
}

impl Drop for Laptop {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.service.log());
        }
    }
}

/// The machine with the service.
struct Laptop {
    scene: Scene,
    client: Client,
    service: Process,
    network: Proxy,
    _bus: Process,
}

impl Laptop {
    fn of(robot: &Robot) -> Self {
        let scene = Scene::new(&json!({}));
        let network = Proxy::to(robot.port);
        succeeds(
            &scene.sandbox,
            &[
                "join",
                robot.scene.sandbox.path("laptop.fabric").to_str().unwrap(),
            ],
        );
        let at = format!("127.0.0.1:{}", network.port);
        let mount = |toolbox: &str| {
            let args = ["mount", "robot1", toolbox, "--at", &at];
            (
                toolbox.to_owned(),
                json!({"command": fabric::program(), "args": args}),
            )
        };
        let programs: serde_json::Map<String, Value> = TOOLBOXES.into_iter().map(mount).collect();
        let page = format!("127.0.0.1:{}", free_port());
        let service =
            json!({"programs": programs, "operator_tools": true, "doors": {"console": {"address": page}}});
        scene.configure(&service, &json!({}));
        let bus = scene.bus(BusKind::Embedded);
        let mut client = Client::connect(scene.port);
        let service = serve(&scene, &mut client);
        let mut this = Self {
            scene,
            client,
            service,
            network,
            _bus: bus,
        };
        for toolbox in TOOLBOXES {
            this.until_reached(toolbox);
        }
        this
    }

    fn restart(&mut self) {
        self.service = serve(&self.scene, &mut self.client);
    }

    #[track_caller]
    fn until_reached(&mut self, id: &str) -> Value {
        toolbox_until(&mut self.client, id, "contact with its host", |toolbox| {
            toolbox["state"] == "ready"
                && toolbox["tools"] != 0
                && toolbox["backend"]["state"] != "unreachable"
        })
    }

    /// What a tool returned.
    #[track_caller]
    fn run(&mut self, name: &str, args: &Value) -> Value {
        self.client.result(&self.service, name, args)
    }

    /// The command line succeeds and prints this.
    #[track_caller]
    fn tells(&self, words: &[&str], expected: &str) {
        let mut command = self.scene.sandbox.command(program("ovos-tools"));
        let ran = command
            .args(["--bus", &self.scene.url()])
            .args(words)
            .output()
            .unwrap();
        let output =
            String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
        assert!(
            ran.status.success() && output.contains(expected),
            "{words:?}: {output}"
        );
    }

    /// Starts a call and waits until it runs.
    fn begin(&mut self, call_id: &str, name: &str, args: &Value) {
        let call = json!({"name": name, "args": args, "call_id": call_id, "toolbox_id": "robot"});
        self.client.send("ovos.tools.invoke", &call);
        self.client.until_call(call_id, "running");
    }

    #[track_caller]
    fn resume(&mut self, id: &str) {
        let end = Instant::now() + DEADLINE;
        loop {
            let latched = toolbox(&mut self.client, id);
            if latched["latched"] == false {
                return;
            }
            let asked = json!({"toolbox_id": id, "stop_id": latched["stop_id"]});
            let answer = self.client.ask("ovos.tools.resume", &asked);
            assert!(Instant::now() < end, "{answer}");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }
}

fn serve(scene: &Scene, client: &mut Client) -> Process {
    let folder = scene.sandbox.path("plugins");
    std::fs::create_dir_all(&folder).unwrap();
    let mut service = scene.ours("service", &["serve", "--plugins", folder.to_str().unwrap()]);
    ready(&mut service, client);
    service
}

/// A client of the MCP door at stdin and stdout, which asks for progress.
fn model(laptop: &Laptop) -> StdioClient {
    let mut command: Command = laptop.scene.sandbox.command(program("ovos-tools-mcp"));
    let door = command
        .args(["--bus", &laptop.scene.url()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut client = StdioClient::of(door);
    client.wants_progress = true;
    client
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

/// The result of a call.
#[track_caller]
fn result(model: &mut StdioClient, name: &str, arguments: &Value) -> Value {
    let answer = model.ask("tools/call", call(name, arguments));
    assert_eq!(answer["result"]["isError"], false, "{name}: {answer}");
    answer["result"].clone()
}

#[test]
fn the_machines_of_another_host_are_seen_and_stopped_in_a_browser() {
    let Some(robot) = Robot::new() else { return };
    let mut laptop = Laptop::of(&robot);
    is_seen_and_stopped(
        &laptop.scene,
        &mut laptop.client,
        &laptop.service,
        robot.machines.has_gstreamer,
    );
    // Both sides hold the stop: the host's is lifted with the service's.
    for id in ["robot", "drone"] {
        assert_eq!(toolbox(&mut laptop.client, id)["latched"], true, "{id}");
        laptop.resume(id);
    }
    laptop.run("wave", &json!({"arm": "left"}));
}

#[test]
fn the_command_line_and_a_model_use_the_machines_of_another_host() {
    let Some(robot) = Robot::new() else { return };
    let mut laptop = Laptop::of(&robot);
    for (words, expected) in [
        (["invoke", "wave", "arm=left"], "simulated"),
        (["plan", "walk", "duration=1"], "motion"),
        (["invoke", "vehicle_health", "--toolbox=drone"], "armable"),
    ] {
        laptop.tells(&words, expected);
    }
    let mut model = model(&laptop);
    let walked = result(&mut model, "walk", &json!({"duration": 2}));
    assert!(model.progress > 0, "no progress: {walked}");
    if robot.machines.has_gstreamer {
        let pipeline = "videotestsrc is-live=true ! video/x-raw,width=320,height=240 ! fakesink";
        laptop.run("start_pipeline", &json!({"pipeline": pipeline, "name": "door"}));
        // It writes there, so a person at this machine says that it may.
        let snapshot = json!({"instance_id": "door", "inline": true});
        let refused = model.ask("tools/call", call("take_snapshot", &snapshot));
        let asked = &refused["result"]["structuredContent"]["error"]["id"];
        laptop.tells(&["approve", asked.as_str().unwrap()], "");
        let picture = result(&mut model, "take_snapshot", &snapshot);
        let blocks = picture["content"].as_array().unwrap();
        let image = blocks.iter().find(|block| block["type"] == "image");
        assert!(
            image.is_some_and(|image| image["data"].as_str().unwrap().len() > 200),
            "{picture}"
        );
    }
    // A model that cancels ends the motion there.
    let id = model.send("tools/call", call("walk", &json!({"duration": 20})));
    laptop.client.until_phases(&[("running", 1)]);
    model.cancel(id);
    laptop.client.until_phases(&[]);
    laptop.run("walk", &json!({"duration": 0.5}));
}

/// What breaks while robot and drone move.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Link,
    Host,
    Service,
    Both,
}

#[test]
fn what_breaks_between_two_machines_ends_the_motion_and_is_not_resumed_by_itself() {
    let Some(mut robot) = Robot::new() else { return };
    let mut laptop = Laptop::of(&robot);
    for fault in [Fault::Link, Fault::Host, Fault::Service, Fault::Both] {
        let call = format!("{fault:?}");
        laptop.begin(&call, "walk", &json!({"duration": 20}));
        match fault {
            Fault::Link => laptop.network.set(Weather::Cut),
            Fault::Host => robot.host.kill(),
            Fault::Service => laptop.service.kill(),
            Fault::Both => {
                laptop.service.kill();
                robot.host.kill();
            }
        }
        if matches!(fault, Fault::Link | Fault::Host) {
            laptop.client.until_answered([&call]);
            let answer = laptop.client.only_answer(&call).clone();
            assert!(!answer["error"].is_null(), "{fault:?}: {answer}");
        }
        if matches!(fault, Fault::Host | Fault::Both) {
            // The port is free when the host has ended.
            let end = Instant::now() + DEADLINE;
            while TcpStream::connect(("127.0.0.1", robot.port)).is_ok() {
                assert!(Instant::now() < end, "{fault:?}: the port is still taken");
            }
            robot.restart();
        }
        if matches!(fault, Fault::Service | Fault::Both) {
            laptop.restart();
        }
        laptop.network.set(Weather::Sound);
        for id in TOOLBOXES {
            laptop.until_reached(id);
        }
        let state = toolbox_until(&mut laptop.client, "robot", "latch", |toolbox| {
            toolbox["latched"] == true
        });
        let refused = laptop.client.ask(
            "ovos.tools.invoke",
            &json!({"name": "walk", "args": {"duration": 1}}),
        );
        let why = refused["error"].as_str().unwrap_or_default();
        assert!(
            why.starts_with("EmergencyStop: "),
            "{fault:?}: {refused}, {state}"
        );
        laptop.resume("robot");
        laptop.run("walk", &json!({"duration": 0.5}));
    }
}
