//! A fake MAVSDK in this process: the services that the toolbox uses, around the vehicle model of px4-sim.
//!
//! Time is tokio's, so that a flight takes no real time on a paused clock. The fake repeats the last setpoint twenty
//! times a second until the mode is left, whether or not its client lives, as mavsdk_server does. Other tests check
//! that the real server behaves like this fake. Read [`FakeMavsdk`].

#[path = "fake_mavsdk/action.rs"]
mod action;
#[path = "fake_mavsdk/events.rs"]
mod events;
#[path = "fake_mavsdk/mission.rs"]
mod mission;
#[path = "fake_mavsdk/offboard.rs"]
mod offboard;
#[path = "fake_mavsdk/rest.rs"]
mod rest;
#[path = "fake_mavsdk/telemetry.rs"]
mod telemetry;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use hyper_util::rt::TokioIo;
use parking_lot::{Mutex, MutexGuard};
use px4_sim::vehicle::{Notice, Photo, Setpoint};
use px4_sim::{Ack, Mode, Quirk, Vehicle};
use tokio::sync::{broadcast, mpsc};
use tonic::transport::{Channel, Endpoint, Server, Uri};
use tonic::{Response, Status};

use drone::mavsdk;

/// Step of the vehicle model, seconds; two of its own steps.
const TICK_S: f64 = 0.02;
/// Interval at which mavsdk_server repeats setpoints, seconds.
const REPEAT_S: f64 = 0.05;
/// Interval at which PX4 reports its mode with its intention by itself, seconds.
const MODES_S: f64 = 2.0;
/// How long it continues after a start in another mode, seconds.
const GRACE_S: f64 = 3.0;

/// When the vehicle reports its flight mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "each test uses a part")]
pub(crate) enum ModeReports {
    /// Once a second, and when it is asked for a heartbeat.
    Asked,
    /// Once a second.
    Timed,
    /// Not at all.
    Missing,
}

/// The state shared by the services.
pub(crate) struct Sim {
    pub(crate) vehicle: Vehicle,
    /// The vehicle's identification.
    pub(crate) uid: u64,
    /// Whether the server's camera plugin runs; after the first request it asks every component with a heartbeat, for
    /// ever.
    pub(crate) asks_for_cameras: bool,
    /// Whether the vehicle reports its health.
    pub(crate) tells_health: bool,
    pub(crate) mode_reports: ModeReports,
    /// How long requests and commands take to reach the vehicle, seconds.
    pub(crate) delay_s: f64,
    /// How much longer commands take than requests, seconds: a pilot may take over in between.
    pub(crate) command_delay_s: f64,
    /// Interval at which the vehicle reports its mode with its intention (`CURRENT_MODE`), seconds; `None`: an older one.
    pub(crate) modes_every_s: Option<f64>,
    /// Whether the link is down in both directions.
    pub(crate) silent: bool,
    /// Error of the vehicle's height estimate, metres. PX4 resets home at take-off, so this shows as a height above
    /// home on the ground but not in the air.
    pub(crate) height_error_m: f64,
    /// Reported batteries instead of the vehicle's own: id and percent. `None`: none of any.
    pub(crate) batteries: Option<Vec<(u32, f64)>>,
    /// Whether acknowledgements are lost: commands are carried out, and MAVSDK reports a timeout.
    pub(crate) unacknowledged: bool,
    /// The next request of this name is held back before its last step, for this many seconds: mavsdk_server serves
    /// requests side by side, keeps a command back while another of its number is unacknowledged, and sends a goto only
    /// from the acknowledgement of its switch to Hold (`ActionImpl::goto_location_async`,
    /// `MavlinkCommandSender::do_work`; MAVSDK 158e339).
    pub(crate) held_back: Option<(&'static str, f64)>,
    /// When the last step of a request that was held back reached the vehicle.
    pub(crate) late_step_at: Option<f64>,
    setpoint: Option<Setpoint>,
    started: f64,
    heartbeat_due: f64,
    repeat_due: f64,
    texts: broadcast::Sender<(u8, String)>,
    /// The modes in the heartbeats that were asked for.
    asked_modes: broadcast::Sender<Mode>,
    photos: broadcast::Sender<Photo>,
    mission_starts: Vec<usize>,
}

/// The fake, cheap to clone.
#[derive(Clone)]
pub(crate) struct FakeMavsdk {
    sim: Arc<Mutex<Sim>>,
}

type Answered<T> = Result<Response<T>, Status>;
type Told<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl FakeMavsdk {
    /// Starts the services around this vehicle; its time begins now, with tokio's.
    ///
    /// The tasks end with the runtime.
    pub(crate) fn start(vehicle: Vehicle) -> Self {
        let fake = Self {
            sim: Arc::new(Mutex::new(Sim {
                vehicle,
                uid: px4_sim::link::SITL_UID,
                asks_for_cameras: false,
                tells_health: true,
                mode_reports: ModeReports::Asked,
                delay_s: 0.0,
                command_delay_s: 0.0,
                modes_every_s: Some(MODES_S),
                silent: false,
                height_error_m: 0.0,
                batteries: Some(Vec::new()),
                unacknowledged: false,
                held_back: None,
                late_step_at: None,
                setpoint: None,
                started: f64::NEG_INFINITY,
                heartbeat_due: 0.0,
                repeat_due: 0.0,
                texts: broadcast::channel(256).0,
                asked_modes: broadcast::channel(256).0,
                photos: broadcast::channel(16).0,
                mission_starts: Vec::new(),
            })),
        };
        let ticking = fake.clone();
        tokio::spawn(async move {
            let mut clock = tokio::time::interval(Duration::from_secs_f64(TICK_S));
            loop {
                clock.tick().await;
                ticking.lock().advance();
            }
        });
        fake
    }

    /// Locks the vehicle and its surroundings.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Sim> {
        self.sim.lock()
    }

    /// A gRPC connection over an in-memory pipe.
    pub(crate) fn channel(&self) -> Channel {
        let (accept, accepted) = mpsc::channel(4);
        let incoming = stream::unfold(accepted, |mut accepted| async move {
            let pipe: tokio::io::DuplexStream = accepted.recv().await?;
            Some((Ok::<_, std::io::Error>(pipe), accepted))
        });
        let server = Server::builder()
            .add_service(mavsdk::core::core_service_server::CoreServiceServer::new(
                self.clone(),
            ))
            .add_service(mavsdk::info::info_service_server::InfoServiceServer::new(
                self.clone(),
            ))
            .add_service(mavsdk::action::action_service_server::ActionServiceServer::new(
                self.clone(),
            ))
            .add_service(mavsdk::offboard::offboard_service_server::OffboardServiceServer::new(self.clone()))
            .add_service(mavsdk::mission::mission_service_server::MissionServiceServer::new(self.clone()))
            .add_service(mavsdk::geofence::geofence_service_server::GeofenceServiceServer::new(self.clone()))
            .add_service(mavsdk::camera::camera_service_server::CameraServiceServer::new(
                self.clone(),
            ))
            .add_service(mavsdk::events::events_service_server::EventsServiceServer::new(
                self.clone(),
            ))
            .add_service(
                mavsdk::mavlink_direct::mavlink_direct_service_server::MavlinkDirectServiceServer::new(
                    self.clone(),
                ),
            )
            .add_service(mavsdk::param::param_service_server::ParamServiceServer::new(
                self.clone(),
            ))
            .add_service(
                mavsdk::telemetry::telemetry_service_server::TelemetryServiceServer::new(self.clone()),
            )
            .serve_with_incoming(Box::pin(incoming));
        tokio::spawn(async move {
            server.await.expect("the in-process server runs");
        });
        let connect = tower::service_fn(move |_: Uri| {
            let accept = accept.clone();
            async move {
                let (ours, theirs) = tokio::io::duplex(1 << 16);
                let gone = |_| std::io::Error::other("the in-process server is gone");
                accept.send(theirs).await.map_err(gone)?;
                Ok::<_, std::io::Error>(TokioIo::new(ours))
            }
        });
        Endpoint::from_static("http://in.process").connect_with_connector_lazy(connect)
    }

    /// Waits as long as a message to the vehicle takes.
    async fn delay(&self) {
        let seconds = self.lock().delay_s;
        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    }

    /// Runs the last step of a request, later if it is held back, and whether or not the client still waits: the server
    /// does not end a request whose client is gone.
    async fn last_step<T: Send + 'static>(
        &self,
        request: &str,
        step: impl FnOnce(&mut Sim) -> T + Send + 'static,
    ) -> T {
        let held_back = self.lock().held_back.take_if(|(name, _)| *name == request);
        let Some((_, seconds)) = held_back else {
            return step(&mut self.lock());
        };
        let fake = self.clone();
        let late = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
            // Tried four times, half a second apart.
            for _ in 0..3 {
                if fake.lock().reachable() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            let mut sim = fake.lock();
            sim.late_step_at = sim.reachable().then(|| sim.vehicle.time());
            step(&mut sim)
        });
        late.await.expect("a step does not panic")
    }

    /// A stream that reads the vehicle every `slow` seconds, or ten times a second without the quirk.
    fn every<T: Send + 'static>(
        &self,
        slow: f64,
        read: impl Fn(&Sim) -> Option<T> + Send + Sync + 'static,
    ) -> Told<T> {
        let seconds = if self.lock().vehicle.quirks.has(Quirk::SlowStreams) {
            slow
        } else {
            slow.min(0.1)
        };
        let clock = tokio::time::interval(Duration::from_secs_f64(seconds));
        let sim = self.clone();
        let ticks = stream::unfold(clock, |mut clock| async move {
            clock.tick().await;
            Some(((), clock))
        });
        Box::pin(ticks.filter_map(move |()| {
            let sim = sim.lock();
            let item = if sim.silent { None } else { read(&sim) };
            std::future::ready(item.map(Ok))
        }))
    }
}

/// Turns a broadcast into a stream; missed messages are lost.
fn change_stream<S: Clone + Send + 'static, T: Send + 'static>(
    receiver: broadcast::Receiver<S>,
    make: impl Fn(S) -> T + Send + Copy + 'static,
) -> Told<T> {
    Box::pin(stream::unfold(receiver, move |mut receiver| async move {
        loop {
            match receiver.recv().await {
                Ok(item) => return Some((Ok(make(item)), receiver)),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }))
}

impl Sim {
    fn advance(&mut self) {
        let now = self.vehicle.time();
        if now >= self.heartbeat_due && !self.silent {
            self.heartbeat_due = now + 1.0;
            self.hear_heartbeat();
        }
        if self.setpoint.is_some() && now >= self.repeat_due {
            self.repeat_due = now + REPEAT_S;
            self.repeat();
        }
        if !self.silent {
            self.vehicle.hear_station();
        }
        for _ in 0..2 {
            self.vehicle.step(TICK_S / 2.0);
        }
        for notice in self.vehicle.take_notices() {
            if self.silent {
                continue;
            }
            // There may be no receiver.
            match notice {
                Notice::Text(severity, text) => drop(self.texts.send((severity, text))),
                Notice::Photo(photo) => drop(self.photos.send(photo)),
                Notice::Reached(_) => {}
            }
        }
    }

    /// Reboots the autopilot; the server continues with the same vehicle.
    #[allow(dead_code, reason = "each test uses a part")]
    pub(crate) fn reboot(&mut self) {
        self.vehicle.reboot();
        (self.heartbeat_due, self.repeat_due, self.started) = (0.0, 0.0, f64::NEG_INFINITY);
        self.setpoint = None;
    }

    fn repeat(&mut self) {
        if let Some(setpoint) = self.setpoint
            && !self.silent
        {
            self.vehicle.take_setpoint(setpoint);
        }
    }

    /// With each heartbeat the server checks whether the vehicle is still in offboard mode. A vehicle that left it long
    /// ago, or was never told to start, gets no more setpoints.
    fn hear_heartbeat(&mut self) {
        let late = self.vehicle.time() - self.started > GRACE_S;
        if self.vehicle.mode() != Mode::Offboard && late {
            self.setpoint = None;
        }
    }

    /// Whether a command gets through; over a lost link it fails after the server's timeout.
    fn reachable(&self) -> bool {
        !self.silent
    }
}

/// The result of a command in MAVSDK's enums: success, denied, timeout.
fn verdict(ack: Ack) -> (i32, &'static str) {
    match ack {
        Ack::Accepted => (1, "Success"),
        Ack::Denied | Ack::TemporarilyRejected => (5, "Command Denied"),
        Ack::Unsupported => (12, "Unsupported"),
        Ack::Failed => (13, "Failed"),
    }
}
