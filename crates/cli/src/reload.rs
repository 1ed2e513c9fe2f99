//! `ovos-tools reload`: loads added and changed plugins, drops removed ones.

use clap::Args;

use super::context::Context;
use super::error::CliError;
use super::paint::{Cell, Paint, Tone, count, joined, plain};
use client::payload::{FailedFile, OffToolbox, ReloadOutcome, ReloadRequest, ReloadResponse};
use client::{RELOAD_WAIT, topic};

/// Arguments of `reload`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools reload
  ovos-tools reload --json | jq .failed

A plugin that cannot be loaded leaves the working one in place; the exit code is 1 then.")]
pub struct Arguments {}

pub(super) async fn run(_: &Arguments, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let wait = context.options.timeout.unwrap_or(RELOAD_WAIT);
    // Without this, the service sends the published answer, which does not report failures.
    let request = ReloadRequest { detail: true };
    let client = context.client().await?;
    let answer = client.ask(topic::RELOAD, &request, wait).await?;
    let mut reload = answer.read()?;
    let outcome = reload.outcome.take().unwrap_or_default();
    let failed = outcome.failed.len();
    context
        .output
        .result(&answer.data, |paint| render(&reload, &outcome, paint))?;
    answer.accepted()?;
    if failed > 0 {
        return Err(CliError::Refused(format!(
            "{} could not be loaded",
            count(failed, "plugin", "plugins")
        )));
    }
    Ok(())
}

fn render(reload: &ReloadResponse, outcome: &ReloadOutcome, paint: Paint) -> String {
    let mut text = format!(
        "{} with {}: {}\n",
        count(reload.loaded.len(), "toolbox", "toolboxes"),
        count(reload.total_tools, "tool", "tools"),
        paint.tone(Tone::Strong, &joined(&reload.loaded))
    );
    let changes = [
        ("added", &outcome.added),
        ("replaced", &outcome.replaced),
        ("removed", &outcome.removed),
        ("unchanged", &outcome.unchanged),
    ];
    for (what, ids) in changes.into_iter().filter(|(_, ids)| !ids.is_empty()) {
        text += &format!("{what:<10} {}\n", super::paint::plain(&ids.join(", ")));
    }
    for tool in &outcome.renamed {
        text += &format!("renamed    {}\n", super::paint::plain(tool));
    }
    text += &configuration(&outcome.off, outcome.closed.as_deref(), &outcome.warnings, paint);
    if !outcome.failed.is_empty() {
        text.push('\n');
        text += &failures(&outcome.failed, paint);
    }
    text
}

/// What is off, why tools are refused, and what the configuration says in vain.
pub(super) fn configuration(
    off: &[OffToolbox],
    closed: Option<&str>,
    warnings: &[String],
    paint: Paint,
) -> String {
    let mut text = String::new();
    for it in off {
        let label = paint.tone(Tone::Warning, "off");
        text += &format!("{label} {}: {}\n", plain(&it.toolbox_id), plain(&it.reason));
    }
    if let Some(closed) = closed {
        text += &format!("{} {}\n", paint.tone(Tone::Bad, "closed:"), plain(closed));
    }
    for warning in warnings {
        text += &format!("{} {}\n", paint.tone(Tone::Warning, "warning:"), plain(warning));
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
