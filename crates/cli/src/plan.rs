//! `ovos-tools plan`: shows the plan of a call without running the call.

use clap::{Args, ValueEnum};
use ovos_toolbox_wire::Object;
use serde_json::Value;

use super::arguments;
use super::call;
use super::context::Context;
use super::error::CliError;
use super::paint::{Cell, Paint, Tone, joined, milliseconds, plain, value};
use client::payload::{PlanRequest, PlanResponse};
use client::topic;

/// Arguments of `plan`.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  ovos-tools plan pick_object object=cup
  ovos-tools plan pick_object '{{\"object\": \"cup\"}}' --format mermaid
  ovos-tools plan pick_object object=cup --format dot | dot -Tsvg > plan.svg

{}", arguments::HELP))]
pub struct Arguments {
    /// Name of the tool
    name: String,
    /// Arguments of the tool, see below
    #[arg(value_name = "JSON|KEY=VALUE")]
    arguments: Vec<String>,
    /// The toolbox that owns the tool, when several own one of this name
    #[arg(long, value_name = "ID")]
    toolbox: Option<String>,
    /// How to show it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table of waves
    #[default]
    Table,
    /// The data of the answer
    Json,
    /// A Mermaid flowchart
    Mermaid,
    /// A Graphviz graph
    Dot,
}

pub(super) async fn run(arguments: &Arguments, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let request = PlanRequest {
        name: arguments.name.clone(),
        args: arguments::parse(&arguments.arguments)?,
        toolbox_id: arguments.toolbox.clone(),
    };
    let wait = context.wait();
    let client = context.client().await?;
    let answer = client.ask(topic::PLAN, &request, wait).await?;
    context.refuse_error(&answer)?;
    let graph = |key: &str| {
        answer
            .data
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    match arguments.format {
        _ if context.output.json() => context.output.result(&answer.data, |_| String::new()),
        Format::Table => {
            let plan = answer.read()?;
            context.output.text(&render(&plan, context.output.paint))?;
            call::warn_of_ignored(&plan.ignored, None, context.output);
            Ok(())
        }
        Format::Json => context
            .output
            .document(&format!("{:#}", Value::Object(answer.data))),
        Format::Mermaid => context.output.document(&plain(&graph("mermaid"))),
        Format::Dot => context.output.document(&plain(&graph("dot"))),
    }
}

/// `motion · at most 15 s · holds left_arm`
pub(super) fn summary(plan: &PlanResponse) -> String {
    let holds = if plan.subsystems.is_empty() {
        "holds nothing".to_owned()
    } else {
        format!("holds {}", plain(&plan.subsystems.join(", ")))
    };
    let bound = milliseconds(plan.bound_ms);
    format!("{} · at most {bound} · {holds}", plan.effect.as_str())
}

fn render(plan: &PlanResponse, paint: Paint) -> String {
    let title = format!(
        "{} ({}) · {}",
        paint.tone(Tone::Strong, &value(&plan.name)),
        plain(&plan.toolbox_id),
        summary(plan)
    );
    let rows = plan.waves.iter().zip(1_usize..).flat_map(|(wave, number)| {
        wave.iter().enumerate().map(move |(place, action)| {
            vec![
                // Each wave shows its number once: the actions in the lines below it are of the same wave.
                if place == 0 {
                    Cell::from(number.to_string())
                } else {
                    Cell::from("")
                },
                Cell::toned(Tone::Strong, action.id.as_str()),
                joined(&action.subsystems).into(),
                milliseconds(action.timeout_ms).into(),
                joined(&action.dependencies).into(),
                params(&action.params).into(),
            ]
        })
    });
    format!(
        "{title}\n{}",
        paint.table(
            &["WAVE", "ACTION", "SUBSYSTEMS", "TIMEOUT", "AFTER", "PARAMS"],
            rows
        )
    )
}

/// `object=cup speed=0.5`
fn params(params: &Object) -> String {
    if params.is_empty() {
        return "-".to_owned();
    }
    let pairs = params.iter().map(|(key, it)| format!("{key}={}", value(it)));
    pairs.collect::<Vec<_>>().join(" ")
}
