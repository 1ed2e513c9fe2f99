//! testbed moves its machine, and at a random moment its process or the service is killed, frozen or kept busy: the
//! last motor command is a stop, within a second, and afterwards nothing moves until a resume.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::fixture::FixtureFolder;
use crate::support::process::Process;
use crate::support::scene::{Motor, Scene, monotonic_ns, ready};
use crate::support::service::{BusKind, testbed_plugins};
use crate::support::status::{signal, toolbox_until};
use crate::{SEED, repeated};

/// From the moment something happens until the machine is told to stop.
const AT_REST: Duration = Duration::from_secs(1);

/// The longest time that it moves before something happens.
const MOVES_MS: u64 = 400;

struct Stage {
    scene: Scene,
    client: Client,
    service: Process,
    _bus: Process,
    fixtures: FixtureFolder,
}

impl Stage {
    fn new() -> Self {
        // testbed alone: other toolboxes do not matter here, and a restart is quicker without them.
        let fixtures = FixtureFolder::new();
        fs::copy(
            testbed_plugins().join("testbed.so"),
            fixtures.path().join("testbed.so"),
        )
        .unwrap();
        let scene = Scene::new(&json!({ "max_failures": 0 }));
        let bus = scene.bus(BusKind::Embedded);
        let mut client = Client::connect(scene.port);
        let service = serve(&scene, &fixtures, &mut client);
        Self {
            scene,
            client,
            service,
            _bus: bus,
            fixtures,
        }
    }

    /// Sets the machine in motion and lets it move for a while; returns the number of motor commands before.
    fn drive(&mut self, call_id: &str, spin: bool, random: &mut fastrand::Rng) -> usize {
        let before = self.scene.motors().len();
        let args = json!({ "step_ms": 5, "steps": 400, "timeout_ms": 60_000, "spin": spin });
        self.client.call(call_id, "assemble", &args);
        self.scene.until_moving(call_id);
        let moment = Instant::now() + Duration::from_millis(random.u64(..MOVES_MS));
        self.client.read_until(moment);
        before
    }

    /// Waits until the machine was told to stop, and checks the time. Delays that a busy system adds to a thread
    /// which only reads the clock are subtracted.
    fn rests(&self, since: u64, what: &str) -> Duration {
        let over = AtomicBool::new(false);
        let (stopped, kept) = thread::scope(|threads| {
            let kept = threads.spawn(|| kept_from_us(&over));
            let stopped = self.scene.until_motors("stop", |motors| {
                let last = motors.last().filter(|motor| is_stop(motor))?;
                // Another action of the call may still be running: only a lasting end counts.
                let since_last = Duration::from_nanos(monotonic_ns() - last.at);
                (since_last > Duration::from_millis(100)).then(|| first_of_the_end(motors))
            });
            over.store(true, Ordering::SeqCst);
            (stopped, kept.join().unwrap())
        });
        let took = Duration::from_nanos(stopped.saturating_sub(since));
        assert!(
            took <= AT_REST + kept,
            "{what}: at rest after {took:?}, while {kept:?} were kept from everybody"
        );
        took
    }

    /// Checks that nothing moves until the stop is lifted.
    fn moves_only_after_a_resume(&mut self, what: &str) {
        let toolbox = toolbox_until(&mut self.client, "testbed", "restart", |toolbox| {
            toolbox["state"] == "ready"
        });
        assert_eq!(toolbox["latched"], true, "{what}: {toolbox}");
        let before = self.scene.motors().iter().filter(|motor| moves(motor)).count();
        let refused = self.client.invoke("assemble", &json!({ "steps": 1 }));
        assert!(
            refused["error"]
                .as_str()
                .unwrap_or_default()
                .contains("emergency stop"),
            "{what}: {refused}"
        );
        assert_eq!(
            self.client.invoke("ping", &json!({}))["result"]["pong"],
            true,
            "{what}: what moves nothing works"
        );
        let after = self.scene.motors();
        assert_eq!(
            after.iter().filter(|motor| moves(motor)).count(),
            before,
            "{what}: it moved before it was resumed"
        );
        assert!(after.last().is_some_and(is_stop), "{what}");
        let lift = json!({ "toolbox_id": "testbed", "stop_id": toolbox["stop_id"] });
        let resumed = self.client.ask("ovos.tools.resume", &lift);
        assert_eq!(resumed["toolboxes"][0]["ok"], true, "{what}: {resumed}");
    }
}

/// The sum of the delays with which a thread woke up.
fn kept_from_us(over: &AtomicBool) -> Duration {
    const TICK: Duration = Duration::from_millis(5);
    let mut kept = Duration::ZERO;
    while !over.load(Ordering::SeqCst) {
        let start = Instant::now();
        thread::park_timeout(TICK);
        kept += start.elapsed().saturating_sub(TICK + Duration::from_millis(1));
    }
    kept
}

fn serve(scene: &Scene, fixtures: &FixtureFolder, client: &mut Client) -> Process {
    let mut service = scene.ours(
        "service",
        &["serve", "--plugins", fixtures.path().to_str().unwrap()],
    );
    ready(&mut service, client);
    service
}

fn moves(motor: &Motor) -> bool {
    matches!(motor.kind.as_str(), "start" | "step")
}

fn is_stop(motor: &Motor) -> bool {
    matches!(motor.kind.as_str(), "halt" | "emergency")
}

/// The time of the stop after which nothing moved.
fn first_of_the_end(motors: &[Motor]) -> u64 {
    let moved = motors.iter().rposition(moves).map_or(0, |last| last + 1);
    motors[moved..]
        .iter()
        .find(|motor| is_stop(motor))
        .map_or(u64::MAX, |motor| motor.at)
}

/// Does something to testbed's process while it moves, at each of the moments.
fn at_moments(name: &str, spin: bool, mut disturb: impl FnMut(&mut Stage, &Value)) {
    let mut stage = Stage::new();
    let mut random = fastrand::Rng::with_seed(SEED ^ name.len() as u64);
    let moments = repeated("MOMENTS", 8);
    let mut took = Vec::new();
    for moment in 0..moments {
        let what = format!("{name}, moment {moment} of seed {SEED:#x}");
        let toolbox = toolbox_until(&mut stage.client, "testbed", "readiness", |toolbox| {
            toolbox["state"] == "ready" && toolbox["latched"] == false
        });
        let call_id = format!("call-{moment}");
        let before = stage.drive(&call_id, spin, &mut random);
        let since = monotonic_ns();
        disturb(&mut stage, &toolbox);
        took.push(stage.rests(since, &what));
        stage.client.until_answered([&call_id]);
        let answer = stage.client.only_answer(&call_id).clone();
        let unfinished = answer["result"]["success"] == false || answer["error"].is_string();
        assert!(unfinished, "{what}: {answer}");
        // A reload restarts it at once, without the delay that grows with every crash.
        stage.client.ask("ovos.tools.reload", &json!({}));
        stage.moves_only_after_a_resume(&what);
        assert!(stage.scene.motors().len() > before, "{what}");
    }
    stage.client.invoke("ping", &json!({}));
    for moment in 0..moments {
        stage.client.only_answer(&format!("call-{moment}"));
    }
    took.sort_unstable();
    println!(
        "{name}: {moments} moments, at rest after {:?} at most, {:?} in the middle",
        took[took.len() - 1],
        took[took.len() / 2]
    );
}

#[test]
fn a_process_that_is_killed_leaves_its_machine_at_rest() {
    at_moments("SIGKILL", false, |_, toolbox| signal(toolbox, Signal::KILL));
}

#[test]
fn a_process_that_is_frozen_leaves_its_machine_at_rest() {
    at_moments("SIGSTOP", false, |_, toolbox| signal(toolbox, Signal::STOP));
}

#[test]
fn a_process_that_is_kept_busy_is_stopped_nevertheless() {
    at_moments("busy loop", true, |stage, _| {
        stage
            .client
            .send("ovos.tools.stop", &json!({ "toolbox_id": "testbed" }));
    });
}

#[test]
fn a_service_that_is_killed_leaves_its_machine_at_rest_and_latched() {
    let mut stage = Stage::new();
    let mut random = fastrand::Rng::with_seed(SEED);
    let moments = repeated("MOMENTS", 8);
    let mut took = Vec::new();
    for moment in 0..moments {
        let what = format!("SIGKILL of the service, moment {moment} of seed {SEED:#x}");
        stage.drive(&format!("call-{moment}"), false, &mut random);
        let since = monotonic_ns();
        stage.service.kill();
        took.push(stage.rests(since, &what));
        stage.service = serve(&stage.scene, &stage.fixtures, &mut stage.client);
        stage.moves_only_after_a_resume(&what);
    }
    took.sort_unstable();
    println!(
        "SIGKILL of the service: {moments} moments, at rest after {:?} at most, {:?} in the middle",
        took[took.len() - 1],
        took[took.len() / 2]
    );
}
