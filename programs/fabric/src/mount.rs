//! `ovos-tools fabric mount`: one toolbox of another machine, as a program of the service.
//!
//! It speaks the protocol of docs/protocol.md with the service and asks the host over its line. `view` says what follows from what is
//! heard, `contact` acts on it, `orders` are what the service asks, `runs` and `stops` keep what is under way, `line` carries. Nothing
//! here decides about safety: the host does. Read [`run`], then [`Mount`].

mod contact;
mod content;
pub(crate) mod line;
mod orders;
mod questions;
mod runs;
mod stops;
mod tool_lists;
mod view;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use ovos_toolbox_wire::{Event, Failure, FailureKind, Manifest};
use parking_lot::Mutex;
use program::{Link, level};
use protocol::{Answer, Hello, PROTOCOL, REMOTE, Raw, RunEnd};

use crate::folder::Folder;
use crate::messages::RunWord;
use line::Line;
use questions::Questions;
use runs::Runs;
use stops::Stops;
use tool_lists::ToolLists;
use view::View;

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

/// A toolbox of another machine.
#[derive(Debug)]
struct Mount(Arc<Shared>);

struct Shared {
    line: Line,
    /// The toolbox's id on its host.
    toolbox: String,
    /// Drawn when this program starts.
    mount: String,
    link: Link,
    view: Mutex<View>,
    runs: Mutex<Runs>,
    stops: Mutex<Stops>,
    lists: Mutex<ToolLists>,
    questions: Mutex<Questions>,
    /// What the service is told of the backend while the host is reached, by unit.
    backends: Mutex<BTreeMap<String, Event>>,
    /// Why there is no contact, as it was told last.
    trouble: Mutex<String>,
    /// The service is gone.
    is_left: AtomicBool,
    is_closed: AtomicBool,
    /// The host was lost since the other end was looked at.
    is_doubtful: AtomicBool,
    /// The host was not asked yet who it is, or did not answer.
    is_unknown: AtomicBool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("toolbox", &self.toolbox)
            .finish_non_exhaustive()
    }
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

impl Shared {
    fn not_reached(&self) -> Failure {
        let (host, at) = (&self.line.host, &self.line.endpoint);
        let trouble = self.trouble.lock().clone();
        let why = match trouble.as_str() {
            "" if !self.view.lock().reached => "it was not heard yet",
            "" => "it does not answer",
            trouble => trouble,
        };
        Failure::new(
            FailureKind::ToolboxUnavailable,
            format!("host `{host}` ({at}) is not reached: {why}"),
        )
    }

    /// The failure of a run whose end nobody knows.
    fn lost(&self, why: &str) -> Failure {
        Failure::new(
            FailureKind::ToolboxUnavailable,
            format!("{why} while this ran; whether it was done is not known"),
        )
    }

    fn finish(&self, number: u64, word: RunWord, steps: Option<&program::Steps>, folder: Option<&str>) {
        match word {
            RunWord::Progress(progress) => {
                if let Some(steps) = steps {
                    steps.report(&progress);
                }
            }
            RunWord::Ended { end, content } => {
                let content = content::kept(content, folder);
                let failed = match &end {
                    RunEnd::Output(_) => None,
                    RunEnd::Cancelled => Some("its host ended it".to_owned()),
                    RunEnd::Error(why) | RunEnd::Lost(why) => Some(why.text().to_owned()),
                };
                let ended = self.runs.lock().end(number, end, &content);
                if let Some(why) = failed {
                    self.note_ends(ended, &format!("host `{}` says: {why}", self.line.host));
                }
            }
        }
    }

    /// Does what may wait for the network on a thread that ends with it.
    fn aside(&self, name: &str, work: impl FnOnce() + Send + 'static) {
        if let Err(error) = thread::Builder::new().name(name.to_owned()).spawn(work) {
            let text = format!("the thread `{name}` cannot be started: {error}");
            self.link.log(level::ERROR, "fabric", &text);
        }
    }

    /// Logs why runs ended without an output.
    fn note_ends(&self, names: impl IntoIterator<Item = String>, why: &str) {
        for name in names {
            self.link.log(level::INFO, "fabric", &format!("{name}: {why}"));
        }
    }
}

/// The failure of an answer that is none.
pub(crate) fn failure_of<T>(answer: Answer<T>) -> Failure {
    match answer {
        Answer::Error(failure) | Answer::Lost(failure) => serde_json::from_str(failure.text())
            .unwrap_or_else(|error| {
                Failure::new(
                    FailureKind::InternalError,
                    format!("an unreadable failure: {error}"),
                )
            }),
        Answer::Ok(_) => Failure::new(FailureKind::InternalError, "it did not fail"),
    }
}
