//! Brings the robot to rest, with an instance or without one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::config::{FeetechConfig, Unheard, estop};
use super::device::Feetech;
use super::layout::{Group, Layout};
use super::torque::{ease, hold};
use crate::adapter::{ActionError, Estop};
use crate::capability::BusName;
use crate::conduct::Stop;
use crate::driver::DrivenRobot;
use crate::servo::{Exchange, LISTENS, Register, ServoError, Then, Wire, holders};
use crate::subsystem::Subsystem;

/// A halt returns within 50 ms.
const PATIENCE: Duration = Duration::from_millis(45);
/// How long a port may be held by the process that has just died.
const RELEASE: Duration = Duration::from_millis(800);

impl Feetech {
    pub(super) fn rest(&self, subsystems: &[Subsystem], emergency: bool) -> Result<(), ActionError> {
        if emergency {
            self.stopped.store(true, Ordering::SeqCst);
            if self.estop == Estop::TorqueOff {
                self.known().hands.clear();
            }
        }
        let deadline = Instant::now() + PATIENCE;
        // No other program may move what is brought to rest here.
        self.kill_loan();
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
            let wheels = if wheels_too {
                self.wheels_of(*name)
            } else {
                Vec::new()
            };
            let joints = self.joints_to_stop(*name, &ids, &wheels);
            let then = (emergency || !joints.is_empty()).then(|| {
                let (groups, rest) = (
                    self.layout.groups(*name, &ids, &joints, &self.stop),
                    self.rest_of(emergency),
                );
                let then: Then = Arc::new(move |wire| settle_in_order(wire, &groups, rest));
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

    pub(super) fn wheels_of(&self, bus: BusName) -> Vec<u8> {
        let wheels = self.layout.wheels.iter();
        wheels
            .filter(|wheel| wheel.bus == bus)
            .map(|wheel| wheel.id)
            .collect()
    }

    pub(super) fn rest_of(&self, emergency: bool) -> Rest {
        match (emergency, self.estop) {
            (true, Estop::TorqueOff) => Rest::LetGo,
            (true, _) => self.unheard.rest(),
            (false, _) => Rest::Hold,
        }
    }

    /// Those among `ids` that go to positions and are not known to be missing.
    pub(super) fn joints_to_stop(&self, bus: BusName, ids: &[u8], wheels: &[u8]) -> Vec<u8> {
        let known = self.known();
        let there = |id: &u8| !wheels.contains(id) && !known.missing.contains(&(bus, *id));
        let joint = |id: &u8| self.layout.servo(bus, *id).is_some();
        ids.iter().copied().filter(there).filter(joint).collect()
    }
}

/// What ends the motion of the joints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// They let go.
    LetGo,
    /// They hold where they are. One that does not say where it is goes on at the smallest speed; an XL servo, which takes no speed without a
    /// goal, lets go.
    Hold,
    /// They hold where they are. One that does not say where it is lets go.
    HoldOrLetGo,
}

impl Unheard {
    fn rest(self) -> Rest {
        match self {
            Self::Slowest => Rest::Hold,
            Self::TorqueOff => Rest::HoldOrLetGo,
        }
    }
}

/// Ends the motion of one group of motors after the other. One that does not confirm it does not keep the others from coming to
/// rest.
///
/// # Errors
/// As [`settle`], the first.
pub(super) fn settle_in_order(wire: &mut Wire, groups: &[Group], rest: Rest) -> Result<(), ServoError> {
    let settled: Vec<_> = groups
        .iter()
        .map(|group| settle(wire, &group.motors, &group.joints, rest))
        .collect();
    settled.into_iter().collect()
}

/// Ends the motion of the joints, after the wheels were stopped. `all` are the motors that let go, the joints among them.
///
/// # Errors
/// The port is lost, or a joint did not confirm it.
pub(super) fn settle(wire: &mut Wire, all: &[u8], joints: &[u8], rest: Rest) -> Result<(), ServoError> {
    if rest == Rest::LetGo {
        let_go(wire, all)?;
        wire.suspect(joints);
        let off = wire.read_each(joints, Register::TORQUE)?;
        let holds = |id: &u8| off.get(id).is_none_or(|(torque, _)| *torque != 0);
        return confirmed(wire, joints.iter().copied().filter(holds).collect(), OFF);
    }
    let unknown = hold(wire, joints)?;
    if (rest == Rest::HoldOrLetGo || !wire.slows()) && !unknown.is_empty() {
        let_go(wire, &unknown)?;
        return confirmed(wire, unknown, OFF);
    }
    confirmed(wire, unknown, slowed(wire))
}

const OFF: &str = "they have not confirmed that their torque is off";

/// What joints do that did not say where they are.
pub(super) fn slowed(wire: &Wire) -> &'static str {
    match wire.slows() {
        true => "they keep moving, at one degree in eleven seconds, until they report their position",
        false => "they have not reported their position and may move on to their last target",
    }
}

/// No servo answers this instruction, so a missing servo does not delay it. It is sent twice, because it can be lost.
fn let_go(wire: &mut Wire, ids: &[u8]) -> Result<(), ServoError> {
    let off: Vec<(u8, i64)> = ids.iter().map(|id| (*id, 0)).collect();
    wire.write_each(Register::TORQUE, &off)?;
    wire.write_each(Register::TORQUE, &off)
}

fn confirmed(wire: &Wire, silent: Vec<u8>, what: &'static str) -> Result<(), ServoError> {
    match silent.is_empty() {
        true => Ok(()),
        false => Err(wire.unconfirmed(&silent, what)),
    }
}

/// Brings the robot to rest without an instance: the wheels stop first, then the joints hold or let go.
///
/// # Errors
/// A bus could not be reached, with the reason; the others were stopped.
pub(super) fn safe_stop(robot: DrivenRobot<'_>, config: &FeetechConfig) -> Result<(), ActionError> {
    let layout = &config.layout(robot.model)?;
    let rest = match estop(robot.name, robot.stop.emergency)? {
        Estop::TorqueOff => Rest::LetGo,
        _ => config.hold_unheard.rest(),
    };
    // In parallel: a missing bus must not delay the other.
    let stopped: Vec<Result<(), ServoError>> = std::thread::scope(|scope| {
        let stops = [BusName::Left, BusName::Right]
            .map(|bus| scope.spawn(move || stop_bus(bus, config, layout, (robot.stop, rest))));
        let lost = |bus: &str| Err(ServoError::Closed { bus: bus.to_owned() });
        stops
            .map(|stop| stop.join().unwrap_or_else(|_| lost("left or right")))
            .into()
    });
    stopped
        .into_iter()
        .collect::<Result<(), _>>()
        .map_err(|error| ActionError::NotConnected {
            robot: robot.name.to_owned(),
            reason: error.to_string(),
        })
}

fn stop_bus(
    bus: BusName,
    config: &FeetechConfig,
    layout: &Layout,
    (order, rest): (&Stop, Rest),
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
    let mut wire = Wire::new(
        Exchange::new(bus.as_str(), &config.port(bus), config.baud, timeout, hurry).of(config.family),
    );
    open(&mut wire)?;
    wire.write_each(Register::GOAL_SPEED, &wheels)?;
    wire.write_each(Register::GOAL_SPEED, &wheels)?;
    let groups = layout.groups(bus, &ids, &joints, order);
    let settle = |wire: &mut Wire| wire.bounded(LISTENS, |wire| settle_in_order(wire, &groups, rest));
    let mut settled = settle(&mut wire);
    // A program that had the robot is killed with the toolbox, and may have had a last command under way.
    let path = config.port(bus);
    let holder = || holders(&path).into_iter().next();
    if holder().is_some() {
        let end = Instant::now() + RELEASE;
        while holder().is_some() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        settled = settle(&mut wire);
    }
    let held = holder();
    // The next owner of the servos may be another program. What cannot be given back stays slow.
    if let Err(error) = ease(&mut wire) {
        tracing::warn!(%error, "the servos keep the greatest speed of the last movement");
    }
    settled?;
    match held {
        None => Ok(()),
        // The servos stand now, and nobody knows for how long.
        Some(holder) => Err(ServoError::Shared {
            bus: bus.as_str().to_owned(),
            path,
            holder,
        }),
    }
}

/// Opens a port that a dying process may still hold.
fn open(wire: &mut Wire) -> Result<(), ServoError> {
    let end = Instant::now() + RELEASE;
    loop {
        match wire.exchange().connect() {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() >= end => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}
