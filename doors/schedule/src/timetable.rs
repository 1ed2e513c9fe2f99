//! The schedules, on the disk, with the bus on which is told what becomes of them. Read [`Timetable`].

use std::sync::Arc;

use door::Door;
use ovos_toolbox_wire::{FailureKind, Severity};
use parking_lot::Mutex;
use serde_json::Value;

use crate::clock::{now, text_of};
use crate::message::ScheduledMessage;
use crate::ovos_events;
use crate::store::{Store, Unreadable};
use crate::table::{Schedule, Table};

/// The schedules of this program.
pub(crate) struct Timetable {
    pub(crate) door: Arc<Door>,
    pub(crate) table: Mutex<Table>,
    store: Store,
}

impl Timetable {
    /// With the schedules that were kept.
    ///
    /// # Errors
    /// The file of the schedules cannot be read.
    pub(crate) fn read(door: Arc<Door>, store: Store) -> Result<Self, Unreadable> {
        let table = Mutex::new(store.read()?);
        Ok(Self { door, table, store })
    }

    /// Keeps the schedules on the disk.
    ///
    /// # Errors
    /// They cannot be kept.
    pub(crate) fn keep(&self, table: &Table) -> Result<(), String> {
        // The table is small, and the disk may be slow.
        let written = tokio::task::block_in_place(|| self.store.write(table));
        written.map_err(|cause| {
            tracing::error!(%cause, "the schedules cannot be kept");
            format!(
                "{}: the schedules cannot be kept on disk: {cause}",
                FailureKind::RuntimeError
            )
        })
    }

    /// Reports what has become of a schedule.
    pub(crate) fn publish(&self, kind: &str, severity: Severity, data: Value) {
        if let Err(error) = self.door.client.event(kind, severity, data) {
            tracing::warn!(kind, %error, "an event was not sent");
        }
    }

    /// Sends the message of a schedule.
    pub(crate) fn send(&self, schedule: &Schedule, message: &ScheduledMessage) {
        let due = schedule.firing_ms.map(text_of).unwrap_or_default();
        let (data, context) = ovos_events::message(schedule, message, [&due, &text_of(now())]);
        tracing::info!(event = message.event, due, "a message is sent");
        if let Err(error) = self.door.client.publish(&message.event, data, context) {
            tracing::error!(event = message.event, %error, "a message was not sent");
        }
    }
}
