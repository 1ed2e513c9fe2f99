//! The start of an instance: from its pipeline's text to its thread. Read [`Table::begin`].

use std::sync::{Arc, PoisonError};

use super::build::{BuildError, Built, build};
use super::entry::Instance;
use super::record::Declared;
use super::table::{Enlisted, Table};
use super::trial::TRIAL;
use super::worker::Worker;
use crate::config::Restart;

/// The arguments of `start_pipeline`.
pub(crate) struct Ask {
    pub(crate) pipeline: String,
    pub(crate) name: Option<String>,
    pub(crate) restart: Restart,
    pub(crate) autostart: bool,
}

impl Table {
    /// Makes a pipeline and starts its thread. Blocks.
    pub(super) fn begin(self: &Arc<Self>, ask: Ask) -> Result<Arc<Instance>, BuildError> {
        self.sweep();
        self.check_room(ask.name.as_deref())?;
        let built = build(&self.policy, &ask.pipeline)?;
        let mut state = self.lock();
        // Checked again, because building takes time: an instance added after a close would not be ended.
        self.check_open()?;
        Self::room(&state, &self.config, ask.name.as_deref())?;
        if ask.autostart && state.live.len() + state.kept.len() >= self.config.max_instances {
            return Err(BuildError::NotNow(format!(
                "{} pipelines have ended and come back with the toolbox, with those that run as many as `max_instances` \
                 allows: `stop_pipeline` strikes one off",
                state.kept.len()
            )));
        }
        let (order, instance_id) = state.new_id(ask.name.as_deref().unwrap_or_default());
        let declared = Declared {
            name: ask.name.unwrap_or_else(|| instance_id.clone()),
            instance_id,
            pipeline: ask.pipeline,
            restart: ask.restart,
            autostart: ask.autostart,
            crashes: 0,
            on_trial: false,
        };
        Self::claim_in(&mut state, order, &built.uses)?;
        let enlisted = Self::enlist(&mut state, order, declared, Some(&built));
        drop(state);
        enlisted.instance.put_on_trial(TRIAL);
        self.save();
        self.launch(enlisted, Some(built))
    }

    /// Starts the thread of an instance. The list on disk already contains it, so that a crash can be attributed to it.
    pub(super) fn launch(
        self: &Arc<Self>,
        enlisted: Enlisted,
        built: Option<Built>,
    ) -> Result<Arc<Instance>, BuildError> {
        let Enlisted { instance, waiting } = enlisted;
        let worker = Worker {
            table: Arc::clone(self),
            instance: Arc::clone(&instance),
            inputs: waiting,
        };
        let log = self.log.clone();
        // The lock is held during the start, because the thread takes its handle out when it ends.
        let mut place = instance.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let thread = std::thread::Builder::new()
            .name(format!("gst-{}", instance.order))
            .spawn(move || tracing::dispatcher::with_default(&log, || worker.run(built)));
        match thread {
            Ok(thread) => {
                *place = Some(thread);
                drop(place);
                Ok(instance)
            }
            Err(error) => {
                drop(place);
                let mut state = self.lock();
                state.live.remove(&instance.order);
                state.claims.retain(|_, owner| *owner != instance.order);
                Err(BuildError::NotNow(format!("no thread for the pipeline: {error}")))
            }
        }
    }
}
