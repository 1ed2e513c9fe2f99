//! `px4-sim`: a simulated PX4 vehicle for mavsdk_server, and `px4-sim scene`: perception for a vehicle in another
//! simulation. Handles arguments and signals; the library does the rest.

use std::{net::SocketAddr, path::PathBuf, str::FromStr, time::Duration};

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use px4_sim::{
    Home, Quirks, Vehicle, World,
    feeder::Feeder,
    serve::{Options, ServeError, Simulator},
};
use tokio::net::UdpSocket;
use tokio_util::sync::CancellationToken;

/// A simulated PX4 vehicle on MAVLink, including the quirks of the real one.
///
/// Prints one JSON line when it is ready, and runs until it is stopped or idle.
#[derive(Debug, Parser)]
#[command(name = "px4-sim", version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Where mavsdk_server listens (its udpin:// address)
    #[arg(long, default_value = "127.0.0.1:14540")]
    udp: SocketAddr,
    /// The vehicle's uid, sixteen hex digits; by default that of PX4's own simulation
    #[arg(long, value_parser = nonce)]
    nonce: Option<u64>,
    /// File to which the camera's detections are written ten times a second
    #[arg(long)]
    scene_file: Option<PathBuf>,
    /// How many times faster than real time, 0.1 to 20
    #[arg(long, default_value_t = 1.0, value_parser = speed)]
    speed: f64,
    /// Home as LAT,LON,ALT; degrees, metres above sea level
    #[arg(long, value_parser = home)]
    home: Option<Home>,
    /// all, none, or names with commas; -name after all switches one off
    #[arg(long, default_value = "all", value_parser = Quirks::from_str, allow_hyphen_values = true)]
    quirks: Quirks,
    /// Ends after this long on the ground without a MAVLink message
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    exit_when_idle: Option<Duration>,
    /// Stands still after this long on the ground without a MAVLink message, until one arrives
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pause_when_idle: Option<Duration>,
    /// Seed of the random drift; random by default
    #[arg(long)]
    seed: Option<u64>,
    /// Objects and obstacles, JSON; see the README
    #[arg(long)]
    world: Option<PathBuf>,
    /// Address of the control channel, loopback only
    #[arg(long)]
    control: Option<SocketAddr>,
    /// A vehicle without a camera, like PX4's own simulation
    #[arg(long)]
    no_camera: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Writes the detections of placed objects for a vehicle in another simulation
    Scene(SceneArguments),
}

#[derive(Debug, Args)]
struct SceneArguments {
    /// Address at which poses arrive: port 19410 for PX4's SIH (true pose), 14550 for any PX4 (estimate)
    #[arg(long, default_value = "127.0.0.1:19410")]
    listen: SocketAddr,
    /// The file to write; `scene_file` of the vehicle in the toolbox's configuration
    #[arg(long)]
    scene_file: PathBuf,
    /// Objects and obstacles, JSON; see the README
    #[arg(long)]
    world: Option<PathBuf>,
    /// Origin of the objects as LAT,LON,ALT; by default the vehicle's first position
    #[arg(long, value_parser = home)]
    home: Option<Home>,
}

fn nonce(text: &str) -> Result<u64, String> {
    if text.len() != 16 {
        return Err("expected sixteen hex digits".to_owned());
    }
    u64::from_str_radix(text, 16).map_err(|error| error.to_string())
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(factor) if (0.1..=20.0).contains(&factor) => Ok(factor),
        _ => Err("expected a number from 0.1 to 20".to_owned()),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: Option<f64> = text.parse().ok();
    number
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "expected a number of seconds from 0".to_owned())
}

fn home(text: &str) -> Result<Home, String> {
    let numbers: Result<Vec<f64>, _> = text.split(',').map(|part| part.trim().parse()).collect();
    match numbers.as_deref() {
        Ok([lat, lon, alt]) if lat.abs() < 89.0 && lon.abs() <= 180.0 && alt.is_finite() => Ok(Home {
            lat: *lat,
            lon: *lon,
            alt: *alt,
        }),
        _ => Err("expected LAT,LON,ALT, for example 47.397742,8.545594,488".to_owned()),
    }
}

fn world(path: Option<&PathBuf>) -> anyhow::Result<World> {
    let Some(path) = path else {
        return Ok(World::default());
    };
    let text = std::fs::read_to_string(path).with_context(|| format!("read world {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("parse world {}", path.display()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let arguments = Arguments::parse();
    let stop = CancellationToken::new();
    if let Some(Command::Scene(arguments)) = arguments.command {
        let feeder = Feeder::new(world(arguments.world.as_ref())?, arguments.home);
        let socket = UdpSocket::bind(arguments.listen)
            .await
            .with_context(|| format!("listen for the vehicle's pose on {}", arguments.listen))?;
        tracing::info!(listen = %arguments.listen, file = %arguments.scene_file.display(), "waiting for the vehicle's pose");
        return until_signalled(feeder.run(socket, arguments.scene_file, stop.clone()), stop).await;
    }
    let mut random = arguments
        .seed
        .map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
    let mut vehicle = Vehicle::new(
        arguments.home.unwrap_or_default(),
        arguments.quirks,
        world(arguments.world.as_ref())?,
    )
    .seeded(random.u64(..));
    vehicle.payload.present = !arguments.no_camera;
    let options = Options {
        udp: arguments.udp,
        nonce: arguments.nonce.unwrap_or(px4_sim::link::SITL_UID),
        scene_file: arguments.scene_file,
        speed: arguments.speed,
        exit_when_idle: arguments.exit_when_idle,
        pause_when_idle: arguments.pause_when_idle,
        control: arguments.control,
    };
    let simulator = Simulator::open(options, vehicle).await?;
    announce(&simulator);
    until_signalled(simulator.run(stop.clone()), stop).await
}

/// Ends when the work ends, or cleanly at Ctrl-C.
async fn until_signalled(
    work: impl Future<Output = Result<(), ServeError>>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    tokio::pin!(work);
    tokio::select! {
        ended = &mut work => return Ok(ended?),
        _ = tokio::signal::ctrl_c() => stop.cancel(),
    }
    Ok(work.await?)
}

#[allow(clippy::print_stdout, reason = "the line is what the program is asked for")]
fn announce(simulator: &Simulator) {
    println!("{}", simulator.ready());
}
