//! The one process of a program that is several toolboxes, from the reload that found the program until the program is
//! dropped.
//!
//! Owns the process: starts it again when it has ended, and gives it up when that happens too often. As for any
//! toolbox, a supervisor of its own brings each toolbox back. Read [`CommonProgram::start`], then [`ProgramKeeper::live`].

use std::sync::{Arc, Weak};
use std::time::Duration;

use ovos_toolbox_wire::{Failure, FailureKind, Manifest};
use parking_lot::Mutex;
use protocol::Raw;
use tokio::sync::{RwLock, watch};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::artifact::file::PluginFile;
use crate::artifact::fingerprint::Fingerprint;
use crate::lifecycle::common_program::{CommonProgram, Phase};
use crate::lifecycle::health::Health;
use crate::lifecycle::offers;
use crate::lifecycle::shared::Shared;
use crate::process::spawner::Program;
use crate::transport::child::ProcessSettings;
use crate::transport::common_process::CommonProcess;
use crate::transport::members::ids_of;
use crate::transport::peer::Death;
use section::ProgramConfig;

/// The process is killed this long before the service stops to wait for it, because nothing would end it afterwards.
const KILLING: Duration = Duration::from_millis(200);

/// What the examination of a program found, before its lasting process is started.
pub(crate) struct ExaminedProgram {
    pub(crate) entry: Arc<ProgramConfig>,
    pub(crate) file: Arc<PluginFile>,
    pub(crate) host: Program,
    pub(crate) sha256: String,
    pub(crate) fingerprint: Fingerprint,
    /// The hashes that its toolboxes allow; empty if one of them allows everything.
    pub(crate) allow_sha256: Vec<String>,
    pub(crate) offers: Vec<Raw<Manifest>>,
}

impl CommonProgram {
    /// Starts the program's process, and starts it again whenever it ends.
    pub(crate) fn start(manager: &Arc<Shared>, examined: ExaminedProgram) -> Arc<Self> {
        let ExaminedProgram {
            entry,
            file,
            host,
            sha256,
            fingerprint,
            allow_sha256,
            offers,
        } = examined;
        let (phases, phase) = watch::channel(Phase::Starts(None));
        let end = manager.stop.child_token();
        let program = Arc::new(Self {
            entry,
            file,
            host,
            sha256,
            fingerprint,
            ids: ids_of(&offers),
            offers,
            phase,
            suspects: Mutex::default(),
            openings: RwLock::default(),
            _end: end.clone().drop_guard(),
        });
        let process = ProcessSettings {
            program: manager.settings.greeter.program.clone(),
            file: program.file.clone(),
            env: program.host.env.clone(),
            memory_mb: None,
            confine: program.host.confine.clone(),
            hello: manager.settings.greeter.hello,
            allow_sha256,
            stop: end.clone(),
        };
        let keeper = ProgramKeeper {
            manager: manager.clone(),
            program: Arc::downgrade(&program),
            name: program.entry.name.clone(),
            process,
            phases,
            end,
        };
        manager.tracker.spawn(keeper.live());
        program
    }
}

/// The task that owns the process.
struct ProgramKeeper {
    manager: Arc<Shared>,
    /// Weak: the program ends this task when nothing refers to it any more.
    program: Weak<CommonProgram>,
    name: String,
    process: ProcessSettings,
    phases: watch::Sender<Phase>,
    end: CancellationToken,
}

impl ProgramKeeper {
    async fn live(self) {
        let mut health = Health::default();
        for generation in 1.. {
            let started = CommonProcess::start(
                self.process.clone(),
                &self.name,
                generation,
                self.manager.services.clone(),
            );
            // If the program is ended meanwhile, this start ends by itself; it is awaited in every case.
            let started = started.await;
            if self.end.is_cancelled() && started.is_err() {
                return;
            }
            let (death, next) = match started {
                Ok(process) => match self.serve(process).await {
                    Some(death) => (death, Phase::Starts(None)),
                    None => return,
                },
                Err(failure) => (Death::of(failure.message.clone()), Phase::Starts(Some(failure))),
            };
            let (settings, why) = (&self.manager.settings, &death.reason);
            if death.asked {
                tracing::warn!(
                    program = self.name,
                    generation,
                    reason = why,
                    "a program asked to be restarted"
                );
                health.restart_requested(why, Instant::now());
            } else if health.failed(why, Instant::now(), settings.max_failures) {
                return self.park(why).await;
            } else {
                tracing::error!(program = self.name, generation, reason = why, "a program ended");
            }
            self.phases.send_replace(next);
            let wait = sleep(health.wait(settings.first_restart, settings.max_restart));
            if self.end.run_until_cancelled(wait).await.is_none() {
                return;
            }
        }
    }

    /// Serves one process until it ends. Returns why it died; `None` if the program was ended.
    async fn serve(&self, process: CommonProcess) -> Option<Death> {
        let process = Arc::new(process);
        self.phases.send_replace(Phase::Serves(process.clone()));
        let death = tokio::select! {
            death = process.died() => death,
            () = self.end.cancelled() => {
                self.close(&process).await;
                return None;
            }
        };
        Some(death.unwrap_or_else(|| Death::of("its process ended".to_owned())))
    }

    /// Closes the process when its toolboxes have ended, or it has ended itself. Kills it if the service ends before
    /// that.
    async fn close(&self, process: &CommonProcess) {
        let ends = async {
            tokio::select! {
                () = process.members.settled() => {}
                _ = process.died() => {}
            }
            process.close().await;
        };
        let is_late = async {
            self.manager.stop.cancelled().await;
            // Not set if the service does not wait at all.
            let end = self.manager.deadline.get().copied();
            sleep_until(
                end.and_then(|end| end.checked_sub(KILLING))
                    .unwrap_or_else(Instant::now),
            )
            .await;
        };
        tokio::select! {
            () = ends => {}
            () = is_late => process.end_now("it did not close before the service ended").await,
        }
    }

    /// Gives the program up until a reload.
    async fn park(&self, reason: &str) {
        let max = self.manager.settings.max_failures;
        let why = format!(
            "it ended {max} times within a minute (service.max_failures), the last time: {reason}; it is not restarted: run \
             `ovos-tools reload` to try again"
        );
        tracing::error!(
            program = self.name,
            reason = why,
            "a program failed too often and is not restarted"
        );
        self.phases.send_replace(Phase::Down(Failure::new(
            FailureKind::ToolboxCrashed,
            why.clone(),
        )));
        if let Some(program) = self.program.upgrade() {
            offers::give_up(&self.manager, &program, &why).await;
        }
    }
}
