//! One call on a vehicle: its right to command, and its waits for telemetry.
//!
//! A call sends only through [`Call::send`], which checks that the right still holds. Read [`Call`].

use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_sdk::prelude::*;

use super::brake::BrakeOutcome;
use super::command::Command;
use super::link_state::Link;
use super::log_line::Asker;
use super::outside::Gate;
use super::right::EndReason;
use super::right::Right;
use super::telemetry::Telemetry;
use super::unit::Vehicle;
use crate::guard::{Mode, Refusal, refuse};

/// How long a call waits for commands from before; a command ends after 10 s at the latest, a brake when it is
/// acknowledged.
const OPEN: Duration = Duration::from_secs(12);

/// One call on a vehicle.
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) vehicle: Arc<Vehicle>,
    gate: Arc<dyn Gate>,
    right: Right,
    effect: Effect,
}

impl Vehicle {
    /// Begins a call, with the right to command until it is withdrawn.
    pub(crate) fn begin(self: &Arc<Self>, id: String, effect: Effect, gate: Arc<dyn Gate>) -> Call {
        let mut control = self.control.lock();
        match effect {
            Effect::Safe => control.safe_calls += 1,
            Effect::Motion => control.motion_calls += 1,
            _ => {}
        }
        let right = control.right(effect == Effect::Safe);
        drop(control);
        Call {
            id,
            vehicle: Arc::clone(self),
            gate,
            right,
            effect,
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut control = self.vehicle.control.lock();
        match self.effect {
            Effect::Safe => control.safe_calls -= 1,
            Effect::Motion => control.motion_calls -= 1,
            _ => {}
        }
    }
}

impl Call {
    /// Reports progress, 0 to 1.
    pub(crate) fn progress(&self, fraction: f64, message: &str) {
        self.gate.progress(fraction, message);
    }

    /// Checks that the right to command still holds.
    ///
    /// # Errors
    /// It was withdrawn, with the reason.
    pub(crate) fn still_may(&self) -> Result<(), Refusal> {
        if self.right.is_withdrawn() {
            Err(ended(&self.right.why()))
        } else {
            Ok(())
        }
    }

    /// Returns content beside the answer.
    pub(crate) fn show(&self, content: Content) {
        self.gate.show(content);
    }

    /// Waits until no command from before may be carried out any more: one of another call, or of a brake, would lead
    /// the vehicle elsewhere.
    ///
    /// # Errors
    /// The right to command was withdrawn, or a command stays open.
    async fn nothing_open(&self) -> Result<(), Refusal> {
        let mut open = self.vehicle.open_commands.subscribe();
        let before = open.borrow().sent();
        tokio::select! {
            biased;
            why = self.right.withdrawn() => Err(ended(&why)),
            _ = open.wait_for(|open| open.before(before) == 0) => Ok(()),
            () = tokio::time::sleep(OPEN) => refuse(
                "unconfirmed",
                format!("a command from before may still be carried out: the vehicle has not acknowledged it for {} s", OPEN.as_secs()),
            ),
        }
    }

    /// Sends one command and waits for MAVSDK's answer. A command of a motion call is sent after every command from
    /// before has ended; a safe call does not wait. A command that would take the vehicle from a pilot is sent after
    /// the vehicle has reported its mode.
    ///
    /// # Errors
    /// The right to command was withdrawn, the mode was not reported, or the command failed.
    ///
    /// # Cancel safety
    /// When dropped, a command that was sent stays sent; a brake waits for it and sends its own afterwards.
    pub(crate) async fn send(&self, command: Command) -> Result<(), Refusal> {
        if self.effect == Effect::Motion && (command.takes_control() || matches!(command, Command::Arm)) {
            self.nothing_open().await?;
        }
        if command.takes_control() {
            tokio::select! {
                biased;
                why = self.right.withdrawn() => return Err(ended(&why)),
                heard = self.vehicle.await_mode_again(self.effect) => heard?,
            }
        }
        let mut sent = None;
        {
            // The lock is held while sending: the right is withdrawn before or after that, never in between.
            let mut control = self.vehicle.control.lock();
            if !control.holds(&self.right) {
                return Err(ended(&self.right.why()));
            }
            self.gate.command(&mut || {
                control.store_target(&command);
                if let Some(mode) = command.mode() {
                    control.stops = false;
                    if self.effect == Effect::Motion {
                        control.flies();
                    }
                    control.expect_late(self.vehicle.open_commands.borrow().modes());
                    control.want(mode);
                    self.vehicle.note_mode_command(&command);
                } else if matches!(command, Command::Disarm) {
                    control.want_disarmed();
                }
                sent = Some(self.vehicle.dispatch(&self.id, command.clone()));
            });
        }
        let Some(answer) = sent else {
            return refuse("cancelled", "the call was cancelled");
        };
        self.vehicle.record_command(Asker::Call(&self.id), &command);
        tokio::select! {
            biased;
            why = self.right.withdrawn() => Err(ended(&why)),
            answer = answer => match answer {
                Ok(Ok(())) => Ok(()),
                Ok(Err(trouble)) => Err(Refusal { code: trouble.code(), msg: trouble.to_string() }),
                Err(_) => refuse("closed", "the toolbox is closing"),
            },
        }
    }

    /// Waits until `look` finds something in the telemetry, at most this long in vehicle time; `None` after a timeout.
    ///
    /// # Errors
    /// The right to command was withdrawn, or telemetry stopped.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn wait<R>(
        &self,
        at_most: Duration,
        mut look: impl FnMut(&Telemetry) -> Option<R>,
    ) -> Result<Option<R>, Refusal> {
        let until = self.vehicle.clock.after(at_most);
        let mut reports = self.vehicle.heard.subscribe();
        loop {
            if let Some(found) = look(&reports.borrow_and_update()) {
                return Ok(Some(found));
            }
            // Checks regularly even without a message: a lost link sends none.
            let tick = tokio::time::sleep(Duration::from_millis(250));
            tokio::select! {
                biased;
                why = self.right.withdrawn() => return Err(ended(&why)),
                () = tokio::time::sleep_until(until) => return Ok(None),
                _ = reports.changed() => {}
                () = tick => {}
            }
            self.heard_still()?;
        }
    }

    /// Waits this long in vehicle time.
    ///
    /// # Errors
    /// Like [`Call::wait`].
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn pause(&self, vehicle_time: Duration) -> Result<(), Refusal> {
        self.wait(vehicle_time, |_| None::<()>).await.map(drop)
    }

    /// Checks that telemetry arrives.
    ///
    /// # Errors
    /// Telemetry does not arrive.
    pub(crate) fn heard_still(&self) -> Result<(), Refusal> {
        match self.vehicle.link() {
            Link::Up if self.vehicle.heard.borrow().link_ok() => Ok(()),
            Link::Up | Link::Asleep => refuse("link_lost", "telemetry from the vehicle has stopped"),
            Link::Lost(why)
            | Link::Connecting(why)
            | Link::Absent(why)
            | Link::Missing(why)
            | Link::Untrusted(why) => refuse(
                "link_lost",
                format!("telemetry from the vehicle has stopped: {why}"),
            ),
        }
    }

    /// Requests a flight mode until telemetry shows it, because an acknowledged command is not always carried out.
    /// Repeats only while the mode was never reached.
    ///
    /// # Errors
    /// The mode was not reached; the message quotes the vehicle's status text.
    ///
    /// # Cancel safety
    /// Like [`Call::send`].
    pub(crate) async fn change_mode(&self, command: Command, tries: u32) -> Result<(), Refusal> {
        let vehicle = &self.vehicle;
        let Some(mode) = command.mode() else {
            return self.send(command).await;
        };
        let words = vehicle.heard.borrow().texts_so_far;
        let before = vehicle.open_commands.borrow().sent();
        let mut last = None;
        for attempt in 0..tries {
            // The first attempt is always sent: a goto has a new target in the same mode, and a hold ends it.
            if attempt > 0 {
                self.pause(Duration::from_secs(1)).await?;
                let reached =
                    vehicle.control.lock().reached(mode) && !matches!(command, Command::Goto { .. });
                if reached && vehicle.heard.borrow().mode == Some(mode) {
                    return Ok(());
                }
            }
            match self.send_last(&command, before).await {
                Ok(()) => {}
                Err(refusal) if matches!(refusal.code, "denied" | "unconfirmed") => {
                    last = Some(refusal);
                    continue;
                }
                Err(refusal) => return Err(refusal),
            }
            let report = self
                .wait(Duration::from_millis(2500), |heard| {
                    (heard.mode == Some(mode)).then_some(())
                })
                .await?;
            if report.is_some() {
                return Ok(());
            }
        }
        vehicle.control.lock().settle();
        let reason = vehicle.heard.borrow().words_since(words);
        let reason = reason.map_or(String::new(), |words| format!("; the vehicle says: {words}"));
        match last {
            Some(refusal) => refuse(refusal.code, format!("{}{reason}", refusal.msg)),
            None => refuse(
                "mode_refused",
                format!(
                    "the vehicle acknowledged and did not change its mode to {}{reason}",
                    mode.name()
                ),
            ),
        }
    }

    /// Sends a command, and once more as soon as the commands before number `before` have ended: the vehicle may have
    /// carried one of them out after this one.
    async fn send_last(&self, command: &Command, before: u64) -> Result<(), Refusal> {
        // A motion call has waited for them before it sends.
        let open = self.effect != Effect::Motion && self.vehicle.open_commands.borrow().before(before) > 0;
        self.send(command.clone()).await?;
        if !open {
            return Ok(());
        }
        self.nothing_open().await?;
        self.send(command.clone()).await
    }

    /// Whether the vehicle holds its position already, so that nothing has to be sent. Its mode is watched from now on as
    /// if it had been requested.
    ///
    /// # Errors
    /// The right to command was withdrawn.
    pub(crate) fn keeps_holding(&self, heard: &Telemetry) -> Result<bool, Refusal> {
        if !self.vehicle.holds_still(heard) {
            return Ok(false);
        }
        let mut control = self.vehicle.control.lock();
        if !control.holds(&self.right) {
            return Err(ended(&self.right.why()));
        }
        control.keep(Mode::Hold);
        Ok(true)
    }

    /// Logs the verdict of a guard and returns it.
    ///
    /// # Errors
    /// Those of the guard.
    pub(crate) fn judged<T: Serialize>(
        &self,
        check: &str,
        verdict: Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        self.vehicle.log.write("verdict", || {
            json!({"call_id": self.id, "check": check, "verdict": match &verdict {
                Ok(found) => json!({"allowed": found}),
                Err(refusal) => json!({"refused": refusal.code, "why": refusal.msg}),
            }})
        });
        verdict
    }

    /// Ends a call that has changed the mode and failed with `why`. The vehicle is braked, because an unacknowledged
    /// command may still be carried out, unless another party has taken over or a stop ended the call.
    ///
    /// # Cancel safety
    /// The brake continues.
    pub(crate) async fn leave_at_rest(&self, why: &Refusal) {
        if why.is_final() {
            return;
        }
        let braked = self.vehicle.brake(false, &self.id);
        if let BrakeOutcome::Sent(_, acknowledgement) = braked
            && self.heard_still().is_ok()
        {
            // Waits, so that this brake does not overtake the next call. The brake itself repeats a failed command.
            let _ = acknowledgement.await;
        }
    }

    /// The vehicle's status texts since text `number`, as the end of a sentence.
    pub(crate) fn quoted_since(&self, number: u64) -> String {
        let reason = self.vehicle.heard.borrow().words_since(number);
        reason.map_or(String::new(), |words| format!("; the vehicle says: {words}"))
    }
}

fn ended(why: &EndReason) -> Refusal {
    match why {
        EndReason::Halted => Refusal {
            code: "stopped",
            msg: "the call was stopped".to_string(),
        },
        EndReason::Override(taken) => Refusal {
            code: taken.code(),
            msg: taken.how.clone(),
        },
        EndReason::Battery(why) => Refusal {
            code: "battery_low",
            msg: why.clone(),
        },
        EndReason::Closed => Refusal {
            code: "closed",
            msg: "the toolbox is closing".to_string(),
        },
    }
}
