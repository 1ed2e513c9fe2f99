//! Two machines in two folders: a robot that hosts testbed, and services that mount it. Read [`Robot`], then [`Assistant`].

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::fabric::{fabric, program, succeeds};
use crate::support::process::{DEADLINE, Process, free_port};
use crate::support::proxy::Proxy;
use crate::support::scene::{Motor, Scene, ready};
use crate::support::service::{BusKind, testbed_plugins};
use crate::support::status::toolbox_until;

/// A robot: the machine where the fabric was made, and its host.
pub(super) struct Robot {
    /// Its files, and the motor log of its toolbox.
    pub(super) scene: Scene,
    pub(super) port: u16,
    pub(super) host: Process,
    more: Vec<&'static str>,
}

impl Robot {
    /// A robot that knows these machines.
    pub(super) fn new(peers: &[(&str, &str)]) -> Self {
        Self::with(peers, &[])
    }

    /// The same, whose own certificate is valid for so long.
    pub(super) fn valid_for(time: Duration, peers: &[(&str, &str)]) -> Self {
        let scene = Scene::new(&json!({}));
        succeeds(&scene.sandbox, &["init", "robot1", "--days", &days(time)]);
        Self::of(scene, peers, &[])
    }

    /// The same, whose host has more arguments.
    pub(super) fn with(peers: &[(&str, &str)], more: &[&'static str]) -> Self {
        Self::on(Scene::new(&json!({})), peers, more)
    }

    /// The same, with this configuration.
    pub(super) fn on(scene: Scene, peers: &[(&str, &str)], more: &[&'static str]) -> Self {
        succeeds(&scene.sandbox, &["init", "robot1"]);
        Self::of(scene, peers, more)
    }

    fn of(scene: Scene, peers: &[(&str, &str)], more: &[&'static str]) -> Self {
        for (name, role) in peers {
            succeeds(&scene.sandbox, &["invite", name, "--role", role]);
        }
        let port = free_port();
        let host = start_host(&scene, port, more);
        Self {
            scene,
            port,
            host,
            more: more.to_vec(),
        }
    }

    /// A further robot of the fabric that `first` made, with `laptop` as its operator.
    pub(super) fn joining(first: &Self, name: &str) -> Self {
        let scene = Scene::new(&json!({}));
        succeeds(&first.scene.sandbox, &["invite", name, "--role", "viewer"]);
        let file = first.invitation(name);
        succeeds(&scene.sandbox, &["join", file.to_str().unwrap()]);
        succeeds(&scene.sandbox, &["allow", "laptop", "--role", "operator"]);
        let port = free_port();
        let host = start_host(&scene, port, &[]);
        let more = Vec::new();
        Self {
            scene,
            port,
            host,
            more,
        }
    }

    /// Starts the host again after its end.
    pub(super) fn restart(&mut self) {
        self.host = start_host(&self.scene, self.port, &self.more);
    }

    /// The file with which a machine joins.
    pub(super) fn invitation(&self, name: &str) -> PathBuf {
        self.scene.sandbox.path(&format!("{name}.fabric"))
    }

    /// The motor commands after the first `from`.
    pub(super) fn motors(&self, from: usize) -> Vec<Motor> {
        self.scene.motors().split_off(from)
    }

    /// Waits until motors step, after the first `from` commands.
    #[track_caller]
    pub(super) fn until_moving(&self, from: usize) {
        self.scene.until_motors("step", |motors| {
            let later = motors.get(from..)?;
            later.iter().any(|motor| motor.kind == "step").then_some(())
        });
    }
}

/// A time, as `--days` takes it.
pub(super) fn days(time: Duration) -> String {
    (time.as_secs_f64() / 86_400.0).to_string()
}

pub(super) fn start_host(scene: &Scene, port: u16, more: &[&str]) -> Process {
    let plugins = testbed_plugins();
    let mut command = scene.sandbox.command(program());
    let listen = format!("127.0.0.1:{port}");
    command
        .args(["host", "--listen", &listen, "--plugins"])
        .arg(plugins)
        .args(more);
    let mut host = Process::start("host", &scene.sandbox, command);
    host.until("a host that is ready", |host| {
        host.output().contains("is ready on").then_some(())
    });
    host
}

/// A machine with a bus and a service that mounts the robot's toolboxes.
pub(super) struct Assistant {
    pub(super) scene: Scene,
    pub(super) client: Client,
    pub(super) service: Process,
    pub(super) proxy: Proxy,
    _bus: Process,
}

impl Assistant {
    /// A machine that joins the robot's fabric and mounts its testbed.
    pub(super) fn new(name: &str, robot: &Robot) -> Self {
        Self::with(name, robot, &[])
    }

    /// The same, whose mounts say something else of what they start: `lies` are keys of its call and of its action.
    pub(super) fn lying(name: &str, robot: &Robot, lies: &Value) -> Self {
        // Beside the robot's files, as a file that nobody else can write.
        let script = robot.scene.sandbox.path("lies.py");
        fs::write(&script, include_str!("../scripts/lies.py")).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o644)).unwrap();
        let before = ["/usr/bin/python3", script.to_str().unwrap(), &lies.to_string()].map(str::to_owned);
        Self::with(name, robot, &before)
    }

    /// The same, with a command that starts the mounts.
    fn with(name: &str, robot: &Robot, before: &[String]) -> Self {
        let proxy = Proxy::to(robot.port);
        let at = format!("127.0.0.1:{}", proxy.port);
        let mount = |toolbox: &str, more: &[&str]| {
            let args = [&["mount", "robot1", toolbox, "--at", &at][..], more].concat();
            let args = args.into_iter().map(str::to_owned);
            let command = [before, &[program().to_str().unwrap().to_owned()]].concat();
            let args: Vec<String> = command[1..].iter().cloned().chain(args).collect();
            json!({ "command": command[0], "args": args })
        };
        let programs = json!({
            "testbed": mount("testbed", &[]),
            "robot1_dup": mount("testbed_dup", &["--id", "robot1_dup"]),
        });
        let mut this = Self::mounting(name, robot, proxy, &programs);
        this.until_reached();
        this
    }

    /// A machine that joins the fabric that `robot` made, with these programs.
    pub(super) fn mounting(name: &str, robot: &Robot, proxy: Proxy, programs: &Value) -> Self {
        let scene = Scene::new(&json!({}));
        let file = robot.invitation(name);
        succeeds(&scene.sandbox, &["join", file.to_str().unwrap()]);
        // As a person does beside the machine, whatever its backend is known to be just then.
        let service = json!({ "programs": programs, "operator_tools": true });
        scene.configure(&service, &json!({}));
        let bus = scene.bus(BusKind::Embedded);
        let mut client = Client::connect(scene.port);
        let service = serve(&scene, &mut client);
        Self {
            scene,
            client,
            service,
            proxy,
            _bus: bus,
        }
    }

    /// Starts the service again after its end.
    pub(super) fn restart(&mut self) {
        self.service = serve(&self.scene, &mut self.client);
    }

    #[track_caller]
    pub(super) fn until_reached(&mut self) -> Value {
        self.until_reaches("testbed")
    }

    /// Waits until the host of a toolbox is reached.
    #[track_caller]
    pub(super) fn until_reaches(&mut self, toolbox: &str) -> Value {
        toolbox_until(&mut self.client, toolbox, "contact with its host", |toolbox| {
            toolbox["state"] == "ready"
                && toolbox["backend"]["state"] != "unreachable"
                && toolbox["tools"] != 0
                && toolbox["backend"].is_object()
        })
    }

    #[track_caller]
    pub(super) fn until_latched(&mut self) -> String {
        let toolbox = toolbox_until(&mut self.client, "testbed", "latch", |toolbox| {
            toolbox["latched"] == true
        });
        toolbox["stop_id"].as_str().unwrap().to_owned()
    }

    /// Lifts the stop that is in force, also the newer ones that come while it is asked for.
    #[track_caller]
    pub(super) fn resume(&mut self) {
        self.resume_of("testbed");
    }

    /// The same for one of several toolboxes.
    #[track_caller]
    pub(super) fn resume_of(&mut self, id: &str) {
        let end = Instant::now() + DEADLINE;
        loop {
            let toolbox = crate::support::status::toolbox(&mut self.client, id);
            if toolbox["latched"] == false {
                return;
            }
            let asked = json!({ "toolbox_id": id, "stop_id": toolbox["stop_id"] });
            let answer = self.client.ask("ovos.tools.resume", &asked);
            let outcome = &answer["toolboxes"][0];
            assert!(outcome["ok"] == true || Instant::now() < end, "{answer}");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// What `ovos-tools fabric doctor` says of the robot, asked around the proxy.
    pub(super) fn doctor(&self, robot: &Robot) -> String {
        let at = format!("127.0.0.1:{}", robot.port);
        fabric(&self.scene.sandbox, &["doctor", "robot1", &at]).1
    }
}

fn serve(scene: &Scene, client: &mut Client) -> Process {
    let empty = scene.sandbox.path("data");
    let mut service = scene.ours("service", &["serve", "--plugins", empty.to_str().unwrap()]);
    ready(&mut service, client);
    service
}
