//! One reload: makes the live toolboxes match the folders.
//!
//! Computes the difference and orders each swap: open before close, or close before open if the hardware can be
//! opened only once, and back to the working copy if that fails. Read [`run`] first.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::join_all;

use crate::artifact::scan::{FailedFile, scan};
use crate::lifecycle::copies::{Slot, Source};
use crate::lifecycle::examine::{Candidate, Finding, examine};
use crate::lifecycle::opening::{load, open};
use crate::lifecycle::settings::Configured;
use crate::lifecycle::shared::Shared;
use crate::lifecycle::status::{ReloadReport, State};
use crate::lifecycle::supervise::install;
use crate::transport::hosted::Hosted;
use section::Isolation;

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
    let Sorted { candidates, keep } = sort(manager, &files, findings, &mut report);
    let gone: Vec<String> = {
        let copies = manager.copies();
        let absent = |id: &str, path: &PathBuf| {
            !keep.contains_key(id)
                && !candidates.iter().any(|c| c.id == id)
                // The files of a folder that cannot be read may still exist.
                && !unread.iter().any(|folder| path.starts_with(folder))
        };
        let slots = copies
            .slots
            .iter()
            .filter(|(id, slot)| absent(id, &slot.source.path));
        slots.map(|(id, _)| id.clone()).collect()
    };
    let removals = join_all(gone.iter().map(|id| remove(manager, id)));
    let swaps = join_all(candidates.into_iter().map(|candidate| swap(manager, candidate)));
    let (removed, swapped) = futures_util::future::join(removals, swaps).await;
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
    manager.publish(copies);
    log(&report);
    report
}

struct Sorted {
    candidates: Vec<Candidate>,
    /// Toolboxes that stay as they are, even if their file is broken.
    keep: HashMap<String, PathBuf>,
}

/// Assigns each toolbox id to the first file that has it.
fn sort(manager: &Shared, files: &[PathBuf], findings: Vec<Finding>, report: &mut ReloadReport) -> Sorted {
    let mut sorted = Sorted {
        candidates: Vec::new(),
        keep: HashMap::new(),
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
                owners.insert(id.clone(), path.clone());
                report.unchanged.push(id.clone());
                sorted.keep.insert(id, path);
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
            sorted.keep.insert(id.to_owned(), failed.path.clone());
        }
    }
    report.broken.append(&mut broken);
    sorted
}

enum Swapped {
    Added(String),
    Replaced(String),
}

/// Makes a candidate the live copy.
async fn swap(manager: &Arc<Shared>, candidate: Candidate) -> Result<Swapped, FailedFile> {
    let (id, path) = (candidate.id.clone(), candidate.path.clone());
    let failed = |reason: String| FailedFile {
        path: path.clone(),
        toolbox_id: Some(id.clone()),
        reason,
    };
    let source = load(manager, &candidate).await.map_err(failed)?;
    let config = candidate.config;
    let old = {
        let copies = manager.copies();
        copies
            .slots
            .get(&id)
            .map(|slot| (slot.serves(), Arc::clone(&slot.instance)))
    };
    let Some((serves, old)) = old else {
        let slot = open_first(manager, &id, &source, &config).await.map_err(failed)?;
        install(manager, slot);
        return Ok(Swapped::Added(id));
    };
    if !serves {
        // The old copy is closed already; if it died, its hardware is being brought to rest.
        if source.code.isolation() == Isolation::Process {
            old.close().await;
        }
        let slot = open(manager, &source, &config).await.map_err(|reason| {
            let mut copies = manager.copies();
            if let Some(slot) = copies.slots.get_mut(&id) {
                slot.state = State::Failed(reason.clone());
            }
            failed(reason)
        })?;
        install(manager, slot);
        return Ok(Swapped::Replaced(id));
    }
    let may_close = old.may_close().await;
    may_close.map_err(|refusal| {
        failed(format!(
            "toolbox `{id}` refuses to be replaced now: {}",
            refusal.message
        ))
    })?;
    if old.manifest().exclusive || source.code.manifest().exclusive {
        swap_exclusive(manager, &id, source, config, old)
            .await
            .map_err(failed)?;
    } else {
        let slot = open(manager, &source, &config).await.map_err(failed)?;
        if let Some(before) = install(manager, slot) {
            let manager = Arc::clone(manager);
            manager
                .tracker
                .clone()
                .spawn(async move { manager.retire(before.instance).await });
        }
    }
    Ok(Swapped::Replaced(id))
}

/// Opens the first copy of a toolbox. A stop that arrives meanwhile holds it, too.
async fn open_first(
    manager: &Arc<Shared>,
    id: &str,
    source: &Source,
    config: &Configured,
) -> Result<Slot, String> {
    {
        let mut copies = manager.copies();
        copies.starting.insert(id.to_owned());
        manager.publish(copies);
    }
    let opened = open(manager, source, config).await;
    if opened.is_err() {
        let mut copies = manager.copies();
        copies.starting.remove(id);
        manager.publish(copies);
    }
    opened
}

/// Closes the old copy before the new one opens, and opens the old one again if that fails.
async fn swap_exclusive(
    manager: &Arc<Shared>,
    id: &str,
    source: Source,
    config: Configured,
    old: Arc<Hosted>,
) -> Result<(), String> {
    let before = {
        let mut copies = manager.copies();
        let Some(slot) = copies.slots.get_mut(id) else {
            return Err(format!("toolbox `{id}` is gone"));
        };
        slot.state = State::Reloading;
        let before = (slot.source.clone(), slot.config.clone());
        manager.publish(copies);
        before
    };
    let (old_source, old_config) = before;
    manager.retire(old).await;
    let reason = match open(manager, &source, &config).await {
        Ok(slot) => {
            install(manager, slot);
            return Ok(());
        }
        Err(reason) => reason,
    };
    match open(manager, &old_source, &old_config).await {
        Ok(slot) => {
            install(manager, slot);
            let mut copies = manager.copies();
            copies.spares.insert(id.to_owned(), source);
            Err(format!("{reason}; the version before it was opened again"))
        }
        Err(again) => {
            let reason = format!("{reason}; the version before it does not open again either: {again}");
            let mut copies = manager.copies();
            if let Some(slot) = copies.slots.get_mut(id) {
                slot.state = State::Failed(reason.clone());
            }
            copies.spares.insert(id.to_owned(), source);
            manager.publish(copies);
            Err(reason)
        }
    }
}

/// Removes a toolbox whose file is gone.
async fn remove(manager: &Arc<Shared>, id: &str) -> Result<String, FailedFile> {
    let (instance, path) = {
        let copies = manager.copies();
        let Some(slot) = copies.slots.get(id) else {
            return Ok(id.to_owned());
        };
        (Arc::clone(&slot.instance), slot.source.path.clone())
    };
    if let Err(refusal) = instance.may_close().await {
        let reason = format!("toolbox `{id}` refuses to be removed now: {}", refusal.message);
        return Err(FailedFile {
            path,
            toolbox_id: Some(id.to_owned()),
            reason,
        });
    }
    let mut copies = manager.copies();
    if let Some(slot) = copies.remove(id) {
        manager.publish(copies);
        let manager = Arc::clone(manager);
        manager
            .tracker
            .clone()
            .spawn(async move { manager.retire(slot.instance).await });
    }
    Ok(id.to_owned())
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
