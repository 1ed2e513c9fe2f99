//! Every step without a motion. Owns torque, recovery and degraded mode; the larger steps have files of their own.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use super::device::Feetech;
use super::servo::tenth;
use super::settings::configure;
use super::torque::{ease, power, ready};
use crate::action::Action;
use crate::adapter::{ActionError, ActionOutput, Control};
use crate::capability::BusName;
use crate::servo::Register;
use crate::step::{Recovery, Step};
use crate::subsystem::Subsystem;

impl Feetech {
    pub(super) async fn maintain(
        &self,
        action: &Action,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let on = action.subsystem;
        if let Some((grip, force)) = action.step.grip() {
            return self.grip(on, grip, force, control).await;
        }
        match &action.step {
            Step::Hitch { action, grip_percent } => self.hitch(*action, *grip_percent, control).await,
            Step::Stop {} => self.stand(control).await,
            Step::ScanMotors { buses } => self.scan(buses, control).await,
            Step::MotorStatus { motor_id } => self.status(on, *motor_id, control).await,
            Step::TestMotor { bus, motor_id, angle } => self.test(*bus, *motor_id, *angle, control).await,
            Step::CheckTorque {} => self.check_torque(on, control).await,
            Step::EnableTorque { enable } => self.enable_torque(on, *enable, control).await,
            Step::PingAll {} => self.ping_all(on, control).await,
            Step::ServoRecover {
                bus,
                motor_id,
                action,
            } => self.recover(*bus, *motor_id, *action, control).await,
            Step::ReadHealth { bus, temps, loads } => self.health(*bus, *temps, *loads, control).await,
            Step::Calibrate { mode, write } => self.calibrate(on, mode, *write, control).await,
            Step::SetMotorId {
                bus,
                current_id,
                new_id,
            } => self.set_id(*bus, *current_id, *new_id, control).await,
            Step::SetHomePosition { write: false } => {
                let (servos, _) = self.present(self.layout.of(on))?;
                self.check_calibration(on, &servos, control).await
            }
            Step::SetHomePosition { write: true } => {
                self.may_write()?;
                self.refuse_powered(&self.layout.of(on), control).await?;
                self.set_home(on, control).await
            }
            Step::SelfTest { verbose } => self.self_test(on, *verbose, control).await,
            Step::SaveConfig { subsystems, .. } => self.save(subsystems, control).await,
            Step::LoadConfig { config, write, .. } => self.load(config, *write, control).await,
            Step::SetDegraded {
                missing_servos,
                continue_anyway,
            } => self.set_degraded(missing_servos, *continue_anyway),
            Step::HitchStatus {} => self.hitch_status(control).await,
            Step::RunPolicy { policy, seconds } => self.run_policy(policy, *seconds, control).await,
            Step::VerifyCharge {} => Err(self.lacks("a sensor on the charger's contacts")),
            other => Err(self.lacks(format!("{other:?}"))),
        }
    }

    async fn check_torque(&self, on: Subsystem, control: &Control) -> Result<ActionOutput, ActionError> {
        let motors = self.chosen(on, None)?;
        let mut torque = serde_json::Map::new();
        let mut silent = Vec::new();
        let mut powered = 0;
        for bus in [BusName::Left, BusName::Right] {
            let ids: Vec<u8> = motors
                .iter()
                .filter(|(of, ..)| *of == bus)
                .map(|(_, id, _)| *id)
                .collect();
            if ids.is_empty() {
                continue;
            }
            let asked = ids.clone();
            let found = self
                .ask(bus, control, move |wire| wire.read_each(&asked, Register::TORQUE))
                .await?;
            for id in ids {
                let on = found.get(&id).map(|(on, _)| *on == 1);
                powered += usize::from(on == Some(true));
                let label = format!("{}:{id}", bus.as_str());
                if on.is_none() {
                    silent.push((bus, id));
                }
                torque.insert(label, json!(on));
            }
        }
        Ok(ActionOutput::new(format!(
            "{powered} of {} motors of {on} have torque on",
            motors.len()
        ))
        .trouble(self.unread(&silent))
        .with("torque", torque)
        .with("all_on", powered == motors.len()))
    }

    async fn enable_torque(
        &self,
        on: Subsystem,
        enable: bool,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let motors = self.chosen(on, None)?;
        if !enable {
            self.known().hands.retain(|hand, _| !on.each().contains(hand));
        }
        let mut notes = Vec::new();
        for bus in [BusName::Left, BusName::Right] {
            let there = |id: u8| !self.known().missing.contains(&(bus, id));
            let of_bus = motors.iter().filter(|(of, ..)| *of == bus).map(|(_, id, _)| *id);
            let (ids, missing): (Vec<u8>, Vec<u8>) = of_bus.partition(|id| there(*id));
            notes.extend(
                missing
                    .into_iter()
                    .map(|id| format!("left out {}:{id}", bus.as_str())),
            );
            if ids.is_empty() {
                continue;
            }
            let (joints, wheels): (Vec<u8>, Vec<u8>) = ids
                .iter()
                .copied()
                .partition(|id| self.layout.servo(bus, *id).is_some());
            self.tell(bus, ids.clone(), control, move |wire| {
                if !enable {
                    ids.iter()
                        .try_for_each(|id| wire.write(*id, Register::TORQUE, 0))?;
                    return ease(wire);
                }
                power(wire, &joints)?;
                // The wheels get their mode first: speed 0 means full speed to a servo that goes to positions.
                ready(wire, &wheels)?;
                wheels
                    .iter()
                    .try_for_each(|id| wire.write(*id, Register::GOAL_SPEED, 0))
            })
            .await?;
        }
        let word = if enable {
            "have torque on"
        } else {
            "have torque off"
        };
        Ok(ActionOutput {
            notes,
            ..ActionOutput::new(format!("the motors of {on} {word}")).with("enabled", enable)
        })
    }

    async fn recover(
        &self,
        bus: BusName,
        id: u8,
        action: Recovery,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let label = format!("servo {id} on bus {}", bus.as_str());
        if let (Some(servo), true) = (self.layout.servo(bus, id), action != Recovery::Ping) {
            self.refuse_powered(&[servo], control).await?;
        }
        let is_wheel = self
            .layout
            .wheels
            .iter()
            .any(|wheel| wheel.bus == bus && wheel.id == id);
        let word = match action {
            Recovery::Ping => "answers",
            Recovery::Reboot => {
                if !self
                    .tell(bus, vec![id], control, move |wire| wire.reboot(id))
                    .await?
                {
                    return Err(self.lacks(format!(
                        "reboot: {label} does not support it; cut its power instead"
                    )));
                }
                self.sleep(control, Duration::from_millis(300)).await?;
                "has restarted"
            }
            Recovery::ResetError => {
                // The servo's protection ends when its torque is switched off. A joint's torque is off already.
                self.tell(bus, vec![id], control, move |wire| {
                    wire.write(id, Register::TORQUE, 0)
                })
                .await?;
                "has cleared its error, and its torque is off"
            }
            Recovery::Reconfigure => {
                self.tell(bus, vec![id], control, move |wire| configure(wire, id, is_wheel))
                    .await?;
                "has its settings again"
            }
        };
        if !self.ask(bus, control, move |wire| wire.ping(id)).await? {
            return Err(self.broken(format!(
                "{label} does not answer; check its cable, its power and its id"
            )));
        }
        let health = self.ask(bus, control, move |wire| wire.health(id)).await?;
        self.known().missing.remove(&(bus, id));
        let output =
            ActionOutput::new(format!("{label} {word}")).with("motor", self.report(bus, id, &health));
        Ok(if health.alarms.is_empty() {
            output
        } else {
            output.note(format!("it still reports {}", health.alarms.join(" and ")))
        })
    }

    fn set_degraded(&self, missing: &[String], go_on: bool) -> Result<ActionOutput, ActionError> {
        let mut found = BTreeSet::new();
        for name in missing {
            let motor = [BusName::Left, BusName::Right].into_iter().find_map(|bus| {
                let id: u8 = name.strip_prefix(bus.as_str())?.strip_prefix(':')?.parse().ok()?;
                self.layout.ids(bus).contains(&id).then_some((bus, id))
            });
            let Some(motor) = motor else {
                return Err(ActionError::Refused(format!(
                    "no servo {name}: expected <bus>:<id>, such as left:5, of a servo that the robot has"
                )));
            };
            found.insert(motor);
        }
        let count = found.len();
        let mut known = self.known();
        known.missing = found;
        known.go_on = go_on;
        drop(known);
        let word = if go_on { "run without them" } else { "are refused" };
        Ok(ActionOutput::new(match count {
            0 => "every servo is used".to_owned(),
            _ => format!("{count} servos are out of use; tools that need them {word}"),
        }))
    }

    async fn hitch_status(&self, control: &Control) -> Result<ActionOutput, ActionError> {
        let Some(&servo) = self.layout.of(Subsystem::Hitch).first() else {
            return Err(self.lacks("hitch"));
        };
        let id = servo.id;
        let health = self.ask(servo.bus, control, move |wire| wire.health(id)).await?;
        let at = (servo.value(health.position) - servo.min) / (servo.max - servo.min) * 100.0;
        // A hitch that holds something presses and is not fully closed.
        let holding = health.torque && !health.moving && at > 5.0 && at < 95.0;
        Ok(ActionOutput::new(if holding {
            "the hitch holds something"
        } else {
            "the hitch holds nothing"
        })
        .with("grip_percent", tenth(at))
        .with("load_percent", health.load_percent)
        .with("holding", holding))
    }
}
