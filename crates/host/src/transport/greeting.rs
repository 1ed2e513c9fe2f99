//! The first words of a toolbox's process: who it is. Read [`ask`].

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use ovos_toolbox_wire::Manifest;
use protocol::{Hello, MAX_CONTROL, MAX_TOOLBOXES, Notice, PROTOCOL, Raw, TOOLBOXES};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::artifact::file::{Launch, PluginFile, Task};
use crate::artifact::probe::last_lines;
use crate::contract::manifest;
use crate::process::spawner::{self, Program};
use crate::transport::frame::Cutter;
use crate::transport::sockets::Pairs;

/// What is kept of what a program writes before its hello.
const MAX_STDERR_BYTES: u64 = 64 * 1024;
/// How long a program that has closed its connection has to end, so that its exit code can be told.
const END: Duration = Duration::from_millis(200);

/// What a program says that it is.
pub(crate) enum Said {
    /// One toolbox.
    One(Box<Manifest>),
    /// Several, which share one process of it, or none so far.
    Several(Vec<Raw<Manifest>>),
}

/// Starts a program, hears who it is, and ends it with everything in its process group.
///
/// # Errors
/// What it did instead, in words that follow the program's name.
///
/// # Cancel safety
/// It is ended.
pub(crate) async fn ask(file: &PluginFile, host: &Program, limit: Duration) -> Result<Said, String> {
    let trouble = |error: std::io::Error| format!("cannot be started: {error}");
    let Launch {
        mut command,
        folder: _folder,
    } = file.launch(host, Task::Serve);
    let Pairs {
        data,
        their_data,
        control: _control,
        their_control,
    } = Pairs::new().map_err(trouble)?;
    command
        .stdin(Stdio::from(OwnedFd::from(their_data)))
        .stdout(Stdio::from(OwnedFd::from(their_control)))
        .stderr(Stdio::piped());
    let (tell, told) = oneshot::channel();
    spawner::spawn(command, move |spawned| {
        // When the asker is gone, what is not received is dropped here, and ended.
        drop(tell.send(spawned.map(Started::new)));
    });
    let started = told
        .await
        .map_err(|error| format!("cannot be started: {error}"))?;
    let mut started = started.map_err(trouble)?;

    let stderr = started.child.stderr.take().map(ChildStderr::from_std).transpose();
    let mut stderr = stderr.map_err(trouble)?.map(|pipe| pipe.take(MAX_STDERR_BYTES));
    let mut written = Vec::new();
    let heard = {
        let complaints = async {
            if let Some(pipe) = &mut stderr {
                _ = pipe.read_to_end(&mut written).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            heard = timeout(limit, first_words(data)) => heard,
            () = complaints => return Err("was not heard".to_owned()),
        }
    };
    let wrong = match heard {
        Ok(Ok(hello)) => return what(&hello),
        Ok(Err(Unheard::Wrong(what))) => what,
        Ok(Err(Unheard::Ended)) => match started.end().await {
            Some(status) => format!("ended before its hello {}", how(status)),
            None => "closed its data connection before its hello".to_owned(),
        },
        Err(_) => format!("did not say hello within {} s", limit.as_secs_f64()),
    };
    if let Some(pipe) = &mut stderr {
        // What it wrote last is in the pipe.
        _ = timeout(END, pipe.read_to_end(&mut written)).await;
    }
    Err(match last_lines(&String::from_utf8_lossy(&written)) {
        lines if lines.is_empty() => wrong,
        lines => format!("{wrong}; it wrote: {lines}"),
    })
}

/// Whether a first notice is a hello of this version.
///
/// # Errors
/// What it is instead, in words that follow the name of who said it.
pub(crate) fn hello(first: &Notice) -> Result<&Hello, String> {
    match first {
        Notice::Hello(hello) if hello.protocol == PROTOCOL => Ok(hello),
        Notice::Hello(Hello {
            protocol, version, ..
        }) => Err(format!(
            "is of another version ({version}, protocol {protocol}; this service speaks {PROTOCOL}); restart the service, or \
             update the older of the two"
        )),
        _ => Err("said something else before its hello".to_owned()),
    }
}

/// What a hello says that its program is.
fn what(hello: &Hello) -> Result<Said, String> {
    if has_several(hello) {
        return several(hello).map(Said::Several);
    }
    manifest_of(hello).map(|manifest| Said::One(Box::new(manifest)))
}

/// Whether a program says that it may be several toolboxes.
pub(crate) fn has_several(hello: &Hello) -> bool {
    hello.features.iter().any(|feature| feature == TOOLBOXES)
}

/// The manifests of a program that may be several toolboxes; what is in each is another question.
///
/// # Errors
/// It has too many, in words that follow its name.
pub(crate) fn several(hello: &Hello) -> Result<Vec<Raw<Manifest>>, String> {
    match hello.toolboxes.len() {
        0..=MAX_TOOLBOXES => Ok(hello.toolboxes.clone()),
        many => Err(format!(
            "names {many} toolboxes in its hello; a program may be at most {MAX_TOOLBOXES}"
        )),
    }
}

/// The manifest of a program's one toolbox.
fn manifest_of(hello: &Hello) -> Result<Manifest, String> {
    let [manifest] = hello.toolboxes.as_slice() else {
        return Err(format!(
            "names {} toolboxes in its hello; expected one: \"toolboxes\": [{{\"id\": ...}}], or \"features\": [\"{TOOLBOXES}\"]",
            hello.toolboxes.len()
        ));
    };
    manifest::read(manifest.text())
        .map_err(|wrong| format!("has a manifest that is none: {}", wrong.join("; ")))
}

fn how(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("by signal {signal}{}", spawner::signal_name(signal)),
        (None, code) => format!("with exit code {}", code.unwrap_or_default()),
    }
}

/// Why there is no hello.
enum Unheard {
    Ended,
    Wrong(String),
}

async fn first_words(data: UnixStream) -> Result<Hello, Unheard> {
    let wrong = |error: std::io::Error| Unheard::Wrong(format!("cannot be heard: {error}"));
    data.set_nonblocking(true).map_err(wrong)?;
    let mut data = tokio::net::UnixStream::from_std(data).map_err(wrong)?;
    let mut cutter = Cutter::new(MAX_CONTROL);
    let mut bytes = vec![0; 16 * 1024];
    loop {
        match cutter.read::<Notice>() {
            Ok(Some(first)) => return hello(&first).cloned().map_err(Unheard::Wrong),
            Ok(None) => {}
            Err(error) => return Err(Unheard::Wrong(format!("said nonsense: {error}"))),
        }
        match data.read(&mut bytes).await {
            // A process that was killed resets the connection.
            Ok(0) | Err(_) => return Err(Unheard::Ended),
            Ok(count) => cutter.push(&bytes[..count]),
        }
    }
}

/// A process that is ended when this is dropped.
struct Started {
    child: Child,
}

impl Started {
    fn new(child: Child) -> Self {
        Self { child }
    }

    /// How it ended by itself.
    async fn end(&mut self) -> Option<ExitStatus> {
        /// How often it is looked at.
        const LOOK: Duration = Duration::from_millis(10);
        let ended = async {
            loop {
                if let Ok(Some(status)) = self.child.try_wait() {
                    return status;
                }
                sleep(LOOK).await;
            }
        };
        timeout(END, ended).await.ok()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            // Also when the process itself has ended: it may have left others behind.
            _ = kill_process_group(group, Signal::KILL);
        }
        // By itself, too: it may have left its group.
        _ = self.child.kill();
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            // Reaped whenever the kernel lets go of it, on a thread that may wait.
            let pid = self.child.id();
            let reaper = thread::Builder::new().name("tb-reaper".to_owned());
            if reaper.spawn(move || reap(pid)).is_err() {
                tracing::debug!(pid, "a program that was ended is not reaped");
            }
        }
    }
}

/// Waits for the end of a child that was killed.
fn reap(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
    }
}
