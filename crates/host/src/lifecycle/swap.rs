//! Replaces, adds or removes one toolbox. The new copy is opened before the old one is closed, or after it if the
//! hardware can be opened only once; if that fails, the working copy is used again. Read [`swap`].

use std::sync::Arc;

use crate::artifact::scan::FailedFile;
use crate::lifecycle::code::Source;
use crate::lifecycle::copies::Slot;
use crate::lifecycle::examine::Candidate;
use crate::lifecycle::opening::open;
use crate::lifecycle::settings::ToolboxSettings;
use crate::lifecycle::shared::Shared;
use crate::lifecycle::status::State;
use crate::lifecycle::supervise::install;
use crate::transport::hosted::Hosted;

/// The result for a candidate.
pub(crate) enum SwapOutcome {
    Added(String),
    Replaced(String),
}

/// Makes a candidate the live copy.
pub(crate) async fn swap(manager: &Arc<Shared>, candidate: Candidate) -> Result<SwapOutcome, FailedFile> {
    let Candidate { source, config } = candidate;
    let (id, path) = (source.id().to_owned(), source.path.clone());
    let failed = |reason: String| FailedFile {
        path: path.clone(),
        toolbox_id: Some(id.clone()),
        reason,
    };
    // A copy that fails to open is opened again from the same file.
    manager.copies().spare(&id, source.clone());
    // Waits while the toolbox is restarted after a death.
    let _alone = manager.alone(&id).await;
    let old = {
        let copies = manager.copies();
        copies.slots.get(&id).map(|slot| {
            (
                slot.serves(),
                Arc::clone(&slot.instance),
                slot.source.code.clone(),
            )
        })
    };
    let Some((serves, old, old_code)) = old else {
        let slot = open_first(manager, &id, &source, &config).await.map_err(failed)?;
        install(manager, slot);
        return Ok(SwapOutcome::Added(id));
    };
    if !serves {
        // The old copy is closed already; if it died, its hardware is being brought to rest.
        old.close().await;
        let slot = open(manager, &source, &config).await.map_err(|reason| {
            let mut copies = manager.copies();
            if let Some(slot) = copies.slots.get_mut(&id) {
                slot.state = State::Failed(reason.clone());
            }
            failed(reason)
        })?;
        install(manager, slot);
        return Ok(SwapOutcome::Replaced(id));
    }
    let may_close = old.may_close().await;
    may_close.map_err(|refusal| {
        failed(format!(
            "toolbox `{id}` cannot be replaced now: {}",
            refusal.message
        ))
    })?;
    // Frames name a toolbox by its id, so a process cannot have two copies of one toolbox.
    let same_process = match (old_code.common(), source.code.common()) {
        (Some(old), Some(new)) => Arc::ptr_eq(old, new),
        _ => false,
    };
    drop(old_code);
    if same_process || old.manifest().exclusive || source.code.manifest().exclusive {
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
                .spawn(async move { manager.retire(before.instance, manager.settings.drain).await });
        }
    }
    Ok(SwapOutcome::Replaced(id))
}

/// Opens the first copy of a toolbox. A stop that arrives meanwhile also holds this toolbox.
async fn open_first(
    manager: &Arc<Shared>,
    id: &str,
    source: &Source,
    config: &ToolboxSettings,
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
    config: ToolboxSettings,
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
    manager.retire(old, manager.settings.drain).await;
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
            copies.spare(id, source);
            Err(format!("{reason}; the version before it was opened again"))
        }
        Err(again) => {
            let reason = format!("{reason}; the previous version does not reopen either: {again}");
            let mut copies = manager.copies();
            if let Some(slot) = copies.slots.get_mut(id) {
                slot.state = State::Failed(reason.clone());
            }
            copies.spare(id, source);
            manager.publish(copies);
            Err(reason)
        }
    }
}

/// Removes a toolbox whose file is gone.
pub(crate) async fn remove(manager: &Arc<Shared>, id: &str) -> Result<String, FailedFile> {
    let alone = manager.alone(id).await;
    let (instance, path) = {
        let copies = manager.copies();
        let Some(slot) = copies.slots.get(id) else {
            return Ok(id.to_owned());
        };
        (Arc::clone(&slot.instance), slot.source.path.clone())
    };
    if let Err(refusal) = instance.may_close().await {
        let reason = format!("toolbox `{id}` cannot be removed now: {}", refusal.message);
        return Err(FailedFile {
            path,
            toolbox_id: Some(id.to_owned()),
            reason,
        });
    }
    let mut copies = manager.copies();
    if let Some(slot) = copies.remove(id) {
        manager.publish(copies);
        // A shared process can have the next copy only when this one is closed.
        let alone = slot.source.code.common().map(|_| alone);
        let manager = Arc::clone(manager);
        manager.tracker.clone().spawn(async move {
            manager.retire(slot.instance, manager.settings.drain).await;
            drop(alone);
        });
    }
    Ok(id.to_owned())
}
