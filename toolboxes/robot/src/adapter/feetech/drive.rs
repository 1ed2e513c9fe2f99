//! The base: its wheels turn on a lease.

use std::time::Duration;

use serde_json::json;

use super::device::Feetech;
use super::servo::tenth;
use super::torque::ready;
use crate::action::Velocity;
use crate::adapter::{ActionError, ActionOutput, Control};
use crate::capability::BusName;
use crate::servo::Register;

/// How long the wheels turn without a renewed command.
pub(super) const LEASE: Duration = Duration::from_millis(300);
/// How often the command is renewed.
const RENEW: Duration = Duration::from_millis(100);
/// How long wheels may take to come to rest.
const SETTLE: Duration = Duration::from_secs(1);
/// How far the base has to come of its way: on a carpet, or with a wheel that slips, it measures less.
const FOLLOWS: f64 = 0.25;
/// A wheel at this speed or below counts as standing, in steps per second.
const STANDS: i64 = 20;

impl Feetech {
    pub(super) async fn drive(
        &self,
        velocity: Velocity,
        duration: Duration,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let (speeds, slower) = self.layout.geometry.speeds(&velocity);
        let note = (slower < 1.0).then(|| {
            format!(
                "at {:.0} % of the speed: the wheels turn no faster",
                slower * 100.0
            )
        });
        let bus = self.wheels_ready(control).await?;
        let ids = self.wheel_ids();
        let speeds: Vec<(u8, i64)> = self
            .layout
            .wheels
            .iter()
            .zip(speeds)
            .map(|(wheel, speed)| (wheel.id, if wheel.reversed { -speed } else { speed }))
            .collect();
        let asked = (velocity.x.hypot(velocity.y) + velocity.turn.abs()) * duration.as_secs_f64();
        // The base goes the same distance, and takes longer.
        let duration = duration.div_f64(slower);
        self.measure(bus, &ids, control).await?;
        let from = self.known().odometry.clone();
        let start = self.clock.now();
        let driven = loop {
            let left = duration.saturating_sub(self.clock.since(start));
            if left.is_zero() {
                break Ok(());
            }
            if let Err(error) = self.turn(bus, speeds.clone(), control).await {
                break Err(error);
            }
            control.progress(
                (self.clock.since(start).as_secs_f64() / duration.as_secs_f64()).min(1.0),
                "driving",
            );
            self.sleep(control, left.min(RENEW)).await?;
            if let Err(error) = self.measure(bus, &ids, control).await {
                break Err(error);
            }
        };
        let seconds = self.clock.since(start).as_secs_f64();
        let stopped = self.stand_still(bus, &ids, control).await;
        driven.and(stopped)?;
        self.measure(bus, &ids, control).await?;
        let to = self.known().odometry.clone();
        let moved = to.place.seen_from(from.place);
        if to.way - from.way < FOLLOWS * asked {
            return Err(self.broken(format!(
                "the base does not move: its wheels have turned by {:.2} m and {:.0} degrees",
                moved.x.hypot(moved.y),
                moved.heading.to_degrees()
            )));
        }
        let output = ActionOutput::new(format!("drove for {seconds:.1} s"))
            .with("duration_s", tenth(seconds))
            .with(
                "measured",
                json!({
                    "forward_m": hundredth(moved.x),
                    "left_m": hundredth(moved.y),
                    "turned_degrees": tenth(moved.heading.to_degrees()),
                }),
            );
        Ok(match note {
            Some(note) => output.note(note),
            None => output,
        })
    }

    /// Makes sure that the wheels stand.
    pub(super) async fn stand(&self, control: &Control) -> Result<ActionOutput, ActionError> {
        let Some(bus) = self.layout.wheels.first().map(|wheel| wheel.bus) else {
            return Err(self.lacks("base"));
        };
        let ids = self.wheel_ids();
        self.stand_still(bus, &ids, control).await?;
        self.measure(bus, &ids, control).await?;
        Ok(ActionOutput::new("the base stands"))
    }

    /// Stops wheels and waits until they stand.
    pub(super) async fn stand_still(
        &self,
        bus: BusName,
        ids: &[u8],
        control: &Control,
    ) -> Result<(), ActionError> {
        self.turn(bus, ids.iter().map(|id| (*id, 0)).collect(), control)
            .await?;
        let start = self.clock.now();
        loop {
            let asked = ids.to_vec();
            let found = self
                .ask(bus, control, move |wire| wire.read_each(&asked, Register::SPEED))
                .await?;
            let speeds = ids.iter().map(|id| (id, found.get(id).map(|(speed, _)| *speed)));
            let turning = speeds
                .into_iter()
                .find(|(_, speed)| speed.is_none_or(|speed| speed.abs() > STANDS));
            let what = match turning {
                None => return Ok(()),
                Some((id, Some(speed))) => {
                    format!(
                        "wheel servo {id} on bus {} still turns at {speed} steps/s",
                        bus.as_str()
                    )
                }
                Some((id, None)) => format!(
                    "wheel servo {id} on bus {} does not say whether it stands",
                    bus.as_str()
                ),
            };
            if self.clock.since(start) > SETTLE {
                return Err(self.broken(format!("{what} after it was stopped")));
            }
            self.sleep(control, Duration::from_millis(10)).await?;
        }
    }

    pub(super) fn wheel_ids(&self) -> Vec<u8> {
        self.layout.wheels.iter().map(|wheel| wheel.id).collect()
    }

    /// Turns wheels for the length of a lease.
    pub(super) async fn turn(
        &self,
        bus: BusName,
        speeds: Vec<(u8, i64)>,
        control: &Control,
    ) -> Result<(), ActionError> {
        let sender = self.sender(bus)?;
        let moves = speeds.iter().any(|(_, speed)| *speed != 0);
        let sent = control.command(|| {
            if moves && self.stopped.load(std::sync::atomic::Ordering::SeqCst) {
                return None;
            }
            Some(sender.drive(speeds, LEASE))
        })?;
        match sent {
            Some(sent) => self.answer(control, sent).await,
            None => Err(ActionError::Stopped),
        }
    }

    /// Puts the wheels into velocity mode, at rest and with power.
    pub(super) async fn wheels_ready(&self, control: &Control) -> Result<BusName, ActionError> {
        let Some(bus) = self.layout.wheels.first().map(|wheel| wheel.bus) else {
            return Err(self.lacks("base"));
        };
        let ids = self.wheel_ids();
        if let Some(missing) = ids.iter().find(|id| self.known().missing.contains(&(bus, **id))) {
            return Err(ActionError::Refused(format!(
                "servo {missing} on bus {} is missing: the base drives on all of its wheels or not at all",
                bus.as_str()
            )));
        }
        self.tell(bus, ids.clone(), control, move |wire| ready(wire, &ids))
            .await?;
        Ok(bus)
    }

    /// Reads how far the wheels have turned.
    pub(super) async fn measure(
        &self,
        bus: BusName,
        ids: &[u8],
        control: &Control,
    ) -> Result<(), ActionError> {
        let asked = ids.to_vec();
        let found = self
            .ask(bus, control, move |wire| {
                wire.read_each(&asked, Register::POSITION)
            })
            .await?;
        let mut steps = Vec::with_capacity(ids.len());
        for wheel in &self.layout.wheels {
            let Some((at, alarms)) = found.get(&wheel.id) else {
                return Err(self.broken(format!(
                    "wheel {} (servo {}) does not answer any more",
                    wheel.name, wheel.id
                )));
            };
            if alarms.is_severe() {
                return Err(self.broken(format!(
                    "wheel {} (servo {}) reports {}",
                    wheel.name,
                    wheel.id,
                    alarms.names().join(" and ")
                )));
            }
            steps.push(if wheel.reversed { -*at } else { *at });
        }
        self.known().odometry.look(&self.layout.geometry, steps);
        Ok(())
    }
}

fn hundredth(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
