//! Diagnostics and calibration of a simulated robot.
//!
//! Every step without a motion. Read [`Sim::upkeep`](super::Sim).

use serde_json::{Value, json};

use super::axis::thousandth;
use super::servos::{Servo, load, temperature};
use super::{Begun, Fault, Sim, world};
use crate::action::Velocity;
use crate::adapter::{ActionError, ActionOutput, Control};
use crate::capability::BusName;
use crate::resolve::CAREFUL;
use crate::step::Step;
use crate::subsystem::Subsystem;
use crate::tools::diagnostics::parse_servo;

impl Sim {
    pub(super) async fn upkeep(
        &self,
        on: Subsystem,
        step: &Step,
        begun: &Begun,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        if let Some((action, force)) = step.grip() {
            return self.grip(on, action, force, begun, control).await;
        }
        match step {
            Step::Hitch { action, grip_percent } => self.hitch(*action, *grip_percent, begun, control).await,
            Step::Stop {} => {
                self.brake();
                Ok(ActionOutput::said("the base stands still"))
            }
            Step::ScanMotors { buses } => {
                // One ping for each of 253 ids.
                control
                    .unless_cancelled(self.clock.until(self.clock.now() + 0.5))
                    .await?;
                let found = self.world().servos.scan(buses);
                Ok(ActionOutput::said("scanned").with("motors", found))
            }
            Step::MotorStatus { motor_id } => self.motor_status(on, *motor_id),
            Step::TestMotor { bus, motor_id, angle } => {
                self.test_motor(*bus, *motor_id, *angle, begun, control).await
            }
            Step::CheckTorque {} => {
                let world = self.world();
                let powered = self
                    .capabilities
                    .subsystems()
                    .into_iter()
                    .filter(|part| on == Subsystem::All || *part == on);
                let torque: Value = powered
                    .map(|part| (part.to_string(), json!(world.servos.is_powered(part))))
                    .collect();
                let of = |servo: &Servo| on == Subsystem::All || servo.subsystem == on;
                let silent = world.servos.silent(|_, servo| of(servo));
                Ok(ActionOutput::said("asked").with("torque", torque).trouble(silent))
            }
            Step::EnableTorque { enable } => {
                control.command(|| {
                    let mut world = self.world();
                    world.may_move(on, begun)?;
                    world.servos.power(on, *enable);
                    Ok(())
                })??;
                Ok(
                    ActionOutput::said(if *enable { "powered" } else { "without power" })
                        .with("enabled", *enable),
                )
            }
            Step::PingAll {} => Ok(self.ping(on)),
            Step::ServoRecover {
                bus,
                motor_id,
                action,
            } => {
                let recovered = self.world().servos.recover(*bus, *motor_id, *action);
                let data = recovered.map_err(ActionError::Refused)?;
                let silent = data["answers"] == json!(false);
                let trouble = silent.then(|| format!("servo {}:{motor_id} does not answer", bus.as_str()));
                Ok(ActionOutput::said("tried").with("servo", data).trouble(trouble))
            }
            Step::ReadHealth { bus, temps, loads } => {
                let now = self.clock.now();
                let world = self.world();
                let report = world
                    .servos
                    .health(*bus, *temps, *loads, |part| world.is_moving(part, now));
                let silent = world.servos.silent(|of, _| of == *bus);
                Ok(ActionOutput::said("read")
                    .with(bus.as_str(), report)
                    .trouble(silent))
            }
            Step::Calibrate { mode, .. } => self.calibrate(on, mode, begun, control).await,
            Step::SetMotorId {
                bus,
                current_id,
                new_id,
            } => self.set_motor_id(*bus, *current_id, *new_id),
            Step::SetHomePosition { write } => {
                let at = self.positions(on);
                if !write {
                    let home = self.world().homes.get(&on).cloned();
                    return Ok(ActionOutput::said("nothing was changed")
                        .with("at", at)
                        .with("home", home));
                }
                self.world().homes.insert(on, at.clone());
                Ok(ActionOutput::said(format!("{on} is at home here")).with("home", at))
            }
            Step::SelfTest { verbose } => self.self_test(on, *verbose, begun, control).await,
            Step::SaveConfig { subsystems, .. } => {
                let homes = self.world().homes.clone();
                let homes: Value = subsystems
                    .iter()
                    .filter_map(|part| Some((part.to_string(), json!(homes.get(part)?))))
                    .collect();
                let config = json!({"homes": homes});
                Ok(ActionOutput::said("saved").with("config", config))
            }
            Step::LoadConfig { config, write, .. } => self.load_config(config, *write),
            Step::SetDegraded {
                missing_servos,
                continue_anyway,
            } => self.set_degraded(missing_servos, *continue_anyway),
            Step::HitchStatus {} => {
                let position = self.position(Subsystem::Hitch);
                let world = self.world();
                let docked = world.hitched.as_deref() == Some(world::CHARGER);
                Ok(ActionOutput::said("asked")
                    .with("holding", json!(world.hitched))
                    .with("docked", docked)
                    .with("charging", docked)
                    .with("position", thousandth(position)))
            }
            Step::VerifyCharge {} => {
                if self.world().hitched.as_deref() == Some(world::CHARGER) {
                    return Ok(ActionOutput::said("charging").with("charging", true));
                }
                Err(ActionError::Refused(
                    "it does not charge: the hitch holds no charger".to_string(),
                ))
            }
            other => Err(self.lacks(format!("{other:?}"))),
        }
    }

    fn motor_status(&self, on: Subsystem, motor_id: Option<u8>) -> Result<ActionOutput, ActionError> {
        let now = self.clock.now();
        let world = self.world();
        let mut index: std::collections::BTreeMap<Subsystem, usize> = std::collections::BTreeMap::new();
        let mut motors = Vec::new();
        for (bus, servo) in world.servos.of(on) {
            let nth = index.entry(servo.subsystem).or_default();
            let axes = world.axes.get(&servo.subsystem);
            let position = axes.and_then(|axes| axes.positions(now).get(*nth).copied());
            *nth += 1;
            if motor_id.is_some_and(|id| id != servo.id) {
                continue;
            }
            let busy = world.is_moving(servo.subsystem, now);
            motors.push(if servo.missing {
                json!({"bus": bus, "id": servo.id, "name": servo.name, "answers": false})
            } else {
                json!({
                    "bus": bus,
                    "id": servo.id,
                    "name": servo.name,
                    "answers": true,
                    "position": position.map(thousandth),
                    "temperature_c": temperature(servo, busy),
                    "load_percent": load(busy, world.servos.is_powered(servo.subsystem)),
                    "voltage_v": 7.4,
                    "torque": world.servos.is_powered(servo.subsystem),
                    "moving": busy,
                })
            });
        }
        // A robot without servo buses knows its joints.
        if self.capabilities.buses.is_empty() {
            for (part, axes) in world
                .axes
                .iter()
                .filter(|(part, _)| on == Subsystem::All || **part == on)
            {
                let positions: Vec<f64> = axes.positions(now).into_iter().map(thousandth).collect();
                motors
                    .push(json!({"subsystem": part, "positions": positions, "moving": axes.is_moving(now)}));
            }
        }
        if motors.is_empty()
            && let Some(id) = motor_id
        {
            return Err(ActionError::Refused(format!("{on} has no motor {id}")));
        }
        let asked = |servo: &Servo| {
            (on == Subsystem::All || servo.subsystem == on) && motor_id.is_none_or(|id| id == servo.id)
        };
        let silent = world.servos.silent(|_, servo| asked(servo));
        let output = ActionOutput::said("asked").with("motors", motors).trouble(silent);
        if !self.capabilities.has(Subsystem::Base) || !matches!(on, Subsystem::All | Subsystem::Base) {
            return Ok(output);
        }
        let place = world.base.place(now);
        let odometry = json!({
            "x_m": thousandth(place.x),
            "y_m": thousandth(place.y),
            "heading_degrees": place.heading_degrees(),
            "moving": world.is_moving(Subsystem::Base, now),
        });
        Ok(output.with("odometry", odometry))
    }

    async fn test_motor(
        &self,
        bus: BusName,
        motor_id: u8,
        angle: f64,
        begun: &Begun,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let name = format!("{}:{motor_id}", bus.as_str());
        let (part, index) = {
            let world = self.world();
            let found = world
                .servos
                .of(Subsystem::All)
                .find(|(on, servo)| *on == bus && servo.id == motor_id);
            let (_, servo) = found.ok_or_else(|| ActionError::Refused(format!("no servo {name}")))?;
            if servo.missing {
                return Err(self.broken(format!("servo {name} does not answer")));
            }
            let index = world
                .servos
                .of(servo.subsystem)
                .position(|(_, other)| other.id == motor_id);
            (servo.subsystem, index.unwrap_or_default())
        };
        if part == Subsystem::Base {
            self.wiggle_base(begun, control).await?;
        } else {
            let back = self.nudge(part, index, angle, begun, control).await?;
            let mut to = vec![None; index + 1];
            to[index] = Some(back);
            self.leg(part, &to, CAREFUL, 0.0, begun, control).await?;
        }
        Ok(ActionOutput::said(format!("servo {name} moved and came back")).with("moved", true))
    }

    /// Moves one axis by an angle, or by the same angle the other way if there is no room; returns where the axis was.
    async fn nudge(
        &self,
        part: Subsystem,
        index: usize,
        angle: f64,
        begun: &Begun,
        control: &Control,
    ) -> Result<f64, ActionError> {
        let (at, limit) = {
            let world = self.world();
            let axes = world
                .axes
                .get(&part)
                .ok_or_else(|| self.lacks(part.to_string()))?;
            let at = axes.positions(self.clock.now()).get(index).copied();
            let limit = axes.limits().get(index).copied();
            at.zip(limit)
                .ok_or_else(|| self.lacks(format!("joint {index} of {part}")))?
        };
        let there = if (limit.min..=limit.max).contains(&(at + angle)) {
            at + angle
        } else {
            at - angle
        };
        let mut to = vec![None; index + 1];
        to[index] = Some(there.clamp(limit.min, limit.max));
        self.leg(part, &to, CAREFUL, 0.1, begun, control).await?;
        Ok(at)
    }

    async fn wiggle_base(&self, begun: &Begun, control: &Control) -> Result<(), ActionError> {
        let largest = self
            .capabilities
            .base
            .as_ref()
            .map_or(0.0, |base| base.max_angular);
        for turn in [0.2, -0.2] {
            let velocity = Velocity {
                turn: f64::clamp(turn, -largest, largest),
                ..Velocity::default()
            };
            self.drive(velocity, 0.5, begun, control).await?;
        }
        Ok(())
    }

    fn ping(&self, on: Subsystem) -> ActionOutput {
        let world = self.world();
        let (mut answers, mut silent) = (0_u32, Vec::new());
        for (bus, servo) in world.servos.of(on) {
            if servo.missing {
                silent.push(format!("{}:{} ({})", bus.as_str(), servo.id, servo.name));
            } else {
                answers += 1;
            }
        }
        let healthy = silent.is_empty();
        let trouble = (!healthy).then(|| format!("these servos do not answer: {}", silent.join(", ")));
        ActionOutput::said("asked")
            .with("answering", answers)
            .with("missing", silent)
            .with("healthy", healthy)
            .trouble(trouble)
    }

    async fn calibrate(
        &self,
        on: Subsystem,
        mode: &str,
        begun: &Begun,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        match (on, mode) {
            (_, "offsets_only" | "set_home") => {}
            (Subsystem::Lift, "find_limits") => self.sweep(on, begun, control).await?,
            (Subsystem::Hitch, _) => self.sweep(on, begun, control).await?,
            (Subsystem::Base, _) => self.wiggle_base(begun, control).await?,
            (on, _) => self.try_joints(on, begun, control).await?,
        }
        Ok(ActionOutput::said(format!("{on} calibrated")).with("mode", mode))
    }

    /// Moves from end to end and back.
    async fn sweep(&self, on: Subsystem, begun: &Begun, control: &Control) -> Result<(), ActionError> {
        let back = self.position(on);
        let limit = {
            let world = self.world();
            let axes = world.axes.get(&on).ok_or_else(|| self.lacks(on.to_string()))?;
            axes.limits().first().copied()
        };
        let limit = limit.ok_or_else(|| self.lacks(on.to_string()))?;
        for to in [limit.min, limit.max, back] {
            self.leg(on, &[Some(to)], 0.9, 0.0, begun, control).await?;
        }
        Ok(())
    }

    /// Moves each joint a little, one after the other.
    async fn try_joints(&self, on: Subsystem, begun: &Begun, control: &Control) -> Result<(), ActionError> {
        let joints = self.world().axes.get(&on).map_or(0, |axes| axes.limits().len());
        let back: Vec<Option<f64>> = {
            let world = self.world();
            let axes = world.axes.get(&on);
            axes.map(|axes| axes.positions(self.clock.now()).into_iter().map(Some).collect())
                .unwrap_or_default()
        };
        for index in 0..joints {
            self.nudge(on, index, 5.0, begun, control).await?;
        }
        self.leg(on, &back, CAREFUL, 0.0, begun, control).await
    }

    async fn self_test(
        &self,
        on: Subsystem,
        verbose: bool,
        begun: &Begun,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let mut results = serde_json::Map::new();
        let mut passed = true;
        for part in on.each().into_iter().filter(|part| self.capabilities.has(*part)) {
            let pinged = self.ping(part);
            let mut healthy = pinged.data.get("healthy") == Some(&json!(true));
            healthy &= !self.faults.contains(&Fault::Stuck(part));
            if healthy {
                match part {
                    Subsystem::Base => self.wiggle_base(begun, control).await?,
                    Subsystem::Lift | Subsystem::Hitch => {
                        let back = self.nudge(part, 0, 5.0, begun, control).await?;
                        self.leg(part, &[Some(back)], CAREFUL, 0.0, begun, control)
                            .await?;
                    }
                    part => self.try_joints(part, begun, control).await?,
                }
            }
            passed &= healthy;
            let mut line = json!({"passed": healthy});
            if verbose {
                line["servos"] = Value::Object(pinged.data);
                line["positions"] = json!(self.positions(part));
            }
            results.insert(part.to_string(), line);
        }
        let failed = results.iter().filter(|(_, line)| line["passed"] == json!(false));
        let failed: Vec<&str> = failed.map(|(part, _)| part.as_str()).collect();
        let trouble = (!passed).then(|| format!("not passed: {}", failed.join(", ")));
        let said = if passed { "passed" } else { "not passed" };
        Ok(ActionOutput::said(said)
            .with("passed", passed)
            .with("parts", results)
            .trouble(trouble))
    }

    fn set_motor_id(&self, bus: BusName, current: u8, new: u8) -> Result<ActionOutput, ActionError> {
        let mut world = self.world();
        let name = bus.as_str();
        if current != new && world.servos.find(bus, new).is_some() {
            return Err(ActionError::Refused(format!("{name}:{new} is taken")));
        }
        match world.servos.find(bus, current) {
            Some(servo) if !servo.missing => servo.id = new,
            _ => return Err(self.broken(format!("servo {name}:{current} does not answer"))),
        }
        Ok(ActionOutput::said(format!("{name}:{current} is {name}:{new} now")).with("id", new))
    }

    fn load_config(&self, config: &Value, write: bool) -> Result<ActionOutput, ActionError> {
        let homes = config.get("homes").and_then(Value::as_object);
        let homes = homes
            .ok_or_else(|| ActionError::Refused("expected `homes` in the saved configuration".to_string()))?;
        let mut read = std::collections::BTreeMap::new();
        for (part, positions) in homes {
            let part: Subsystem = part
                .parse()
                .map_err(|error: crate::subsystem::UnknownSubsystem| {
                    ActionError::Refused(error.to_string())
                })?;
            let positions: Vec<f64> = serde_json::from_value(positions.clone())
                .map_err(|error| ActionError::Refused(format!("homes.{part}: {error}")))?;
            read.insert(part, positions);
        }
        let mut world = self.world();
        let differ: serde_json::Map<String, Value> = read
            .iter()
            .filter(|(part, saved)| world.homes.get(part) != Some(saved))
            .map(|(part, saved)| {
                let both = json!({"kept": world.homes.get(part), "saved": saved});
                (part.to_string(), both)
            })
            .collect();
        let said = match write {
            true => "loaded",
            false => "compared; nothing was written",
        };
        if write {
            world.homes = read;
        }
        Ok(ActionOutput::said(said)
            .with("differences", differ)
            .with("written", write))
    }

    fn set_degraded(&self, missing: &[String], go_on: bool) -> Result<ActionOutput, ActionError> {
        let mut world = self.world();
        let known: Vec<(BusName, u8)> = world
            .servos
            .of(Subsystem::All)
            .map(|(bus, servo)| (bus, servo.id))
            .collect();
        let mut ignored = Vec::new();
        for name in missing {
            let servo = parse_servo(name).filter(|servo| known.contains(servo));
            ignored.push(servo.ok_or_else(|| ActionError::Refused(format!("no servo {name}")))?);
        }
        for (bus, id) in known {
            if let Some(servo) = world.servos.find(bus, id) {
                servo.ignored = ignored.contains(&(bus, id));
            }
        }
        world.go_on = go_on;
        Ok(ActionOutput::said("degraded mode set")
            .with("missing_servos", missing.to_vec())
            .with("degraded", !missing.is_empty()))
    }
}
