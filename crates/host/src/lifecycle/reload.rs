//! One reload: makes the live toolboxes match the folders and the configuration.
//!
//! Each swap runs independently, so that no toolbox waits for another. [`Tally`] collects the results. Read [`run`]
//! first.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::{join, join_all, join3};

use crate::artifact::scan::{FailedFile, scan};
use crate::lifecycle::claims::{Claims, Owner, Owners};
use crate::lifecycle::examine::{Broken, Candidate, Finding, examine};
use crate::lifecycle::program::offer;
use crate::lifecycle::python::{known_toolboxes, offer_all};
use crate::lifecycle::reads::compared;
use crate::lifecycle::shared::Shared;
use crate::lifecycle::status::ReloadReport;
use crate::lifecycle::swap::{remove, swap};
use crate::lifecycle::tally::Tally;

/// Makes the live toolboxes match the folders and the configuration.
pub(crate) async fn run(manager: &Arc<Shared>) -> ReloadReport {
    if manager.stop.is_cancelled() {
        return ReloadReport::default();
    }
    let mut tally = Tally::default();
    let (files, failed) = scanned(manager).await;
    let unread: Vec<PathBuf> = failed.iter().map(|folder| folder.path.clone()).collect();
    tally.report.broken = failed;
    // All at the same time: each waits for its hello, and a start with four toolboxes has to be quick.
    let findings = join_all(files.iter().map(|path| examined(manager, path.clone()))).await;
    let (candidates, mut owners) = sort(manager, &files, findings, &mut tally);
    keep_unread(manager, &unread, &mut owners, &mut tally);
    let claims = Arc::new(Claims::new((manager.settings.programs)(), owners));
    let pythons = (manager.settings.pythons)();
    // A toolbox that a program may still offer stays until all programs have answered, because it may be replaced. An
    // interpreter answers slowly and may offer any id, so only the toolboxes that it had before stay until then.
    let of_pythons = known_toolboxes(manager, &pythons);
    let may_be_offered = |id: &str| claims.may_be_offered(id) || of_pythons.contains(id);
    let gone = others(manager, &tally.keep, |id| !may_be_offered(id));
    let removals = join_all(gone.iter().map(|id| remove(manager, id)));
    let swaps = join_all(candidates.into_iter().map(|candidate| swap(manager, candidate)));
    let offers = join_all(
        claims
            .claimants()
            .map(|(claimant, program)| offer(manager, claimant, program)),
    );
    // Programs run at the same time as the files, so a program that does not answer delays no file.
    let pythons = offer_all(manager, pythons, &claims);
    let (removed, swapped, (outcomes, pythons)) = join3(removals, swaps, join(offers, pythons)).await;
    tally.keep.extend(gone.into_iter().chain(pythons.keeps));
    tally.report.broken.extend(pythons.failed);
    let outcomes = outcomes.into_iter().flatten().chain(pythons.outcomes);
    outcomes.for_each(|outcome| tally.outcome(outcome));
    swapped.into_iter().for_each(|result| tally.swapped(result));
    removed.into_iter().for_each(|result| tally.removed(result));
    let gone = others(manager, &tally.keep, |_| true);
    let removed = join_all(gone.iter().map(|id| remove(manager, id))).await;
    removed.into_iter().for_each(|result| tally.removed(result));
    let Tally { report, off, .. } = tally.sorted();
    let mut copies = manager.copies();
    copies.failed.clone_from(&report.broken);
    let gone = copies
        .programs
        .extract_if(|name, _| !claims.has_program(name) && !pythons.names.contains(name));
    // Dropped after the lock is released, because the drop may end their processes.
    let gone: Vec<_> = gone.collect();
    copies.owners = claims.owners();
    copies.pythons = pythons.looked_at;
    copies.off = off;
    manager.publish(copies);
    drop(gone);
    log(&report);
    report
}

/// What has to be done about a plugin file, or about the toolbox that it is because of files that the toolbox reads.
async fn examined(manager: &Arc<Shared>, path: PathBuf) -> Result<Finding, Broken> {
    compared(manager, examine(manager, path).await?).await
}

/// The plugin files of the folders, and the folders that cannot be read.
async fn scanned(manager: &Arc<Shared>) -> (Vec<PathBuf>, Vec<FailedFile>) {
    let folders = manager.settings.plugin_dirs.clone();
    let scanned = manager.blocking(move || Ok(scan(&folders))).await;
    scanned.unwrap_or_else(|reason| {
        let failed = FailedFile {
            path: PathBuf::new(),
            toolbox_id: None,
            reason,
        };
        (Vec::new(), vec![failed])
    })
}

/// Keeps the toolboxes whose files are in folders that cannot be read: the files may still exist, and no program may
/// take their ids meanwhile.
fn keep_unread(manager: &Shared, unread: &[PathBuf], owners: &mut Owners, tally: &mut Tally) {
    let copies = manager.copies();
    let plugins = copies
        .slots
        .iter()
        .filter(|(_, slot)| slot.source.program().is_none());
    let hidden = plugins.filter(|(_, slot)| unread.iter().any(|folder| slot.source.path.starts_with(folder)));
    for (id, slot) in hidden {
        tally.keep.insert(id.clone());
        owners
            .entry(id.clone())
            .or_insert_with(|| Owner::File(slot.source.path.clone()));
    }
}

/// The live toolboxes that are not kept and that fit.
fn others(manager: &Shared, keep: &HashSet<String>, fits: impl Fn(&str) -> bool) -> Vec<String> {
    let copies = manager.copies();
    let ids = copies.slots.keys();
    ids.filter(|id| !keep.contains(*id) && fits(id))
        .cloned()
        .collect()
}

/// Assigns each toolbox id to the first file that has it. Returns the files to be opened, and the owner of each id.
/// Toolboxes that stay as they are, including those whose file is broken now, are noted in `tally`.
fn sort(
    manager: &Shared,
    files: &[PathBuf],
    findings: Vec<Result<Finding, Broken>>,
    tally: &mut Tally,
) -> (Vec<Candidate>, Owners) {
    let mut candidates = Vec::new();
    let mut owners: HashMap<String, PathBuf> = HashMap::new();
    let mut broken = Vec::new();
    for (path, finding) in files.iter().zip(findings) {
        let failed = |toolbox_id, reason| FailedFile {
            path: path.clone(),
            toolbox_id,
            reason,
        };
        let finding = match finding {
            Ok(finding) => finding,
            Err((id, reason)) => {
                broken.push(failed(id, reason));
                continue;
            }
        };
        let id = finding.id().to_owned();
        if let Some(owner) = owners.get(&id) {
            let reason = format!(
                "toolbox id `{id}` already belongs to {}, which comes first, so {} is not loaded: remove one of the two files",
                owner.display(),
                path.display()
            );
            broken.push(failed(Some(id), reason));
            continue;
        }
        owners.insert(id.clone(), path.clone());
        match finding {
            Finding::Same(candidate) => {
                candidate.stays(manager);
                tally.unchanged(id);
            }
            Finding::Disabled(_) => {}
            Finding::Off(off) => tally.off.push(off),
            Finding::New(candidate) => {
                tally.keep.insert(id);
                candidates.push(*candidate);
            }
        }
    }
    // A broken file leaves the working copy in place, unless another file has that toolbox now.
    for failed in &broken {
        let copies = manager.copies();
        if let Some((id, _)) = copies.at(&failed.path)
            && !owners.contains_key(id)
        {
            tally.keep.insert(id.to_owned());
            owners.insert(id.to_owned(), failed.path.clone());
        }
    }
    tally.report.broken.append(&mut broken);
    let owners = owners.into_iter().map(|(id, path)| (id, Owner::File(path)));
    (candidates, owners.collect())
}

fn log(report: &ReloadReport) {
    for failed in &report.broken {
        tracing::warn!(path = %failed.path.display(), toolbox = failed.toolbox_id, reason = failed.reason, "plugin not loaded");
    }
    tracing::info!(
        added = ?report.added,
        replaced = ?report.replaced,
        removed = ?report.removed,
        unchanged = report.unchanged.len(),
        broken = report.broken.len(),
        "plugins loaded"
    );
}
