//! What rest is, and what leads to it.
//!
//! Hold alone does not end a flight to a place: PX4 flies it in mode Hold, and begins a mode anew only when the mode
//! changes. It is ended by another place, the one where the vehicle can stop. Read [`Vehicle::command_rest`].

use std::sync::atomic::Ordering;
use std::time::Duration;

use tonic::transport::Channel;

use super::command::Trouble;
use super::record::Asker;
use super::{Command, Telemetry, Vehicle, lock};
use crate::geo::{Ned, Origin};
use crate::guard::{Braking, Mode, Pose};

/// Slower than this a vehicle counts as at rest, metres per second: PX4's simulation hovers at up to 0.84 m/s.
const SLOW_MPS: f64 = 0.9;
/// Faster than this in mode Hold, a vehicle may fly to a place, metres per second.
const FLIES_MPS: f64 = 0.5;
/// A vehicle slows down when its speed falls to this part.
pub(super) const SLOWING: f64 = 0.9;
/// How long a brake watches before it judges, vehicle time.
const WATCH: Duration = Duration::from_millis(1500);
/// How long a vehicle has to stay slow, vehicle time: one that only turns around or sets out is slow, too.
const STAY: Duration = Duration::from_millis(700);

/// What telemetry shows of a vehicle that was told to stop.
pub(crate) enum Resting {
    /// It stands, lands, or holds and is slow or slows down.
    Yes,
    /// Not yet.
    No,
    /// Not yet, and somebody else flies it: how.
    Foreign(String),
}

/// What a brake has seen in a while.
pub(super) enum Seen {
    /// It is at rest, lands or stands.
    Rest,
    /// It holds and slows down.
    Slowing,
    /// Neither.
    Flying,
}

/// What is to be ended.
#[derive(Clone, Copy)]
pub(super) struct Flight {
    /// Set points.
    pub(super) offboard: bool,
    /// A flight to a place in mode Hold.
    pub(super) reposition: bool,
    /// It was told to stop ahead and did not: the place ahead may be beyond a fence of the vehicle's own.
    pub(super) stubborn: bool,
}

/// The place where a vehicle can stop that is told so now, at the height it has. A nearer one it would pass and fly back to.
fn stop_point(pose: &Pose, braking: Braking) -> Command {
    stop_place((pose.lat, pose.lon, pose.amsl_m), pose.velocity, braking)
}

/// The same from latitude, longitude and metres above the sea.
pub(super) fn stop_place((lat, lon, amsl_m): (f64, f64, f64), velocity: Ned, braking: Braking) -> Command {
    let flat_mps = velocity[0].hypot(velocity[1]);
    let lead_s = braking.metres(flat_mps) / flat_mps.max(0.01);
    let (lat, lon) = Origin { lat, lon }.global(velocity[0] * lead_s, velocity[1] * lead_s);
    Command::Goto {
        lat,
        lon,
        amsl_m,
        yaw_deg: None,
    }
}

impl Vehicle {
    /// A call has sent a command that leads to a mode.
    pub(super) fn note_mode_command(&self, command: &Command) {
        self.mode_commands.fetch_add(1, Ordering::SeqCst);
        match command {
            Command::Goto { .. } => self.repositioning.store(true, Ordering::SeqCst),
            // It may be ignored in favour of the flight to a place.
            Command::Hold => {}
            _ => self.repositioning.store(false, Ordering::SeqCst),
        }
    }

    /// The flight to a place is over.
    pub(crate) fn arrived(&self) {
        self.repositioning.store(false, Ordering::SeqCst);
    }

    /// Whether it may fly to a place in mode Hold, where another Hold changes nothing. It may be somebody else's place.
    pub(crate) fn flies_in_hold(&self, heard: &Telemetry) -> bool {
        let fast = heard.pose().is_some_and(|pose| pose.speed() > FLIES_MPS);
        self.repositioning.load(Ordering::SeqCst) || heard.mode == Some(Mode::Hold) && fast
    }

    /// Where a vehicle that flies to a place in mode Hold is told to stop instead, if it is known where it is.
    pub(crate) fn stop_here(&self) -> Option<Command> {
        let braking = self.config.flight_limits.braking;
        self.heard.borrow().pose().map(|pose| stop_point(&pose, braking))
    }

    /// Sends what brings it to rest, past every right to command.
    ///
    /// # Errors
    /// One of the commands that count was not acknowledged, or cannot be given.
    ///
    /// # Cancel safety
    /// Dropped, the commands may or may not have been sent.
    pub(super) async fn command_rest(
        &self,
        channel: Channel,
        brake: u64,
        rest: Mode,
        flight: Flight,
    ) -> Result<(), Trouble> {
        if rest == Mode::Land {
            let zero = self.zero(channel.clone(), brake, flight);
            return tokio::join!(self.tell(brake, Command::Land, channel), zero).0;
        }
        let stop = async {
            if !flight.reposition {
                return Ok(());
            }
            let braking = self.config.flight_limits.braking;
            let pose = self.heard.borrow().pose();
            // A stubborn one is told to stop where it is.
            let pose = pose.map(|pose| Pose {
                velocity: if flight.stubborn { [0.0; 3] } else { pose.velocity },
                ..pose
            });
            match pose {
                Some(pose) => {
                    self.tell(brake, stop_point(&pose, braking), channel.clone())
                        .await
                }
                None => Err(Trouble::Unconfirmed {
                    what: "stop the flight to a place",
                    answer: "it is not known where the vehicle is".to_string(),
                }),
            }
        };
        let hold = self.tell(brake, Command::Hold, channel.clone());
        let (held, (), stopped) = tokio::join!(hold, self.zero(channel.clone(), brake, flight), stop);
        held.and(stopped)
    }

    async fn zero(&self, channel: Channel, brake: u64, flight: Flight) {
        if flight.offboard {
            // Without an answer the mode follows all the same.
            let _ = self.tell(brake, Command::Standstill, channel).await;
        }
    }

    /// Sends a command of a brake, past every right to command, and writes that into the run log.
    ///
    /// # Errors
    /// As [`Command::perform`].
    pub(super) async fn tell(&self, brake: u64, command: Command, channel: Channel) -> Result<(), Trouble> {
        let by = Asker::Brake(brake);
        self.record_command(by, &command);
        let done = command.clone().perform(channel).await;
        self.record_answer(by, &command, &done);
        done
    }

    pub(super) fn speed(&self) -> Option<f64> {
        self.heard.borrow().pose().map(|pose| pose.speed())
    }

    /// Watches for a while whether it comes to rest.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn watch_rest(&self, rest: Mode) -> Seen {
        let at_rest = |heard: &Telemetry| {
            let slow = heard.pose().is_some_and(|pose| pose.speed() < SLOW_MPS);
            heard.armed == Some(false) || heard.mode == Some(rest) && (slow || rest == Mode::Land)
        };
        let before = self.speed();
        let mut heard = self.heard.subscribe();
        let shown = tokio::time::timeout(self.clock.wall(WATCH), heard.wait_for(at_rest))
            .await
            .is_ok();
        if shown {
            self.clock.sleep(STAY).await;
            if at_rest(&self.heard.borrow()) {
                return Seen::Rest;
            }
        }
        let now = self.telemetry();
        let slowing = slows(before, now.pose().map(|pose| pose.speed()));
        if now.mode == Some(rest) && slowing {
            Seen::Slowing
        } else {
            Seen::Flying
        }
    }

    /// Whether telemetry shows that a stop has its effect.
    pub(crate) fn resting(&self) -> Resting {
        let heard = self.telemetry();
        let slow = slows(*lock(&self.braked_at_mps), heard.pose().map(|pose| pose.speed()));
        let holds = match heard.mode {
            Some(Mode::Land) => true,
            Some(Mode::Hold) => slow,
            _ => false,
        };
        if heard.heard.is_none() || !heard.may_move() || heard.link_ok() && holds {
            return Resting::Yes;
        }
        self.overridden().map_or(Resting::No, Resting::Foreign)
    }
}

/// Whether a vehicle is slow, or has become slower.
fn slows(before: Option<f64>, now: Option<f64>) -> bool {
    match (before, now) {
        (_, Some(now)) if now < SLOW_MPS => true,
        (Some(before), Some(now)) => now < before * SLOWING,
        _ => false,
    }
}
