//! An agent at a terminal, with a person who presses keys.

use std::fs::File;
use std::io::Write as _;
use std::process::{Child, ExitStatus, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::agent::model::{Model, call, calls, finish};
use crate::agent::stage::{Stage, command};
use crate::support::process::DEADLINE;
use crate::support::scene::assert_halted;

/// An agent in a terminal of its own, which script(1) makes.
struct Terminal {
    script: Child,
    shown: std::path::PathBuf,
}

impl Terminal {
    /// `None` where there is no script(1).
    fn new(stage: &Stage, model: &Model) -> Option<Self> {
        use std::os::unix::process::CommandExt as _;
        let agent = command(&stage.scene);
        let mut line = vec![agent.get_program().to_str().unwrap()];
        line.extend(agent.get_args().map(|argument| argument.to_str().unwrap()));
        line.extend(["--url", &model.url, "--goal", "move"]);
        let line = format!("exec {}", line.join(" "));
        let screen = stage.scene.sandbox.path("terminal.txt");
        let script = stage
            .scene
            .sandbox
            .command("script")
            .args(["--quiet", "--return", "--flush", "--command", &line, "/dev/null"])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(File::create(&screen).unwrap())
            .stderr(Stdio::null())
            .spawn();
        match script {
            Ok(script) => Some(Self {
                script,
                shown: screen,
            }),
            Err(error) => {
                skip::skip("script", &format!("script(1) makes the terminal: {error}"));
                None
            }
        }
    }

    fn press(&mut self, keys: &str) {
        self.script
            .stdin
            .as_mut()
            .unwrap()
            .write_all(keys.as_bytes())
            .unwrap();
    }

    fn shown(&self) -> String {
        std::fs::read_to_string(&self.shown).unwrap_or_default()
    }

    /// Waits until it shows this as often; `again` is done meanwhile.
    #[track_caller]
    fn until(&mut self, text: &str, times: usize, mut again: impl FnMut(&mut Self)) {
        let end = Instant::now() + DEADLINE;
        while self.shown().matches(text).count() < times {
            assert!(Instant::now() < end, "no {text:?}:\n{}", self.shown());
            again(self);
            std::thread::park_timeout(std::time::Duration::from_millis(5));
        }
    }

    #[track_caller]
    fn end(&mut self) -> ExitStatus {
        let end = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.script.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "it does not end:\n{}", self.shown());
            std::thread::park_timeout(std::time::Duration::from_millis(5));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Ok(None) = self.script.try_wait() {
            let group = Pid::from_raw(i32::try_from(self.script.id()).unwrap()).unwrap();
            _ = kill_process_group(group, Signal::KILL);
            _ = self.script.wait();
        }
    }
}

const QUESTION: &str = "n denies it";

fn quick(part: &str) -> Value {
    json!({"steps": 1, "step_ms": 10, "subsystems": [part]})
}

#[test]
fn a_person_at_the_terminal_lets_a_call_run_or_refuses_it() {
    for (key, runs) in [("y", true), ("n", false)] {
        let stage = Stage::on_hardware();
        let model = Model::new(vec![call("assemble", quick("left_arm")), finish()]);
        let Some(mut terminal) = Terminal::new(&stage, &model) else {
            return;
        };
        terminal.until(QUESTION, 1, |_| {});
        assert!(stage.scene.motors().is_empty(), "it ran before it was allowed");
        // A yes counts once there was time to read.
        terminal.until("step 2", 1, |terminal| terminal.press(key));
        let status = terminal.end();
        assert_eq!(status.code(), Some(0), "{key}: {}", terminal.shown());
        assert_eq!(
            !stage.scene.motors().is_empty(),
            runs,
            "{key}: {}",
            terminal.shown()
        );
        let answer = model.messages("tool")[0]["content"].as_str().unwrap().to_owned();
        assert_eq!(answer.contains("PermissionError: "), !runs, "{key}: {answer}");
    }
}

#[test]
fn a_stop_at_the_question_ends_the_run_and_leaves_no_call_to_approve() {
    let stage = Stage::on_hardware();
    let model = Model::new(vec![call("assemble", quick("left_arm"))]);
    let Some(mut terminal) = Terminal::new(&stage, &model) else {
        return;
    };
    terminal.until(QUESTION, 1, |_| {});
    terminal.press(" ");
    assert_eq!(terminal.end().code(), Some(22), "{}", terminal.shown());
    assert!(stage.scene.motors().is_empty(), "{}", terminal.shown());
    for text in ["ovos-tools approve", "waiting for approval"] {
        assert!(!terminal.shown().contains(text), "{}", terminal.shown());
    }
}

#[test]
fn a_key_that_is_pressed_twice_does_not_answer_the_next_question() {
    let stage = Stage::on_hardware();
    let model = Model::new(vec![
        calls(&[("assemble", quick("left_arm")), ("assemble", quick("right_arm"))]),
        finish(),
    ]);
    let Some(mut terminal) = Terminal::new(&stage, &model) else {
        return;
    };
    terminal.until(QUESTION, 1, |_| {});
    terminal.until(QUESTION, 2, |terminal| terminal.press("y"));
    // Nobody has read the second question yet.
    terminal.press("yyn");
    assert_eq!(terminal.end().code(), Some(0), "{}", terminal.shown());
    let motors = stage.scene.motors();
    let moved = |part: &str| motors.iter().any(|motor| motor.subsystem == part);
    assert!(
        moved("left_arm") != moved("right_arm"),
        "one was allowed: {motors:?}\n{}",
        terminal.shown()
    );
}

#[test]
fn the_space_bar_stops_a_run_at_a_terminal_and_what_moves_is_halted() {
    let mut stage = Stage::new(&json!({}));
    let long = json!({"step_ms": 20, "steps": 3000, "timeout_ms": 60_000});
    let model = Model::new(vec![call("assemble", long)]);
    let Some(mut terminal) = Terminal::new(&stage, &model) else {
        return;
    };
    stage.scene.until_moving("agent-");
    terminal.press(" ");
    assert_eq!(terminal.end().code(), Some(22), "{}", terminal.shown());
    assert!(
        terminal.shown().contains("a key was pressed"),
        "{}",
        terminal.shown()
    );
    assert_halted(&stage.scene.motors());
    stage.assert_at_rest();
}
