//! The hello of a toolbox's process: the only way to learn what a file or a program offers. Read [`ask`].

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use ovos_toolbox_wire::Manifest;
use program::frame::Cutter;
use protocol::{Hello, MAX_CONTROL, MAX_TOOLBOXES, Notice, PROTOCOL, Raw, TOOLBOXES};
use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;
use tokio::time::timeout;

use crate::artifact::file::{Launch, PluginFile, Task};
use crate::artifact::greeter::{Greeter, last_lines};
use crate::contract::manifest;
use crate::process::spawner::{self, Program};
use crate::process::started_process::StartedProcess;
use crate::transport::sockets::Pairs;

/// How much of a process's output before its hello is kept.
const MAX_STDERR_BYTES: u64 = 64 * 1024;
/// How long a process that has closed its connection has to end, so that its exit code can be reported.
const END: Duration = Duration::from_millis(200);

/// Why there is no hello. The last lines that the process wrote may be empty.
enum NoHello {
    NotStarted(io::Error),
    Late {
        limit: Duration,
        wrote: String,
    },
    Ended {
        status: Option<ExitStatus>,
        wrote: String,
    },
    /// It said something else, in words that follow its name.
    Wrong {
        what: String,
        wrote: String,
    },
    /// It said why it is no toolbox.
    Refused(String),
}

impl NoHello {
    /// The reason for a program, in words that follow its name.
    fn of_program(self) -> String {
        match self {
            Self::NotStarted(error) => format!("cannot be started: {error}"),
            Self::Late { limit, wrote } => format!(
                "sent no hello within {} s; if it needs longer to start and to import, raise service.probe_ms{}",
                limit.as_secs_f64(),
                output_note(&wrote)
            ),
            Self::Ended {
                status: Some(status),
                wrote,
            } => {
                let how = match (status.signal(), status.code()) {
                    (Some(signal), _) => format!("by signal {signal}{}", spawner::signal_name(signal)),
                    (None, code) => format!("with exit code {}", code.unwrap_or_default()),
                };
                format!("ended before its hello, {how}{}", output_note(&wrote))
            }
            Self::Ended { status: None, wrote } => {
                format!(
                    "closed its data connection before its hello{}",
                    output_note(&wrote)
                )
            }
            Self::Wrong { what, wrote } => format!("{what}{}", output_note(&wrote)),
            Self::Refused(reason) => format!("says that it cannot be a toolbox: {reason}"),
        }
    }

    /// The reason for a plugin, which is loaded from `file` and known as `shown`.
    fn of_file(self, file: &Path, shown: &Path, program: &Path) -> String {
        let path = shown.display();
        match self {
            Self::NotStarted(error) => format!("cannot start {} to probe {path}: {error}", program.display()),
            Self::Late { limit, wrote } => format!(
                "{path} does not load within {} ms (service.probe_ms){}",
                limit.as_millis(),
                output_note(&wrote)
            ),
            Self::Ended { status, wrote } => {
                let how = match status.map(|status| (status.signal(), status.code())) {
                    Some((Some(signal), _)) => format!("signal {signal}{}", spawner::signal_name(signal)),
                    Some((None, Some(code))) => format!("exit code {code} before it answered"),
                    Some((None, None)) | None => "its end is unknown".to_owned(),
                };
                format!(
                    "{path} kills the process that loads it: {how}{}",
                    output_note(&wrote)
                )
            }
            Self::Wrong { what, wrote } => {
                format!("{path}: the process that loads it {what}{}", output_note(&wrote))
            }
            Self::Refused(reason) => reason.replace(&file.display().to_string(), &path.to_string()),
        }
    }
}

fn output_note(wrote: &str) -> String {
    if wrote.is_empty() {
        String::new()
    } else {
        format!("; it wrote: {wrote}")
    }
}

/// What a program is, according to its hello.
pub(crate) enum Introduction {
    /// One toolbox.
    One(Box<Manifest>),
    /// Several toolboxes that share one process.
    Several(Vec<Raw<Manifest>>),
}

/// Learns what a plugin file or a program is. A plugin file is known as `shown`.
///
/// # Errors
/// What is wrong with it.
///
/// # Cancel safety
/// The process is ended.
pub(crate) async fn learn(
    file: &PluginFile,
    shown: &Path,
    host: &Program,
    greeter: &Greeter,
) -> Result<Introduction, String> {
    let answer = ask(file, host, greeter.limit_of(file)).await;
    if file.executable().is_some() {
        let hello = answer.map_err(NoHello::of_program);
        return hello
            .and_then(|hello| what(&hello))
            .map_err(|what| format!("it {what}"));
    }
    let hello = answer.map_err(|none| none.of_file(file.path(), shown, &greeter.program))?;
    let text = hello.toolboxes.first().map_or("", Raw::text);
    let manifest = manifest::read(text);
    let manifest = manifest.map_err(|wrong| format!("{}: manifest: {}", shown.display(), wrong.join("; ")));
    Ok(Introduction::One(Box::new(manifest?)))
}

/// Learns what is in a plugin file of the caller, which is known as `shown`.
///
/// # Errors
/// What is wrong with the file.
///
/// # Cancel safety
/// The process that loads it is ended.
pub async fn greet(path: &Path, shown: &Path, greeter: &Greeter) -> Result<Manifest, String> {
    let file = PluginFile::lent(path.to_owned());
    let host = greeter.host(greeter.env.clone(), None);
    match learn(&file, shown, &host, greeter).await? {
        Introduction::One(manifest) => Ok(*manifest),
        Introduction::Several(_) => Err(format!(
            "{} says that it is several toolboxes; a plugin is one: build one file for each toolbox",
            shown.display()
        )),
    }
}

/// Starts a process, reads its hello, and ends it with everything in its process group.
///
/// # Cancel safety
/// The process is ended.
async fn ask(file: &PluginFile, host: &Program, limit: Duration) -> Result<Hello, NoHello> {
    let Launch {
        mut command,
        folder: _folder,
    } = file.launch(host, Task::Greet);
    let Pairs {
        data,
        their_data,
        control: _control,
        their_control,
    } = Pairs::new().map_err(NoHello::NotStarted)?;
    command
        .stdin(Stdio::from(OwnedFd::from(their_data)))
        .stdout(Stdio::from(OwnedFd::from(their_control)))
        .stderr(Stdio::piped());
    let started = StartedProcess::start(command).await;
    let mut started = started.map_err(NoHello::NotStarted)?;

    let stderr = started.child.stderr.take().map(ChildStderr::from_std).transpose();
    let stderr = stderr.map_err(NoHello::NotStarted)?;
    let mut stderr = stderr.map(|pipe| pipe.take(MAX_STDERR_BYTES));
    // Read into a buffer of this function's, which keeps the last lines of a process that is given up.
    let mut written = Vec::new();
    let greeting = {
        let complaints = async {
            if let Some(pipe) = &mut stderr {
                _ = pipe.read_to_end(&mut written).await;
            }
            pending::<Infallible>().await
        };
        tokio::select! {
            greeting = timeout(limit, first_words(data)) => greeting,
            never = complaints => match never {},
        }
    };
    let lines = |written: &[u8]| last_lines(&String::from_utf8_lossy(written));
    let unheard = match greeting {
        Ok(Ok(Hello {
            refusal: Some(reason),
            ..
        })) => return Err(NoHello::Refused(reason)),
        Ok(Ok(hello)) => return Ok(hello),
        Ok(Err(unheard)) => unheard,
        Err(_) => {
            let wrote = lines(&written);
            return Err(NoHello::Late { limit, wrote });
        }
    };
    let status = match &unheard {
        Unheard::Ended => started.end(END).await,
        Unheard::Wrong(_) => None,
    };
    if let Some(pipe) = &mut stderr {
        // Its last lines are still in the pipe.
        _ = timeout(END, pipe.read_to_end(&mut written)).await;
    }
    let wrote = lines(&written);
    Err(match unheard {
        Unheard::Ended => NoHello::Ended { status, wrote },
        Unheard::Wrong(what) => NoHello::Wrong { what, wrote },
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
            "speaks protocol {protocol} (version {version}), but this service speaks {PROTOCOL}: restart the service, or \
             update the older of the two"
        )),
        _ => Err("sent something else before its hello".to_owned()),
    }
}

/// Reads from a hello what its program is.
fn what(hello: &Hello) -> Result<Introduction, String> {
    if has_several(hello) {
        return several(hello).map(Introduction::Several);
    }
    manifest_of(hello).map(|manifest| Introduction::One(Box::new(manifest)))
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

/// Why there is no hello on a connection.
enum Unheard {
    Ended,
    Wrong(String),
}

async fn first_words(data: UnixStream) -> Result<Hello, Unheard> {
    let wrong = |error: std::io::Error| Unheard::Wrong(format!("cannot be read from: {error}"));
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
