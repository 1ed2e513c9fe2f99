//! The toolboxes that a program of several offers: decides, at a reload and at every new list, which of them are
//! opened, left alone or refused.
//!
//! The refusal of one affects no other. Read [`find`], then [`renew`].

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::{join, join_all};
use ovos_toolbox_wire::Manifest;
use protocol::Raw;

use crate::artifact::check;
use crate::artifact::scan::FailedFile;
use crate::artifact::stage::Staged;
use crate::contract::manifest;
use crate::lifecycle::claimed::{Broken, Claimed, Finding, Offered, failed, not_allowed};
use crate::lifecycle::claims::{Claimant, Claims, Owner};
use crate::lifecycle::code::Code;
use crate::lifecycle::common::CommonProgram;
use crate::lifecycle::copies::Slot;
use crate::lifecycle::examine::{Candidate, check_config};
use crate::lifecycle::shared::Shared;
use crate::lifecycle::status::State;
use crate::lifecycle::swap::withdraw;
use crate::process::confine::why_unconfined;
use crate::transport::members::{Members, Offers, id_of};

/// Decides what has to be done about each toolbox of the newest list, and claims its id for the program.
pub(crate) async fn find(
    manager: &Shared,
    program: &Arc<CommonProgram>,
    claimant: &Claimant<'_>,
) -> Vec<Claimed> {
    let offers = program.offers.lock().clone();
    let (mut seen, mut found) = (HashSet::new(), Vec::new());
    for manifest in offers.iter() {
        let finding = judge(manager, program, manifest, &mut seen);
        found.push(Claimed::of(finding, None, claimant).await);
    }
    found
}

/// Decides what has to be done about one manifest. Opens nothing.
fn judge(
    manager: &Shared,
    program: &Arc<CommonProgram>,
    manifest: &Raw<Manifest>,
    seen: &mut HashSet<String>,
) -> Result<Finding, Broken> {
    let manifest = manifest::read(manifest.text()).map_err(|wrong| {
        (
            None,
            format!("it offers a manifest that cannot be used: {}", wrong.join("; ")),
        )
    })?;
    let id = manifest.id.clone();
    if !seen.insert(id.clone()) {
        return Err((None, format!("it offers toolbox `{id}` twice; the first counts")));
    }
    if !program.entry.may_offer(&id) {
        return Err((None, not_allowed(&program.entry, &id)));
    }
    let broken = |reason: String| (Some(id.clone()), reason);
    let mut config = manager.settings.program(&program.entry, &id).map_err(broken)?;
    if !config.toolbox.enabled {
        return Ok(Finding::Disabled { id });
    }
    // All toolboxes share the process and its confinement: a section that asks for more would silently not get it.
    let asked = config.toolbox.confine.as_ref();
    let asked = asked.filter(|confine| why_unconfined(confine).is_none());
    let key = if asked.is_some() && asked != program.host.confine.as_ref() {
        Some("confine")
    } else {
        config.memory_mb.map(|_| "limits.memory_mb")
    };
    if let Some(key) = key {
        let name = &program.entry.name;
        return Err(broken(format!(
            "toolbox `{id}` shares its process with others, so its own `{key}` cannot hold; put `confine` into \
             `service.programs.{name}` and remove it from the section, or give the toolbox a program of its own"
        )));
    }
    config.toolbox.env.clone_from(&program.host.env);
    config.toolbox.confine.clone_from(&program.host.confine);
    let path = program.file.path().to_owned();
    let allowed = check::allowed(&path, &program.sha256, &config.toolbox.allow_sha256);
    allowed.map_err(|error| broken(error.to_string()))?;
    check_config(&manifest, &config.toolbox.own).map_err(broken)?;
    let same = |slot: &Slot| {
        let common = slot.source.code.common();
        common.is_some_and(|common| Arc::ptr_eq(common, program))
            // The supervisor takes care of a toolbox that is being brought back.
            && !matches!(slot.state, State::Failed(_))
            && **slot.source.code.manifest() == manifest
            && config.keeps(&slot.config)
    };
    if manager.copies().slots.get(&id).is_some_and(same) {
        let reading = config.reading;
        return Ok(Finding::Same { id, reading });
    }
    if program.is_coming(&manifest, &config) {
        return Ok(Finding::Opening { id });
    }
    program.admit(&id).map_err(broken)?;
    let manifest = Arc::new(manifest);
    Ok(Finding::New(Box::new(Candidate {
        id,
        path,
        staged: Staged {
            file: program.file.clone(),
            sha256: program.sha256.clone(),
            fingerprint: program.fingerprint,
        },
        code: Some(Code::Common(program.clone(), manifest.clone())),
        manifest,
        config,
    })))
}

/// The part of a new list's changes that takes time.
struct Renewal {
    gone: Vec<String>,
    /// The toolboxes to open, by id.
    come: Vec<(String, Claimed)>,
}

/// Applies the newest list of a program's process: opens the toolboxes that are not live, closes the ones that are not
/// in the list, and leaves the others as they are. With `keeps`, the list of the hello closes none.
pub(crate) async fn renew(
    manager: &Arc<Shared>,
    program: &Arc<CommonProgram>,
    members: &Members,
    keeps: bool,
) {
    let _alone = program.renewing.lock().await;
    let Some(Renewal { gone, come }) = take(manager, program, members, keeps).await else {
        return;
    };
    // Without the lock of the reloads: a toolbox that hangs while it is opened delays no reload.
    let ids: HashSet<String> = come.iter().map(|(id, _)| id.clone()).collect();
    let gone = join_all(gone.iter().map(|id| withdraw(manager, program, id)));
    let come = join_all(come.into_iter().map(|(id, found)| async move {
        let offered = found.carry_out(manager, &program.entry).await;
        program.coming.lock().remove(&id);
        offered
    }));
    let (_, offered) = join(gone, come).await;
    let failed: Vec<FailedFile> = offered.into_iter().filter_map(Offered::into_failure).collect();
    let _turn = manager.turn.lock().await;
    let mut copies = manager.copies();
    if !copies.is_current(program) {
        return;
    }
    let refused = copies.refused.entry(program.entry.name.clone()).or_default();
    name_new(program, &failed, refused);
    refused.retain(|before| !is_among(before, &ids));
    refused.extend(failed);
    manager.publish(copies);
}

/// Decides what has to be done for a list, while no reload decides.
async fn take(
    manager: &Arc<Shared>,
    program: &Arc<CommonProgram>,
    members: &Members,
    keeps: bool,
) -> Option<Renewal> {
    let _turn = manager.turn.lock().await;
    let others = owners_beside(manager, program)?;
    let (offers, is_first) = {
        let listed = members.offers.borrow();
        (listed.offers.clone(), listed.number <= 1)
    };
    let offers = if keeps && is_first {
        with_live(manager, program, &offers)
    } else {
        offers
    };
    *program.offers.lock() = offers;
    let claims = Claims::new(vec![program.entry.clone()], others);
    let found = match claims.claimants().next() {
        Some((claimant, _)) => find(manager, program, &claimant).await,
        None => Vec::new(),
    };
    let kept: HashSet<String> = found.iter().filter_map(Claimed::keeps).collect();
    let mut gone = manager.copies().in_common(program);
    gone.retain(|id| !kept.contains(id));
    let (mut come, mut failed) = (Vec::new(), Vec::new());
    for found in found {
        if let Some(candidate) = found.candidate() {
            let with = (candidate.manifest.clone(), candidate.config.clone());
            program.coming.lock().insert(candidate.id.clone(), with);
            come.push((candidate.id.clone(), found));
        } else {
            // This case opens nothing.
            failed.extend(found.carry_out(manager, &program.entry).await.into_failure());
        }
    }
    let ids: HashSet<String> = come.iter().map(|(id, _)| id.clone()).collect();
    let mut copies = manager.copies();
    copies.owners = claims.owners();
    let refused = copies.refused.entry(program.entry.name.clone()).or_default();
    name_new(program, &failed, refused);
    // The failures of the toolboxes that are being opened stay until these are open, or fail again.
    refused.retain(|before| is_among(before, &ids));
    refused.extend(failed);
    manager.publish(copies);
    Some(Renewal { gone, come })
}

fn is_among(failed: &FailedFile, ids: &HashSet<String>) -> bool {
    failed.toolbox_id.as_ref().is_some_and(|id| ids.contains(id))
}

/// Logs only the failures that are new, because a list may come every second.
fn name_new(program: &CommonProgram, failed: &[FailedFile], known: &[FailedFile]) {
    for failed in failed.iter().filter(|failed| !known.contains(failed)) {
        tracing::warn!(
            program = program.entry.name,
            toolbox = failed.toolbox_id,
            reason = failed.reason,
            "a toolbox is not loaded"
        );
    }
}

/// The owners of ids without this program; `None` if the program was replaced.
fn owners_beside(manager: &Shared, program: &Arc<CommonProgram>) -> Option<crate::lifecycle::claims::Owners> {
    let copies = manager.copies();
    let own = Owner::Program(program.entry.name.clone());
    let others = copies.owners.iter().filter(|(_, owner)| **owner != own);
    let others = others.map(|(id, owner)| (id.clone(), owner.clone())).collect();
    copies.is_current(program).then_some(others)
}

/// Publishes that a program is given up.
pub(crate) async fn give_up(manager: &Arc<Shared>, program: &Arc<CommonProgram>, reason: &str) {
    let _turn = manager.turn.lock().await;
    let mut copies = manager.copies();
    if copies.is_current(program) {
        let failed = failed(&program.entry, None, reason);
        copies.refused.insert(program.entry.name.clone(), vec![failed]);
        manager.publish(copies);
    }
}

/// A list, with the live toolboxes that it lacks.
fn with_live(manager: &Shared, program: &Arc<CommonProgram>, offers: &Offers) -> Offers {
    let offered: HashSet<String> = offers.iter().filter_map(id_of).collect();
    let live: HashSet<String> = manager.copies().in_common(program).into_iter().collect();
    let before = program.offers.lock().clone();
    let is_kept = |manifest: &&Raw<Manifest>| {
        let id = id_of(manifest);
        id.is_some_and(|id| live.contains(&id) && !offered.contains(&id))
    };
    let kept = before.iter().filter(is_kept);
    Arc::new(offers.iter().chain(kept).cloned().collect())
}
