//! The start of an instance: from its pipeline's text to its thread. Read [`Table::begin`].

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use ovos_toolbox_sdk::prelude::*;

use super::entry::Instance;
use super::keeper::Keeper;
use super::process::{MOST_WAITING, Work, begin, made};
use super::record::Declared;
use super::table::{EnlistedInstance, Table};
use crate::config::Restart;

/// The arguments of `start_pipeline`.
pub(crate) struct Ask {
    pub(crate) pipeline: String,
    pub(crate) name: Option<String>,
    pub(crate) restart: Restart,
    pub(crate) autostart: bool,
}

impl Table {
    /// Makes a pipeline in a process of its own and starts the thread that keeps it. Blocks.
    pub(super) fn begin(self: &Arc<Self>, ask: Ask) -> Result<Arc<Instance>, ToolError> {
        self.sweep();
        self.check_room(ask.name.as_deref())?;
        let (inputs, waiting) = sync_channel(MOST_WAITING);
        let process = begin(
            &self.written,
            &self.config.scratch(),
            ask.pipeline.clone(),
            inputs.clone(),
        )?;
        self.lock().making.push(Arc::clone(&process));
        // Checked after it stands in the list, and a close ends what stands there after it has said so.
        let made = self.check_open().and_then(|()| {
            let made = made(&process, &waiting, |_, _| true);
            // No command comes before there is an instance.
            made.map_err(|error| error.unwrap_or_else(ToolError::cancelled))
        });
        let mut state = self.lock();
        state.making.retain(|other| !Arc::ptr_eq(other, &process));
        let made = made?;
        // Checked again, because making takes time: an instance added after a close would not be ended.
        self.check_open()?;
        Self::room(&state, &self.config, ask.name.as_deref())?;
        if ask.autostart && state.live.len() + state.kept.len() >= self.config.max_instances {
            return Err(ToolError::busy(format!(
                "`max_instances` is reached: {} ended pipelines are kept, because they start with the toolbox; remove one \
                 with `stop_pipeline`",
                state.kept.len()
            )));
        }
        let (number, instance_id) = state.new_id(ask.name.as_deref().unwrap_or_default());
        let declared = Declared {
            name: ask.name.unwrap_or_else(|| instance_id.clone()),
            instance_id,
            pipeline: ask.pipeline,
            restart: ask.restart,
            autostart: ask.autostart,
        };
        Self::claim_in(&mut state, number, &made.uses)?;
        let enlisted = Self::enlist(&mut state, number, declared, (inputs, waiting));
        drop(state);
        enlisted.instance.note_uses(&made.uses);
        self.save();
        self.launch(enlisted, Some(Work { process, made }))
    }

    /// Starts the thread of an instance.
    pub(super) fn launch(
        self: &Arc<Self>,
        enlisted: EnlistedInstance,
        work: Option<Work>,
    ) -> Result<Arc<Instance>, ToolError> {
        let EnlistedInstance { instance, waiting } = enlisted;
        let keeper = Keeper {
            table: Arc::clone(self),
            instance: Arc::clone(&instance),
            inputs: waiting,
        };
        let log = self.log.clone();
        // The lock is held during the start, because the thread takes its handle out when it ends.
        let mut place = instance.thread.lock();
        let thread = std::thread::Builder::new()
            .name(format!("gst-{}", instance.number))
            .spawn(move || tracing::dispatcher::with_default(&log, || keeper.run(work)));
        match thread {
            Ok(thread) => {
                *place = Some(thread);
                drop(place);
                Ok(instance)
            }
            Err(error) => {
                drop(place);
                let mut state = self.lock();
                state.live.remove(&instance.number);
                state.claims.retain(|_, owner| *owner != instance.number);
                Err(ToolError::busy(format!(
                    "cannot start a thread for the pipeline: {error}"
                )))
            }
        }
    }
}
