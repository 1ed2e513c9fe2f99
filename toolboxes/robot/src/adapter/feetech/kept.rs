//! The calibration that the servos keep, and the layout's ranges within it.
//!
//! Owns the rule that a servo is never sent beyond its own limits (of positions), and never moved where its
//! homing offset (31) differs from the calibration file of the layout. Writes nothing.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::device::Feetech;
use super::motion::{Goal, THERE};
use super::servo::{Servo, exact, round, tenth};
use crate::adapter::{ActionError, ActionOutput, Control};
use crate::capability::BusName;
use crate::servo::{Calibration, Family, Register};
use crate::subsystem::Subsystem;

/// Calibrations by bus and id.
pub(super) type Calibrations = BTreeMap<(BusName, u8), Calibration>;

impl Servo {
    /// The layout's range within these limits of the servo; `None` where nothing is left of it.
    pub(super) fn within(&self, kept: Calibration) -> Option<(f64, f64)> {
        let Some((low, high)) = kept.limits() else {
            return Some((self.min, self.max));
        };
        let ends = [self.value(low), self.value(high)];
        let min = self.min.max(ends[0].min(ends[1]));
        let max = self.max.min(ends[0].max(ends[1]));
        (min < max).then_some((min, max))
    }
}

impl Feetech {
    /// Reads the calibrations of servos. A servo that does not answer is missing.
    pub(super) async fn calibrations(
        &self,
        servos: &[&Servo],
        control: &Control,
    ) -> Result<Calibrations, ActionError> {
        let mut kept = Calibrations::new();
        for bus in [BusName::Left, BusName::Right] {
            let of_bus = servos.iter().filter(|servo| servo.bus == bus);
            let ids: Vec<u8> = of_bus.map(|servo| servo.id).collect();
            if ids.is_empty() {
                continue;
            }
            let read = self
                .ask(bus, control, move |wire| wire.calibrations(&ids))
                .await?;
            kept.extend(read.into_iter().map(|(id, one)| ((bus, id), one)));
        }
        Ok(kept)
    }

    /// The range of a servo: the layout's range within its own limits.
    pub(super) async fn range(&self, servo: &Servo, control: &Control) -> Result<(f64, f64), ActionError> {
        let kept = self.calibrations(&[servo], control).await?;
        match kept.get(&(servo.bus, servo.id)) {
            Some(kept) => self.usable(servo, *kept),
            // The next question to the servo reports that it does not answer.
            None => Ok((servo.min, servo.max)),
        }
    }

    /// Refuses goals beyond the servos' own limits: a servo would stop at its limit without an error.
    pub(super) async fn check_kept(&self, goals: &[Goal<'_>], control: &Control) -> Result<(), ActionError> {
        let servos: Vec<&Servo> = goals.iter().map(|goal| goal.servo).collect();
        let kept = self.calibrations(&servos, control).await?;
        for Goal { servo, value } in goals {
            let Some(kept) = kept.get(&(servo.bus, servo.id)) else {
                continue;
            };
            let (min, max) = self.usable(servo, *kept)?;
            let near = (exact(THERE) / servo.scale).abs();
            if *value < min - near || *value > max + near {
                return Err(ActionError::Refused(format!(
                    "{}: {} is outside the limits stored in the servo, {} to {} ({}); calibrate it, or choose a value within them",
                    servo.label(),
                    tenth(*value),
                    tenth(min),
                    tenth(max),
                    self.family.limits()
                )));
            }
        }
        Ok(())
    }

    /// Reads the calibrations of a part's servos and reports what does not fit. Changes and moves nothing.
    pub(super) async fn check_calibration(
        &self,
        on: Subsystem,
        servos: &[&Servo],
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let kept = self.calibrations(servos, control).await?;
        let mut reports = serde_json::Map::new();
        let mut output = ActionOutput::new(format!("the calibration of {on} was read; nothing was changed"));
        for servo in servos {
            let Some(kept) = kept.get(&(servo.bus, servo.id)) else {
                return Err(self.broken(format!("{} does not answer", servo.label())));
            };
            let at = self.where_is(servo, control).await?;
            let mut one = in_words(*kept);
            one["at"] = json!(tenth(at));
            let offset = offset_for(self.family, *kept, servo.steps(at), servo.steps(servo.home));
            one["offset_for_home_here"] = json!(offset);
            match self.usable(servo, *kept) {
                Ok((min, max)) => {
                    one["range"] = json!([tenth(min), tenth(max)]);
                    if at < min - 1.0 || at > max + 1.0 {
                        output =
                            output.note(format!("{} is at {}, beyond its range", servo.label(), tenth(at)));
                    }
                }
                Err(error) => output = output.note(error.to_string()),
            }
            reports.insert(servo.name.clone(), one);
        }
        Ok(output.with("servos", reports))
    }

    /// Refuses the step if one of these joints has power: the step would switch the power off, and the joint would
    /// fall.
    pub(super) async fn refuse_powered(
        &self,
        servos: &[&Servo],
        control: &Control,
    ) -> Result<(), ActionError> {
        for bus in [BusName::Left, BusName::Right] {
            let of_bus: Vec<&Servo> = servos.iter().copied().filter(|servo| servo.bus == bus).collect();
            let ids: Vec<u8> = of_bus.iter().map(|servo| servo.id).collect();
            if ids.is_empty() {
                continue;
            }
            let found = self
                .ask(bus, control, move |wire| wire.read_each(&ids, Register::TORQUE))
                .await?;
            let holds = |servo: &&Servo| found.get(&servo.id).is_some_and(|(on, _)| *on == 1);
            if let Some(servo) = of_bus.into_iter().find(holds) {
                return Err(ActionError::Refused(format!(
                    "{} holds with power and would let go: support it, switch its power off with enable_torque \
                     (subsystem {}, enable false), and do this then",
                    servo.label(),
                    servo.subsystem
                )));
            }
        }
        Ok(())
    }

    /// The range that a servo's own limits leave.
    ///
    /// # Errors
    /// The limits leave no range, or the servo's homing offset is not the one of the calibration file.
    fn usable(&self, servo: &Servo, kept: Calibration) -> Result<(f64, f64), ActionError> {
        if let Some(expected) = servo.offset.filter(|expected| *expected != kept.offset) {
            return Err(ActionError::Refused(format!(
                "{} has the homing offset {}, its calibration file says {expected}: write the file into the servos with \
             LeRobot, or name the right file in channels.calibration",
                servo.label(),
                kept.offset
            )));
        }
        servo.within(kept).ok_or_else(|| {
            ActionError::Refused(format!(
                "{}: the limits stored in the servo (steps {} to {}, {}) do not overlap with {} to {}; check its calibration, zero_step \
                 and reversed",
                servo.label(),
                kept.min,
                kept.max,
                self.family.limits(),
                tenth(servo.min),
                tenth(servo.max)
            ))
        })
    }
}

/// A calibration as results show it.
pub(super) fn in_words(kept: Calibration) -> Value {
    json!({"min_position": kept.min, "max_position": kept.max, "homing_offset": kept.offset})
}

/// The homing offset that makes `present` read as `home`; `None` where it does not fit into the register.
pub(super) fn offset_for(family: Family, kept: Calibration, present: i64, home: i64) -> Option<i64> {
    // The position that a servo reports is that of its horn minus its offset, or plus it.
    let turn = round(4096.0);
    let change = (home - present) * family.offset_sign();
    let offset = (kept.offset + change + turn / 2).rem_euclid(turn) - turn / 2;
    (offset.abs() <= 2047).then_some(offset)
}
