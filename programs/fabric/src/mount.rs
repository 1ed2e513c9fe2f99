//! `ovos-tools fabric mount`: one toolbox of another machine, as a program of the service.
//!
//! It speaks the protocol of docs/protocol.md with the service and asks the host over its line. `view` says what follows from what is
//! heard, `contact` acts on it, `orders` are what the service asks, `runs` and `stops` keep what is under way, `line` carries. Nothing
//! here decides about safety: the host does. Read [`run`], then [`Shared`].

mod contact;
mod content;
pub(crate) mod line;
mod orders;
mod pending;
mod questions;
mod runs;
pub(crate) mod shared;
mod stops;
mod tool_lists;
mod view;

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::thread;

use ovos_toolbox_wire::{Failure, FailureKind, Manifest};
use parking_lot::Mutex;
use program::Link;
use protocol::{Hello, PROTOCOL, REMOTE, Raw};

use crate::folder::Folder;
use line::Line;
use shared::{Mount, Shared};

/// The command line of a mount.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The host's name
    pub(crate) host: String,
    /// The id of the toolbox on the host
    pub(crate) toolbox: String,
    /// The host's address
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) at: String,
    /// The id of the toolbox here, if that on the host is taken
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
}

/// Serves the toolbox until the service ends it.
pub(crate) fn run(folder: Folder, arguments: Arguments) -> ExitCode {
    let Arguments {
        host,
        toolbox,
        at,
        id,
    } = arguments;
    let id = id.unwrap_or_else(|| toolbox.clone());
    let manifest = Manifest {
        id,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        description: format!("Toolbox `{toolbox}` of the machine `{host}` at {at}."),
        host: Some(host.clone()),
        licence: "Apache-2.0".to_owned(),
        ..Manifest::default()
    };
    let identity = folder.valid_identity().map_err(|error| error.to_string());
    let ready = identity.and_then(|identity| Ok((identity, crate::session::endpoint(&at)?)));
    let hello = Hello {
        protocol: PROTOCOL,
        version: manifest.version.clone(),
        features: vec![REMOTE.to_owned()],
        toolboxes: vec![Raw::of(&manifest)],
        refusal: ready.as_ref().err().cloned(),
    };
    program::run_as(hello, move |_, link| {
        let (identity, endpoint) = ready.map_err(|why| Failure::new("ConfigError", why))?;
        let line = Line::new(folder, identity, host, endpoint);
        Mount::open(line, toolbox, link).map_err(|error| {
            let text = format!("its threads cannot be started: {error}");
            Failure::new(FailureKind::InternalError, text)
        })
    })
}

impl Mount {
    fn open(line: Line, toolbox: String, link: Link) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            line,
            toolbox,
            mount: uuid::Uuid::now_v7().to_string(),
            link,
            view: Mutex::default(),
            runs: Mutex::default(),
            stops: Mutex::default(),
            watcher: OnceLock::new(),
            lists: Mutex::default(),
            questions: Mutex::default(),
            backends: Mutex::default(),
            trouble: Mutex::default(),
            is_left: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            is_doubtful: AtomicBool::new(false),
            is_unknown: AtomicBool::new(true),
        });
        for (name, work) in [
            ("beats", Shared::beats as fn(&Arc<Shared>)),
            ("watch", Shared::watch),
        ] {
            let shared = shared.clone();
            thread::Builder::new()
                .name(name.to_owned())
                .spawn(move || work(&shared))?;
        }
        Ok(Self(shared))
    }
}
