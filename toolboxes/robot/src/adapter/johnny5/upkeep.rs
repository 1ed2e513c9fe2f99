//! Scans, health, torque, calibration, ids: what keeps the servos working.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::layout::{Servo, exact, round};
use super::motion::{Blocked, Goal, power};
use super::{Johnny5, tenth};
use crate::action::{Action, BusName, Primitive, Recovery};
use crate::adapter::{ActionError, ActionOutput, Control};
use crate::capability::Motor;
use crate::servo::{Health, ServoError, Wire};
use crate::subsystem::Subsystem;

/// Ids asked in one job of a scan: a stop waits for at most so many silent ones.
const AT_ONCE: usize = 4;
/// Above it a servo is called hot, degrees Celsius. Its own protection sets in at 70.
const HOT: i64 = 60;
/// A wheel turns so fast in a test, steps per second.
const TEST_SPEED: i64 = 300;

impl Johnny5 {
    pub(super) async fn maintain(
        &self,
        action: &Action,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let on = action.subsystem;
        match &action.primitive {
            Primitive::ScanMotors { buses } => self.scan(buses, control).await,
            Primitive::MotorStatus { motor_id } => self.status(on, *motor_id, control).await,
            Primitive::TestMotor { bus, motor_id, angle } => {
                self.test(*bus, *motor_id, *angle, control).await
            }
            Primitive::CheckTorque => self.check_torque(on, control).await,
            Primitive::EnableTorque { enable } => self.enable_torque(on, *enable, control).await,
            Primitive::PingAll => self.ping_all(on, control).await,
            Primitive::ServoRecover {
                bus,
                motor_id,
                action,
            } => self.recover(*bus, *motor_id, *action, control).await,
            Primitive::ReadHealth { bus, temps, loads } => self.health(*bus, *temps, *loads, control).await,
            Primitive::Calibrate { mode } => self.calibrate(on, mode, control).await,
            Primitive::SetMotorId {
                bus,
                current_id,
                new_id,
            } => self.set_id(*bus, *current_id, *new_id, control).await,
            Primitive::SetHome => self.set_home(on, control).await,
            Primitive::SelfTest { verbose } => self.self_test(on, *verbose, control).await,
            Primitive::SaveConfig { subsystems } => self.save(subsystems, control).await,
            Primitive::LoadConfig { config } => self.load(config, control).await,
            Primitive::SetDegraded { missing, go_on } => self.set_degraded(missing, *go_on),
            Primitive::SetTow { towing } => {
                self.known().towing = *towing;
                let word = if *towing { "with" } else { "without" };
                Ok(ActionOutput::said(format!("drives {word} a cart")))
            }
            Primitive::HitchStatus => self.hitch_status(control).await,
            Primitive::VerifyCharge => Err(self.lacks("a sensor on the charger's contacts")),
            other => Err(self.lacks(format!("{other:?}"))),
        }
    }

    async fn scan(&self, buses: &[BusName], control: &Control) -> Result<ActionOutput, ActionError> {
        let mut found = serde_json::Map::new();
        let mut strangers = Vec::new();
        let mut count = 0;
        for bus in buses {
            let mut models = BTreeMap::new();
            let ids: Vec<u8> = (0..=253).collect();
            for (done, some) in (0u32..).zip(ids.chunks(AT_ONCE)) {
                let some = some.to_vec();
                models.extend(self.ask(*bus, control, move |wire| wire.scan(&some)).await?);
                control.progress(f64::from(done) / 64.0, &format!("scanning bus {}", bus.as_str()));
            }
            let motors = self.layout.motors(*bus);
            // The scan listens for 5 ms; an adapter with a latency timer needs longer, so those that should be there are
            // asked again with all the time they may take.
            for id in motors
                .iter()
                .map(|(_, motor)| motor.id)
                .filter(|id| !models.contains_key(id))
                .collect::<Vec<_>>()
            {
                let model = self.ask(*bus, control, move |wire| match wire.read(id, "model_number") {
                    Ok(model) => Ok(u16::try_from(model).ok()),
                    Err(ServoError::Silent { .. } | ServoError::Garbled { .. }) => Ok(None),
                    Err(error) => Err(error),
                });
                if let Some(model) = model.await? {
                    models.insert(id, model);
                }
            }
            let name = |id: u8| {
                motors
                    .iter()
                    .find(|(_, motor)| motor.id == id)
                    .map(|(_, motor)| motor)
            };
            let known: Vec<Value> = models
                .iter()
                .map(|(id, model)| {
                    let motor = name(*id);
                    if motor.is_none() {
                        strangers.push(format!("{}:{id}", bus.as_str()));
                    }
                    json!({"id": id, "model": model, "name": motor.map(|motor| format!("{} {}", motor.subsystem, motor.name))})
                })
                .collect();
            let missing: Vec<u8> = motors
                .iter()
                .map(|(_, motor)| motor.id)
                .filter(|id| !models.contains_key(id))
                .collect();
            count += known.len();
            found.insert(
                bus.as_str().to_owned(),
                json!({"motors": known, "missing": missing}),
            );
        }
        let output = ActionOutput::said(format!("{count} motors answer")).with("buses", found);
        Ok(if strangers.is_empty() {
            output
        } else {
            output.note(format!("not in the layout: {}", strangers.join(", ")))
        })
    }

    /// The motors of a subsystem, or one of them.
    fn chosen(&self, on: Subsystem, id: Option<u8>) -> Result<Vec<(BusName, u8, String)>, ActionError> {
        let motors = self.layout.motors_of(on);
        if motors.is_empty() {
            return Err(self.lacks(on.as_str()));
        }
        let Some(id) = id else { return Ok(motors) };
        let ids: Vec<String> = motors
            .iter()
            .map(|(bus, id, _)| format!("{}:{id}", bus.as_str()))
            .collect();
        let chosen: Vec<_> = motors.into_iter().filter(|(_, of, _)| *of == id).collect();
        if chosen.is_empty() {
            return Err(ActionError::Refused(format!(
                "{on} has no motor {id}; it has {}",
                ids.join(", ")
            )));
        }
        Ok(chosen)
    }

    async fn read_health(
        &self,
        motors: &[(BusName, u8, String)],
        control: &Control,
    ) -> Result<Vec<(String, u8, BusName, Option<Health>)>, ActionError> {
        let mut read = Vec::new();
        for (bus, id, name) in motors.iter().cloned() {
            let health = self
                .ask(bus, control, move |wire| match wire.health(id) {
                    Ok(health) => Ok(Some(health)),
                    Err(ServoError::Silent { .. } | ServoError::Garbled { .. }) => Ok(None),
                    Err(error) => Err(error),
                })
                .await?;
            if let Some(health) = &health {
                self.remember(bus, [(id, health.position)]);
            }
            read.push((name, id, bus, health));
        }
        Ok(read)
    }

    /// A servo's health with its position in degrees or millimetres.
    fn told(&self, bus: BusName, id: u8, health: &Health) -> Value {
        let mut told = json!(health);
        if let Some(servo) = self.layout.servo(bus, id) {
            told["position"] = json!(tenth(servo.value(health.position)));
            told["speed"] = json!(tenth(exact(health.speed) / servo.scale));
        }
        told
    }

    async fn status(
        &self,
        on: Subsystem,
        id: Option<u8>,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let read = self.read_health(&self.chosen(on, id)?, control).await?;
        let mut motors = serde_json::Map::new();
        let mut silent = Vec::new();
        for (name, id, bus, health) in &read {
            let label = format!("{}:{id}", bus.as_str());
            match health {
                Some(health) => {
                    let mut told = self.told(*bus, *id, health);
                    told["name"] = json!(name);
                    motors.insert(label, told);
                }
                None => silent.push(label),
            }
        }
        if motors.is_empty() {
            return Err(self.broken(format!("no motor of {on} answers: {}", silent.join(", "))));
        }
        let output = ActionOutput::said(format!(
            "{} of {} motors of {on} answer",
            motors.len(),
            read.len()
        ))
        .with("motors", motors);
        Ok(if silent.is_empty() {
            output
        } else {
            output.note(format!("these do not answer: {}", silent.join(", ")))
        })
    }

    async fn health(
        &self,
        bus: BusName,
        temps: bool,
        loads: bool,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let motors: Vec<(BusName, u8, String)> = self
            .layout
            .motors(bus)
            .into_iter()
            .map(|(bus, Motor { id, subsystem, name })| (bus, id, format!("{subsystem} {name}")))
            .collect();
        let mut report = serde_json::Map::new();
        let mut troubles = Vec::new();
        for (name, id, bus, health) in self.read_health(&motors, control).await? {
            let label = format!("{}:{id}", bus.as_str());
            let Some(health) = health else {
                troubles.push(format!("{label} ({name}) does not answer"));
                report.insert(label, json!({"name": name, "answers": false}));
                continue;
            };
            if health.temperature >= HOT {
                troubles.push(format!("{label} ({name}) is at {} °C", health.temperature));
            }
            for alarm in &health.alarms {
                troubles.push(format!("{label} ({name}) reports {alarm}"));
            }
            let mut one =
                json!({"name": name, "answers": true, "voltage": health.voltage, "alarms": health.alarms});
            if temps {
                one["temperature"] = json!(health.temperature);
            }
            if loads {
                one["load_percent"] = json!(health.load_percent);
                one["current"] = json!(health.current);
            }
            report.insert(label, one);
        }
        let message = match troubles.len() {
            0 => format!("bus {}: every motor is well", bus.as_str()),
            _ => format!("bus {}: {}", bus.as_str(), troubles.join("; ")),
        };
        Ok(ActionOutput::said(message)
            .with("motors", report)
            .with("healthy", troubles.is_empty())
            .with("troubles", troubles))
    }

    async fn check_torque(&self, on: Subsystem, control: &Control) -> Result<ActionOutput, ActionError> {
        let motors = self.chosen(on, None)?;
        let mut torque = serde_json::Map::new();
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
                .ask(bus, control, move |wire| wire.read_each(&asked, "torque_enable"))
                .await?;
            for id in ids {
                let on = found.get(&id).map(|(on, _)| *on == 1);
                powered += usize::from(on == Some(true));
                torque.insert(format!("{}:{id}", bus.as_str()), json!(on));
            }
        }
        Ok(ActionOutput::said(format!(
            "{powered} of {} motors of {on} hold with power",
            motors.len()
        ))
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
        let mut notes = Vec::new();
        for bus in [BusName::Left, BusName::Right] {
            let there = |id: u8| !self.known().missing.contains(&(bus, id));
            let of_bus = motors.iter().filter(|(of, ..)| *of == bus).map(|(_, id, _)| *id);
            let (ids, missing): (Vec<u8>, Vec<u8>) = of_bus.partition(|id| there(*id));
            notes.extend(
                missing
                    .into_iter()
                    .map(|id| format!("did without {}:{id}", bus.as_str())),
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
                    return ids.iter().try_for_each(|id| wire.write(*id, "torque_enable", 0));
                }
                power(wire, &joints)?;
                wheels.iter().try_for_each(|id| {
                    wire.write(*id, "goal_speed", 0)?;
                    wire.write(*id, "torque_enable", 1)
                })
            })
            .await?;
        }
        let word = if enable {
            "hold with power"
        } else {
            "have no power"
        };
        Ok(ActionOutput {
            notes,
            ..ActionOutput::said(format!("the motors of {on} {word}")).with("enabled", enable)
        })
    }

    async fn ping_all(&self, on: Subsystem, control: &Control) -> Result<ActionOutput, ActionError> {
        let motors = self.chosen(on, None)?;
        let mut answers = serde_json::Map::new();
        let mut silent = Vec::new();
        for (bus, id, name) in &motors {
            let (bus, id) = (*bus, *id);
            let there = self.ask(bus, control, move |wire| wire.ping(id)).await?;
            let label = format!("{}:{id}", bus.as_str());
            if !there {
                silent.push(format!("{label} ({name})"));
            }
            answers.insert(label, json!(there));
        }
        let message = match silent.len() {
            0 => format!("all {} motors of {on} answer", motors.len()),
            _ => format!("these motors of {on} do not answer: {}", silent.join(", ")),
        };
        Ok(ActionOutput::said(message)
            .with("answers", answers)
            .with("all_answer", silent.is_empty()))
    }

    async fn test(
        &self,
        bus: BusName,
        id: u8,
        angle: f64,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        if let Some(wheel) = self
            .layout
            .wheels
            .iter()
            .find(|wheel| wheel.bus == bus && wheel.id == id)
        {
            let name = wheel.name.clone();
            let turned = self.test_wheel(id, angle, control).await?;
            return Ok(
                ActionOutput::said(format!("wheel {name} turned {turned:.0} degrees and back"))
                    .with("turned", tenth(turned)),
            );
        }
        let Some(servo) = self.layout.servo(bus, id) else {
            let ids: Vec<String> = self
                .layout
                .motors(bus)
                .iter()
                .map(|(_, motor)| motor.id.to_string())
                .collect();
            return Err(ActionError::Refused(format!(
                "no motor {id} on bus {}; it has {}",
                bus.as_str(),
                ids.join(", ")
            )));
        };
        let start = self.where_is(servo, control).await?;
        // Away from an end that is too near.
        let wanted = [start + angle, start - angle]
            .into_iter()
            .find(|to| (servo.min..=servo.max).contains(to));
        let Some(wanted) = wanted else {
            return Err(ActionError::Refused(format!(
                "{} is at {} and cannot turn by {angle} within {} to {}",
                servo.label(),
                tenth(start),
                servo.min,
                servo.max
            )));
        };
        let moved = self
            .go(&[Goal { servo, value: wanted }], 0.3, Blocked::Fails, control)
            .await?;
        let reached = moved
            .steps
            .get(&(bus, id))
            .map_or(start, |steps| servo.value(*steps));
        let back = start.clamp(servo.min, servo.max);
        self.go(&[Goal { servo, value: back }], 0.3, Blocked::Fails, control)
            .await?;
        Ok(ActionOutput::said(format!(
            "{} turned {:.0} and back",
            servo.label(),
            reached - start
        ))
        .with("turned", tenth(reached - start)))
    }

    /// Turns one wheel by so many degrees and back; returns how far it came.
    async fn test_wheel(&self, id: u8, angle: f64, control: &Control) -> Result<f64, ActionError> {
        let bus = self.wheels_ready(control).await?;
        let way = angle.abs() * 4096.0 / 360.0;
        let time = Duration::try_from_secs_f64(way / exact(TEST_SPEED)).unwrap_or_default();
        let mut turned = 0.0;
        for speed in [TEST_SPEED, -TEST_SPEED].map(|speed| if angle < 0.0 { -speed } else { speed }) {
            let before = self
                .ask(bus, control, move |wire| wire.read(id, "present_position"))
                .await?;
            self.turn_for(bus, id, speed, time, control).await?;
            let after = self
                .ask(bus, control, move |wire| wire.read(id, "present_position"))
                .await?;
            let way = exact((after - before).abs()) * 360.0 / 4096.0;
            if way > turned {
                turned = way;
            }
        }
        if turned < angle.abs() / 3.0 {
            return Err(self.broken(format!(
                "wheel servo {id} on bus {} turned {turned:.0} of {:.0} degrees",
                bus.as_str(),
                angle.abs()
            )));
        }
        Ok(turned)
    }

    async fn turn_for(
        &self,
        bus: BusName,
        id: u8,
        speed: i64,
        time: Duration,
        control: &Control,
    ) -> Result<(), ActionError> {
        let start = std::time::Instant::now();
        loop {
            let left = time.saturating_sub(start.elapsed());
            if left.is_zero() {
                break;
            }
            self.turn(bus, vec![(id, speed)], control).await?;
            control.sleep(left.min(Duration::from_millis(100))).await?;
        }
        self.stand_still(bus, &[id], control).await
    }

    async fn recover(
        &self,
        bus: BusName,
        id: u8,
        action: Recovery,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let label = format!("servo {id} on bus {}", bus.as_str());
        let servo = self.layout.servo(bus, id).cloned();
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
                        "reboot: {label} does not know how; cut its power instead"
                    )));
                }
                control.sleep(Duration::from_millis(300)).await?;
                "has started anew"
            }
            Recovery::ResetError => {
                // Its protection lets go when the torque goes off; it stays off, because nobody asked to hold.
                self.tell(bus, vec![id], control, move |wire| {
                    wire.write(id, "torque_enable", 0)
                })
                .await?;
                "has let go of its error, and of its load"
            }
            Recovery::Reconfigure => {
                self.tell(bus, vec![id], control, move |wire| {
                    configure(wire, id, servo.as_ref(), is_wheel)
                })
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
        let output = ActionOutput::said(format!("{label} {word}")).with("motor", self.told(bus, id, &health));
        Ok(if health.alarms.is_empty() {
            output
        } else {
            output.note(format!("it still reports {}", health.alarms.join(" and ")))
        })
    }

    async fn calibrate(
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

    async fn write_settings(&self, servos: &[&Servo], control: &Control) -> Result<(), ActionError> {
        for servo in servos {
            let (id, servo) = (servo.id, (*servo).clone());
            self.tell(servo.bus, vec![id], control, move |wire| {
                configure(wire, id, Some(&servo), false)
            })
            .await?;
        }
        Ok(())
    }

    async fn calibrate_base(&self, mode: &str, control: &Control) -> Result<ActionOutput, ActionError> {
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

    async fn set_id(
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
        self.tell(bus, vec![current, new], control, move |wire| {
            wire.change_id(current, new)
        })
        .await?;
        if !self.ask(bus, control, move |wire| wire.ping(new)).await? {
            return Err(self.broken(format!("motor {current} took id {new} and does not answer to it")));
        }
        let output = ActionOutput::said(format!("motor {current} on bus {} is {new} now", bus.as_str()))
            .with("id", new);
        Ok(
            match self.layout.motors(bus).iter().any(|(_, motor)| motor.id == new) {
                true => output,
                false => output.note(format!("id {new} is not in the layout: its torque is off")),
            },
        )
    }

    async fn set_home(&self, on: Subsystem, control: &Control) -> Result<ActionOutput, ActionError> {
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

    async fn self_test(
        &self,
        on: Subsystem,
        verbose: bool,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let read = self.read_health(&self.chosen(on, None)?, control).await?;
        let mut troubles = Vec::new();
        let mut measured = serde_json::Map::new();
        for (name, id, bus, health) in &read {
            let Some(health) = health else {
                troubles.push(format!("{name} (servo {id}) does not answer"));
                continue;
            };
            if health.temperature >= HOT {
                troubles.push(format!("{name} (servo {id}) is at {} °C", health.temperature));
            }
            if !health.alarms.is_empty() {
                troubles.push(format!(
                    "{name} (servo {id}) reports {}",
                    health.alarms.join(" and ")
                ));
            }
            measured.insert(name.clone(), self.told(*bus, *id, health));
        }
        if troubles.is_empty() {
            if on == Subsystem::Base {
                self.calibrate_base("wheel_test", control).await?;
            } else {
                let (servos, _) = self.present(self.layout.of(on))?;
                for servo in servos {
                    self.test(servo.bus, servo.id, 3.0, control).await?;
                }
            }
        }
        if !troubles.is_empty() {
            return Err(self.broken(format!("{on} failed its test: {}", troubles.join("; "))));
        }
        let output = ActionOutput::said(format!("{on} is well: {} motors", read.len()));
        Ok(if verbose {
            output.with("motors", measured)
        } else {
            output
        })
    }

    async fn save(&self, subsystems: &[Subsystem], control: &Control) -> Result<ActionOutput, ActionError> {
        let mut saved = serde_json::Map::new();
        let each: Vec<Subsystem> = subsystems.iter().flat_map(|one| one.each()).collect();
        let concerned = self
            .layout
            .servos
            .iter()
            .filter(|servo| each.contains(&servo.subsystem));
        for servo in concerned {
            let id = servo.id;
            let read = self
                .ask(servo.bus, control, move |wire| {
                    Ok(json!({
                        "homing_offset": wire.read(id, "homing_offset")?,
                        "min_position": wire.read(id, "min_position_limit")?,
                        "max_position": wire.read(id, "max_position_limit")?,
                    }))
                })
                .await?;
            saved.insert(format!("{}.{}", servo.subsystem, servo.name), read);
        }
        let count = saved.len();
        Ok(ActionOutput::said(format!("the settings of {count} servos"))
            .with("config", json!({"kind": self.layout.model, "servos": saved})))
    }

    async fn load(&self, config: &Value, control: &Control) -> Result<ActionOutput, ActionError> {
        let kind = &config["kind"];
        if kind != self.layout.model {
            return Err(ActionError::Refused(format!(
                "the settings are those of a {kind}, this is a {}",
                self.layout.model
            )));
        }
        let servos = config["servos"].as_object().cloned().unwrap_or_default();
        // Everything is checked before the first servo is written to.
        let mut writes = Vec::new();
        for (name, settings) in &servos {
            let found = self
                .layout
                .servos
                .iter()
                .find(|servo| format!("{}.{}", servo.subsystem, servo.name) == *name);
            let Some(servo) = found else {
                return Err(ActionError::Refused(format!("no servo {name}")));
            };
            let number = |key: &str, most: i64| {
                let number = settings[key]
                    .as_i64()
                    .filter(|number| (-most..=most).contains(number));
                number.ok_or_else(|| ActionError::Refused(format!("{name}: no {key} within ±{most}")))
            };
            writes.push((
                servo,
                [
                    ("homing_offset", number("homing_offset", 2047)?),
                    ("min_position_limit", number("min_position", 4095)?.max(0)),
                    ("max_position_limit", number("max_position", 4095)?.max(0)),
                ],
            ));
        }
        for (servo, settings) in &writes {
            let (id, settings) = (servo.id, *settings);
            self.tell(servo.bus, vec![id], control, move |wire| {
                with_torque_off(wire, id, |wire| {
                    settings
                        .iter()
                        .try_for_each(|(register, value)| wire.keep(id, register, *value))
                })
            })
            .await?;
        }
        Ok(ActionOutput::said(format!(
            "{} servos have their settings again",
            writes.len()
        )))
    }

    fn set_degraded(&self, missing: &[String], go_on: bool) -> Result<ActionOutput, ActionError> {
        let mut found = std::collections::BTreeSet::new();
        for name in missing {
            let motor = [BusName::Left, BusName::Right].into_iter().find_map(|bus| {
                let id: u8 = name.strip_prefix(bus.as_str())?.strip_prefix(':')?.parse().ok()?;
                self.layout
                    .motors(bus)
                    .iter()
                    .any(|(_, motor)| motor.id == id)
                    .then_some((bus, id))
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
        let word = if go_on { "done without them" } else { "refused" };
        Ok(ActionOutput::said(match count {
            0 => "every servo is used".to_owned(),
            _ => format!("{count} servos are left alone; what needs them is {word}"),
        }))
    }

    async fn hitch_status(&self, control: &Control) -> Result<ActionOutput, ActionError> {
        let Some(&servo) = self.layout.of(Subsystem::Hitch).first() else {
            return Err(self.lacks("hitch"));
        };
        let id = servo.id;
        let health = self.ask(servo.bus, control, move |wire| wire.health(id)).await?;
        let at = (servo.value(health.position) - servo.min) / (servo.max - servo.min) * 100.0;
        // Closed on something: it presses, and it is not all the way closed.
        let holding = health.torque && !health.moving && at > 5.0 && at < 95.0;
        Ok(ActionOutput::said(if holding {
            "the hitch holds something"
        } else {
            "the hitch holds nothing"
        })
        .with("grip_percent", tenth(at))
        .with("load_percent", health.load_percent)
        .with("holding", holding))
    }
}

/// Runs `work`, which needs the torque off, and brings the torque back as it was, without a jump.
fn with_torque_off<R>(
    wire: &mut Wire,
    id: u8,
    work: impl FnOnce(&mut Wire) -> Result<R, ServoError>,
) -> Result<R, ServoError> {
    let was_on = wire.read(id, "torque_enable")? == 1;
    wire.write(id, "torque_enable", 0)?;
    let done = work(wire);
    if was_on {
        power(wire, &[id])?;
    }
    done
}

/// The settings a servo of this robot keeps.
fn configure(wire: &mut Wire, id: u8, servo: Option<&Servo>, is_wheel: bool) -> Result<(), ServoError> {
    with_torque_off(wire, id, |wire| {
        if is_wheel {
            wire.write(id, "goal_speed", 0)?;
        }
        wire.keep(id, "operating_mode", i64::from(is_wheel))?;
        if let Some(servo) = servo {
            let (a, b) = (servo.steps(servo.min), servo.steps(servo.max));
            wire.keep(id, "min_position_limit", a.min(b))?;
            wire.keep(id, "max_position_limit", a.max(b))?;
        }
        wire.write(id, "torque_limit", 1000)
    })
}

/// Makes the present position of a servo read as `home`; the new offset, or nothing where it does not fit.
fn home_here(wire: &mut Wire, id: u8, home: i64) -> Result<Option<i64>, ServoError> {
    let present = wire.read(id, "present_position")?;
    // A servo reads its horn less its offset.
    let offset = wire.read(id, "homing_offset")? + present - home;
    let turn = round(4096.0);
    let offset = (offset + turn / 2).rem_euclid(turn) - turn / 2;
    if offset.abs() > 2047 {
        return Ok(None);
    }
    with_torque_off(wire, id, |wire| wire.keep(id, "homing_offset", offset))?;
    Ok(Some(offset))
}
