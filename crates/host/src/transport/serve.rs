//! The child's side of `isolation: process`: one toolbox, hosted for a service at the other end of two sockets.
//!
//! Owns the process: decides what it keeps open and when it ends, and ensures that nothing moves when the service is
//! gone. The toolbox itself is served in the same way as one in the service's process. Each socket has a thread that
//! does nothing else, and the runtime on the main thread never runs plugin code. Read [`child_main`] and [`Control`].

mod host;
mod lane;
pub(super) mod notifier;
mod program;

use std::convert::Infallible;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use protocol::{Hello, Notice, PROTOCOL};
use rustix::process::Signal;
use signals::Ending;

use crate::ffi::load::Library;
use crate::ffi::server::Notices;
use crate::process::confine;
use crate::transport::process_log;
use host::{Host, kill_self};
use lane::Control;
use notifier::Notifier;
pub use program::{ProgramTask, become_program};

/// How long `safe_stop` may take.
pub(crate) const SAFE_STOP: Duration = Duration::from_secs(5);
/// The process of a `safe_stop` ends itself after this time: the service that would end it may be gone, and the device
/// must become free.
const SAFE_STOP_ENDS: Duration = Duration::from_secs(6);

/// Hosts the toolbox in `file`, confined as `confine` says, until the service closes it or is gone.
#[must_use]
pub fn child_main(file: &Path, confine: Option<&str>) -> ExitCode {
    match serve(file, confine) {
        Ok(never) => match never {},
        Err(error) => fail(&format!("host {}: {error}", file.display())),
    }
}

/// Brings the hardware of the toolbox in `file` to rest; its configuration comes through stdin.
#[must_use]
pub fn safe_stop_main(file: &Path, confine: Option<&str>) -> ExitCode {
    if let Err(error) = put_on(confine, file) {
        return fail(&format!("safe_stop was not called: {error}"));
    }
    let limit = thread::Builder::new().spawn(|| {
        thread::sleep(SAFE_STOP_ENDS);
        _ = fail("safe_stop did not return");
        kill_self();
    });
    if let Err(error) = limit {
        return fail(&format!(
            "safe_stop was not called: its time limit does not start: {error}"
        ));
    }
    let mut config = String::new();
    if let Err(error) = std::io::stdin().read_to_string(&mut config) {
        return fail(&format!("read the configuration: {error}"));
    }
    match Library::load(file, file) {
        Ok(library) => match library.safe_stop(&config) {
            None | Some(Ok(())) => ExitCode::SUCCESS,
            Some(Err(failure)) => fail(&failure.to_string()),
        },
        Err(error) => fail(&error.to_string()),
    }
}

#[expect(clippy::print_stderr, reason = "the service reads it there")]
fn fail(text: &str) -> ExitCode {
    eprintln!("{text}");
    ExitCode::FAILURE
}

/// Confines this process, which still has only one thread.
fn put_on(argument: Option<&str>, file: &Path) -> Result<Vec<PathBuf>, String> {
    confine::no_core().map_err(|e| format!("forbid core files: {e}"))?;
    match argument {
        None => Ok(Vec::new()),
        Some(text) => confine::put_on(&confine::from_argument(text)?, file).map_err(|e| e.advise()),
    }
}

fn serve(file: &Path, confine: Option<&str>) -> std::io::Result<Infallible> {
    let (data, control) = take_sockets()?;
    let confined = put_on(confine, file);
    let notifier = Arc::new(Notifier::new(data, control)?);
    // Sent before any other notice and before anything can fail (see `Notice::Hello`).
    notifier.data(Notice::Hello(hello()));
    process_log::install(notifier.clone());
    for path in confined.iter().flatten() {
        tracing::warn!(
            path = %path.display(),
            "`confine` names a path that does not exist; if it appears later, a reload gives access to it"
        );
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let host = Arc::new(Host::new(file, notifier, confined.err()));
    let lane = Control { host: host.clone() };
    thread::Builder::new()
        .name("control".to_owned())
        .spawn(move || lane.run())?;
    let data = host.clone();
    thread::Builder::new()
        .name("data".to_owned())
        .spawn(move || data.serve_data())?;
    runtime.block_on(async {
        let mut ending = Ending::listen()?;
        ending.next().await;
        host.leave();
        // The control thread ends the process.
        std::future::pending().await
    })
}

fn hello() -> Hello {
    Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        features: Vec::new(),
        toolboxes: Vec::new(),
    }
}

/// Takes the two sockets from stdin and stdout, and closes everything else that was inherited.
fn take_sockets() -> std::io::Result<(UnixStream, UnixStream)> {
    stand_alone()?;
    let data = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let control = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    let null = std::fs::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    // The toolbox's output goes to stderr, whose last lines the service keeps.
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    let (data, control) = (UnixStream::from(data), UnixStream::from(control));
    // The data socket stays blocking: it has a thread of its own that waits in it.
    control.set_nonblocking(true)?;
    Ok((data, control))
}

/// Makes this process end with the service and gain no rights, and closes everything inherited but stdin, stdout and
/// stderr.
fn stand_alone() -> std::io::Result<()> {
    // Only a second safeguard: the sockets already show that the service is gone.
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
    rustix::thread::set_no_new_privs(true)?;
    close_inherited()
}

/// Closes inherited descriptors. The service opens its own with close-on-exec; those that other code left open in the
/// service may not have it.
fn close_inherited() -> std::io::Result<()> {
    let numbers = std::fs::read_dir("/proc/self/fd")?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    // Collected first: the folder itself is open while it is read, and closed afterwards.
    let numbers: Vec<i32> = numbers.filter(|number| *number > 2).collect();
    let is_open = |number: &i32| std::fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_ok();
    for number in numbers.into_iter().filter(is_open) {
        #[expect(unsafe_code, reason = "descriptors that nothing in this process knows of")]
        // SAFETY: this is the first thing the process does after its arguments were read; it has opened nothing itself
        // but the folder above, which is closed again, so nothing of ours is closed here.
        unsafe {
            rustix::io::close(number);
        }
    }
    Ok(())
}
