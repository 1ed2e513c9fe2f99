//! What comes back after a restart.
//!
//! Owns the decision, from the list on disk and the configuration, which pipelines are started again and what is said of
//! the others. Read [`Table::recover`].

use std::sync::Arc;

use ovos_toolbox_sdk::prelude::*;

use super::record::{Declared, make_private};
use super::status::{Status, Summary};
use super::table::{Table, remember, slug};
use super::view::{Clockwork, Phase};
use crate::config::Restart;

/// How often a process may die with an instance before that is left alone. The service gives up at 5 in a minute.
const MOST_CRASHES: u32 = 3;

impl Table {
    /// Brings back what ran, as far as it is to come back. Blocks.
    pub(super) fn recover(self: &Arc<Self>) -> Result<(), ToolError> {
        make_private(&self.config.state_dir.join("scratch"))?;
        for root in &self.config.write_roots {
            // The folder of the default; others belong to somebody else.
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
                // The configuration says something else by now, and is asked below.
                continue;
            }
            declared.crashes = if crashed { declared.crashes + 1 } else { 0 };
            let wanted = declared.autostart || (crashed && declared.restart != Restart::Never);
            if !wanted || declared.crashes >= MOST_CRASHES {
                if crashed {
                    self.lose(&declared);
                }
                // Kept, so that the configuration below does not start it at once.
                if declared.crashes >= MOST_CRASHES && configured.is_some() {
                    returning.push(declared);
                }
                continue;
            }
            returning.push(declared);
        }
        for (name, entry) in &self.config.autostart {
            if returning.iter().any(|declared| declared.name == *name) {
                continue;
            }
            let order = {
                let mut state = self.lock();
                state.next += 1;
                state.next - 1
            };
            returning.push(Declared {
                instance_id: format!("{}-{order}", slug(name)),
                name: name.clone(),
                pipeline: entry.pipeline.clone(),
                restart: entry.restart,
                autostart: true,
                crashes: 0,
            });
        }
        let mut enlisted = Vec::new();
        for declared in returning {
            if declared.crashes >= MOST_CRASHES {
                continue;
            }
            // Not all at once with what has just died: whichever it was, the others get time to run.
            let delay = if declared.crashes == 0 {
                Duration::ZERO
            } else {
                Duration::from_millis(500) * 2_u32.pow(declared.crashes)
            };
            let mut state = self.lock();
            let order = state.next.max(1);
            state.next = order + 1;
            enlisted.push((Self::enlist(&mut state, order, declared, None), delay));
        }
        self.save();
        for (enlisted, delay) in enlisted {
            let name = enlisted.instance.id();
            if let Err(error) = self.launch(enlisted, None, delay) {
                tracing::warn!(instance = name, %error, "it cannot be brought back");
            }
        }
        Ok(())
    }

    /// An instance died with the process and does not come back.
    pub(super) fn lose(&self, declared: &Declared) {
        let reason = if declared.crashes >= MOST_CRASHES {
            format!(
                "the toolbox's process died {} times while it ran",
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
