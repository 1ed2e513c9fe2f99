//! The embedded bus, for a machine without ovos-messagebus.
//!
//! Behaves on the wire as the Python bus does: greets a new client, relays every text frame to all clients, the
//! sender included, and interprets no topics. It differs where the Python bus lets one client harm others: it bounds
//! the number of clients, the queue of a slow one and what they have not finished, lets no web page in, and drops frames
//! nested so deep that Python services disconnect. `origin` decides who may connect and `seats` who may stay, `gate` what
//! is relayed, `hub` distributes it to all clients, `peer` serves one client. Start with [`EmbeddedBus`].

mod config;
pub(super) mod gate;
mod hub;
mod partial_messages;
mod peer;
mod seats;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::DuplexStream;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::{Host, Url};

pub use self::config::ServerConfig;
use self::hub::Hub;
use self::seats::Seats;

/// How long clients have to finish the closing handshake at the shutdown.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// How long the bus waits for a client while it has no free descriptor, before it looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The shortest time between two log lines about clients that cannot be taken.
const REMINDER: Duration = Duration::from_secs(10);

/// The address cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {host}:{port}: {source}; is another bus running there?")]
pub struct BindError {
    host: String,
    port: u16,
    source: io::Error,
}

/// A bus with a bound listener; [`run`](Self::run) serves it.
pub struct EmbeddedBus {
    listener: TcpListener,
    address: SocketAddr,
    hub: Arc<Hub>,
    seats: Arc<Seats>,
}

impl EmbeddedBus {
    /// Binds the port. Clients that connect before [`run`](Self::run) wait in the backlog of the listener.
    ///
    /// # Errors
    /// The address cannot be bound: it is in use, belongs to another machine, or needs more rights.
    pub async fn bind(mut config: ServerConfig) -> Result<Self, BindError> {
        if !config.route.starts_with('/') {
            config.route.insert(0, '/');
        }
        let bound = async {
            let listener = TcpListener::bind((config.host.as_str(), config.port)).await?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let seats = Seats::new(config.max_clients, config.max_clients_per_address);
        match bound.await {
            Ok((listener, address)) => Ok(Self {
                listener,
                address,
                seats: Arc::new(seats),
                hub: Arc::new(Hub::new(config)),
            }),
            Err(source) => Err(BindError {
                host: config.host,
                port: config.port,
                source,
            }),
        }
    }

    /// The bound address, with the real port where the configuration says 0.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The address for clients on this machine, such as `ws://127.0.0.1:8181/core`.
    pub fn url(&self) -> String {
        format!("ws://{}{}", self.address, self.hub.config().route)
    }

    /// Serves clients until the shutdown, then sends each a close frame and waits up to a second for them to leave.
    ///
    /// # Cancel safety
    /// If dropped, the bus accepts no more clients and closes the connections it has.
    pub async fn run(self, shutdown: CancellationToken) {
        let clients = TaskTracker::new();
        // Cancelled when this call ends or is dropped, even if the caller's token lives on.
        let over = shutdown.child_token();
        let _over = over.clone().drop_guard();
        tracing::info!(address = %self.address, "the embedded bus is listening");
        let mut warned_at = None;
        let mut own = self.hub.config().own.as_ref().and_then(|own| own.connections());
        loop {
            let accepted = tokio::select! {
                () = over.cancelled() => break,
                Some(stream) = from_own(&mut own) => {
                    let hub = Arc::clone(&self.hub);
                    let workers = hub.config().workers.clone().unwrap_or_else(Handle::current);
                    let (over, rest) = (over.clone(), BytesMut::new());
                    let attend = peer::attend(hub, stream, self.address, None, rest, over, clients.clone());
                    clients.spawn_on(attend, &workers);
                    continue;
                }
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((socket, from)) => {
                    let seat = tokio::select! {
                        () = over.cancelled() => break,
                        seat = self.seats.take(from) => seat,
                    };
                    let hub = Arc::clone(&self.hub);
                    let serve = peer::serve(hub, socket, from, seat, over.clone(), clients.clone());
                    clients.spawn(serve);
                }
                // An accept also fails while descriptors are used up and no client waits: then no client is ended for it.
                Err(_) if !is_wanted(&self.listener) => sleep(LOOK_AGAIN).await,
                Err(error) => {
                    // The usual cause is a lack of file descriptors: the socket of another client is one.
                    if warned_at.is_none_or(|at: Instant| at.elapsed() >= REMINDER) {
                        warned_at = Some(Instant::now());
                        tracing::warn!(%error, "the embedded bus cannot accept a client");
                    }
                    if !self.seats.make_room().await {
                        sleep(Duration::from_millis(100)).await;
                    }
                }
            }
        }
        drop(self.listener);
        clients.close();
        if timeout(CLOSE_WAIT, clients.wait()).await.is_err() {
            tracing::warn!(
                clients = clients.len(),
                "the embedded bus shut down with clients still connected"
            );
        }
    }
}

/// The next connection of the client of this process.
async fn from_own(own: &mut Option<Receiver<DuplexStream>>) -> Option<DuplexStream> {
    own.as_mut()?.recv().await
}

/// Whether a client waits to be accepted.
fn is_wanted(listener: &TcpListener) -> bool {
    let mut wanted = [PollFd::new(listener, PollFlags::IN)];
    // If the poll fails, a client is assumed to wait.
    !matches!(poll(&mut wanted, Some(&Timespec::default())), Ok(0))
}

/// Tests whether a TCP connection to a bus address succeeds within half a second.
///
/// # Cancel safety
/// Safe.
pub async fn reachable(url: &Url) -> bool {
    let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
        return false;
    };
    let host = match host {
        Host::Domain(name) => name.to_owned(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => address.to_string(),
    };
    let connected = timeout(
        Duration::from_millis(500),
        TcpStream::connect((host.as_str(), port)),
    )
    .await;
    matches!(connected, Ok(Ok(_)))
}
