//! Restart of pipelines after a restart of the toolbox.
//!
//! Decides, from the list on disk and the configuration, which pipelines are started again, and reports the others.
//! Read [`Table::recover`].

use std::sync::Arc;

use ovos_toolbox_sdk::prelude::*;

use super::record::{Declared, make_private};
use super::status::{Status, Summary};
use super::table::{Table, remember};
use super::trial::{LONG_TRIAL, TRIAL};
use super::view::{Clockwork, Phase};
use crate::config::Restart;

/// Crashes after which an instance is not started again. The service gives up after 5 in a minute.
const MOST_CRASHES: u32 = 3;

impl Table {
    /// Starts the pipelines of the list that should run again. Blocks.
    pub(super) fn recover(self: &Arc<Self>) -> Result<(), ToolError> {
        make_private(&self.config.state_dir.join("scratch"))?;
        for root in &self.config.write_roots {
            // Only the default folder is ours; other folders belong to the user.
            if root.starts_with(&self.config.state_dir) {
                make_private(root)?;
            }
        }
        let list = self.store.read();
        self.lock().next = list.next;
        let crashed = !list.closed;
        let mut returning: Vec<Declared> = Vec::new();
        for mut declared in list.instances {
            let configured = self.config.autostart.get(&declared.name);
            if configured.is_some_and(|entry| entry.pipeline != declared.pipeline) {
                // The configuration has changed; the loop below starts what it says now.
                continue;
            }
            declared.crashes = match (crashed, declared.on_trial) {
                (true, true) => declared.crashes + 1,
                (true, false) => declared.crashes,
                (false, _) => 0,
            };
            declared.on_trial = false;
            let wanted = declared.autostart || (crashed && declared.restart != Restart::Never);
            let too_often = declared.crashes >= MOST_CRASHES;
            if crashed && (!wanted || too_often) {
                self.lose(&declared);
            }
            if wanted && !too_often {
                returning.push(declared);
            } else if declared.autostart {
                // Held back; it is tried again after the toolbox was closed properly.
                self.lock().kept.push(declared);
            }
        }
        for (name, entry) in &self.config.autostart {
            let is_it = |declared: &Declared| declared.name == *name;
            if returning.iter().any(is_it) || self.lock().kept.iter().any(is_it) {
                continue;
            }
            let (_, instance_id) = self.lock().new_id(name);
            returning.push(Declared {
                instance_id,
                name: name.clone(),
                pipeline: entry.pipeline.clone(),
                restart: entry.restart,
                autostart: true,
                crashes: 0,
                on_trial: false,
            });
        }
        // The least suspect are started first.
        returning.sort_by_key(|declared| declared.crashes);
        let mut enlisted = Vec::new();
        for declared in returning {
            let mut state = self.lock();
            let order = state.next.max(1);
            state.next = order + 1;
            enlisted.push(Self::enlist(&mut state, order, declared, None));
        }
        let trial = if crashed { LONG_TRIAL } else { TRIAL };
        let innocent = enlisted.iter().filter(|one| !one.instance.is_suspect());
        innocent.for_each(|one| one.instance.put_on_trial(trial));
        self.save();
        for enlisted in enlisted {
            let name = enlisted.instance.id();
            if let Err(error) = self.launch(enlisted, None) {
                tracing::warn!(instance = name, %error, "it cannot be brought back");
            }
        }
        Ok(())
    }

    /// Records an instance that ended with the process and is not started again.
    pub(super) fn lose(&self, declared: &Declared) {
        let reason = if declared.crashes >= MOST_CRASHES {
            format!(
                "the toolbox's process died {} times when it had just been started",
                declared.crashes
            )
        } else {
            "the toolbox's process died".to_owned()
        };
        let summary = Summary {
            instance_id: declared.instance_id.clone(),
            name: declared.name.clone(),
            pipeline: declared.pipeline.clone(),
            state: Phase::Failed,
            stuck: false,
            uptime_s: 0.0,
            restart: declared.restart,
            autostart: declared.autostart,
            restarts: 0,
            devices: Vec::new(),
            files: Vec::new(),
            error: None,
            reason: Some(reason.clone()),
        };
        let status = Status {
            summary,
            clockwork: Clockwork::default(),
            playing_s: None,
            files_finished: None,
            last_error: None,
            messages: Vec::new(),
        };
        remember(&mut self.lock(), status);
        self.send(
            "pipeline_ended",
            Severity::Error,
            &declared.instance_id,
            &declared.name,
            json!({"reason": reason}),
        );
    }
}
