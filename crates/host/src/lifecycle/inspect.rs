//! Every problem of a plugin file or a program, in one list.
//!
//! Makes the findings of `ovos-tools check`. A file is loaded and opened in child processes only. Read [`inspect`] first.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_wire::{ENTRY_SYMBOL, Effect, Event, Failure, Manifest, Object, ToolDefinition};
use protocol::Raw;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::artifact::check;
use crate::artifact::elf;
use crate::artifact::file::PluginFile;
use crate::artifact::greeter::Greeter;
use crate::artifact::program::Executable;
use crate::artifact::stage::Stage;
use crate::contract::manifest;
use crate::contract::services::Open;
use crate::contract::services::{HostServices, Limits, Origin, Request};
use crate::lifecycle::examine::check_config;
use crate::lifecycle::settings::PYTHON_OPEN;
use crate::process::spawner::Program;
use crate::transport::child::ProcessSettings;
use crate::transport::common_process::CommonProcess;
use crate::transport::greeting::{self, Said};
use crate::transport::hosted::Hosted;
use section::ProgramConfig;

/// How long opening, listing and closing may take in all.
const LIMIT: Duration = Duration::from_secs(20);
/// As [`LIMIT`], for a toolbox for which an interpreter imports packages.
const PYTHON_LIMIT: Duration = Duration::from_secs(80);

/// The findings about a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Inspection {
    /// The file.
    pub path: PathBuf,
    /// Its manifest, if it could be read.
    pub manifest: Option<Manifest>,
    /// The usable tools, if it could be opened with an empty configuration.
    pub tools: Vec<ToolDefinition>,
    /// Problems that make it, or one of its tools, unusable.
    pub errors: Vec<String>,
    /// Problems that do not prevent its use.
    pub warnings: Vec<String>,
    /// The toolboxes of a program that is several; then the keys above are about the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub toolboxes: Vec<Inspection>,
}

impl Inspection {
    /// The number of errors, including the errors of its toolboxes.
    #[must_use]
    pub fn errors(&self) -> usize {
        let inside = self.toolboxes.iter().map(|toolbox| toolbox.errors.len());
        self.errors.len() + inside.sum::<usize>()
    }
}

/// Inspects a file. `greeter` has this program, which hosts the toolbox, first until its hello, and the environment of
/// both processes.
///
/// The toolbox is opened with an empty configuration, which by the rules of the boundary moves nothing.
///
/// # Cancel safety
/// The child is killed.
pub async fn inspect(path: &Path, greeter: &Greeter) -> Inspection {
    let mut found = Inspection {
        path: path.to_owned(),
        ..Inspection::default()
    };
    let path = match check::file(path) {
        Ok(path) => path,
        Err(check::CheckError::Io { path, source }) => {
            found.errors.push(format!("{}: {source}", path.display()));
            return found;
        }
        Err(error) => {
            // The service would not load the file from there, but the author gets the other findings, too.
            found.errors.push(error.to_string());
            path.to_owned()
        }
    };
    if let Err(error) = look(&path, &mut found) {
        found.errors.push(format!("{} {error}", path.display()));
        return found;
    }
    let file = Arc::new(PluginFile::lent(path.clone()));
    let manifest = match greeting::of_file(&file, &path, greeter).await {
        Ok(manifest) => Arc::new(manifest),
        Err(error) => {
            found.errors.push(error);
            return found;
        }
    };
    found.manifest = Some((*manifest).clone());
    let process = process_of(file, greeter);
    let opening = Hosted::in_child(
        process,
        Arc::clone(&manifest),
        opening(Limits::default()),
        Arc::new(Silence),
    );
    match try_in_time(&manifest, opening, LIMIT).await {
        Ok(more) => {
            found.tools = more.tools;
            found.errors.extend(more.errors);
            found.warnings.extend(more.warnings);
        }
        Err(error) => found.errors.push(error),
    }
    found
}

/// The findings that do not need the file to be loaded.
fn look(path: &Path, found: &mut Inspection) -> Result<(), String> {
    elf::usable(path)?;
    let Some(file) = elf::File::open(path).map_err(|e| e.to_string())? else {
        return Err("is not a shared library for this kind of machine".to_owned());
    };
    let more: Vec<String> = file
        .exports()
        .unwrap_or_default()
        .into_iter()
        .filter(|name| name != ENTRY_SYMBOL)
        .collect();
    if !more.is_empty() {
        let shown = more
            .iter()
            .take(5)
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", ");
        found.warnings.push(format!(
            "it exports {} symbols besides {ENTRY_SYMBOL} ({shown}{}), which can collide with those of other plugins; \
             build with -fvisibility=hidden",
            more.len(),
            if more.len() > 5 { ", ..." } else { "" }
        ));
    }
    Ok(())
}

/// Inspects a program: starts it as the service would, opens its toolbox with an empty configuration, lists its tools and
/// closes it. `greeter` has this program, which is run as `program-host`.
///
/// # Cancel safety
/// The program is ended.
pub async fn inspect_program(entry: &Arc<ProgramConfig>, greeter: &Greeter) -> Inspection {
    let mut found = Inspection {
        path: entry.command.first().map(PathBuf::from).unwrap_or_default(),
        ..Inspection::default()
    };
    match try_program(entry, greeter, &mut found).await {
        Ok(inside) => {
            found.tools = inside.tools;
            found.errors.extend(inside.errors);
            found.warnings.extend(inside.warnings);
            found.toolboxes = inside.toolboxes;
        }
        Err(error) => found.errors.push(error),
    }
    found
}

async fn try_program(
    entry: &Arc<ProgramConfig>,
    greeter: &Greeter,
    found: &mut Inspection,
) -> Result<Inspection, String> {
    let executable = Executable::find(entry)?;
    found.path = executable.shown().to_owned();
    let stage = Stage::new(&[]).map_err(|error| error.to_string())?;
    let file = Arc::new(PluginFile::program(executable, stage.folder()));
    let host = Program {
        path: greeter.program.clone().into(),
        env: entry.env.clone(),
        confine: entry.confine.clone(),
    };
    let said = greeting::of_program(&file, &host, greeter.hello).await;
    let said = said.map_err(|what| format!("it {what}"))?;
    let process = ProcessSettings {
        env: host.env,
        confine: host.confine,
        ..process_of(file, greeter)
    };
    match said {
        Said::One(manifest) => {
            found.manifest = Some((*manifest).clone());
            found.errors.extend(refusal(entry, &manifest));
            let manifest = Arc::from(manifest);
            let (open, limit) = how(entry);
            let opening = Hosted::in_child(process, Arc::clone(&manifest), open, Arc::new(Silence));
            try_in_time(&manifest, opening, limit).await
        }
        Said::Several(offers) => try_several(entry, process, &offers).await,
    }
}

/// Opens each toolbox of a program, one after the other, in one process.
async fn try_several(
    entry: &ProgramConfig,
    process: ProcessSettings,
    offers: &[Raw<Manifest>],
) -> Result<Inspection, String> {
    let mut found = Inspection::default();
    let started = CommonProcess::start(process, &entry.name, 1, Arc::new(Silence)).await;
    let started = started.map_err(|failure| failure.to_string())?;
    for manifest in offers {
        let manifest = match manifest::read(manifest.text()) {
            Ok(manifest) => Arc::new(manifest),
            Err(wrong) => {
                let text = format!("it offers a manifest that cannot be used: {}", wrong.join("; "));
                found.errors.push(text);
                continue;
            }
        };
        let (open, limit) = how(entry);
        let opening = Hosted::in_common(&started, Arc::clone(&manifest), open, Arc::new(Silence));
        let mut inside = try_in_time(&manifest, opening, limit)
            .await
            .unwrap_or_else(|error| Inspection {
                errors: vec![error],
                ..Inspection::default()
            });
        inside.errors.extend(refusal(entry, &manifest));
        inside.manifest = Some((*manifest).clone());
        found.toolboxes.push(inside);
    }
    started.close().await;
    Ok(found)
}

/// Why a program may not offer a toolbox.
fn refusal(entry: &ProgramConfig, manifest: &Manifest) -> Option<String> {
    let id = &manifest.id;
    let text =
        format!("it offers toolbox `{id}`, which its entry does not allow; add the id to its `toolboxes`");
    (!entry.may_offer(id)).then_some(text)
}

async fn try_in_time(
    manifest: &Manifest,
    opening: impl Future<Output = Result<Hosted, Failure>>,
    limit: Duration,
) -> Result<Inspection, String> {
    let inside = tokio::time::timeout(limit, try_out(manifest, opening)).await;
    inside.map_err(|_| {
        let limit = limit.as_secs();
        format!("it was not opened, listed and closed within {limit} s")
    })
}

/// The settings for the opening of a program's toolbox, and the time limit of the whole inspection.
fn how(entry: &ProgramConfig) -> (Open, Duration) {
    match entry.revisions {
        None => (opening(Limits::default()), LIMIT),
        Some(_) => {
            let limits = Limits {
                open: PYTHON_OPEN,
                ..Limits::default()
            };
            (opening(limits), PYTHON_LIMIT)
        }
    }
}

/// The settings for the first copy, with an empty configuration.
fn opening(limits: Limits) -> Open {
    Open {
        generation: 1,
        config: "{}".to_owned(),
        stop_epoch: 0,
        limits,
    }
}

/// Inspects an opened toolbox and closes it.
async fn try_out(manifest: &Manifest, opening: impl Future<Output = Result<Hosted, Failure>>) -> Inspection {
    let mut found = Inspection::default();
    for (key, value) in [
        ("version", &manifest.version),
        ("description", &manifest.description),
        ("licence", &manifest.licence),
    ] {
        if value.is_empty() {
            found.warnings.push(format!("the manifest has no `{key}`"));
        }
    }
    if let Err(error) = check_config(manifest, &Object::new()) {
        found.warnings.push(format!(
            "it needs configuration, so it was not opened and its tools are unknown: {error}"
        ));
        return found;
    }
    let toolbox = match opening.await {
        Ok(toolbox) => toolbox,
        Err(failure) => {
            found
                .errors
                .push(format!("it does not open with an empty configuration: {failure}"));
            return found;
        }
    };
    match toolbox.tools().await {
        Ok(set) => {
            found.errors.extend(set.dropped.iter().map(ToString::to_string));
            found.warnings.extend(set.unknown.iter().map(ToString::to_string));
            if set.tools.is_empty() {
                found.warnings.push("it has no tool that can be used".to_owned());
            }
            found.tools = set.tools.iter().map(|tool| tool.definition.clone()).collect();
            found.warnings.extend(found.tools.iter().flat_map(advice));
        }
        Err(failure) => found.errors.push(failure.to_string()),
    }
    if !toolbox.close().await {
        found
            .errors
            .push("close() does not return within 10 s; it should end and join its threads".to_owned());
    }
    let counts = toolbox.counts();
    if counts.dropped_events > 0 || counts.unknown_completions > 0 {
        found.errors.push(
            "it sends events that are not JSON objects with a `kind`, or completes runs that were never started"
                .to_owned(),
        );
    }
    found
}

/// The texts that a model needs and this tool does not have.
fn advice(tool: &ToolDefinition) -> Vec<String> {
    let mut advice = Vec::new();
    if tool.description.trim().is_empty() {
        advice.push(format!(
            "tool `{}` has no description, by which a model chooses it",
            tool.name
        ));
    }
    let changes = matches!(tool.effect, Effect::Motion | Effect::Write) && !tool.foreign && !tool.validates;
    if changes && tool.argument_schema.get("additionalProperties").is_none() {
        advice.push(format!(
            "tool `{}` is of effect {}, so arguments that it does not declare are refused: say so to those who read its \
             schema, with \"additionalProperties\": false",
            tool.name, tool.effect
        ));
    }
    let properties = tool.argument_schema.get("properties").and_then(Value::as_object);
    let bare = |schema: &Value| {
        schema.is_object() && schema.get("description").is_none() && schema.get("$ref").is_none()
    };
    let missing: Vec<&str> = properties
        .into_iter()
        .flatten()
        .filter(|(_, schema)| bare(schema))
        .map(|(name, _)| name.as_str())
        .collect();
    if !missing.is_empty() {
        advice.push(format!(
            "tool `{}` does not describe its arguments: {}",
            tool.name,
            missing.join(", ")
        ));
    }
    advice
}

/// The process in which a file is tried.
fn process_of(file: Arc<PluginFile>, greeter: &Greeter) -> ProcessSettings {
    ProcessSettings {
        program: greeter.program.clone(),
        file,
        env: greeter.env.clone(),
        memory_mb: None,
        confine: None,
        hello: greeter.hello,
        allow_sha256: Vec::new(),
        stop: CancellationToken::new(),
    }
}

struct Silence;

impl HostServices for Silence {
    fn event(&self, _: &Origin, _: Event) {}

    fn request(&self, _: &Origin, _: Request) {}
}
