//! Decides what has to be done about a toolbox, wherever its code comes from.
//!
//! From a file or a program to a decision: check, compare, stage, greet, judge by the configuration. Loads nothing into
//! this process and changes nothing but the stage. Read [`Finding`], then [`judge`]; `program` has the way of a program
//! until then.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ovos_toolbox_wire::{Manifest, Object};
use serde_json::Value;

use crate::artifact::elf;
use crate::artifact::fingerprint::Fingerprint;
use crate::artifact::greeter::section_of;
use crate::artifact::stage::Staged;
use crate::lifecycle::code::{Code, Source};
use crate::lifecycle::copies::{Copies, Slot};
use crate::lifecycle::settings::ToolboxSettings;
use crate::lifecycle::shared::Shared;
use crate::lifecycle::status::Off;
use crate::transport::greeting::{self, Introduction};
use executable::check;
use schema::OutputSchema;
use section::ProgramConfig;

/// What has to be done about a toolbox.
pub(crate) enum Finding {
    /// Nothing: the live toolbox has this code and this configuration already.
    Same(Box<Candidate>),
    /// It should be opened.
    New(Box<Candidate>),
    /// The configuration switches the toolbox with this id off.
    Disabled(String),
    /// It is not admitted.
    Off(Off),
}

/// A toolbox, and the configuration to open it with.
pub(crate) struct Candidate {
    pub(crate) source: Source,
    pub(crate) config: ToolboxSettings,
}

/// Why a file or a program cannot be a toolbox: the id of the toolbox, if it is known, and the reason.
pub(crate) type Broken = (Option<String>, String);

impl Finding {
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Same(candidate) | Self::New(candidate) => candidate.source.id(),
            Self::Disabled(id) => id,
            Self::Off(off) => &off.toolbox_id,
        }
    }
}

impl Candidate {
    /// Notes that the live toolbox stays: where its file is now, and which reading of the configuration it has.
    pub(crate) fn stays(self, manager: &Shared) {
        if let Some(slot) = manager.copies().slots.get_mut(self.source.id()) {
            slot.source.path = self.source.path;
            slot.source.fingerprint = self.source.fingerprint;
            slot.config.reading = self.config.reading;
        }
    }
}

/// Examines a plugin file.
pub(crate) async fn examine(manager: &Arc<Shared>, path: PathBuf) -> Result<Finding, Broken> {
    let loaded_id = manager.copies().at(&path).map(|(id, _)| id.to_owned());
    let finding = try_examine(manager, path).await;
    finding.map_err(|(id, reason)| (id.or(loaded_id), reason))
}

async fn try_examine(manager: &Arc<Shared>, path: PathBuf) -> Result<Finding, Broken> {
    let unknown = |reason: String| (None, reason);
    let looked = {
        let path = path.clone();
        manager.blocking(move || {
            let real = check::file(&path).map_err(|e| e.to_string())?;
            let fingerprint = Fingerprint::read(&real).map_err(|e| format!("{}: {e}", path.display()))?;
            Ok((real, fingerprint))
        })
    };
    let (real, fingerprint) = looked.await.map_err(unknown)?;
    let live = |slot: &Slot| slot.source.fingerprint == fingerprint;
    if let Some(same) = untouched(manager, |copies| copies.at(&path).filter(|(_, slot)| live(slot)))? {
        return Ok(same);
    }
    let folder = Arc::clone(&manager.stage);
    let staged = manager.blocking(move || folder.copy(&real).map_err(|e| e.to_string()));
    let staged = staged.await.map_err(unknown)?;
    let loaded = manager.copies().loaded_with(&staged.sha256);
    let code = match loaded {
        Some(code) => code,
        None => greeted(manager, &path, &staged).await.map_err(unknown)?,
    };
    let source = Source {
        code,
        path,
        sha256: staged.sha256,
        fingerprint: staged.fingerprint,
    };
    judge(manager, source)
}

/// Learns what is in a plugin file that is not loaded yet.
async fn greeted(manager: &Arc<Shared>, path: &Path, staged: &Staged) -> Result<Code, String> {
    let file = staged.file.clone();
    let usable = manager.blocking(move || elf::usable(file.path())).await;
    usable.map_err(|error| format!("{} {error}", path.display()))?;
    let greeter = &manager.settings.greeter;
    let host = greeter.host(greeting_environment(manager, path), None);
    match greeting::learn(&staged.file, path, &host, greeter).await? {
        Introduction::One(manifest) => Ok(Code::Staged(staged.file.clone(), Arc::from(manifest))),
        Introduction::Several(_) => Err(format!(
            "{} says that it is several toolboxes; a plugin is one: build one file for each toolbox",
            path.display()
        )),
    }
}

/// The finding that nothing is to be done, if the live toolbox that `find` finds serves and neither its configuration nor
/// its admission has changed.
///
/// # Errors
/// The configuration is wrong.
pub(crate) fn untouched(
    manager: &Shared,
    find: impl FnOnce(&Copies) -> Option<(&str, &Slot)>,
) -> Result<Option<Finding>, Broken> {
    let copies = manager.copies();
    let Some((id, slot)) = find(&copies).filter(|(_, slot)| slot.serves()) else {
        return Ok(None);
    };
    let source = &slot.source;
    let config = manager
        .settings
        .configured(source.entry().map(|entry| &**entry), id);
    let config = config.map_err(|reason| (Some(id.to_owned()), reason))?;
    let same = config.toolbox.enabled && config.keeps(&slot.config) && admitted(manager, source).is_ok();
    Ok(same.then(|| {
        Finding::Same(Box::new(Candidate {
            source: source.clone(),
            config,
        }))
    }))
}

/// Decides what has to be done about a toolbox, now that its manifest is known. Opens nothing.
pub(crate) fn judge(manager: &Shared, source: Source) -> Result<Finding, Broken> {
    let (id, entry) = (source.id().to_owned(), source.entry().cloned());
    if let Some(entry) = entry.as_deref().filter(|entry| !entry.may_offer(&id)) {
        return Err((None, not_allowed(entry, &id)));
    }
    let broken = |reason: String| (Some(id.clone()), reason);
    let mut config = manager
        .settings
        .configured(entry.as_deref(), &id)
        .map_err(broken)?;
    if !config.toolbox.enabled {
        return Ok(Finding::Disabled(id));
    }
    if let Err(off) = admitted(manager, &source) {
        return Ok(Finding::Off(off));
    }
    if let Some(program) = source.code.common() {
        program.share(&id, &mut config).map_err(broken)?;
    }
    let allowed = check::allowed(&source.path, &source.sha256, &config.toolbox.allow_sha256);
    allowed.map_err(|error| broken(error.to_string()))?;
    let live = |slot: &Slot| slot.has(&source) && config.keeps(&slot.config);
    let is_live = manager.copies().slots.get(&id).is_some_and(live);
    if !is_live {
        check_config(source.code.manifest(), &config.toolbox.own).map_err(broken)?;
    }
    let candidate = Box::new(Candidate { source, config });
    Ok(if is_live {
        Finding::Same(candidate)
    } else {
        Finding::New(candidate)
    })
}

/// Whether the toolbox of a plugin file is admitted; programs are named in the configuration.
fn admitted(manager: &Shared, source: &Source) -> Result<(), Off> {
    if source.entry().is_some() {
        return Ok(());
    }
    let admitted = (manager.settings.admit)(source.code.manifest(), &source.path);
    admitted.map_err(|why| Off {
        toolbox_id: source.id().to_owned(),
        path: source.path.clone(),
        why,
    })
}

/// The error for a program that offers an id that its entry does not allow.
fn not_allowed(entry: &ProgramConfig, id: &str) -> String {
    let (name, allowed) = (&entry.name, entry.toolboxes.join("`, `"));
    format!(
        "it offers toolbox `{id}`, and may offer `{allowed}`; if it should, add the id to `service.programs.{name}.toolboxes`"
    )
}

/// The `env` of the section to which a file belongs. The toolbox's id is in the manifest, which only the greeting says;
/// before that, the id of the live toolbox with this path stands for it, or the file's name.
fn greeting_environment(manager: &Shared, path: &Path) -> BTreeMap<String, String> {
    let loaded_id = manager.copies().at(path).map(|(id, _)| id.to_owned());
    let config = loaded_id
        .or_else(|| section_of(path).map(str::to_owned))
        .map(|id| manager.settings.configured(None, &id));
    // Errors of the section are reported when the id is known.
    config
        .and_then(Result::ok)
        .map(|config| config.toolbox.env)
        .unwrap_or_default()
}

/// Checks a toolbox's own keys by its own schema.
pub(crate) fn check_config(manifest: &Manifest, own: &Object) -> Result<(), String> {
    let Some(schema) = &manifest.config_schema else {
        return Ok(());
    };
    let id = &manifest.id;
    let schema =
        OutputSchema::compile(schema).map_err(|e| format!("`config_schema` of toolbox `{id}`: {e}"))?;
    let Err(wrong) = schema.check(&Value::Object(own.clone())) else {
        return Ok(());
    };
    let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
    Err(format!(
        "the configuration of toolbox `{id}` does not fit its schema: {}",
        wrong.join("; ")
    ))
}
