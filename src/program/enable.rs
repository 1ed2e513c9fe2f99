//! `ovos-tools enable` and `disable`: switch toolboxes, and doors that the service starts, on and off in the user's mycroft.conf.
//!
//! Comments and everything else in the file stay. The file is replaced whole, and the one before it is kept beside it.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use serde_json::json;

use ::config::{Config, Doors, LayerState, OURS, suggestion, write_atomically};
use cli::{CliError, Context, RunningService, plain};
use client::payload::{ReloadOutcome, ReloadRequest};
use client::{RELOAD_WAIT, topic};
use host::{scan, section_of};

/// Arguments of `enable` and `disable`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools enable robot           the simulated robot that comes with the service
  ovos-tools disable robot drone
  ovos-tools enable console         the page in a browser, which the service then starts

Writes `\"enabled\": true` or `false` into the section of each toolbox in the user's mycroft.conf (or the file of --config), \
`\"start\": true` or `false` into that of each door, and keeps the file as it was beside it, as mycroft.conf.before. A service that runs \
on this machine is told to reload; it starts doors at its next start.")]
pub(crate) struct Arguments {
    /// Ids of toolboxes or names of doors
    #[arg(required = true, value_name = "NAME")]
    toolboxes: Vec<String>,
}

/// What was done.
#[derive(Serialize)]
struct Report {
    /// The file.
    file: PathBuf,
    toolboxes: Vec<String>,
    enabled: bool,
    /// Whether the file differs from before.
    changed: bool,
    /// What a running service did; absent if none runs here.
    #[serde(skip_serializing_if = "Option::is_none")]
    reload: Option<ReloadOutcome>,
}

/// Runs `enable`, or `disable` if not `enabled`.
pub(super) async fn run(
    arguments: &Arguments,
    enabled: bool,
    context: &mut Context<'_, '_>,
) -> Result<(), CliError> {
    let config = context.config()?;
    let toolboxes = &arguments.toolboxes;
    toolboxes.iter().try_for_each(|id| check_id(id, &config))?;
    let layer = config.stack().layers().last();
    let layer = layer.ok_or_else(|| CliError::Usage("there is no file to write to".to_owned()))?;
    if layer.state == LayerState::Broken {
        let notices: Vec<String> = config.notices.iter().map(ToString::to_string).collect();
        return Err(CliError::Usage(format!(
            "fix the file first: {}",
            notices.join("; ")
        )));
    }
    let file = layer.path.clone();
    let changed = edit(&file, toolboxes, enabled)?;
    check(&file, toolboxes, enabled, context)?;
    let reload = reload(&config, context).await?;
    let report = Report {
        file,
        toolboxes: toolboxes.clone(),
        enabled,
        changed,
        reload,
    };
    context.output.result(&report, |_| render(&report))?;
    let failed = report.reload.iter().flat_map(|outcome| &outcome.failed);
    let failed = failed
        .filter(|failed| {
            failed
                .toolbox_id
                .as_ref()
                .is_some_and(|id| toolboxes.contains(id))
        })
        .map(|failed| failed.reason.clone());
    let failed: Vec<String> = failed.collect();
    if enabled && !failed.is_empty() {
        return Err(CliError::Refused(failed.join("; ")));
    }
    Ok(())
}

fn render(report: &Report) -> String {
    let word = if report.enabled { "on" } else { "off" };
    let ids = report.toolboxes.join(", ");
    let ids = plain(&ids);
    let file = report.file.display();
    let mut text = match report.changed {
        true => format!("{ids}: switched {word} in {file}\n"),
        false => format!("{ids}: {word} already; {file} is unchanged\n"),
    };
    text += &match &report.reload {
        None => "no service is running here; this takes effect at the next start\n".to_owned(),
        Some(outcome) => {
            let lists = [
                ("added", &outcome.added),
                ("removed", &outcome.removed),
                ("replaced", &outcome.replaced),
            ];
            let lists = lists.into_iter().filter(|(_, ids)| !ids.is_empty());
            let lists: Vec<String> = lists
                .map(|(what, ids)| format!("{what} {}", plain(&ids.join(", "))))
                .collect();
            match lists.as_slice() {
                [] => "the service here reloaded; nothing changed\n".to_owned(),
                lists => format!("the service here reloaded: {}\n", lists.join("; ")),
            }
        }
    };
    text
}

/// Refuses an id that nothing on this machine has.
fn check_id(id: &str, config: &Config) -> Result<(), CliError> {
    if Doors::NAMES.contains(&id) {
        return Ok(());
    }
    let (files, _) = scan(&config.service.plugins_dir);
    let files = files
        .iter()
        .filter_map(|file| section_of(file))
        .map(str::to_owned);
    let ids: BTreeSet<String> = files.chain(config.toolboxes.keys().cloned()).collect();
    if ids.contains(id) {
        return Ok(());
    }
    let doors = Doors::NAMES.map(str::to_owned);
    let meant = suggestion(id, ids.iter().chain(&doors).cloned());
    Err(CliError::Usage(format!(
        "nothing here is called `{id}`{meant}; toolboxes: {}; doors: {}",
        Vec::from_iter(ids).join(", "),
        doors.join(", ")
    )))
}

/// The key that switches a toolbox, or a door, on and off.
fn switch(id: &str) -> Vec<&str> {
    match Doors::NAMES.contains(&id) {
        true => vec!["PHAL", OURS, "service", "doors", id, "start"],
        false => vec!["PHAL", OURS, id, "enabled"],
    }
}

/// Writes the switches into the file; returns whether it changed.
fn edit(file: &Path, toolboxes: &[String], enabled: bool) -> Result<bool, CliError> {
    let by_hand = || {
        let keys = switch(&toolboxes[0]);
        let section = keys
            .iter()
            .rfold(json!(enabled), |inner, key| json!({ *key: inner }));
        format!("write it by hand: {section}")
    };
    let is_yaml = file
        .extension()
        .is_some_and(|ending| ending == "yml" || ending == "yaml");
    if is_yaml {
        let file = file.display();
        return Err(CliError::Usage(format!(
            "{file} is YAML, which this command does not edit; {}",
            by_hand()
        )));
    }
    let machine = |what: &str| {
        let what = format!("{what} {}", file.display());
        move |cause| CliError::Machine { what, cause }
    };
    let before = match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read.map_err(machine("read"))?,
    };
    let mut text = before.clone();
    for id in toolboxes {
        text = config::set_in_text(&text, &switch(id), &json!(enabled))
            .map_err(|why| CliError::Usage(format!("{}: {why}; {}", file.display(), by_hand())))?;
    }
    if text == before {
        return Ok(false);
    }
    replace(file, &before, &text).map_err(machine("write"))?;
    Ok(true)
}

/// Replaces the file, and keeps it as it was beside it. A link stays a link.
fn replace(file: &Path, before: &str, text: &str) -> io::Result<()> {
    let target = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let beside = |ending: &str| {
        let mut name = target.clone().into_os_string();
        name.push(ending);
        PathBuf::from(name)
    };
    let old = fs::metadata(&target).map(|found| found.permissions()).ok();
    if old.is_some() {
        write_atomically(&beside(".before"), before.as_bytes(), old.clone())?;
    }
    let permissions = old.unwrap_or_else(|| Permissions::from_mode(0o644));
    write_atomically(&target, text.as_bytes(), Some(permissions))
}

/// Refuses a change that another file undoes.
fn check(
    file: &Path,
    toolboxes: &[String],
    enabled: bool,
    context: &Context<'_, '_>,
) -> Result<(), CliError> {
    let config = context.config()?;
    for id in toolboxes {
        let is_done = match config.doors.starts(id) {
            Some(starts) => starts == enabled,
            None => config.toolbox(id)?.toolbox.enabled == enabled && config.toolboxes.contains_key(id),
        };
        if !is_done {
            return Err(CliError::Refused(format!(
                "wrote {}, but another file overrides its section `{id}`: `ovos-tools config` shows which one",
                file.display()
            )));
        }
    }
    Ok(())
}

/// Has a service that runs on this machine reload; `None` if none runs.
async fn reload(config: &Config, context: &mut Context<'_, '_>) -> Result<Option<ReloadOutcome>, CliError> {
    let runs = RunningService::find(&config.service.state_dir);
    if !matches!(runs, Ok(Some(_))) {
        return Ok(None);
    }
    let wait = context.options.timeout.unwrap_or(RELOAD_WAIT);
    let client = context.client().await?;
    let answer = client
        .ask(topic::RELOAD, &ReloadRequest { detail: true }, wait)
        .await?;
    answer.accepted()?;
    Ok(Some(answer.read()?.outcome.unwrap_or_default()))
}
