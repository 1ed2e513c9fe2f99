//! Calibration: ends, homes, and what of them the servos keep.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use super::layout::Servo;
use super::motion::{Blocked, Goal};
use super::settings::{configure, home_here};
use super::{Johnny5, tenth};
use crate::adapter::{ActionError, ActionOutput, Control};
use crate::subsystem::Subsystem;

impl Johnny5 {
    pub(super) async fn calibrate(
        &self,
        on: Subsystem,
        mode: &str,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let servos = self.layout.of(on);
        let (servos, notes) = self.present(servos)?;
        let output = match (on, mode) {
            (Subsystem::Base, mode) => self.calibrate_base(mode, control).await?,
            (_, "offsets_only" | "set_home") => self.set_home(on, control).await?,
            (Subsystem::Gantry, "center_only") | (_, "home_only") => {
                self.homes(&servos, control).await?;
                ActionOutput::said(format!("{on} is at home"))
            }
            (Subsystem::LeftArm | Subsystem::RightArm, "quick") => {
                self.write_settings(&servos, control).await?;
                ActionOutput::said(format!("the limits of {on} are in its servos"))
            }
            (_, "find_limits" | "range_test" | "full") => {
                let ranges = self.ranges(&servos, on.is_arm(), control).await?;
                self.write_settings(&servos, control).await?;
                self.homes(&servos, control).await?;
                ActionOutput::said(format!("{on} went through its range")).with("ranges", json!(ranges))
            }
            (_, mode) => return Err(self.lacks(format!("calibration {mode} of {on}"))),
        };
        Ok(ActionOutput { notes, ..output })
    }

    async fn homes(&self, servos: &[&Servo], control: &Control) -> Result<(), ActionError> {
        let goals: Vec<Goal<'_>> = servos
            .iter()
            .map(|servo| Goal {
                servo,
                value: servo.home,
            })
            .collect();
        self.go(&goals, 0.3, Blocked::Fails, control).await.map(drop)
    }

    /// Moves each servo, one after the other, from end to end (arms: a little way about where they are, because their
    /// ends may hit the robot), and returns how far each came.
    async fn ranges(
        &self,
        servos: &[&Servo],
        little: bool,
        control: &Control,
    ) -> Result<BTreeMap<String, [f64; 2]>, ActionError> {
        let mut ranges = BTreeMap::new();
        for servo in servos {
            let start = self.where_is(servo, control).await?.clamp(servo.min, servo.max);
            let (low, high) = match little {
                true => ((start - 5.0).max(servo.min), (start + 5.0).min(servo.max)),
                false => (servo.min, servo.max),
            };
            let mut reached = [0.0; 2];
            for (end, value) in reached.iter_mut().zip([low, high]) {
                let moved = self
                    .go(&[Goal { servo, value }], 0.5, Blocked::Holds, control)
                    .await?;
                let steps = moved
                    .steps
                    .get(&(servo.bus, servo.id))
                    .copied()
                    .unwrap_or_default();
                *end = tenth(servo.value(steps));
            }
            self.go(&[Goal { servo, value: start }], 0.5, Blocked::Fails, control)
                .await?;
            ranges.insert(servo.name.clone(), reached);
        }
        Ok(ranges)
    }

    pub(super) async fn write_settings(
        &self,
        servos: &[&Servo],
        control: &Control,
    ) -> Result<(), ActionError> {
        for servo in servos {
            let (id, servo) = (servo.id, (*servo).clone());
            self.tell(servo.bus, vec![id], control, move |wire| {
                configure(wire, id, Some(&servo), false)
            })
            .await?;
        }
        Ok(())
    }

    pub(super) async fn calibrate_base(
        &self,
        mode: &str,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let mut output = ActionOutput::said("the base turns as it should");
        if matches!(mode, "wheel_test" | "full") {
            let mut turned = serde_json::Map::new();
            let wheels: Vec<(String, u8)> = self
                .layout
                .wheels
                .iter()
                .map(|wheel| (wheel.name.clone(), wheel.id))
                .collect();
            for (name, id) in wheels {
                turned.insert(name, json!(tenth(self.test_wheel(id, 20.0, control).await?)));
            }
            output = output.with("wheels_turned_degrees", turned);
        }
        if matches!(mode, "drive_test" | "full") {
            for x in [0.05, -0.05] {
                let velocity = crate::action::Velocity {
                    x,
                    ..Default::default()
                };
                self.drive(velocity, Duration::from_millis(600), control).await?;
            }
            output = output.with("drove_m", 0.03);
        }
        match mode {
            "wheel_test" | "drive_test" | "full" => Ok(output),
            mode => Err(self.lacks(format!("calibration {mode} of base"))),
        }
    }

    pub(super) async fn set_home(
        &self,
        on: Subsystem,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let (servos, notes) = self.present(self.layout.of(on))?;
        if servos.is_empty() {
            return Err(self.lacks(format!("home of {on}")));
        }
        let mut offsets = serde_json::Map::new();
        for servo in servos {
            let (id, home) = (servo.id, servo.steps(servo.home));
            let offset = self
                .tell(servo.bus, vec![id], control, move |wire| {
                    home_here(wire, id, home)
                })
                .await?;
            let Some(offset) = offset else {
                return Err(ActionError::Refused(format!(
                    "{} is more than half a turn from home: turn its horn first",
                    servo.label()
                )));
            };
            self.remember(servo.bus, [(id, home)]);
            offsets.insert(servo.name.clone(), json!(offset));
        }
        Ok(ActionOutput {
            notes,
            ..ActionOutput::said(format!("{on} is at home where it is now")).with("offsets", offsets)
        })
    }
}
