//! The toolboxes that a program of several offers: decides in a reload which of them are opened, left alone or refused.
//!
//! The refusal of one affects no other. Read [`find`].

use std::collections::HashSet;
use std::sync::Arc;

use ovos_toolbox_wire::Manifest;
use protocol::Raw;

use crate::contract::manifest;
use crate::lifecycle::claimed_finding::{ClaimedFinding, failed};
use crate::lifecycle::claims::Claimant;
use crate::lifecycle::code::{Code, Source};
use crate::lifecycle::common_program::CommonProgram;
use crate::lifecycle::examine::{Broken, Finding, judge};
use crate::lifecycle::shared::Shared;

/// Decides what has to be done about each toolbox of the list, and claims its id for the program.
pub(crate) async fn find(
    manager: &Shared,
    program: &Arc<CommonProgram>,
    claimant: &Claimant<'_>,
) -> Vec<ClaimedFinding> {
    let (mut seen, mut found) = (HashSet::new(), Vec::new());
    for manifest in &program.offers {
        let finding = judge_offer(manager, program, manifest, &mut seen);
        found.push(ClaimedFinding::of(finding, None, claimant).await);
    }
    found
}

/// Decides what has to be done about one manifest. Opens nothing.
fn judge_offer(
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
    let source = Source {
        code: Code::Common(program.clone(), Arc::new(manifest)),
        path: program.file.path().to_owned(),
        sha256: program.sha256.clone(),
        fingerprint: program.fingerprint,
    };
    judge(manager, source)
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
