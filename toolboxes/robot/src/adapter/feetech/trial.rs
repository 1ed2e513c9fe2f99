//! Moves one motor a little and back, to see whether it works.

use std::time::Duration;

use super::device::Feetech;
use super::motion::{Blocked, Goal};
use super::servo::{exact, tenth};
use crate::adapter::{ActionError, ActionOutput, Control};
use crate::capability::BusName;
use crate::resolve::CAREFUL;
use crate::servo::Register;

/// The speed of a wheel in a test, steps per second.
const TEST_SPEED: i64 = 300;

impl Feetech {
    pub(super) async fn test(
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
                ActionOutput::new(format!("wheel {name} turned {turned:.0} degrees and back"))
                    .with("turned", tenth(turned)),
            );
        }
        let Some(servo) = self.layout.servo(bus, id) else {
            let ids: Vec<String> = self.layout.ids(bus).iter().map(u8::to_string).collect();
            return Err(ActionError::Refused(format!(
                "no motor {id} on bus {}; it has {}",
                bus.as_str(),
                ids.join(", ")
            )));
        };
        let start = self.where_is(servo, control).await?;
        // If an end of the joint's range is too near, the joint turns the other way.
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
            .go(&[Goal { servo, value: wanted }], CAREFUL, Blocked::Fails, control)
            .await?;
        let reached = moved
            .steps
            .get(&(bus, id))
            .map_or(start, |steps| servo.value(*steps));
        // Under a load a joint may stay four degrees from its goal, which is more than a small test.
        if (reached - start).abs() < angle.abs() / 3.0 {
            return Err(self.broken(format!(
                "{} turned {} of {} degrees",
                servo.label(),
                tenth((reached - start).abs()),
                angle.abs()
            )));
        }
        let back = start.clamp(servo.min, servo.max);
        self.go(&[Goal { servo, value: back }], CAREFUL, Blocked::Fails, control)
            .await?;
        Ok(ActionOutput::new(format!(
            "{} turned {:.0} and back",
            servo.label(),
            reached - start
        ))
        .with("turned", tenth(reached - start)))
    }

    /// Turns one wheel by an angle in degrees and back; returns the larger of the two angles that were measured.
    pub(super) async fn test_wheel(&self, id: u8, angle: f64, control: &Control) -> Result<f64, ActionError> {
        let bus = self.wheels_ready(control).await?;
        let way = angle.abs() * 4096.0 / 360.0;
        let time = Duration::try_from_secs_f64(way / exact(TEST_SPEED)).unwrap_or_default();
        let mut turned = 0.0;
        for speed in [TEST_SPEED, -TEST_SPEED].map(|speed| if angle < 0.0 { -speed } else { speed }) {
            let before = self
                .ask(bus, control, move |wire| wire.read(id, Register::POSITION))
                .await?;
            self.turn_for(bus, id, speed, time, control).await?;
            let after = self
                .ask(bus, control, move |wire| wire.read(id, Register::POSITION))
                .await?;
            // The position goes from 4095 to 0. A test is far shorter than half a turn.
            let way = (after - before + 2048).rem_euclid(4096) - 2048;
            let way = exact(way.abs()) * 360.0 / 4096.0;
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
        let start = self.clock.now();
        loop {
            let left = time.saturating_sub(self.clock.since(start));
            if left.is_zero() {
                break;
            }
            self.turn(bus, vec![(id, speed)], control).await?;
            self.sleep(control, left.min(Duration::from_millis(100))).await?;
        }
        self.stand_still(bus, &[id], control).await
    }
}
