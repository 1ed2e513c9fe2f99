//! What a tool returns, made from what happened to its actions.
//!
//! Owns the shape of results: `success`, `message`, `data`, also when it went wrong. Pure. Read [`conclude`].

use ovos_toolbox_sdk::wire::{ActionReport, CallOutcome, Object, Outcome, Report};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::adapter::ActionOutput;
use crate::robots::Robots;
use crate::unit::Unit;

/// What every tool returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ToolOutput {
    /// Whether everything was done.
    pub success: bool,
    /// What was done, or why it was not.
    pub message: String,
    /// Details.
    pub data: ToolData,
}

/// The details of a result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ToolData {
    /// From the first action's start to the last one's end, in milliseconds.
    pub duration_ms: u64,
    /// What was used.
    pub subsystems: Vec<String>,
    /// The robot is not real.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<bool>,
    /// Which robot, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robot: Option<String>,
    /// What was done differently or without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// A sentence to speak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speak: Option<String>,
    /// When it went wrong: the actions that were done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<Vec<String>>,
    /// When it went wrong: the actions that were not done, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<Vec<Failed>>,
    /// When it went wrong: the actions that were never started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Vec<String>>,
    /// What several actions returned, by their id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<Object>,
    /// What the one action returned.
    #[serde(flatten)]
    pub result: Object,
}

/// An action that was not done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Failed {
    /// Its id in the plan.
    pub action: String,
    /// With what.
    pub subsystems: Vec<String>,
    /// failed, timed_out, cancelled or abandoned.
    pub outcome: String,
    /// Why.
    pub error: String,
}

/// What an action returns to the engine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ActionResult {
    /// For a person.
    #[serde(default)]
    pub message: String,
    /// For a program.
    #[serde(default)]
    pub data: Object,
    /// What was done differently, or was left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The action was optional and was not done, or another action of the call did it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left_out: bool,
    /// What a test or a question has found wrong: then the call is no success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

impl From<ActionOutput> for ActionResult {
    fn from(output: ActionOutput) -> Self {
        Self {
            message: output.message,
            data: output.data,
            notes: output.notes,
            left_out: output.along,
            trouble: output.trouble,
        }
    }
}

/// The result of a call.
#[must_use]
pub fn conclude(
    unit: &Unit,
    tool: &str,
    report: &Report,
    planned: Vec<String>,
    speak: Option<String>,
) -> ToolOutput {
    let mut outputs: Vec<(String, ActionResult)> = report.actions.iter().filter_map(done).collect();
    // A call whose every action was left out has done nothing, even if each action was optional.
    let something = outputs.is_empty() || outputs.iter().any(|(_, output)| !output.left_out);
    let all = report
        .actions
        .iter()
        .all(|line| line.outcome == Outcome::Completed);
    let troubles: Vec<String> = outputs
        .iter()
        .filter_map(|(_, output)| output.trouble.clone())
        .collect();
    let success = all && something && troubles.is_empty();
    let reported = outputs
        .iter()
        .flat_map(|(_, output)| output.notes.iter().cloned());
    let mut notes: Vec<String> = Vec::new();
    for note in planned.into_iter().chain(reported) {
        if !notes.iter().any(|known| says_the_same(known, &note)) {
            notes.push(note);
        }
    }
    let mut data = ToolData {
        duration_ms: report.duration_ms,
        subsystems: subsystems(report),
        simulated: unit.capabilities().simulated.then_some(true),
        robot: unit.one_of_several.then(|| unit.name.clone()),
        notes,
        speak,
        ..ToolData::default()
    };
    outputs.retain(|(_, output)| !output.data.is_empty());
    if report.actions.len() == 1 {
        data.result = outputs.pop().map(|(_, output)| output.data).unwrap_or_default();
        // These keys have a meaning in every result, so an action cannot set them.
        for key in [
            "duration_ms",
            "subsystems",
            "simulated",
            "robot",
            "notes",
            "speak",
            "completed",
            "failed",
            "skipped",
            "results",
        ] {
            data.result.shift_remove(key);
        }
    } else if !outputs.is_empty() {
        let results = outputs
            .into_iter()
            .map(|(id, output)| (id, Value::Object(output.data)));
        data.results = Some(results.collect());
    }
    let message = if success {
        match data.notes.as_slice() {
            [] => format!("Completed {tool}"),
            notes => format!("Completed {tool} ({})", notes.join("; ")),
        }
    } else if all && something {
        partial(report, &mut data);
        troubles.join("; ")
    } else {
        let message = why(tool, report, &data.notes);
        partial(report, &mut data);
        message
    };
    ToolOutput {
        success,
        message,
        data,
    }
}

/// Two actions that were left out for one reason are one note.
fn says_the_same(known: &str, note: &str) -> bool {
    let reason = |note: &str| {
        let (_, why) = note.strip_prefix("left out ")?.split_once(": ")?;
        Some(why.to_owned())
    };
    known == note || reason(known).is_some_and(|why| reason(note) == Some(why))
}

fn done(line: &ActionReport) -> Option<(String, ActionResult)> {
    let output = serde_json::from_value(line.output.clone()?).ok()?;
    Some((line.id.clone(), output))
}

fn subsystems(report: &Report) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in report.actions.iter().flat_map(|line| &line.subsystems) {
        if !found.contains(name) {
            found.push(name.clone());
        }
    }
    found
}

fn partial(report: &Report, data: &mut ToolData) {
    let ids = |outcome: Outcome| {
        let lines = report.actions.iter().filter(move |line| line.outcome == outcome);
        lines.map(|line| line.id.clone()).collect::<Vec<_>>()
    };
    data.completed = Some(ids(Outcome::Completed));
    data.skipped = Some(ids(Outcome::Skipped));
    let failed = report
        .actions
        .iter()
        .filter(|line| !matches!(line.outcome, Outcome::Completed | Outcome::Skipped));
    let failed = failed.map(|line| Failed {
        action: line.id.clone(),
        subsystems: line.subsystems.clone(),
        outcome: line.outcome.as_str().to_string(),
        error: reason(line),
    });
    data.failed = Some(failed.collect());
}

fn reason(line: &ActionReport) -> String {
    match &line.error {
        Some(failure) => failure.message.clone(),
        None => line.outcome.as_str().to_string(),
    }
}

fn why(tool: &str, report: &Report, notes: &[String]) -> String {
    let ended = |line: &&ActionReport| !matches!(line.outcome, Outcome::Completed | Outcome::Skipped);
    let mut failed = report.actions.iter().filter(ended);
    let Some(first) = failed.next() else {
        return format!("{tool} did nothing: {}", notes.join("; "));
    };
    let ended = match report.outcome {
        CallOutcome::Failed | CallOutcome::Completed if report.actions.len() == 1 => return reason(first),
        CallOutcome::Failed | CallOutcome::Completed => format!("{tool} failed at {}", first.id),
        CallOutcome::TimedOut => format!("{tool} ran out of time at {}", first.id),
        CallOutcome::Cancelled => format!("{tool} was cancelled at {}", first.id),
        CallOutcome::Stopped => format!("{tool} was ended by an emergency stop"),
    };
    let others = failed.count();
    let others = if others > 0 && report.outcome == CallOutcome::Failed {
        format!(" (and {others} more)")
    } else {
        String::new()
    };
    let done = report
        .actions
        .iter()
        .filter(|line| line.outcome == Outcome::Completed);
    format!(
        "{ended}: {}{others}; {} of {} actions completed",
        reason(first),
        done.count(),
        report.actions.len()
    )
}

/// The result of a stop or a reset, which the service has carried out.
#[must_use]
pub fn conclude_stop(robots: &Robots, done: &str, report: &Report) -> ToolOutput {
    let output = report.actions.first().and_then(|line| line.output.as_ref());
    let given = |key: &str| output.and_then(|output| output.get(key)).cloned();
    let success = given("success").is_none_or(|success| success == json!(true));
    let message = given("message").and_then(|message| message.as_str().map(str::to_owned));
    let mut result = Object::new();
    if let Some(stop_id) = given("stop_id") {
        result.insert("stop_id".to_string(), stop_id);
    }
    let units = robots.units();
    ToolOutput {
        success,
        message: message.unwrap_or_else(|| done.to_string()),
        data: ToolData {
            duration_ms: report.duration_ms,
            subsystems: vec!["all".to_string()],
            simulated: units
                .iter()
                .all(|unit| unit.capabilities().simulated)
                .then_some(true),
            result,
            ..ToolData::default()
        },
    }
}
