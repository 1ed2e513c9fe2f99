//! Restart of pipelines after a restart of the toolbox.
//!
//! Decides, from the list on disk and the configuration, which pipelines are started again, and reports the others.
//! Read [`Table::recover`].

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use ovos_toolbox_sdk::prelude::*;

use super::process::MOST_WAITING;
use super::record::Declared;
use super::status::{Status, Summary};
use super::table::{Table, remember};
use crate::config::Restart;
use crate::folder::make_private;
use crate::report::{Clockwork, Phase};

impl Table {
    /// Starts the pipelines of the list that should run again. Blocks.
    pub(super) fn recover(self: &Arc<Self>) -> Result<(), ToolError> {
        make_private(&self.config.scratch())?;
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
        for declared in list.instances {
            let configured = self.config.autostart.get(&declared.name);
            if configured.is_some_and(|entry| entry.pipeline != declared.pipeline) {
                // The configuration has changed; the loop below starts what it says now.
                continue;
            }
            if declared.autostart || (crashed && declared.restart != Restart::Never) {
                returning.push(declared);
            } else if crashed {
                self.lose(&declared);
            }
        }
        for (name, entry) in &self.config.autostart {
            let is_it = |declared: &Declared| declared.name == *name;
            if returning.iter().any(is_it) {
                continue;
            }
            let (_, instance_id) = self.lock().new_id(name);
            returning.push(Declared {
                instance_id,
                name: name.clone(),
                pipeline: entry.pipeline.clone(),
                restart: entry.restart,
                autostart: true,
            });
        }
        let mut enlisted = Vec::new();
        for declared in returning {
            let mut state = self.lock();
            let number = state.next.max(1);
            state.next = number + 1;
            enlisted.push(Self::enlist(
                &mut state,
                number,
                declared,
                sync_channel(MOST_WAITING),
            ));
        }
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
    fn lose(&self, declared: &Declared) {
        let reason = "the toolbox's process died".to_owned();
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
