//! When a vehicle is at rest, and the commands that lead there.
//!
//! Hold alone does not end a flight to a position: PX4 flies it in mode Hold, and a request for the present mode has no
//! effect. A new target, at the stopping distance, ends it. Read [`Vehicle::command_rest`].

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tonic::transport::Channel;

use super::command::Command;
use super::command::Trouble;
use super::log_line::Asker;
use super::open_commands::OpenCommand;
use super::telemetry::Telemetry;
use super::unit::Vehicle;
use crate::geo::{Ned, Origin, distance};
use crate::guard::{Braking, Mode, OverrideCause, Pose, reaches};

/// A vehicle slower than this is at rest, metres per second: PX4's simulation hovers at up to 0.84 m/s.
const SLOW_MPS: f64 = 0.9;
/// A vehicle faster than this in mode Hold may be on a flight to a position, metres per second.
const FLIES_MPS: f64 = 0.5;
/// A vehicle that speeds up by more than this has begun to fly, metres per second squared: hovering, PX4's simulation
/// changes its speed by up to 1.
const SPEEDS_UP: f64 = 1.0;
/// A vehicle slows down when its speed falls below this fraction.
pub(super) const SLOWING: f64 = 0.9;
/// How long a brake watches before it judges, vehicle time.
const WATCH: Duration = Duration::from_millis(1500);
/// Interval of the look whether a braked vehicle is at rest, how long it has to be slow to be called so (it may swing back
/// to its stop point), and how long it may take, vehicle time: PX4's simulation took up to 9 s from 4 m/s.
const LOOKS: Duration = Duration::from_millis(100);
const STAYS: Duration = Duration::from_secs(2);
const RESTS_WITHIN: Duration = Duration::from_secs(20);
const LANDS_WITHIN: Duration = Duration::from_secs(150);
/// How long a vehicle has to stay slow, vehicle time; one that reverses or starts moving is slow for a moment, too.
const STAY: Duration = Duration::from_millis(700);

/// What telemetry shows of a vehicle after a stop.
pub(crate) enum RestState {
    /// It stands, lands, or holds and is slow.
    Yes,
    /// It holds and slows down, and is at rest in about this many seconds.
    Braking(f64),
    /// Not yet.
    No,
    /// Not yet, and another party flies it.
    Foreign(OverrideCause),
}

/// What a brake has observed.
pub(super) enum BrakeObservation {
    /// It is at rest, lands or stands.
    Rest,
    /// It holds and slows down.
    Slowing,
    /// Neither.
    Flying,
}

/// One brake.
#[derive(Clone, Copy)]
pub(super) struct Brake {
    pub(super) emergency: bool,
    /// The mode in which it comes to rest.
    pub(super) rest: Mode,
    pub(super) number: u64,
    /// The number of the next command when it began, and how many were open then.
    pub(super) before: u64,
    pub(super) earlier: usize,
    /// [`Vehicle::mode_commands`] when it began.
    pub(super) commands: u64,
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
/// nearer one and fly back. One that accelerates becomes faster before it obeys.
fn stop_point(pose: &Pose, braking: Braking) -> Command {
    let at = (pose.lat, pose.lon, pose.amsl_m);
    stop_place(at, pose.velocity, pose.speeds_up(), braking)
}

/// The same command as that of `stop_point`, from latitude, longitude and metres above sea level, and the acceleration in
/// the direction of the velocity, metres per second squared.
pub(super) fn stop_place(
    (lat, lon, amsl_m): (f64, f64, f64),
    velocity: Ned,
    mps2: f64,
    braking: Braking,
) -> Command {
    let flat_mps = velocity[0].hypot(velocity[1]);
    let fastest = reaches(flat_mps, f64::INFINITY, Some(mps2));
    // A vehicle that hovers has no direction in which it would go on.
    let fastest = if flat_mps < SLOW_MPS && mps2 < SPEEDS_UP {
        flat_mps
    } else {
        fastest
    };
    let lead_s = braking.metres(fastest) / flat_mps.max(0.01);
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

    /// Whether it hovers in mode Hold and is on no flight to a position, of ours or of another party.
    pub(super) fn holds_still(&self, heard: &Telemetry) -> bool {
        let present = heard.present.is_none_or(|present| present.mode == Mode::Hold);
        let still = |pose: Pose| pose.speed() < SLOW_MPS && pose.speeds_up() < SPEEDS_UP;
        heard.mode == Some(Mode::Hold)
            && present
            && heard.in_air == Some(true)
            && !self.repositioning.load(Ordering::SeqCst)
            && !self.open_commands.borrow().leads()
            && heard.pose().is_some_and(still)
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
        self: &Arc<Self>,
        channel: Channel,
        brake: u64,
        rest: Mode,
        flight: Flight,
    ) -> Result<(), Trouble> {
        if rest == Mode::Land {
            let zero = self.zero(channel.clone(), brake, flight);
            return tokio::join!(self.send_brake(brake, Command::Land, channel), zero).0;
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
                    self.send_brake(brake, stop_point(&pose, braking), channel.clone())
                        .await
                }
                None => Err(Trouble::Unconfirmed {
                    what: "stop the flight to a place",
                    answer: "it is not known where the vehicle is".to_string(),
                }),
            }
        };
        let hold = self.send_brake(brake, Command::Hold, channel.clone());
        let (held, (), stopped) = tokio::join!(hold, self.zero(channel.clone(), brake, flight), stop);
        held.and(stopped)
    }

    async fn zero(self: &Arc<Self>, channel: Channel, brake: u64, flight: Flight) {
        if flight.offboard {
            // The mode is requested anyway, even without an acknowledgement.
            let _ = self.send_brake(brake, Command::Standstill, channel).await;
        }
    }

    /// Sends one command of a brake, without a right to command, and logs it.
    ///
    /// # Errors
    /// Like [`Command::perform`].
    pub(super) async fn send_brake(
        self: &Arc<Self>,
        brake: u64,
        command: Command,
        channel: Channel,
    ) -> Result<(), Trouble> {
        let by = Asker::Brake(brake);
        self.record_command(by, &command);
        let open = OpenCommand::begin(&self.open_commands, &command);
        let done = self.perform(command.clone(), channel, open).await;
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
    pub(super) async fn watch_rest(&self, rest: Mode) -> BrakeObservation {
        let at_rest = |heard: &Telemetry| {
            let slow = heard.pose().is_some_and(|pose| pose.speed() < SLOW_MPS);
            heard.armed == Some(false) || heard.mode == Some(rest) && (slow || rest == Mode::Land)
        };
        let before = self.speed();
        let mut reports = self.heard.subscribe();
        let is_shown = tokio::time::timeout(self.clock.wall(WATCH), reports.wait_for(at_rest))
            .await
            .is_ok();
        if is_shown {
            self.clock.sleep(STAY).await;
            if at_rest(&self.heard.borrow()) {
                return BrakeObservation::Rest;
            }
        }
        let now = self.telemetry();
        // After a stop while it sped up, the vehicle becomes faster for up to a second, and slows down only then.
        let brakes = now.pose().is_some_and(|pose| pose.speeds_up() < -SPEEDS_UP);
        let slowing = brakes || slows(before, now.pose().map(|pose| pose.speed()));
        if now.mode == Some(rest) && slowing {
            BrakeObservation::Slowing
        } else {
            BrakeObservation::Flying
        }
    }

    /// Whether telemetry shows that a stop takes effect.
    pub(crate) fn resting(&self) -> RestState {
        let telemetry = self.telemetry();
        // What ends a rest may still be on its way.
        let open = self.open_commands.borrow().leads();
        if telemetry.heard.is_none() || !telemetry.may_move() && !open {
            return RestState::Yes;
        }
        let pose = telemetry.pose();
        match (telemetry.mode, pose) {
            _ if !telemetry.link_ok() || open => {}
            (Some(Mode::Land), _) => return RestState::Yes,
            (Some(Mode::Hold), Some(pose)) if pose.speed() < SLOW_MPS => return RestState::Yes,
            (Some(Mode::Hold), Some(pose)) => {
                let slower = slows(*self.braked_at_mps.lock(), Some(pose.speed()));
                if slower || pose.speeds_up() < -SPEEDS_UP {
                    return RestState::Braking(pose.speed() / self.config.flight_limits.braking.mps2);
                }
            }
            _ => {}
        }
        self.overridden().map_or(RestState::No, RestState::Foreign)
    }

    /// Reports as an event when the vehicle has come to rest after a brake, or that it has not. Says nothing when a later
    /// brake, another call or another party has priority.
    ///
    /// # Cancel safety
    /// When dropped, nothing is reported.
    pub(super) async fn tell_rest(self: Arc<Self>, brake: Brake) {
        let began = tokio::time::Instant::now();
        let from = self.heard.borrow().pose().map(|pose| pose.ned);
        let (mut heard_for, mut slow_for) = (Duration::ZERO, Duration::ZERO);
        let limit = if brake.rest == Mode::Land {
            LANDS_WITHIN
        } else {
            RESTS_WITHIN
        };
        loop {
            self.clock.sleep(LOOKS).await;
            if self.superseded(&brake) || self.knows_better(&brake) {
                return;
            }
            if !self.is_heard() {
                slow_for = Duration::ZERO;
                continue;
            }
            heard_for += LOOKS;
            let telemetry = self.telemetry();
            let pose = telemetry.pose();
            let open = self.open_commands.borrow().leads();
            let slow = !open
                && telemetry.mode == Some(brake.rest)
                && pose.is_some_and(|pose| pose.speed() < SLOW_MPS);
            let stands = !open && (telemetry.armed == Some(false) || telemetry.on_ground());
            slow_for = if slow && brake.rest == Mode::Hold {
                slow_for + LOOKS
            } else {
                Duration::ZERO
            };
            let rests = stands || slow_for >= STAYS;
            if !rests && heard_for < limit {
                continue;
            }
            let moved_m = from.zip(pose).map(|(from, pose)| distance(from, pose.ned));
            let round = |value: f64| (value * 10.0).round() / 10.0;
            let report = ovos_toolbox_sdk::serde_json::json!({
                "vehicle": self.id, "brake": brake.number, "emergency": brake.emergency, "mode": telemetry.mode,
                "after_s": round(self.clock.since(began).as_secs_f64()), "moved_m": moved_m.map(round),
                "speed_mps": pose.map(|pose| round(pose.speed())),
            });
            let kind = if rests { "at_rest" } else { "not_at_rest" };
            self.log.write(kind, || report.clone());
            self.event(kind, report);
            return;
        }
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
