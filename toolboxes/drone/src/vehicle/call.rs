//! One call on a vehicle: its right to command, and the waits in which it looks at telemetry.
//!
//! Nothing a call sends goes past [`Call::send`], which asks whether the right still holds. Read [`Call`].

use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_sdk::prelude::*;

use super::control::Right;
use super::record::Asker;
use super::{Braked, Command, Ended, Gate, Link, Telemetry, Vehicle, lock};
use crate::guard::{Mode, Refusal, refuse};

/// One call on a vehicle.
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) vehicle: Arc<Vehicle>,
    gate: Arc<dyn Gate>,
    right: Right,
    effect: Effect,
}

impl Vehicle {
    /// Begins a call: the right to command, for as long as nobody withdraws it.
    pub(crate) fn begin(self: &Arc<Self>, id: String, effect: Effect, gate: Arc<dyn Gate>) -> Call {
        let mut control = lock(&self.control);
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
        let mut control = lock(&self.vehicle.control);
        match self.effect {
            Effect::Safe => control.safe_calls -= 1,
            Effect::Motion => control.motion_calls -= 1,
            _ => {}
        }
    }
}

impl Call {
    /// Says how far the call is.
    pub(crate) fn progress(&self, fraction: f64, message: &str) {
        self.gate.progress(fraction, message);
    }

    /// Ends with the reason when the right to command is gone.
    ///
    /// # Errors
    /// It is.
    pub(crate) fn still_may(&self) -> Result<(), Refusal> {
        if self.right.is_withdrawn() {
            Err(ended(&self.right.why()))
        } else {
            Ok(())
        }
    }

    /// Sends one command and waits for MAVSDK's answer.
    ///
    /// # Errors
    /// The call may not command any more, or the command did not work.
    ///
    /// # Cancel safety
    /// Dropped, a command that was sent stays sent; a brake waits for it and has the last word.
    pub(crate) async fn send(&self, command: Command) -> Result<(), Refusal> {
        let mut sent = None;
        {
            // Held while it is sent: whoever withdraws the right comes before or after, never in between.
            let mut control = lock(&self.vehicle.control);
            if !control.holds(&self.right) {
                return Err(ended(&self.right.why()));
            }
            self.gate.command(&mut || {
                control.tell(&command);
                if let Some(mode) = mode_of(&command) {
                    if self.effect == Effect::Motion {
                        control.flies();
                    }
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
                Err(_) => refuse("closed", "the toolbox closes"),
            },
        }
    }

    /// Waits until telemetry shows something, at most so much of the vehicle's time; `None` when it did not.
    ///
    /// # Errors
    /// The right to command is gone, or the vehicle is not heard any more.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn wait<R>(
        &self,
        at_most: Duration,
        mut look: impl FnMut(&Telemetry) -> Option<R>,
    ) -> Result<Option<R>, Refusal> {
        let until = self.vehicle.clock.after(at_most);
        let mut heard = self.vehicle.heard.subscribe();
        loop {
            if let Some(found) = look(&heard.borrow_and_update()) {
                return Ok(Some(found));
            }
            // Looked at now and then also when nothing comes: silence is what a lost link sounds like.
            let tick = tokio::time::sleep(Duration::from_millis(250));
            tokio::select! {
                biased;
                why = self.right.withdrawn() => return Err(ended(&why)),
                () = tokio::time::sleep_until(until) => return Ok(None),
                _ = heard.changed() => {}
                () = tick => {}
            }
            self.heard_still()?;
        }
    }

    /// Waits so much of the vehicle's time.
    ///
    /// # Errors
    /// As [`Call::wait`].
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn pause(&self, vehicle_time: Duration) -> Result<(), Refusal> {
        self.wait(vehicle_time, |_| None::<()>).await.map(drop)
    }

    /// Whether the vehicle is heard.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn heard_still(&self) -> Result<(), Refusal> {
        match self.vehicle.link() {
            Link::Up if self.vehicle.heard.borrow().link_ok() => Ok(()),
            Link::Up => refuse("link_lost", "the vehicle is not heard any more"),
            Link::Lost(why)
            | Link::Connecting(why)
            | Link::Absent(why)
            | Link::Missing(why)
            | Link::Untrusted(why) => {
                refuse("link_lost", format!("the vehicle is not heard any more: {why}"))
            }
        }
    }

    /// Asks for a flight mode until telemetry shows it: an acknowledged command is not always carried out. Asked again
    /// only as long as the mode was never reached.
    ///
    /// # Errors
    /// The mode did not come; the message quotes what the vehicle said.
    ///
    /// # Cancel safety
    /// As [`Call::send`].
    pub(crate) async fn change_mode(&self, command: Command, tries: u32) -> Result<(), Refusal> {
        let vehicle = &self.vehicle;
        let Some(mode) = mode_of(&command) else {
            return self.send(command).await;
        };
        let words = vehicle.heard.borrow().texts_so_far;
        let mut last = None;
        for attempt in 0..tries {
            // The first time it is always sent: a goto leads somewhere else in the mode it has, and a hold ends it.
            if attempt > 0 {
                self.pause(Duration::from_secs(1)).await?;
                let reached =
                    lock(&vehicle.control).reached(mode) && !matches!(command, Command::Goto { .. });
                if reached && vehicle.heard.borrow().mode == Some(mode) {
                    return Ok(());
                }
            }
            match self.send(command.clone()).await {
                Ok(()) => {}
                Err(refusal) if matches!(refusal.code, "denied" | "unconfirmed") => {
                    last = Some(refusal);
                    continue;
                }
                Err(refusal) => return Err(refusal),
            }
            let shown = self
                .wait(Duration::from_millis(2500), |heard| {
                    (heard.mode == Some(mode)).then_some(())
                })
                .await?;
            if shown.is_some() {
                return Ok(());
            }
        }
        lock(&vehicle.control).settle();
        let said = vehicle.heard.borrow().words_since(words);
        let said = said.map_or(String::new(), |words| format!("; the vehicle says: {words}"));
        match last {
            Some(refusal) => refuse(refusal.code, format!("{}{said}", refusal.msg)),
            None => refuse(
                "mode_refused",
                format!(
                    "the vehicle acknowledged and did not change its mode to {}{said}",
                    mode.name()
                ),
            ),
        }
    }

    /// Ends a call that has changed the mode and failed with `why`: what was not acknowledged may be carried out all the
    /// same, so the vehicle is braked, unless somebody else has it or has stopped it.
    ///
    /// # Cancel safety
    /// The brake goes on.
    pub(crate) async fn leave_at_rest(&self, why: &Refusal) {
        if matches!(why.code, "pilot_override" | "stopped" | "cancelled" | "closed") {
            return;
        }
        let braked = self.vehicle.brake(false, &self.id);
        if let Braked::Sent(_, told) = braked
            && self.heard_still().is_ok()
        {
            // The next call must not be overtaken by the brake of this one; what went wrong is the brake's to repeat.
            let _ = told.await;
        }
    }

    /// What the vehicle has said since text `number`, as the end of a sentence.
    pub(crate) fn quoted_since(&self, number: u64) -> String {
        let said = self.vehicle.heard.borrow().words_since(number);
        said.map_or(String::new(), |words| format!("; the vehicle says: {words}"))
    }
}

/// The mode a command leads to.
fn mode_of(command: &Command) -> Option<Mode> {
    Some(match command {
        Command::Takeoff => Mode::Takeoff,
        Command::Land => Mode::Land,
        Command::Return => Mode::ReturnToLaunch,
        Command::Hold | Command::Goto { .. } => Mode::Hold,
        Command::OffboardStart => Mode::Offboard,
        Command::StartMission => Mode::Mission,
        _ => return None,
    })
}

fn ended(why: &Ended) -> Refusal {
    match why {
        Ended::Halted => Refusal {
            code: "stopped",
            msg: "the call was stopped".to_string(),
        },
        Ended::Override(how) => Refusal {
            code: "pilot_override",
            msg: how.clone(),
        },
        Ended::Battery(why) => Refusal {
            code: "battery_low",
            msg: why.clone(),
        },
        Ended::Closed => Refusal {
            code: "closed",
            msg: "the toolbox closes".to_string(),
        },
    }
}
