//! The emergency stop, and what lifts it.
//!
//! Everything that must not wait happens before the first await: latch, epoch, cancellation and the halt are on their
//! way when [`Engine::stop`] returns its future. Read [`Engine::stop`].

use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};
use tokio::time::timeout;

use super::Engine;
use super::call::Cause;
use super::latch::{LiftError, StopRecord};
use super::station::Station;
use super::subsystem::ALL;
use super::toolbox::Halt;

/// Which toolboxes to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopTarget {
    /// Every one.
    All,
    /// These; one that is not known means every one, because a stop is never refused.
    Toolboxes(Vec<String>),
}

/// What became of one toolbox in a stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Which.
    pub toolbox_id: String,
    /// The stop that holds it now.
    pub stop_id: String,
    /// Why its halt could not be confirmed. It is latched all the same.
    pub unreached: Option<String>,
}

/// Why a toolbox was not resumed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// No such toolbox.
    #[error("unknown toolbox `{0}`; `ovos.tools.status` lists them")]
    UnknownToolbox(String),
    /// The latch does not match.
    #[error("toolbox `{toolbox_id}`: {source}")]
    Latch {
        /// Which.
        toolbox_id: String,
        /// Why.
        source: LiftError,
    },
    /// The toolbox is not there to be asked.
    #[error("toolbox `{0}` is not running; reload it first")]
    NotRunning(String),
    /// The toolbox said no.
    #[error("toolbox `{toolbox_id}` refuses: {reason}")]
    Refused {
        /// Which.
        toolbox_id: String,
        /// Why.
        reason: String,
    },
}

impl Engine {
    /// Stops toolboxes. By the time this returns, the toolboxes are latched, their calls are being cancelled and their
    /// halts are on the way; the future brings the toolboxes' confirmation.
    pub fn stop(&self, target: &StopTarget, reason: &str) -> BoxFuture<'static, Vec<Stopped>> {
        let stations = self.stop_stations(target);
        let stop_id = format!("stop-{}", uuid::Uuid::now_v7());
        let halts: Vec<_> = stations
            .iter()
            .map(|station| self.stop_station(station, &stop_id, reason))
            .collect();
        self.latches_changed();
        Box::pin(join_all(halts))
    }

    /// Lifts the stop `stop_id` of a toolbox, if the toolbox agrees.
    ///
    /// # Errors
    /// See [`ResumeError`]. The toolbox stays latched.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, the toolbox stays latched.
    pub async fn resume(&self, toolbox_id: &str, stop_id: &str) -> Result<(), ResumeError> {
        let station = self
            .station(toolbox_id)
            .ok_or_else(|| ResumeError::UnknownToolbox(toolbox_id.to_owned()))?;
        let latch_error = |source| ResumeError::Latch {
            toolbox_id: toolbox_id.to_owned(),
            source,
        };
        station.latch.check(stop_id).map_err(latch_error)?;
        let toolboxes = station.live();
        let Some(newest) = toolboxes.first() else {
            return Err(ResumeError::NotRunning(toolbox_id.to_owned()));
        };
        let refused = |reason| ResumeError::Refused {
            toolbox_id: toolbox_id.to_owned(),
            reason,
        };
        match timeout(station.limits().plan, newest.resume()).await {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => return Err(refused(failure.message)),
            Err(_) => return Err(refused("it did not answer".to_owned())),
        }
        // A stop that came while the toolbox was asked has another id, so this does not lift it.
        station.latch.lift(stop_id).map_err(latch_error)?;
        self.latches_changed();
        tracing::warn!(toolbox = toolbox_id, stop_id, "emergency stop lifted");
        Ok(())
    }

    /// The stop that holds a toolbox.
    #[must_use]
    pub fn latch(&self, toolbox_id: &str) -> Option<StopRecord> {
        self.station(toolbox_id)?.latch.holder()
    }

    fn stop_stations(&self, target: &StopTarget) -> Vec<Arc<Station>> {
        let every = self.stations();
        match target {
            StopTarget::All => every,
            StopTarget::Toolboxes(ids) if ids.iter().any(|id| !every.iter().any(|s| s.toolbox_id == *id)) => {
                every
            }
            StopTarget::Toolboxes(ids) => every
                .into_iter()
                .filter(|s| ids.contains(&s.toolbox_id))
                .collect(),
        }
    }

    fn stop_station(
        &self,
        station: &Arc<Station>,
        stop_id: &str,
        reason: &str,
    ) -> impl Future<Output = Stopped> + Send + use<> {
        let record = StopRecord {
            stop_id: stop_id.to_owned(),
            reason: reason.to_owned(),
        };
        let stop_epoch = station.latch.stop(record);
        // The halts come first: cancelling wakes tasks, and they would compete with the halt for the processor.
        let halt = Halt {
            subsystems: vec![ALL.to_owned()],
            emergency: true,
            stop_epoch,
        };
        let limit = station.limits().halt;
        let halts: Vec<_> = station
            .live()
            .iter()
            .map(|t| timeout(limit, t.halt(halt.clone())))
            .collect();
        let cause = Cause::EmergencyStop {
            stop_id: stop_id.to_owned(),
            reason: reason.to_owned(),
        };
        for call in self
            .calls()
            .into_iter()
            .filter(|call| call.toolbox_id == station.toolbox_id)
        {
            call.end(cause.clone());
        }
        tracing::warn!(toolbox = %station.toolbox_id, stop_id, reason, "emergency stop");
        let (toolbox_id, stop_id) = (station.toolbox_id.clone(), stop_id.to_owned());
        async move {
            let mut unreached = halts.is_empty().then(|| "it is not running".to_owned());
            for halt in join_all(halts).await {
                unreached = match halt {
                    Ok(Ok(())) => unreached,
                    Ok(Err(failure)) => Some(failure.to_string()),
                    Err(_) => Some(format!(
                        "its halt was not answered within {} ms",
                        limit.as_millis()
                    )),
                };
            }
            Stopped {
                toolbox_id,
                stop_id,
                unreached,
            }
        }
    }
}
