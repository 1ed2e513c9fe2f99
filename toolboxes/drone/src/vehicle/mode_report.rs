//! Asking the vehicle for its present flight mode.
//!
//! PX4 reports its mode with its heartbeat, once a second, and refuses another interval: a takeover may be a second old
//! before it is known. PX4 answers a request for a heartbeat at once, and before it carries out a command that arrives
//! later. Therefore a call waits for the mode before it commands, and requests the mode again right before each
//! command. The second request shows a takeover that happened in between: the command has overridden that takeover, and
//! the call sends no further one. Read [`Vehicle::hear_mode`].

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use ovos_toolbox_sdk::prelude::*;
use tokio::time::Instant;
use tonic::transport::Channel;

use super::{Command, Trouble, Vehicle, lock};
use crate::guard::{Refusal, refuse};
use crate::mavsdk::mavlink_direct::mavlink_direct_service_client::MavlinkDirectServiceClient;
use crate::mavsdk::mavlink_direct::{MavlinkMessage, SendMessageRequest};

/// A command does not request the mode again if the last report is younger than this: the guards have requested it
/// right before the first command of a call.
const FRESH: Duration = Duration::from_millis(20);
/// How long a safe call waits for the answer. It then commands without one: a vehicle has to land, whatever it reports.
const SAFE_WAITS: Duration = Duration::from_millis(300);
/// How long a motion call waits for the answer; without one it is refused. Modes are reported once a second, even by a
/// vehicle that does not answer requests.
const MOTION_WAITS: Duration = Duration::from_millis(1500);
/// A safe call does not wait again for a vehicle that did not answer within this time.
const UNANSWERED: Duration = Duration::from_secs(1);
/// Time limit of sending the request.
const SENT: Duration = Duration::from_secs(1);

/// MAVLink's numbers: the autopilot's component, the command that requests a message, and the message.
pub(super) const AUTOPILOT: u32 = 1;
const REQUEST_MESSAGE: u32 = 512;
const HEARTBEAT: f64 = 0.0;

impl Vehicle {
    /// Waits until the vehicle reports its mode as it is now. A takeover that it shows is known when this returns.
    ///
    /// # Errors
    /// For a motion call: the mode was not reported.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn hear_mode(&self, effect: Effect) -> Result<(), Refusal> {
        let asked = Instant::now();
        let motion = effect == Effect::Motion;
        let waited = lock(&self.mode_unanswered).is_some_and(|at| at + UNANSWERED > asked);
        // Without a link the guards refuse.
        if waited && !motion || !self.is_heard() {
            return Ok(());
        }
        let waits = if motion { MOTION_WAITS } else { SAFE_WAITS };
        let mut heard = self.heard.subscribe();
        let reported = heard.wait_for(|heard| heard.mode_at.is_some_and(|at| at >= asked));
        let reported = after(self.request_mode(self.channel()), reported);
        // mavsdk_server and the radio run in real time; a simulation may be slower.
        let reported = tokio::time::timeout(waits.max(self.clock.wall(waits)), reported).await;
        let unanswered = reported.is_err();
        if unanswered && motion {
            return refuse(
                "stale_telemetry",
                "the vehicle has not reported its flight mode for 1.5 s: a pilot may fly it",
            );
        }
        *lock(&self.mode_unanswered) = unanswered.then(Instant::now);
        Ok(())
    }

    /// Waits for the mode like `hear_mode`, right before a command; does nothing if the vehicle has just
    /// reported it.
    ///
    /// # Errors
    /// As [`Self::hear_mode`].
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn hear_mode_again(&self, effect: Effect) -> Result<(), Refusal> {
        let heard_at = self.heard.borrow().mode_at;
        match heard_at.is_some_and(|at| at + FRESH > Instant::now()) {
            true => Ok(()),
            false => self.hear_mode(effect).await,
        }
    }

    /// Sends a command, and right before it a request for the mode that the command ends.
    ///
    /// # Errors
    /// Like [`Command::perform`].
    ///
    /// # Cancel safety
    /// Like [`Command::perform`].
    pub(super) async fn perform(&self, command: Command, channel: Channel) -> Result<(), Trouble> {
        let asked = command.takes_control().then(|| channel.clone());
        after(self.request_mode(asked), command.perform(channel)).await
    }

    /// Sends the request; the answer comes with the telemetry. Does nothing until the vehicle's number is known.
    async fn request_mode(&self, channel: Option<Channel>) {
        let system = self.heard.borrow().system;
        let (Some(channel), Some(system)) = (channel, system) else {
            return;
        };
        let fields = json!({
            "target_system": system, "target_component": AUTOPILOT, "command": REQUEST_MESSAGE, "confirmation": 0,
            "param1": HEARTBEAT, "param2": 0.0, "param3": 0.0, "param4": 0.0, "param5": 0.0, "param6": 0.0, "param7": 0.0,
        });
        let message = MavlinkMessage {
            message_name: "COMMAND_LONG".to_string(),
            fields_json: fields.to_string(),
            ..MavlinkMessage::default()
        };
        let request = SendMessageRequest {
            message: Some(message),
        };
        let mut client = MavlinkDirectServiceClient::new(channel);
        // An older server has no such request, and the mode is then as old as its last report.
        let _ = tokio::time::timeout(SENT, client.send_message(request)).await;
    }
}

/// Starts the two futures in this order, and ends when the second one ends.
async fn after<T>(first: impl Future<Output = ()>, second: impl Future<Output = T>) -> T {
    let first = async {
        first.await;
        pending::<Infallible>().await
    };
    tokio::select! {
        biased;
        never = first => match never {},
        done = second => done,
    }
}
