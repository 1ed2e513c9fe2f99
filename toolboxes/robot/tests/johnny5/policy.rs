//! A program of the owner has the robot for a time: how it ends, and what the servos do then.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use feetech_sim::{Line, Servo, register as r};
use ovos_toolbox_sdk::testing::{Harness, Run, role_host};
use robot::robots::Robots;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::catalogue::each;
use crate::peers::python;
use crate::servos::within;

/// The variable with the section of the robot that another process of this test drives.
const SECTION: &str = "OVOS_TEST_POLICY_SECTION";

/// An SO-101 whose owner has one program for it.
struct Arm {
    line: Line,
    folder: tempfile::TempDir,
    python: PathBuf,
}

impl Arm {
    fn new() -> Option<Self> {
        let python = python()?;
        role_host(env!("CARGO_BIN_EXE_robot-role"));
        let servos = (1..=6).map(|id| Servo::new(id).at(1990 + u16::from(id)).calibrated(700, 3400, 0));
        Some(Self {
            line: Line::start(servos).unwrap(),
            folder: tempfile::tempdir().unwrap(),
            python,
        })
    }

    fn pids(&self) -> PathBuf {
        self.folder.path().join("pids")
    }

    fn section(&self, behaviour: &str, estop: &str) -> Value {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/policy.py");
        let mut command = json!([self.python, "-u", script, "{port}", self.pids(), behaviour]);
        if behaviour == "is_not_there" {
            command = json!(["/nowhere/lerobot-rollout"]);
        }
        if behaviour == "others_write_it" || behaviour == "others_write_its_folder" {
            let own = self.folder.path().join("own");
            std::fs::create_dir_all(&own).unwrap();
            let program = own.join("rollout");
            std::fs::write(&program, "#!/bin/sh\nexit 0\n").unwrap();
            let (file, folder) = match behaviour {
                "others_write_it" => (0o757, 0o755),
                _ => (0o755, 0o757),
            };
            std::fs::set_permissions(&program, Permissions::from_mode(file)).unwrap();
            std::fs::set_permissions(&own, Permissions::from_mode(folder)).unwrap();
            command = json!([program]);
        }
        if behaviour == "others_write_its_script" {
            let script = self.folder.path().join("rollout.py");
            std::fs::write(&script, "").unwrap();
            std::fs::set_permissions(&script, Permissions::from_mode(0o646)).unwrap();
            command = json!([self.python, "-u", script]);
        }
        // A program that heeds no signal is not waited for.
        let grace = if behaviour.contains("deaf") { 0.5 } else { 20.0 };
        json!({"robots": {"so": {
            "kind": "so101",
            "estop": estop,
            "channels": {"answer_ms": 500, "ports": {"right": self.line.path()}},
            "policies": {"swing": {
                "command": command, "max_seconds": 100, "grace_seconds": grace, "about": "swings",
            }},
        }}})
    }

    fn open(&self, behaviour: &str, estop: &str) -> Harness {
        Harness::open::<Robots>(self.section(behaviour, estop))
            .unwrap()
            .with_deadline(Duration::from_secs(60))
    }

    /// The processes of the program that there are still.
    fn alive(&self) -> Vec<i32> {
        let pids = std::fs::read_to_string(self.pids()).unwrap_or_default();
        let pids = pids.lines().filter_map(|pid| pid.parse().ok());
        pids.filter(|pid: &i32| Path::new(&format!("/proc/{pid}")).exists())
            .collect()
    }

    /// Waits for the motion of the program of a run, unless that ends.
    fn wait_for_motion(&self, run: Option<&Run<'_>>) {
        within("motion of the program", || {
            let ended = run.and_then(|run| run.wait_for(Duration::ZERO));
            assert_eq!(ended, None, "it ended before it moved");
            (self.line.moves() && !self.alive().is_empty()).then_some(())
        });
    }

    fn torque(&self) -> Vec<u8> {
        let torque = |id| self.line.servo(id, |servo| servo.byte(r::TORQUE_ENABLE));
        (1..=6).filter_map(torque).collect()
    }

    fn speeds(&self) -> Vec<u16> {
        let speed = |id| self.line.servo(id, |servo| servo.word(r::GOAL_SPEED));
        (1..=6).filter_map(speed).collect()
    }

    /// Nothing of the program is there, and nothing moves.
    fn is_at_rest(&self, what: &str) {
        assert_eq!(self.alive(), Vec::<i32>::new(), "{what}: it is still there");
        assert!(!self.line.moves(), "{what}: it moves");
    }
}

/// Checks some rows at the same time, not all: each has servos and an interpreter of its own, and the servos of a robot that waits
/// in real time must answer.
fn in_turns<T: Send + Sync>(rows: &[T], check: impl Fn(&T) + Sync) {
    for some in rows.chunks(3) {
        each(some, &check);
    }
}

/// How the program ends, and what the call says: behaviour, seconds, success, the word, a part of the message.
const ENDINGS: &[(&str, f64, bool, &str, &str)] = &[
    ("ends", 30.0, true, "by_itself", "has ended by itself"),
    ("moves", 1.5, true, "time_over", "had its 1.5 s and was ended"),
    ("lets_go", 1.5, true, "time_over", "had its 1.5 s and was ended"),
    (
        "is_interrupted",
        1.5,
        true,
        "time_over",
        "had its 1.5 s and was ended",
    ),
    (
        "fails_at_its_end",
        1.5,
        false,
        "failed",
        "had its 1.5 s, was told to end, and ended with exit code 1; it wrote: no connection to save the recording",
    ),
    (
        "crashes_at_its_end",
        1.5,
        false,
        "failed",
        "had its 1.5 s, was told to end, and ended with signal 6",
    ),
    (
        "loses_its_keeper_to_SIGTERM",
        30.0,
        false,
        "lost",
        "the process that kept it was told to end (SIGTERM)",
    ),
    (
        "loses_its_keeper_to_SIGINT",
        30.0,
        false,
        "lost",
        "the process that kept it was told to end (SIGINT)",
    ),
    (
        "loses_its_keeper_to_SIGHUP",
        30.0,
        false,
        "lost",
        "the process that kept it was told to end (SIGHUP)",
    ),
    (
        "deaf",
        1.5,
        false,
        "made_to_end",
        "with SIGKILL: it did not end after SIGINT",
    ),
    (
        "leaves_one_behind",
        30.0,
        true,
        "by_itself",
        "has ended by itself",
    ),
    (
        "fails",
        30.0,
        false,
        "failed",
        "exit code 1; it wrote: no policy of this name",
    ),
    (
        "does_nothing",
        30.0,
        false,
        "failed",
        "with exit code 0; it wrote nothing",
    ),
    ("floods", 30.0, false, "flooded", "wrote more than 32 MiB"),
    (
        "is_not_there",
        30.0,
        false,
        "not_started",
        "No such file or directory",
    ),
    (
        "others_write_it",
        30.0,
        false,
        "not_started",
        "rollout has mode 0757: others could put code",
    ),
    (
        "others_write_its_folder",
        30.0,
        false,
        "not_started",
        "own has mode 0757: others could put code",
    ),
    (
        "others_write_its_script",
        30.0,
        false,
        "not_started",
        "rollout.py has mode 0646: others could put code",
    ),
];

#[test]
fn a_program_gives_the_arm_back_however_it_ends() {
    if python().is_none() {
        return;
    }
    in_turns(ENDINGS, |&(behaviour, seconds, success, word, part)| {
        let arm = Arm::new().unwrap();
        let robot = arm.open(behaviour, "hold");
        let done = robot
            .invoke("run_policy", json!({"policy": "swing", "seconds": seconds}))
            .unwrap();
        arm.is_at_rest(behaviour);
        assert_eq!(
            (&done["success"], &done["data"]["ended"]),
            (&json!(success), &json!(word)),
            "{behaviour}: {done:#}"
        );
        assert!(done.to_string().contains(part), "{behaviour}: {done:#}");
        assert!(
            done.to_string().contains("no limit of this toolbox holds"),
            "{behaviour}: {done:#}"
        );
        let joints = done["data"]["joints"].as_object().unwrap();
        assert_eq!(joints.len(), 6, "{behaviour}: {done:#}");
        assert_eq!(arm.torque(), [1; 6], "{behaviour}: held with power");
        let sunk = done.to_string().contains("had lost their torque");
        assert_eq!(
            sunk,
            matches!(behaviour, "lets_go" | "fails" | "does_nothing" | "floods") || word == "not_started",
            "{behaviour}: {done:#}"
        );
        // The arm is the toolbox's again.
        let moved = robot.invoke("go_to_pose", json!({"pose": "home"})).unwrap();
        assert_eq!(moved["success"], true, "{behaviour}: {moved:#}");
    });
}

/// A stop of any kind ends the program at once, polite or not; nothing moves after it.
#[test]
fn a_stop_ends_the_program_and_the_motion() {
    if python().is_none() {
        return;
    }
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Stop {
        Cancel,
        Halt,
        Emergency(&'static str),
        Close,
    }
    let rows = [
        Stop::Cancel,
        Stop::Halt,
        Stop::Emergency("hold"),
        Stop::Emergency("torque_off"),
        Stop::Close,
    ];
    in_turns(&rows, |&stop| {
        let arm = Arm::new().unwrap();
        let estop = match stop {
            Stop::Emergency(estop) => estop,
            _ => "hold",
        };
        let robot = arm.open("deaf", estop);
        let plan = robot
            .plan("run_policy", json!({"policy": "swing", "seconds": 90}))
            .unwrap()
            .unwrap();
        assert_eq!(plan[0].subsystems, ["all"], "the whole robot is held");
        let action = plan.into_iter().next().unwrap();
        let run = robot.start_action("run_policy", action, json!({})).unwrap();
        arm.wait_for_motion(Some(&run));
        // Nothing else reaches the servos meanwhile.
        let status = robot.call("check_torque", json!({"subsystem": "right_arm"}));
        assert!(
            format!("{status:?}").contains("its port is with a program"),
            "{status:?}"
        );
        match stop {
            Stop::Cancel => {
                run.cancel();
                // As the service does it after a run that moves.
                _ = run.wait();
                _ = robot.halt(&["all"], false);
            }
            Stop::Halt => _ = robot.halt(&["all"], false),
            Stop::Emergency(_) => _ = robot.halt(&["all"], true),
            Stop::Close => {
                run.cancel();
                _ = run.wait();
                drop(robot.close());
                within("rest", || (!arm.line.moves()).then_some(()));
                arm.is_at_rest("closed");
                assert_eq!(
                    arm.speeds(),
                    [0; 6],
                    "each servo has its own greatest speed again"
                );
                return;
            }
        }
        let ended = run.wait().result();
        assert!(ended.is_err(), "{stop:?}: {ended:?}");
        within("the end of the program", || arm.alive().is_empty().then_some(()));
        within("rest", || (!arm.line.moves()).then_some(()));
        let torque = u8::from(estop == "hold");
        within("the torque after the stop", || {
            (arm.torque() == [torque; 6]).then_some(())
        });
        if stop == Stop::Emergency(estop) {
            let again = robot.invoke("run_policy", json!({"policy": "swing"})).unwrap();
            assert_eq!(again["success"], false, "{stop:?}: {again:#}");
            within("a stop that can be lifted", || robot.resume().ok());
        }
        let moved = robot.invoke("go_to_pose", json!({"pose": "home"})).unwrap();
        assert_eq!(moved["success"], true, "{stop:?}: {moved:#}");
    });
}

/// Not a test: the process that drives the arm in the test below, and is killed there.
#[test]
fn drives_an_arm_where_asked_to() {
    let Ok(section) = std::env::var(SECTION) else {
        return;
    };
    role_host(env!("CARGO_BIN_EXE_robot-role"));
    let robot = Harness::open::<Robots>(serde_json::from_str(&section).unwrap()).unwrap();
    let run = robot
        .invoke("run_policy", json!({"policy": "swing", "seconds": 90}))
        .unwrap();
    panic!("it was to be killed: {run:#}");
}

#[test]
fn the_program_dies_with_a_toolbox_that_is_killed() {
    let Some(arm) = Arm::new() else { return };
    let section = arm.section("is_deaf_with_a_daemon", "hold");
    let mut driver = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "policy::drives_an_arm_where_asked_to", "--nocapture"])
        .env(SECTION, section.to_string())
        .spawn()
        .unwrap();
    arm.wait_for_motion(None);
    let pid = Pid::from_child(&driver);
    kill_process(pid, Signal::KILL).unwrap();
    driver.wait().unwrap();
    // What the service does then, in a process of its own.
    let robot = Harness::open::<Robots>(json!({})).unwrap();
    robot.safe_stop(section).unwrap();
    within("the end of the program", || arm.alive().is_empty().then_some(()));
    within("rest", || (!arm.line.moves()).then_some(()));
}

/// The keeper ends before the ports are lent, or while they are: the robot is not left without its ports.
#[test]
fn a_keeper_that_does_not_start_leaves_the_robot_where_it_is() {
    let Some(arm) = Arm::new() else { return };
    role_host("/bin/false");
    let robot = arm.open("ends", "hold");
    for _ in 0..5 {
        let done = robot.invoke("run_policy", json!({"policy": "swing"})).unwrap();
        assert_eq!(done["success"], false, "{done:#}");
        within("a port that is back", || {
            let status = robot.call("check_torque", json!({"subsystem": "right_arm"}));
            (!format!("{status:?}").contains("its port is with a program")).then_some(())
        });
    }
    let moved = robot.invoke("go_to_pose", json!({"pose": "home"})).unwrap();
    assert_eq!(moved["success"], true, "{moved:#}");
}

#[test]
fn another_program_on_the_port_is_named() {
    let Some(arm) = Arm::new() else { return };
    let port = std::fs::File::options()
        .read(true)
        .write(true)
        .open(arm.line.path())
        .unwrap();
    let mut other = Command::new("sleep").arg("600").stdin(port).spawn().unwrap();
    let robot = arm.open("ends", "hold");
    let done = robot
        .invoke("run_policy", json!({"policy": "swing", "seconds": 30}))
        .unwrap();
    assert_eq!(done["success"], false, "{done:#}");
    let named = format!("sleep (process {}) ", other.id());
    assert!(done.to_string().contains(&named), "{done:#}");
    arm.is_at_rest("beside another program");
    drop(robot.close());
    // A safe stop holds the servos, and does not say that they stay so.
    let robot = Harness::open::<Robots>(json!({})).unwrap();
    // On a busy machine the servos answer too slowly for one.
    let stop = || match robot.safe_stop(arm.section("ends", "hold")) {
        Err(why) if format!("{why:?}").contains("too slowly") => None,
        stopped => Some(stopped),
    };
    let why = format!("{:?}", within("a safe stop", stop).unwrap_err());
    assert!(
        why.contains(&named) && why.contains("may move the servos"),
        "{why}"
    );
    arm.is_at_rest("after the safe stop");
    other.kill().unwrap();
    other.wait().unwrap();
    within("a safe stop", stop).unwrap();
}

#[test]
fn only_what_the_owner_has_named_runs_and_only_so_long() {
    let arm = |policies: Value, simulated: bool| {
        let so = json!({"kind": "so101", "simulated": simulated, "policies": policies});
        Harness::open::<Robots>(json!({"robots": {"so": so}}))
    };
    for (policies, wrong) in [
        (json!({"swing": {}}), "robots.so.policies.swing.command: missing"),
        (json!({"swing": {"command": [" "]}}), "expected a program"),
        (
            json!({"swing": {"command": ["x"], "max_seconds": 1e9}}),
            "policies.swing.max_seconds: 1000000000 is out of range, expected 1 to 3600 seconds",
        ),
        (json!({"swing": {"command": ["x"], "shell": "y"}}), "shell"),
        (
            json!({"swing": {"command": ["x", "y".repeat(40_000)], "env": {"z": "y".repeat(30_000)}}}),
            "policies.swing.command: it and env have 70002 bytes, expected at most 65536",
        ),
    ] {
        let error = arm(policies, true).err().unwrap().to_string();
        assert!(error.contains(wrong), "{wrong}: {error}");
    }
    let base = json!({"robots": {"go": {"kind": "unitree-go2", "policies": {"swing": {"command": ["x"]}}}}});
    let error = Harness::open::<Robots>(base).err().unwrap().to_string();
    assert!(
        error.contains("only a robot of Feetech or Dynamixel servos"),
        "{error}"
    );
    let none = arm(json!({}), true).unwrap();
    assert!(none.tools().iter().all(|tool| tool.name != "run_policy"));

    let robot = arm(
        json!({"swing": {"command": ["x"], "max_seconds": 20, "about": "swings"}}),
        true,
    )
    .unwrap();
    let arguments = serde_json::to_value(robot.tool("run_policy"))
        .unwrap()
        .to_string();
    assert!(
        arguments.contains("swing: swings") && !arguments.contains("command"),
        "{arguments}"
    );
    for (args, wrong) in [
        (json!({"policy": "swung"}), "did you mean swing?"),
        (
            json!({"policy": "swing", "seconds": -5}),
            "-5 is out of range, expected 1 to 20 seconds",
        ),
        (
            json!({"policy": "swing", "seconds": 21}),
            "21 is out of range, expected 1 to 20 seconds",
        ),
    ] {
        let error = robot.plan("run_policy", args).err().unwrap().to_string();
        assert!(error.contains(wrong), "{wrong}: {error}");
    }
    let done = robot.invoke("run_policy", json!({"policy": "swing"})).unwrap();
    assert_eq!(done["success"], false, "{done:#}");
    assert!(done.to_string().contains("its servos are simulated"), "{done:#}");
}
