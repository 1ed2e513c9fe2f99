//! Joints, lift, hitch and grippers: sends goals and waits until they are reached.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::json;

use super::device::Feetech;
use super::servo::{Servo, exact, tenth};
use super::torque::{SLOWEST, hold, power};
use crate::action::{Keyframe, LiftTarget};
use crate::adapter::{ActionError, ActionOutput, Control};
use crate::capability::{BusName, Gripper};
use crate::servo::Register;
use crate::step::{Grip, HitchAction};
use crate::subsystem::Subsystem;

/// The pause between two readings of the positions.
const LOOK: Duration = Duration::from_millis(25);
/// A servo is there when it is this close, in steps: about one degree.
pub(super) const THERE: i64 = 12;
/// A loaded servo at rest is there when it is this close: about four degrees.
const NEARLY: i64 = 45;
/// A servo that has not come closer for so long is blocked.
const BLOCKED: Duration = Duration::from_millis(400);
/// The fraction of the servo's torque with which a gripper and the hitch press by default.
pub(super) const USUAL_FORCE: f64 = 0.5;

/// One servo and its goal in degrees or millimetres.
#[derive(Clone, Copy)]
pub(super) struct Goal<'a> {
    pub(super) servo: &'a Servo,
    pub(super) value: f64,
}

/// How a movement ended.
#[derive(Debug, Default)]
pub(super) struct Moved {
    /// The steps at the end.
    pub(super) steps: BTreeMap<(BusName, u8), i64>,
    /// Whether a servo was blocked on the way, in a movement that allows it.
    pub(super) blocked: bool,
}

/// What a blocked servo means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocked {
    /// The movement has failed.
    Fails,
    /// The servo holds something.
    Holds,
}

impl Feetech {
    /// Moves the joints of a part, its gripper only with `hand_too`.
    pub(super) async fn to_positions(
        &self,
        on: Subsystem,
        positions: &[f64],
        speed: f64,
        hand_too: bool,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let mut servos = self.layout.of(on);
        let mut values: BTreeMap<&str, f64> = servos
            .iter()
            .map(|servo| servo.name.as_str())
            .zip(positions.iter().copied())
            .collect();
        if let Some((gripper, servo)) = self.hand(on) {
            let hand = servo.name.as_str();
            let stays = |to: &f64| !hand_too || !self.may_turn(on, &gripper, *to);
            if values.get(hand).is_some_and(stays) {
                values.remove(hand);
                servos.retain(|other| other.name != hand);
            }
            // A hand opens and closes as far as its limits allow.
            if values.contains_key(hand) && !self.is_missing(servo) {
                let (min, max) = self.range(servo, control).await?;
                values.entry(hand).and_modify(|to| *to = to.clamp(min, max));
            }
        }
        let (there, notes) = self.present(servos)?;
        let goals: Vec<Goal<'_>> = there
            .into_iter()
            .filter_map(|servo| {
                Some(Goal {
                    servo,
                    value: *values.get(servo.name.as_str())?,
                })
            })
            .collect();
        let moved = self.go(&goals, speed, Blocked::Fails, control).await?;
        Ok(ActionOutput {
            notes,
            ..ActionOutput::new(format!("{on} is there"))
                .with("positions", json!(self.values(&goals, &moved)))
        })
    }

    fn values(&self, goals: &[Goal<'_>], moved: &Moved) -> BTreeMap<String, f64> {
        let value = |goal: &Goal<'_>| {
            let steps = moved.steps.get(&(goal.servo.bus, goal.servo.id))?;
            Some((goal.servo.name.clone(), tenth(goal.servo.value(*steps))))
        };
        goals.iter().filter_map(value).collect()
    }

    pub(super) async fn routine(
        &self,
        on: Subsystem,
        frames: &[Keyframe],
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let mut notes = Vec::new();
        for (done, frame) in (0u32..).zip(frames) {
            notes = self
                .to_positions(on, &frame.positions, frame.speed, true, control)
                .await?
                .notes;
            let hold = Duration::try_from_secs_f64(frame.hold).unwrap_or_default();
            self.sleep(control, hold).await?;
            let all = u32::try_from(frames.len()).unwrap_or(u32::MAX);
            control.progress(
                f64::from(done + 1) / f64::from(all),
                &format!("{on}: keyframe {} of {all}", done + 1),
            );
        }
        Ok(ActionOutput {
            notes,
            ..ActionOutput::new(format!("{on} did it"))
        })
    }

    /// The gripper of an arm and its servo.
    pub(super) fn hand(&self, on: Subsystem) -> Option<(Gripper, &Servo)> {
        let gripper = self.capabilities.arm(on)?.gripper.clone()?;
        let servo = self.layout.of(on).get(gripper.joint?).copied()?;
        Some((gripper, servo))
    }

    /// Whether a pose may turn a gripper: a hand that holds something does not close further; one that opens lets go.
    fn may_turn(&self, on: Subsystem, gripper: &Gripper, to: f64) -> bool {
        let mut known = self.known();
        let Some(at) = known.hands.get(&on).copied().flatten() else {
            return true;
        };
        let opens = (to - gripper.closed).abs() > (at - gripper.closed).abs();
        if opens {
            known.hands.insert(on, None);
        }
        opens
    }

    fn is_missing(&self, servo: &Servo) -> bool {
        self.known().missing.contains(&(servo.bus, servo.id))
    }

    /// Checks that a hand that was closed on something still holds it.
    ///
    /// # Errors
    /// The hand has closed further since then.
    pub(super) async fn still_holds(&self, on: Subsystem, control: &Control) -> Result<(), ActionError> {
        let Some((gripper, servo)) = self.hand(on) else {
            return Ok(());
        };
        let Some(at) = self.known().hands.get(&on).copied().flatten() else {
            return Ok(());
        };
        let now = self.where_is(servo, control).await?;
        let slipped = exact(NEARLY) / servo.scale.abs();
        if (now - gripper.closed).abs() + slipped >= (at - gripper.closed).abs() {
            return Ok(());
        }
        self.known().hands.insert(on, None);
        Err(ActionError::Refused(format!("{on} has lost what it held")))
    }

    /// Opens or closes a hand. A hand that closes with a force has to hold something.
    pub(super) async fn grip(
        &self,
        on: Subsystem,
        action: Grip,
        force: Option<f64>,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let Some((gripper, servo)) = self.hand(on) else {
            return Err(self.lacks(format!("gripper of {on}")));
        };
        let (there, notes) = self.present(vec![servo])?;
        if there.is_empty() {
            return Err(ActionError::Refused(format!("{} is missing", servo.label())));
        }
        let now = self.where_is(servo, control).await?;
        let is_open = (now - gripper.open).abs() < (now - gripper.closed).abs();
        let close = match action {
            Grip::Open => false,
            Grip::Close => true,
            Grip::Toggle => is_open,
        };
        let (min, max) = self.range(servo, control).await?;
        let to = if close { gripper.closed } else { gripper.open };
        let goal = Goal {
            servo,
            value: to.clamp(min, max),
        };
        let kept = self.still_holds(on, control).await;
        self.press(servo, force, control).await?;
        self.known().hands.remove(&on);
        let moved = self.go(&[goal], 1.0, Blocked::Holds, control).await?;
        let at = moved.steps.get(&(servo.bus, servo.id));
        let at = at.map_or(gripper.closed, |steps| servo.value(*steps));
        if !close && (at - gripper.open).abs() > (at - gripper.closed).abs() {
            return Err(self.broken(format!(
                "{} is blocked at {} degrees and did not open",
                servo.label(),
                tenth(at)
            )));
        }
        let holds = close && moved.blocked;
        self.known().hands.insert(on, holds.then_some(at));
        if close && force.is_some() && !holds {
            return Err(ActionError::Refused(format!("{on} has closed on nothing")));
        }
        let mut notes = notes;
        notes.extend(kept.err().map(|lost| lost.to_string()));
        let word = match (close, moved.blocked) {
            (true, true) => "closed and holds something",
            (true, false) => "closed",
            (false, true) => "opened as far as it goes",
            (false, false) => "open",
        };
        Ok(ActionOutput {
            notes,
            ..ActionOutput::new(format!("gripper of {on} is {word}"))
                .with("closed", close)
                .with("holding", close && moved.blocked)
                .with("positions", json!(self.values(&[goal], &moved)))
        })
    }

    /// Limits the torque of a servo that presses on something.
    pub(super) async fn press(
        &self,
        servo: &Servo,
        force: Option<f64>,
        control: &Control,
    ) -> Result<(), ActionError> {
        let limit = super::servo::round((force.unwrap_or(USUAL_FORCE).clamp(0.05, 1.0)) * 1000.0);
        let id = servo.id;
        self.tell(servo.bus, vec![id], control, move |wire| {
            wire.write(id, Register::TORQUE_LIMIT, limit)
        })
        .await
    }

    pub(super) async fn where_is(&self, servo: &Servo, control: &Control) -> Result<f64, ActionError> {
        let id = servo.id;
        let steps = self
            .ask(servo.bus, control, move |wire| wire.read(id, Register::POSITION))
            .await?;
        self.remember(servo.bus, [(id, steps)]);
        Ok(servo.value(steps))
    }

    pub(super) async fn lift(&self, to: LiftTarget, control: &Control) -> Result<ActionOutput, ActionError> {
        let Some(&servo) = self.layout.of(Subsystem::Lift).first() else {
            return Err(self.lacks("lift"));
        };
        let (there, _) = self.present(vec![servo])?;
        if there.is_empty() {
            return Err(ActionError::Refused(format!("{} is missing", servo.label())));
        }
        let wanted = match to {
            LiftTarget::To(height) => height,
            LiftTarget::By(by) => self.where_is(servo, control).await? + by,
        };
        let (min, max) = self.range(servo, control).await?;
        let value = wanted.clamp(min, max);
        let moved = self
            .go(&[Goal { servo, value }], 1.0, Blocked::Fails, control)
            .await?;
        let steps = moved
            .steps
            .get(&(servo.bus, servo.id))
            .copied()
            .unwrap_or_default();
        let height = tenth(servo.value(steps));
        let output = ActionOutput::new(format!("lift is at {height} mm")).with("position_mm", height);
        Ok(if (wanted - value).abs() > 1.0 {
            output.ends_at("position_mm", wanted, value)
        } else {
            output
        })
    }

    pub(super) async fn hitch(
        &self,
        action: HitchAction,
        grip_percent: Option<f64>,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let Some(&servo) = self.layout.of(Subsystem::Hitch).first() else {
            return Err(self.lacks("hitch"));
        };
        let (there, _) = self.present(vec![servo])?;
        if there.is_empty() {
            return Err(ActionError::Refused(format!("{} is missing", servo.label())));
        }
        let now = self.where_is(servo, control).await?;
        let close = match action {
            HitchAction::Open | HitchAction::Release => false,
            HitchAction::Close | HitchAction::Dock => true,
            HitchAction::Toggle => now < f64::midpoint(servo.min, servo.max),
        };
        let usual = if close { 100.0 } else { 0.0 };
        let percent = grip_percent.unwrap_or(usual).clamp(0.0, 100.0);
        let (min, max) = self.range(servo, control).await?;
        self.press(servo, None, control).await?;
        let value = (servo.min + (servo.max - servo.min) * percent / 100.0).clamp(min, max);
        let moved = self
            .go(&[Goal { servo, value }], 1.0, Blocked::Holds, control)
            .await?;
        match (action, moved.blocked) {
            (HitchAction::Dock, false) => {
                return Err(ActionError::Refused(
                    "the hitch closed all the way: it holds nothing".to_owned(),
                ));
            }
            (_, true) if !close => {
                return Err(self.broken(format!("{} is blocked and did not open", servo.label())));
            }
            _ => {}
        }
        let steps = moved
            .steps
            .get(&(servo.bus, servo.id))
            .copied()
            .unwrap_or_default();
        let reached = (servo.value(steps) - servo.min) / (servo.max - servo.min) * 100.0;
        Ok(
            ActionOutput::new(format!("hitch is {}", if close { "closed" } else { "open" }))
                .with("grip_percent", tenth(reached))
                .with("holding", close && moved.blocked),
        )
    }

    /// Moves servos together, so that they arrive together, and waits until they have arrived.
    pub(super) async fn go(
        &self,
        goals: &[Goal<'_>],
        speed: f64,
        blocked: Blocked,
        control: &Control,
    ) -> Result<Moved, ActionError> {
        // Checked before the servos get power.
        self.check_kept(goals, control).await?;
        let mut moved = Moved::default();
        let mut longest = Duration::ZERO;
        let mut starts = BTreeMap::new();
        for bus in [BusName::Left, BusName::Right] {
            let ids = ids_on(goals, bus);
            if !ids.is_empty() {
                let asked = ids.clone();
                let found = self
                    .tell(bus, ids, control, move |wire| power(wire, &asked))
                    .await?;
                self.remember(bus, found.iter().map(|(id, steps)| (*id, *steps)));
                starts.extend(found.into_iter().map(|(id, steps)| ((bus, id), steps)));
            }
        }
        for goal in goals {
            let from = starts
                .get(&(goal.servo.bus, goal.servo.id))
                .copied()
                .unwrap_or_default();
            let way = (goal.value - goal.servo.value(from)).abs();
            let time = Duration::try_from_secs_f64(way / (goal.servo.speed * speed.clamp(0.05, 1.0)));
            longest = longest.max(time.unwrap_or_default());
        }
        for bus in [BusName::Left, BusName::Right] {
            let commands: Vec<(u8, i64, u16)> = goals
                .iter()
                .filter(|goal| goal.servo.bus == bus)
                .map(|goal| {
                    let from = starts.get(&(bus, goal.servo.id)).copied().unwrap_or_default();
                    let way = (goal.value - goal.servo.value(from)).abs();
                    let rate = goal.servo.rate(way / longest.as_secs_f64().max(0.02));
                    (goal.servo.id, goal.servo.steps(goal.value), rate.max(SLOWEST))
                })
                .collect();
            if !commands.is_empty() {
                self.tell(bus, ids_on(goals, bus), control, move |wire| wire.go(&commands))
                    .await?;
            }
        }
        let limit = longest.mul_f64(1.5) + Duration::from_secs(1);
        match self.arrive(goals, limit, blocked, control, &mut moved).await {
            Ok(()) => Ok(moved),
            Err(ActionError::Cancelled) => Err(ActionError::Cancelled),
            Err(error) => {
                for bus in [BusName::Left, BusName::Right] {
                    let ids = ids_on(goals, bus);
                    let held = ids.clone();
                    if !ids.is_empty() {
                        let _ = self
                            .tell(bus, ids, control, move |wire| hold(wire, &held).map(drop))
                            .await;
                    }
                }
                Err(error)
            }
        }
    }

    async fn arrive(
        &self,
        goals: &[Goal<'_>],
        limit: Duration,
        blocked: Blocked,
        control: &Control,
        moved: &mut Moved,
    ) -> Result<(), ActionError> {
        let start = self.clock.now();
        let mut closest: BTreeMap<(BusName, u8), (i64, Instant)> = BTreeMap::new();
        let mut missed: BTreeSet<(BusName, u8)> = BTreeSet::new();
        loop {
            // A reading counts for the time at which it was requested: on a busy machine it may be looked at much
            // later.
            let asked = self.clock.now();
            let mut waiting = Vec::new();
            for bus in [BusName::Left, BusName::Right] {
                let ids = ids_on(goals, bus);
                if ids.is_empty() {
                    continue;
                }
                let found = self
                    .ask(bus, control, move |wire| wire.read_each(&ids, Register::POSITION))
                    .await?;
                self.remember(bus, found.iter().map(|(id, (steps, _))| (*id, *steps)));
                for goal in goals.iter().filter(|goal| goal.servo.bus == bus) {
                    let servo = goal.servo;
                    let Some((steps, alarms)) = found.get(&servo.id).copied() else {
                        // On a busy machine an answer may be late; a servo that is gone does not answer the next
                        // question either.
                        if !missed.insert((bus, servo.id)) {
                            return Err(self.broken(format!(
                                "{} does not answer any more; where it answers at other times, raise channels.answer_ms",
                                servo.label()
                            )));
                        }
                        waiting.push((
                            goal,
                            (servo.steps(goal.value) - last_of(moved, goal)).abs(),
                            false,
                        ));
                        continue;
                    };
                    missed.remove(&(bus, servo.id));
                    let before = moved.steps.insert((bus, servo.id), steps);
                    let still = before.is_some_and(|before| (before - steps).abs() <= 1);
                    if alarms.is_severe() {
                        return Err(self.broken(format!(
                            "{} reports {}",
                            servo.label(),
                            alarms.names().join(" and ")
                        )));
                    }
                    let left = (servo.steps(goal.value) - steps).abs();
                    let best = closest.entry((bus, servo.id)).or_insert((left, asked));
                    if left < best.0 {
                        *best = (left, asked);
                    }
                    let rests = asked.duration_since(best.1) >= BLOCKED;
                    if !(still && left <= THERE || rests && left <= NEARLY) {
                        waiting.push((goal, left, rests));
                    }
                }
            }
            if waiting.is_empty() {
                return Ok(());
            }
            let stuck = waiting.iter().find(|(_, _, rests)| *rests);
            match (stuck, blocked) {
                (Some(_), Blocked::Holds) => {
                    moved.blocked = true;
                    return Ok(());
                }
                (Some((stuck, left, _)), Blocked::Fails) => {
                    return Err(self.broken(format!(
                        "{} is blocked {:.0} short of {}",
                        stuck.servo.label(),
                        (exact(*left) / stuck.servo.scale).abs(),
                        tenth(stuck.value)
                    )));
                }
                (None, _) => {}
            }
            // A servo that is nearly there does not count as short: it gets one more look or comes to rest. A busy
            // machine looks seldom.
            let short = waiting.iter().find(|(_, left, _)| *left > NEARLY);
            if let Some((goal, left, _)) = short
                && missed.is_empty()
                && asked.duration_since(start) > limit
            {
                return Err(ActionError::Timeout {
                    robot: self.name.clone(),
                    what: format!(
                        "{} did not reach {} ({:.0} short)",
                        goal.servo.label(),
                        tenth(goal.value),
                        (exact(*left) / goal.servo.scale).abs()
                    ),
                    limit,
                });
            }
            self.sleep(control, LOOK).await?;
        }
    }
}

/// The last read position of a servo, or its goal where there is none.
fn last_of(moved: &Moved, goal: &Goal<'_>) -> i64 {
    let last = moved.steps.get(&(goal.servo.bus, goal.servo.id)).copied();
    last.unwrap_or_else(|| goal.servo.steps(goal.value))
}

pub(super) fn ids_on(goals: &[Goal<'_>], bus: BusName) -> Vec<u8> {
    goals
        .iter()
        .filter(|goal| goal.servo.bus == bus)
        .map(|goal| goal.servo.id)
        .collect()
}
