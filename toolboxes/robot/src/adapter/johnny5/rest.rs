//! Brings the robot to rest, with an instance or without one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::Johnny5;
use super::config::{Johnny5Config, estop};
use super::layout::Layout;
use super::torque::hold;
use crate::adapter::{ActionError, Estop};
use crate::capability::BusName;
use crate::servo::{ServoError, Then, Wire};
use crate::subsystem::Subsystem;

/// A halt returns within 50 ms.
const PATIENCE: Duration = Duration::from_millis(45);
/// How long a port may be held by the process that has just died.
const RELEASE: Duration = Duration::from_millis(800);

impl Johnny5 {
    pub(super) fn rest(&self, subsystems: &[Subsystem], emergency: bool) -> Result<(), ActionError> {
        if emergency {
            self.stopped.store(true, Ordering::SeqCst);
            if self.estop == Estop::TorqueOff {
                self.known().hands.clear();
            }
        }
        let deadline = Instant::now() + PATIENCE;
        let concerned: Vec<Subsystem> = subsystems.iter().flat_map(|one| one.each()).collect();
        let wheels_too = concerned.contains(&Subsystem::Base);
        // Both stops are sent before the first is waited for.
        let mut stopping = Vec::new();
        for (name, bus) in &self.buses {
            let motors = self.layout.motors(*name);
            let ids: Vec<u8> = motors
                .iter()
                .filter(|motor| concerned.contains(&motor.subsystem))
                .map(|motor| motor.id)
                .collect();
            if ids.is_empty() {
                continue;
            }
            let wheels: Vec<u8> = self
                .layout
                .wheels
                .iter()
                .filter(|wheel| wheels_too && wheel.bus == *name)
                .map(|wheel| wheel.id)
                .collect();
            let joints = self.joints_to_stop(*name, &ids, &wheels);
            let then = (emergency || !joints.is_empty()).then(|| {
                let (ids, torque_off) = (ids.clone(), emergency && self.estop == Estop::TorqueOff);
                let then: Then = Arc::new(move |wire| settle(wire, &ids, &joints, torque_off));
                then
            });
            stopping.push(bus.sender().stop(&ids, wheels, then, emergency));
        }
        let mut failed = None;
        for stop in stopping {
            if let Err(error) = stop.wait(deadline) {
                failed = Some(error);
            }
        }
        match failed {
            Some(error) => Err(self.failed(error)),
            None => Ok(()),
        }
    }

    /// Those among `ids` that go to positions and are not known to be missing.
    fn joints_to_stop(&self, bus: BusName, ids: &[u8], wheels: &[u8]) -> Vec<u8> {
        let known = self.known();
        let there = |id: &u8| !wheels.contains(id) && !known.missing.contains(&(bus, *id));
        let joint = |id: &u8| self.layout.servo(bus, *id).is_some();
        ids.iter().copied().filter(there).filter(joint).collect()
    }
}

/// Lets the joints hold or let go, after the wheels were stopped.
fn settle(wire: &mut Wire, all: &[u8], joints: &[u8], torque_off: bool) -> Result<(), ServoError> {
    if !torque_off {
        return hold(wire, joints);
    }
    // No servo answers this instruction, so a missing servo does not delay it. It is sent twice, because it can be
    // lost.
    let off: Vec<(u8, i64)> = all.iter().map(|id| (*id, 0)).collect();
    wire.write_each("torque_enable", &off)?;
    wire.write_each("torque_enable", &off)
}

/// Brings the robot to rest without an instance: the wheels stop first, then the joints hold or let go.
///
/// # Errors
/// A bus could not be reached, with the reason; the others were stopped.
pub fn safe_stop(name: &str, config: &Johnny5Config, own: Option<Estop>) -> Result<(), ActionError> {
    let layout = &config.layout()?;
    let torque_off = estop(name, own)? == Estop::TorqueOff;
    // In parallel: a missing bus must not delay the other.
    let stopped: Vec<Result<(), ServoError>> = std::thread::scope(|scope| {
        let stops = [BusName::Left, BusName::Right]
            .map(|bus| scope.spawn(move || stop_bus(bus, config, layout, torque_off)));
        let lost = |bus: &str| Err(ServoError::Closed { bus: bus.to_owned() });
        stops
            .map(|stop| stop.join().unwrap_or_else(|_| lost("left or right")))
            .into()
    });
    stopped
        .into_iter()
        .collect::<Result<(), _>>()
        .map_err(|error| ActionError::NotConnected {
            robot: name.to_owned(),
            reason: error.to_string(),
        })
}

fn stop_bus(
    bus: BusName,
    config: &Johnny5Config,
    layout: &Layout,
    torque_off: bool,
) -> Result<(), ServoError> {
    let ids = layout.ids(bus);
    if ids.is_empty() {
        return Ok(());
    }
    let of_bus = layout.wheels.iter().filter(|wheel| wheel.bus == bus);
    let wheels: Vec<(u8, i64)> = of_bus.map(|wheel| (wheel.id, 0)).collect();
    let joints: Vec<u8> = ids
        .iter()
        .copied()
        .filter(|id| layout.servo(bus, *id).is_some())
        .collect();
    let timeout = Duration::from_millis(config.answer_ms.clamp(2, 500));
    let hurry = Arc::new(AtomicBool::new(false));
    let mut wire = Wire::new(bus.as_str(), &config.port(bus), config.baud, timeout, hurry);
    open(&mut wire)?;
    wire.write_each("goal_speed", &wheels)?;
    wire.write_each("goal_speed", &wheels)?;
    settle(&mut wire, &ids, &joints, torque_off)
}

/// Opens a port that a dying process may still hold.
fn open(wire: &mut Wire) -> Result<(), ServoError> {
    let end = Instant::now() + RELEASE;
    loop {
        match wire.connect() {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() >= end => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}
