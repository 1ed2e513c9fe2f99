//! `ovos-tools fabric host`: the toolboxes of this machine for other machines, without a bus.
//!
//! `toolboxes` are the manager and the engine, `desk` answers what is asked, `supervisor` ends what a vanished commander moves,
//! `leases` says who commands. Read [`run`].

mod action;
mod content;
mod desk;
mod leases;
mod replies;
mod supervisor;
mod toolboxes;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use config::{Config, Overrides, ProcessEnvironment};
use logs::LogOptions;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use zenoh::sample::SampleKind;
use zenoh::{Session, Wait as _};

use crate::folder::{Folder, Identity};
use crate::messages::every_key;
use crate::peers::PeerList;
use crate::session::{endpoint, host_config};
use desk::Desk;
use toolboxes::{Opening, Toolboxes};

pub(crate) use supervisor::OnLeaseLoss;

/// How many signs of life may wait for the supervising thread: more than all mounts of a fabric send in a second.
const WAITING_BEATS: usize = 1024;

/// How long the toolboxes have to close at the end.
const CLOSING: Duration = Duration::from_secs(5);

/// How often it is looked whether machines were added or taken away.
const PEERS_LOOK: Duration = Duration::from_millis(500);

/// The command line of a host.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where to listen; may be given several times
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0")]
    listen: Vec<String>,
    /// Where plugins are looked for, instead of the configured folders; may be given several times
    #[arg(long, value_name = "DIR")]
    plugins: Vec<PathBuf>,
    /// Also load toolboxes that drive a simulator, without a section that asks for them
    #[arg(long)]
    simulators: bool,
    /// What happens to motion whose commander is not heard for 500 ms
    #[arg(long, value_enum, default_value = "stop")]
    on_lease_loss: OnLeaseLoss,
    /// Log JSON, one object a line
    #[arg(long)]
    log_json: bool,
}

/// Hosts the toolboxes of this machine until a signal ends it.
///
/// # Errors
/// What is wrong, and what to do.
pub(crate) fn run(folder: &Folder, file: Option<PathBuf>, arguments: &Arguments) -> Result<(), String> {
    let identity = folder.valid_identity().map_err(|error| error.to_string())?;
    let listen: Result<Vec<String>, String> =
        arguments.listen.iter().map(|address| endpoint(address)).collect();
    let listen = listen?;
    let overrides = Overrides {
        config: file,
        plugins: arguments.plugins.clone(),
        given_may_be_copy: true,
        ..Overrides::default()
    };
    let config = Config::load(&ProcessEnvironment, &overrides, None).map_err(|errors| errors.to_string())?;
    let options = LogOptions {
        json: arguments.log_json,
        file: false,
    };
    let _logs = logs::start(&config.logging, options).map_err(|error| error.to_string())?;
    if let Err(error) = ::host::descriptors::raise() {
        tracing::warn!(%error, "the limit of file descriptors stays as it is");
    }
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| format!("start the threads of this host: {error}"))?;
    let hosting = Hosting::start(&runtime, folder, identity, &listen, config, arguments)?;
    let ended = runtime.block_on(hosting.until_ended());
    hosting.end(&runtime);
    ended
}

/// A host that runs.
struct Hosting {
    folder: Folder,
    listen: Vec<String>,
    desk: Arc<Desk>,
    end: CancellationToken,
    session: parking_lot::Mutex<Option<(Session, PeerList)>>,
}

impl Hosting {
    fn start(
        runtime: &Runtime,
        folder: &Folder,
        identity: Identity,
        listen: &[String],
        config: Arc<Config>,
        arguments: &Arguments,
    ) -> Result<Self, String> {
        let opening = Opening {
            config,
            simulators: arguments.simulators,
            runtime: runtime.handle().clone(),
        };
        let toolboxes = runtime.block_on(Toolboxes::open(opening))?;
        let (beats, heard) = sync_channel(WAITING_BEATS);
        let desk = Arc::new(Desk {
            identity,
            boot: uuid::Uuid::now_v7().to_string(),
            peers: folder.peers(),
            toolboxes,
            leases: parking_lot::Mutex::default(),
            strangers: 0.into(),
            beats,
            runtime: runtime.handle().clone(),
            tracker: TaskTracker::new(),
            replies: Arc::default(),
            stops: parking_lot::Mutex::default(),
        });
        let end = CancellationToken::new();
        {
            let (desk, end, on_loss) = (desk.clone(), end.clone(), arguments.on_lease_loss);
            let supervising = move || supervisor::supervise(&desk, &heard, on_loss, &end);
            thread::Builder::new()
                .name("supervisor".to_owned())
                .spawn(supervising)
                .map_err(|error| format!("start the supervising thread: {error}"))?;
        }
        let this = Self {
            folder: folder.clone(),
            listen: listen.to_vec(),
            desk,
            end,
            session: parking_lot::Mutex::default(),
        };
        this.open_session()?;
        this.announce();
        Ok(this)
    }

    /// Opens the session for the machines that may reach this host now.
    fn open_session(&self) -> Result<(), String> {
        let peers = self.desk.peers.now();
        let config = host_config(&self.folder, &self.desk.identity, &self.listen, &peers)?;
        let session = zenoh::open(config).wait().map_err(|error| {
            format!(
                "listen on {}: {error}; is the port taken, or a file in {} damaged?",
                self.listen.join(", "),
                self.folder.path().display()
            )
        })?;
        let desk = self.desk.clone();
        session
            .declare_queryable(every_key(&self.desk.identity.name))
            .callback(move |query| desk.take(query))
            .background()
            .wait()
            .map_err(|error| format!("serve queries: {error}"))?;
        let desk = self.desk.clone();
        session
            .info()
            .link_events_listener()
            .history(false)
            .callback(move |event| {
                let name = event
                    .link()
                    .auth_identifier()
                    .unwrap_or("without a name")
                    .to_owned();
                if event.kind() == SampleKind::Put && desk.peers.now().role(&name).is_none() {
                    desk.strangers.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    tracing::warn!(
                        name,
                        "a machine that is not a peer of this host connected; it gets nothing"
                    );
                }
            })
            .background()
            .wait()
            .map_err(|error| format!("watch connections: {error}"))?;
        *self.session.lock() = Some((session, peers));
        Ok(())
    }

    #[expect(clippy::print_stdout, reason = "for the person or the script that started it")]
    fn announce(&self) {
        let toolboxes = self.desk.toolboxes.ids().into_iter().filter_map(|id| {
            let room = self.desk.toolboxes.view(&id)?;
            Some(format!("  {id}: {} tools, {}\n", room.tools, room.state))
        });
        let toolboxes: String = toolboxes.collect();
        let empty = if toolboxes.is_empty() {
            "  no toolboxes: see --plugins and --simulators\n"
        } else {
            ""
        };
        println!(
            "host {} is ready on {}\n{toolboxes}{empty}",
            self.desk.identity.name,
            self.listen.join(", ")
        );
    }

    /// Follows the machines that may reach this host, and the signals, until one of these ends it.
    async fn until_ended(&self) -> Result<(), String> {
        let no_signals = |error: std::io::Error| format!("signals: {error}");
        let mut ending = signals::Ending::listen().map_err(no_signals)?;
        let mut emergency = signal(SignalKind::user_defined1()).map_err(no_signals)?;
        let mut look = tokio::time::interval(PEERS_LOOK);
        loop {
            tokio::select! {
                signal = ending.next() => {
                    tracing::info!(signal, "the host ends");
                    return Ok(());
                }
                _ = emergency.recv() => {
                    drop(self.desk.toolboxes.stop(&engine::StopTarget::All, "SIGUSR1"));
                }
                _ = look.tick() => {
                    if let Err(why) = self.follow_peers() {
                        // Tried again at the next look.
                        tracing::error!(why, "nobody reaches this host");
                    }
                }
            }
        }
    }

    /// Lets machines in that were added. Those that were taken away are refused by the desk at once, without disturbing others.
    fn follow_peers(&self) -> Result<(), String> {
        let now = self.desk.peers.now();
        let is_new = self.session.lock().as_ref().is_none_or(|(_, peers)| {
            let mut allowed = now.peers.keys().filter(|name| now.role(name).is_some());
            allowed.any(|name| now.role(name) != peers.role(name))
        });
        if !is_new {
            return Ok(());
        }
        tracing::info!("the peers of this host changed: its connections are made anew");
        // The port has to be free.
        let old = self.session.lock().take();
        tokio::task::block_in_place(|| {
            if let Some((session, _)) = old
                && let Err(error) = session.close().wait()
            {
                tracing::warn!(%error, "the old session did not close");
            }
            self.open_session()
        })
    }

    fn end(&self, runtime: &Runtime) {
        runtime.block_on(self.desk.toolboxes.shut_down(CLOSING));
        self.end.cancel();
        if let Some((session, _)) = self.session.lock().take() {
            _ = session.close().wait();
        }
    }
}

impl std::fmt::Debug for Hosting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hosting")
            .field("listen", &self.listen)
            .finish_non_exhaustive()
    }
}
