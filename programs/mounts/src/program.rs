//! The program: from its first notice to its end. Read [`run`].

use std::future::pending;
use std::process::ExitCode;
use std::sync::Arc;

use ovos_toolbox_wire::Manifest;
use program::{GreetedProcess, Sockets, Toolbox, hello};
use signals::Ending;

use crate::complaint::{EXIT_MACHINE, complain};
use crate::mount_toolbox::MountToolbox;

/// Serves the toolbox `id` until the service closes it or is gone.
pub(crate) fn run(id: &str) -> ExitCode {
    match serve_alone(id) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::from(EXIT_MACHINE)
        }
    }
}

fn serve_alone(id: &str) -> Result<(), String> {
    let sockets = Sockets::take().map_err(|error| {
        format!("do not run this program directly: ovos-tools starts it for each server in service.mounts (file descriptors 3 \
            and 4 must be sockets: {error})")
    })?;
    let manifest = manifest(id);
    let greeted = GreetedProcess::new(sockets, hello(&manifest.version, &manifest))
        .map_err(|error| format!("lost the service: {error}"))?;
    // Everything of a mount runs on this thread, because the kernel ends the servers when the thread that started them ends.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    // This fails if another part of the program has already installed a provider, which is just as good.
    _ = rustls::crypto::ring::default_provider().install_default();
    let (id, handle) = (manifest.id, runtime.handle().clone());
    let serving = greeted.serve(move |opening, link| {
        let served: Arc<dyn Toolbox> = Arc::new(MountToolbox::open(&id, &opening, link, handle)?);
        Ok(served)
    });
    let serving =
        serving.map_err(|error| format!("the threads that serve its sockets cannot be started: {error}"))?;
    runtime.block_on(async {
        let mut ending = Ending::listen().map_err(|error| format!("signals: {error}"))?;
        ending.next().await;
        serving.leave();
        // The control lane ends the process.
        pending().await
    })
}

fn manifest(id: &str) -> Manifest {
    Manifest {
        id: id.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        description: "A server of the Model Context Protocol.".to_owned(),
        licence: env!("CARGO_PKG_LICENSE").to_owned(),
        // The server may hold a device, a port or a lock.
        exclusive: true,
        ..Manifest::default()
    }
}
