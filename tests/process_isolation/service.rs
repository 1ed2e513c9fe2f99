//! A real service with a bus of its own and a toolbox that moves.

use std::fs;
use std::path::Path;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::motion::Motor;
use crate::support::fixture::FixtureFolder;
use crate::support::process::Process;
use crate::support::service_with_bus::ServiceWithBus;

/// A service whose only toolbox moves.
struct Robot {
    service: ServiceWithBus,
    motor: Motor,
    _fixtures: FixtureFolder,
}

impl Robot {
    fn start(fixture: &str) -> Self {
        Self::start_with(fixture, &json!({}))
    }

    /// With additional keys in the toolbox's section.
    fn start_with(fixture: &str, more: &Value) -> Self {
        let fixtures = FixtureFolder::new();
        fixtures.build(fixture, &[]);
        let program = Path::new(env!("CARGO_BIN_EXE_ovos-tools"));
        let service = ServiceWithBus::start(program, fixtures.path(), |sandbox| {
            let mut toolbox = more.clone();
            toolbox["motor"] = json!(sandbox.path("motor"));
            json!({ "hostile": toolbox })
        });
        let mut robot = Self {
            motor: Motor(service.sandbox.path("motor")),
            service,
            _fixtures: fixtures,
        };
        robot.toolbox_until("a toolbox", |toolbox| toolbox["state"] == "ready");
        robot
    }

    /// Waits until the only toolbox is as it should be.
    fn toolbox_until(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        self.service.toolboxes_until(what, |toolboxes| {
            toolboxes.first().filter(|toolbox| fits(toolbox)).cloned()
        })
    }

    /// Sets the machine in motion.
    fn drive(&mut self, tool: &str) -> Process {
        let moved = self.motor.commands().len();
        let command = self.service.command(&["invoke", tool]);
        let call = Process::start("call", &self.service.sandbox, command);
        let motor = &self.motor;
        self.service
            .process
            .until("motion", |_| (motor.commands().len() > moved).then_some(()));
        call
    }
}

fn pid(toolbox: &Value) -> Pid {
    Pid::from_raw(toolbox["pid"].as_i64().unwrap().try_into().unwrap()).unwrap()
}

#[test]
fn a_toolbox_that_dies_in_motion_is_latched_and_moves_again_only_after_a_resume() {
    let mut robot = Robot::start("moves");
    let toolbox = robot.toolbox_until("readiness", |_| true);
    assert_eq!(toolbox["isolation"], "process");
    let mut call = robot.drive("drive");
    let since = Instant::now();
    kill_process(pid(&toolbox), Signal::KILL).unwrap();
    robot.motor.rests(since, "SIGKILL of the toolbox");
    call.end_within(crate::support::fixture::DEADLINE);
    let answer = call.output();
    assert!(
        answer.contains("ToolboxCrashed") && answer.contains("SIGKILL"),
        "{answer}"
    );

    let toolbox = robot.toolbox_until("a restart", |toolbox| {
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
    let commands = robot.motor.commands();
    let refused = robot.service.ask(&["invoke", "drive"]);
    assert!(
        refused["error"].as_str().unwrap().contains("emergency stop"),
        "{refused}"
    );
    assert!(robot.service.ask(&["invoke", "look"])["result"].is_object());
    let moved = |commands: &[String]| commands.iter().filter(|command| *command == "move").count();
    assert_eq!(
        moved(&robot.motor.commands()),
        moved(&commands),
        "nothing moves until a resume"
    );

    let stop_id = toolbox["stop_id"].as_str().unwrap().to_owned();
    let resumed = robot.service.ask(&["resume", "hostile", &stop_id]);
    assert_eq!(resumed["toolboxes"][0]["ok"], true, "{resumed}");
    drop(robot.drive("drive"));
}

#[test]
fn a_service_that_is_killed_leaves_nothing_in_motion() {
    let mut robot = Robot::start("moves");
    let toolbox = robot.toolbox_until("readiness", |_| true);
    let call = robot.drive("drive");
    let since = Instant::now();
    robot.service.process.signal(Signal::KILL);
    robot.motor.rests(since, "SIGKILL of the service");
    let orphan = format!("/proc/{}", toolbox["pid"]);
    while std::path::Path::new(&orphan).exists() {
        assert!(
            since.elapsed() < crate::support::fixture::DEADLINE,
            "the toolbox's process stays behind"
        );
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
    assert_eq!(robot.motor.commands().last().unwrap(), "stop");
    drop(call);
}

#[test]
fn a_service_that_is_killed_while_a_halt_hangs_leaves_nothing_in_motion() {
    let mut robot = Robot::start("sleeps_in_halt");
    let call = robot.drive("move");
    let since = Instant::now();
    robot.service.process.signal(Signal::KILL);
    robot
        .motor
        .rests(since, "SIGKILL of the service of a toolbox that hangs");
    drop(call);
}

#[test]
fn a_toolbox_whose_process_is_told_to_end_comes_to_rest_by_itself() {
    for signal in [Signal::TERM, Signal::HUP, Signal::QUIT] {
        let mut robot = Robot::start("moves");
        let toolbox = robot.toolbox_until("readiness", |_| true);
        let call = robot.drive("drive");
        let since = Instant::now();
        kill_process(pid(&toolbox), signal).unwrap();
        robot.motor.rests(since, &format!("{signal:?} of the toolbox"));
        let toolbox = robot.toolbox_until("a restart", |toolbox| toolbox["generation"] == 2);
        assert_eq!(toolbox["latched"], true, "{toolbox}");
        drop(call);
    }
}

#[test]
fn a_confinement_in_the_configuration_is_enforced() {
    if !crate::support::kernel::can_confine() {
        return;
    }
    let mut robot = Robot::start_with("reaches_out", &json!({ "confine": {} }));
    let toolbox = robot.toolbox_until("readiness", |_| true);
    let status = fs::read_to_string(format!("/proc/{}/status", toolbox["pid"])).unwrap();
    let filters = status.lines().find(|line| line.starts_with("Seccomp:")).unwrap();
    assert!(filters.ends_with('2'), "it has no filter: {filters}");
    let answer = robot.service.ask(&["invoke", "work"]);
    assert!(answer["result"].is_object(), "{answer}");
}
