//! Asking the vehicle for its present flight mode.
//!
//! PX4 reports its mode with its heartbeat, once a second, and refuses another interval: a takeover may be a second old
//! before it is known. PX4 answers a request for a heartbeat at once, and before it carries out a command that arrives
//! later. Therefore a call waits for the mode before it commands, and requests the mode again right before each
//! command. The second request shows a takeover that happened in between: the command has overridden that takeover, and
//! the call sends no further one. A switch between the second request and the command shows in neither: for that the
//! armed vehicle is asked to report its mode every 20 ms, and the mode is given back. Read [`Vehicle::await_mode`].

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ovos_toolbox_sdk::prelude::*;
use tokio::time::Instant;
use tonic::transport::Channel;

use super::command::{Command, Trouble};
use super::open_commands::OpenCommand;
use super::unit::Vehicle;
use crate::guard::{Mode, Refusal, refuse};
use crate::mavsdk::mavlink_direct::mavlink_direct_service_client::MavlinkDirectServiceClient;
use crate::mavsdk::mavlink_direct::{MavlinkMessage, SendMessageRequest};

/// A command does not request the mode again if the last report is younger than this: the guards have requested it
/// right before the first command of a call.
const FRESH: Duration = Duration::from_millis(20);
/// How long a safe call waits for the answer. It then commands without one: a vehicle has to land, whatever it reports.
const SAFE_PATIENCE: Duration = Duration::from_millis(300);
/// How long a motion call waits for the answer; without one it is refused. Modes are reported once a second, even by a
/// vehicle that does not answer requests.
const MOTION_PATIENCE: Duration = Duration::from_millis(1500);
/// A safe call does not wait again for a vehicle that did not answer within this time.
const UNANSWERED_FOR: Duration = Duration::from_secs(1);
/// How long sending the request may take.
const SEND_LIMIT: Duration = Duration::from_secs(1);

/// How long mavsdk_server may take to carry a command out after the time limit of its request, which is longer than one of
/// its two steps takes: each is tried for 2 s, and may wait for another command of the same number for as long.
const LATE_ANSWER_LIMIT: Duration = Duration::from_secs(5);

// MAVLink's numbers.
/// The component that is the autopilot.
pub(super) const AUTOPILOT: u32 = 1;
/// The command that requests a message once.
const REQUEST_MESSAGE: u32 = 512;
/// The message with the flight mode that every vehicle sends.
const HEARTBEAT: f64 = 0.0;
/// The command that sets how often a message is sent, in microseconds; 0 is the vehicle's own interval.
const SET_MESSAGE_INTERVAL: u32 = 511;
/// The message with nothing but the flight mode.
const CURRENT_MODE: f64 = 436.0;
/// The command that selects a flight mode.
const SET_MODE: u32 = 176;
/// Bits of the first parameter of [`SET_MODE`]: the second one names the mode, and the vehicle is armed.
const CUSTOM_MODE: f64 = 1.0;
const ARMED: f64 = 128.0;
/// Time within which an overridden pilot's mode is given back; later, another party may have selected the mode.
const GIVE_BACK_LIMIT: Duration = Duration::from_millis(1500);

impl Vehicle {
    /// Waits until the vehicle reports its mode as it is now. A takeover that it shows is known when this returns.
    ///
    /// # Errors
    /// For a motion call: the mode was not reported.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn await_mode(&self, effect: Effect) -> Result<(), Refusal> {
        let start = Instant::now();
        let motion = effect == Effect::Motion;
        let waited = self
            .mode_unanswered
            .lock()
            .is_some_and(|at| at + UNANSWERED_FOR > start);
        // Without a link the guards refuse.
        if waited && !motion || !self.is_heard() {
            return Ok(());
        }
        let patience = if motion { MOTION_PATIENCE } else { SAFE_PATIENCE };
        let mut reports = self.heard.subscribe();
        let reported = reports.wait_for(|telemetry| telemetry.mode_at.is_some_and(|at| at >= start));
        let reported = after(self.request_mode(self.channel()), reported);
        // mavsdk_server and the radio run in real time; a simulation may be slower.
        let reported = tokio::time::timeout(patience.max(self.clock.wall(patience)), reported).await;
        let unanswered = reported.is_err();
        if unanswered && motion {
            return refuse(
                "stale_telemetry",
                "the vehicle has not reported its flight mode for 1.5 s, so a pilot may be flying it: check the link, then try again",
            );
        }
        *self.mode_unanswered.lock() = unanswered.then(Instant::now);
        Ok(())
    }

    /// Waits for the mode like `await_mode`, right before a command; does nothing if the vehicle has just
    /// reported it.
    ///
    /// # Errors
    /// As [`Self::await_mode`].
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn await_mode_again(&self, effect: Effect) -> Result<(), Refusal> {
        let heard_at = self.heard.borrow().mode_at;
        match heard_at.is_some_and(|at| at + FRESH > Instant::now()) {
            true => Ok(()),
            false => self.await_mode(effect).await,
        }
    }

    /// Sends a command, and right before it a request for the mode that the command ends. The command stays open as long
    /// as mavsdk_server has not answered, also past the time limit of the request.
    ///
    /// # Errors
    /// Like [`Command::perform`].
    ///
    /// # Cancel safety
    /// Like [`Command::perform`].
    pub(super) async fn perform(
        self: &Arc<Self>,
        command: Command,
        channel: Channel,
        open: Option<OpenCommand>,
    ) -> Result<(), Trouble> {
        let (vehicle, unanswered, limit) = (Arc::clone(self), command.unanswered(), command.limit());
        let taken_over = command.takes_control().then(|| channel.clone());
        let mut answer =
            Box::pin(async move { after(vehicle.request_mode(taken_over), command.answered(channel)).await });
        if let Ok(done) = tokio::time::timeout(limit, &mut answer).await {
            return done;
        }
        self.spawn(async move {
            let answer = tokio::time::timeout(LATE_ANSWER_LIMIT, answer).await;
            tracing::debug!(?answer, "the answer to a command came late, or never");
            drop(open);
        });
        Err(unanswered)
    }

    /// Requests a heartbeat; it comes with the telemetry. Does nothing until the vehicle's number is known.
    async fn request_mode(&self, channel: Option<Channel>) {
        if let Some(channel) = channel {
            self.command_long(&channel, REQUEST_MESSAGE, [HEARTBEAT, 0.0, 0.0])
                .await;
        }
    }

    /// Asks the vehicle to report its mode at this interval; `None` is the vehicle's own interval.
    pub(super) async fn request_modes(&self, channel: &Channel, every: Option<Duration>) {
        let microseconds = every.map_or(0.0, |every| every.as_secs_f64() * 1e6);
        self.command_long(channel, SET_MESSAGE_INTERVAL, [CURRENT_MODE, microseconds, 0.0])
            .await;
    }

    /// Gives the vehicle back to a pilot whose mode a command of ours has ended: the pilot's switch came between the
    /// vehicle's report of its mode and the command. Does nothing if the pilot still flies, or if an operator or an
    /// emergency stop commands the vehicle by then.
    pub(super) async fn give_back(self: Arc<Self>, mode: Mode) {
        let Some(number) = mode.manual_number() else {
            return;
        };
        let commands = self.mode_commands.load(Ordering::SeqCst);
        let until = Instant::now() + GIVE_BACK_LIMIT.max(self.clock.wall(GIVE_BACK_LIMIT));
        let mut open = self.open_commands.subscribe();
        // The command may not have arrived yet; its answer comes after the change of mode.
        let quiet = open.wait_for(|open| !open.leads());
        let _ = tokio::time::timeout_at(until, quiet).await.is_ok();
        let Some(channel) = self.channel() else { return };
        let start = Instant::now();
        self.request_mode(Some(channel.clone())).await;
        let mut reports = self.heard.subscribe();
        let reported = reports.wait_for(|telemetry| telemetry.mode_at.is_some_and(|at| at >= start));
        // Without an answer to that request, what was heard last counts.
        let _ = tokio::time::timeout_at(until, reported).await.is_ok();
        let ended = self.heard.borrow().mode;
        let ours = ended.is_some_and(|mode| !mode.is_manual() && mode != Mode::Unknown);
        let others = {
            let control = self.control.lock();
            control.overridden().is_none() || control.safe_calls > 0 || control.stops
        };
        if !ours || others || self.mode_commands.load(Ordering::SeqCst) != commands {
            return;
        }
        tracing::warn!(
            vehicle = self.id,
            mode = mode.name(),
            "the vehicle is given back to the pilot"
        );
        self.log.write(
            "give_back",
            || json!({"vehicle": self.id, "mode": mode, "instead_of": ended}),
        );
        let base_mode = match self.heard.borrow().armed {
            Some(true) => CUSTOM_MODE + ARMED,
            _ => CUSTOM_MODE,
        };
        self.command_long(&channel, SET_MODE, [base_mode, f64::from(number), 0.0])
            .await;
    }

    /// Sends a `COMMAND_LONG` beside MAVSDK's own commands, and waits for no answer of the vehicle. Does nothing until the vehicle's
    /// number is known.
    async fn command_long(&self, channel: &Channel, command: u32, params: [f64; 3]) {
        let Some(system) = self.heard.borrow().system else {
            return;
        };
        let fields = json!({
            "target_system": system, "target_component": AUTOPILOT, "command": command, "confirmation": 0,
            "param1": params[0], "param2": params[1], "param3": params[2],
            "param4": 0.0, "param5": 0.0, "param6": 0.0, "param7": 0.0,
        });
        let message = MavlinkMessage {
            message_name: "COMMAND_LONG".to_string(),
            fields_json: fields.to_string(),
            ..MavlinkMessage::default()
        };
        let request = SendMessageRequest {
            message: Some(message),
        };
        let mut client = MavlinkDirectServiceClient::new(channel.clone());
        // An older server has no such request, and the mode is then as old as its last report.
        let _ = tokio::time::timeout(SEND_LIMIT, client.send_message(request)).await;
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
