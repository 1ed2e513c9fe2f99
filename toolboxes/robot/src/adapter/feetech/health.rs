//! The state of the servos: which of them answer, and how warm and loaded they are.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::device::Feetech;
use super::servo::{TURN, exact, tenth};
use crate::adapter::{ActionError, ActionOutput, Control};
use crate::capability::BusName;
use crate::servo::{Health, Register, ServoError};
use crate::subsystem::Subsystem;

/// How many ids one job of a scan asks. A stop waits for at most this many silent ids.
const AT_ONCE: usize = 4;
/// Degrees Celsius above which a servo counts as hot. Its own protection sets in at 70.
const HOT: i64 = 60;

impl Feetech {
    pub(super) async fn scan(
        &self,
        buses: &[BusName],
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let mut found = serde_json::Map::new();
        let mut strangers = Vec::new();
        let mut mute = Vec::new();
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
            // The scan listens for 5 ms. An adapter with a latency timer needs longer, so the silent servos of the
            // layout are asked again with the full timeout.
            for id in motors
                .iter()
                .map(|motor| motor.id)
                .filter(|id| !models.contains_key(id))
                .collect::<Vec<_>>()
            {
                let model = self.ask(*bus, control, move |wire| match wire.read(id, Register::MODEL) {
                    Ok(model) => Ok(u16::try_from(model).ok()),
                    Err(ServoError::Silent { .. } | ServoError::Garbled { .. }) => Ok(None),
                    Err(error) => Err(error),
                });
                if let Some(model) = model.await? {
                    models.insert(id, model);
                }
            }
            let name = |id: u8| motors.iter().find(|motor| motor.id == id);
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
                .map(|motor| motor.id)
                .filter(|id| !models.contains_key(id))
                .collect();
            if known.is_empty() {
                mute.push(bus.as_str());
            }
            count += known.len();
            found.insert(
                bus.as_str().to_owned(),
                json!({"motors": known, "missing": missing}),
            );
        }
        let trouble = (!mute.is_empty()).then(|| {
            format!(
                "no motor answers on bus {}; check its power and its cable",
                mute.join(" and ")
            )
        });
        let output = ActionOutput::new(format!("{count} motors answer"))
            .with("buses", found)
            .trouble(trouble);
        Ok(if strangers.is_empty() {
            output
        } else {
            output.note(format!("not in the layout: {}", strangers.join(", ")))
        })
    }

    /// The motors of a subsystem, or one of them.
    pub(super) fn chosen(
        &self,
        on: Subsystem,
        id: Option<u8>,
    ) -> Result<Vec<(BusName, u8, String)>, ActionError> {
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

    /// What is wrong with an answer from which these servos are missing, unless the robot was told to do without them.
    pub(super) fn unread(&self, silent: &[(BusName, u8)]) -> Option<String> {
        let known = self.known();
        let unread: Vec<String> = silent
            .iter()
            .filter(|servo| !known.missing.contains(servo))
            .map(|(bus, id)| format!("{}:{id}", bus.as_str()))
            .collect();
        (!unread.is_empty()).then(|| format!("these motors do not answer: {}", unread.join(", ")))
    }

    /// A servo's health with its position in degrees or millimetres, and that of a wheel in degrees of its turn.
    pub(super) fn report(&self, bus: BusName, id: u8, health: &Health) -> Value {
        let mut report = json!(health);
        let (position, scale) = match self.layout.servo(bus, id) {
            Some(servo) => (servo.value(health.position), servo.scale),
            None => (exact(health.position) * 360.0 / TURN, TURN / 360.0),
        };
        report["position"] = json!(tenth(position));
        report["speed"] = json!(tenth(exact(health.speed) / scale));
        report
    }

    pub(super) async fn status(
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
                    let mut report = self.report(*bus, *id, health);
                    report["name"] = json!(name);
                    motors.insert(label, report);
                }
                None => silent.push((*bus, *id)),
            }
        }
        if motors.is_empty() {
            let asked: Vec<String> = silent
                .iter()
                .map(|(bus, id)| format!("{}:{id}", bus.as_str()))
                .collect();
            return Err(self.broken(format!("no motor of {on} answers: {}", asked.join(", "))));
        }
        let output = ActionOutput::new(format!(
            "{} of {} motors of {on} answer",
            motors.len(),
            read.len()
        ))
        .with("motors", motors);
        Ok(output.trouble(self.unread(&silent)))
    }

    pub(super) async fn health(
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
            .map(|motor| (bus, motor.id, format!("{} {}", motor.subsystem, motor.name)))
            .collect();
        let mut report = serde_json::Map::new();
        let mut troubles = Vec::new();
        let mut silent = Vec::new();
        for (name, id, bus, health) in self.read_health(&motors, control).await? {
            let label = format!("{}:{id}", bus.as_str());
            let Some(health) = health else {
                troubles.push(format!("{label} ({name}) does not answer"));
                silent.push((bus, id));
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
        // A hot motor is what the report is for; what could not be read is missing from it.
        let notes = troubles.clone();
        let output = ActionOutput::new(message)
            .with("motors", report)
            .with("healthy", troubles.is_empty())
            .with("troubles", troubles)
            .trouble(self.unread(&silent));
        Ok(ActionOutput { notes, ..output })
    }

    pub(super) async fn ping_all(
        &self,
        on: Subsystem,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
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
        let trouble = (!silent.is_empty())
            .then(|| format!("these motors of {on} do not answer: {}", silent.join(", ")));
        Ok(
            ActionOutput::new(format!("{} motors of {on} were asked", motors.len()))
                .with("answers", answers)
                .with("all_answer", silent.is_empty())
                .trouble(trouble),
        )
    }

    /// Moves each motor of a part a little and back. A part that the robot lacks has no motors.
    async fn move_a_little(&self, part: Subsystem, control: &Control) -> Result<(), ActionError> {
        if part == Subsystem::Base && !self.layout.wheels.is_empty() {
            self.calibrate_base("wheel_test", control).await?;
        }
        let (servos, _) = self.present(self.layout.of(part))?;
        for servo in servos {
            self.test(servo.bus, servo.id, 3.0, control).await?;
        }
        Ok(())
    }

    pub(super) async fn self_test(
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
            measured.insert(name.clone(), self.report(*bus, *id, health));
        }
        if troubles.is_empty() {
            // A test of the whole robot tests each part.
            for part in on.each() {
                self.move_a_little(part, control).await?;
            }
        }
        if !troubles.is_empty() {
            return Err(self.broken(format!("{on} failed its test: {}", troubles.join("; "))));
        }
        let output = ActionOutput::new(format!("{on} is well: {} motors", read.len()));
        Ok(if verbose {
            output.with("motors", measured)
        } else {
            output
        })
    }
}
