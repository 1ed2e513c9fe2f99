//! The settings that a servo keeps without power: its id, its limits and its homing offset.

use serde_json::{Value, json};

use super::device::Feetech;
use super::kept::{in_words, offset_for};
use super::servo::Servo;
use super::torque::with_torque_off;
use crate::adapter::{ActionError, ActionOutput, Control};
use crate::capability::BusName;
use crate::servo::{Calibration, Register, ServoError, Wire};
use crate::subsystem::Subsystem;

impl Feetech {
    pub(super) async fn set_id(
        &self,
        bus: BusName,
        current: u8,
        new: u8,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        if current == new {
            return Err(ActionError::Refused(format!(
                "the motor has id {current} already"
            )));
        }
        let there = self
            .ask(bus, control, move |wire| {
                Ok((wire.ping(current)?, wire.ping(new)?))
            })
            .await?;
        match there {
            (false, _) => {
                return Err(ActionError::Refused(format!(
                    "no motor {current} answers on bus {}",
                    bus.as_str()
                )));
            }
            (_, true) => {
                return Err(ActionError::Refused(format!(
                    "another motor on bus {} has id {new} already",
                    bus.as_str()
                )));
            }
            (true, false) => {}
        }
        if let Some(servo) = self.layout.servo(bus, current) {
            self.refuse_powered(&[servo], control).await?;
        }
        self.tell(bus, vec![current, new], control, move |wire| {
            wire.change_id(current, new)
        })
        .await?;
        if !self.ask(bus, control, move |wire| wire.ping(new)).await? {
            return Err(self.broken(format!("motor {current} took id {new} and does not answer to it")));
        }
        let output = ActionOutput::new(format!("motor {current} on bus {} is {new} now", bus.as_str()))
            .with("id", new);
        Ok(match self.layout.ids(bus).contains(&new) {
            true => output,
            false => output.note(format!("id {new} is not in the layout: its torque is off")),
        })
    }

    pub(super) async fn save(
        &self,
        subsystems: &[Subsystem],
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let mut saved = serde_json::Map::new();
        let each: Vec<Subsystem> = subsystems.iter().flat_map(|one| one.each()).collect();
        let concerned = self
            .layout
            .servos
            .iter()
            .filter(|servo| each.contains(&servo.subsystem));
        let concerned: Vec<&Servo> = concerned.collect();
        let kept = self.calibrations(&concerned, control).await?;
        for servo in concerned {
            let Some(kept) = kept.get(&(servo.bus, servo.id)) else {
                return Err(self.broken(format!("{} does not answer", servo.label())));
            };
            saved.insert(servo.key(), in_words(*kept));
        }
        let count = saved.len();
        Ok(ActionOutput::new(format!("the settings of {count} servos"))
            .with("config", json!({"kind": self.layout.model, "servos": saved})))
    }

    /// Compares the settings with saved ones, and with `write` makes them those.
    pub(super) async fn load(
        &self,
        config: &Value,
        write: bool,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        if write {
            self.may_write()?;
        }
        let kind = &config["kind"];
        if *kind != *self.layout.model {
            return Err(ActionError::Refused(format!(
                "the settings are those of a {kind}, this is a {}",
                self.layout.model
            )));
        }
        let servos = config["servos"].as_object().cloned().unwrap_or_default();
        // Everything is checked before the first servo is written to.
        let mut writes = Vec::new();
        for (name, settings) in &servos {
            let found = self.layout.servos.iter().find(|servo| servo.key() == *name);
            let Some(servo) = found else {
                return Err(ActionError::Refused(format!("no servo {name}")));
            };
            let number = |key: &str, most: i64| {
                let number = settings[key]
                    .as_i64()
                    .filter(|number| (-most..=most).contains(number));
                number.ok_or_else(|| ActionError::Refused(format!("{name}: no {key} within ±{most}")))
            };
            let saved = Calibration {
                min: number("min_position", 4095)?.max(0),
                max: number("max_position", 4095)?.max(0),
                offset: number("homing_offset", self.family.farthest())?,
            };
            writes.push((servo, saved));
        }
        let concerned: Vec<&Servo> = writes.iter().map(|(servo, _)| *servo).collect();
        if write {
            self.refuse_powered(&concerned, control).await?;
        }
        let kept = self.calibrations(&concerned, control).await?;
        let mut differ = serde_json::Map::new();
        let mut silent = Vec::new();
        writes.retain(|(servo, saved)| {
            let Some(kept) = kept.get(&(servo.bus, servo.id)) else {
                silent.push(servo.label());
                return true;
            };
            if kept != saved {
                let both = json!({"kept": in_words(*kept), "saved": in_words(*saved)});
                differ.insert(servo.key(), both);
            }
            kept != saved
        });
        if let Some(first) = silent.first() {
            return Err(self.broken(format!("{first} does not answer")));
        }
        let count = writes.len();
        if write {
            self.restore(&writes, control).await?;
        }
        let message = match (write, count) {
            (_, 0) => "the servos have these settings".to_owned(),
            (true, count) => format!("{count} servos have their settings again"),
            (false, count) => format!("{count} servos have other settings; nothing was written"),
        };
        Ok(ActionOutput::new(message)
            .with("differences", differ)
            .with("written", write && count > 0))
    }

    async fn restore(&self, writes: &[(&Servo, Calibration)], control: &Control) -> Result<(), ActionError> {
        for (servo, saved) in writes {
            // The ends were measured with the old offset.
            self.known().measured.remove(&(servo.bus, servo.id));
            let (id, saved) = (servo.id, *saved);
            self.tell(servo.bus, vec![id], control, move |wire| {
                with_torque_off(wire, id, false, |wire| {
                    wire.keep(id, Register::HOMING_OFFSET, saved.offset)?;
                    wire.keep(id, Register::MIN_POSITION, saved.min)?;
                    wire.keep(id, Register::MAX_POSITION, saved.max)
                })
            })
            .await?;
        }
        Ok(())
    }
}

/// Makes a servo a joint or a wheel again, with all the torque that its own memory allows. Its calibration stays.
pub(super) fn configure(wire: &mut Wire, id: u8, is_wheel: bool) -> Result<(), ServoError> {
    with_torque_off(wire, id, is_wheel, |wire| {
        if is_wheel {
            wire.write(id, Register::GOAL_SPEED, 0)?;
        }
        wire.keep(id, Register::MODE, i64::from(is_wheel))?;
        let most = wire.read(id, Register::MAX_TORQUE)?;
        wire.write(id, Register::TORQUE_LIMIT, most)
    })
}

/// Makes the present position of a servo read as `home`; returns the new offset, or nothing if the offset does not fit.
pub(super) fn home_here(wire: &mut Wire, id: u8, home: i64) -> Result<Option<i64>, ServoError> {
    let present = wire.read(id, Register::POSITION)?;
    let Some(kept) = wire.calibrations(&[id])?.remove(&id) else {
        // The servo did not answer. A question to it alone returns the reason.
        wire.read(id, Register::HOMING_OFFSET)?;
        return Ok(None);
    };
    let Some(offset) = offset_for(wire.family(), kept, present, home) else {
        return Ok(None);
    };
    with_torque_off(wire, id, false, |wire| {
        wire.keep(id, Register::HOMING_OFFSET, offset)
    })?;
    Ok(Some(offset))
}
