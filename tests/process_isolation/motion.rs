//! A machine that is a file of motor commands: whatever is done to its process, the last command is a stop.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{RunId, RunResult, Toolbox};
use host::{Hosted, Limits, LiveToolbox};
use ovos_toolbox_wire::{Effect, Start};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::fixture::{DEADLINE, FixtureFolder, Recorder, action, all, opening, process_of, within};

/// From the moment something breaks until the machine is told to stop.
const AT_REST: Duration = Duration::from_secs(1);

/// The file of motor commands.
pub(crate) struct Motor(pub(crate) PathBuf);

impl Motor {
    fn new(fixtures: &FixtureFolder, name: &str) -> Self {
        Self(fixtures.path().join(name))
    }

    pub(crate) fn config(&self) -> String {
        json!({ "motor": self.0 }).to_string()
    }

    pub(crate) fn commands(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until the last command is a stop, and checks that it came in time and stays the last.
    pub(crate) fn rests(&self, since: Instant, what: &str) {
        while self.commands().last().is_none_or(|last| last != "stop") {
            assert!(
                since.elapsed() < 10 * AT_REST,
                "{what}: it still moves: {:?}",
                self.commands().last()
            );
            // No portable way waits for a growing file, so it is polled.
            std::thread::park_timeout(Duration::from_millis(2));
        }
        let took = since.elapsed();
        assert!(took <= AT_REST, "{what}: at rest after {took:?}");
    }
}

pub(crate) fn signal(toolbox: &Hosted, signal: Signal) {
    let pid = Pid::from_raw(toolbox.pid().cast_signed());
    kill_process(pid.unwrap(), signal).unwrap();
}

pub(crate) fn motion(word: &str, epoch: u64) -> Start {
    let mut start = action(word, epoch);
    start.action.effect = Effect::Motion;
    start
}

async fn open(file: &Path, motor: &Motor) -> (Hosted, Arc<Recorder>) {
    let (process, manifest) = process_of(file).await;
    let mut opening = opening(&motor.config());
    opening.limits = Limits::default();
    let seen = Recorder::new();
    let toolbox = Hosted::in_child(process, manifest, opening, seen.clone())
        .await
        .unwrap();
    (toolbox, seen)
}

#[tokio::test]
async fn however_a_process_dies_in_motion_its_machine_is_stopped() {
    let fixtures = FixtureFolder::new();
    let file = fixtures.build("moves", &[]);
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..crate::repeated("MOMENTS", 10) {
        let what = if round % 2 == 0 {
            Signal::KILL
        } else {
            Signal::STOP
        };
        let motor = Motor::new(&fixtures, &format!("motor-{round}"));
        let (toolbox, seen) = open(&file, &motor).await;
        let died = toolbox.died();
        let moving = toolbox.start(RunId(1), motion("wait", 0), None);
        seen.wait_for("moving", 1).await;
        let lines = random.usize(1..20);
        let end = Instant::now() + DEADLINE;
        while motor.commands().len() < lines {
            assert!(
                Instant::now() < end,
                "{what:?} in round {round}: it does not move on"
            );
            std::thread::park_timeout(Duration::from_millis(1));
        }
        let since = Instant::now();
        signal(&toolbox, what);
        assert!(matches!(within(moving).await, RunResult::Lost(_)));
        let death = within(died).await.unwrap();
        assert!(death.moving, "{death:?}");
        motor.rests(since, &format!("{what:?} in round {round}"));
        assert_eq!(seen.count("latched"), 1, "what died in motion is latched");
        within(toolbox.close()).await;
        assert_eq!(
            motor.commands().last().unwrap(),
            "stop",
            "and nothing moves after that"
        );
    }
}

#[tokio::test]
async fn a_busy_loop_in_motion_is_halted() {
    let fixtures = FixtureFolder::new();
    let motor = Motor::new(&fixtures, "motor");
    let (toolbox, seen) = open(&fixtures.build("moves", &[]), &motor).await;
    let spinning = toolbox.start(RunId(1), spin(), None);
    seen.wait_for("moving", 1).await;
    let since = Instant::now();
    within(toolbox.halt(all(false, 0))).await.unwrap();
    motor.rests(since, "a busy loop");
    drop(spinning);
}

#[tokio::test]
async fn a_halt_that_hangs_is_replaced_by_a_safe_stop() {
    let fixtures = FixtureFolder::new();
    let motor = Motor::new(&fixtures, "motor");
    let (toolbox, seen) = open(&fixtures.build("sleeps_in_halt", &[]), &motor).await;
    let moving = toolbox.start(RunId(1), motion("go", 0), None);
    seen.wait_for("moving", 1).await;
    let since = Instant::now();
    within(toolbox.halt(all(true, 1))).await.unwrap_err();
    assert!(matches!(within(moving).await, RunResult::Lost(_)));
    motor.rests(since, "a halt that hangs");
}

#[tokio::test]
async fn a_start_that_moves_after_it_was_halted_is_halted_again() {
    let fixtures = FixtureFolder::new();
    let motor = Motor::new(&fixtures, "motor");
    let (toolbox, seen) = open(&fixtures.build("starts_after_halt", &[]), &motor).await;
    let moving = toolbox.start(RunId(1), motion("go", 0), None);
    seen.wait_for("moving", 1).await;
    let since = Instant::now();
    within(toolbox.halt(all(true, 1))).await.unwrap();
    while motor.commands().len() < 3 {
        assert!(since.elapsed() < AT_REST, "{:?}", motor.commands());
        std::thread::park_timeout(Duration::from_millis(2));
    }
    assert_eq!(motor.commands(), ["stop", "move", "stop"]);
    drop(moving);
}

#[tokio::test]
async fn a_cancel_that_overtakes_its_start_is_not_forgotten() {
    let fixtures = FixtureFolder::new();
    let motor = Motor::new(&fixtures, "motor");
    let (toolbox, seen) = open(&fixtures.build("moves", &[]), &motor).await;
    for run in 1..=200 {
        let moving = toolbox.start(RunId(run), motion("wait", 0), None);
        toolbox.cancel(RunId(run));
        within(toolbox.halt(all(false, 0))).await.unwrap();
        assert_eq!(within(moving).await, RunResult::Cancelled);
        within(toolbox.halt(all(false, 0))).await.unwrap();
    }
    assert_eq!(motor.commands().last().unwrap(), "stop");
    assert_eq!(seen.count("latched"), 0);
    assert!(within(toolbox.close()).await);
}

fn spin() -> Start {
    let mut start = motion("wait", 0);
    start.action.params.insert("spin".to_owned(), json!(true));
    start
}

/// Sends a signal to the process of a manager's toolbox.
pub(crate) fn signal_live(live: &LiveToolbox, sent: Signal) {
    signal(&live.toolbox, sent);
}
