//! What a robot of servos does with each action, and how it connects, rests and closes.
//!
//! Owns which part of this folder does an action: each has methods of its own on [`Feetech`].

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::device::Feetech;
use super::servo::tenth;
use super::torque::ease;
use crate::action::{Action, Motion};
use crate::adapter::contract::{ActionOutput, Adapter, BackendState, Notice};
use crate::adapter::control::Control;
use crate::capability::Capabilities;
use crate::error::ActionError;
use crate::servo::Urgency;
use crate::spot::Fix;
use crate::step::Stage;
use crate::subsystem::Subsystem;

/// How long a closing bus may take to give the servos their own speed back.
const EASED: Duration = Duration::from_millis(500);

impl Feetech {
    async fn run(&self, action: &Action, control: &Control) -> Result<ActionOutput, ActionError> {
        let on = action.subsystem;
        if action.step.moves() {
            // Checked before anything is read for the step.
            if self.stopped.load(Ordering::SeqCst) {
                return Err(ActionError::Stopped);
            }
            self.await_loan(control).await?;
            self.end_gentle(on, control).await?;
        }
        match &action.motion {
            Some(Motion::Joints { positions, speed }) => {
                let stage = action.step.reach().map(|(_, stage)| stage);
                let hand_too = !action.step.keeps_hand();
                let moved = self
                    .to_positions(on, positions, *speed, hand_too, control)
                    .await?;
                if stage == Some(Stage::Lifted) {
                    self.still_holds(on, control).await?;
                }
                Ok(moved)
            }
            Some(Motion::Frames(frames)) => self.routine(on, frames, control).await,
            Some(Motion::Drive { velocity, duration }) => self.drive(*velocity, *duration, control).await,
            Some(Motion::Lift(to)) => self.lift(*to, control).await,
            Some(Motion::GoTo(_)) => Err(self.lacks("finding its own way")),
            None => self.maintain(action, control).await,
        }
    }
}

impl Adapter for Feetech {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn connect(&self) -> BoxFuture<'_, Result<(), ActionError>> {
        async {
            let mut silent = Vec::new();
            for bus in self.buses.keys() {
                silent.extend(self.roll_call(*bus).await?);
            }
            if !silent.is_empty() {
                (self.notify)(Notice::Backend {
                    state: BackendState::Degraded,
                    reason: format!("these servos do not answer: {}", silent.join(", ")),
                });
            }
            Ok(())
        }
        .boxed()
    }

    fn execute<'a>(
        &'a self,
        action: &'a Action,
        control: &'a Control,
    ) -> BoxFuture<'a, Result<ActionOutput, ActionError>> {
        self.run(action, control).boxed()
    }

    fn state(&self, subsystem: Subsystem) -> Value {
        let known = self.known();
        let mut positions = serde_json::Map::new();
        let mut connected = true;
        for servo in self
            .layout
            .servos
            .iter()
            .filter(|servo| subsystem.each().contains(&servo.subsystem))
        {
            connected &= self
                .buses
                .get(&servo.bus)
                .is_some_and(|bus| bus.sender().is_connected());
            if let Some(steps) = known.positions.get(&(servo.bus, servo.id)) {
                let name = match subsystem {
                    Subsystem::All => format!("{}.{}", servo.subsystem, servo.name),
                    _ => servo.name.clone(),
                };
                positions.insert(name, json!(tenth(servo.value(*steps))));
            }
        }
        for wheel in self
            .layout
            .wheels
            .iter()
            .filter(|_| subsystem.each().contains(&Subsystem::Base))
        {
            connected &= self
                .buses
                .get(&wheel.bus)
                .is_some_and(|bus| bus.sender().is_connected());
        }
        let missing: Vec<String> = known
            .missing
            .iter()
            .map(|(bus, id)| format!("{}:{id}", bus.as_str()))
            .collect();
        json!({"positions": positions, "connected": connected, "missing": missing})
    }

    fn fix(&self) -> Option<Fix> {
        let wheel = self.layout.wheels.first()?;
        let there = self.buses.get(&wheel.bus)?.sender().is_connected();
        let spot = self.known().odometry.place.in_frame(&self.frame);
        there.then_some(Fix {
            spot,
            age: Duration::ZERO,
        })
    }

    fn ranges<'a>(
        &'a self,
        arm: Subsystem,
        control: &'a Control,
    ) -> BoxFuture<'a, Result<Option<Vec<[f64; 2]>>, ActionError>> {
        async move {
            let mut ranges = Vec::new();
            for servo in self.layout.of(arm) {
                let (min, max) = self.range(servo, control).await?;
                ranges.push([min, max]);
            }
            Ok(Some(ranges))
        }
        .boxed()
    }

    fn holds(&self, arm: Subsystem) -> Option<bool> {
        self.known().hands.get(&arm).map(Option::is_some)
    }

    fn halt(&self, subsystems: &[Subsystem], emergency: bool) -> Result<(), ActionError> {
        self.rest(subsystems, emergency)
    }

    fn reset(&self) -> Result<(), ActionError> {
        self.check_loan()?;
        for bus in self.buses.values() {
            bus.sender().forgive();
        }
        self.stopped.store(false, Ordering::SeqCst);
        Ok(())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {
            // A port that has just come back may not have been opened yet; the stop that opens it goes before what is sent here.
            let lent = self.end_loan().await;
            let buses = self.buses.values();
            for bus in buses.filter(|bus| lent || bus.sender().is_connected()) {
                let Ok(eased) = bus.sender().send(Urgency::Quiet, ease) else {
                    continue;
                };
                if let Ok(Ok((Err(error), _))) = tokio::time::timeout(EASED, eased).await {
                    tracing::warn!(%error, "the servos keep the greatest speed of the last movement");
                }
            }
            // Joining takes at most the time of one answer.
            for bus in self.buses.values() {
                bus.close();
            }
        }
        .boxed()
    }
}
