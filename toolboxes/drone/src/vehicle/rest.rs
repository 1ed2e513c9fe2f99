//! When a vehicle is at rest, and the commands that lead there.
//!
//! Hold alone does not end a flight to a position: PX4 flies it in mode Hold, and a request for the present mode has no
//! effect. A new target, at the stopping distance, ends it. Read [`Vehicle::command_rest`].

use std::sync::atomic::Ordering;
use std::time::Duration;

use tonic::transport::Channel;

use super::command::Trouble;
use super::record::Asker;
use super::{Command, Telemetry, Vehicle, lock};
use crate::geo::{Ned, Origin};
use crate::guard::{Braking, Mode, Pose};

/// A vehicle slower than this is at rest, metres per second: PX4's simulation hovers at up to 0.84 m/s.
const SLOW_MPS: f64 = 0.9;
/// A vehicle faster than this in mode Hold may be on a flight to a position, metres per second.
const FLIES_MPS: f64 = 0.5;
/// A vehicle slows down when its speed falls below this fraction.
pub(super) const SLOWING: f64 = 0.9;
/// How long a brake watches before it judges, vehicle time.
const WATCH: Duration = Duration::from_millis(1500);
/// How long a vehicle has to stay slow, vehicle time; one that reverses or starts moving is slow for a moment, too.
const STAY: Duration = Duration::from_millis(700);

/// What telemetry shows of a vehicle after a stop.
pub(crate) enum Resting {
    /// It stands, lands, or holds and is slow or slows down.
    Yes,
    /// Not yet.
    No,
    /// Not yet, and another party flies it; the text says how.
    Foreign(String),
}

/// What a brake has observed.
pub(super) enum Seen {
    /// It is at rest, lands or stands.
    Rest,
    /// It holds and slows down.
    Slowing,
    /// Neither.
    Flying,
}

/// The flight to be ended.
#[derive(Clone, Copy)]
pub(super) struct Flight {
    /// Whether setpoints control it.
    pub(super) offboard: bool,
    /// Whether it flies to a position in mode Hold.
    pub(super) reposition: bool,
    /// Whether it ignored a stop ahead of it, possibly because that position is beyond its own geofence.
    pub(super) stubborn: bool,
}

/// Commands the position at the vehicle's stopping distance, at its present height. The vehicle would overshoot a
/// nearer one and fly back.
fn stop_point(pose: &Pose, braking: Braking) -> Command {
    stop_place((pose.lat, pose.lon, pose.amsl_m), pose.velocity, braking)
}

/// The same command as that of `stop_point`, from latitude, longitude and metres above sea level.
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
    /// Records that a call has sent a mode-changing command.
    pub(super) fn note_mode_command(&self, command: &Command) {
        self.mode_commands.fetch_add(1, Ordering::SeqCst);
        match command {
            Command::Goto { .. } => self.repositioning.store(true, Ordering::SeqCst),
            // Ambiguous: the vehicle may ignore it and continue its flight to a position.
            Command::Hold => {}
            _ => self.repositioning.store(false, Ordering::SeqCst),
        }
    }

    /// Records that the flight to a position is over.
    pub(crate) fn arrived(&self) {
        self.repositioning.store(false, Ordering::SeqCst);
    }

    /// Whether it may be on a flight to a position in mode Hold, where another Hold has no effect. The target may be
    /// another party's.
    pub(crate) fn flies_in_hold(&self, heard: &Telemetry) -> bool {
        let fast = heard.pose().is_some_and(|pose| pose.speed() > FLIES_MPS);
        self.repositioning.load(Ordering::SeqCst) || heard.mode == Some(Mode::Hold) && fast
    }

    /// The command that stops a flight to a position in mode Hold, if the vehicle's position is known.
    pub(crate) fn stop_here(&self) -> Option<Command> {
        let braking = self.config.flight_limits.braking;
        self.heard.borrow().pose().map(|pose| stop_point(&pose, braking))
    }

    /// Sends the commands that bring it to rest, without a right to command.
    ///
    /// # Errors
    /// A required command was not acknowledged or could not be sent.
    ///
    /// # Cancel safety
    /// When dropped, the commands may or may not have been sent.
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
            // A vehicle that ignored the first stop point is told to stop at its present position.
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
            // The mode is requested anyway, even without an acknowledgement.
            let _ = self.tell(brake, Command::Standstill, channel).await;
        }
    }

    /// Sends one command of a brake, without a right to command, and logs it.
    ///
    /// # Errors
    /// Like [`Command::perform`].
    pub(super) async fn tell(&self, brake: u64, command: Command, channel: Channel) -> Result<(), Trouble> {
        let by = Asker::Brake(brake);
        self.record_command(by, &command);
        let done = self.perform(command.clone(), channel).await;
        self.record_answer(by, &command, &done);
        done
    }

    pub(super) fn speed(&self) -> Option<f64> {
        self.heard.borrow().pose().map(|pose| pose.speed())
    }

    /// Watches for a while whether the vehicle comes to rest.
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

    /// Whether telemetry shows that a stop takes effect.
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

/// Whether a vehicle is slow or has slowed down.
fn slows(before: Option<f64>, now: Option<f64>) -> bool {
    match (before, now) {
        (_, Some(now)) if now < SLOW_MPS => true,
        (Some(before), Some(now)) => now < before * SLOWING,
        _ => false,
    }
}
