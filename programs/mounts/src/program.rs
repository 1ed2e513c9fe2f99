//! The program: from its first notice to its end. Read [`run`].

use std::process::ExitCode;

use ovos_toolbox_wire::Manifest;

use crate::mount_toolbox::MountToolbox;

/// Serves the toolbox `id` until the service closes it or is gone.
pub(crate) fn run(id: &str) -> ExitCode {
    // This fails if another part of the program has already installed a provider, which is just as good.
    _ = rustls::crypto::ring::default_provider().install_default();
    let manifest = manifest(id);
    let id = manifest.id.clone();
    program::run(&manifest, move |opening, link| {
        MountToolbox::open(&id, &opening, link)
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
