//! The progress of a call: a live view on a terminal, elsewhere a line for each message.
//!
//! [`line`] is pure. Progress goes to stderr, so that stdout has only the result.

use std::collections::HashMap;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;

use super::output::Output;
use super::paint::plain;
use client::Received;
use client::payload::{ProgressKind, ProgressMessage};

/// Steps of a bar.
const STEPS: u64 = 1000;

/// Shows the progress of one call.
pub(super) enum View {
    /// Bars on a terminal.
    Live(Live),
    /// Lines.
    Plain,
    /// JSON lines.
    Json,
    /// Nothing is shown.
    Silent,
}

impl View {
    /// Returns the view that suits the output.
    pub(super) fn new(output: &Output<'_>, name: &str) -> Self {
        if output.json() {
            Self::Json
        } else if output.quiet() {
            Self::Silent
        } else if output.is_live() {
            Self::Live(Live::new(name))
        } else {
            Self::Plain
        }
    }

    /// Shows a message.
    pub(super) fn show(&mut self, progress: &Received<ProgressMessage>, output: &mut Output<'_>) {
        match self {
            Self::Silent => {}
            Self::Json => output.remark_json(&Value::Object(progress.data.clone())),
            // A message that cannot be read does not affect the call.
            Self::Plain => {
                if let Ok(progress) = progress.read() {
                    output.remark(&line(&progress));
                }
            }
            Self::Live(live) => {
                if let Ok(progress) = progress.read() {
                    live.show(&progress);
                }
            }
        }
    }

    /// Removes the bars from the terminal.
    pub(super) fn end(&mut self) {
        if let Self::Live(live) = self {
            live.end();
        }
    }
}

/// `   1.2s  wave 2 of 6`
fn line(progress: &ProgressMessage) -> String {
    let seconds = Duration::from_millis(progress.elapsed_ms).as_secs_f64();
    format!("{seconds:>7.1}s  {}", describe(progress))
}

/// Describes a message. In a run the step comes first: `find: wave 1 of 2`.
fn describe(progress: &ProgressMessage) -> String {
    let words = words_of_call(progress);
    match &progress.step {
        Some(step) => format!("{}: {}", plain(step), words.trim_start()),
        None => words,
    }
}

fn words_of_call(progress: &ProgressMessage) -> String {
    let action = progress.action.as_deref().unwrap_or("call");
    let mut text = match &progress.kind {
        ProgressKind::Queued => "waits for its subsystems".to_owned(),
        ProgressKind::Wave => wave(progress),
        ProgressKind::ActionStarted => format!("  {action} started"),
        ProgressKind::ActionEnded => {
            let outcome = progress.outcome.map_or("ended", |outcome| outcome.as_str());
            format!("  {action} {outcome}")
        }
        ProgressKind::Update => match progress.fraction {
            Some(fraction) => format!("  {action} {:.0}%", percent(fraction)),
            None => format!("  {action}"),
        },
        ProgressKind::Other(word) => word.clone(),
    };
    if let Some(message) = progress.message.as_deref().filter(|message| !message.is_empty()) {
        text.push_str(": ");
        text.push_str(message);
    }
    plain(&text).into_owned()
}

fn wave(progress: &ProgressMessage) -> String {
    match (progress.wave, progress.waves) {
        (0, _) => "next wave".to_owned(),
        (wave, 0) => format!("wave {wave}"),
        (wave, waves) => format!("wave {wave} of {waves}"),
    }
}

fn percent(fraction: f64) -> f64 {
    fraction.clamp(0.0, 1.0) * 100.0
}

/// Bars: one for the call, one for each action that runs.
pub(super) struct Live {
    all: MultiProgress,
    call: ProgressBar,
    name: String,
    actions: HashMap<(Option<String>, String), ProgressBar>,
}

impl Live {
    fn new(name: &str) -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let call = all.add(ProgressBar::new_spinner().with_style(style("{spinner} {msg} {elapsed:.dim}")));
        call.set_message(plain(name).into_owned());
        call.enable_steady_tick(Duration::from_millis(100));
        Self {
            all,
            call,
            name: plain(name).into_owned(),
            actions: HashMap::new(),
        }
    }

    fn show(&mut self, progress: &ProgressMessage) {
        let action = progress.action.clone().unwrap_or_default();
        // Two steps of a run may have actions of the same name.
        let key = (progress.step.clone(), action.clone());
        match &progress.kind {
            ProgressKind::Queued => self
                .call
                .set_message(format!("{}: {}", self.name, describe(progress))),
            ProgressKind::Wave => {
                self.call
                    .set_message(format!("{}: {}", self.name, describe(progress)));
                let _ = self.all.println(line(progress));
            }
            ProgressKind::ActionStarted => {
                let bar = ProgressBar::new(STEPS).with_style(style("    {spinner} {msg} {elapsed:.dim}"));
                bar.set_message(plain(&action).into_owned());
                bar.enable_steady_tick(Duration::from_millis(100));
                self.actions.insert(key, self.all.add(bar));
            }
            ProgressKind::ActionEnded => {
                if let Some(bar) = self.actions.remove(&key) {
                    bar.finish_and_clear();
                    self.all.remove(&bar);
                }
                let _ = self.all.println(line(progress));
            }
            ProgressKind::Update => match self.actions.get(&key) {
                Some(bar) => {
                    if let Some(fraction) = progress.fraction {
                        bar.set_style(style("    {spinner} {bar:20} {msg} {elapsed:.dim}"));
                        // Between 0 and STEPS by the clamp.
                        bar.set_position((percent(fraction) * (STEPS / 100) as f64) as u64);
                    }
                    bar.set_message(describe(progress).trim_start().to_owned());
                }
                None => self
                    .call
                    .set_message(format!("{}: {}", self.name, describe(progress).trim_start())),
            },
            ProgressKind::Other(_) => {}
        }
    }

    fn end(&mut self) {
        for (_, bar) in self.actions.drain() {
            bar.finish_and_clear();
        }
        self.call.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_message_is_a_line() {
        for (message, expected) in [
            (
                json!({"kind": "queued", "elapsed_ms": 0}),
                "    0.0s  waits for its subsystems",
            ),
            (
                json!({"kind": "queued", "message": "left_arm is held by call c-1", "elapsed_ms": 40}),
                "    0.0s  waits for its subsystems: left_arm is held by call c-1",
            ),
            (
                json!({"kind": "wave", "wave": 2, "waves": 6, "elapsed_ms": 1249}),
                "    1.2s  wave 2 of 6",
            ),
            (
                json!({"kind": "action_started", "action": "grasp", "elapsed_ms": 1300}),
                "    1.3s    grasp started",
            ),
            (
                json!({"kind": "update", "action": "grasp", "fraction": 0.4, "message": "closing", "elapsed_ms": 1500}),
                "    1.5s    grasp 40%: closing",
            ),
            (
                json!({"kind": "update", "fraction": 7, "elapsed_ms": 1500}),
                "    1.5s    call 100%",
            ),
            (
                json!({"kind": "action_ended", "action": "grasp", "outcome": "timed_out", "elapsed_ms": 61000}),
                "   61.0s    grasp timed_out",
            ),
            (
                json!({"kind": "wave", "wave": 1, "waves": 2, "step": "find", "elapsed_ms": 100}),
                "    0.1s  find: wave 1 of 2",
            ),
            (
                json!({"kind": "action_started", "action": "scan", "step": "find", "elapsed_ms": 100}),
                "    0.1s  find: scan started",
            ),
            (
                json!({"kind": "later", "message": "\u{1b}[2J"}),
                "    0.0s  later: \\u{1b}[2J",
            ),
        ] {
            let progress: ProgressMessage = serde_json::from_value(message.clone()).unwrap();
            assert_eq!(line(&progress), expected, "{message}");
        }
    }
}
