//! Closed-loop flight with position setpoints.
//!
//! A setpoint runs ahead of the vehicle towards the target, never further than [`LEAD_M`]: whatever dies, the vehicle
//! stops at most that far away. Every step looks at what is known again. Velocity setpoints are not used: MAVSDK repeats
//! the last one for ever when its client dies. Read [`Flying::to`].

use std::time::Duration;

use super::{Call, Command, Mode};
use crate::geo::{Ned, distance, towards, wrap_deg};
use crate::guard::{self, Facts, Pose, Refusal, refuse};
use crate::scene::Side;

/// How far the setpoint runs ahead, metres.
const LEAD_M: f64 = 1.2;
/// Between setpoints, vehicle time.
const STEP: Duration = Duration::from_millis(50);
/// PX4 turns at most 45 degrees a second by itself.
const YAW_RATE_DPS: f64 = 45.0;
/// Where a move counts as done at once.
const NEAR_M: f64 = 0.15;
const NEAR_DEG: f64 = 3.0;
const SLOW_MPS: f64 = 0.15;
/// A vehicle that does not stand so still counts as arrived when its set point has been at the target for so long, vehicle
/// time, and it is within what [`Vehicle::arrive_m`](super::Vehicle) says, and slower than this.
const SETTLES: Duration = Duration::from_secs(2);
const HOVERS_MPS: f64 = 0.9;
/// What a heading may be off then.
const CLOSE_DEG: f64 = 5.0;
/// Shorter than this a way is a turn on the spot, metres: its heading alone is judged.
const SPOT_M: f64 = 0.01;
/// Nothing comes nearer for so long: it will not arrive.
const STUCK: Duration = Duration::from_secs(5);
/// How far inside the guarded place a vehicle may drift while it flies, metres: the fence's own margin is larger.
const DRIFT_M: f64 = 1.5;

/// A flight with one call.
pub(crate) struct Flying<'a> {
    call: &'a Call,
    /// Metres per second.
    pub(crate) speed_mps: f64,
    /// Metres that have to stay free ahead while it moves.
    pub(crate) keep_m: Option<(Side, f64)>,
}

/// Where to.
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

    /// The pose, now.
    ///
    /// # Errors
    /// It is not fresh.
    pub(crate) fn pose(&self) -> Result<Pose, Refusal> {
        match self.call.vehicle.heard.borrow().pose() {
            Some(pose) => Ok(pose),
            None => {
                self.call.heard_still()?;
                refuse("stale_telemetry", "the position is older than 1 s, or not known")
            }
        }
    }

    /// Where it is told to be under offboard control, otherwise where it is. A vehicle that hovers wanders about the former:
    /// a turn, or the next step of an approach, from the latter would take the wandering along.
    ///
    /// # Errors
    /// The pose is not fresh.
    pub(crate) fn place(&self) -> Result<Ned, Refusal> {
        let pose = self.pose()?;
        let vehicle = &self.call.vehicle;
        let pointed = super::lock(&vehicle.control).pointed();
        let offboard = vehicle.heard.borrow().mode == Some(Mode::Offboard);
        Ok(pointed
            .filter(|ned| offboard && distance(*ned, pose.ned) < DRIFT_M)
            .unwrap_or(pose.ned))
    }

    /// Takes over position control where the vehicle is, unless it has it already. PX4 wants a setpoint first.
    ///
    /// # Errors
    /// It does not take over.
    ///
    /// # Cancel safety
    /// As [`Call::send`].
    pub(crate) async fn take_over(&self) -> Result<Pose, Refusal> {
        let pose = self.pose()?;
        let vehicle = &self.call.vehicle;
        let offboard = super::lock(&vehicle.control).reached(Mode::Offboard);
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

    /// Flies straight to `target` and comes to rest there.
    ///
    /// # Errors
    /// It does not arrive, or must not go on; it is told to stay where it is then.
    ///
    /// # Cancel safety
    /// Dropped, the vehicle stops within [`LEAD_M`] at the last setpoint; a brake stops it at once.
    pub(crate) async fn to(&self, target: Target) -> Result<Pose, Refusal> {
        let start = self.take_over().await?;
        self.fly(start, target).await
    }

    /// Turns on the spot to a heading: its place is kept, and not judged.
    ///
    /// # Errors
    /// As [`Flying::to`].
    ///
    /// # Cancel safety
    /// As [`Flying::to`].
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
            && !matches!(
                refusal.code,
                "pilot_override" | "stopped" | "cancelled" | "closed"
            )
        {
            self.stay().await;
        }
        arrived
    }

    /// Tells the vehicle to stay where it comes to rest. Best effort: the caller has an error already.
    pub(crate) async fn stay(&self) {
        if let Ok(pose) = self.pose() {
            // A bit ahead, where it can stop: a setpoint behind it would make it come back.
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
        // When the set point came to the target.
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
                super::lock(&self.call.vehicle.hover).moves(false);
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
            // One that is near wanders about its target, and is given its time.
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

    /// What has to hold at every step of a loop that points by itself.
    ///
    /// # Errors
    /// It does not.
    pub(crate) fn allowed(&self, target: Target) -> Result<(), Refusal> {
        self.step_allowed(self.pose()?, target)
    }

    /// Sends one setpoint. The caller moves it by small steps.
    ///
    /// # Errors
    /// As [`Call::send`].
    ///
    /// # Cancel safety
    /// As [`Call::send`].
    pub(crate) async fn point(&self, target: Target) -> Result<(), Refusal> {
        self.call
            .send(Command::Position {
                ned: target.ned,
                yaw_deg: target.yaw_deg,
            })
            .await
    }

    /// What has to hold at every step.
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
        // What is left of the way counts, so that the vehicle stops before something that came into it.
        let left = distance(pose.ned, target.ned);
        let (left, keep) = (left.min(LEAD_M), keep.min(guard::AHEAD_MARGIN_M));
        match side {
            Side::Ahead => guard::ahead(facts, left, keep),
            Side::Behind => guard::behind(facts, left, keep),
        }
        .map(drop)
    }
}

/// While a set point leads the vehicle somewhere, where it is says nothing about how it hovers.
struct Moving<'a>(&'a Call);

impl<'a> Moving<'a> {
    fn begin(call: &'a Call) -> Self {
        super::lock(&call.vehicle.hover).moves(true);
        Self(call)
    }
}

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        super::lock(&self.0.vehicle.hover).moves(false);
    }
}

/// From one heading towards another, the short way, at most `step` degrees.
fn turned(from: f64, to: f64, step: f64) -> f64 {
    let way = wrap_deg(to - from);
    wrap_deg(from + way.clamp(-step, step))
}
