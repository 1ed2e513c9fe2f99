//! A program that is several toolboxes: the state that they share. Read [`CommonProgram::open`]; `common_program` owns
//! the process.

use std::collections::{HashMap, HashSet};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::Either;
use ovos_toolbox_wire::{Failure, FailureKind, Manifest};
use parking_lot::Mutex;
use protocol::Raw;
use tokio::sync::{RwLock, watch};
use tokio::time::sleep;
use tokio_util::sync::DropGuard;

use crate::artifact::file::PluginFile;
use crate::artifact::fingerprint::Fingerprint;
use crate::artifact::program::Executable;
use crate::contract::services::{HostServices, Open};
use crate::contract::tools::ToolSet;
use crate::lifecycle::settings::ToolboxSettings;
use crate::process::confine::why_unconfined;
use crate::process::spawner::Program;
use crate::transport::common_process::CommonProcess;
use crate::transport::hosted::Hosted;
use section::ProgramConfig;

/// A program that is several toolboxes. Dropping it ends its process once its toolboxes are closed.
pub(crate) struct CommonProgram {
    pub(crate) entry: Arc<ProgramConfig>,
    pub(crate) file: Arc<PluginFile>,
    /// The environment and confinement of the process.
    pub(crate) host: Program,
    pub(crate) sha256: String,
    pub(crate) fingerprint: Fingerprint,
    /// The manifests in the hello with which the program was examined, and the ids in them.
    pub(crate) offers: Vec<Raw<Manifest>>,
    pub(crate) ids: HashSet<String>,
    pub(crate) phase: watch::Receiver<Phase>,
    /// Toolboxes during whose opening the process ended; they are opened alone.
    pub(crate) suspects: Mutex<HashMap<String, Suspicion>>,
    pub(crate) openings: RwLock<()>,
    pub(crate) _end: DropGuard,
}

/// An open toolbox, and its tools.
pub(crate) type Listing = (Arc<Hosted>, Result<ToolSet, Failure>);

/// The phase of the program's process.
#[derive(Clone)]
pub(crate) enum Phase {
    /// The process is being started, or will be in a moment; with the reason, if its last start failed.
    Starts(Option<Failure>),
    /// The process serves.
    Serves(Arc<CommonProcess>),
    /// The process is given up, for this reason.
    Down(Failure),
}

/// Why a toolbox is opened alone.
#[derive(Clone, Copy)]
pub(crate) enum Suspicion {
    /// The process ended while this toolbox and others were opened.
    Possible,
    /// The process ended while only this toolbox was opened.
    Certain,
}

impl std::fmt::Debug for CommonProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommonProgram")
            .field("entry", &self.entry.name)
            .finish_non_exhaustive()
    }
}

impl CommonProgram {
    /// Whether this program fits the executable and the environment, and works, so that it need not be replaced.
    pub(crate) fn is_same(&self, executable: &Executable, host: &Program) -> bool {
        let is_up = match &*self.phase.borrow() {
            Phase::Starts(failed) => failed.is_none(),
            // A reload replaces a process that hangs, and one that offers other toolboxes than the one before it.
            Phase::Serves(process) => {
                !process.members.is_stuck() && process.members.offered().is_some_and(|ids| *ids == self.ids)
            }
            Phase::Down(_) => false,
        };
        let Program { env, confine, .. } = &self.host;
        is_up && self.file.executable() == Some(executable) && (env, confine) == (&host.env, &host.confine)
    }

    /// Gives the configuration of one of its toolboxes the environment and the confinement of the process. All toolboxes
    /// share these, and a section that asks for more would silently not get it.
    ///
    /// # Errors
    /// The key of the section that cannot hold, and what to do about it.
    pub(crate) fn share(&self, id: &str, config: &mut ToolboxSettings) -> Result<(), String> {
        let toolbox = &mut config.toolbox;
        let asked = toolbox.confine.as_ref();
        let asked = asked.filter(|confine| why_unconfined(confine).is_none());
        let key = if asked.is_some() && asked != self.host.confine.as_ref() {
            Some("confine")
        } else {
            config.memory_mb.map(|_| "limits.memory_mb")
        };
        if let Some(key) = key {
            let name = &self.entry.name;
            return Err(format!(
                "`{key}` of toolbox `{id}` cannot be enforced, because the toolbox shares its process with others; remove it \
                 from the section (`confine` may stand in `service.programs.{name}`), or give the toolbox a program of its own"
            ));
        }
        toolbox.env.clone_from(&self.host.env);
        toolbox.confine.clone_from(&self.host.confine);
        Ok(())
    }

    pub(crate) fn is_confined(&self) -> bool {
        self.host.confine.is_some()
    }

    /// Lets toolboxes whose opening ended the process be opened again, after a reload.
    pub(crate) fn forgive(&self) {
        for suspicion in self.suspects.lock().values_mut() {
            *suspicion = Suspicion::Possible;
        }
    }

    /// Opens a toolbox of the program, as soon as the process serves, and has `list` ask for its tools. If the process ends
    /// meanwhile, it is opened once more, alone.
    ///
    /// # Errors
    /// As `Hosted::in_common`; or the process does not start within `limits.open`, does not offer the toolbox any more,
    /// or ended when it opened only this toolbox before.
    ///
    /// # Cancel safety
    /// As `Hosted::in_common`.
    pub(crate) async fn open<L>(
        &self,
        manifest: Arc<Manifest>,
        open: Open,
        services: Arc<dyn HostServices>,
        list: impl Fn(Hosted) -> L,
    ) -> Result<Listing, Failure>
    where
        L: Future<Output = Listing> + Send,
    {
        let id = &manifest.id;
        loop {
            let suspicion = self.suspects.lock().get(id).copied();
            if let Some(Suspicion::Certain) = suspicion {
                let text = "its program ended while it opened this toolbox; reload it to try again";
                return Err(Failure::new(FailureKind::ToolboxCrashed, text));
            }
            let process = self.process(id, open.limits.open).await?;
            let _turn = match suspicion {
                None => Either::Left(self.openings.read().await),
                Some(_) => Either::Right(self.openings.write().await),
            };
            if process.members.is_gone() {
                continue;
            }
            let opening = Hosted::in_common(&process, manifest.clone(), open.clone(), services.clone());
            let opened = match opening.await {
                Ok(toolbox) => Ok(list(toolbox).await),
                Err(failure) => Err(failure),
            };
            let mut suspects = self.suspects.lock();
            if matches!(opened, Ok((_, Ok(_)))) {
                suspects.remove(id);
            } else if process.members.is_gone() {
                // It is opened alone in the next process.
                let suspicion = suspicion.map_or(Suspicion::Possible, |_| Suspicion::Certain);
                suspects.insert(id.clone(), suspicion);
                continue;
            }
            return opened;
        }
    }

    /// The program's process, as soon as it serves, if it offers a toolbox. A start that failed is waited for again, for
    /// at most `limit`.
    async fn process(&self, id: &str, limit: Duration) -> Result<Arc<CommonProcess>, Failure> {
        let mut phase = self.phase.clone();
        let is_decided = |phase: &Phase| match phase {
            Phase::Starts(_) => false,
            // A process that has ended is about to be started again.
            Phase::Serves(process) => !process.members.is_gone(),
            Phase::Down(_) => true,
        };
        let mut fails = self.phase.clone();
        let has_failed = |phase: &Phase| matches!(phase, Phase::Starts(Some(_)));
        let late = async {
            // A start has a limit of its own; only the wait for the next one needs another.
            if fails.wait_for(has_failed).await.is_err() {
                pending::<()>().await;
            }
            sleep(limit).await;
        };
        let decided = tokio::select! {
            decided = phase.wait_for(is_decided) => decided.map(|phase| phase.clone()).ok(),
            () = late => Some(self.phase.borrow().clone()),
        };
        match decided {
            Some(Phase::Serves(process)) => {
                if process.members.offered().is_some_and(|ids| ids.contains(id)) {
                    return Ok(process);
                }
                let text = format!(
                    "its program does not offer toolbox `{id}` any more; reload to have what it offers now"
                );
                Err(Failure::new(FailureKind::ToolboxError, text))
            }
            Some(Phase::Down(failure) | Phase::Starts(Some(failure))) => Err(failure),
            Some(Phase::Starts(None)) | None => {
                Err(Failure::new(FailureKind::ToolboxClosed, "its program was ended"))
            }
        }
    }
}
