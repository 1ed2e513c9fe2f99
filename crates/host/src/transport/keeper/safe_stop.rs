//! The fresh process that brings a toolbox's hardware to rest.

use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::process::KeeperSettings;
use crate::artifact::file::{Launch, Task};
use crate::process::descriptors;
use crate::process::spawner::spawn_now;
use crate::process::work_folder::WorkFolder;

/// How long `safe_stop` may take.
const SAFE_STOP: Duration = Duration::from_secs(5);

/// How often the process is checked.
const LOOK: Duration = Duration::from_millis(20);

/// How long it is tried again to start the process.
const ATTEMPTS: Duration = Duration::from_secs(1);

/// The fresh process, and its working directory if it has one.
pub(super) struct FreshProcess {
    child: Child,
    _folder: Option<WorkFolder>,
}

/// Starts the fresh process.
pub(super) fn start(settings: &KeeperSettings, id: &str) -> Option<FreshProcess> {
    let KeeperSettings {
        program,
        file,
        config,
        allow_sha256,
        ..
    } = settings;
    let until = Instant::now() + ATTEMPTS;
    loop {
        // Without it, whatever has used up the descriptors of this process would keep the hardware moving.
        let spare = descriptors::spare();
        if let Err(why) = file.check_again(allow_sha256) {
            tracing::error!(toolbox = id, why, "safe_stop is not called");
            return None;
        }
        let Launch { mut command, folder } = file.launch(program, Task::SafeStop);
        let spawned = program::input(config).and_then(|config| {
            command
                .stdin(config)
                .stdout(Stdio::null())
                .stderr(Stdio::inherit());
            spawn_now(command)
        });
        match spawned {
            Ok(child) => {
                return Some(FreshProcess {
                    child,
                    _folder: folder,
                });
            }
            Err(error) if Instant::now() < until => {
                // Something else took what the reserve had.
                tracing::warn!(toolbox = id, %error, "safe_stop could not be called yet");
                drop(spare);
                thread::sleep(LOOK);
            }
            Err(error) => {
                tracing::error!(toolbox = id, %error, "safe_stop could not be called");
                return None;
            }
        }
    }
}

/// Waits until the fresh process has ended; kills it after the time limit.
pub(super) fn wait(mut fresh: FreshProcess, id: &str) {
    let child = &mut fresh.child;
    let until = Instant::now() + SAFE_STOP;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => {
                tracing::info!(
                    toolbox = id,
                    "a fresh process for safe_stop ended without an error, after the toolbox's own had ended"
                );
                return;
            }
            Ok(Some(status)) => {
                tracing::error!(toolbox = id, %status, "safe_stop failed");
                return;
            }
            Ok(None) if Instant::now() < until => thread::sleep(LOOK),
            Ok(None) | Err(_) => {
                tracing::error!(
                    toolbox = id,
                    limit_ms = SAFE_STOP.as_millis(),
                    "safe_stop did not return"
                );
                _ = child.kill();
                _ = child.wait();
                return;
            }
        }
    }
}
