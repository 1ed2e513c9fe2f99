//! The tasks of `toolbox-host`: hosting a plugin, and bringing its hardware to rest. Read [`serve`].

use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ovos_toolbox_abi::status;
use ovos_toolbox_wire::{Failure, FailureKind, Manifest};
use program::{GreetedProcess, Sockets, Toolbox, json, kill_self};
use protocol::{Hello, PROTOCOL};
use signals::Ending;

use crate::load::{self, Library};
use crate::log;
use crate::toolbox::OpenPlugin;

/// A process for `safe_stop` kills itself after this time, in case the service that would do so is gone: the device must become
/// free.
const SAFE_STOP_ENDS: Duration = Duration::from_secs(6);

/// Hosts the toolbox in `file` until the service closes it or is gone. `confined` is how the process was confined: the paths that
/// it may use and that do not exist, or why it is not confined; nothing is loaded then.
///
/// # Errors
/// The process cannot begin.
pub fn serve(file: &Path, sockets: Sockets, confined: Result<Vec<PathBuf>, String>) -> std::io::Result<()> {
    let missing = confined.as_ref().map_or(&[][..], Vec::as_slice).to_owned();
    let loaded = load(file, confined);
    let greeted = GreetedProcess::new(sockets, hello(&loaded))?;
    log::install(greeted.notices().clone());
    for path in missing {
        tracing::warn!(
            path = %path.display(),
            "`confine` names a path that does not exist; if it appears later, a reload gives access to it"
        );
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let file = file.to_owned();
    let serving = greeted.serve(move |opening, link| {
        let library = loaded?;
        let manifest = json::read::<Manifest>(library.manifest().text());
        let manifest = manifest.map_err(|error| {
            let text = format!("the manifest cannot be read: {error}");
            Failure::new(FailureKind::ToolboxError, text)
        })?;
        let toolbox: Arc<dyn Toolbox> = Arc::new(OpenPlugin::new(library, manifest, file, opening, link));
        Ok(toolbox)
    })?;
    runtime.block_on(async {
        let mut ending = Ending::listen()?;
        ending.next().await;
        serving.leave();
        // The control thread ends the process.
        std::future::pending().await
    })
}

fn load(file: &Path, confined: Result<Vec<PathBuf>, String>) -> Result<Library, Failure> {
    confined.map_err(|reason| Failure::new(FailureKind::PermissionError, reason))?;
    let library = Library::load(file);
    library.map_err(|error| Failure::new(FailureKind::ToolboxError, error.to_string()))
}

/// The first notice: the toolbox in the file, or why it cannot be loaded.
fn hello(loaded: &Result<Library, Failure>) -> Hello {
    Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        features: Vec::new(),
        toolboxes: loaded.iter().map(|library| library.manifest().clone()).collect(),
        refusal: loaded.as_ref().err().map(|failure| failure.message.clone()),
    }
}

/// Brings the hardware of the toolbox in `file` to rest; its configuration comes through stdin.
///
/// # Errors
/// The hardware may not be at rest; the text says why.
pub fn safe_stop(file: &Path) -> Result<(), String> {
    let limit = thread::Builder::new().spawn(|| {
        thread::sleep(SAFE_STOP_ENDS);
        complain("safe_stop did not return");
        kill_self();
    });
    limit.map_err(|error| format!("safe_stop was not called: its time limit cannot be set: {error}"))?;
    let mut config = String::new();
    let read = std::io::stdin().read_to_string(&mut config);
    read.map_err(|error| format!("read the configuration: {error}"))?;
    let library = Library::load(file).map_err(|error| error.to_string())?;
    let Some(result) = library.safe_stop(&config) else {
        complain("the toolbox has no safe_stop: nothing was called");
        return Ok(());
    };
    result.map_err(|failure| failure.to_string())
}

/// Does the work of a role of the toolbox in `file`, which the toolbox itself asked for; `leash` is the socket to it.
///
/// # Errors
/// The file has no such role, or the work ended badly.
pub fn play_role(file: &Path, role: &str, leash: OwnedFd) -> Result<(), String> {
    match load::play(file, role, leash).map_err(|error| error.to_string())? {
        status::OK => Ok(()),
        status::UNKNOWN_TOOL => Err(format!("the toolbox has no role {role}")),
        other => Err(format!("the role {role} ended with status {other}")),
    }
}

#[expect(clippy::print_stderr, reason = "the service reads it there")]
fn complain(text: &str) {
    eprintln!("{text}");
}
