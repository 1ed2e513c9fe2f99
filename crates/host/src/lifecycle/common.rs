//! A program that is several toolboxes, as the code of each of them refers to it. Read [`CommonProgram::open`]; its process is
//! `common_program`'s.

use std::sync::Arc;

use ovos_toolbox_wire::{Failure, Manifest};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::DropGuard;

use crate::artifact::file::PluginFile;
use crate::artifact::fingerprint::Fingerprint;
use crate::artifact::program::Executable;
use crate::contract::services::HostServices;
use crate::ffi::plugin::Open;
use crate::process::spawner::Program;
use crate::transport::common_process::CommonProcess;
use crate::transport::hosted::Hosted;
use crate::transport::members::Offers;
use section::ProgramConfig;

/// A program that is several toolboxes. Dropping it ends its process once its toolboxes are closed.
pub(crate) struct CommonProgram {
    pub(crate) entry: Arc<ProgramConfig>,
    pub(crate) file: Arc<PluginFile>,
    /// What the process was started with.
    pub(crate) host: Program,
    pub(crate) sha256: String,
    pub(crate) fingerprint: Fingerprint,
    /// The list that was taken last.
    pub(crate) offers: Mutex<Offers>,
    pub(crate) phase: watch::Receiver<Phase>,
    pub(crate) _end: DropGuard,
}

/// What its process does.
#[derive(Clone)]
pub(crate) enum Phase {
    /// It is being started, at once or in a moment.
    Starts,
    Serves(Arc<CommonProcess>),
    /// It did not start, or is given up, for this reason.
    Down(Failure),
}

impl std::fmt::Debug for CommonProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommonProgram")
            .field("entry", &self.entry.name)
            .finish_non_exhaustive()
    }
}

impl CommonProgram {
    /// Whether it need not be replaced for this.
    pub(crate) fn is_same(&self, executable: &Executable, host: &Program) -> bool {
        let is_up = !matches!(&*self.phase.borrow(), Phase::Down(_));
        let Program { env, confine, .. } = &self.host;
        is_up && self.file.executable() == Some(executable) && (env, confine) == (&host.env, &host.confine)
    }

    pub(crate) fn is_confined(&self) -> bool {
        self.host.confine.is_some()
    }

    /// Opens one of its toolboxes, once its process is there.
    ///
    /// # Errors
    /// As `Hosted::in_common`; or the process does not start.
    ///
    /// # Cancel safety
    /// As `Hosted::in_common`.
    pub(crate) async fn open(
        &self,
        manifest: Arc<Manifest>,
        open: Open,
        services: Arc<dyn HostServices>,
    ) -> Result<Hosted, Failure> {
        let mut phase = self.phase.clone();
        let phase = phase.wait_for(|phase| !matches!(phase, Phase::Starts)).await;
        let phase = phase.map(|phase| phase.clone());
        let process = match phase {
            Ok(Phase::Serves(process)) => process,
            Ok(Phase::Down(failure)) => return Err(failure),
            Ok(Phase::Starts) | Err(_) => {
                return Err(Failure::new("ToolboxClosed", "its program was ended"));
            }
        };
        Hosted::in_common(&process, manifest, open, services).await
    }
}
