//! One reload: makes the live toolboxes match the folders and the configuration.
//!
//! Computes the difference; each swap is carried out by itself, so that no toolbox waits for another. Read [`run`] first.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::{join, join_all, join3};

use crate::artifact::scan::{FailedFile, scan};
use crate::lifecycle::claimed::Offered;
use crate::lifecycle::claims::{Claims, Owner, Owners};
use crate::lifecycle::examine::{Candidate, Finding, examine};
use crate::lifecycle::program::{Offering, offer};
use crate::lifecycle::python::{had, offer_all};
use crate::lifecycle::shared::Shared;
use crate::lifecycle::status::ReloadReport;
use crate::lifecycle::swap::{Swapped, remove, swap};

/// Makes the live toolboxes match the folders and the configuration.
pub(crate) async fn run(manager: &Arc<Shared>) -> ReloadReport {
    let mut report = ReloadReport::default();
    if manager.stop.is_cancelled() {
        return report;
    }
    let folders = manager.settings.plugin_dirs.clone();
    let scanned = manager.blocking(move || Ok(scan(&folders))).await;
    let (files, failed) = match scanned {
        Ok(scanned) => scanned,
        Err(reason) => (
            Vec::new(),
            vec![FailedFile {
                path: PathBuf::new(),
                toolbox_id: None,
                reason,
            }],
        ),
    };
    let unread: Vec<PathBuf> = failed.iter().map(|folder| folder.path.clone()).collect();
    report.broken = failed;
    // All at the same time: each waits for its probe, and a start with four toolboxes has to be quick.
    let findings = join_all(files.iter().map(|path| examine(manager, path.clone()))).await;
    let Sorted {
        candidates,
        mut keep,
        mut owners,
    } = sort(manager, &files, findings, &mut report);
    keep.extend(candidates.iter().map(|candidate| candidate.id.clone()));
    {
        // The files of a folder that cannot be read may still exist.
        let copies = manager.copies();
        let plugins = copies
            .slots
            .iter()
            .filter(|(_, slot)| slot.source.program().is_none());
        let hidden =
            plugins.filter(|(_, slot)| unread.iter().any(|folder| slot.source.path.starts_with(folder)));
        for (id, slot) in hidden {
            keep.insert(id.clone());
            // No program takes their ids meanwhile.
            owners
                .entry(id.clone())
                .or_insert_with(|| Owner::File(slot.source.path.clone()));
        }
    }
    let claims = Arc::new(Claims::new((manager.settings.programs)(), owners));
    let pythons = (manager.settings.pythons)();
    // A toolbox that a program may still offer stays until all programs have answered, because it may be replaced. An interpreter
    // answers slowly and may offer any id, so only the toolboxes that it had stay for it.
    let had = had(manager, &pythons);
    let may_be_offered = |id: &str| claims.may_be_offered(id) || had.contains(id);
    let gone = others(manager, &keep, |id| !may_be_offered(id));
    let removals = join_all(gone.iter().map(|id| remove(manager, id)));
    let swaps = join_all(candidates.into_iter().map(|candidate| swap(manager, candidate)));
    let offers = join_all(
        claims
            .claimants()
            .map(|(claimant, program)| offer(manager, claimant, program)),
    );
    // Programs beside the files: one that does not answer delays none of them.
    let pythons = offer_all(manager, pythons.clone(), &claims);
    let (mut removed, mut swapped, (offered, pythons)) = join3(removals, swaps, join(offers, pythons)).await;
    keep.extend(gone);
    keep.extend(pythons.keeps);
    report.broken.extend(pythons.failed);
    let mut refused = BTreeMap::<String, Vec<FailedFile>>::new();
    for Offering { several, offered } in offered.into_iter().chain(pythons.offered) {
        // The failures of a program of several toolboxes stay until its next list.
        let mut of_it = several.map(|name| refused.entry(name).or_default());
        for offer in offered {
            match offer {
                Offered::Same(id) => {
                    keep.insert(id.clone());
                    report.unchanged.push(id);
                }
                Offered::Swapped(id, result) => {
                    keep.insert(id);
                    match (result, &mut of_it) {
                        (Err(failed), Some(of_it)) => of_it.push(failed),
                        (result, _) => swapped.push(result),
                    }
                }
                Offered::Broken { keeps, failed } => {
                    keep.extend(keeps);
                    of_it.as_deref_mut().unwrap_or(&mut report.broken).push(failed);
                }
                Offered::Opening(id) => _ = keep.insert(id),
                Offered::Nothing => {}
            }
        }
    }
    let gone = others(manager, &keep, |_| true);
    removed.extend(join_all(gone.iter().map(|id| remove(manager, id))).await);
    for removal in removed {
        match removal {
            Ok(id) => report.removed.push(id),
            Err(failed) => report.broken.push(failed),
        }
    }
    for swapped in swapped {
        match swapped {
            Ok(Swapped::Added(id)) => report.added.push(id),
            Ok(Swapped::Replaced(id)) => report.replaced.push(id),
            Err(failed) => report.broken.push(failed),
        }
    }
    for list in [
        &mut report.added,
        &mut report.removed,
        &mut report.replaced,
        &mut report.unchanged,
    ] {
        list.sort();
    }
    let mut copies = manager.copies();
    copies.failed.clone_from(&report.broken);
    let gone = copies
        .programs
        .extract_if(|name, _| !claims.has_program(name) && !pythons.names.contains(name));
    // Dropped without the lock: it may end their processes.
    let gone: Vec<_> = gone.collect();
    gone.iter().for_each(|(_, program)| program.replaced.cancel());
    copies.owners = claims.owners();
    copies.refused.clone_from(&refused);
    copies.pythons = pythons.looked_at;
    manager.publish(copies);
    drop(gone);
    report.broken.extend(refused.into_values().flatten());
    log(&report);
    report
}

/// The live toolboxes that are not kept, of those that fit.
fn others(manager: &Shared, keep: &HashSet<String>, fits: impl Fn(&str) -> bool) -> Vec<String> {
    let copies = manager.copies();
    let ids = copies.slots.keys();
    ids.filter(|id| !keep.contains(*id) && fits(id))
        .cloned()
        .collect()
}

struct Sorted {
    candidates: Vec<Candidate>,
    /// Toolboxes that stay as they are, even if their file is broken.
    keep: HashSet<String>,
    /// The file of each toolbox that has one.
    owners: Owners,
}

/// Assigns each toolbox id to the first file that has it.
fn sort(manager: &Shared, files: &[PathBuf], findings: Vec<Finding>, report: &mut ReloadReport) -> Sorted {
    let mut sorted = Sorted {
        candidates: Vec::new(),
        keep: HashSet::new(),
        owners: HashMap::new(),
    };
    let mut owners: HashMap<String, PathBuf> = HashMap::new();
    let mut broken = Vec::new();
    for (path, finding) in files.iter().zip(findings) {
        let taken = finding
            .id()
            .and_then(|id| Some((id.to_owned(), owners.get(id)?.clone())));
        match (taken, finding) {
            (_, Finding::Broken { id, reason }) => {
                broken.push(FailedFile {
                    path: path.clone(),
                    toolbox_id: id,
                    reason,
                });
            }
            (Some((id, owner)), _) => {
                let reason = format!(
                    "toolbox id `{id}` is taken by {}, which comes first; {} is not loaded. Remove one of the two files",
                    owner.display(),
                    path.display()
                );
                broken.push(FailedFile {
                    path: path.clone(),
                    toolbox_id: Some(id),
                    reason,
                });
            }
            (
                None,
                Finding::Same {
                    id,
                    path,
                    fingerprint,
                    reading,
                },
            ) => {
                if let Some(slot) = manager.copies().slots.get_mut(&id) {
                    slot.source.path.clone_from(&path);
                    slot.source.fingerprint = fingerprint;
                    slot.config.reading = reading;
                }
                owners.insert(id.clone(), path);
                report.unchanged.push(id.clone());
                sorted.keep.insert(id);
            }
            (None, Finding::Disabled { id }) => {
                owners.insert(id, path.clone());
            }
            (None, Finding::New(candidate)) => {
                owners.insert(candidate.id.clone(), path.clone());
                sorted.candidates.push(*candidate);
            }
        }
    }
    // A broken file leaves the working copy in place, unless another file has that toolbox now.
    for failed in &broken {
        let copies = manager.copies();
        if let Some((id, _)) = copies.at(&failed.path)
            && !owners.contains_key(id)
        {
            sorted.keep.insert(id.to_owned());
            owners.insert(id.to_owned(), failed.path.clone());
        }
    }
    report.broken.append(&mut broken);
    let owners = owners.into_iter();
    sorted.owners = owners.map(|(id, path)| (id, Owner::File(path))).collect();
    sorted
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
