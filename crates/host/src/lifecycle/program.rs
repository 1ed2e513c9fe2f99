//! Decides in a reload what has to be done about a program of the configuration, and carries that out.
//!
//! As `examine` for plugin files; but the owner of a toolbox can be decided only when the program has reported its id.
//! Read [`offer`].

use std::sync::Arc;

use futures_util::future::join_all;
use ovos_toolbox_wire::Manifest;
use protocol::Raw;

use crate::artifact::file::PluginFile;
use crate::artifact::program::Executable;
use crate::lifecycle::claimed_finding::{ClaimedFinding, OfferOutcome};
use crate::lifecycle::claims::Claimant;
use crate::lifecycle::code::{Code, Source};
use crate::lifecycle::common_program::CommonProgram;
use crate::lifecycle::copies::Slot;
use crate::lifecycle::examine::{Broken, Finding, judge, untouched};
use crate::lifecycle::offers;
use crate::lifecycle::program_keeper::ExaminedProgram;
use crate::lifecycle::reads::compared;
use crate::lifecycle::shared::Shared;
use crate::process::confine::why_unconfined;
use crate::transport::greeting::{self, Introduction};
use crate::transport::members::id_of;
use executable::check;
use section::ProgramConfig;

/// The result of examining a program.
enum Examination {
    One(Finding),
    Several(Arc<CommonProgram>),
}

/// Examines a program, takes the ids of its toolboxes for it, and opens those that are new or have changed.
pub(crate) async fn offer(
    manager: &Arc<Shared>,
    claimant: Claimant<'_>,
    entry: &Arc<ProgramConfig>,
) -> Vec<OfferOutcome> {
    let finding = match examine(manager, entry).await {
        Ok(Examination::Several(program)) => {
            let before = manager
                .copies()
                .replace_program(&entry.name, Some(program.clone()));
            // The drop may end the process of the program before.
            drop(before);
            return offer_several(manager, claimant, &program).await;
        }
        Ok(Examination::One(finding)) => {
            let finding = match still(manager, entry, finding) {
                Ok(finding) => compared(manager, finding).await,
                broken => broken,
            };
            if finding.is_ok() {
                let before = manager.copies().replace_program(&entry.name, None);
                drop(before);
            }
            finding
        }
        Err(broken) => Err(broken),
    };
    // These toolboxes stay even if their program cannot be used.
    let mut live: Vec<String> = live(manager, entry).into_iter().map(|(id, _)| id).collect();
    let first = live.pop();
    let claimed = ClaimedFinding::of(finding, first, &claimant).await;
    let mut kept = Vec::new();
    for id in live {
        if claimed.finding.is_err() && claimant.claim(&id).await.is_ok() {
            kept.push(id);
        }
    }
    // Later programs need not wait until the toolbox is open.
    drop(claimant);
    let mut outcome = claimed.carry_out(manager, entry).await;
    if let OfferOutcome::Broken { keeps, .. } = &mut outcome {
        keeps.extend(kept);
    }
    vec![outcome]
}

async fn offer_several(
    manager: &Arc<Shared>,
    claimant: Claimant<'_>,
    program: &Arc<CommonProgram>,
) -> Vec<OfferOutcome> {
    program.forgive();
    let found = offers::find(manager, program, &claimant).await;
    drop(claimant);
    let opening = found
        .into_iter()
        .map(|found| found.carry_out(manager, &program.entry));
    join_all(opening).await
}

/// The ids of the live toolboxes of a program, and whether each shares its process.
fn live(manager: &Shared, entry: &ProgramConfig) -> Vec<(String, bool)> {
    let copies = manager.copies();
    let of_it = copies.of_program(&entry.name);
    of_it
        .map(|(id, slot)| (id.to_owned(), slot.source.code.common().is_some()))
        .collect()
}

/// Passes a finding on, unless the program was another toolbox before: both would drive the same hardware, and an
/// emergency stop of one would not hold the other. A toolbox that shares its process drives no hardware.
fn still(manager: &Shared, entry: &ProgramConfig, finding: Finding) -> Result<Finding, Broken> {
    let live = live(manager, entry);
    let old = live.into_iter().find(|(_, shares)| !shares);
    match (&finding, old) {
        (Finding::New(candidate), Some((old, _))) if old != candidate.source.id() => {
            let new = candidate.source.id().to_owned();
            let reason = format!(
                "its toolbox id changed from `{old}` to `{new}`; to accept that, set `enabled` to false, reload, set it to \
                 true, and reload again"
            );
            Err((Some(new), reason))
        }
        _ => Ok(finding),
    }
}

/// The hashes that a program of several toolboxes may have whenever it is started: those that one of its toolboxes
/// allows. Empty if one of them allows everything.
fn allowed_of(manager: &Shared, entry: &ProgramConfig, offers: &[Raw<Manifest>]) -> Vec<String> {
    let ids = offers.iter().filter_map(id_of).filter(|id| entry.may_offer(id));
    let configured = ids.filter_map(|id| manager.settings.configured(Some(entry), &id).ok());
    let lists: Vec<Vec<String>> = configured.map(|config| config.toolbox.allow_sha256).collect();
    if lists.iter().any(Vec::is_empty) {
        return Vec::new();
    }
    lists.concat()
}

/// Decides what has to be done about an entry of the configuration. Opens nothing.
async fn examine(manager: &Arc<Shared>, entry: &Arc<ProgramConfig>) -> Result<Examination, Broken> {
    let unknown = |reason: String| (None, reason);
    let looked = entry.clone();
    let found = manager.blocking(move || Executable::find(&looked)).await;
    let executable = found.map_err(unknown)?;
    let is_live = |slot: &Slot| {
        let code = &slot.source.code;
        slot.serves() && code.common().is_none() && code.executable() == Some(&executable)
    };
    let live = untouched(manager, |copies| {
        copies.of_program(&entry.name).find(|(_, slot)| is_live(slot))
    });
    if let Some(same) = live? {
        return Ok(Examination::One(same));
    }
    // If the program can be only one toolbox, the section of that toolbox applies from the first start on.
    let (mut env, mut confine) = (entry.env.clone(), entry.confine.clone());
    if let Some(id) = entry.only_toolbox() {
        let config = manager.settings.configured(Some(&**entry), id);
        let config = config.map_err(|reason| (Some(id.to_owned()), reason))?.toolbox;
        if !config.enabled {
            return Ok(Examination::One(Finding::Disabled(id.to_owned())));
        }
        let allowed = check::allowed(executable.shown(), &executable.sha256, &config.allow_sha256);
        allowed.map_err(|error| (Some(id.to_owned()), error.to_string()))?;
        env = config.env;
        confine = config.confine.filter(|confine| why_unconfined(confine).is_none());
    }
    let greeter = &manager.settings.greeter;
    let host = greeter.host(env, confine);
    let before = manager.copies().programs.get(&entry.name).cloned();
    if let Some(program) = before.filter(|program| program.is_same(&executable, &host)) {
        return Ok(Examination::Several(program));
    }
    let (sha256, fingerprint) = (executable.sha256.clone(), executable.fingerprint());
    let fingerprint = fingerprint.ok_or_else(|| unknown("it has no file".to_owned()))?;
    let file = Arc::new(PluginFile::program(executable, manager.stage.folder()));
    let asking = greeting::learn(&file, file.path(), &host, greeter);
    let answer = manager.stop.run_until_cancelled(asking).await;
    let greeting = answer
        .ok_or_else(|| unknown("it is not started, because the service is shutting down".to_owned()))?;
    let manifest = match greeting.map_err(unknown)? {
        Introduction::One(manifest) => Arc::from(manifest),
        Introduction::Several(offers) => {
            // Every toolbox that it offers has to allow this file.
            let allow_sha256 = allowed_of(manager, entry, &offers);
            let allowed = check::allowed(file.path(), &sha256, &allow_sha256);
            allowed.map_err(|error| unknown(error.to_string()))?;
            let examined = ExaminedProgram {
                entry: entry.clone(),
                file,
                host,
                sha256,
                fingerprint,
                allow_sha256,
                offers,
            };
            return Ok(Examination::Several(CommonProgram::start(manager, examined)));
        }
    };
    let path = file.path().to_owned();
    let source = Source {
        code: Code::Staged(file, manifest),
        path,
        sha256,
        fingerprint,
    };
    judge(manager, source).map(Examination::One)
}
