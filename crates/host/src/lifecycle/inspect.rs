//! Every problem of a plugin file or a program, in one list.
//!
//! Makes the findings of `ovos-tools check`. A file is loaded and opened in child processes only. Read [`inspect`] first.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_wire::{
    ENTRY_SYMBOL, Effect, Event, Failure, Manifest, Object, ROLE_SYMBOL, ToolDefinition,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::artifact::elf;
use crate::artifact::file::PluginFile;
use crate::artifact::greeter::Greeter;
use crate::artifact::program::Executable;
use crate::artifact::stage::Stage;
use crate::contract::manifest;
use crate::contract::services::{HostServices, Limits, Open, Origin, Request};
use crate::lifecycle::examine::check_config;
use crate::lifecycle::settings::PYTHON_OPEN;
use crate::process::spawner::Program;
use crate::transport::child::ProcessSettings;
use crate::transport::common_process::CommonProcess;
use crate::transport::greeting::{self, Introduction};
use crate::transport::hosted::Hosted;
use executable::check;
use section::ProgramConfig;

/// How long opening, listing and closing may take in all.
const LIMIT: Duration = Duration::from_secs(20);
/// How long a machine that was reached is given to say what it lacks.
const COMPARING: Duration = Duration::from_secs(3);
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
    /// What it said last of its machine.
    #[serde(skip)]
    pub machine: Option<Object>,
}

/// What a file of a toolbox is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counterpart {
    /// With nothing: the section `x-checks` of the configuration's schema.
    Nothing,
    /// With the machine that it describes, which is reached and not moved: the section `x-checks-live`.
    Machine,
}

impl Counterpart {
    fn key(self) -> &'static str {
        match self {
            Self::Nothing => "x-checks",
            Self::Machine => "x-checks-live",
        }
    }
}

impl Inspection {
    /// The number of errors, including the errors of its toolboxes.
    #[must_use]
    pub fn errors(&self) -> usize {
        let inside = self.toolboxes.iter().map(|toolbox| toolbox.errors.len());
        self.errors.len() + inside.sum::<usize>()
    }

    fn of(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            ..Self::default()
        }
    }

    /// Notes what the machine lacks, or that it was not reached.
    fn compares(&mut self) {
        let text_of = |key: &str| self.machine.as_ref()?.get(key)?.as_str().map(str::to_owned);
        let reason = text_of("reason").unwrap_or_else(|| "it does not say why".to_owned());
        match text_of("state").as_deref() {
            Some("connected") => {}
            Some("degraded") => self.warnings.push(reason),
            Some(_) => self.errors.push(reason),
            None => self
                .warnings
                .push("it does not say whether its machine was reached".to_owned()),
        }
    }

    /// Notes the toolbox that a file or a program offers, and whether the program may do so.
    fn offers(&mut self, entry: Option<&ProgramConfig>, manifest: &Manifest) {
        self.manifest = Some(manifest.clone());
        let id = &manifest.id;
        if entry.is_some_and(|entry| !entry.may_offer(id)) {
            self.errors.push(format!(
                "it offers toolbox `{id}`, which its entry does not allow; add the id to its `toolboxes`"
            ));
        }
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
    let mut found = Inspection::of(path);
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
    let file = Arc::new(PluginFile::lent(path));
    let host = greeter.host(greeter.env.clone(), None);
    let tried = try_out(&mut found, None, file, host, greeter).await;
    found.errors.extend(tried.err());
    found
}

/// Inspects a file of a toolbox, such as that of a robot: opens the first of the plugins whose manifest says that it checks files of
/// this ending, with the section that it wants to be opened with for that.
///
/// The configuration's schema of such a toolbox has `x-checks`: an ending, and a section in which the text `{file}` stands for
/// the path of the file; `x-checks-live` has the section with which the machine is reached. By the rules of the boundary the
/// toolbox moves nothing when it is opened.
///
/// # Errors
/// No plugin checks files of this ending, or the path is not text.
///
/// # Cancel safety
/// The child is killed.
pub async fn inspect_own(
    file: &Path,
    counterpart: Counterpart,
    plugins: &[PathBuf],
    greeter: &Greeter,
) -> Result<Inspection, String> {
    let ending = file.extension().and_then(OsStr::to_str).unwrap_or_default();
    let path = std::path::absolute(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let path = path.to_str().ok_or("the path is not UTF-8")?;
    for plugin in plugins {
        let lent = Arc::new(PluginFile::lent(plugin.clone()));
        let host = greeter.host(greeter.env.clone(), None);
        // A plugin that cannot be loaded checks nothing; `check` of that plugin says why.
        let Ok(Introduction::One(manifest)) = greeting::learn(&lent, plugin, &host, greeter).await else {
            continue;
        };
        let checks = manifest
            .config_schema
            .as_ref()
            .map(|schema| &schema[counterpart.key()][ending]);
        let Some(Value::Object(section)) = checks.map(|section| naming(section, path)) else {
            continue;
        };
        let greeter = Greeter {
            section,
            listens: match counterpart {
                Counterpart::Nothing => Duration::ZERO,
                Counterpart::Machine => COMPARING,
            },
            ..greeter.clone()
        };
        let mut found = inspect(plugin, &greeter).await;
        if counterpart == Counterpart::Machine && found.errors.is_empty() {
            found.compares();
        }
        file.clone_into(&mut found.path);
        return Ok(found);
    }
    Err(format!(
        "{}: no toolbox in the plugin folders can check .{ending} files; install the toolbox (for .toml: robot), or name its folder with \
         --plugins",
        file.display()
    ))
}

/// A value in which a path stands where the text `{file}` stood.
fn naming(value: &Value, path: &str) -> Value {
    match value {
        Value::String(text) if text == "{file}" => Value::String(path.to_owned()),
        Value::Object(map) => {
            let named = map.iter().map(|(key, value)| (key.clone(), naming(value, path)));
            Value::Object(named.collect())
        }
        Value::Array(items) => items.iter().map(|item| naming(item, path)).collect(),
        other => other.clone(),
    }
}

/// Inspects a program: starts it as the service would, opens its toolboxes with an empty configuration, lists their tools
/// and closes them. `greeter` has this program, which is run as `program-host`.
///
/// # Cancel safety
/// The program is ended.
pub async fn inspect_program(entry: &Arc<ProgramConfig>, greeter: &Greeter) -> Inspection {
    let mut found = Inspection::of(entry.command.first().map_or(Path::new(""), Path::new));
    let tried = try_program(&mut found, entry, greeter).await;
    found.errors.extend(tried.err());
    found
}

async fn try_program(
    found: &mut Inspection,
    entry: &Arc<ProgramConfig>,
    greeter: &Greeter,
) -> Result<(), String> {
    let executable = Executable::find(entry)?;
    executable.shown().clone_into(&mut found.path);
    let stage = Stage::new(&[]).map_err(|error| error.to_string())?;
    let file = Arc::new(PluginFile::program(executable, stage.folder()));
    let host = greeter.host(entry.env.clone(), entry.confine.clone());
    try_out(found, Some(entry), file, host, greeter).await
}

/// Learns what a file or a program is, opens each of its toolboxes in a process, and closes them.
async fn try_out(
    found: &mut Inspection,
    entry: Option<&ProgramConfig>,
    file: Arc<PluginFile>,
    host: Program,
    greeter: &Greeter,
) -> Result<(), String> {
    let greeting = greeting::learn(&file, file.path(), &host, greeter).await?;
    let process = ProcessSettings {
        program: greeter.program.clone(),
        file,
        env: host.env,
        memory_mb: None,
        confine: host.confine,
        hello: greeter.hello,
        allow_sha256: Vec::new(),
        stop: CancellationToken::new(),
    };
    let (open, limit) = how(entry, &greeter.section);
    match greeting {
        Introduction::One(manifest) => {
            let manifest: Arc<Manifest> = Arc::from(manifest);
            found.offers(entry, &manifest);
            let machine: Arc<Machine> = Arc::default();
            let opening = Hosted::in_child(process, manifest.clone(), open, machine.clone());
            try_in_time(
                found,
                (&manifest, &greeter.section, greeter.listens),
                opening,
                limit,
            )
            .await;
            found.machine = machine.answer();
        }
        Introduction::Several(offers) => {
            let name = entry.map_or("", |entry| &entry.name);
            let started = CommonProcess::start(process, name, 1, Arc::new(Machine::default())).await;
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
                let mut inside = Inspection::default();
                let opening = Hosted::in_common(
                    &started,
                    manifest.clone(),
                    open.clone(),
                    Arc::new(Machine::default()),
                );
                try_in_time(
                    &mut inside,
                    (&manifest, &greeter.section, greeter.listens),
                    opening,
                    limit,
                )
                .await;
                inside.offers(entry, &manifest);
                found.toolboxes.push(inside);
            }
            started.close().await;
        }
    }
    Ok(())
}

/// Opens a toolbox with this section in a process, lists its tools and closes it; returns what keeps it from that.
pub(crate) async fn try_section(
    process: ProcessSettings,
    manifest: &Arc<Manifest>,
    section: &Object,
) -> Vec<String> {
    let mut found = Inspection::default();
    let (open, limit) = how(None, section);
    let opening = Hosted::in_child(process, Arc::clone(manifest), open, Arc::new(Machine::default()));
    try_in_time(&mut found, (manifest, section, Duration::ZERO), opening, limit).await;
    found.errors
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
        .filter(|name| name != ENTRY_SYMBOL && name != ROLE_SYMBOL)
        .collect();
    if !more.is_empty() {
        let names = more
            .iter()
            .take(5)
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", ");
        found.warnings.push(format!(
            "it exports {} symbols besides {ENTRY_SYMBOL} ({names}{}), which can collide with those of other plugins; \
             build with -fvisibility=hidden",
            more.len(),
            if more.len() > 5 { ", ..." } else { "" }
        ));
    }
    Ok(())
}

/// Opens, lists and closes a toolbox; keeps what was found only if that took no longer than `limit`.
async fn try_in_time(
    found: &mut Inspection,
    opened_as: (&Manifest, &Object, Duration),
    opening: impl Future<Output = Result<Hosted, Failure>>,
    limit: Duration,
) {
    match tokio::time::timeout(limit, open_and_close(opened_as, opening)).await {
        Ok(inside) => {
            found.tools = inside.tools;
            found.errors.extend(inside.errors);
            found.warnings.extend(inside.warnings);
        }
        Err(_) => {
            let limit = limit.as_secs();
            let text = format!("it was not opened, listed and closed within {limit} s");
            found.errors.push(text);
        }
    }
}

/// The settings for the opening of a first copy, and the time limit of the whole inspection.
fn how(entry: Option<&ProgramConfig>, section: &Object) -> (Open, Duration) {
    let mut open = Open {
        generation: 1,
        config: Value::Object(section.clone()).to_string(),
        stop_epoch: 0,
        limits: Limits::default(),
    };
    if entry.is_some_and(|entry| entry.revisions.is_some()) {
        open.limits.open = PYTHON_OPEN;
        return (open, PYTHON_LIMIT);
    }
    (open, LIMIT)
}

/// Inspects a toolbox that is opened with a section, gives it time to say what it lacks, and closes it.
async fn open_and_close(
    (manifest, section, listens): (&Manifest, &Object, Duration),
    opening: impl Future<Output = Result<Hosted, Failure>>,
) -> Inspection {
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
    if let Err(error) = check_config(manifest, section) {
        found.warnings.push(format!(
            "it needs configuration, so it was not opened and its tools are unknown: {error}"
        ));
        return found;
    }
    let toolbox = match opening.await {
        Ok(toolbox) => toolbox,
        Err(failure) => {
            found.errors.push(match section.is_empty() {
                true => format!("it does not open with an empty configuration: {failure}"),
                false => failure.to_string(),
            });
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
    tokio::time::sleep(listens).await;
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
            "tool `{}` has no description; models need one to choose it",
            tool.name
        ));
    }
    let changes = matches!(tool.effect, Effect::Motion | Effect::Write) && !tool.foreign && !tool.validates;
    if changes && tool.argument_schema.get("additionalProperties").is_none() {
        advice.push(format!(
            "tool `{}` has effect {}, so arguments that it does not declare are refused; add \"additionalProperties\": false to its schema",
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

/// Hears what a toolbox says of its machine, and nothing else.
#[derive(Default)]
struct Machine(Mutex<Option<Object>>);

impl Machine {
    fn answer(&self) -> Option<Object> {
        self.0.lock().clone()
    }
}

impl HostServices for Machine {
    fn event(&self, _: &Origin, event: Event) {
        if event.kind == "backend"
            && let Some(Value::Object(said)) = event.data
        {
            *self.0.lock() = Some(said);
        }
    }

    fn request(&self, _: &Origin, _: Request) {}
}
