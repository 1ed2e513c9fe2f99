//! Bringing a vehicle to rest, independent of everything else.
//!
//! Owns the one path to the vehicle that needs no right to command: zero velocity, Hold, and Land where Hold does not
//! help. It never disarms, and never acts against another party that has taken over. Read [`Vehicle::brake`].

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ovos_toolbox_sdk::prelude::Effect;
use tokio::sync::oneshot;
use tonic::transport::Channel;

use super::command::Command;
use super::open_commands::OpenCommand;
use super::rest::{Brake, BrakeObservation, Flight, SLOWING};
use super::right::EndReason;
use super::unit::Vehicle;
use crate::config::Estop;
use crate::guard::{Mode, OverrideCause};

/// The service halts every vehicle when one of them is taken over. A halt within this time after a takeover was not
/// requested by a user, and must not end the landing of another vehicle.
const ECHO: Duration = Duration::from_secs(2);
/// Interval of the check whether telemetry arrives again.
const HEARD_POLL: Duration = Duration::from_millis(50);
/// Greatest number of repetitions of a brake without effect.
const REPEATS: u32 = 4;
/// Time until an emergency brake judges its effect, vehicle time.
const STABLE_WITHIN: Duration = Duration::from_secs(3);

/// Greatest delay of a mode report, vehicle time.
const MODE_HEARD: Duration = Duration::from_millis(1500);
/// Greatest period of the oscillation of a stopped vehicle about its position, vehicle time: PX4's simulation flew on
/// for 2.5 s, was back 2 s later, and at rest after at most 13 s.
const SWING: Duration = Duration::from_secs(5);
/// A vehicle faster than this does not merely drift while it holds: PX4's simulation hovers at up to 0.84 m/s, and came
/// back to a stop position at 1.1 m/s.
const UNSTABLE_MPS: f64 = 1.5;

/// The immediate result of a brake.
pub(crate) enum BrakeOutcome {
    /// Nothing moves, or the vehicle is not ours to stop.
    Nothing(&'static str),
    /// Another party has taken over: nothing was sent.
    Foreign(OverrideCause),
    /// The commands of the brake with this number were sent; resolves when they are acknowledged.
    Sent(u64, oneshot::Receiver<Result<(), String>>),
    /// There is no connection to the vehicle.
    Unreachable(String),
}

impl Vehicle {
    /// Ends every motion call and sends the commands that bring the vehicle to rest. Returns at once.
    ///
    /// `asked_by` is a call's id or another origin, for the run log.
    pub(crate) fn brake(self: &Arc<Self>, emergency: bool, asked_by: &str) -> BrakeOutcome {
        let braked = self.begin_brake(emergency);
        let (number, why) = match &braked {
            BrakeOutcome::Sent(number, _) => (Some(*number), None),
            BrakeOutcome::Nothing(why) => (None, Some(*why)),
            BrakeOutcome::Unreachable(why) => (None, Some(why.as_str())),
            BrakeOutcome::Foreign(taken) => (None, Some(taken.how.as_str())),
        };
        self.record_brake(emergency, asked_by, number, why);
        braked
    }

    fn begin_brake(self: &Arc<Self>, emergency: bool) -> BrakeOutcome {
        let telemetry = self.telemetry();
        let (flight, brake, open) = {
            let mut control = self.control.lock();
            control.latched |= emergency;
            let echo = self
                .override_reported
                .lock()
                .is_some_and(|at| at.elapsed() < ECHO);
            let landing = (!emergency || echo) && control.safe_calls > 0;
            if let Some(taken) = control.overridden()
                && (!emergency || echo)
            {
                return BrakeOutcome::Foreign(taken.clone());
            }
            control.withdraw(&EndReason::Halted, emergency && !landing);
            if landing {
                return BrakeOutcome::Nothing("it is already being brought to safety");
            }
            if matches!(
                *self.link.borrow(),
                super::link_state::Link::Untrusted(_) | super::link_state::Link::Missing(_)
            ) {
                return BrakeOutcome::Nothing("it is not under our control");
            }
            let idle = !telemetry.may_move() && !self.open_commands.borrow().any()
                || telemetry.armed.is_none() && telemetry.heard.is_none();
            if idle {
                return BrakeOutcome::Nothing("it does not move");
            }
            let flight = Flight {
                offboard: control.is_offboard() || telemetry.mode == Some(Mode::Offboard),
                reposition: self.flies_in_hold(&telemetry),
                stubborn: false,
            };
            let rest = self.resting_mode(emergency);
            let (before, earlier) = {
                let open = self.open_commands.borrow();
                control.expect_late(open.modes());
                (open.sent(), open.before(open.sent()))
            };
            control.want(rest);
            control.stops = emergency;
            self.brakes.send_modify(|brakes| *brakes += 1);
            let brake = Brake {
                emergency,
                rest,
                number: *self.brakes.borrow(),
                before,
                earlier,
                commands: self.mode_commands.load(Ordering::SeqCst),
            };
            (flight, brake, OpenCommand::of_brake(&self.open_commands, rest))
        };
        *self.braked_at_mps.lock() = telemetry.pose().map(|pose| pose.speed());
        let channel = self.channel();
        let reachable = channel.is_some();
        let (acknowledge, acknowledgement) = oneshot::channel();
        let vehicle = Arc::clone(self);
        self.spawn(async move {
            vehicle
                .come_to_rest(channel, flight, brake, open, acknowledge)
                .await
        });
        self.spawn(Arc::clone(self).tell_rest(brake));
        if reachable {
            BrakeOutcome::Sent(brake.number, acknowledgement)
        } else {
            BrakeOutcome::Unreachable(format!(
                "{}: there is no connection to the vehicle; it is braked as soon as it is connected again",
                self.id
            ))
        }
    }

    fn resting_mode(&self, emergency: bool) -> Mode {
        if emergency && self.config.estop == Estop::Land {
            Mode::Land
        } else {
            Mode::Hold
        }
    }

    /// Sends the commands at once, and then watches until the vehicle is at rest.
    async fn come_to_rest(
        self: Arc<Self>,
        channel: Option<Channel>,
        mut flight: Flight,
        brake: Brake,
        open: OpenCommand,
        acknowledge: oneshot::Sender<Result<(), String>>,
    ) {
        if let Some(channel) = channel {
            let first = self.command_rest(channel, brake.number, brake.rest, flight).await;
            flight.stubborn = first.is_ok();
            let _ = acknowledge.send(first.map_err(|trouble| trouble.to_string()));
        }
        let began = self.watch_brake(flight, &brake, open).await;
        if let Some(began) = began
            && brake.emergency
            && brake.rest == Mode::Hold
        {
            tokio::select! {
                biased;
                () = self.superseding(&brake) => {}
                () = self.land_if_unstable(began, &brake) => {}
            }
        }
    }

    /// Repeats a brake until the vehicle is at rest, and each time that a command from before it has ended, because the
    /// vehicle may have carried that one out after the brake. Returns since when the vehicle has known of the brake, or
    /// `None` if another brake, call or party has priority.
    async fn watch_brake(
        self: &Arc<Self>,
        mut flight: Flight,
        brake: &Brake,
        open: OpenCommand,
    ) -> Option<tokio::time::Instant> {
        let mut open = Some(open);
        let mut began = tokio::time::Instant::now();
        let mut repeats = 0;
        let mut acknowledged = flight.stubborn;
        // How many earlier commands were open when the brake was last sent.
        let mut earlier = brake.earlier;
        let mut commands = self.open_commands.subscribe();
        loop {
            if !self.is_heard() {
                // Commands may have been lost, and a vehicle without a link flies on: wait until it is heard.
                self.heard_again().await;
                (repeats, flight.stubborn, acknowledged) = (0, false, false);
                // Once it has reported its mode, a takeover would be known, and it is braked at once.
                let reported = self.await_mode(Effect::Motion).await.is_ok();
                earlier = self.earlier(brake) + usize::from(reported);
            }
            if self.superseded(brake) || self.knows_better(brake) {
                return None;
            }
            if acknowledged && earlier == 0 {
                drop(open.take());
            }
            let seen = tokio::select! {
                biased;
                () = self.superseding(brake) => return None,
                _ = commands.wait_for(|open| open.before(brake.before) < earlier) => None,
                seen = self.watch_rest(brake.rest) => Some(seen),
            };
            let again = match seen {
                _ if !self.is_heard() => continue,
                None => {
                    flight.stubborn = false;
                    true
                }
                // A command that ends this rest may be on its way.
                Some(BrakeObservation::Rest) if earlier > 0 => false,
                Some(BrakeObservation::Rest) if acknowledged || repeats == REPEATS => {
                    self.arrived();
                    return Some(began);
                }
                Some(BrakeObservation::Slowing) => false,
                Some(BrakeObservation::Flying) if repeats == REPEATS && earlier == 0 => {
                    tracing::error!(vehicle = self.id, "the brake has no effect");
                    return Some(began);
                }
                Some(BrakeObservation::Rest | BrakeObservation::Flying) => {
                    repeats = REPEATS.min(repeats + 1);
                    true
                }
            };
            // By now the mode was reported again, so a takeover would be known.
            if self.knows_better(brake) {
                return None;
            }
            if let Some(channel) = self.channel().filter(|_| again) {
                flight.reposition |= self.flies_in_hold(&self.telemetry());
                if !acknowledged {
                    // No command has arrived so far.
                    began = tokio::time::Instant::now();
                }
                earlier = self.earlier(brake);
                let again = self.command_rest(channel, brake.number, brake.rest, flight).await;
                tracing::warn!(vehicle = self.id, ?again, "the brake was repeated");
                self.log.write(
                    "brake",
                    || ovos_toolbox_sdk::serde_json::json!({"vehicle": self.id, "brake": brake.number, "repeated": again.is_ok()}),
                );
                flight.stubborn |= again.is_ok();
                acknowledged = again.is_ok();
            }
            let stable = self.clock.since(began) >= STABLE_WITHIN && self.is_heard();
            if brake.emergency && earlier == 0 && stable {
                return Some(began);
            }
        }
    }

    /// How many commands from before a brake may still be carried out.
    fn earlier(&self, brake: &Brake) -> usize {
        self.open_commands.borrow().before(brake.before)
    }

    /// Resolves when a later brake exists.
    async fn superseding(&self, brake: &Brake) {
        let mut brakes = self.brakes.subscribe();
        // The sender lives as long as the vehicle.
        let _ = brakes.wait_for(|last| *last != brake.number).await.is_ok();
    }

    /// Whether the vehicle is connected and telemetry arrives.
    pub(super) fn is_heard(&self) -> bool {
        *self.link.borrow() == super::link_state::Link::Up && self.heard.borrow().link_ok()
    }

    async fn heard_again(&self) {
        let mut link = self.link.subscribe();
        while !self.is_heard() {
            // The sender lives as long as the vehicle.
            let _ = link
                .wait_for(|link| *link == super::link_state::Link::Up)
                .await
                .is_ok();
            self.clock.sleep(HEARD_POLL).await;
        }
    }

    /// Whether a later brake exists; that one watches instead.
    pub(super) fn superseded(&self, brake: &Brake) -> bool {
        *self.brakes.borrow() != brake.number
    }

    /// Whether a later call or another party has priority: repeating Hold would end the landing that it has started.
    pub(super) fn knows_better(&self, brake: &Brake) -> bool {
        self.overridden().is_some()
            || !self.control.lock().still_wants(brake.rest)
            || self.mode_commands.load(Ordering::SeqCst) != brake.commands
    }

    /// Lands a vehicle that does not hold, or that is as fast in the second oscillation about its stop as in the first.
    async fn land_if_unstable(self: &Arc<Self>, began: tokio::time::Instant, brake: &Brake) {
        tokio::time::sleep_until(began + self.clock.wall(STABLE_WITHIN)).await;
        // The mode is reported once a second.
        self.clock.sleep(MODE_HEARD).await;
        let holds = self.telemetry().mode == Some(Mode::Hold);
        if holds {
            let first = self.fastest_within(SWING).await;
            let second = self.fastest_within(SWING).await;
            if second < UNSTABLE_MPS || second < first * SLOWING {
                return;
            }
        }
        let telemetry = self.telemetry();
        if telemetry.armed == Some(false) || telemetry.on_ground() || self.overridden().is_some() {
            return;
        }
        // A call since then has priority: land, rtl, or motion after an operator lifted the latch.
        let others = {
            let control = self.control.lock();
            control.safe_calls > 0 || control.motion_calls > 0
        };
        // A later brake may be reducing what looks unstable here.
        if others || self.knows_better(brake) || self.superseded(brake) {
            return;
        }
        let Some(channel) = self.channel() else {
            return;
        };
        tracing::warn!(vehicle = self.id, "hold does not bring it to rest: it lands");
        self.control.lock().want(Mode::Land);
        if let Err(trouble) = self.send_brake(brake.number, Command::Land, channel).await {
            tracing::error!(vehicle = self.id, %trouble, "land after an emergency brake");
        }
    }

    /// The greatest speed within this vehicle time, metres per second; infinite where it is unknown.
    async fn fastest_within(&self, time: Duration) -> f64 {
        let until = self.clock.after(time);
        let mut fastest: f64 = 0.0;
        while tokio::time::Instant::now() < until {
            fastest = fastest.max(self.speed().unwrap_or(f64::INFINITY));
            self.clock.sleep(HEARD_POLL).await;
        }
        fastest
    }
}
