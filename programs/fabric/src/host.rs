//! `ovos-tools fabric host`: the toolboxes of this machine for other machines, without a bus.
//!
//! `toolboxes` are the manager and the engine, `desk` answers what is asked, with `start` and `stop`, `supervisor` ends what a vanished commander moves,
//! `leases` says who commands. Read [`run`].

mod action;
mod cancelled;
mod content;
mod desk;
mod leases;
mod orders;
mod planned;
mod replies;
mod start;
mod stop;
mod supervisor;
mod toolboxes;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use config::{Config, Overrides, ProcessEnvironment};
use logs::LogOptions;
use ovos_toolbox_wire::Effect;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use zenoh::sample::SampleKind;
use zenoh::{Session, Wait as _};

use crate::folder::{Folder, Identity, wall_clock};
use crate::messages::every_key;
use crate::peers::PeerList;
use crate::session::{endpoint, host_config, reason};
use desk::Desk;
use toolboxes::{Opening, Toolboxes};

pub(crate) use leases::OnLeaseLoss;

/// How many signs of life may wait for the supervising thread: more than all mounts of a fabric send in a second.
const WAITING_BEATS: usize = 1024;

/// How long the toolboxes have to close at the end.
const CLOSING: Duration = Duration::from_secs(5);

/// How often it is looked whether machines were added or taken away, and whether this one has a new certificate.
const FOLDER_LOOK: Duration = Duration::from_millis(500);

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
    let _alone = be_alone(&config.service.state_dir.join("fabric"))?;
    let hosting = Hosting::start(&runtime, folder, identity, &listen, config, arguments)?;
    let ended = runtime.block_on(hosting.until_ended());
    hosting.end(&runtime);
    ended
}

/// Makes this the only host of the machine until the result is dropped: a second one would take the hardware, and the record of what
/// moves, from the first.
fn be_alone(folder: &Path) -> Result<File, String> {
    let path = folder.join("host.lock");
    let unusable = |error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(folder).map_err(unusable)?;
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(&path).map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::Error(error)) => Err(unusable(error)),
        Err(TryLockError::WouldBlock) => Err(format!(
            "another `ovos-tools fabric host` of this user runs already: it holds {}; end it first",
            path.display()
        )),
    }
}

/// A host that runs.
struct Hosting {
    desk: Arc<Desk>,
    end: CancellationToken,
    entrance: Arc<Entrance>,
}

/// Where other machines come in.
struct Entrance {
    folder: Folder,
    listen: Vec<String>,
    desk: Arc<Desk>,
    session: parking_lot::Mutex<Option<OpenSession>>,
}

/// A session, and of which peers and certificate it was made.
struct OpenSession {
    session: Session,
    peers: PeerList,
    valid_until: u64,
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
        let (beats, waiting) = sync_channel(WAITING_BEATS);
        let desk = Arc::new(Desk {
            valid_until: identity.valid_until.into(),
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
            planned: parking_lot::Mutex::default(),
            cancelled: parking_lot::Mutex::default(),
            on_loss: arguments.on_lease_loss,
        });
        let end = CancellationToken::new();
        let entrance = Arc::new(Entrance {
            folder: folder.clone(),
            listen: listen.to_vec(),
            desk: desk.clone(),
            session: parking_lot::Mutex::default(),
        });
        {
            let (desk, end) = (desk.clone(), end.clone());
            spawn("supervisor", move || supervisor::supervise(&desk, &waiting, &end))?;
        }
        *entrance.session.lock() = Some(entrance.open()?);
        {
            let (entrance, end) = (entrance.clone(), end.clone());
            spawn("peers", move || entrance.follow_folder(&end))?;
        }
        let this = Self { desk, end, entrance };
        this.announce();
        Ok(this)
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
        let closed = self.desk.toolboxes.closed(Effect::Motion);
        let closed = closed.map_or_else(String::new, |why| format!("  CLOSED: {why}\n"));
        println!(
            "host {} is ready on {}\n{toolboxes}{empty}{closed}",
            self.desk.identity.name,
            self.entrance.listen.join(", ")
        );
    }

    /// Follows the signals, until one of these ends it.
    async fn until_ended(&self) -> Result<(), String> {
        let no_signals = |error: std::io::Error| format!("signals: {error}");
        let mut ending = signals::Ending::listen().map_err(no_signals)?;
        let mut emergency = signal(SignalKind::user_defined1()).map_err(no_signals)?;
        loop {
            tokio::select! {
                signal = ending.next() => {
                    tracing::info!(signal, "the host ends");
                    return Ok(());
                }
                _ = emergency.recv() => {
                    drop(self.desk.toolboxes.stop(&engine::StopTarget::All, "SIGUSR1"));
                }
            }
        }
    }

    fn end(&self, runtime: &Runtime) {
        runtime.block_on(self.desk.toolboxes.shut_down(CLOSING));
        self.end.cancel();
        close(&mut self.entrance.session.lock());
    }
}

impl Entrance {
    /// Opens the session for the machines that may reach this host now.
    fn open(&self) -> Result<OpenSession, String> {
        let identity = self.folder.valid_identity().map_err(|error| error.to_string())?;
        let peers = self.desk.peers.now();
        let config = host_config(&self.folder, &self.desk.identity, &self.listen, &peers)?;
        let session = zenoh::open(config).wait().map_err(|error| {
            format!(
                "listen on {}: {}; is the port taken, or a file in {} damaged?",
                self.listen.join(", "),
                reason(&*error),
                self.folder.path().display()
            )
        })?;
        let desk = self.desk.clone();
        session
            .declare_queryable(every_key(&self.desk.identity.name))
            .callback(move |query| desk.take(query))
            .background()
            .wait()
            .map_err(|error| format!("serve queries: {}", reason(&*error)))?;
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
                if event.kind() == SampleKind::Put && desk.peers.role(&name).is_none() {
                    desk.strangers.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    tracing::warn!(
                        name,
                        "a machine that is not a peer of this host connected; it gets nothing"
                    );
                }
            })
            .background()
            .wait()
            .map_err(|error| format!("watch connections: {}", reason(&*error)))?;
        let valid_until = identity.valid_until;
        self.desk
            .valid_until
            .store(valid_until, std::sync::atomic::Ordering::Relaxed);
        Ok(OpenSession {
            session,
            peers,
            valid_until,
        })
    }

    /// Lets machines in that were added, and shows a new certificate. Machines that were taken away are refused by the desk from the next
    /// look on, without disturbing others. Closing and opening may take seconds, so this has a thread of its own.
    fn follow_folder(&self, end: &CancellationToken) {
        let mut is_in_order = true;
        while !end.is_cancelled() {
            thread::sleep(FOLDER_LOOK);
            let peers = self.desk.peers.now();
            let identity = self.folder.valid_identity();
            let mut session = self.session.lock();
            if end.is_cancelled() {
                return;
            }
            // Zenoh ends a link with the certificate behind it, but for one that is made in its last second.
            if session
                .as_ref()
                .is_some_and(|open| open.valid_until <= wall_clock())
            {
                close(&mut session);
            }
            let why = match identity {
                Err(why) => Some(why.to_string()),
                Ok(identity) => {
                    let is_old = session.as_ref().is_none_or(|open| {
                        let mut allowed = peers.peers.keys().filter(|name| peers.role(name).is_some());
                        let is_other = |name| peers.role(name) != open.peers.role(name);
                        identity.valid_until != open.valid_until || allowed.any(|name| is_other(name))
                    });
                    if is_old {
                        self.reopen(&mut session).err()
                    } else {
                        None
                    }
                }
            };
            // Tried again at the next look, and said once.
            if let Some(why) = &why
                && is_in_order
            {
                let reached = session.is_some();
                tracing::error!(
                    why,
                    reached,
                    "cannot open connections with the certificate of this host; see `why`"
                );
            }
            is_in_order = why.is_none();
        }
    }

    fn reopen(&self, session: &mut Option<OpenSession>) -> Result<(), String> {
        tracing::info!("the peers of this host, or its certificate, changed: its connections are made anew");
        // The port has to be free.
        close(session);
        *session = Some(self.open()?);
        Ok(())
    }
}

fn close(session: &mut Option<OpenSession>) {
    if let Some(old) = session.take()
        && let Err(error) = old.session.close().wait()
    {
        tracing::warn!(%error, "the old session did not close");
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned
        .map(|_| ())
        .map_err(|error| format!("start the thread `{name}`: {error}"))
}

impl std::fmt::Debug for Hosting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hosting")
            .field("listen", &self.entrance.listen)
            .finish_non_exhaustive()
    }
}
