//! Decides what has to be done about a plugin file.
//!
//! From a path to a decision: check, compare, stage, greet, configuration. Loads nothing into this process and
//! changes nothing but the stage. Read [`Finding`] first.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ovos_toolbox_wire::{Manifest, Object};
use serde_json::Value;

use crate::artifact::check;
use crate::artifact::elf;
use crate::artifact::fingerprint::Fingerprint;
use crate::artifact::greeter::section_of;
use crate::artifact::stage::Staged;
use crate::lifecycle::code::Code;
use crate::lifecycle::copies::Slot;
use crate::lifecycle::settings::Configured;
use crate::lifecycle::shared::Shared;
use crate::lifecycle::status::Off;
use crate::transport::greeting;
use schema::OutputSchema;

/// The result of examining a file.
pub(crate) enum Finding {
    /// The live toolbox has this content and this configuration already.
    Same {
        id: String,
        path: PathBuf,
        fingerprint: Fingerprint,
        /// [`Configured::reading`].
        reading: u64,
    },
    /// It should be loaded.
    New(Box<Candidate>),
    /// The configuration switches it off.
    Disabled { id: String },
    /// It is not admitted.
    Off(Off),
    /// It cannot be loaded.
    Broken { id: Option<String>, reason: String },
}

/// A file that should be loaded, or a program that should be opened.
pub(crate) struct Candidate {
    pub(crate) id: String,
    pub(crate) path: PathBuf,
    pub(crate) staged: Staged,
    pub(crate) manifest: Arc<Manifest>,
    /// The code with this content, if it is loaded or staged already.
    pub(crate) code: Option<Code>,
    pub(crate) config: Configured,
}

impl Finding {
    pub(crate) fn id(&self) -> Option<&str> {
        match self {
            Self::Same { id, .. } | Self::Disabled { id } => Some(id),
            Self::New(candidate) => Some(&candidate.id),
            Self::Off(off) => Some(&off.toolbox_id),
            Self::Broken { id, .. } => id.as_deref(),
        }
    }
}

/// Examines one file.
pub(crate) async fn examine(manager: &Arc<Shared>, path: PathBuf) -> Finding {
    let known = manager.copies().at(&path).map(|(id, _)| id.to_owned());
    match try_examine(manager, path).await {
        Ok(finding) => finding,
        Err((id, reason)) => Finding::Broken {
            id: id.or(known),
            reason,
        },
    }
}

type Broken = (Option<String>, String);

async fn try_examine(manager: &Arc<Shared>, path: PathBuf) -> Result<Finding, Broken> {
    let looked = {
        let path = path.clone();
        manager.blocking(move || {
            let real = check::file(&path).map_err(|e| e.to_string())?;
            let fingerprint = Fingerprint::read(&real).map_err(|e| format!("{}: {e}", path.display()))?;
            Ok((real, fingerprint))
        })
    };
    let (real, fingerprint) = looked.await.map_err(|reason| (None, reason))?;
    if let Some((id, reading)) = untouched(manager, &path, fingerprint) {
        return Ok(Finding::Same {
            id,
            path,
            fingerprint,
            reading,
        });
    }
    let staged = {
        let folder = Arc::clone(&manager.stage);
        manager
            .blocking(move || folder.copy(&real).map_err(|e| e.to_string()))
            .await
            .map_err(|reason| (None, reason))?
    };
    judge(manager, &path, staged).await
}

/// The live toolbox of this file, if neither file nor configuration changed, and the newest reading of its
/// configuration.
fn untouched(manager: &Shared, path: &Path, fingerprint: Fingerprint) -> Option<(String, u64)> {
    let copies = manager.copies();
    let (id, slot) = copies.at(path)?;
    let same = slot.serves() && slot.source.fingerprint == fingerprint;
    let config = manager.settings.toolbox(id).ok()?;
    let same = same && (manager.settings.admit)(slot.instance.manifest(), path).is_ok();
    (same && config.toolbox.enabled && config.keeps(&slot.config)).then(|| (id.to_owned(), config.reading))
}

async fn judge(manager: &Arc<Shared>, path: &Path, staged: Staged) -> Result<Finding, Broken> {
    let code = manager.copies().loaded_with(&staged.sha256);
    let manifest = match &code {
        Some(code) => Arc::clone(code.manifest()),
        None => {
            let copy = staged.file.clone();
            let usable = manager.blocking(move || elf::usable(copy.path()));
            usable
                .await
                .map_err(|e| (None, format!("{} {e}", path.display())))?;
            let greeter = manager
                .settings
                .greeter
                .with_env(greeting_environment(manager, path));
            let asked = greeting::of_file(&staged.file, path, &greeter).await;
            Arc::new(asked.map_err(|reason| (None, reason))?)
        }
    };
    let id = manifest.id.clone();
    let broken = |reason: String| (Some(id.clone()), reason);
    let config = manager.settings.toolbox(&id).map_err(broken)?;
    if !config.toolbox.enabled {
        return Ok(Finding::Disabled { id });
    }
    if let Err(why) = (manager.settings.admit)(&manifest, path) {
        let path = path.to_owned();
        return Ok(Finding::Off(Off {
            toolbox_id: id,
            path,
            why,
        }));
    }
    check::allowed(path, &staged.sha256, &config.toolbox.allow_sha256).map_err(|e| broken(e.to_string()))?;
    {
        let copies = manager.copies();
        let slot = copies.slots.get(&id).filter(|slot| slot.serves());
        let same = |slot: &Slot| slot.source.program().is_none() && slot.source.sha256 == staged.sha256;
        if slot.is_some_and(|slot| same(slot) && config.keeps(&slot.config)) {
            let fingerprint = staged.fingerprint;
            return Ok(Finding::Same {
                id,
                path: path.to_owned(),
                fingerprint,
                reading: config.reading,
            });
        }
    }
    check_config(&manifest, &config.toolbox.own).map_err(broken)?;
    Ok(Finding::New(Box::new(Candidate {
        id,
        path: path.to_owned(),
        staged,
        manifest,
        code,
        config,
    })))
}

/// The `env` of the section to which a file belongs. The toolbox's id is in the manifest, which only the greeting says;
/// before that, the id of the live toolbox with this path stands for it, or the file's name.
fn greeting_environment(manager: &Shared, path: &Path) -> BTreeMap<String, String> {
    let known = manager.copies().at(path).map(|(id, _)| id.to_owned());
    let config = known
        .or_else(|| section_of(path).map(str::to_owned))
        .map(|id| manager.settings.toolbox(&id));
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
