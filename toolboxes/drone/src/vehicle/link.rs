//! The connection to a vehicle: programs, channel, recognition, and reconnection.
//!
//! Owns a vehicle's [`Link`]. mavsdk_server opens its port only after it has heard an autopilot, so a refused
//! connection means "no vehicle yet". Read [`keep`].

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;
use tonic::transport::{Channel, Endpoint};

use super::link_state::Link;
use super::process::Child;
use super::recognise::{ExpectedVehicle, recognise};
use super::unit::Vehicle;
use super::{prepare, programs, streams};
use crate::config::{Backend, Config, VehicleConfig};
use crate::mavsdk::info;
use crate::mavsdk::info::info_service_client::InfoServiceClient;

/// How to reach mavsdk_server.
pub(crate) enum Reach {
    /// Through a server that we start, or at the configured address.
    Configured,
    /// Through a given channel.
    Given(Channel),
}

impl Vehicle {
    /// Connects and keeps the connection until [`Vehicle::close`].
    pub(crate) fn start(self: &Arc<Self>, reach: Reach) {
        let vehicle = Arc::clone(self);
        self.spawn(async move { keep(vehicle, reach).await });
    }
}

/// The first wait between attempts ...
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// ... doubles up to this.
const LAST_WAIT: Duration = Duration::from_secs(3);
/// Interval of asking a starting server whether it has found the vehicle.
const POLL: Duration = Duration::from_millis(50);

/// After this long without telemetry the vehicle is reported missing.
const ABSENT: Duration = Duration::from_secs(3);
/// A server that has heard nothing for this long is restarted.
const GREET: Duration = Duration::from_secs(30);
/// The limit for a simulator that the toolbox started: it sends a heartbeat each second.
const GREET_SIMULATOR: Duration = Duration::from_secs(10);

/// Why a connection failed or ended.
enum LinkFailure {
    /// A program is missing: retrying does not help.
    Missing(String),
    /// Retrying may help.
    Lost(String),
}

/// Keeps a vehicle connected. Returns only when the channel was given and the vehicle is not what the configuration
/// says.
///
/// # Cancel safety
/// When dropped, the programs end and the connection closes.
pub(super) async fn keep(vehicle: Arc<Vehicle>, reach: Reach) {
    let mut wait = FIRST_WAIT;
    let mut simulator: Option<(Child, Ports)> = None;
    loop {
        let began = tokio::time::Instant::now();
        let broken = match &reach {
            Reach::Given(channel) => {
                let expected = ExpectedVehicle::of(vehicle.config.backend);
                Some(serve(&vehicle, channel.clone(), expected, None).await)
            }
            Reach::Configured => connect_once(&vehicle, &mut simulator).await,
        };
        *vehicle.channel.lock() = None;
        vehicle.heard.send_modify(|heard| {
            heard.connected = false;
            heard.forget_health();
        });
        match broken {
            None => {
                vehicle.set_link(Link::Asleep);
                vehicle.attention.woken().await;
                wait = FIRST_WAIT;
                continue;
            }
            Some(LinkFailure::Missing(why)) => {
                vehicle.set_link(Link::Missing(why));
                wait = LAST_WAIT;
            }
            Some(LinkFailure::Lost(why)) => {
                vehicle.set_link(match vehicle.link() {
                    Link::Up | Link::Lost(_) => Link::Lost(why),
                    Link::Absent(_) => Link::Absent(why),
                    _ => Link::Connecting(why),
                });
            }
        }
        if began.elapsed() > Duration::from_secs(20) {
            wait = FIRST_WAIT;
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LAST_WAIT);
    }
}

/// What px4-sim and mavsdk_server of one vehicle share: MAVLink port, nonce, and scene file.
#[derive(Clone)]
struct Ports {
    udp: u16,
    nonce: String,
    scene: PathBuf,
}

/// Connects once; returns when the connection ends, with `None` if it ends because no call needs the vehicle. The
/// simulator stays: it keeps the state of its vehicle.
async fn connect_once(vehicle: &Arc<Vehicle>, simulator: &mut Option<(Child, Ports)>) -> Option<LinkFailure> {
    let mut scene = vehicle.own.scene_file.clone();
    let mut expected = ExpectedVehicle::of(vehicle.config.backend);
    let mut url = vehicle.own.url.clone();
    if vehicle.config.backend == Backend::Px4Sim {
        if simulator.is_none() {
            match start_simulator(vehicle) {
                Ok(started) => *simulator = Some(started),
                Err(broken) => return Some(broken),
            }
        }
        if let Some((_, ports)) = simulator {
            url = Some(format!("udpin://127.0.0.1:{}", ports.udp));
            expected = ExpectedVehicle::Ours(ports.nonce.clone());
            scene = scene.or_else(|| Some(ports.scene.clone()));
        }
    }
    let (address, mut server) = match &vehicle.own.address {
        Some(address) if vehicle.config.backend != Backend::Px4Sim => (address.clone(), None),
        _ => match start_server(vehicle, url.as_deref().unwrap_or_default()) {
            Ok((address, child)) => (address, Some(child)),
            Err(broken) => return Some(broken),
        },
    };
    let channel = match Endpoint::from_shared(address.clone()) {
        Ok(endpoint) => endpoint
            .connect_timeout(Duration::from_secs(2))
            .tcp_nodelay(true)
            .http2_keep_alive_interval(Duration::from_secs(5))
            .connect_lazy(),
        Err(error) => {
            return Some(LinkFailure::Missing(format!(
                "vehicles: address {address}: {error}"
            )));
        }
    };
    let ended = async {
        let server = async {
            match &mut server {
                Some(child) => child.ended().await,
                None => std::future::pending().await,
            }
        };
        let simulated = async {
            match simulator.as_mut() {
                Some((child, _)) => child.ended().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            why = server => (why, false),
            why = simulated => (why, true),
        }
    };
    let (broken, without_simulator) = tokio::select! {
        (why, simulator_ended) = ended => (LinkFailure::Lost(why), simulator_ended),
        broken = serve(vehicle, channel, expected, scene) => (broken, false),
        () = vehicle.unneeded() => return None,
    };
    if without_simulator {
        *simulator = None;
    }
    Some(broken)
}

fn start_simulator(vehicle: &Arc<Vehicle>) -> Result<(Child, Ports), LinkFailure> {
    let program = programs::px4_sim(vehicle.config.px4_sim.as_deref()).map_err(LinkFailure::Missing)?;
    let lost = |error: std::io::Error| LinkFailure::Lost(format!("start {}: {error}", program.display()));
    let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|socket| socket.local_addr())
        .map_err(lost)?
        .port();
    let folder = std::env::temp_dir();
    let nonce = format!("{:016x}", uuid::Uuid::new_v4().as_u64_pair().0);
    let scene = folder.join(format!("px4-sim-scene-{}-{nonce}.json", std::process::id()));
    let simulator = &vehicle.config.simulator;
    let [lat, lon, alt] = simulator.home;
    let mut args: Vec<String> = [
        "--udp",
        &format!("127.0.0.1:{udp}"),
        "--nonce",
        &nonce,
        "--scene-file",
        &scene.to_string_lossy(),
        "--speed",
        &simulator.speed.to_string(),
        &format!("--home={lat},{lon},{alt}"),
        "--quirks",
        &simulator.quirks,
        "--pause-when-idle",
        "2",
    ]
    .map(str::to_string)
    .to_vec();
    args.extend(simulator.args.iter().cloned());
    let child = Child::start_with_file(&vehicle.tasks, &program, &args, &scene, |_| {}).map_err(lost)?;
    Ok((child, Ports { udp, nonce, scene }))
}

/// A free port. If another program takes it before the server does, recognition fails and the server is restarted.
fn free_port() -> std::io::Result<u16> {
    TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?
        .local_addr()
        .map(|address| address.port())
}

fn start_server(vehicle: &Arc<Vehicle>, url: &str) -> Result<(String, Child), LinkFailure> {
    let program =
        programs::mavsdk_server(vehicle.config.mavsdk_server.as_deref()).map_err(LinkFailure::Missing)?;
    let lost = |error: std::io::Error| LinkFailure::Lost(format!("start {}: {error}", program.display()));
    let port = free_port().map_err(lost)?;
    tracing::info!(vehicle = vehicle.id, port, "mavsdk_server is started");
    vehicle.port_warned.call_once(|| {
        tracing::warn!(
            vehicle = vehicle.id,
            "mavsdk_server listens on every interface, without a password: any program that reaches its port can fly the vehicle"
        );
    });
    let child =
        Child::start(&vehicle.tasks, &program, &["-p", &port.to_string(), url], |_| {}).map_err(lost)?;
    Ok((format!("http://127.0.0.1:{port}"), child))
}

/// Brakes a vehicle through a server started only for that.
///
/// # Errors
/// The server does not start, or the vehicle accepts no command.
///
/// # Cancel safety
/// When dropped, the server ends.
pub(crate) async fn stop_through_own_server(config: &Config, own: &VehicleConfig) -> Result<(), String> {
    let program = programs::mavsdk_server(config.mavsdk_server.as_deref())?;
    let url = own.url.as_deref().unwrap_or_default();
    let port = free_port().map_err(|error| error.to_string())?;
    let tasks = TaskTracker::new();
    let mut child = Child::start(&tasks, &program, &["-p", &port.to_string(), url], |_| {})
        .map_err(|error| error.to_string())?;
    let address = format!("http://127.0.0.1:{port}");
    // The port opens with the first heartbeat; heartbeats come once a second.
    let stopped = async {
        let mut last = String::new();
        for _ in 0..60 {
            match super::orphan::stop_from_nothing(&address, &own.id, config).await {
                Ok(()) => return Ok(()),
                Err(why) => last = why,
            }
            tokio::time::sleep(POLL).await;
        }
        Err(last)
    };
    tokio::select! {
        stopped = stopped => stopped,
        why = child.ended() => Err(why),
    }
}

/// Recognises the vehicle and reads its telemetry until the connection breaks.
async fn serve(
    vehicle: &Arc<Vehicle>,
    channel: Channel,
    expected: ExpectedVehicle,
    scene: Option<PathBuf>,
) -> LinkFailure {
    if let Err(broken) = greet(vehicle, &channel).await {
        return broken;
    }
    match judge(vehicle, &channel, &expected).await {
        Ok(true) => {}
        // The vehicle is not checked again as long as this server runs: the server's vehicle does not change.
        Ok(false) => return watch_untrusted(vehicle, channel).await,
        Err(broken) => return broken,
    }
    let mut reports = JoinSet::new();
    streams::listen(vehicle, &channel, &mut reports);
    if let Some(scene) = scene {
        reports.spawn(follow_file(Arc::clone(vehicle), scene));
    }
    reports.spawn(watch(Arc::clone(vehicle), channel, expected));
    // When one stream ends the others end too: the server has gone.
    loop {
        match reports.join_next().await {
            Some(Ok(Some(why))) => return LinkFailure::Lost(why),
            Some(Err(error)) => return LinkFailure::Lost(format!("a telemetry task: {error}")),
            Some(Ok(None)) => {}
            None => return LinkFailure::Lost("nothing to listen to".to_string()),
        }
    }
}

/// Recognises the vehicle; commands can be sent only after `true`.
async fn judge(
    vehicle: &Vehicle,
    channel: &Channel,
    expected: &ExpectedVehicle,
) -> Result<bool, LinkFailure> {
    match recognise(channel, expected).await.map_err(LinkFailure::Lost)? {
        Ok(()) => {
            vehicle.recognised(expected.simulated());
            *vehicle.channel.lock() = Some(channel.clone());
            Ok(true)
        }
        Err(why) => {
            vehicle.recognised(false);
            *vehicle.channel.lock() = None;
            vehicle.set_link(Link::Untrusted(format!("{}: {why}", vehicle.id)));
            Ok(false)
        }
    }
}

/// Waits until mavsdk_server answers, which it does after the vehicle's first heartbeat.
async fn greet(vehicle: &Vehicle, channel: &Channel) -> Result<(), LinkFailure> {
    let mut client = InfoServiceClient::new(channel.clone());
    let began = tokio::time::Instant::now();
    let limit = match vehicle.config.backend {
        Backend::Px4Sim => GREET_SIMULATOR,
        _ => GREET,
    };
    let nothing = || {
        let place = vehicle.own.url.as_ref().or(vehicle.own.address.as_ref());
        let place = place.map_or(String::new(), |place| format!(" at {place}"));
        format!(
            "no vehicle was heard{place}: is it switched on, or its simulation started, and is the address right"
        )
    };
    loop {
        let asked = client.get_version(info::GetVersionRequest {});
        match tokio::time::timeout(ABSENT, asked).await {
            Ok(Ok(answer)) => {
                let answer = answer.into_inner();
                // 1 is success; 2 means that the vehicle has not sent its version yet.
                if answer.info_result.is_some_and(|result| result.result == 1) {
                    *vehicle.version.lock() = answer.version.map(|version| {
                        let info::Version {
                            flight_sw_major: major,
                            flight_sw_minor: minor,
                            flight_sw_patch: patch,
                        } = version;
                        format!("{major}.{minor}.{patch}")
                    });
                    return Ok(());
                }
            }
            Ok(Err(status)) if status.code() == tonic::Code::Unimplemented => {
                return Err(LinkFailure::Lost(
                    "something other than mavsdk_server listens on this port".to_string(),
                ));
            }
            Ok(Err(_)) | Err(_) => {}
        }
        if began.elapsed() >= ABSENT && matches!(vehicle.link(), Link::Connecting(_)) {
            vehicle.set_link(Link::Absent(nothing()));
        }
        // Long enough for a server to start and hear a vehicle. Then the programs are restarted: a server does not open
        // a serial port that appears later.
        if began.elapsed() > limit {
            return Err(LinkFailure::Lost(nothing()));
        }
        tokio::time::sleep(POLL).await;
    }
}

async fn watch_untrusted(vehicle: &Arc<Vehicle>, channel: Channel) -> LinkFailure {
    let mut client = InfoServiceClient::new(channel);
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if client.get_version(info::GetVersionRequest {}).await.is_err() {
            vehicle.set_link(Link::Connecting(
                "the unidentified vehicle disconnected".to_string(),
            ));
            return LinkFailure::Lost("the unidentified vehicle disconnected".to_string());
        }
    }
}

/// Detects a lost link by silence, its return by the next message, and a restart of the vehicle even without silence. A
/// restarted vehicle may be another one: it is recognised and prepared again before any command.
async fn watch(vehicle: Arc<Vehicle>, channel: Channel, expected: ExpectedVehicle) -> Option<String> {
    let mut preparing = JoinSet::new();
    let mut boots = vehicle.heard.borrow().boots;
    preparing.spawn(prepare::prepare(Arc::clone(&vehicle), channel.clone()));
    loop {
        let (link_ok, restarted) = {
            let telemetry = vehicle.heard.borrow();
            (telemetry.link_ok(), telemetry.boots != boots)
        };
        match (vehicle.link(), link_ok) {
            (Link::Up, true) if restarted => lose(&vehicle, &expected, "the vehicle has restarted"),
            (Link::Up, false) => lose(&vehicle, &expected, "the vehicle has fallen silent"),
            (Link::Up, true) => {}
            (Link::Lost(_), true) => {
                boots = vehicle.heard.borrow().boots;
                match judge(&vehicle, &channel, &expected).await {
                    Ok(true) => {}
                    Ok(false) => return Some("a different vehicle connected".to_string()),
                    Err(LinkFailure::Lost(why) | LinkFailure::Missing(why)) => return Some(why),
                }
                preparing.abort_all();
                preparing.spawn(prepare::prepare(Arc::clone(&vehicle), channel.clone()));
                vehicle.set_link(Link::Up);
            }
            (_, true) => vehicle.set_link(Link::Up),
            (_, false) => {}
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Marks the link as lost. A vehicle that has to be recognised gets no commands until it is recognised again.
fn lose(vehicle: &Vehicle, expected: &ExpectedVehicle, why: &str) {
    if expected.simulated() {
        *vehicle.channel.lock() = None;
    }
    vehicle
        .heard
        .send_modify(super::telemetry::Telemetry::forget_health);
    vehicle.set_link(Link::Lost(why.to_string()));
}

/// Polling interval of a scene file.
const FILE: Duration = Duration::from_millis(20);

/// Feeds the scene store from a file that its writer replaces.
async fn follow_file(vehicle: Arc<Vehicle>, path: PathBuf) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let mut last = None;
    loop {
        let look = path.clone();
        let before = last;
        // Reading may block, so it runs outside the async tasks.
        let read = tokio::task::spawn_blocking(move || {
            let found = look.metadata().ok()?;
            let stamp = (found.ino(), found.mtime(), found.mtime_nsec(), found.len());
            (before != Some(stamp)).then(|| (stamp, crate::scene::read(&look)))
        });
        if let Ok(Some((stamp, scene))) = read.await {
            last = Some(stamp);
            if let Some(Err(error)) = scene.map(|scene| vehicle.see(scene)) {
                tracing::warn!(file = %path.display(), %error, "ignored invalid vision data");
            }
        }
        tokio::time::sleep(FILE).await;
    }
}
