//! A program that is several toolboxes: the state that they share. Read [`CommonProgram::open`]; `common_program` owns
//! the process.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::Either;
use ovos_toolbox_wire::{Failure, FailureKind, Manifest};
use parking_lot::Mutex;
use tokio::sync::{RwLock, watch};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::artifact::file::PluginFile;
use crate::artifact::fingerprint::Fingerprint;
use crate::artifact::program::Executable;
use crate::contract::services::HostServices;
use crate::contract::services::Open;
use crate::lifecycle::admitted::Admitted;
use crate::lifecycle::settings::Configured;
use crate::process::spawner::Program;
use crate::transport::common_process::CommonProcess;
use crate::transport::hosted::Hosted;
use crate::transport::members::Offers;
use section::ProgramConfig;

/// A program that is several toolboxes. Dropping it ends its process once its toolboxes are closed.
pub(crate) struct CommonProgram {
    pub(crate) entry: Arc<ProgramConfig>,
    pub(crate) file: Arc<PluginFile>,
    /// The environment and confinement of the process.
    pub(crate) host: Program,
    pub(crate) sha256: String,
    pub(crate) fingerprint: Fingerprint,
    /// The newest list of toolboxes that was applied.
    pub(crate) offers: Mutex<Offers>,
    pub(crate) admitted: Mutex<Admitted>,
    pub(crate) phase: watch::Receiver<Phase>,
    /// Toolboxes during whose opening the process ended; they are opened alone.
    pub(crate) suspects: Mutex<HashMap<String, Suspicion>>,
    pub(crate) openings: RwLock<()>,
    /// The toolboxes of a new list that are being opened, with their configuration. A reload does not wait for them.
    pub(crate) coming: Mutex<HashMap<String, (Arc<Manifest>, Configured)>>,
    /// Held while a list is applied: one list at a time.
    pub(crate) renewing: tokio::sync::Mutex<()>,
    /// Cancelled when another program gets the name of this one, or this one is removed. The opening of its toolboxes
    /// is given up then.
    pub(crate) replaced: CancellationToken,
    pub(crate) _end: DropGuard,
}

/// The phase of the program's process.
#[derive(Clone)]
pub(crate) enum Phase {
    /// The process is being started, or will be in a moment.
    Starts,
    /// The process serves. If it replaces a dead one, there is a time until which it may offer its toolboxes again.
    Serves(Arc<CommonProcess>, Option<Instant>),
    /// The process did not start, or is given up, for this reason.
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
            Phase::Starts => true,
            // A reload replaces a process that hangs.
            Phase::Serves(process, _) => !process.members.is_stuck(),
            Phase::Down(_) => false,
        };
        let Program { env, confine, .. } = &self.host;
        is_up && self.file.executable() == Some(executable) && (env, confine) == (&host.env, &host.confine)
    }

    pub(crate) fn is_confined(&self) -> bool {
        self.host.confine.is_some()
    }

    /// Admits one more id.
    ///
    /// # Errors
    /// The program has offered too many ids.
    pub(crate) fn admit(&self, id: &str) -> Result<(), String> {
        self.admitted.lock().admit(id)
    }

    /// Whether this toolbox is being opened with this manifest and configuration.
    pub(crate) fn is_coming(&self, manifest: &Manifest, config: &Configured) -> bool {
        let coming = self.coming.lock();
        coming
            .get(&manifest.id)
            .is_some_and(|(known, with)| **known == *manifest && config.keeps(with))
    }

    /// Lets toolboxes whose opening ended the process be opened again, after a reload.
    pub(crate) fn forgive(&self) {
        for suspicion in self.suspects.lock().values_mut() {
            *suspicion = Suspicion::Possible;
        }
    }

    /// Opens a toolbox of the program, as soon as the process serves and offers the toolbox, unless `given_up` is
    /// cancelled.
    ///
    /// # Errors
    /// As `Hosted::in_common`; or the process does not start, does not offer the toolbox any more, or ended when it
    /// opened only this toolbox before.
    ///
    /// # Cancel safety
    /// As `Hosted::in_common`.
    pub(crate) async fn open(
        &self,
        manifest: Arc<Manifest>,
        open: Open,
        services: Arc<dyn HostServices>,
        given_up: &CancellationToken,
    ) -> Result<Hosted, Failure> {
        let id = manifest.id.clone();
        let suspicion = self.suspects.lock().get(&id).copied();
        if let Some(Suspicion::Certain) = suspicion {
            let text = "its program ended while it opened this toolbox; reload it to try again";
            return Err(Failure::new(FailureKind::ToolboxCrashed, text));
        }
        let begins = async {
            loop {
                let process = self.process(&id).await?;
                let turn = match suspicion {
                    None => Either::Left(self.openings.read().await),
                    Some(_) => Either::Right(self.openings.write().await),
                };
                if !process.members.is_gone() {
                    break Ok::<_, Failure>((process, turn));
                }
            }
        };
        let Some(begun) = given_up.run_until_cancelled(begins).await else {
            return Err(Failure::new(
                FailureKind::ToolboxClosed,
                "its opening was given up",
            ));
        };
        let (process, _turn) = begun?;
        let opened = Hosted::in_common(&process, manifest, open, services, given_up).await;
        let mut suspects = self.suspects.lock();
        if opened.is_ok() {
            suspects.remove(&id);
        } else if process.members.is_gone() {
            suspects.insert(id, suspicion.map_or(Suspicion::Possible, |_| Suspicion::Certain));
        }
        opened
    }

    /// The program's process, as soon as it serves and offers a toolbox.
    async fn process(&self, id: &str) -> Result<Arc<CommonProcess>, Failure> {
        let mut phase = self.phase.clone();
        let is_decided = |phase: &Phase| match phase {
            Phase::Starts => false,
            // A process that has ended is about to be started again.
            Phase::Serves(process, _) => !process.members.is_gone(),
            Phase::Down(_) => true,
        };
        let decided = phase.wait_for(is_decided).await.map(|phase| phase.clone());
        let (process, until) = match decided {
            Ok(Phase::Serves(process, until)) => (process, until),
            Ok(Phase::Down(failure)) => return Err(failure),
            Ok(Phase::Starts) | Err(_) => {
                return Err(Failure::new(FailureKind::ToolboxClosed, "its program was ended"));
            }
        };
        if let Some(until) = until {
            let mut lists = process.offers();
            let mut died = process.died();
            let listed = lists.wait_for(|listed| listed.number > 1 || listed.ids.contains(id));
            let listed = tokio::select! {
                listed = timeout_at(until, listed) => listed.is_ok_and(|listed| listed.is_ok_and(|listed| listed.ids.contains(id))),
                _ = &mut died => true,
            };
            if !listed {
                let text = format!("its program does not offer toolbox `{id}` since it was started again");
                return Err(Failure::new(FailureKind::ToolboxError, text));
            }
        }
        Ok(process)
    }
}
