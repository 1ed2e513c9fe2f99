//! One call, or one run, from a client's request to its answer.

use std::time::Duration;

use client::{Call, Client, ClientError, Patience, Step};
use ovos_toolbox_wire::Effect;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use crate::calls::Running;
use crate::{Door, ListedTool, Turn};

/// How often a cancel is sent until the call has ended: the first cancel may arrive before the service knows the call.
const CANCEL_EVERY: Duration = Duration::from_millis(250);

/// How often the service is told that the door still runs while something moves. After a second without a beat the service ends
/// the call.
const BEAT_EVERY: Duration = Duration::from_millis(250);

/// How long to wait for the end of a cancelled call: what moves comes to rest first.
pub(crate) const CANCEL_WAIT: Duration = Duration::from_secs(10);

/// A call under way. If it is dropped before it has its answer, it asks the service to end the call.
pub struct CarriedCall<'a, A> {
    running: Running<'a>,
    call: Call<A>,
    tool: &'a str,
    /// Sends the beats, if the call moves something. It is a task of its own because whoever carries the call may wait for a client
    /// that reads slowly.
    _beat: Option<AbortOnDropHandle<()>>,
    cancelled: Option<Cancelled>,
}

struct Cancelled {
    again: Interval,
    given_up: Instant,
}

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// The connection to the bus, or the service, failed.
    #[error("{0}")]
    Client(#[from] ClientError),
    /// The call was cancelled, and has not ended since.
    #[error("it was cancelled, but is still running after {} s", CANCEL_WAIT.as_secs())]
    StillRuns,
}

/// Why a call did not begin: nothing runs.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The connection to the bus failed.
    #[error("{0}")]
    Client(#[from] ClientError),
    /// A stop arrived after the request.
    #[error("it was stopped before it began")]
    Stopped,
}

impl Door {
    /// Sends a call or a run when its turn has come; a tool that stops does not wait. `tool` says what the call may do: while a
    /// call that moves something runs, the door beats.
    ///
    /// # Errors
    /// The call could not be sent, or a stop came after its request: nothing runs.
    ///
    /// # Cancel safety
    /// Safe: it has not begun before it is returned.
    pub async fn carry<'a, A>(
        &'a self,
        turn: &Turn,
        tool: &'a ListedTool,
        call_id: &str,
        send: impl FnOnce(Patience) -> Result<Call<A>, ClientError>,
    ) -> Result<CarriedCall<'a, A>, StartError> {
        let call = if tool.effect == Effect::Stop {
            Some(self.begin(tool, call_id, send))
        } else {
            turn.comes().await;
            self.order.begin(turn, || {
                let call = self.begin(tool, call_id, send);
                // Here, so that a stop finds it under way or waiting, and not as both.
                turn.passes();
                call
            })
        };
        turn.passes();
        Ok(call.ok_or(StartError::Stopped)??)
    }

    fn begin<'a, A>(
        &'a self,
        tool: &'a ListedTool,
        call_id: &str,
        send: impl FnOnce(Patience) -> Result<Call<A>, ClientError>,
    ) -> Result<CarriedCall<'a, A>, ClientError> {
        tracing::debug!(call_id, tool = tool.name, "call");
        let mut running = self.calls.enter(&self.client, call_id, &tool.name);
        let beat = (tool.effect == Effect::Motion).then(|| {
            // The beat is sent before the call, so that the service knows which door the call belongs to. If the bus is away, the
            // service ends what moves.
            _ = self.client.beat();
            AbortOnDropHandle::new(tokio::spawn(beat(self.client.clone())))
        });
        let call = send(Patience::WhileItRuns).inspect_err(|_| running.answered())?;
        Ok(CarriedCall {
            running,
            call,
            tool: &tool.name,
            _beat: beat,
            cancelled: None,
        })
    }
}

impl<A> CarriedCall<'_, A> {
    /// Waits for the next step.
    ///
    /// # Errors
    /// The call has no answer. If it may still run, the service is asked to end it.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub async fn next(&mut self) -> Result<Step<A>, NoAnswer> {
        loop {
            let Self {
                running,
                call,
                cancelled,
                ..
            } = self;
            let again = async {
                match cancelled {
                    Some(cancelled) => tokio::select! {
                        _ = cancelled.again.tick() => false,
                        () = sleep_until(cancelled.given_up) => true,
                    },
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                step = call.next() => {
                    return match step {
                        Ok(Step::Answer(answer)) => {
                            running.answered();
                            Ok(Step::Answer(answer))
                        }
                        Ok(step) => Ok(step),
                        Err(error) => {
                            tracing::warn!(call_id = call.call_id(), tool = self.tool, %error, "a call got no answer");
                            Err(error.into())
                        }
                    };
                }
                given_up = again => {
                    if given_up {
                        tracing::warn!(
                            call_id = call.call_id(), tool = self.tool,
                            "a cancelled call did not end within {CANCEL_WAIT:?}"
                        );
                        return Err(NoAnswer::StillRuns);
                    }
                    _ = running.cancel();
                }
            }
        }
    }

    /// Asks the service to end the call, again and again until the call has ended; its answer tells how it ended. `reason` goes to
    /// the log.
    pub fn cancel(&mut self, reason: &str) {
        if self.cancelled.is_some() {
            return;
        }
        tracing::info!(
            call_id = self.call.call_id(),
            tool = self.tool,
            reason,
            "cancelling a call"
        );
        _ = self.running.cancel();
        self.cancelled = Some(Cancelled {
            again: every(CANCEL_EVERY),
            given_up: Instant::now() + CANCEL_WAIT,
        });
    }
}

/// Returns an interval whose first tick comes after one period.
fn every(period: Duration) -> Interval {
    let mut interval = interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

/// Beats until it is aborted.
async fn beat(client: Client) {
    let mut due = every(BEAT_EVERY);
    loop {
        due.tick().await;
        _ = client.beat();
    }
}
