//! Calibration: reads and checks the servos' settings, measures ends and sets homes.
//!
//! Owns every calibration value that is written into a servo: a measured limit or a home, and only where the
//! configuration allows it. Read [`Feetech::calibrate`].

use std::time::Duration;

use serde_json::json;

use super::device::Feetech;
use super::motion::{Blocked, Goal};
use super::servo::{Servo, tenth};
use super::settings::home_here;
use crate::adapter::{ActionError, ActionOutput, Control};
use crate::resolve::CAREFUL;
use crate::subsystem::Subsystem;

impl Feetech {
    /// Reads, measures or, with `write`, also writes.
    pub(super) async fn calibrate(
        &self,
        on: Subsystem,
        mode: &str,
        write: bool,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        if write {
            self.may_write()?;
        }
        let (servos, notes) = self.present(self.layout.of(on))?;
        let mut output = match (on, mode) {
            (Subsystem::Base, mode) => self.calibrate_base(mode, control).await?,
            (_, "offsets_only" | "set_home") if !write => {
                self.check_calibration(on, &servos, control).await?
            }
            (_, "offsets_only" | "set_home") => self.set_home(on, control).await?,
            (Subsystem::Gantry, "center_only") | (_, "home_only") => {
                self.homes(&servos, control).await?;
                ActionOutput::new(format!("{on} is at home"))
            }
            (on, "quick") if on.is_arm() && write => {
                return Err(ActionError::Refused(
                    "write: only measured limits are written: use it with mode full".to_owned(),
                ));
            }
            (on, "quick") if on.is_arm() => self.check_calibration(on, &servos, control).await?,
            (_, "find_limits" | "range_test" | "full") if write => {
                self.write_all(on, &servos, control).await?
            }
            (_, "find_limits" | "range_test" | "full") => {
                let output = self.measure_all(on, &servos, control).await?;
                if !on.is_arm() {
                    self.homes(&servos, control).await?;
                }
                output
            }
            (_, mode) => return Err(self.lacks(format!("calibration {mode} of {on}"))),
        };
        output.notes.extend(notes);
        Ok(output)
    }

    /// # Errors
    /// The configuration does not allow calibration to write.
    pub(super) fn may_write(&self) -> Result<(), ActionError> {
        if self.capabilities.services.calibration_write {
            return Ok(());
        }
        Err(ActionError::Refused(format!(
            "robots.{}.channels.allow_calibration_write is not true: nothing was written",
            self.name
        )))
    }

    async fn homes(&self, servos: &[&Servo], control: &Control) -> Result<(), ActionError> {
        let mut goals = Vec::with_capacity(servos.len());
        for servo in servos {
            let (min, max) = self.range(servo, control).await?;
            goals.push(Goal {
                servo,
                value: servo.home.clamp(min, max),
            });
        }
        self.go(&goals, CAREFUL, Blocked::Fails, control).await.map(drop)
    }

    pub(super) async fn calibrate_base(
        &self,
        mode: &str,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let mut output = ActionOutput::new("the base turns as it should");
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
            for (way, x) in [("drove_forward", 0.05), ("drove_back", -0.05)] {
                let velocity = crate::action::Velocity {
                    x,
                    ..Default::default()
                };
                let mut driven = self.drive(velocity, Duration::from_millis(600), control).await?;
                // The distance is the one that the wheels measured.
                output = output.with(way, driven.data.shift_remove("measured").unwrap_or_default());
                output.notes.extend(driven.notes);
            }
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
            // The ends were measured with the old offset.
            self.known().measured.remove(&(servo.bus, id));
            offsets.insert(servo.name.clone(), json!(offset));
        }
        Ok(ActionOutput {
            notes,
            ..ActionOutput::new(format!("{on} is at home where it is now")).with("offsets", offsets)
        })
    }
}
