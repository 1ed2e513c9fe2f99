//! `ovos-tools reload`: loads added and changed plugins, drops removed ones.

use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use serde_json::json;

use super::asker::{accepted, object, read};
use super::context::Context;
use super::error::CliError;
use super::paint::{Cell, Paint, Tone, count, joined};
use client::payload::FailedFile;

const TOPIC: &str = "ovos.tools.reload";

/// Loading may try out every plugin in a child process first.
const WAIT: Duration = Duration::from_secs(60);

/// Arguments of `reload`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools reload
  ovos-tools reload --json | jq .failed

A plugin that cannot be loaded leaves the working one in place; the exit code is 1 then.")]
pub struct Arguments {}

#[derive(Debug, Deserialize)]
struct Answer {
    #[serde(default)]
    loaded: Vec<String>,
    #[serde(default)]
    total_tools: usize,
    #[serde(default)]
    added: Vec<String>,
    #[serde(default)]
    removed: Vec<String>,
    #[serde(default)]
    replaced: Vec<String>,
    #[serde(default)]
    unchanged: Vec<String>,
    #[serde(default)]
    failed: Vec<FailedFile>,
}

pub(super) async fn run(_: &Arguments, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let wait = context.options.timeout.unwrap_or(WAIT);
    // Without it the answer is the published one, which says nothing of what failed.
    let request = object(json!({"detail": true}));
    let data = context.asker().await?.ask(TOPIC, request, wait).await?;
    let answer: Answer = read(TOPIC, &data)?;
    let failed = answer.failed.len();
    context.output.result(&data, |paint| render(&answer, paint))?;
    accepted(&data)?;
    if failed > 0 {
        return Err(CliError::Refused(format!(
            "{} could not be loaded",
            count(failed, "plugin", "plugins")
        )));
    }
    Ok(())
}

fn render(answer: &Answer, paint: Paint) -> String {
    let mut text = format!(
        "{} with {}: {}\n",
        count(answer.loaded.len(), "toolbox", "toolboxes"),
        count(answer.total_tools, "tool", "tools"),
        paint.tone(Tone::Strong, &joined(&answer.loaded))
    );
    let changes = [
        ("added", &answer.added),
        ("replaced", &answer.replaced),
        ("removed", &answer.removed),
        ("unchanged", &answer.unchanged),
    ];
    for (what, ids) in changes.into_iter().filter(|(_, ids)| !ids.is_empty()) {
        text += &format!("{what:<10} {}\n", super::paint::plain(&ids.join(", ")));
    }
    if !answer.failed.is_empty() {
        text.push('\n');
        text += &failures(&answer.failed, paint);
    }
    text
}

/// The plugins that could not be loaded, as a table.
pub(super) fn failures(failed: &[FailedFile], paint: Paint) -> String {
    let rows = failed.iter().map(|it| {
        vec![
            Cell::toned(Tone::Bad, it.toolbox_id.as_deref().unwrap_or("-")),
            it.path.as_str().into(),
            it.reason.as_str().into(),
        ]
    });
    paint.table(&["NOT LOADED", "FILE", "REASON"], rows)
}
