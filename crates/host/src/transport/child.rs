//! A toolbox in a process of its own, the default. Read [`Hosted::in_child`].

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_wire::{Failure, FailureKind, Manifest};
use protocol::{Opening, Order, Raw};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::artifact::file::{Launch, PluginFile, Task};
use crate::contract::services::HostServices;
use crate::contract::services::Open;
use crate::contract::tools::Maker;
use crate::process::spawner::Program;
use crate::process::started_process::StartedProcess;
use crate::transport::hosted::Hosted;
use crate::transport::keeper::{Keeper, KeeperSettings};
use crate::transport::members::Members;
use crate::transport::peer::Peer;
use crate::transport::sockets::{Pairs, Sockets};
use section::Confine;

/// How much longer than the opening itself its answer may take.
pub(super) const ANSWERING: Duration = Duration::from_millis(500);

/// How long a toolbox that is being opened has to close when the service ends.
const CLOSING: Duration = Duration::from_secs(1);

/// The settings of a toolbox's process.
#[derive(Clone, Debug)]
pub struct ProcessSettings {
    /// The program that is run as `toolbox-host` or `program-host`.
    pub program: PathBuf,
    /// The file that the process loads, or the program that it becomes; a file should be a staged copy that nothing
    /// else writes. Kept until the hardware is at rest.
    pub file: Arc<PluginFile>,
    /// Variables added to the allowed part of the service's environment.
    pub env: BTreeMap<String, String>,
    /// The memory that the process may use, in MiB; `None`: no limit.
    pub memory_mb: Option<u64>,
    /// What the process may access; `None`: everything that the service may access.
    pub confine: Option<Confine>,
    /// How long the process may take until it says hello.
    pub hello: Duration,
    /// If not empty, a program's script has to have one of these hashes whenever a process of the program is started.
    pub allow_sha256: Vec<String>,
    /// Cancelled when the service ends: a process that is being opened is closed then, or killed.
    pub stop: CancellationToken,
}

impl Hosted {
    /// Starts a process and opens the toolbox in it.
    ///
    /// ```text
    ///  Peer ── start, plan, conclude ──> data socket ────> data thread ────> Server ──> toolbox
    ///       ── cancel, halt, resume ───> control socket ─> control thread ─> Server ─────^
    ///  Peer <── reader task <──────────── data socket
    ///       <── Keeper thread <────────── control socket; heartbeats, limits, stderr, the end of the process, safe_stop
    /// ```
    ///
    /// # Errors
    /// The process cannot be started or dies; the toolbox's own failure; or it took longer than `limits.open`.
    ///
    /// # Cancel safety
    /// The process closes its toolbox and ends.
    pub async fn in_child(
        process: ProcessSettings,
        manifest: Arc<Manifest>,
        open: Open,
        services: Arc<dyn HostServices>,
    ) -> Result<Self, Failure> {
        let trouble =
            |error: &dyn std::fmt::Display| cannot_start(&format!("toolbox `{}`", manifest.id), error);
        let opening = opening(&open, 0).map_err(|e| trouble(&e))?;
        let (hello, stop) = (process.hello, process.stop.clone());
        let maker = match process.file.executable() {
            Some(_) => Maker::Program,
            None => Maker::Plugin,
        };
        let kept = keep(process, &manifest.id, open.config.clone(), |sockets| {
            ProcessContent {
                peer: Arc::new(Peer::new(&open, manifest.clone(), services, sockets)),
                members: None,
            }
        });
        let KeptProcess { peer, sockets, .. } = kept.await.map_err(|e| trouble(&e))?;
        // From here on, a drop of this value ends the process.
        let toolbox = Self {
            peer,
            maker,
            content_dir: None,
        };
        let opened = tokio::select! {
            opened = toolbox.greet_and_open(&sockets, opening, hello) => opened,
            () = stop.cancelled() => Err(Failure::new(FailureKind::ToolboxClosed, "the service is shutting down")),
        };
        let Err(failure) = opened else { return Ok(toolbox) };
        // The caller learns of the failure only when the device is free and the hardware at rest.
        end(&toolbox.peer, &sockets, &stop).await;
        Err(failure)
    }

    async fn greet_and_open(
        &self,
        sockets: &Sockets,
        opening: Opening,
        hello: Duration,
    ) -> Result<(), Failure> {
        let peer = &self.peer;
        let is_open = peer.will_open(opening.seq)?;
        greeted(peer, sockets, hello).await?;
        peer.opens();
        peer.lanes.data(Order::Open(opening))?;
        // No heartbeats are sent during the opening: the dynamic linker may need the processor for a while.
        let limit = peer.limits.open;
        let opened = self.await_open(is_open, limit + ANSWERING).await;
        opened.unwrap_or_else(|| Err(give_up(peer, sockets, "did not return from open()", limit)))
    }
}

/// The content of a process: one toolbox; or several, and then the peer is for notices about all of them.
pub(super) struct ProcessContent {
    pub(super) peer: Arc<Peer>,
    pub(super) members: Option<Arc<Members>>,
}

/// A process that has a keeper.
pub(super) struct KeptProcess {
    pub(super) peer: Arc<Peer>,
    pub(super) members: Option<Arc<Members>>,
    pub(super) sockets: Arc<Sockets>,
}

/// Starts a process, and the thread and the task that keep it. `config` is for the process that brings the hardware to rest.
///
/// # Errors
/// The process cannot be started.
///
/// # Cancel safety
/// The process is ended.
pub(super) async fn keep(
    process: ProcessSettings,
    name: &str,
    config: String,
    serve: impl FnOnce(Arc<Sockets>) -> ProcessContent,
) -> std::io::Result<KeptProcess> {
    let program = Program {
        path: process.program.clone().into(),
        env: process.env.clone(),
        confine: process.confine.clone(),
    };
    if process.file.executable().is_some() {
        let (file, allowed) = (process.file.clone(), process.allow_sha256.clone());
        let checked = tokio::task::spawn_blocking(move || file.check_again(&allowed)).await;
        checked?.map_err(std::io::Error::other)?;
    }
    let pairs = Pairs::new()?;
    let Launch { mut command, folder } = process.file.launch(&program, Task::Serve);
    command
        .stdin(Stdio::from(OwnedFd::from(pairs.their_data)))
        .stdout(Stdio::from(OwnedFd::from(pairs.their_control)))
        .stderr(Stdio::piped());
    let started = StartedProcess::start(command).await?;
    let pid = started.child.id();
    let sockets = Arc::new(Sockets::new(pairs.data, pairs.control, name, pid)?);
    let ProcessContent { peer, members } = serve(sockets.clone());
    let settings = KeeperSettings {
        program,
        file: process.file,
        config,
        memory_mb: process.memory_mb,
        members: members.clone(),
        allow_sha256: process.allow_sha256,
        _folder: folder,
    };
    Keeper::start(peer.clone(), sockets.clone(), started, settings)?;
    Ok(KeptProcess {
        peer,
        members,
        sockets,
    })
}

/// Closes a process that was not opened, and waits for its end. When the service ends, that takes [`CLOSING`] at most.
pub(super) async fn end(peer: &Peer, sockets: &Sockets, stop: &CancellationToken) {
    peer.begin_close();
    let mut rested = peer.rested.subscribe();
    let in_time = timeout(CLOSING, rested.wait_for(|rested| *rested)).await.is_ok();
    if !in_time && stop.is_cancelled() {
        give_up(peer, sockets, "did not close while it was opened", CLOSING);
    }
    // An error means that the keeper is gone.
    _ = rested.wait_for(|rested| *rested).await;
}

/// Waits until a process has sent its hello.
///
/// # Errors
/// The process died, or sent no hello within `hello`.
pub(super) async fn greeted(peer: &Peer, sockets: &Sockets, hello: Duration) -> Result<(), Failure> {
    let (mut greeted, mut end) = (sockets.greeted.subscribe(), peer.end.subscribe());
    tokio::select! {
        biased;
        // An error means that the socket's thread is gone, and with it the process.
        _ = greeted.wait_for(|greeted| *greeted) => Ok(()),
        _ = end.wait_for(Option::is_some) => Err(peer.closed_reason().into_failure()),
        () = tokio::time::sleep(hello) => Err(give_up(peer, sockets, "did not say hello", hello)),
    }
}

/// Tells the keeper to end a process that does not do its task.
fn give_up(peer: &Peer, sockets: &Sockets, what: &str, limit: Duration) -> Failure {
    let id = &peer.origin.toolbox_id;
    let text = format!("its process {what} within {} s", limit.as_secs_f64());
    peer.give_up(text.clone());
    sockets.wake.signal();
    Failure::new(FailureKind::TimeoutError, format!("toolbox `{id}`: {text}"))
}

/// The failure for a process that cannot be started.
pub(super) fn cannot_start(what: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(
        FailureKind::ToolboxError,
        format!("start a process for {what}: {error}"),
    )
}

pub(super) fn opening(open: &Open, seq: u64) -> Result<Opening, serde_json::Error> {
    let limits = &open.limits;
    Ok(Opening {
        seq,
        generation: open.generation,
        config: Raw::from_text(open.config.clone())?,
        stop_epoch: open.stop_epoch,
        max_result_bytes: limits.max_result_bytes,
        max_queued: limits.max_queued,
        max_messages: limits.max_messages,
        max_requests: limits.max_requests,
        open_ms: millis(limits.open),
        close_ms: millis(limits.close),
        silence_ms: millis(limits.silence),
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;
    use std::time::Instant;

    use futures_util::FutureExt as _;

    use super::*;
    use crate::process::spawner::{spawn, spawn_now};

    /// The processes that this one has started and not reaped.
    fn children() -> Vec<String> {
        let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
        let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        lists
            .flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
            .collect()
    }

    #[tokio::test]
    async fn a_process_that_is_not_waited_for_any_more_is_ended_and_reaped() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("host");
        fs::write(&program, "#!/bin/sh\nexec sleep 60\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let process = ProcessSettings {
            program,
            file: Arc::new(PluginFile::lent(PathBuf::from("arm.so"))),
            env: BTreeMap::new(),
            memory_mb: None,
            confine: None,
            hello: Duration::from_secs(1),
            allow_sha256: Vec::new(),
            stop: CancellationToken::new(),
        };
        let (goes_on, is_held) = std::sync::mpsc::channel::<()>();
        // The spawner's thread starts nothing until then.
        spawn(Command::new("true"), move |first| {
            _ = is_held.recv();
            first.unwrap().wait().unwrap();
        });
        let keeping = keep(process, "arm", "{}".to_owned(), |_| panic!("it is waited for"));
        assert!(keeping.now_or_never().is_none());
        goes_on.send(()).unwrap();
        // This process is started after the other one.
        spawn_now(Command::new("true")).unwrap().wait().unwrap();
        let end = Instant::now() + Duration::from_secs(20);
        while !children().is_empty() {
            assert!(Instant::now() < end, "{:?}", children());
            tokio::task::yield_now().await;
        }
    }
}
