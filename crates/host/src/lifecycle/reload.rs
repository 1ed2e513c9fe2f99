//! One reload: from what the folders hold to what lives.
//!
//! Owns the diff and the order of a swap: open before close, or close before open where the hardware opens only once,
//! and back to the working copy when that fails. Read [`run`] first.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::join_all;
use ovos_toolbox_wire::Failure;
use tokio::runtime::Handle;

use crate::artifact::file::PluginFile;
use crate::artifact::scan::{FailedFile, scan};
use crate::artifact::stage;
use crate::contract::services::Origin;
use crate::contract::tools::ToolSet;
use crate::ffi::load::Library;
use crate::ffi::plugin::Open;
use crate::lifecycle::book::{Slot, Source};
use crate::lifecycle::code::Code;
use crate::lifecycle::examine::{Candidate, Finding, examine};
use crate::lifecycle::manager::{Inner, rest};
use crate::lifecycle::settings::{Isolation, ToolboxConfig};
use crate::lifecycle::status::{ReloadReport, State};
use crate::lifecycle::supervise;
use crate::process::confine::Confine;
use crate::transport::child::ProcessSettings;
use crate::transport::hosted::Hosted;

/// Makes what lives match the folders and the configuration.
pub(crate) async fn run(manager: &Arc<Inner>) -> ReloadReport {
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
    // All at once: they wait for their probes, and a start with four toolboxes has to be quick.
    let findings = join_all(files.iter().map(|path| examine(manager, path.clone()))).await;
    let Sorted { candidates, keep } = sort(manager, &files, findings, &mut report);
    let gone: Vec<String> = {
        let book = manager.book();
        let absent = |id: &str, path: &PathBuf| {
            !keep.contains_key(id)
                && !candidates.iter().any(|c| c.id == id)
                // A folder that cannot be read says nothing about the files in it.
                && !unread.iter().any(|folder| path.starts_with(folder))
        };
        let slots = book
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
    let mut book = manager.book();
    book.failed.clone_from(&report.broken);
    manager.publish(book);
    log(&report);
    report
}

struct Sorted {
    candidates: Vec<Candidate>,
    /// Toolboxes that stay as they are, whether or not their file is fine.
    keep: HashMap<String, PathBuf>,
}

/// Gives each toolbox id to the first file that bears it.
fn sort(manager: &Inner, files: &[PathBuf], findings: Vec<Finding>, report: &mut ReloadReport) -> Sorted {
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
            (Some((id, owner)), finding) => {
                if let Finding::New(candidate) = finding {
                    stage::remove(candidate.staged.path, &Handle::current());
                }
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
                if let Some(slot) = manager.book().slots.get_mut(&id) {
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
    // A file that broke leaves the working copy alone, unless another file brings that toolbox now.
    for failed in &broken {
        let book = manager.book();
        if let Some((id, _)) = book.at(&failed.path)
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

/// Makes a candidate the copy that serves.
async fn swap(manager: &Arc<Inner>, candidate: Candidate) -> Result<Swapped, FailedFile> {
    let (id, path) = (candidate.id.clone(), candidate.path.clone());
    let failed = |reason: String| FailedFile {
        path: path.clone(),
        toolbox_id: Some(id.clone()),
        reason,
    };
    let source = load(manager, &candidate).await.map_err(failed)?;
    let config = candidate.config;
    let old = {
        let book = manager.book();
        book.slots
            .get(&id)
            .map(|slot| (slot.serves(), Arc::clone(&slot.instance)))
    };
    let Some((serves, old)) = old else {
        let slot = open_first(manager, &id, &source, &config).await.map_err(failed)?;
        install(manager, slot);
        return Ok(Swapped::Added(id));
    };
    if !serves {
        // The old copy is closed already; of one that died, the hardware is being brought to rest.
        if source.code.isolation() == Isolation::Process {
            old.close().await;
        }
        let slot = open(manager, &source, &config).await.map_err(|reason| {
            let mut book = manager.book();
            if let Some(slot) = book.slots.get_mut(&id) {
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

/// Opens the first copy of a toolbox. A stop that comes meanwhile holds it already.
async fn open_first(
    manager: &Arc<Inner>,
    id: &str,
    source: &Source,
    config: &ToolboxConfig,
) -> Result<Slot, String> {
    {
        let mut book = manager.book();
        book.starting.insert(id.to_owned());
        manager.publish(book);
    }
    let opened = open(manager, source, config).await;
    if opened.is_err() {
        let mut book = manager.book();
        book.starting.remove(id);
        manager.publish(book);
    }
    opened
}

/// Closes the old copy before the new one opens, and opens the old one again when that fails.
async fn swap_exclusive(
    manager: &Arc<Inner>,
    id: &str,
    source: Source,
    config: ToolboxConfig,
    old: Arc<Hosted>,
) -> Result<(), String> {
    let before = {
        let mut book = manager.book();
        let Some(slot) = book.slots.get_mut(id) else {
            return Err(format!("toolbox `{id}` is gone"));
        };
        slot.state = State::Reloading;
        let before = (slot.source.clone(), slot.config.clone());
        manager.publish(book);
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
            let mut book = manager.book();
            book.spares.insert(id.to_owned(), source);
            Err(format!("{reason}; the version before it was opened again"))
        }
        Err(again) => {
            let reason = format!("{reason}; the version before it does not open again either: {again}");
            let mut book = manager.book();
            if let Some(slot) = book.slots.get_mut(id) {
                slot.state = State::Failed(reason.clone());
            }
            book.spares.insert(id.to_owned(), source);
            manager.publish(book);
            Err(reason)
        }
    }
}

/// Takes a toolbox out of use whose file is gone.
async fn remove(manager: &Arc<Inner>, id: &str) -> Result<String, FailedFile> {
    let (instance, path) = {
        let book = manager.book();
        let Some(slot) = book.slots.get(id) else {
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
    let mut book = manager.book();
    if let Some(slot) = book.remove(id) {
        manager.publish(book);
        let manager = Arc::clone(manager);
        manager
            .tracker
            .clone()
            .spawn(async move { manager.retire(slot.instance).await });
    }
    Ok(id.to_owned())
}

/// Loads a candidate's library, unless these contents are loaded already.
async fn load(manager: &Arc<Inner>, candidate: &Candidate) -> Result<Source, String> {
    let Candidate {
        id,
        path,
        staged,
        code,
        manifest,
        config,
    } = candidate;
    let code = match code {
        Some(code) => code.clone(),
        None if config.isolation == Isolation::Process => {
            let file = Arc::new(PluginFile::staged(staged.path.clone()));
            Code::Staged(file, Arc::clone(manifest))
        }
        None => {
            let max = manager.settings.max_generations;
            {
                let mut book = manager.book();
                if book.loaded >= max {
                    stage::remove(staged.path.clone(), &Handle::current());
                    return Err(format!(
                        "restart needed: {max} plugin libraries were loaded since the service started, and none can be \
                         unloaded; restart the service to load {} (`service.max_generations`)",
                        path.display()
                    ));
                }
                book.loaded += 1;
            }
            let (file, shown) = (staged.path.clone(), path.clone());
            let loaded = manager.blocking(move || Library::load(&file, &shown).map_err(|e| e.to_string()));
            Code::Loaded(Arc::new(loaded.await?))
        }
    };
    if code.manifest().id != *id {
        return Err(format!(
            "{} called itself `{id}` when it was probed and `{}` when it was loaded",
            path.display(),
            code.manifest().id
        ));
    }
    let source = Source {
        code,
        path: path.clone(),
        sha256: staged.sha256.clone(),
        fingerprint: staged.fingerprint,
    };
    manager.book().spares.insert(id.clone(), source.clone());
    Ok(source)
}

/// Opens a copy and asks for its tools. A copy that fails is closed, and so is one that is not ready when the service ends.
pub(crate) async fn open(
    manager: &Arc<Inner>,
    source: &Source,
    config: &ToolboxConfig,
) -> Result<Slot, String> {
    let id = source.code.manifest().id.clone();
    let (generation, stop_epoch) = {
        let mut book = manager.book();
        (book.next_generation(&id), book.stop_epoch(&id))
    };
    let section = serde_json::to_string(&config.section).map_err(|e| e.to_string())?;
    let open = Open {
        generation,
        config: section,
        stop_epoch,
        limits: config.limits.clone(),
    };
    let services = manager.services.clone();
    let opening = match &source.code {
        Code::Loaded(library) => Hosted::in_process(Arc::clone(library), open, services).boxed(),
        Code::Staged(file, manifest) => {
            let missed = config.confine.as_ref().and_then(Confine::missed);
            if let Some(why) = missed {
                tracing::warn!(toolbox = id, why, "the toolbox runs without its confinement");
            }
            let process = ProcessSettings {
                program: manager.settings.probe.program(),
                file: Arc::clone(file),
                env: config.env.clone(),
                memory_mb: config.memory_mb,
                confine: config.confine.clone().filter(|_| missed.is_none()),
                hello: manager.settings.probe.limit,
            };
            Hosted::in_child(process, Arc::clone(manifest), open, services).boxed()
        }
    };
    let ending = || Failure::new("ToolboxClosed", "the service ends");
    let opened = tokio::select! {
        opened = opening => opened,
        () = manager.stop.cancelled() => Err(ending()),
    };
    let instance = Arc::new(opened.map_err(|e| format!("toolbox `{id}` does not open: {e}"))?);
    let origin = instance.origin().clone();
    manager
        .book()
        .instances
        .insert(origin.clone(), Arc::downgrade(&instance));
    let tools = tokio::select! {
        tools = instance.tools() => tools,
        () = manager.stop.cancelled() => Err(ending()),
    };
    match tools {
        Ok(tools) => {
            name_dropped(&origin, &tools);
            Ok(Slot {
                source: source.clone(),
                config: config.clone(),
                instance,
                tools: Arc::new(tools),
                state: State::Ready,
            })
        }
        Err(failure) => {
            manager.book().forget(&origin);
            let stays = manager.tracker.clone();
            stays.spawn(async move { rest(&instance).await });
            Err(format!("toolbox `{id}` does not list its tools: {failure}"))
        }
    }
}

/// Logs which tools cannot be used.
pub(crate) fn name_dropped(origin: &Origin, tools: &ToolSet) {
    let Origin {
        toolbox_id,
        generation,
    } = origin;
    for dropped in &tools.dropped {
        tracing::warn!(toolbox = &**toolbox_id, generation, "{dropped}; it is left out");
    }
}

/// Puts a copy into its place and publishes it; returns the slot that was there.
pub(crate) fn install(manager: &Arc<Inner>, slot: Slot) -> Option<Slot> {
    let origin: Origin = slot.instance.origin().clone();
    let died = (slot.config.isolation == Isolation::Process).then(|| slot.instance.died());
    let mut book = manager.book();
    let before = book.install(slot);
    if book.changed_early.remove(&origin) {
        manager.services.tools_changed(&origin);
    }
    manager.publish(book);
    if let Some(died) = died {
        // Watched only once it is in its place, so that a copy that dies at once is restarted.
        let watch = supervise::watch(Arc::clone(manager), origin, died);
        manager.tracker.spawn(watch);
    }
    before
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
