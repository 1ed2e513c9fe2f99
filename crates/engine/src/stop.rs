//! The emergency stop, and the resume that lifts it.
//!
//! Everything urgent happens before the first await: when [`Engine::stop`] returns its future, the latch is set, the
//! epoch is raised, the halts are sent and the calls are being cancelled. Read [`Engine::stop`].

use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};
use tokio::time::timeout;

use super::call::Cause;
use super::engine::Engine;
use super::known_toolbox::KnownToolbox;
use super::latch::{LiftError, StopRecord};
use super::limits::Limits;
use super::subsystem::ALL;
use super::toolbox::{Halt, NoAnswer};

/// Which toolboxes to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopTarget {
    /// Every installed toolbox.
    All,
    /// These toolboxes. An empty list, or a name that is not installed, means every toolbox, because a stop is never
    /// refused.
    Toolboxes(Vec<String>),
}

/// The result of a stop for one toolbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopResult {
    /// The toolbox.
    pub toolbox_id: String,
    /// The stop that holds it now.
    pub stop_id: String,
    /// Why the toolbox's halt was not confirmed; `None` if it was. The toolbox is latched in every case.
    pub unreached: Option<String>,
}

/// The result for one toolbox when everything was resumed.
#[derive(Clone, Debug, PartialEq)]
pub struct ResumeResult {
    /// The toolbox.
    pub toolbox_id: String,
    /// Why it stays latched; `None` when it was resumed.
    pub refused: Option<ResumeError>,
}

/// Why a toolbox was not resumed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ResumeError {
    /// The engine knows no toolbox of this id.
    #[error("there is no toolbox `{0}`; `ovos-tools status` lists them")]
    UnknownToolbox(String),
    /// The toolbox is not latched, or another stop holds it.
    #[error("toolbox `{toolbox_id}`: {source}")]
    Latch {
        /// The toolbox.
        toolbox_id: String,
        /// The latch's answer.
        source: LiftError,
    },
    /// The toolbox has no live generation that could agree.
    #[error("toolbox `{0}` is not running; run `ovos-tools reload`, then resume it")]
    NotRunning(String),
    /// The toolbox was removed.
    #[error("toolbox `{0}` is not installed any more; resume `all` with this stop_id to remove its stop")]
    NotInstalled(String),
    /// One stop holds every toolbox, so a single one cannot be resumed.
    #[error(
        "toolbox `{toolbox_id}` is stopped together with everything else; resume `all` with stop_id `{stop_id}`"
    )]
    EverythingHeld {
        /// The toolbox of the request.
        toolbox_id: String,
        /// The stop that holds everything.
        stop_id: String,
    },
    /// This stop holds no toolbox.
    #[error("there is no stop `{0}` in force; `ovos-tools status` lists the stops that are")]
    HoldsNothing(String),
    /// The toolbox refused to resume, or did not answer in time.
    #[error("toolbox `{toolbox_id}` refuses to resume: {reason}")]
    Refused {
        /// The toolbox.
        toolbox_id: String,
        /// The toolbox's reason.
        reason: String,
    },
}

impl Engine {
    /// Stops toolboxes. When this returns, the toolboxes are latched, their halts are sent and their calls are being
    /// cancelled; the future resolves with the toolboxes' confirmations. May be called from any thread, including one
    /// outside the runtime.
    ///
    /// # Cancel safety
    /// Dropping the future loses the confirmations and nothing else.
    pub fn stop(&self, target: &StopTarget, reason: &str) -> BoxFuture<'static, Vec<StopResult>> {
        let record = StopRecord::new(reason);
        let (toolboxes, starting) = {
            let toolboxes = self.toolboxes.read();
            let all: Vec<_> = toolboxes.by_id.values().cloned().collect();
            (all, toolboxes.starting)
        };
        let (mut toolboxes, absent): (Vec<_>, Vec<_>) = toolboxes.into_iter().partition(|s| s.is_installed());
        let is_every = match target {
            StopTarget::All => true,
            StopTarget::Toolboxes(ids) => {
                ids.is_empty()
                    || ids
                        .iter()
                        .any(|id| !toolboxes.iter().any(|s| s.toolbox_id == *id))
            }
        };
        if is_every {
            let mut all = self.toolboxes.write();
            if starting || all.everything.is_some() {
                all.everything = Some(record.clone());
            }
            drop(all);
            // A toolbox that is not installed cannot be halted and is not in the answer; a latched one is held by the
            // newest stop.
            let held = |known: &&Arc<KnownToolbox>| starting || known.latch.holder().is_some();
            for known in absent.iter().filter(held) {
                known.latch.stop(record.clone());
            }
        } else if let StopTarget::Toolboxes(ids) = target {
            toolboxes.retain(|s| ids.contains(&s.toolbox_id));
        }
        self.stop_toolboxes(&toolboxes, &record, false)
    }

    /// Stops a toolbox that reported a stop of its own. As [`Self::stop`], but it never stops another toolbox. A
    /// toolbox that is not live yet is latched, too, so it is halted when it is attached. A toolbox that is latched
    /// already does not change (its report may be an echo of that very stop, sent from its halt), unless a resume of it
    /// is under way.
    ///
    /// # Cancel safety
    /// As [`Self::stop`].
    pub fn stop_itself(&self, toolbox_id: &str, reason: &str) -> BoxFuture<'static, Vec<StopResult>> {
        let entry = self.toolboxes.write().of(toolbox_id, Limits::default());
        if entry.latch.holder().is_some() && !entry.is_resuming() {
            tracing::debug!(toolbox = toolbox_id, reason, "it is in emergency stop already");
            return Box::pin(std::future::ready(Vec::new()));
        }
        self.stop_toolboxes(&[entry], &StopRecord::new(reason), true)
    }

    /// Whether a resume of a toolbox is under way: a stop that comes meanwhile is newer than the one that is being lifted.
    #[must_use]
    pub fn is_resuming(&self, toolbox_id: &str) -> bool {
        self.known_toolbox(toolbox_id)
            .is_some_and(|known| known.is_resuming())
    }

    fn stop_toolboxes(
        &self,
        toolboxes: &[Arc<KnownToolbox>],
        record: &StopRecord,
        itself: bool,
    ) -> BoxFuture<'static, Vec<StopResult>> {
        let StopRecord { stop_id, reason } = record;
        // All latches, then all halts, then the calls: a cancel wakes tasks, which would compete for the processor with
        // the halts of the remaining toolboxes.
        let epochs: Vec<u64> = toolboxes.iter().map(|s| s.latch.stop(record.clone())).collect();
        let halts: Vec<_> = toolboxes
            .iter()
            .zip(epochs)
            .map(|(known, epoch)| halt(known, epoch, stop_id))
            .collect();
        let ids = toolboxes.iter().map(|known| &known.toolbox_id);
        self.facts.stopped(record, ids, itself);
        for call in self.calls() {
            if toolboxes.iter().any(|s| s.toolbox_id == call.toolbox_id) {
                call.end(Cause::EmergencyStop {
                    stop_id: stop_id.clone(),
                    reason: reason.clone(),
                });
            }
        }
        self.latches_changed();
        for known in toolboxes {
            tracing::warn!(toolbox = known.toolbox_id, stop_id, reason, "emergency stop");
        }
        Box::pin(join_all(halts))
    }

    /// Lifts the stop `stop_id` of a toolbox, if the toolbox agrees. `by` is who asks for it, as text for people.
    ///
    /// # Errors
    /// See [`ResumeError`]. The toolbox stays latched.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, the toolbox stays latched.
    pub async fn resume(&self, toolbox_id: &str, stop_id: &str, by: &str) -> Result<(), ResumeError> {
        let (known, everything) = {
            let toolboxes = self.toolboxes.read();
            (
                toolboxes.by_id.get(toolbox_id).cloned(),
                toolboxes.everything.clone(),
            )
        };
        let entry = known.ok_or_else(|| ResumeError::UnknownToolbox(toolbox_id.to_owned()))?;
        if let Some(everything) = everything {
            return Err(ResumeError::EverythingHeld {
                toolbox_id: toolbox_id.to_owned(),
                stop_id: everything.stop_id,
            });
        }
        self.resume_toolbox(&entry, stop_id, by).await
    }

    /// Lifts the stop `stop_id` wherever it holds: the stop of everything, the latch of each installed toolbox that
    /// agrees, and the latches of toolboxes that are not installed. Returns the result for each installed one. `by` is as in [`Self::resume`].
    ///
    /// # Errors
    /// Another stop holds everything, or this one holds nothing.
    ///
    /// # Cancel safety
    /// If it is dropped while it asks the toolboxes, the stop of everything and the latches of toolboxes that are not
    /// installed are lifted already. An installed toolbox stays latched, unless it has agreed by then.
    pub async fn resume_all(&self, stop_id: &str, by: &str) -> Result<Vec<ResumeResult>, ResumeError> {
        let mut everything = false;
        let held = {
            let mut toolboxes = self.toolboxes.write();
            let held = toolboxes
                .by_id
                .values()
                .filter(|s| s.latch.check(stop_id).is_ok());
            let held: Vec<_> = held.cloned().collect();
            match &toolboxes.everything {
                Some(holder) if holder.stop_id == stop_id => {
                    toolboxes.everything = None;
                    everything = true;
                }
                Some(holder) => {
                    return Err(ResumeError::Latch {
                        toolbox_id: ALL.to_owned(),
                        source: LiftError::OtherStop {
                            given: stop_id.to_owned(),
                            current: holder.stop_id.clone(),
                        },
                    });
                }
                None if held.is_empty() => return Err(ResumeError::HoldsNothing(stop_id.to_owned())),
                None => {}
            }
            held
        };
        if everything {
            self.facts.resumed(ALL, stop_id, by);
        }
        let (installed, absent): (Vec<_>, Vec<_>) = held.into_iter().partition(|s| s.is_installed());
        for known in absent {
            // This fails if a newer stop came in between, which then holds the toolbox.
            if known.latch.lift(stop_id).is_ok() {
                self.facts.resumed(&known.toolbox_id, stop_id, by);
            }
        }
        self.latches_changed();
        let resumes = installed.iter().map(|known| async move {
            ResumeResult {
                toolbox_id: known.toolbox_id.clone(),
                refused: self.resume_toolbox(known, stop_id, by).await.err(),
            }
        });
        Ok(join_all(resumes).await)
    }

    async fn resume_toolbox(&self, known: &KnownToolbox, stop_id: &str, by: &str) -> Result<(), ResumeError> {
        let toolbox_id = known.toolbox_id.clone();
        let latch_error = |source| ResumeError::Latch {
            toolbox_id: toolbox_id.clone(),
            source,
        };
        // Set before the check: a stop that the toolbox reports from now on is newer than the one that is being lifted.
        let _resuming = known.resuming();
        known.latch.check(stop_id).map_err(latch_error)?;
        if !known.is_installed() {
            return Err(ResumeError::NotInstalled(toolbox_id));
        }
        let copies = known.live();
        if copies.is_empty() {
            return Err(ResumeError::NotRunning(toolbox_id));
        }
        let refused = |reason| ResumeError::Refused {
            toolbox_id: toolbox_id.clone(),
            reason,
        };
        let limit = known.limits().plan;
        let words = copies.iter().map(|copy| timeout(limit, copy.resume()));
        for (copy, word) in join_all(words).await.into_iter().enumerate() {
            match word {
                Ok(Ok(())) => {}
                // An older generation that is being drained drives the same machine, so it has to agree, too, until it
                // is gone.
                Ok(Err(unanswered)) if copy > 0 && !matches!(unanswered, NoAnswer::Failed(_)) => {}
                Ok(Err(unanswered)) => return Err(refused(unanswered.into_failure().message)),
                Err(_) => return Err(refused("it did not answer".to_owned())),
            }
        }
        // A stop that came while the toolbox was asked has another id, so this call does not lift it.
        known.latch.lift(stop_id).map_err(latch_error)?;
        self.latches_changed();
        tracing::warn!(toolbox = toolbox_id, stop_id, "emergency stop lifted");
        self.facts.resumed(&toolbox_id, stop_id, by);
        Ok(())
    }

    /// The stop that holds a toolbox, including one that is not loaded now; under `all`, the stop that holds
    /// everything.
    #[must_use]
    pub fn latch(&self, toolbox_id: &str) -> Option<StopRecord> {
        let toolboxes = self.toolboxes.read();
        if toolbox_id == ALL {
            return toolboxes.everything.clone();
        }
        toolboxes.by_id.get(toolbox_id)?.latch.holder()
    }
}

impl StopRecord {
    /// A record of a new stop, with an id of its own.
    #[must_use]
    pub fn new(reason: &str) -> Self {
        Self {
            stop_id: format!("stop-{}", uuid::Uuid::now_v7()),
            reason: reason.to_owned(),
        }
    }
}

/// Halts every live generation of a toolbox; the halts are sent when this returns.
fn halt(
    known: &KnownToolbox,
    stop_epoch: u64,
    stop_id: &str,
) -> impl Future<Output = StopResult> + Send + use<> {
    let halt = Halt {
        subsystems: vec![ALL.to_owned()],
        emergency: true,
        stop_epoch,
    };
    let limit = known.limits().halt;
    let halts: Vec<_> = known.live().iter().map(|t| t.halt(halt.clone())).collect();
    let (toolbox_id, stop_id) = (known.toolbox_id.clone(), stop_id.to_owned());
    async move {
        let mut unreached = halts.is_empty().then(|| "it is not running".to_owned());
        // `timeout` is called only in this future: it needs the runtime, and a stop may come from a thread outside of
        // it.
        let halts = halts.into_iter().map(|halt| timeout(limit, halt));
        for (copy, halt) in join_all(halts).await.into_iter().enumerate() {
            unreached = match halt {
                Ok(Ok(())) => unreached,
                // An older generation is brought to rest before it is closed, and a newer one drives the machine.
                Ok(Err(NoAnswer::Closed(_))) if copy > 0 => unreached,
                Ok(Err(unanswered)) => Some(unanswered.to_string()),
                Err(_) => Some(format!(
                    "its halt was not answered within {} ms",
                    limit.as_millis()
                )),
            };
        }
        StopResult {
            toolbox_id,
            stop_id,
            unreached,
        }
    }
}
