//! `ovos-tools run`: several calls from a file.

use std::io::Read as _;

use clap::{Args, ValueHint};
use serde::Deserialize;
use serde_json::Value;

use super::call;
use super::context::Context;
use super::error::CliError;
use super::invoke::{content, report};
use super::paint::{Cell, Paint, Tone, joined, plain};
use super::plan::summary;
use super::progress::View;
use client::payload::{
    RunPlanRequest, RunPlanResponse, RunRequest, RunResponse, RunStatus, RunStep, RunStepReport,
};
use client::{Received, topic};

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools run morning.json
  ovos-tools run morning.json --plan
  ovos-tools run - --progress < morning.json
  ovos-tools run morning.json --json | jq '.steps[] | {id, status}'

The file is JSON:
  {\"steps\": [
    {\"id\": \"find\", \"name\": \"find_object\", \"args\": {\"object\": \"cup\"}},
    {\"id\": \"look\", \"name\": \"look_at\", \"args\": {\"x\": {\"$from\": \"find.pose.x\"}}},
    {\"id\": \"wave\", \"name\": \"wave\", \"after\": [\"look\"]}
  ]}
A step begins when the steps that it takes values from, and those in `after`, have completed; steps that are ready begin \
together. After a step that fails no further one begins.

Ctrl-C cancels the run, and so does a --timeout that runs out. A step that has to be confirmed ends the run.")]
pub struct Arguments {
    /// File with the steps, or - to read them from stdin
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: String,
    /// Show what the steps would do, without doing it
    #[arg(long, conflicts_with_all = ["call_id", "timeout_ms", "detail", "progress"])]
    plan: bool,
    #[command(flatten)]
    flags: call::Flags,
}

/// The content of a file of steps.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    steps: Vec<RunStep>,
}

pub(super) async fn run(arguments: &Arguments, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let steps = steps_of(&arguments.file)?;
    if arguments.plan {
        return plan(RunPlanRequest { steps }, context).await;
    }
    let call_id = arguments.flags.call_id();
    let request = RunRequest {
        steps,
        options: arguments.flags.options(&call_id),
    };
    let client = context.client().await?;
    let view = arguments.flags.progress.then(|| View::new(context.output, "run"));
    let send = |patience| client.run(request, patience);
    let mut answer = call::await_answer(&client, &call_id, view, context, send).await?;
    if !arguments.flags.detail {
        call::remove_reports(&mut answer.data);
    }
    show(&answer, context)
}

fn steps_of(file: &str) -> Result<Vec<RunStep>, CliError> {
    let read = || {
        if file != "-" {
            return std::fs::read_to_string(file);
        }
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text)?;
        Ok(text)
    };
    let text = read().map_err(|cause| CliError::Machine {
        what: format!("read the steps from {file}"),
        cause,
    })?;
    let read: Result<File, _> = serde_json::from_str(&text);
    let read = read.map_err(|error| {
        CliError::Usage(format!(
            "{file}: expected {{\"steps\": [{{\"id\": ..., \"name\": ..., \"args\": {{...}}}}]}}: {error}"
        ))
    })?;
    Ok(read.steps)
}

/// Shows the results of the steps. The answer may have reports of failed steps; these are shown, too.
fn show(answer: &Received<RunResponse>, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let accepted = answer.accepted();
    let run = answer.read()?;
    context.output.result(&answer.data, |paint| render(&run, paint))?;
    if !context.output.json() {
        for step in &run.steps {
            for line in content(&step.content, &step.content_refused) {
                context.output.remark(&format!("{}: {line}", step.id));
            }
            call::warn_of_ignored(&step.ignored, Some(&step.id), context.output);
            if let Some(confirm) = &step.confirm {
                context.output.remark(&format!(
                    "{}: this step needs approval: invoke it by itself; without a terminal, run `ovos-tools approve {}` on the \
                     service's machine and invoke it within a minute",
                    step.id, confirm.id
                ));
            }
        }
    }
    accepted?;
    if run.ok {
        return Ok(());
    }
    Err(CliError::Refused("the run failed (ok: false)".to_owned()))
}

fn render(run: &RunResponse, paint: Paint) -> String {
    if run.steps.is_empty() {
        return String::new();
    }
    let rows = run.steps.iter().map(|step| {
        let tone = match step.status {
            RunStatus::Completed => Tone::Good,
            _ => Tone::Bad,
        };
        vec![
            Cell::toned(Tone::Strong, step.id.as_str()),
            step.name.as_str().into(),
            Cell::toned(tone, step.status.as_str()),
            step_result(step).into(),
        ]
    });
    let mut text = paint.table(&["STEP", "TOOL", "STATUS", "RESULT"], rows);
    for step in &run.steps {
        if let Some(detail) = &step.error_detail {
            text.push_str(&report(detail, paint));
        }
    }
    text
}

/// Returns what a step returned, or why it has no result.
fn step_result(step: &RunStepReport) -> String {
    let result = step.result.as_ref().map(Value::to_string);
    let text = result
        .or_else(|| step.error.clone())
        .or_else(|| step.reason.clone())
        .or_else(|| step.result_left_out.clone());
    text.unwrap_or_default()
}

async fn plan(request: RunPlanRequest, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let wait = context.wait();
    let client = context.client().await?;
    let answer = client.ask(topic::PLAN_RUN, &request, wait).await?;
    context.refuse_error(&answer)?;
    let plan = answer.read()?;
    context
        .output
        .result(&answer.data, |paint| render_plan(&plan, paint))
}

fn render_plan(plan: &RunPlanResponse, paint: Paint) -> String {
    let rows = plan.steps.iter().map(|step| {
        let what = match (&step.plan, &step.planned_later, &step.error) {
            (Some(plan), _, _) => Cell::from(summary(plan)),
            (None, Some(open), _) => Cell::from(format!("planned later, with {}", plain(&open.join(", ")))),
            (None, None, error) => Cell::toned(Tone::Bad, error.as_deref().unwrap_or_default()),
        };
        vec![
            Cell::toned(Tone::Strong, step.id.as_str()),
            step.name.as_str().into(),
            joined(&step.after).into(),
            what,
        ]
    });
    paint.table(&["STEP", "TOOL", "AFTER", "PLAN"], rows)
}
