//! The servos of a simulated robot, for diagnostics and calibration.
//!
//! Owns ids, torque, temperature, load and faults of each servo. Knows no time. Read [`Servos`].

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::config::Fault;
use crate::capability::{BusName, Capabilities};
use crate::step::Recovery;
use crate::subsystem::Subsystem;

const AMBIENT: f64 = 28.0;
const HOT: f64 = 78.0;

/// One servo.
#[derive(Clone, Debug)]
pub(super) struct Servo {
    pub(super) id: u8,
    pub(super) subsystem: Subsystem,
    pub(super) name: String,
    /// The servo does not answer.
    pub(super) missing: bool,
    /// The servo is too warm.
    hot: bool,
    /// Degraded mode leaves the servo alone.
    pub(super) ignored: bool,
}

/// Every servo, by bus.
#[derive(Debug)]
pub(super) struct Servos {
    buses: BTreeMap<BusName, Vec<Servo>>,
    powered: BTreeSet<Subsystem>,
}

impl Servos {
    pub(super) fn new(capabilities: &Capabilities, faults: &[Fault]) -> Self {
        let at = |bus: BusName, id: u8| format!("{}:{id}", bus.as_str());
        let servo = |bus: BusName, motor: &crate::capability::Motor| Servo {
            id: motor.id,
            subsystem: motor.subsystem,
            name: motor.name.clone(),
            missing: faults.contains(&Fault::Missing(at(bus, motor.id))),
            hot: faults.contains(&Fault::Hot(at(bus, motor.id))),
            ignored: false,
        };
        let buses = capabilities
            .buses
            .iter()
            .map(|bus| {
                (
                    bus.name,
                    bus.motors.iter().map(|motor| servo(bus.name, motor)).collect(),
                )
            })
            .collect();
        Self {
            buses,
            powered: BTreeSet::new(),
        }
    }

    pub(super) fn power(&mut self, on: Subsystem, enable: bool) {
        for part in on.each() {
            if enable {
                self.powered.insert(part);
            } else {
                self.powered.remove(&part);
            }
        }
    }

    pub(super) fn is_powered(&self, on: Subsystem) -> bool {
        self.powered.contains(&on)
    }

    /// The servos of a part, with their bus.
    pub(super) fn of(&self, on: Subsystem) -> impl Iterator<Item = (BusName, &Servo)> {
        let all = self
            .buses
            .iter()
            .flat_map(|(bus, servos)| servos.iter().map(|servo| (*bus, servo)));
        all.filter(move |(_, servo)| on == Subsystem::All || servo.subsystem == on)
    }

    pub(super) fn find(&mut self, bus: BusName, id: u8) -> Option<&mut Servo> {
        self.buses.get_mut(&bus)?.iter_mut().find(|servo| servo.id == id)
    }

    /// What is wrong with an answer about these servos: some that were not given up say nothing.
    pub(super) fn silent(&self, which: impl Fn(BusName, &Servo) -> bool) -> Option<String> {
        let silent: Vec<String> = self
            .of(Subsystem::All)
            .filter(|(bus, servo)| servo.missing && !servo.ignored && which(*bus, servo))
            .map(|(bus, servo)| format!("{}:{} ({})", bus.as_str(), servo.id, servo.name))
            .collect();
        (!silent.is_empty()).then(|| format!("these servos do not answer: {}", silent.join(", ")))
    }

    pub(super) fn scan(&self, buses: &[BusName]) -> Value {
        let one = |bus: &BusName| {
            let all = self.buses.get(bus)?.iter();
            let found: Vec<Value> = all
                .filter(|servo| !servo.missing)
                .map(|servo| json!({"id": servo.id, "name": servo.name, "subsystem": servo.subsystem}))
                .collect();
            Some((bus.as_str().to_string(), json!(found)))
        };
        Value::Object(buses.iter().filter_map(one).collect())
    }

    pub(super) fn health(
        &self,
        bus: BusName,
        temps: bool,
        loads: bool,
        moving: impl Fn(Subsystem) -> bool,
    ) -> Value {
        let servos = self.buses.get(&bus).map(Vec::as_slice).unwrap_or_default();
        let all: Vec<Value> = servos
            .iter()
            .map(|servo| {
                let mut line = json!({"id": servo.id, "name": servo.name, "answers": !servo.missing});
                if !servo.missing {
                    let busy = moving(servo.subsystem);
                    if temps {
                        line["temperature_c"] = json!(temperature(servo, busy));
                    }
                    if loads {
                        line["load_percent"] = json!(load(busy, self.is_powered(servo.subsystem)));
                    }
                }
                line
            })
            .collect();
        let concerns: Vec<String> = servos.iter().filter_map(concern).collect();
        json!({"servos": all, "concerns": concerns, "healthy": concerns.is_empty()})
    }

    pub(super) fn recover(&mut self, bus: BusName, id: u8, action: Recovery) -> Result<Value, String> {
        let Some(servo) = self.find(bus, id) else {
            return Err(format!("no servo {}:{id}", bus.as_str()));
        };
        match action {
            Recovery::Ping => {}
            Recovery::Reboot | Recovery::Reconfigure => servo.missing = false,
            Recovery::ResetError => servo.hot = false,
        }
        Ok(json!({"id": id, "answers": !servo.missing}))
    }
}

pub(super) fn temperature(servo: &Servo, busy: bool) -> f64 {
    if servo.hot {
        HOT
    } else if busy {
        AMBIENT + 9.0
    } else {
        AMBIENT
    }
}

pub(super) fn load(busy: bool, powered: bool) -> f64 {
    match (busy, powered) {
        (true, _) => 35.0,
        (false, true) => 8.0,
        (false, false) => 0.0,
    }
}

fn concern(servo: &Servo) -> Option<String> {
    if servo.missing {
        Some(format!("{} ({}) does not answer", servo.id, servo.name))
    } else if servo.hot {
        Some(format!("{} ({}) is at {HOT} degrees", servo.id, servo.name))
    } else {
        None
    }
}
