//! What a program of the configuration means for the live toolboxes, and what is done about it in a reload.
//!
//! As `examine` for plugin files; but whose a toolbox is can be said only when the program has said its id. Read [`offer`].

use std::path::PathBuf;
use std::sync::Arc;

use crate::artifact::check;
use crate::artifact::file::PluginFile;
use crate::artifact::program::Executable;
use crate::artifact::scan::FailedFile;
use crate::artifact::stage::Staged;
use crate::lifecycle::claims::Claimant;
use crate::lifecycle::examine::{Candidate, check_config};
use crate::lifecycle::shared::Shared;
use crate::lifecycle::swap::{Swapped, swap};
use crate::process::confine::why_unconfined;
use crate::process::spawner::Program;
use crate::transport::greeting;
use section::ProgramConfig;

/// What became of a program in a reload.
pub(crate) enum Offered {
    /// Its toolbox was left alone.
    Same(String),
    /// Its toolbox was to be opened.
    Swapped(String, Result<Swapped, FailedFile>),
    /// It cannot be used. Its working copy stays where it has one and no other file or program has the id.
    Broken {
        keeps: Option<String>,
        failed: FailedFile,
    },
    /// The section of its toolbox switches it off.
    Nothing,
}

enum Finding {
    Same { id: String, reading: u64 },
    New(Box<Candidate>),
    Disabled { id: String },
}

/// What is wrong, and with which toolbox as far as that is known.
type Broken = (Option<String>, String);

/// Examines a program, takes the id of its toolbox for it, and opens that if it is new or has changed.
pub(crate) async fn offer(
    manager: &Arc<Shared>,
    claimant: Claimant<'_>,
    entry: &Arc<ProgramConfig>,
) -> Offered {
    let finding = examine(manager, entry).await;
    let finding = finding.and_then(|finding| still(manager, entry, finding));
    let id = match &finding {
        Ok(Finding::Same { id, .. } | Finding::Disabled { id }) => Some(id.clone()),
        Ok(Finding::New(candidate)) => Some(candidate.id.clone()),
        Err(_) => live(manager, entry).map(|(id, _)| id),
    };
    let claimed = match &id {
        Some(id) => claimant.claim(id).await,
        None => Ok(()),
    };
    // Those after it need not wait until its toolbox is open.
    drop(claimant);
    match (finding, claimed) {
        (Err((wrong, reason)), claimed) => Offered::Broken {
            keeps: id.clone().filter(|_| claimed.is_ok()),
            failed: failed(entry, wrong.or(id), &reason),
        },
        (Ok(_), Err(taken)) => Offered::Broken {
            keeps: None,
            failed: failed(entry, id, &taken),
        },
        (Ok(Finding::Disabled { .. }), Ok(())) => Offered::Nothing,
        (Ok(Finding::Same { id, reading }), Ok(())) => {
            if let Some(slot) = manager.copies().slots.get_mut(&id) {
                slot.config.reading = reading;
            }
            Offered::Same(id)
        }
        (Ok(Finding::New(candidate)), Ok(())) => {
            let id = candidate.id.clone();
            let swapped = swap(manager, *candidate).await;
            Offered::Swapped(
                id,
                swapped.map_err(|wrong| failed(entry, wrong.toolbox_id, &wrong.reason)),
            )
        }
    }
}

/// The failure of a program, as `status` shows it.
fn failed(entry: &ProgramConfig, toolbox_id: Option<String>, reason: &str) -> FailedFile {
    // The script of an interpreter says more than the interpreter.
    let mut paths = entry.command.iter().filter(|word| word.starts_with('/'));
    let shown = paths.next_back().or(entry.command.first());
    FailedFile {
        path: shown.map(PathBuf::from).unwrap_or_default(),
        toolbox_id: toolbox_id.or_else(|| entry.only_toolbox().map(str::to_owned)),
        reason: format!("program `{}`: {reason}", entry.name),
    }
}

/// The id of the live toolbox of a program, and whether it serves.
fn live(manager: &Shared, entry: &ProgramConfig) -> Option<(String, bool)> {
    let copies = manager.copies();
    let (id, slot) = copies.of_program(&entry.name)?;
    Some((id.to_owned(), slot.serves()))
}

/// A finding, unless the program was another toolbox before: both would drive the same hardware, and an emergency stop of the
/// one would not hold the other.
fn still(manager: &Shared, entry: &ProgramConfig, finding: Finding) -> Result<Finding, Broken> {
    match (&finding, live(manager, entry)) {
        (Finding::New(candidate), Some((old, _))) if old != candidate.id => {
            let new = candidate.id.clone();
            let reason = format!(
                "it says that it is toolbox `{new}`, and was `{old}`; set `enabled` to false, reload, and set it to true again"
            );
            Err((Some(new), reason))
        }
        _ => Ok(finding),
    }
}

/// From an entry of the configuration to a decision. Opens nothing.
async fn examine(manager: &Arc<Shared>, entry: &Arc<ProgramConfig>) -> Result<Finding, Broken> {
    let unknown = |reason: String| (None, reason);
    let looked = entry.clone();
    let found = manager.blocking(move || Executable::find(&looked)).await;
    let executable = found.map_err(unknown)?;
    if let Some((id, true)) = live(manager, entry) {
        let config = manager.settings.program(entry, &id);
        let config = config.map_err(|reason| (Some(id.clone()), reason))?;
        let copies = manager.copies();
        let slot = copies.slots.get(&id);
        let same = slot.is_some_and(|slot| {
            slot.source.code.executable() == Some(&executable) && config.keeps(&slot.config)
        });
        if same && config.toolbox.enabled {
            let reading = config.reading;
            return Ok(Finding::Same { id, reading });
        }
    }
    // Where it can be only one toolbox, that one's section counts from its first start on.
    let (mut env, mut confine) = (entry.env.clone(), entry.confine.clone());
    if let Some(id) = entry.only_toolbox() {
        let config = manager.settings.program(entry, id);
        let config = config.map_err(|reason| (Some(id.to_owned()), reason))?.toolbox;
        if !config.enabled {
            return Ok(Finding::Disabled { id: id.to_owned() });
        }
        let allowed = check::allowed(executable.shown(), &executable.sha256, &config.allow_sha256);
        allowed.map_err(|error| (Some(id.to_owned()), error.to_string()))?;
        env = config.env;
        confine = config.confine.filter(|confine| why_unconfined(confine).is_none());
    }
    let (sha256, fingerprint) = (executable.sha256.clone(), executable.fingerprint());
    let fingerprint = fingerprint.ok_or_else(|| unknown("it has no file".to_owned()))?;
    let file = Arc::new(PluginFile::program(executable, manager.stage.folder()));
    let probe = &manager.settings.probe;
    let host = Program {
        path: probe.program.clone().into(),
        env,
        confine,
    };
    let said = greeting::ask(&file, &host, probe.limit).await;
    let manifest = Arc::new(said.map_err(|what| unknown(format!("it {what}")))?);
    let id = manifest.id.clone();
    if !entry.may_offer(&id) {
        let (name, allowed) = (&entry.name, entry.toolboxes.join("`, `"));
        return Err(unknown(format!(
            "it offers toolbox `{id}`, and may offer `{allowed}`; if it should, add the id to `service.programs.{name}.toolboxes`"
        )));
    }
    let broken = |reason: String| (Some(id.clone()), reason);
    let config = manager.settings.program(entry, &id).map_err(broken)?;
    if !config.toolbox.enabled {
        return Ok(Finding::Disabled { id });
    }
    let allowed = check::allowed(file.path(), &sha256, &config.toolbox.allow_sha256);
    allowed.map_err(|error| broken(error.to_string()))?;
    check_config(&manifest, &config.toolbox.own).map_err(broken)?;
    Ok(Finding::New(Box::new(Candidate {
        id,
        path: file.path().to_owned(),
        staged: Staged {
            file,
            sha256,
            fingerprint,
        },
        manifest,
        code: None,
        config,
    })))
}
