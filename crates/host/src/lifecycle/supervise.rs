//! What happens if a toolbox's process dies: its copy takes no more calls, is restarted after a delay, and is given
//! up if it dies too often.
//!
//! A restart makes a new generation, as a reload does, so the engine and the registry need to know nothing of it.
//! Before a restart the keeper of the process has brought the hardware to rest, as far as possible. Read [`watch`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use ovos_toolbox_wire::{Event, Severity};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::contract::services::{HostServices, Origin};
use crate::lifecycle::manager::Inner;
use crate::lifecycle::opening;
use crate::lifecycle::reload;
use crate::lifecycle::status::State;
use crate::transport::hosted::Hosted;
use crate::transport::tether::Death;

/// Deaths are counted over this time.
const WINDOW: Duration = Duration::from_secs(60);

/// The failures of one toolbox's processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health {
    pub(crate) restarts: u64,
    /// The reason of the last death.
    pub(crate) last: Option<String>,
    /// When processes died or could not be opened; none older than the window, and no more than `max_failures`.
    failures: VecDeque<Instant>,
    /// The number of failures in a row, which decides the next delay.
    streak: u32,
}

impl Health {
    /// Notes a failure; true when it was one too many.
    fn failed(&mut self, reason: &str, now: Instant, max_failures: u32) -> bool {
        self.last = Some(reason.to_owned());
        // After a process that lived as long as the window, the count starts over.
        if self
            .failures
            .back()
            .is_some_and(|last| now.duration_since(*last) > WINDOW)
        {
            self.streak = 0;
        }
        self.streak = self.streak.saturating_add(1);
        self.failures.push_back(now);
        while let Some(oldest) = self.failures.front()
            && (now.duration_since(*oldest) > WINDOW || self.failures.len() > 1001)
        {
            self.failures.pop_front();
        }
        max_failures > 0 && self.failures.len() >= max_failures as usize
    }

    /// The delay before the next restart.
    fn wait(&self, first: Duration, max: Duration) -> Duration {
        let doublings = self.streak.saturating_sub(1).min(20);
        first.saturating_mul(1 << doublings).min(max)
    }

    /// Starts over, after a reload.
    pub(crate) fn forgive(&mut self) {
        self.failures.clear();
        self.streak = 0;
    }
}

/// Restarts a live copy if it dies; ends with the copy or with the service.
pub(crate) async fn watch(manager: Arc<Inner>, origin: Origin, died: BoxFuture<'static, Option<Death>>) {
    let death = tokio::select! {
        death = died => death,
        () = manager.stop.cancelled() => return,
    };
    if let Some(death) = death {
        bring_back(&manager, &origin, &death).await;
    }
}

/// Replaces a dead copy by a new one.
async fn bring_back(manager: &Arc<Inner>, origin: &Origin, death: &Death) {
    let Some(instance) = take_out(manager, origin) else {
        return;
    };
    let id = &*origin.toolbox_id;
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
    let mut too_often = fail(manager, id, &death.reason);
    let mut reason = death.reason.clone();
    // This also waits until the hardware is at rest.
    manager.retire(instance).await;
    loop {
        if too_often {
            return park(manager, origin, &reason);
        }
        let wait = {
            let mut book = manager.book();
            let health = book.health.entry(id.to_owned()).or_default();
            health.wait(manager.settings.first_restart, manager.settings.max_restart)
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = manager.stop.cancelled() => return,
        }
        // Not during a reload, which may be about to replace it.
        let _turn = manager.turn.lock().await;
        let (source, config) = {
            let book = manager.book();
            let Some(slot) = book.slots.get(id).filter(|slot| slot.instance.origin() == origin) else {
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
                    let mut book = manager.book();
                    let health = book.health.entry(id.to_owned()).or_default();
                    health.restarts += 1;
                    health.restarts
                };
                reload::install(manager, slot);
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

/// Makes calls wait, if the copy is the live one.
fn take_out(manager: &Inner, origin: &Origin) -> Option<Arc<Hosted>> {
    let mut book = manager.book();
    let slot = book.slots.get_mut(&*origin.toolbox_id)?;
    if slot.instance.origin() != origin || !slot.serves() {
        return None;
    }
    slot.state = State::Reloading;
    let taken = Arc::clone(&slot.instance);
    manager.publish(book);
    Some(taken)
}

/// Notes a failure; true when it was one too many.
fn fail(manager: &Inner, id: &str, reason: &str) -> bool {
    let mut book = manager.book();
    let health = book.health.entry(id.to_owned()).or_default();
    health.failed(reason, Instant::now(), manager.settings.max_failures)
}

/// Gives a toolbox up until a reload.
fn park(manager: &Inner, origin: &Origin, reason: &str) {
    let id = &*origin.toolbox_id;
    let why = format!(
        "its process died {} times within a minute (service.max_failures), the last time: {reason}; reload it to try \
         again",
        manager.settings.max_failures
    );
    {
        let mut book = manager.book();
        let Some(slot) = book
            .slots
            .get_mut(id)
            .filter(|slot| slot.instance.origin() == origin)
        else {
            return;
        };
        slot.state = State::Failed(why.clone());
        // The next reload counts from zero.
        book.health.entry(id.to_owned()).or_default().forgive();
        manager.publish(book);
    }
    tracing::error!(toolbox = id, reason = why, "the toolbox is left alone");
    tell(
        manager,
        origin,
        "toolbox_failed",
        Severity::Error,
        json!({ "reason": why }),
    );
}

fn tell(manager: &Inner, origin: &Origin, kind: &str, severity: Severity, data: Value) {
    let event = Event {
        kind: kind.to_owned(),
        severity,
        data: Some(data),
    };
    manager.services.event(origin, event);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_start_again_after_a_quiet_minute() {
        let (mut health, start) = (Health::default(), Instant::now());
        let (first, max) = (Duration::from_millis(200), Duration::from_secs(30));
        let mut waits = Vec::new();
        for second in 0..10 {
            assert!(!health.failed("x", start + Duration::from_secs(second), 0));
            waits.push(health.wait(first, max).as_millis());
        }
        assert_eq!(
            waits,
            [200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]
        );
        health.failed("x", start + Duration::from_secs(100), 0);
        assert_eq!(health.wait(first, max), first);
    }

    #[test]
    fn too_often_is_within_a_minute() {
        let (mut health, start) = (Health::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut fails = |seconds| health.failed("x", at(seconds), 3);
        assert_eq!([fails(0), fails(40), fails(70)], [false, false, false]);
        assert_eq!([fails(90), fails(200)], [true, false]);
    }
}
