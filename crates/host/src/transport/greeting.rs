//! The hello of a toolbox's process, which says which toolboxes it is. Read [`ask`].

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use ovos_toolbox_wire::Manifest;
use protocol::{Hello, MAX_CONTROL, MAX_TOOLBOXES, Notice, PROTOCOL, Raw, TOOLBOXES};
use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::artifact::file::{Launch, PluginFile, Task};
use crate::artifact::probe::last_lines;
use crate::contract::manifest;
use crate::process::spawner::{self, Program};
use crate::process::started::StartedProcess;
use crate::transport::sockets::Pairs;
use program::frame::Cutter;

/// How much of a program's output before its hello is kept.
const MAX_STDERR_BYTES: u64 = 64 * 1024;
/// How long a program that has closed its connection has to end, so that its exit code can be reported.
const END: Duration = Duration::from_millis(200);

/// What a program is, according to its hello.
pub(crate) enum Said {
    /// One toolbox.
    One(Box<Manifest>),
    /// Several toolboxes that share one process.
    Several(Vec<Raw<Manifest>>),
}

/// Starts a program, reads its hello, and ends it with everything in its process group.
///
/// # Errors
/// What the program did instead, in words that follow its name.
///
/// # Cancel safety
/// The program is ended.
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
        // If the receiver is gone, the drop of the process here ends it.
        drop(tell.send(spawned.map(StartedProcess::new)));
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
        Ok(Err(Unheard::Ended)) => match started.end(END).await {
            Some(status) => format!("ended before its hello {}", how(status)),
            None => "closed its data connection before its hello".to_owned(),
        },
        Err(_) => format!(
            "did not say hello within {} s; if it takes longer to start and to import, raise service.probe_ms",
            limit.as_secs_f64()
        ),
    };
    if let Some(pipe) = &mut stderr {
        // The program's last lines are still in the pipe.
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
/// What the notice is instead, in words that follow the sender's name.
pub(crate) fn hello(first: &Notice) -> Result<&Hello, String> {
    match first {
        Notice::Hello(hello) if hello.protocol == PROTOCOL => Ok(hello),
        Notice::Hello(Hello {
            protocol, version, ..
        }) => Err(format!(
            "is of another version ({version}, protocol {protocol}; this service speaks {PROTOCOL}); restart the service, or \
             update the older of the two"
        )),
        _ => Err("sent something else before its hello".to_owned()),
    }
}

/// Reads from a hello what its program is.
fn what(hello: &Hello) -> Result<Said, String> {
    if has_several(hello) {
        return several(hello).map(Said::Several);
    }
    manifest_of(hello).map(|manifest| Said::One(Box::new(manifest)))
}

/// Whether a program says that it is several toolboxes.
pub(crate) fn has_several(hello: &Hello) -> bool {
    hello.features.iter().any(|feature| feature == TOOLBOXES)
}

/// The manifests of a program that is several toolboxes. Their content is not checked.
///
/// # Errors
/// There is none or there are too many, in words that follow the program's name.
pub(crate) fn several(hello: &Hello) -> Result<Vec<Raw<Manifest>>, String> {
    match hello.toolboxes.len() {
        1..=MAX_TOOLBOXES => Ok(hello.toolboxes.clone()),
        0 => Err("names no toolbox in its hello; a program names all of its toolboxes there".to_owned()),
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
        .map_err(|wrong| format!("has a manifest that cannot be used: {}", wrong.join("; ")))
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
            Err(error) => {
                return Err(Unheard::Wrong(format!(
                    "sent something that cannot be read: {error}"
                )));
            }
        }
        match data.read(&mut bytes).await {
            // A process that was killed resets the connection.
            Ok(0) | Err(_) => return Err(Unheard::Ended),
            Ok(count) => cutter.push(&bytes[..count]),
        }
    }
}
