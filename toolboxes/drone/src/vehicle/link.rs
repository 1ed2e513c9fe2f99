//! The way to a vehicle: programs, connection, recognition; and all of it again when it breaks.
//!
//! Owns what a vehicle's [`Link`] says. mavsdk_server opens its port only after it has heard an autopilot, so a refused
//! connection means "no vehicle yet". Read [`keep`].

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;
use tonic::transport::{Channel, Endpoint};

use super::process::Child;
use super::{Link, Reach, Vehicle, lock, prepare, programs, streams};
use crate::config::{Backend, Config, VehicleConfig};
use crate::mavsdk::info;
use crate::mavsdk::info::info_service_client::InfoServiceClient;

/// Waits between attempts: from this ...
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// ... doubling to this.
const LAST_WAIT: Duration = Duration::from_secs(3);
/// How often a server that starts is asked whether it has found the vehicle.
const POLL: Duration = Duration::from_millis(50);

/// Why a connection ended or did not come about.
enum Broken {
    /// A program is missing: only a person can help.
    Missing(String),
    /// Try again.
    Lost(String),
}

/// Keeps a vehicle connected. Returns only when the vehicle is not what the configuration says and the channel was given.
///
/// # Cancel safety
/// Dropped, the programs end and the connection closes.
pub(super) async fn keep(vehicle: Arc<Vehicle>, reach: Reach) {
    let mut wait = FIRST_WAIT;
    let mut simulator: Option<(Child, Ports)> = None;
    loop {
        let began = tokio::time::Instant::now();
        let broken = match &reach {
            Reach::Given(channel) => serve(&vehicle, channel.clone(), None, None).await,
            Reach::Configured => once(&vehicle, &mut simulator).await,
        };
        *lock(&vehicle.channel) = None;
        vehicle.heard.send_modify(|heard| heard.connected = false);
        match broken {
            Broken::Missing(why) => {
                vehicle.set_link(Link::Missing(why));
                wait = LAST_WAIT;
            }
            Broken::Lost(why) => {
                let was_up = matches!(vehicle.link(), Link::Up | Link::Lost(_));
                vehicle.set_link(if was_up {
                    Link::Lost(why)
                } else {
                    Link::Connecting(why)
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

/// What a vehicle's programs talk through.
#[derive(Clone)]
struct Ports {
    udp: u16,
    nonce: String,
    scene: PathBuf,
}

async fn once(vehicle: &Arc<Vehicle>, simulator: &mut Option<(Child, Ports)>) -> Broken {
    let mut scene = vehicle.own.scene_file.clone();
    let mut nonce = None;
    let mut url = vehicle.own.url.clone();
    if vehicle.config.backend == Backend::Px4Sim {
        if simulator.is_none() {
            match start_simulator(vehicle) {
                Ok(started) => *simulator = Some(started),
                Err(broken) => return broken,
            }
        }
        if let Some((_, ports)) = simulator {
            url = Some(format!("udpin://127.0.0.1:{}", ports.udp));
            nonce = Some(ports.nonce.clone());
            scene = scene.or_else(|| Some(ports.scene.clone()));
        }
    }
    let (address, mut server) = match &vehicle.own.address {
        Some(address) if vehicle.config.backend != Backend::Px4Sim => (address.clone(), None),
        _ => match start_server(vehicle, url.as_deref().unwrap_or_default()) {
            Ok((address, child)) => (address, Some(child)),
            Err(broken) => return broken,
        },
    };
    let channel = match Endpoint::from_shared(address.clone()) {
        Ok(endpoint) => endpoint
            .connect_timeout(Duration::from_secs(2))
            .tcp_nodelay(true)
            .http2_keep_alive_interval(Duration::from_secs(5))
            .connect_lazy(),
        Err(error) => return Broken::Missing(format!("vehicles: address {address}: {error}")),
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
        (why, simulator_ended) = ended => (Broken::Lost(why), simulator_ended),
        broken = serve(vehicle, channel, nonce, scene) => (broken, false),
    };
    if without_simulator {
        *simulator = None;
    }
    broken
}

fn start_simulator(vehicle: &Arc<Vehicle>) -> Result<(Child, Ports), Broken> {
    let program = programs::px4_sim(vehicle.config.px4_sim.as_deref()).map_err(Broken::Missing)?;
    let lost = |error: std::io::Error| Broken::Lost(format!("start {}: {error}", program.display()));
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
    ]
    .map(str::to_string)
    .to_vec();
    args.extend(simulator.args.iter().cloned());
    let child = Child::start(&vehicle.tasks, &program, &args, |_| {}).map_err(lost)?;
    Ok((child, Ports { udp, nonce, scene }))
}

/// A free port. Taken by somebody else before the server has it, the server is recognised as not ours and started anew.
fn free_port() -> std::io::Result<u16> {
    TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?
        .local_addr()
        .map(|address| address.port())
}

fn start_server(vehicle: &Arc<Vehicle>, url: &str) -> Result<(String, Child), Broken> {
    let program =
        programs::mavsdk_server(vehicle.config.mavsdk_server.as_deref()).map_err(Broken::Missing)?;
    let lost = |error: std::io::Error| Broken::Lost(format!("start {}: {error}", program.display()));
    let port = free_port().map_err(lost)?;
    tracing::warn!(
        vehicle = vehicle.id,
        port,
        "mavsdk_server listens on every interface, without a password: whoever reaches this port can fly the vehicle"
    );
    let child =
        Child::start(&vehicle.tasks, &program, &["-p", &port.to_string(), url], |_| {}).map_err(lost)?;
    Ok((format!("http://127.0.0.1:{port}"), child))
}

/// Brakes a vehicle through a server that is started for that alone.
///
/// # Errors
/// The server cannot be had, or the vehicle takes no command.
///
/// # Cancel safety
/// Dropped, the server ends.
pub(crate) async fn stop_through_own_server(config: &Config, own: &VehicleConfig) -> Result<(), String> {
    let program = programs::mavsdk_server(config.mavsdk_server.as_deref())?;
    let url = own.url.as_deref().unwrap_or_default();
    let port = free_port().map_err(|error| error.to_string())?;
    let tasks = TaskTracker::new();
    let mut child = Child::start(&tasks, &program, &["-p", &port.to_string(), url], |_| {})
        .map_err(|error| error.to_string())?;
    let address = format!("http://127.0.0.1:{port}");
    // The port opens with the first heartbeat, which comes once a second.
    let stopped = async {
        let mut last = String::new();
        for _ in 0..60 {
            match super::stop_from_nothing(&address, config.flight_limits.braking).await {
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

/// Recognises the vehicle and listens to it until the connection breaks.
async fn serve(
    vehicle: &Arc<Vehicle>,
    channel: Channel,
    nonce: Option<String>,
    scene: Option<PathBuf>,
) -> Broken {
    if let Err(broken) = greet(&channel).await {
        return broken;
    }
    match recognise(vehicle, &channel, nonce).await {
        Ok(Ok(())) => {}
        Ok(Err(why)) => {
            *lock(&vehicle.channel) = None;
            vehicle.set_link(Link::Untrusted(why));
            // Asked again only when this server goes away: it will not become another vehicle.
            return watch_untrusted(vehicle, channel).await;
        }
        Err(broken) => return broken,
    }
    *lock(&vehicle.channel) = Some(channel.clone());
    let mut heard = JoinSet::new();
    streams::listen(vehicle, &channel, &mut heard);
    if let Some(scene) = scene {
        heard.spawn(follow_file(Arc::clone(vehicle), scene));
    }
    heard.spawn(watch(Arc::clone(vehicle)));
    heard.spawn(prepare::prepare(Arc::clone(vehicle), channel.clone()));
    // The first stream to end ends them all: they end together when the server goes.
    loop {
        match heard.join_next().await {
            Some(Ok(Some(why))) => return Broken::Lost(why),
            Some(Err(error)) => return Broken::Lost(format!("a telemetry task: {error}")),
            Some(Ok(None)) => {}
            None => return Broken::Lost("nothing to listen to".to_string()),
        }
    }
}

/// Waits until mavsdk_server answers, which it does once it has heard the vehicle.
async fn greet(channel: &Channel) -> Result<(), Broken> {
    let mut client = InfoServiceClient::new(channel.clone());
    let mut connecting = Duration::ZERO;
    loop {
        match tokio::time::timeout(
            Duration::from_secs(3),
            client.get_version(info::GetVersionRequest {}),
        )
        .await
        {
            Ok(Ok(answer)) => match answer.into_inner().info_result {
                // 1 is success; 2 says that the vehicle has not told yet.
                Some(result) if result.result == 1 => return Ok(()),
                Some(_) | None => {}
            },
            Ok(Err(status)) if status.code() == tonic::Code::Unimplemented => {
                return Err(Broken::Lost(
                    "something else than mavsdk_server listens on this port".to_string(),
                ));
            }
            Ok(Err(_)) | Err(_) => {}
        }
        // Long enough for a server to start and hear a vehicle; then the programs are looked at again.
        connecting += POLL;
        if connecting > POLL * 600 {
            return Err(Broken::Lost(
                "no vehicle was heard: is it switched on, and is the URL right".to_string(),
            ));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Whether this is a vehicle that may be commanded.
async fn recognise(
    vehicle: &Vehicle,
    channel: &Channel,
    nonce: Option<String>,
) -> Result<Result<(), String>, Broken> {
    let Some(nonce) = nonce else {
        return Ok(Ok(()));
    };
    let mut client = InfoServiceClient::new(channel.clone());
    for _ in 0..40 {
        let asked = client.get_identification(info::GetIdentificationRequest {}).await;
        let answer = asked
            .map_err(|status| Broken::Lost(status.message().to_string()))?
            .into_inner();
        if let (Some(1), Some(identity)) = (
            answer.info_result.map(|result| result.result),
            answer.identification,
        ) {
            let uid = format!("{:016x}", identity.legacy_uid);
            let ours = uid == nonce || identity.hardware_uid.to_lowercase().contains(&nonce);
            return Ok(if ours {
                Ok(())
            } else {
                Err(format!(
                    "{}: this is not the simulator that was started (its id is {uid}): a vehicle that was not recognised \
                     counts as real and is not commanded; backend `sitl` or `vehicle` is for those",
                    vehicle.id
                ))
            });
        }
        tokio::time::sleep(POLL).await;
    }
    Err(Broken::Lost("the vehicle does not say who it is".to_string()))
}

async fn watch_untrusted(vehicle: &Arc<Vehicle>, channel: Channel) -> Broken {
    let mut client = InfoServiceClient::new(channel);
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if client.get_version(info::GetVersionRequest {}).await.is_err() {
            vehicle.set_link(Link::Connecting("the unknown vehicle is gone".to_string()));
            return Broken::Lost("the unknown vehicle is gone".to_string());
        }
    }
}

/// Tells by the silence that the link is lost, and by the next word that it is back.
async fn watch(vehicle: Arc<Vehicle>) -> Option<String> {
    loop {
        let link_ok = vehicle.heard.borrow().link_ok();
        match (vehicle.link(), link_ok) {
            (Link::Up, false) => vehicle.set_link(Link::Lost("the vehicle has fallen silent".to_string())),
            (Link::Connecting(_) | Link::Lost(_) | Link::Missing(_) | Link::Untrusted(_), true) => {
                vehicle.set_link(Link::Up)
            }
            _ => {}
        }
        tokio::time::sleep(POLL).await;
    }
}

/// How often a scene file is looked at.
const FILE: Duration = Duration::from_millis(20);

/// Feeds the scene store from a file that somebody replaces.
async fn follow_file(vehicle: Arc<Vehicle>, path: PathBuf) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let mut last = None;
    loop {
        let look = path.clone();
        let before = last;
        // A file system may take its time.
        let read = tokio::task::spawn_blocking(move || {
            let found = look.metadata().ok()?;
            let stamp = (found.ino(), found.mtime(), found.mtime_nsec(), found.len());
            (before != Some(stamp)).then(|| (stamp, crate::scene::read(&look)))
        });
        if let Ok(Some((stamp, scene))) = read.await {
            last = Some(stamp);
            if let Some(Err(error)) = scene.map(|scene| vehicle.see(scene)) {
                tracing::warn!(file = %path.display(), %error, "a scene was refused");
            }
        }
        tokio::time::sleep(FILE).await;
    }
}
