//! Bringing a vehicle to rest, whatever else is going on.
//!
//! Owns the one path to the vehicle that asks nobody: zero velocity, Hold, and Land where Hold does not help. It never
//! disarms, and never flies against somebody else who has taken over. Read [`Vehicle::brake`].

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::oneshot;
use tonic::transport::{Channel, Endpoint};

use super::{Command, Ended, Vehicle, lock};
use crate::config::Estop;
use crate::guard::Mode;
use crate::mavsdk::action::action_service_client::ActionServiceClient;
use crate::mavsdk::action::{HoldRequest, LandRequest};
use crate::mavsdk::offboard::offboard_service_client::OffboardServiceClient;
use crate::mavsdk::offboard::{SetVelocityBodyRequest, VelocityBodyYawspeed};

/// The service halts every vehicle when one was taken over: within this time that is no wish of a user, and no reason to
/// end the landing of another one.
const ECHO: Duration = Duration::from_secs(2);
/// A vehicle that is faster than this 3 s after it was told to hold is not stable, metres per second.
const UNSTABLE_MPS: f64 = 0.5;

/// What a brake could do at once.
pub(crate) enum Braked {
    /// Nothing moves, or it is not ours to stop.
    Nothing(&'static str),
    /// The commands are on their way; resolves when they were acknowledged.
    Sent(oneshot::Receiver<Result<(), String>>),
    /// There is no way to the vehicle.
    Unreachable(String),
}

impl Vehicle {
    /// Ends every motion call and sends what brings the vehicle to rest. Returns at once.
    pub(crate) fn brake(self: &Arc<Self>, emergency: bool) -> Braked {
        let braked = self.begin_brake(emergency);
        self.record_brake(emergency, &braked);
        braked
    }

    fn begin_brake(self: &Arc<Self>, emergency: bool) -> Braked {
        let heard = self.telemetry();
        let offboard = {
            let mut control = lock(&self.control);
            let echo = lock(&self.override_told).is_some_and(|told| told.elapsed() < ECHO);
            let landing = (!emergency || echo) && control.safe_calls > 0;
            if control.overridden().is_some() && (!emergency || echo) {
                return Braked::Nothing("somebody else has taken over");
            }
            control.withdraw(&Ended::Halted, emergency && !landing);
            if landing {
                return Braked::Nothing("it is being brought to safety already");
            }
            if matches!(
                *self.link.borrow(),
                super::Link::Untrusted(_) | super::Link::Missing(_)
            ) {
                return Braked::Nothing("it is not ours to command");
            }
            let idle = !heard.may_move() && *self.under_way.borrow() == 0
                || heard.armed.is_none() && heard.heard.is_none();
            if idle {
                return Braked::Nothing("it does not move");
            }
            let offboard = control.is_offboard() || heard.mode == Some(Mode::Offboard);
            control.want(self.rest(emergency));
            offboard
        };
        let Some(channel) = self.channel() else {
            return Braked::Unreachable(format!("{}: there is no connection to the vehicle", self.id));
        };
        self.log.write(
            "brake",
            || ovos_toolbox_sdk::serde_json::json!({"vehicle": self.id, "emergency": emergency}),
        );
        let (tell, told) = oneshot::channel();
        let vehicle = Arc::clone(self);
        let number = self.brakes.fetch_add(1, Ordering::SeqCst) + 1;
        self.spawn(async move {
            vehicle
                .come_to_rest(channel, offboard, emergency, number, tell)
                .await
        });
        Braked::Sent(told)
    }

    fn rest(&self, emergency: bool) -> Mode {
        if emergency && self.config.estop == Estop::Land {
            Mode::Land
        } else {
            Mode::Hold
        }
    }

    async fn come_to_rest(
        self: Arc<Self>,
        channel: Channel,
        offboard: bool,
        emergency: bool,
        number: u64,
        tell: oneshot::Sender<Result<(), String>>,
    ) {
        let rest = self.rest(emergency);
        let command = || {
            if rest == Mode::Land {
                Command::Land
            } else {
                Command::Hold
            }
        };
        let zero = async {
            if offboard {
                // Without an answer Hold follows all the same.
                let _ = Command::Standstill.perform(channel.clone()).await;
            }
        };
        let (first, ()) = tokio::join!(command().perform(channel.clone()), zero);
        let _ = tell.send(first.map_err(|trouble| trouble.to_string()));
        // One at a time from here: a second brake joins the first one's watch when that is over.
        let _turn = self.braking.lock().await;
        let began = tokio::time::Instant::now();
        for _ in 0..4 {
            // A command that was sent before the brake may be carried out after it; then the brake is repeated.
            let mut under_way = self.under_way.subscribe();
            let quiet = tokio::time::timeout(Duration::from_secs(3), under_way.wait_for(|count| *count == 0));
            let _ = quiet.await.is_ok();
            // A call that began after the brake knows better: repeating Hold would end its landing.
            if self.overridden().is_some() || !lock(&self.control).still_wants(rest) {
                return;
            }
            let mut heard = self.heard.subscribe();
            let at_rest = heard.wait_for(|heard| heard.mode == Some(rest) || heard.armed == Some(false));
            let shown = tokio::time::timeout(self.clock.wall(Duration::from_millis(1500)), at_rest)
                .await
                .is_ok();
            if shown {
                break;
            }
            if !lock(&self.control).still_wants(rest) {
                return;
            }
            let again = command().perform(channel.clone()).await;
            tracing::warn!(vehicle = self.id, ?again, "the brake was repeated");
        }
        if emergency && rest == Mode::Hold {
            self.land_if_unstable(channel, began, number).await;
        }
    }

    async fn land_if_unstable(&self, channel: Channel, began: tokio::time::Instant, number: u64) {
        let until = began + self.clock.wall(Duration::from_secs(3));
        tokio::time::sleep_until(until).await;
        // Coming to rest takes a fast vehicle longer than 3 s; what counts is that it slows down.
        let speed = || self.heard.borrow().pose().map(|pose| pose.speed());
        let before = speed();
        self.clock.sleep(Duration::from_millis(500)).await;
        let heard = self.telemetry();
        if heard.armed == Some(false) || heard.on_ground() || self.overridden().is_some() {
            return;
        }
        let slowing = match (before, speed()) {
            (Some(before), Some(now)) => now < UNSTABLE_MPS || now < before * 0.9,
            _ => false,
        };
        let holds = heard.mode == Some(Mode::Hold);
        // A call since then knows better: land, rtl, or motion after an operator has lifted the latch.
        let others = {
            let control = lock(&self.control);
            control.safe_calls > 0 || control.motion_calls > 0 || !control.still_wants(Mode::Hold)
        };
        // A later brake watches for itself; this one would take what that one is just ending for instability.
        let superseded = self.brakes.load(Ordering::SeqCst) != number;
        if (holds && slowing) || others || superseded {
            return;
        }
        tracing::warn!(vehicle = self.id, "hold does not bring it to rest: it lands");
        lock(&self.control).want(Mode::Land);
        if let Err(trouble) = Command::Land.perform(channel).await {
            tracing::error!(vehicle = self.id, %trouble, "land after an emergency brake");
        }
    }
}

/// Brakes through a mavsdk_server that runs somewhere, knowing nothing: for a process that has just begun.
///
/// # Errors
/// The server does not answer, or the vehicle takes neither Hold nor Land.
///
/// # Cancel safety
/// Dropped, the commands may or may not have been sent.
pub(crate) async fn stop_from_nothing(address: &str) -> Result<(), String> {
    let endpoint =
        Endpoint::from_shared(address.to_string()).map_err(|error| format!("{address}: {error}"))?;
    let channel = endpoint
        .connect_timeout(Duration::from_millis(500))
        .timeout(Duration::from_secs(3))
        .connect()
        .await
        .map_err(|error| format!("{address}: {error}"))?;
    let standstill = SetVelocityBodyRequest {
        velocity_body_yawspeed: Some(VelocityBodyYawspeed::default()),
    };
    // It says no when offboard control is not active; Hold counts.
    let _ = OffboardServiceClient::new(channel.clone())
        .set_velocity_body(standstill)
        .await;
    let mut action = ActionServiceClient::new(channel);
    let held = action
        .hold(HoldRequest {})
        .await
        .map(|answer| answer.into_inner().action_result);
    if matches!(&held, Ok(Some(result)) if result.result == 1) {
        return Ok(());
    }
    let landed = action
        .land(LandRequest {})
        .await
        .map(|answer| answer.into_inner().action_result);
    match landed {
        Ok(Some(result)) if result.result == 1 => Ok(()),
        other => Err(format!(
            "the vehicle took neither hold ({held:?}) nor land ({other:?})"
        )),
    }
}
