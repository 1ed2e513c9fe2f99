//! Stopping a vehicle whose toolbox process has died, from a fresh process without its state.
//!
//! It checks telemetry first: a vehicle that stands, lands, returns or is flown by a pilot is left alone. Read
//! [`stop_from_nothing`].

use std::time::Duration;

use futures_util::StreamExt as _;
use ovos_toolbox_sdk::serde_json::{Value, json};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tonic::transport::{Channel, Endpoint};

use super::command::{Command, Trouble};
use super::log_line::Asker;
use super::recognise::{ExpectedVehicle, recognise};
use super::rest::stop_place;
use crate::clock::Clock;
use crate::config::Config;
use crate::geo::Ned;
use crate::guard::{Braking, Mode};
use crate::mavsdk::telemetry;
use crate::mavsdk::telemetry::telemetry_service_client::TelemetryServiceClient;
use crate::run_log::RunLog;

/// How long it collects telemetry; mode and armed state come once a second. A vehicle without telemetry is stopped.
const LOOK: Duration = Duration::from_millis(1200);
/// The origin of the commands: the only brake of this process has the number 1.
const BRAKE: Asker<'static> = Asker::Brake(1);
/// Time limit of writing the run log afterwards, whatever the disk does.
const WRITTEN: Duration = Duration::from_millis(500);

/// The collected telemetry.
struct OrphanState {
    mode: Option<Mode>,
    armed: Option<bool>,
    /// Latitude, longitude, metres above sea level.
    place: Option<(f64, f64, f64)>,
    velocity: Option<Ned>,
}

/// Brakes vehicle `id` through a running mavsdk_server, for a process that has just started, unless the vehicle stands,
/// lands, returns or is flown by a pilot. A vehicle that is not what the backend says gets no command. The commands go
/// into a run log of its own.
///
/// # Errors
/// The server does not answer, or the vehicle is not recognised, or accepts neither Hold nor Land.
///
/// # Cancel safety
/// When dropped, the commands may or may not have been sent.
pub(crate) async fn stop_from_nothing(address: &str, id: &str, config: &Config) -> Result<(), String> {
    let endpoint =
        Endpoint::from_shared(address.to_string()).map_err(|error| format!("{address}: {error}"))?;
    let channel = endpoint
        .connect_timeout(Duration::from_millis(500))
        .timeout(Duration::from_secs(3))
        .connect()
        .await
        .map_err(|error| format!("{address}: {error}"))?;
    let expected = ExpectedVehicle::of(config.backend);
    let (seen, recognised) = tokio::join!(read_state(&channel), recognise(&channel, &expected));
    match recognised {
        Ok(Ok(())) => {}
        Ok(Err(why)) | Err(why) => return Err(why),
    }
    let story = Story::new(id);
    let stopped = stop(&story, &seen, channel, config.flight_limits.braking).await;
    story.write(config).await;
    stopped
}

async fn stop(
    story: &Story<'_>,
    seen: &OrphanState,
    channel: Channel,
    braking: Braking,
) -> Result<(), String> {
    let mut request =
        json!({"vehicle": story.id, "emergency": true, "asked_by": "the end of the process that flew it"});
    if let Some(why) = seen.leave_alone() {
        tracing::info!(vehicle = story.id, why, "no commands are sent to the vehicle");
        request["nothing_sent"] = json!(why);
        story.log_line("brake", request);
        return Ok(());
    }
    request["brake"] = json!(1);
    story.log_line("brake", request);
    let zero = async {
        if seen.mode.is_none_or(|mode| mode == Mode::Offboard) {
            // Fails when offboard control is not active; only Hold counts.
            let _ = story.perform(Command::Standstill, channel.clone()).await;
        }
    };
    let stop = async {
        match seen.stop(braking) {
            Some(stop) => story.perform(stop, channel.clone()).await,
            None => Ok(()),
        }
    };
    let (held, (), stopped) = tokio::join!(story.perform(Command::Hold, channel.clone()), zero, stop);
    let Err(trouble) = held.and(stopped) else {
        return Ok(());
    };
    story
        .perform(Command::Land, channel)
        .await
        .map_err(|landed| format!("the vehicle took neither hold ({trouble}) nor land ({landed})"))
}

/// The lines of the run log, written only after the vehicle is stopped.
struct Story<'a> {
    id: &'a str,
    clock: Clock,
    lines: Mutex<Vec<(&'static str, Value)>>,
}

impl<'a> Story<'a> {
    fn new(id: &'a str) -> Self {
        Self {
            id,
            clock: Clock::new(1.0),
            lines: Mutex::default(),
        }
    }

    fn log_line(&self, kind: &'static str, mut line: Value) {
        line["ts"] = json!(self.clock.unix());
        self.lines.lock().push((kind, line));
    }

    async fn perform(&self, command: Command, channel: Channel) -> Result<(), Trouble> {
        self.log_line("command", BRAKE.command(self.id, &command));
        let done = command.clone().perform(channel).await;
        self.log_line("ack", BRAKE.ack(self.id, &command, &done));
        done
    }

    /// Writes the lines to a file of their own, and waits for the disk at most [`WRITTEN`].
    async fn write(self, config: &Config) {
        let Some(folder) = config.run_log.clone() else {
            return;
        };
        let (lines, clock) = (std::mem::take(&mut *self.lines.lock()), self.clock);
        let (acknowledge, acknowledgement) = oneshot::channel();
        // A separate thread, because the runtime waits for its blocking threads when it ends.
        std::thread::spawn(move || {
            let written = RunLog::open(&folder, clock).map(|log| {
                for (kind, line) in lines {
                    log.write(kind, || line);
                }
                log.close();
            });
            let _ = acknowledge.send(written);
        });
        let written = tokio::time::timeout(WRITTEN, acknowledgement).await;
        if !matches!(written, Ok(Ok(Ok(())))) {
            tracing::warn!(
                vehicle = self.id,
                ?written,
                "the run log of the stop was not written"
            );
        }
    }
}

impl OrphanState {
    /// The reason to send nothing, if there is one.
    fn leave_alone(&self) -> Option<&'static str> {
        if self.armed == Some(false) {
            return Some("it is disarmed");
        }
        match self.mode? {
            Mode::Land => Some("it lands"),
            Mode::ReturnToLaunch => Some("it returns"),
            mode if mode.is_manual() => Some("a pilot flies it"),
            _ => None,
        }
    }

    /// The command that ends a flight to a position in mode Hold, where another Hold has no effect. That flight may have
    /// begun just now, so that the vehicle is still slow.
    fn stop(&self, braking: Braking) -> Option<Command> {
        let (place, velocity) = (self.place?, self.velocity?);
        let in_hold = self.mode.is_none_or(|mode| mode == Mode::Hold);
        in_hold.then(|| stop_place(place, velocity, 0.0, braking))
    }
}

/// Collects the first message of each stream; a new subscription is answered with one.
async fn read_state(channel: &Channel) -> OrphanState {
    macro_rules! first {
        ($method:ident, $request:expr, |$message:ident| $read:expr) => {
            async {
                let mut client = TelemetryServiceClient::new(channel.clone());
                let first = async {
                    let mut stream = client.$method($request).await.ok()?.into_inner();
                    while let Some(Ok($message)) = stream.next().await {
                        let read = $read;
                        if read.is_some() {
                            return read;
                        }
                    }
                    None
                };
                tokio::time::timeout(LOOK, first).await.ok().flatten()
            }
        };
    }
    let mode = first!(
        subscribe_flight_mode,
        telemetry::SubscribeFlightModeRequest {},
        |message| Some(Mode::of(message.flight_mode)).filter(|mode| *mode != Mode::Unknown)
    );
    let armed = first!(subscribe_armed, telemetry::SubscribeArmedRequest {}, |message| {
        Some(message.is_armed)
    });
    let place = first!(
        subscribe_position,
        telemetry::SubscribePositionRequest {},
        |message| {
            let position = message.position;
            position
                .map(|place| {
                    (
                        place.latitude_deg,
                        place.longitude_deg,
                        f64::from(place.absolute_altitude_m),
                    )
                })
                .filter(|(lat, lon, amsl_m)| lat.is_finite() && lon.is_finite() && amsl_m.is_finite())
        }
    );
    let velocity = first!(
        subscribe_position_velocity_ned,
        telemetry::SubscribePositionVelocityNedRequest {},
        |message| {
            let velocity = message.position_velocity_ned.and_then(|both| both.velocity);
            velocity
                .map(|v| [v.north_m_s, v.east_m_s, v.down_m_s].map(f64::from))
                .filter(|velocity| velocity.iter().all(|part| part.is_finite()))
        }
    );
    let (mode, armed, place, velocity) = tokio::join!(mode, armed, place, velocity);
    OrphanState {
        mode,
        armed,
        place,
        velocity,
    }
}
