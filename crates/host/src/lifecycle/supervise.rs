//! Restarts toolboxes whose process died: the copy takes no more calls, is restarted after a delay, and is given up if
//! it dies too often.
//!
//! A restart makes a new generation, as a reload does, so the engine and the registry need to know nothing of it.
//! Before a restart the keeper of the process has brought the hardware to rest, as far as possible. Read [`install`], then
//! [`watch`].

use std::sync::Arc;

use futures_util::future::BoxFuture;
use ovos_toolbox_wire::{Event, Severity};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::contract::services::{HostServices, Origin};
use crate::lifecycle::copies::Slot;
use crate::lifecycle::opening;
use crate::lifecycle::shared::Shared;
use crate::lifecycle::status::State;
use crate::transport::hosted::Hosted;
use crate::transport::peer::Death;

/// Makes a copy the live one and publishes it; returns the slot of the copy before it.
pub(crate) fn install(manager: &Arc<Shared>, slot: Slot) -> Option<Slot> {
    let origin: Origin = slot.instance.origin().clone();
    let died = slot.instance.died();
    let mut copies = manager.copies();
    let before = copies.install(slot);
    if let Some(event) = copies.changed_early.remove(&origin) {
        manager.services.tools_changed(&origin, event);
    }
    manager.publish(copies);
    // Watched only after it is installed, so that a copy which dies at once is restarted.
    let watch = watch(Arc::clone(manager), origin, died);
    manager.tracker.spawn(watch);
    before
}

/// Restarts a live copy if it dies; ends with the copy or with the service.
async fn watch(manager: Arc<Shared>, origin: Origin, died: BoxFuture<'static, Option<Death>>) {
    let death = tokio::select! {
        death = died => death,
        () = manager.stop.cancelled() => return,
    };
    if let Some(death) = death {
        bring_back(&manager, &origin, &death).await;
    }
}

/// Replaces a dead copy by a new one.
async fn bring_back(manager: &Arc<Shared>, origin: &Origin, death: &Death) {
    let Some(instance) = take_out(manager, origin) else {
        return;
    };
    let id = &*origin.toolbox_id;
    // A program that ends while something moves has crashed, whatever its exit status says.
    let mut too_often = if death.asked && !death.moving {
        let generation = origin.generation;
        tracing::warn!(
            toolbox = id,
            generation,
            reason = death.reason,
            "the toolbox asked to be restarted"
        );
        let mut copies = manager.copies();
        copies
            .health
            .entry(id.to_owned())
            .or_default()
            .restart_requested(&death.reason, Instant::now());
        false
    } else {
        tracing::error!(
            toolbox = id,
            generation = origin.generation,
            reason = death.reason,
            moving = death.moving,
            "the toolbox died"
        );
        tell(
            manager,
            origin,
            "toolbox_crashed",
            Severity::Error,
            json!({ "reason": death.reason, "moving": death.moving, "generation": origin.generation }),
        );
        fail(manager, id, &death.reason)
    };
    let mut reason = death.reason.clone();
    // This also waits until the hardware is at rest.
    manager.retire(instance, manager.settings.drain).await;
    loop {
        if too_often {
            return park(manager, origin, &reason);
        }
        let wait = {
            let mut copies = manager.copies();
            let health = copies.health.entry(id.to_owned()).or_default();
            health.wait(manager.settings.first_restart, manager.settings.max_restart)
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = manager.stop.cancelled() => return,
        }
        // Waits while a reload replaces or removes this toolbox. Other toolboxes wait for neither.
        let _alone = manager.alone(id).await;
        let (source, config) = {
            let copies = manager.copies();
            let Some(slot) = copies
                .slots
                .get(id)
                .filter(|slot| slot.instance.origin() == origin)
            else {
                return;
            };
            (slot.source.clone(), slot.config.clone())
        };
        if manager.stop.is_cancelled() {
            return;
        }
        match opening::open(manager, &source, &config).await {
            Ok(slot) => {
                let origin = slot.instance.origin().clone();
                let restarts = {
                    let mut copies = manager.copies();
                    let health = copies.health.entry(id.to_owned()).or_default();
                    health.restarts += 1;
                    health.restarts
                };
                install(manager, slot);
                tracing::warn!(
                    toolbox = id,
                    generation = origin.generation,
                    restarts,
                    "the toolbox was started again"
                );
                let data = json!({ "generation": origin.generation, "restarts": restarts });
                return tell(manager, &origin, "toolbox_restarted", Severity::Warning, data);
            }
            Err(why) => {
                tracing::error!(toolbox = id, reason = why, "the toolbox does not start again");
                too_often = fail(manager, id, &why);
                reason = why;
            }
        }
    }
}

/// Takes a copy out of service, if it is the live one: new calls wait.
fn take_out(manager: &Shared, origin: &Origin) -> Option<Arc<Hosted>> {
    let mut copies = manager.copies();
    let slot = copies.slots.get_mut(&*origin.toolbox_id)?;
    if slot.instance.origin() != origin || !slot.serves() {
        return None;
    }
    slot.state = State::Reloading;
    let taken = Arc::clone(&slot.instance);
    manager.publish(copies);
    Some(taken)
}

/// Notes a failure; true when it was one too many.
fn fail(manager: &Shared, id: &str, reason: &str) -> bool {
    let mut copies = manager.copies();
    let health = copies.health.entry(id.to_owned()).or_default();
    health.failed(reason, Instant::now(), manager.settings.max_failures)
}

/// Gives a toolbox up until a reload.
fn park(manager: &Shared, origin: &Origin, reason: &str) {
    let id = &*origin.toolbox_id;
    let why = format!(
        "its process died {} times within a minute (service.max_failures), the last time: {reason}; it is not restarted: run \
         `ovos-tools reload` to try again",
        manager.settings.max_failures
    );
    {
        let mut copies = manager.copies();
        let Some(slot) = copies
            .slots
            .get_mut(id)
            .filter(|slot| slot.instance.origin() == origin)
        else {
            return;
        };
        slot.state = State::Failed(why.clone());
        // The next reload counts from zero.
        copies.health.entry(id.to_owned()).or_default().forgive();
        manager.publish(copies);
    }
    tracing::error!(
        toolbox = id,
        reason = why,
        "the toolbox failed too often and is not restarted"
    );
    tell(
        manager,
        origin,
        "toolbox_failed",
        Severity::Error,
        json!({ "reason": why }),
    );
}

fn tell(manager: &Shared, origin: &Origin, kind: &str, severity: Severity, data: Value) {
    let event = Event {
        kind: kind.to_owned(),
        severity,
        data: Some(data),
    };
    manager.services.event(origin, event);
}
