//! Runs a vehicle with a clock, a UDP socket, a scene file and a control channel.
//!
//! One task owns the vehicle, so that nothing needs a lock. Start with [`Simulator::run`].

use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream, UdpSocket},
    sync::{mpsc, oneshot},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    control::{self, Effect},
    link::{Link, frame},
    params::Param,
    scene::Scene,
    vehicle::{Landed, Vehicle},
};

/// Interval of the clock.
const TICK: Duration = Duration::from_millis(5);
/// Longest step with which the vehicle's loops are stable, simulated seconds.
const STEP_S: f64 = 0.01;
/// Interval of the heartbeats of a simulator that stands still: by one of them a starting mavsdk_server finds it.
const BEAT: Duration = Duration::from_millis(200);
/// Interval of the scene file.
pub(crate) const SCENE: Duration = Duration::from_millis(100);
/// Queued requests of the control channel; each connection has at most one.
const REQUESTS: usize = 16;
/// Greatest length of a line on the control channel, bytes.
const LINE: u64 = 64 * 1024;

/// Options of a simulator.
#[derive(Debug, Clone)]
pub struct Options {
    /// Address at which mavsdk_server listens.
    pub udp: SocketAddr,
    /// The vehicle's uid.
    pub nonce: u64,
    /// File of the perception feed.
    pub scene_file: Option<PathBuf>,
    /// Simulated seconds per real second.
    pub speed: f64,
    /// Ends after this long on the ground without a MAVLink message.
    pub exit_when_idle: Option<Duration>,
    /// Stands still after this long on the ground without a MAVLink message: its time stops, and it sends heartbeats
    /// alone until a message arrives.
    pub pause_when_idle: Option<Duration>,
    /// Address of the control channel; loopback only.
    pub control: Option<SocketAddr>,
}

/// A simulator with its sockets open.
pub struct Simulator {
    options: Options,
    vehicle: Vehicle,
    link: Link,
    socket: UdpSocket,
    control: Option<TcpListener>,
    encoder: frame::Encoder,
    heard: Instant,
    scene_due: Instant,
    scene_frozen: bool,
}

/// Why the simulator could not start or had to end.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The control address is not a loopback address.
    #[error("control address {0} is not a loopback address: use 127.0.0.1:PORT")]
    NotLoopback(SocketAddr),
    /// A socket could not be opened.
    #[error("open socket for {what}: {source}")]
    Socket {
        /// The socket's purpose.
        what: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// The scene file could not be written.
    #[error("write scene file {path}: {source}")]
    Scene {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

type Line = (String, oneshot::Sender<Value>);

impl Simulator {
    /// Opens the sockets.
    ///
    /// # Errors
    /// A socket cannot be opened, or the control address is not a loopback address.
    ///
    /// # Cancel safety
    /// Leaves nothing behind.
    pub async fn open(options: Options, mut vehicle: Vehicle) -> Result<Self, ServeError> {
        // mavsdk_server repeats setpoints in real time, so the timeout is in real time, too.
        let patience = vehicle.params.float("COM_OF_LOSS_T") * options.speed.max(1.0);
        // The parameter exists and is a float.
        let _ = vehicle.params.set("COM_OF_LOSS_T", Param::Float(patience as f32));
        let any: SocketAddr = if options.udp.is_ipv4() {
            ([127, 0, 0, 1], 0).into()
        } else {
            (std::net::Ipv6Addr::LOCALHOST, 0).into()
        };
        let from: SocketAddr = if options.udp.ip().is_loopback() {
            any
        } else {
            ([0, 0, 0, 0], 0).into()
        };
        let failed = |what| move |source| ServeError::Socket { what, source };
        let socket = UdpSocket::bind(from).await.map_err(failed("mavlink"))?;
        let control = match options.control {
            Some(address) if !address.ip().is_loopback() => return Err(ServeError::NotLoopback(address)),
            Some(address) => Some(TcpListener::bind(address).await.map_err(failed("control"))?),
            None => None,
        };
        let now = Instant::now();
        Ok(Self {
            link: Link::new(options.nonce),
            options,
            vehicle,
            socket,
            control,
            encoder: frame::Encoder::default(),
            heard: now,
            scene_due: now,
            scene_frozen: false,
        })
    }

    /// What the starting program needs: ports, nonce and process id.
    #[must_use]
    pub fn ready(&self) -> Value {
        let local = self.socket.local_addr().ok();
        let control = self
            .control
            .as_ref()
            .and_then(|listener| listener.local_addr().ok());
        serde_json::json!({
            "ready": true,
            "udp": self.options.udp.to_string(),
            "udp_port": self.options.udp.port(),
            "local_udp_port": local.map(|address| address.port()),
            "control": control.map(|address| address.to_string()),
            "control_port": control.map(|address| address.port()),
            "nonce": format!("{:016x}", self.options.nonce),
            "pid": std::process::id(),
            "scene_file": self.options.scene_file,
            "speed": self.options.speed,
        })
    }

    /// Runs until it is told to quit, is idle for too long, or `stop` is cancelled.
    ///
    /// # Errors
    /// The scene file cannot be written.
    ///
    /// # Cancel safety
    /// The vehicle ends with the future.
    pub async fn run(mut self, stop: CancellationToken) -> Result<(), ServeError> {
        let (lines, mut requests) = mpsc::channel::<Line>(REQUESTS);
        let tracker = TaskTracker::new();
        let over = stop.child_token();
        let _end_tasks = over.clone().drop_guard();
        if let Some(listener) = self.control.take() {
            tracker.spawn(accept(listener, lines, tracker.clone(), over.clone()));
        }
        let mut last = Instant::now();
        let mut due = last;
        let mut datagram = [0; 2048];
        self.heard = last;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                received = self.socket.recv_from(&mut datagram) => {
                    // An error here means that a sent datagram was refused: mavsdk_server is not listening yet.
                    if let Ok((length, _)) = received {
                        self.heard = Instant::now();
                        due = due.min(self.heard + TICK);
                        self.vehicle.log.unix = unix_now();
                        for (header, message) in frame::decode(&datagram[..length]) {
                            self.link.handle(&mut self.vehicle, header, &message);
                        }
                        self.flush().await;
                    }
                }
                Some((line, reply)) = requests.recv() => {
                    self.vehicle.log.unix = unix_now();
                    let (value, effect) = control::answer(&mut self.vehicle, &mut self.link, &line);
                    let _ = reply.send(value);
                    match effect {
                        Some(Effect::FreezeScene(frozen)) => self.scene_frozen = frozen,
                        Some(Effect::Speed(factor)) => self.options.speed = factor,
                        Some(Effect::Quit) => return Ok(()),
                        None => {}
                    }
                }
                () = tokio::time::sleep_until(due) => {
                    let now = Instant::now();
                    // Simulates all of the elapsed time, so that the vehicle's time keeps up on a busy machine: clients
                    // depend on it. Waiting messages are handled first, so that they do not count as silence. After a
                    // suspend at most half a second counts, so that the vehicle does not jump.
                    let passed = now.duration_since(last).as_secs_f64().min(0.5);
                    last = now;
                    self.vehicle.log.unix = unix_now();
                    if self.unheard_for(self.options.pause_when_idle) {
                        self.link.beat(&self.vehicle);
                        self.flush().await;
                        due = now + BEAT;
                    } else {
                        self.advance(passed * self.options.speed).await;
                        self.write_scene(now)?;
                        due = Instant::now() + TICK;
                    }
                    if self.unheard_for(self.options.exit_when_idle) {
                        tracing::info!("no MAVLink message arrives on the ground: the simulator ends");
                        return Ok(());
                    }
                }
            }
        }
    }

    async fn advance(&mut self, mut seconds: f64) {
        while seconds > 0.0 {
            let step = seconds.min(STEP_S);
            self.vehicle.step(step);
            self.link.poll(&mut self.vehicle);
            self.flush().await;
            seconds -= step;
        }
    }

    async fn flush(&mut self) {
        for outgoing in self.link.take() {
            let bytes = self.encoder.encode(&outgoing);
            // A failure to send is no error: the vehicle flies on without a listener.
            let _ = self.socket.send_to(&bytes, self.options.udp).await;
        }
    }

    fn write_scene(&mut self, now: Instant) -> Result<(), ServeError> {
        let Some(path) = self.options.scene_file.as_ref().filter(|_| !self.scene_frozen) else {
            return Ok(());
        };
        if now < self.scene_due {
            return Ok(());
        }
        self.scene_due = now + SCENE;
        let scene = Scene::of(&self.vehicle, unix_now());
        scene.write(path).map_err(|source| ServeError::Scene {
            path: path.clone(),
            source,
        })
    }

    /// Whether it stands disarmed on the ground and no MAVLink message has arrived for this long.
    fn unheard_for(&self, patience: Option<Duration>) -> bool {
        let landed = self.vehicle.landed() == Landed::OnGround && !self.vehicle.armed();
        landed && patience.is_some_and(|patience| self.heard.elapsed() > patience)
    }
}

pub(crate) fn unix_now() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}

async fn accept(
    listener: TcpListener,
    lines: mpsc::Sender<Line>,
    tracker: TaskTracker,
    stop: CancellationToken,
) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else { return };
        let (lines, stop) = (lines.clone(), stop.clone());
        tracker.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                ended = converse(stream, lines) => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "a control connection ended");
                    }
                }
            }
        });
    }
}

async fn converse(mut stream: TcpStream, lines: mpsc::Sender<Line>) -> io::Result<()> {
    let (read, mut write) = stream.split();
    let mut read = BufReader::new(read);
    loop {
        let mut line = String::new();
        let mut limited = tokio::io::AsyncReadExt::take(&mut read, LINE);
        if limited.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let (reply, answer) = oneshot::channel();
        if lines.send((line, reply)).await.is_err() {
            return Ok(());
        }
        let Ok(value) = answer.await else { return Ok(()) };
        let mut text = value.to_string();
        text.push('\n');
        write.write_all(text.as_bytes()).await?;
    }
}
