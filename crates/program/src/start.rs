//! A whole program of one toolbox. Read [`run`].

use std::future::pending;
use std::process::ExitCode;
use std::sync::Arc;

use ovos_toolbox_wire::{Failure, Manifest};
use protocol::{Hello, Opening};
use signals::Ending;

use crate::greeting::{GreetedProcess, hello};
use crate::link::Link;

use crate::sockets::Sockets;
use crate::toolbox::Toolbox;

/// The exit code where the machine does not give the program what it needs.
const EXIT_MACHINE: u8 = 70;

/// Serves a toolbox until the service closes it or is gone; the process ends in here, unless it cannot begin. `open` opens the
/// toolbox, brings its hardware to rest and moves nothing. Called with `--safe-stop`, the program ends at once: one that has
/// hardware to bring to rest looks for that argument before it calls this.
///
/// `open` has the context of a runtime of Tokio, whose tasks run on the thread that called this, until the process ends.
#[must_use]
pub fn run<T: Toolbox>(
    manifest: &Manifest,
    open: impl FnOnce(Opening, Link) -> Result<T, Failure> + Send + 'static,
) -> ExitCode {
    run_as(hello(&manifest.version, manifest), open)
}

/// As [`run`], for a program whose hello has features.
#[must_use]
pub fn run_as<T: Toolbox>(
    hello: Hello,
    open: impl FnOnce(Opening, Link) -> Result<T, Failure> + Send + 'static,
) -> ExitCode {
    if std::env::args()
        .next_back()
        .is_some_and(|last| last == "--safe-stop")
    {
        return ExitCode::SUCCESS;
    }
    match serve(hello, open) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::from(EXIT_MACHINE)
        }
    }
}

fn serve<T: Toolbox>(
    hello: Hello,
    open: impl FnOnce(Opening, Link) -> Result<T, Failure> + Send + 'static,
) -> Result<(), String> {
    let sockets = Sockets::take().map_err(|error| {
        format!("do not run this program directly: ovos-tools starts it for an entry of service.programs or service.mounts (file descriptors 3 \
            and 4 must be sockets: {error})")
    })?;
    let process = GreetedProcess::new(sockets, hello);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("signals cannot be waited for: {error}"))?;
    let handle = runtime.handle().clone();
    let process = process.and_then(|greeted| {
        greeted.serve(move |opening, link| {
            let _context = handle.enter();
            open(opening, link).map(|toolbox| Arc::new(toolbox) as Arc<dyn Toolbox>)
        })
    });
    let serving =
        process.map_err(|error| format!("the threads that serve its sockets cannot be started: {error}"))?;
    runtime.block_on(async {
        let mut ending = Ending::listen().map_err(|error| format!("signals: {error}"))?;
        ending.next().await;
        serving.leave();
        // The control lane ends the process.
        pending().await
    })
}

#[expect(clippy::print_stderr, reason = "the service logs it")]
fn complain(error: &str) {
    eprintln!("{error}");
}

/// Answers the person who starts a program by hand: the text goes to stdout, or to stderr with a status that means a failure.
#[allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "for the person who started it by hand"
)]
#[must_use]
pub fn print_and_exit(text: &str, status: u8) -> ExitCode {
    if status == 0 {
        print!("{text}");
    } else {
        eprint!("{text}");
    }
    ExitCode::from(status)
}
