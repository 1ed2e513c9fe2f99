//! A program that is several toolboxes: its one process, from the reload that found it until no toolbox of it is live.
//!
//! Owns the process: starts it again when it has ended, and gives it up when that happens too often. Each toolbox is brought back by
//! its own supervisor, as others are. Read [`CommonProgram::start`], then [`Life::live`].

use std::sync::{Arc, Weak};
use std::time::Duration;

use ovos_toolbox_wire::{Failure, Manifest};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::artifact::file::PluginFile;
use crate::artifact::fingerprint::Fingerprint;
use crate::artifact::program::Executable;
use crate::contract::services::HostServices;
use crate::ffi::plugin::Open;
use crate::lifecycle::health::Health;
use crate::lifecycle::offers;
use crate::lifecycle::shared::Shared;
use crate::process::spawner::Program;
use crate::transport::child::ProcessSettings;
use crate::transport::common_process::CommonProcess;
use crate::transport::hosted::Hosted;
use crate::transport::members::Offers;
use crate::transport::tether::Death;
use section::ProgramConfig;

/// How often a new list of toolboxes is taken: whatever it sends, toolboxes come and go no faster.
const PACE: Duration = Duration::from_secs(1);

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
    phase: watch::Receiver<Phase>,
    _end: DropGuard,
}

/// What its process does.
#[derive(Clone)]
enum Phase {
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

/// What is known of a program before its process is started to stay.
pub(crate) struct Known {
    pub(crate) entry: Arc<ProgramConfig>,
    pub(crate) file: Arc<PluginFile>,
    pub(crate) host: Program,
    pub(crate) sha256: String,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) offers: Offers,
}

impl CommonProgram {
    /// Starts its process, and keeps it started.
    pub(crate) fn start(manager: &Arc<Shared>, known: Known) -> Arc<Self> {
        let Known {
            entry,
            file,
            host,
            sha256,
            fingerprint,
            offers,
        } = known;
        let (told, phase) = watch::channel(Phase::Starts);
        let end = manager.stop.child_token();
        let program = Arc::new(Self {
            entry,
            file,
            host,
            sha256,
            fingerprint,
            offers: Mutex::new(offers),
            phase,
            _end: end.clone().drop_guard(),
        });
        let process = ProcessSettings {
            program: manager.settings.probe.program.clone(),
            file: program.file.clone(),
            env: program.host.env.clone(),
            memory_mb: None,
            confine: program.host.confine.clone(),
            hello: manager.settings.probe.limit,
            allow_sha256: Vec::new(),
            stop: end.clone(),
        };
        let life = Life {
            manager: manager.clone(),
            program: Arc::downgrade(&program),
            name: program.entry.name.clone(),
            process,
            told,
            end,
        };
        manager.tracker.spawn(life.live());
        program
    }

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

/// The task that owns the process.
struct Life {
    manager: Arc<Shared>,
    /// Weak: the program ends this task when nothing refers to it any more.
    program: Weak<CommonProgram>,
    name: String,
    process: ProcessSettings,
    told: watch::Sender<Phase>,
    end: CancellationToken,
}

impl Life {
    async fn live(self) {
        let mut health = Health::default();
        for generation in 1.. {
            let started = CommonProcess::start(
                self.process.clone(),
                &self.name,
                generation,
                self.manager.services.clone(),
            );
            // It ends by itself, and is waited for, when the program is ended.
            let started = started.await;
            if self.end.is_cancelled() && started.is_err() {
                return;
            }
            let (death, next) = match started {
                Ok(process) => match self.serve(process).await {
                    Some(death) => (death, Phase::Starts),
                    None => return,
                },
                Err(failure) => (Death::of(failure.message.clone()), Phase::Down(failure)),
            };
            let (settings, why) = (&self.manager.settings, &death.reason);
            if death.asked {
                tracing::warn!(
                    program = self.name,
                    generation,
                    reason = why,
                    "a program wants to be started again"
                );
                health.asked(why, Instant::now());
            } else if health.failed(why, Instant::now(), settings.max_failures) {
                return self.park(why).await;
            } else {
                tracing::error!(program = self.name, generation, reason = why, "a program ended");
            }
            self.told.send_replace(next);
            let wait = sleep(health.wait(settings.first_restart, settings.max_restart));
            if self.end.run_until_cancelled(wait).await.is_none() {
                return;
            }
            self.told.send_replace(Phase::Starts);
        }
    }

    /// Serves one process; says why it died, if it was not to end.
    async fn serve(&self, process: CommonProcess) -> Option<Death> {
        let process = Arc::new(process);
        self.told.send_replace(Phase::Serves(process.clone()));
        let died = process.died();
        tokio::pin!(died);
        let mut lists = process.offers();
        // It says its list first in its hello.
        lists.mark_changed();
        loop {
            let death = tokio::select! {
                death = &mut died => death,
                Ok(()) = lists.changed() => {
                    let offers = lists.borrow_and_update().clone();
                    if let Some(program) = self.program.upgrade() {
                        offers::renew(&self.manager, &program, offers).await;
                    }
                    tokio::select! {
                        death = &mut died => death,
                        () = sleep(PACE) => continue,
                        () = self.end.cancelled() => return self.close(&process).await,
                    }
                }
                () = self.end.cancelled() => return self.close(&process).await,
            };
            return Some(death.unwrap_or_else(|| Death::of("its process ended".to_owned())));
        }
    }

    /// Ends the process when its toolboxes have ended, or it has.
    async fn close(&self, process: &CommonProcess) -> Option<Death> {
        tokio::select! {
            () = process.members.settled() => {}
            _ = process.died() => {}
        }
        process.close().await;
        None
    }

    /// Gives it up until a reload.
    async fn park(&self, reason: &str) {
        let max = self.manager.settings.max_failures;
        let why = format!(
            "it ended {max} times within a minute (service.max_failures), the last time: {reason}; reload it to try again"
        );
        tracing::error!(program = self.name, reason = why, "a program is left alone");
        self.told
            .send_replace(Phase::Down(Failure::new("ToolboxCrashed", why.clone())));
        if let Some(program) = self.program.upgrade() {
            offers::give_up(&self.manager, &program, &why).await;
        }
    }
}
