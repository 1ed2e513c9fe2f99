//! A toolbox in a process of its own, the default. Read [`Hosted::in_child`].

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_wire::{Failure, Manifest};
use protocol::{Opening, Order, Raw};
use tokio::sync::oneshot;

use crate::artifact::file::{Launch, PluginFile, Task};
use crate::contract::services::HostServices;
use crate::ffi::plugin::Open;
use crate::process::spawner::{self, Program};
use crate::transport::hosted::Hosted;
use crate::transport::keeper::{Keeper, Keeping};
use crate::transport::sockets::{Pairs, Sockets};
use crate::transport::tether::Tether;
use section::Confine;

/// Loading the file comes before opening the toolbox, and may take a moment of its own.
const LOADING: Duration = Duration::from_millis(500);

/// What a toolbox's process is made of.
#[derive(Clone, Debug)]
pub struct ProcessSettings {
    /// The program that is run as `toolbox-host` or `program-host`.
    pub program: PathBuf,
    /// The file it loads, or the program it becomes; a file should be a staged copy that nothing else writes. Kept until its
    /// hardware is at rest.
    pub file: Arc<PluginFile>,
    /// Added to the allowed part of the service's environment.
    pub env: BTreeMap<String, String>,
    /// Memory it may use, in MiB; none: as much as there is.
    pub memory_mb: Option<u64>,
    /// What it may reach; none: everything that the service may.
    pub confine: Option<Confine>,
    /// How long the process may take until it says hello.
    pub hello: Duration,
}

impl Hosted {
    /// Starts a process and opens the toolbox in it.
    ///
    /// ```text
    ///  Tether ── start, plan, conclude ──> data socket ────> data thread ────> Server ──> toolbox
    ///         ── cancel, halt, resume ───> control socket ─> control thread ─> Server ─────^
    ///  Tether <── reader thread <────────── data socket
    ///         <── Keeper thread <────────── control socket; heartbeats, limits, stderr, the end of the process, safe_stop
    /// ```
    ///
    /// # Errors
    /// The process cannot be started or dies; what the toolbox said; or that it took longer than `limits.open`.
    ///
    /// # Cancel safety
    /// The process closes its toolbox and ends.
    pub async fn in_child(
        process: ProcessSettings,
        manifest: Arc<Manifest>,
        open: Open,
        services: Arc<dyn HostServices>,
    ) -> Result<Self, Failure> {
        let id = manifest.id.clone();
        let trouble = |error: &dyn std::fmt::Display| {
            Failure::new(
                "ToolboxError",
                format!("start a process for toolbox `{id}`: {error}"),
            )
        };
        let opening = opening(&open).map_err(|e| trouble(&e))?;
        let program = Program {
            path: process.program.clone().into(),
            env: process.env.clone(),
            confine: process.confine.clone(),
        };
        let pairs = Pairs::new().map_err(|e| trouble(&e))?;
        let Launch { mut command, folder } = process.file.launch(&program, Task::Serve);
        command
            .stdin(Stdio::from(OwnedFd::from(pairs.their_data)))
            .stdout(Stdio::from(OwnedFd::from(pairs.their_control)))
            .stderr(Stdio::piped());
        let (tell, told) = oneshot::channel();
        // If this future is dropped, the sockets close and the process ends by itself.
        spawner::spawn(command, move |spawned| drop(tell.send(spawned)));
        let child = told.await.map_err(|e| trouble(&e))?.map_err(|e| trouble(&e))?;

        let sockets = Sockets::new(pairs.data, pairs.control, &id, child.id());
        let sockets = Arc::new(sockets.map_err(|e| trouble(&e))?);
        let tether = Arc::new(Tether::new(&open, manifest, services, sockets.clone()));
        // From here on dropping it ends the process.
        let toolbox = Self {
            tether: tether.clone(),
            content_dir: None,
        };
        let keeping = Keeping {
            program,
            file: process.file,
            config: open.config,
            memory_mb: process.memory_mb,
            _folder: folder,
        };
        Keeper::start(tether.clone(), sockets.clone(), child, keeping).map_err(|e| trouble(&e))?;
        match toolbox.greet_and_open(&sockets, opening, process.hello).await {
            Ok(()) => Ok(toolbox),
            Err(failure) => {
                tether.begin_close();
                // The caller learns of the failure only when the device is free and the hardware at rest.
                let mut rested = tether.rested.subscribe();
                _ = rested.wait_for(|rested| *rested).await;
                Err(failure)
            }
        }
    }

    async fn greet_and_open(
        &self,
        sockets: &Sockets,
        opening: Opening,
        hello: Duration,
    ) -> Result<(), Failure> {
        let tether = &self.tether;
        let is_open = tether.will_open()?;
        let (mut greeted, mut end) = (sockets.greeted.subscribe(), tether.end.subscribe());
        tokio::select! {
            biased;
            // An error means that the socket's thread is gone, and with it the process.
            _ = greeted.wait_for(|greeted| *greeted) => {}
            _ = end.wait_for(Option::is_some) => return Err(tether.gone().into_failure()),
            () = tokio::time::sleep(hello) => return Err(self.give_up(sockets, "did not say hello", hello)),
        }
        tether.lanes.data(Order::Open(opening))?;
        // Whether it lives is not asked here: the dynamic linker may take a processor for a while.
        let limit = tether.limits.open;
        let opened = self.await_open(is_open, limit + LOADING).await;
        opened.unwrap_or_else(|| Err(self.give_up(sockets, "did not return from open()", limit)))
    }

    /// Has the keeper end a process that does not do what it is there for.
    fn give_up(&self, sockets: &Sockets, what: &str, limit: Duration) -> Failure {
        let id = &self.origin().toolbox_id;
        let text = format!("its process {what} within {} s", limit.as_secs_f64());
        self.tether.give_up(text.clone());
        sockets.bell.ring();
        Failure::new("TimeoutError", format!("toolbox `{id}`: {text}"))
    }
}

fn opening(open: &Open) -> Result<Opening, serde_json::Error> {
    let limits = &open.limits;
    Ok(Opening {
        seq: 0,
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
