//! Closed-loop flight with position setpoints.
//!
//! The setpoint leads the vehicle towards the target by at most [`LEAD_M`], so that the vehicle stops within that
//! distance when any program dies. Every step checks the guards again. Velocity setpoints are not used: MAVSDK repeats
//! the last one forever when its client dies. Read [`Flying::to`].

use std::time::Duration;

use super::call::Call;
use super::command::Command;
use crate::geo::{Ned, distance, towards, wrap_deg};
use crate::guard::Mode;
use crate::guard::{self, Facts, Pose, Refusal, refuse};
use crate::scene::Side;

/// Greatest distance of the setpoint from the vehicle, metres.
const LEAD_M: f64 = 1.2;
/// Interval between setpoints, vehicle time.
const STEP: Duration = Duration::from_millis(50);
/// PX4's own limit of the turning rate, degrees per second.
const YAW_RATE_DPS: f64 = 45.0;
/// A move within these limits has arrived at once: metres, degrees, metres per second.
const NEAR_M: f64 = 0.15;
const NEAR_DEG: f64 = 3.0;
const SLOW_MPS: f64 = 0.15;
/// A vehicle that hovers less steadily has arrived when its setpoint has been at the target for this long, vehicle
/// time, and it is within [`Vehicle::arrive_m`](super::unit::Vehicle) and slower than `HOVERS_MPS`.
const SETTLES: Duration = Duration::from_secs(2);
const HOVERS_MPS: f64 = 0.9;
/// Tolerance of the heading for such an arrival, degrees.
const CLOSE_DEG: f64 = 5.0;
/// A leg shorter than this is a turn in place, metres: only the heading is checked.
const SPOT_M: f64 = 0.01;
/// A move that comes no closer for this long has failed, vehicle time.
const STUCK: Duration = Duration::from_secs(5);
/// Greatest drift from the checked path during a move, metres; the fence's own margin is larger.
const DRIFT_M: f64 = 1.5;

/// A flight under one call.
pub(crate) struct Flying<'a> {
    call: &'a Call,
    /// Metres per second.
    pub(crate) speed_mps: f64,
    /// Metres that have to stay free on a side while it moves.
    pub(crate) keep_m: Option<(Side, f64)>,
}

/// A target position and heading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Target {
    pub(crate) ned: Ned,
    pub(crate) yaw_deg: f64,
}

impl<'a> Flying<'a> {
    pub(crate) fn new(call: &'a Call) -> Self {
        Self {
            call,
            speed_mps: call.vehicle.config.flight_limits.step_mps,
            keep_m: None,
        }
    }

    /// The present pose.
    ///
    /// # Errors
    /// It is stale.
    pub(crate) fn pose(&self) -> Result<Pose, Refusal> {
        match self.call.vehicle.heard.borrow().pose() {
            Some(pose) => Ok(pose),
            None => {
                self.call.heard_still()?;
                refuse("stale_telemetry", "the position is older than 1 s, or not known")
            }
        }
    }

    /// The setpoint under offboard control, otherwise the position. A hovering vehicle drifts around its setpoint: a
    /// turn or the next step of an approach that started from the position would add the drift.
    ///
    /// # Errors
    /// The pose is stale.
    pub(crate) fn place(&self) -> Result<Ned, Refusal> {
        let pose = self.pose()?;
        let vehicle = &self.call.vehicle;
        let pointed = vehicle.control.lock().pointed();
        let offboard = vehicle.heard.borrow().mode == Some(Mode::Offboard);
        Ok(pointed
            .filter(|ned| offboard && distance(*ned, pose.ned) < DRIFT_M)
            .unwrap_or(pose.ned))
    }

    /// Starts offboard control at the present position, unless it is active. PX4 requires a setpoint first.
    ///
    /// # Errors
    /// PX4 does not change to offboard control.
    ///
    /// # Cancel safety
    /// Like [`Call::send`].
    pub(crate) async fn take_over(&self) -> Result<Pose, Refusal> {
        let pose = self.pose()?;
        let vehicle = &self.call.vehicle;
        let offboard = vehicle.control.lock().reached(Mode::Offboard);
        if offboard && vehicle.heard.borrow().mode == Some(Mode::Offboard) {
            return Ok(pose);
        }
        self.call
            .send(Command::Position {
                ned: pose.ned,
                yaw_deg: pose.yaw_deg,
            })
            .await?;
        self.call.change_mode(Command::OffboardStart, 3).await?;
        self.pose()
    }

    /// Flies straight to `target` and stops there.
    ///
    /// # Errors
    /// It does not arrive or must not continue; it is then told to hold its position.
    ///
    /// # Cancel safety
    /// When dropped, the vehicle stops within [`LEAD_M`] at the last setpoint; a brake stops it at once.
    pub(crate) async fn to(&self, target: Target) -> Result<Pose, Refusal> {
        let start = self.take_over().await?;
        self.fly(start, target).await
    }

    /// Turns in place to a heading; the position is held but not checked.
    ///
    /// # Errors
    /// Like [`Flying::to`].
    ///
    /// # Cancel safety
    /// Like [`Flying::to`].
    pub(crate) async fn turn(&self, yaw_deg: f64) -> Result<Pose, Refusal> {
        let start = self.take_over().await?;
        let ned = self.place()?;
        self.fly(Pose { ned, ..start }, Target { ned, yaw_deg }).await
    }

    async fn fly(&self, start: Pose, target: Target) -> Result<Pose, Refusal> {
        let arrived = {
            let _moving = Moving::begin(self.call);
            self.follow(start, target).await
        };
        if let Err(refusal) = &arrived
            && !refusal.is_final()
        {
            self.stay().await;
        }
        arrived
    }

    /// Tells the vehicle to stop. Best effort: the caller reports an error already.
    pub(crate) async fn stay(&self) {
        if let Ok(pose) = self.pose() {
            // Ahead of the vehicle by its stopping distance: a setpoint behind it would make it fly back.
            let braking = self.call.vehicle.config.flight_limits.braking;
            let lead_s = braking.metres(pose.speed()) / pose.speed().max(0.01);
            let ned = std::array::from_fn(|axis| pose.ned[axis] + pose.velocity[axis] * lead_s);
            let _ = self
                .call
                .send(Command::Position {
                    ned,
                    yaw_deg: pose.yaw_deg,
                })
                .await;
        }
    }

    async fn follow(&self, start: Pose, target: Target) -> Result<Pose, Refusal> {
        let clock = self.call.vehicle.clock;
        let length = distance(start.ned, target.ned);
        let turn = wrap_deg(target.yaw_deg - start.yaw_deg).abs();
        let limit = Duration::from_secs_f64(8.0 + length / 0.3_f64.min(self.speed_mps) + turn / 30.0);
        let began = tokio::time::Instant::now();
        let mut carrot = start.ned;
        let mut heading = start.yaw_deg;
        let on_the_spot = length < SPOT_M;
        // When the setpoint reached the target.
        let mut led = None;
        let mut nearest = (f64::INFINITY, began);
        let mut last = began;
        loop {
            let pose = self.pose()?;
            self.step_allowed(pose, target)?;
            let left = distance(pose.ned, target.ned);
            let off = wrap_deg(target.yaw_deg - pose.yaw_deg).abs();
            let there =
                distance(carrot, target.ned) < SPOT_M && wrap_deg(heading - target.yaw_deg).abs() < 0.1;
            if !there {
                led = None;
            } else if led.is_none() {
                led = Some(tokio::time::Instant::now());
                self.call.vehicle.hover.lock().moves(false);
            }
            let exact = (on_the_spot || left < NEAR_M && pose.speed() < SLOW_MPS) && off < NEAR_DEG;
            let settled = led.is_some_and(|at| clock.since(at) > SETTLES);
            let arrive_m = self.call.vehicle.arrive_m();
            let close = (on_the_spot || left < arrive_m) && off < CLOSE_DEG;
            if there && exact || settled && close && pose.speed() < HOVERS_MPS {
                return Ok(pose);
            }
            let score = left + off / 30.0;
            if score < nearest.0 - 0.05 {
                nearest = (score, tokio::time::Instant::now());
            }
            // A vehicle near its target drifts around it, and is given time.
            let stuck = clock.since(nearest.1) > STUCK && !(left < 2.0 * arrive_m && off < CLOSE_DEG);
            if clock.since(began) > limit || stuck {
                if close {
                    return Ok(pose);
                }
                return refuse(
                    "not_reached",
                    format!(
                        "stopped {left:.2} m and {off:.0} deg before the target; within {arrive_m:.2} m and {CLOSE_DEG:.0} deg \
                         it would have arrived"
                    ),
                );
            }
            let passed = clock.since(last).as_secs_f64().min(0.5);
            last = tokio::time::Instant::now();
            carrot = towards(carrot, target.ned, self.speed_mps * passed);
            if distance(carrot, pose.ned) > LEAD_M {
                carrot = towards(pose.ned, carrot, LEAD_M);
            }
            heading = turned(heading, target.yaw_deg, YAW_RATE_DPS * passed);
            self.call
                .send(Command::Position {
                    ned: carrot,
                    yaw_deg: heading,
                })
                .await?;
            let whole = (length + turn / 45.0).max(0.1);
            self.call
                .progress(1.0 - (left + off / 45.0).min(whole) / whole, "on the way");
            clock.sleep(STEP).await;
        }
    }

    /// Checks the guards at every step of a loop that sends its own setpoints.
    ///
    /// # Errors
    /// A guard fails.
    pub(crate) fn allowed(&self, target: Target) -> Result<(), Refusal> {
        self.step_allowed(self.pose()?, target)
    }

    /// Sends one setpoint. The caller moves it in small steps.
    ///
    /// # Errors
    /// Like [`Call::send`].
    ///
    /// # Cancel safety
    /// Like [`Call::send`].
    pub(crate) async fn point(&self, target: Target) -> Result<(), Refusal> {
        self.call
            .send(Command::Position {
                ned: target.ned,
                yaw_deg: target.yaw_deg,
            })
            .await
    }

    /// Checks the guards at every step.
    fn step_allowed(&self, pose: Pose, target: Target) -> Result<(), Refusal> {
        self.call.still_may()?;
        self.call.heard_still()?;
        let facts = self.call.vehicle.facts();
        let (limits, fence) = (
            &self.call.vehicle.config.flight_limits,
            &self.call.vehicle.config.fence,
        );
        guard::require(&[guard::Need::Ours, guard::Need::Battery], &facts, limits)?;
        if let Some(home) = facts.home {
            let inside = fence.inside(home, pose.ned);
            if inside < limits.fence_margin_m - DRIFT_M
                && inside < fence.inside(home, target.ned) - 0.1 - DRIFT_M
            {
                return refuse("fence", format!("drifted to {inside:.1} m from the fence"));
            }
            if pose.alt_m > limits.max_alt_m + DRIFT_M {
                return refuse(
                    "altitude_ceiling",
                    format!("drifted to {:.1} m above home", pose.alt_m),
                );
            }
        }
        self.free_ahead(&facts, pose, target)
    }

    fn free_ahead(&self, facts: &Facts, pose: Pose, target: Target) -> Result<(), Refusal> {
        let Some((side, keep)) = self.keep_m else {
            return Ok(());
        };
        // Checks the rest of the path, so that the vehicle stops before an obstacle that has appeared.
        let left = distance(pose.ned, target.ned);
        let (left, keep) = (left.min(LEAD_M), keep.min(guard::AHEAD_MARGIN_M));
        match side {
            Side::Ahead => guard::ahead(facts, left, keep),
            Side::Behind => guard::behind(facts, left, keep),
        }
        .map(drop)
    }
}

/// While this value lives, the vehicle counts as following a moving setpoint, so that its positions say nothing about
/// how it hovers.
struct Moving<'a>(&'a Call);

impl<'a> Moving<'a> {
    fn begin(call: &'a Call) -> Self {
        call.vehicle.hover.lock().moves(true);
        Self(call)
    }
}

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        self.0.vehicle.hover.lock().moves(false);
    }
}

/// Turns from one heading towards another the short way, at most `step` degrees.
fn turned(from: f64, to: f64, step: f64) -> f64 {
    let way = wrap_deg(to - from);
    wrap_deg(from + way.clamp(-step, step))
}
