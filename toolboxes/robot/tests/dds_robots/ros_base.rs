//! A base in a graph of ROS, made of the published Cyclone DDS: what it is told, what it tells, and how it is stopped.

mod arms;
mod comings;
mod eyes;
pub(crate) mod over_rosbridge;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use ovos_toolbox_sdk::testing::Harness;
use robot::robots::Robots;
use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::each;
use crate::peers::{LOOPBACK, Peer, domain, python};

/// A base and the toolbox that drives it, alone in a domain.
struct Scene {
    base: Peer,
    harness: Harness,
    config: Value,
    _folder: tempfile::TempDir,
}

fn base(kind: &str, domain: u16) -> Option<Peer> {
    base_that(kind, domain, "drives")
}

/// A base that does something besides.
fn base_that(kind: &str, domain: u16, does: &str) -> Option<Peer> {
    peer("base_cyclonedds.py", &[kind, &domain.to_string(), does])
}

/// A peer of the published Cyclone DDS.
fn peer(script: &str, arguments: &[&str]) -> Option<Peer> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ros-graph/tests/python");
    let mut command = Command::new(python()?);
    command
        .arg("-u")
        .arg(folder.join(script))
        .args(arguments)
        .env("CYCLONEDDS_URI", LOOPBACK);
    let peer = Peer::run(script, command);
    peer.until("ready");
    Some(peer)
}

fn scene(kind: &str, robot: &str) -> Option<Scene> {
    let domain = domain();
    Some(driven(base(kind, domain)?, robot, channels(domain, 8000)))
}

/// How the base is reached.
fn channels(domain: u16, discovery_ms: u64) -> Value {
    json!({
        "ros": {"domain": domain, "interfaces": ["127.0.0.1"], "discovery_ms": discovery_ms},
        "battery": "/battery_state", "scan": {"topic": "/scan"},
        "navigate": {"action": "/navigate_to_pose"},
    })
}

fn driven(base: Peer, robot: &str, channels: Value) -> Scene {
    scene_of(base, robot, channels, None)
}

/// A peer and the toolbox that drives it, by a file of an owner where there is one.
fn scene_of(base: Peer, robot: &str, channels: Value, file: Option<&str>) -> Scene {
    scene_bounded(base, robot, channels, file, None)
}

fn scene_bounded(
    base: Peer,
    robot: &str,
    channels: Value,
    file: Option<&str>,
    bounds: Option<Value>,
) -> Scene {
    let folder = tempfile::tempdir().unwrap();
    let mut config = json!({
        "robots": {"hal": {"kind": robot, "channels": channels}}, "data_dir": folder.path(),
    });
    if let Some(bounds) = bounds {
        config["robots"]["hal"]["bounds"] = bounds;
    }
    if let Some(file) = file {
        let robots = folder.path().join("robots");
        std::fs::create_dir(&robots).unwrap();
        std::fs::write(robots.join(format!("{robot}.toml")), file).unwrap();
        config["robots_dir"] = json!(robots);
    }
    let harness = Harness::open::<Robots>(config.clone())
        .unwrap()
        .with_deadline(Duration::from_secs(60));
    Scene {
        base,
        harness,
        config,
        _folder: folder,
    }
}

/// Seconds, on the clock of the base.
pub(crate) fn now() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    #[allow(
        clippy::cast_precision_loss,
        reason = "the seconds since the start of the machine"
    )]
    let seconds = now.tv_sec as f64 + now.tv_nsec as f64 / 1e9;
    seconds
}

impl Scene {
    /// When the base was told which velocity ahead.
    fn velocities(&self) -> Vec<(f64, f64)> {
        let lines = self.base.lines();
        let frames = lines
            .iter()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let velocity = |frame: Value| {
            let keys = ["twist", "stamped", "cmd_vel"];
            let speed = keys.iter().find_map(|key| frame[*key].as_f64())?;
            Some((frame["t"].as_f64()?, speed))
        };
        frames.filter_map(velocity).collect()
    }

    /// Starts a tool's one action.
    fn start(&self, tool: &str, args: Value) -> ovos_toolbox_sdk::testing::Run<'_> {
        let plan = self.harness.plan(tool, args).unwrap().unwrap();
        self.harness
            .start_action(tool, plan.into_iter().next().unwrap(), json!({}))
            .unwrap()
    }

    fn moves(&self) {
        self.base.wait("a velocity", |_| {
            self.velocities()
                .last()
                .filter(|(_, speed)| *speed > 0.0)
                .map(drop)
        });
    }

    /// How long after `since` the first zero came, in milliseconds; nothing but zeros comes after it.
    fn rests_after(&self, since: f64) -> f64 {
        let zero = self.base.wait("three zeros", |_| {
            let received = self.velocities();
            let after = |(at, speed): &&(f64, f64)| *at >= since && *speed == 0.0;
            let first = received.iter().find(after)?.0;
            (received.iter().filter(after).count() >= 3).then_some(first)
        });
        let received = self.velocities();
        assert!(
            received.iter().all(|(at, speed)| *at < zero || *speed == 0.0),
            "{received:?}"
        );
        (zero - since) * 1000.0
    }
}

#[test]
fn a_base_goes_as_far_as_its_odometry_says_in_either_type() {
    for kind in ["twist", "stamped"] {
        let Some(scene) = scene(kind, "turtlebot3") else {
            return;
        };
        for (tool, args, key, expected, within) in [
            (
                "move_base",
                json!({"direction": "forward", "distance": 0.3}),
                "distance_m",
                0.3,
                0.05,
            ),
            (
                "move_base",
                json!({"direction": "rotate_right", "degrees": 45}),
                "turned_degrees",
                -45.0,
                8.0,
            ),
            (
                "walk",
                json!({"direction": "forward", "speed": 0.2, "duration": 1.0}),
                "distance_m",
                0.2,
                0.08,
            ),
        ] {
            let done = scene.harness.invoke(tool, args).unwrap();
            assert_eq!(done["success"], true, "{kind}: {done:#}");
            let measured = done["data"][key].as_f64().unwrap();
            assert!((measured - expected).abs() < within, "{kind} {tool}: {done:#}");
        }
        let sideways = scene.harness.invoke("move_base", json!({"direction": "left"}));
        assert!(
            !sideways.is_ok_and(|done| done["success"] == true),
            "a base without side wheels"
        );
    }
}

/// What was seen and counted a while ago is not where the base is now.
#[test]
fn a_base_that_is_told_rarely_neither_runs_into_things_nor_says_that_it_stood() {
    let Some(scene) = scene("twist", "turtlebot3") else {
        return;
    };
    scene.base.say("sleepy");
    let walk = json!({"direction": "forward", "speed": 0.2, "duration": 0.4});
    let done = scene.harness.invoke("walk", walk).unwrap();
    let metres = done["data"]["distance_m"].as_f64().unwrap();
    assert!((0.04..0.16).contains(&metres), "{done:#}");

    for word in ["house", "rare"] {
        scene.base.say(word);
    }
    let towards = json!({"direction": "forward", "distance": 2.0, "speed": 0.2});
    let ended = format!("{:?}", scene.harness.invoke("move_base", towards));
    assert!(ended.contains("an obstacle is"), "{ended}");
    let lines = scene.base.lines();
    let stood = lines.iter().rev().find_map(|line| {
        let frame: Value = serde_json::from_str(line).ok()?;
        (frame["twist"] == 0.0).then(|| frame["x"].as_f64()).flatten()
    });
    let free = 1.0 - stood.unwrap();
    assert!(
        (0.27..0.6).contains(&free),
        "it stands {free} m before a house: 0.3 expected"
    );
}

/// What keeps within a radius has to know where it is.
#[test]
fn a_base_with_a_radius_does_not_drive_before_it_knows_where_it_is() {
    let domain = domain();
    let Some(base) = base("twist", domain) else { return };
    let mut channels = channels(domain, 8000);
    channels["navigate"]["pose"] = json!("/amcl_pose");
    let scene = scene_bounded(base, "turtlebot3", channels, None, Some(json!({"radius": 2.0})));
    let ended = scene.harness.invoke(
        "walk",
        json!({"direction": "forward", "speed": 0.2, "duration": 0.4}),
    );
    let ended = format!("{ended:?}");
    assert!(ended.contains("does not know where it is"), "{ended}");
    let velocities = scene.velocities();
    assert!(
        velocities.iter().all(|(_, speed)| *speed == 0.0),
        "{velocities:?}"
    );
}

#[test]
fn a_base_tells_of_itself_and_has_its_own_tools() {
    let Some(scene) = scene("twist", "turtlebot3") else {
        return;
    };
    // Sensors come a little after the velocity's listener.
    let read = |tool: &str| {
        scene.base.wait(tool, |_| {
            let read = scene.harness.invoke(tool, json!({})).unwrap();
            (read["success"] == true).then_some(read["data"].clone())
        })
    };
    let battery = read("battery_status");
    assert_eq!(
        (&battery["percent"], &battery["charges"]),
        (&json!(50.0), &json!(false))
    );
    assert_eq!(read("way_ahead")["ahead_m"], json!(5.0));
    assert!(
        read("list_places")["position"]["frame"]
            .as_str()
            .unwrap()
            .starts_with("odom-")
    );
    let on = scene.harness.invoke("motor_power_on", json!({})).unwrap();
    assert_eq!(on["success"], true, "{on:#}");
    // The service says no, and so does the tool.
    let off = scene.harness.invoke("motor_power_off", json!({})).unwrap();
    assert_eq!(off["success"], false, "{off:#}");
    assert!(off["message"].as_str().unwrap().contains("off"), "{off:#}");
    scene.base.until("\"power\": false");
}

/// Stuck, blocked, silent, frozen, deaf, of another type: over either carrier.
#[test]
fn what_was_not_done_is_said_and_never_a_success() {
    type Meet = fn(&str) -> Option<Scene>;
    type Row = (
        &'static str,
        Meet,
        &'static str,
        Option<&'static str>,
        &'static str,
    );
    let dds: Meet = |kind| scene(kind, "turtlebot3");
    let rosbridge: Meet = over_rosbridge::scene;
    let rows: [Row; 13] = [
        ("dds", dds, "twist", Some("stuck"), "does not move"),
        ("dds", dds, "twist", Some("wall"), "an obstacle is"),
        (
            "dds",
            dds,
            "twist",
            Some("second scanner"),
            "several scanners publish there",
        ),
        ("dds", dds, "twist", Some("second count"), "odometry jumped by 5"),
        ("dds", dds, "twist", Some("silent"), "silent"),
        ("dds", dds, "twist", Some("SIGSTOP"), "silent"),
        ("dds", dds, "deaf", None, "nothing subscribes to /cmd_vel"),
        (
            "dds",
            dds,
            "text",
            None,
            "/cmd_vel is std_msgs/msg/String in the graph",
        ),
        ("rosbridge", rosbridge, "twist", Some("stuck"), "does not move"),
        ("rosbridge", rosbridge, "twist", Some("silent"), "silent"),
        ("rosbridge", rosbridge, "twist", Some("SIGSTOP"), "silent"),
        (
            "rosbridge",
            rosbridge,
            "deaf",
            None,
            "nothing subscribes to /cmd_vel",
        ),
        (
            "rosbridge",
            rosbridge,
            "text",
            None,
            "/cmd_vel is std_msgs/msg/String in the graph",
        ),
    ];
    let check = |&(carrier, meet, kind, said, expected): &Row| {
        let Some(scene) = meet(kind) else { return };
        let case = format!("{carrier}, {kind} {said:?}");
        let walk = json!({"direction": "forward", "speed": 0.2, "duration": 20.0});
        let ended = match said {
            Some(said) => {
                let run = scene.start("walk", walk);
                scene.moves();
                match said {
                    "SIGSTOP" => scene.base.signal(Signal::STOP),
                    word => scene.base.say(word),
                }
                let ended = run.wait().result().map_err(|failure| format!("{failure:?}"));
                scene.base.signal(Signal::CONT);
                ended
            }
            None => {
                // Nothing was begun on a base that does not hear; one that hears something else may be moved by another.
                let halted = scene.harness.halt(&["base"], true);
                assert_eq!(halted.is_ok(), kind == "deaf", "{case}: {halted:?}");
                let stopped = scene.harness.safe_stop(scene.config.clone()).unwrap_err();
                assert!(stopped.to_string().contains(expected), "{case}: {stopped}");
                scene.harness.resume().unwrap();
                scene
                    .harness
                    .invoke("walk", walk)
                    .map_err(|failure| format!("{failure:?}"))
            }
        };
        let text = match ended {
            Ok(done) => {
                assert_eq!(done["success"], false, "{case}: {done:#}");
                done.to_string()
            }
            Err(failure) => failure,
        };
        assert!(text.contains(expected), "{case}: {text}");
        if said.is_some() {
            scene.base.wait("three zeros at the end", |_| {
                let zeros = scene
                    .velocities()
                    .into_iter()
                    .rev()
                    .take_while(|(_, speed)| *speed == 0.0);
                (zeros.count() >= 3).then_some(())
            });
        }
    };
    // More bases at a time fall silent on a machine that is busy.
    rows.chunks(3).for_each(|some| each(some, check));
}

/// A goal that is accepted after the stop is cancelled all the same: no goal goes on without its call.
#[test]
fn a_goal_that_is_accepted_after_the_stop_is_cancelled() {
    for emergency in [false, true] {
        let Some(scene) = scene("twist", "nav2-base") else {
            return;
        };
        scene.base.say("hesitates");
        let run = scene.start("navigate_to", json!({"x": 500.0, "y": 0.0}));
        scene.base.until("\"asked\"");
        scene.harness.cancel(run.id());
        scene.harness.halt(&["base"], emergency).unwrap();
        let ended = run.wait().result();
        assert!(!ended.is_ok_and(|done| done["success"] == true));
        scene.base.until("\"goal\"");
        scene.base.until("\"canceled\"");
    }
}

#[test]
fn a_stop_reaches_the_base_at_once_and_ends_its_goal() {
    for (kind, emergency) in [("twist", false), ("stamped", true)] {
        let Some(scene) = scene(kind, "turtlebot3") else {
            return;
        };
        let run = scene.start(
            "walk",
            json!({"direction": "forward", "speed": 0.2, "duration": 30.0}),
        );
        scene.moves();
        let since = now();
        scene.harness.cancel(run.id());
        scene.harness.halt(&["base"], emergency).unwrap();
        let late = scene.rests_after(since);
        println!("{kind}: the first zero {late:.1} ms after the halt");
        // The goal is 20 ms; a machine that does other things as well is given more.
        assert!(late < 200.0, "{late} ms");
        let _ = run.wait();
    }
    let Some(scene) = scene("twist", "nav2-base") else {
        return;
    };
    let run = scene.start("navigate_to", json!({"x": 500.0, "y": 0.0}));
    scene.base.until("\"goal\"");
    scene.harness.cancel(run.id());
    scene.harness.halt(&["base"], true).unwrap();
    scene.base.until("\"canceled\"");
    let _ = run.wait();
}

#[test]
fn a_create3_docks_and_is_stopped_by_its_own_stop() {
    let Some(scene) = scene("twist", "create3") else {
        return;
    };
    let call = |tool: &str| scene.harness.invoke(tool, json!({})).unwrap();
    for tool in ["dock", "undock"] {
        let done = call(tool);
        assert_eq!(done["success"], true, "{done:#}");
    }
    scene.base.say("misses");
    let missed = call("dock");
    let why = missed["message"].as_str().unwrap();
    assert!(
        why.contains("the robot says is_docked: false, not true"),
        "{missed:#}"
    );
    let run = scene.start("undock", json!({}));
    scene.base.wait("a fourth goal", |lines| {
        (lines.iter().filter(|line| line.contains("\"goal\"")).count() == 4).then_some(())
    });
    scene.harness.cancel(run.id());
    scene.harness.halt(&["base"], true).unwrap();
    scene.base.until("\"canceled\"");
    scene.base.until("\"e_stop\": true");
    assert!(!run.wait().result().is_ok_and(|done| done["success"] == true));
    scene.harness.resume().unwrap();
    scene.base.until("\"e_stop\": false");
}

#[test]
fn an_emergency_ends_with_the_vendors_stop_which_the_resume_lifts() {
    let domain = domain();
    let Some(first) = base("twist", domain) else {
        return;
    };
    let mut channels = channels(domain, 8000);
    // The peer's answer to false is that it did not do it.
    channels["emergency"] = json!({"service": "/motor_power", "on": {"data": true}, "off": {"data": false}});
    let scene = driven(first, "turtlebot3", channels.clone());
    let power = |on: bool| scene.base.until(&format!("\"power\": {on}"));
    scene.harness.halt(&["base"], true).unwrap();
    power(true);
    scene.harness.resume().unwrap();
    power(false);

    // A stop without an instance says everything that failed.
    channels["emergency"] = json!({"service": "/motor_power", "on": {"data": false}});
    for deaf in [false, true] {
        if deaf {
            channels["velocity"]["topic"] = json!("/nobody_hears");
        }
        let mut refused = scene.config.clone();
        refused["robots"]["hal"]["channels"] = channels.clone();
        let stopped = scene.harness.safe_stop(refused).unwrap_err().to_string();
        assert!(stopped.contains("/motor_power refused: off"), "{stopped}");
        assert_eq!(stopped.contains("/nobody_hears"), deaf, "{stopped}");
        assert!(!stopped.contains("not connected"), "{stopped}");
    }
}

#[test]
fn a_goal_is_pursued_to_its_end() {
    let Some(scene) = scene("twist", "nav2-base") else {
        return;
    };
    let done = scene
        .harness
        .invoke("navigate_to", json!({"x": 3.0, "y": 0.0}))
        .unwrap();
    assert_eq!(done["success"], true, "{done:#}");
    scene.base.until("\"reached\"");
    let refused = scene
        .harness
        .invoke("navigate_to", json!({"x": 5000.0, "y": 0.0}));
    assert!(
        !refused.is_ok_and(|done| done["success"] == true),
        "a goal that was not accepted"
    );
}

#[test]
fn a_stop_without_an_instance_says_zero_and_cancels_every_goal() {
    let Some(scene) = scene("twist", "nav2-base") else {
        return;
    };
    let run = scene.start("navigate_to", json!({"x": 500.0, "y": 0.0}));
    scene.base.until("\"goal\"");
    let since = (now(), Instant::now());
    scene.harness.safe_stop(scene.config.clone()).unwrap();
    scene.base.until("\"canceled\"");
    let late = scene.rests_after(since.0);
    println!(
        "the first zero {late:.0} ms after the start of the safe stop, which took {:?}",
        since.1.elapsed()
    );
    assert!(late < 2000.0, "{late} ms");
    let _ = run.wait();
}
