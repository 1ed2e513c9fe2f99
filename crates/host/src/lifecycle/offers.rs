//! The toolboxes that a program of several offers: decides in a reload which of them are opened, left alone or refused.
//!
//! The refusal of one affects no other. Read [`find`].

use std::collections::HashSet;
use std::sync::Arc;

use ovos_toolbox_wire::Manifest;
use protocol::Raw;

use crate::artifact::check;
use crate::artifact::stage::Staged;
use crate::contract::manifest;
use crate::lifecycle::claimed::{Broken, Claimed, Finding, failed, not_allowed};
use crate::lifecycle::claims::Claimant;
use crate::lifecycle::code::Code;
use crate::lifecycle::common::CommonProgram;
use crate::lifecycle::copies::Slot;
use crate::lifecycle::examine::{Candidate, check_config};
use crate::lifecycle::shared::Shared;
use crate::lifecycle::status::State;
use crate::process::confine::why_unconfined;

/// Decides what has to be done about each toolbox of the list, and claims its id for the program.
pub(crate) async fn find(
    manager: &Shared,
    program: &Arc<CommonProgram>,
    claimant: &Claimant<'_>,
) -> Vec<Claimed> {
    let (mut seen, mut found) = (HashSet::new(), Vec::new());
    for manifest in &program.offers {
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

/// Publishes that a program is given up.
pub(crate) async fn give_up(manager: &Arc<Shared>, program: &Arc<CommonProgram>, reason: &str) {
    let _turn = manager.turn.lock().await;
    let mut copies = manager.copies();
    if copies.is_current(program) {
        let failed = failed(&program.entry, None, reason);
        copies.failed.push(failed);
        manager.publish(copies);
    }
}
