//! Finds the ends of a joint's way with a gentle push.
//!
//! Owns what counts as an end: the joint stopped before its goal and pressed there. A joint that stands at the end of
//! its allowed range without pressing has met nothing. Read [`Feetech::measure_all`].

use serde_json::json;

use super::device::Feetech;
use super::end::End;
use super::kept::in_words;
use super::motion::{Blocked, Goal, THERE, USUAL_FORCE};
use super::servo::{Servo, tenth};
use super::torque::with_torque_off;
use crate::adapter::{ActionError, ActionOutput, Control};
use crate::resolve::{CAREFUL, SWEEP};
use crate::servo::Register;
use crate::subsystem::Subsystem;

/// Percent of the servo's torque above which it presses: half of its limit during a measurement.
const PRESSES: f64 = USUAL_FORCE * 50.0;
/// A limit is written this many steps before the end that was felt: about one degree.
const MARGIN: i64 = 12;
/// The narrowest range that is written, in steps: about nine degrees.
const NARROWEST: i64 = 100;

impl Feetech {
    /// Measures the servos of a part, one after the other, and brings each back to where it was. Writes nothing.
    pub(super) async fn measure_all(
        &self,
        on: Subsystem,
        servos: &[&Servo],
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let mut ranges = serde_json::Map::new();
        for servo in servos {
            self.known().measured.remove(&(servo.bus, servo.id));
            let speed = if on.is_arm() { CAREFUL } else { SWEEP };
            let ends = self.ends_of(servo, speed, control).await?;
            let reports = ends
                .map(|end| json!({"at": tenth(servo.value(end.step)), "step": end.step, "felt": end.felt}));
            ranges.insert(servo.name.clone(), json!({"low": reports[0], "high": reports[1]}));
            self.known().measured.insert((servo.bus, servo.id), ends);
        }
        Ok(ActionOutput::new(format!("{on} was measured; nothing was written")).with("ranges", ranges))
    }

    /// Writes what was measured last: each end that was felt becomes a limit in the servo; the other limits stay as they
    /// are. Measures nothing, so that a person can look at the ends before.
    pub(super) async fn write_all(
        &self,
        on: Subsystem,
        servos: &[&Servo],
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let mut measured = Vec::with_capacity(servos.len());
        for servo in servos {
            let ends = self.known().measured.get(&(servo.bus, servo.id)).copied();
            let Some(ends) = ends else {
                return Err(ActionError::Refused(format!(
                    "{} has not been measured since the toolbox started: call this without write first, and check the ends",
                    servo.label()
                )));
            };
            measured.push((servo, ends));
        }
        let mut written = serde_json::Map::new();
        let mut notes = Vec::new();
        for (servo, ends) in measured {
            match self.write_ends(servo, ends, control).await? {
                Ok(limits) => drop(written.insert(servo.name.clone(), limits)),
                Err(why) => notes.push(format!("{}: {why}; its limits stay as they are", servo.label())),
            }
        }
        let word = match written.is_empty() {
            true => "nothing was written",
            false => "the ends found are now its limits",
        };
        let trouble = written
            .is_empty()
            .then(|| format!("{on}: {word}: {}", notes.join("; ")));
        Ok(ActionOutput {
            notes,
            ..ActionOutput::new(format!("{on}: {word}"))
                .with("written", written)
                .trouble(trouble)
        })
    }

    /// The ends of a servo's way within its range, in the order of its positions.
    async fn ends_of(&self, servo: &Servo, speed: f64, control: &Control) -> Result<[End; 2], ActionError> {
        let (min, max) = self.range(servo, control).await?;
        let start = self.where_is(servo, control).await?.clamp(min, max);
        let key = (servo.bus, servo.id);
        let id = servo.id;
        let limit = self
            .ask(servo.bus, control, move |wire| {
                wire.read(id, Register::TORQUE_LIMIT)
            })
            .await?;
        self.known().gentle.entry(key).or_insert(limit);
        self.press(servo, None, control).await?;
        let mut ends = [End { step: 0, felt: false }; 2];
        for (end, value) in ends.iter_mut().zip([min, max]) {
            let moved = self
                .go(&[Goal { servo, value }], speed, Blocked::Holds, control)
                .await?;
            let health = self.ask(servo.bus, control, move |wire| wire.health(id)).await?;
            let short = (servo.steps(value) - health.position).abs() > THERE;
            *end = End {
                step: health.position,
                // A joint counts as arrived within four degrees, also where an end is that near to the layout's.
                felt: (moved.blocked || short) && health.load_percent.abs() >= PRESSES,
            };
            self.remember(servo.bus, [(id, health.position)]);
            // The joint moves away from the thing that it presses on.
            self.go(&[Goal { servo, value: start }], speed, Blocked::Fails, control)
                .await?;
        }
        self.end_gentle(servo.subsystem, control).await?;
        let [a, b] = ends;
        if a.felt && b.felt && (a.step - b.step).abs() < NARROWEST {
            return Err(self.broken(format!(
                "{} does not move: both ends were found at step {}; check its power and its horn",
                servo.label(),
                a.step
            )));
        }
        Ok(ends)
    }

    /// Restores the torque limit of a part's servos, also after a cancelled measurement.
    pub(super) async fn end_gentle(&self, on: Subsystem, control: &Control) -> Result<(), ActionError> {
        let mut gentle = self.known().gentle.clone();
        gentle.retain(|(bus, id), _| {
            let servo = self.layout.servo(*bus, *id);
            servo.is_some_and(|servo| on.each().contains(&servo.subsystem))
        });
        for ((bus, id), limit) in gentle {
            self.tell(bus, vec![id], control, move |wire| {
                wire.write(id, Register::TORQUE_LIMIT, limit)
            })
            .await?;
            self.known().gentle.remove(&(bus, id));
        }
        Ok(())
    }

    /// Writes the ends that were felt. Returns the new limits, or why nothing was written.
    async fn write_ends(
        &self,
        servo: &Servo,
        ends: [End; 2],
        control: &Control,
    ) -> Result<Result<serde_json::Value, String>, ActionError> {
        if !ends.iter().any(|end| end.felt) {
            return Ok(Err("no end was found".to_owned()));
        }
        let kept = self.calibrations(&[servo], control).await?;
        let Some(kept) = kept.get(&(servo.bus, servo.id)).copied() else {
            return Err(self.broken(format!("{} does not answer", servo.label())));
        };
        let (low, high) = match ends {
            [a, b] if a.step <= b.step => (a, b),
            [a, b] => (b, a),
        };
        let min = if low.felt { low.step + MARGIN } else { kept.min };
        let max = if high.felt { high.step - MARGIN } else { kept.max };
        if min + NARROWEST > max {
            return Ok(Err(format!(
                "its ends would be the steps {min} and {max}, which are too close together"
            )));
        }
        let id = servo.id;
        self.tell(servo.bus, vec![id], control, move |wire| {
            with_torque_off(wire, id, false, |wire| {
                wire.keep(id, Register::MIN_POSITION, min)?;
                wire.keep(id, Register::MAX_POSITION, max)
            })
        })
        .await?;
        let now = self.calibrations(&[servo], control).await?;
        match now.get(&(servo.bus, servo.id)).copied() {
            Some(now) if now.limits() == Some((min, max)) => Ok(Ok(in_words(now))),
            now => Err(self.broken(format!(
                "{} did not take the limits {min} to {max}: it has {now:?}",
                servo.label()
            ))),
        }
    }
}
