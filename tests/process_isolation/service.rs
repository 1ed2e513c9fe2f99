//! A real service with a bus of its own and a toolbox that moves.

use std::fs;
use std::process::Command;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::fixture::Workshop;
use crate::motion::Motor;
use crate::process::{Process, Sandbox, free_port};

struct Service {
    process: Process,
    sandbox: Sandbox,
    motor: Motor,
    port: u16,
    _shop: Workshop,
}

impl Service {
    fn start(fixture: &str) -> Self {
        Self::start_with(fixture, &json!({}))
    }

    /// With additional keys in the toolbox's section.
    fn start_with(fixture: &str, more: &Value) -> Self {
        let shop = Workshop::new();
        shop.build(fixture, &[]);
        let port = free_port();
        let sandbox = Sandbox::with_bus(port);
        let motor = Motor(sandbox.path("motor"));
        let mut toolbox = json!({ "motor": motor.0 });
        for (key, value) in more.as_object().unwrap() {
            toolbox[key] = value.clone();
        }
        let conf = json!({
            "websocket": { "host": "127.0.0.1", "port": port },
            "PHAL": { "ovos-phal-plugin-tools": { "hostile": toolbox } },
        });
        fs::write(sandbox.path("config/mycroft/mycroft.conf"), conf.to_string()).unwrap();
        let mut command = sandbox.command(env!("CARGO_BIN_EXE_ovos-tools"));
        command
            .args(["serve", "--embedded-bus", "always", "--plugins"])
            .arg(shop.path());
        let process = Process::start("ovos-tools", &sandbox, command);
        let mut service = Self {
            process,
            sandbox,
            motor,
            port,
            _shop: shop,
        };
        service.toolbox_until("a toolbox", |toolbox| toolbox["state"] == "ready");
        service
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.sandbox.command(env!("CARGO_BIN_EXE_ovos-tools"));
        command
            .args(["--bus", &format!("ws://127.0.0.1:{}/core", self.port), "--json"])
            .args(arguments);
        command
    }

    fn ask(&self, arguments: &[&str]) -> Option<Value> {
        let answer = self.command(arguments).output().unwrap();
        serde_json::from_slice(&answer.stdout).ok()
    }

    /// Waits until the only toolbox is as it should be.
    fn toolbox_until(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let command = self.command(&["--timeout", "2", "status"]);
        let mut command = Some(command);
        self.process.until(what, |_| {
            let answer = command.as_mut()?.output().ok()?;
            let status: Value = serde_json::from_slice(&answer.stdout).ok()?;
            let toolbox = status["toolboxes"].get(0)?.clone();
            fits(&toolbox).then_some(toolbox)
        })
    }

    /// Sets the machine in motion.
    fn drive(&mut self, tool: &str) -> Process {
        let moved = self.motor.commands().len();
        let call = Process::start("call", &self.sandbox, self.command(&["invoke", tool]));
        let motor = &self.motor;
        self.process
            .until("motion", |_| (motor.commands().len() > moved).then_some(()));
        call
    }
}

fn pid(toolbox: &Value) -> Pid {
    Pid::from_raw(toolbox["pid"].as_i64().unwrap().try_into().unwrap()).unwrap()
}

#[test]
fn a_toolbox_that_dies_in_motion_is_latched_and_moves_again_only_after_a_resume() {
    let mut service = Service::start("moves");
    let toolbox = service.toolbox_until("readiness", |_| true);
    assert_eq!(toolbox["isolation"], "process");
    let mut call = service.drive("drive");
    let since = Instant::now();
    kill_process(pid(&toolbox), Signal::KILL).unwrap();
    service.motor.rests(since, "SIGKILL of the toolbox");
    call.end_within(crate::fixture::DEADLINE);
    let answer = call.output();
    assert!(
        answer.contains("ToolboxCrashed") && answer.contains("SIGKILL"),
        "{answer}"
    );

    let toolbox = service.toolbox_until("a restart", |toolbox| {
        toolbox["generation"] == 2 && toolbox["state"] == "ready"
    });
    assert_eq!(
        (&toolbox["latched"], &toolbox["restarts"]),
        (&json!(true), &json!(1)),
        "{toolbox}"
    );
    assert!(
        toolbox["last_death"].as_str().unwrap().contains("SIGKILL"),
        "{toolbox}"
    );
    let commands = service.motor.commands();
    let refused = service.ask(&["invoke", "drive"]).unwrap();
    assert!(
        refused["error"].as_str().unwrap().contains("emergency stop"),
        "{refused}"
    );
    assert!(service.ask(&["invoke", "look"]).unwrap()["result"].is_object());
    let moved = |commands: &[String]| commands.iter().filter(|command| *command == "move").count();
    assert_eq!(
        moved(&service.motor.commands()),
        moved(&commands),
        "nothing moves until a resume"
    );

    let stop_id = toolbox["stop_id"].as_str().unwrap().to_owned();
    let resumed = service.ask(&["resume", "hostile", &stop_id]).unwrap();
    assert_eq!(resumed["toolboxes"][0]["ok"], true, "{resumed}");
    drop(service.drive("drive"));
}

#[test]
fn a_service_that_is_killed_leaves_nothing_in_motion() {
    let mut service = Service::start("moves");
    let toolbox = service.toolbox_until("readiness", |_| true);
    let call = service.drive("drive");
    let since = Instant::now();
    service.process.signal(Signal::KILL);
    service.motor.rests(since, "SIGKILL of the service");
    let orphan = format!("/proc/{}", toolbox["pid"]);
    while std::path::Path::new(&orphan).exists() {
        assert!(
            since.elapsed() < crate::fixture::DEADLINE,
            "the toolbox's process stays behind"
        );
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
    assert_eq!(service.motor.commands().last().unwrap(), "stop");
    drop(call);
}

#[test]
fn a_service_that_is_killed_while_a_halt_hangs_leaves_nothing_in_motion() {
    let mut service = Service::start("sleeps_in_halt");
    let call = service.drive("move");
    let since = Instant::now();
    service.process.signal(Signal::KILL);
    service
        .motor
        .rests(since, "SIGKILL of the service of a toolbox that hangs");
    drop(call);
}

#[test]
fn a_toolbox_whose_process_is_told_to_end_comes_to_rest_by_itself() {
    let mut service = Service::start("moves");
    let toolbox = service.toolbox_until("readiness", |_| true);
    let call = service.drive("drive");
    let since = Instant::now();
    kill_process(pid(&toolbox), Signal::TERM).unwrap();
    service.motor.rests(since, "SIGTERM of the toolbox");
    let toolbox = service.toolbox_until("a restart", |toolbox| toolbox["generation"] == 2);
    assert_eq!(toolbox["latched"], true, "{toolbox}");
    drop(call);
}

#[test]
fn a_confinement_in_the_configuration_is_enforced() {
    if !crate::kernel::can_confine() {
        return;
    }
    let mut service = Service::start_with("reaches_out", &json!({ "confine": {} }));
    let toolbox = service.toolbox_until("readiness", |_| true);
    let status = fs::read_to_string(format!("/proc/{}/status", toolbox["pid"])).unwrap();
    let filters = status.lines().find(|line| line.starts_with("Seccomp:")).unwrap();
    assert!(filters.ends_with('2'), "it has no filter: {filters}");
    let answer = service.ask(&["invoke", "work"]).unwrap();
    assert!(answer["result"].is_object(), "{answer}");
}
