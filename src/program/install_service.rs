//! `ovos-tools install-service`: installs or removes a systemd user unit that runs this program.
//!
//! The unit is `packaging/ovos-tools.service`, which packages install too, with the path of this program in it. Read [`unit`],
//! which is pure, then [`run`].

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use clap::Args;
use serde::Serialize;

use ::config::{ProcessEnvironment, Xdg, write_atomically};
use cli::{CliError, Context, Options};

/// The unit, for a program in /usr/local/bin.
const TEMPLATE: &str = include_str!("../../packaging/ovos-tools.service");
/// The program in [`TEMPLATE`].
const TEMPLATE_PROGRAM: &str = "/usr/local/bin/ovos-tools";
/// The first line of a unit of ours. A file without it was written by another program or a person, and is left alone.
const MARK: &str = "# Written by `ovos-tools install-service`, which replaces this file.";
const UNIT: &str = "ovos-tools.service";

/// Arguments of `install-service`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools install-service                          start it now and with every login
  ovos-tools install-service --plugins ~/toolboxes    with these toolboxes only
  ovos-tools install-service --remove                 stop it, and remove what this command has written

--bus and --config are written into the unit, too. To start it at boot, without a login: loginctl enable-linger")]
pub(crate) struct Arguments {
    /// Stop the service and remove its unit
    #[arg(long, conflicts_with = "plugins")]
    remove: bool,
    /// Where the service looks for plugins, instead of the configured folders; may be given several times
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    plugins: Vec<PathBuf>,
}

/// The result.
#[derive(Serialize)]
struct Report {
    /// The file of the unit.
    unit: PathBuf,
    /// Whether the file is there now.
    installed: bool,
    /// Whether the content differs from before.
    changed: bool,
}

pub(super) fn run(arguments: &Arguments, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let folder = Xdg::new(&ProcessEnvironment).config_home.join("systemd/user");
    let file = folder.join(UNIT);
    let before = read_our_unit(&file)?;
    if arguments.remove {
        return remove(&folder, &file, before.is_some(), context);
    }
    let program = program()?;
    let prefix = program.parent().and_then(Path::parent);
    let venv = prefix.filter(|prefix| prefix.join("pyvenv.cfg").is_file());
    let text = unit(&program, venv, &serve_options(arguments, context.options)?)?;
    let changed = before.as_deref() != Some(text.as_str());
    if changed {
        // Only its owner may read it: the address of the bus may have a password.
        write_atomically(&file, text.as_bytes(), None)
            .map_err(|cause| machine(format!("write {}", file.display()), cause))?;
    }
    systemctl(&["daemon-reload"]).map_err(|cause| {
        let by_hand = "systemctl --user daemon-reload && systemctl --user enable --now ovos-tools";
        let file = file.display();
        CliError::Service(format!(
            "wrote the unit {file}, but cannot reach systemd ({cause}): log in as the user of the service and run `{by_hand}`"
        ))
    })?;
    systemctl(&["enable", "--now", UNIT]).map_err(|cause| {
        let what = "enable the unit (if it started, `journalctl --user -u ovos-tools` shows more)";
        machine(what.to_owned(), cause)
    })?;
    let report = Report {
        unit: file,
        installed: true,
        changed,
    };
    let unit = report.unit.display();
    let replaced = before.is_some() && changed;
    context.output.result(&report, |_| {
        let mut text = format!("{} is running and starts at every login: {unit}\n", program.display());
        if replaced {
            text +=
                "The unit changed. To apply it to a service that was already running: systemctl --user restart ovos-tools\n";
        }
        text + "To start it at boot, without a login: loginctl enable-linger\n"
    })
}

/// Disables, stops and deletes the unit.
fn remove(
    folder: &Path,
    file: &Path,
    installed: bool,
    context: &mut Context<'_, '_>,
) -> Result<(), CliError> {
    let mut managed = false;
    if installed {
        // Without a systemd manager, no unit runs. With one, a unit that does not stop is kept, so that it can be stopped again.
        managed = systemctl(&["daemon-reload"]).is_ok();
        if managed {
            systemctl(&["disable", "--now", UNIT])
                .map_err(|cause| machine(format!("stop and disable {UNIT}"), cause))?;
        }
        let wanted = TEMPLATE.lines().filter_map(|line| line.strip_prefix("WantedBy="));
        let links = wanted.map(|target| folder.join(format!("{target}.wants")).join(UNIT));
        for path in links.chain([file.to_owned()]) {
            match fs::remove_file(&path) {
                Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                    return Err(machine(format!("remove {}", path.display()), cause));
                }
                _ => {}
            }
        }
    }
    if managed {
        systemctl(&["daemon-reload"])
            .map_err(|cause| machine("reload systemd after the removal".to_owned(), cause))?;
    }
    let report = Report {
        unit: file.to_owned(),
        installed: false,
        changed: installed,
    };
    let file = file.display();
    context.output.result(&report, |_| match (installed, managed) {
        (true, true) => format!("stopped and removed {file}\n"),
        (true, false) => {
            format!("removed {file}; no systemd user manager runs here, so nothing was stopped\n")
        }
        (false, _) => format!("nothing to remove: there is no {file}\n"),
    })
}

/// The content of the unit that is installed; `None` if there is none.
///
/// # Errors
/// The unit exists, but this command did not write it.
fn read_our_unit(file: &Path) -> Result<Option<String>, CliError> {
    // `systemctl --user link` and `mask` make links.
    let linked = file.is_symlink();
    match fs::read_to_string(file) {
        Ok(text) if !linked && text.starts_with(MARK) => Ok(Some(text)),
        Err(cause) if !linked && cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) if !linked => Err(machine(format!("read {}", file.display()), cause)),
        _ => Err(CliError::Refused(format!(
            "{} was not written by `install-service`, so it is left alone: run `systemctl --user disable --now ovos-tools`, \
             move the file away, and run this again",
            file.display(),
        ))),
    }
}

/// Returns the path of this program, for the unit.
fn program() -> Result<PathBuf, CliError> {
    let found = std::env::current_exe();
    let program = found.map_err(|cause| machine("find this program".to_owned(), cause))?;
    // If a running file was replaced, its name ends with " (deleted)".
    match program.is_file() && program.to_str().is_some() {
        true => Ok(program),
        false => Err(CliError::Refused(format!(
            "a systemd unit cannot name {}, from which this program runs (it was replaced, or its path is not UTF-8): run the \
             installed program instead",
            program.display()
        ))),
    }
}

/// Returns the options for `serve`.
fn serve_options(arguments: &Arguments, options: &Options) -> Result<Vec<String>, CliError> {
    let absolute = |path: &Path| {
        let full = std::path::absolute(path).ok();
        let full = full.and_then(|full| full.into_os_string().into_string().ok());
        full.ok_or_else(|| {
            CliError::Usage(format!(
                "{}: a systemd unit cannot name this path; expected one in UTF-8",
                path.display()
            ))
        })
    };
    let mut written = Vec::new();
    for folder in &arguments.plugins {
        written.extend(["--plugins".to_owned(), absolute(folder)?]);
    }
    if let Some(file) = &options.config {
        written.extend(["--config".to_owned(), absolute(file)?]);
    }
    if let Some(url) = &options.bus {
        written.extend(["--bus".to_owned(), url.clone()]);
    }
    Ok(written)
}

/// Returns the unit for a program and for the virtual environment around it.
fn unit(program: &Path, venv: Option<&Path>, options: &[String]) -> Result<String, CliError> {
    let name = quote_for_systemd(&program.to_string_lossy())?;
    let mut start = String::new();
    // The service also hosts the Python toolboxes of the environment.
    if let Some(venv) = venv {
        let variable = format!("VIRTUAL_ENV={}", venv.display());
        start += &format!("Environment={}\n", quote_for_systemd(&variable)?);
    }
    start += &format!("ExecStart={name} serve");
    for option in options {
        start += &format!(" {}", quote_for_systemd(option)?);
    }
    let mut reload = format!("ExecReload={name} reload");
    for option in client_options(options) {
        reload += &format!(" {}", quote_for_systemd(option)?);
    }
    let text = TEMPLATE
        .replace(&format!("ExecReload={TEMPLATE_PROGRAM} reload"), &reload)
        .replace(&format!("ExecStart={TEMPLATE_PROGRAM} serve"), &start)
        .replace(TEMPLATE_PROGRAM, &name);
    Ok(format!("{MARK}\n{text}"))
}

/// The options with which other subcommands find the service: all but the folders of plugins.
fn client_options(options: &[String]) -> impl Iterator<Item = &str> {
    let pairs = options.chunks(2);
    let pairs = pairs.filter(|pair| pair.first().is_none_or(|option| option != "--plugins"));
    pairs.flatten().map(String::as_str)
}

/// Quotes a word for a unit. Blanks are quoted and `%` is doubled; other characters with a special meaning for systemd are refused.
fn quote_for_systemd(text: &str) -> Result<String, CliError> {
    if text.contains(|letter: char| letter.is_control() || "\"'\\$".contains(letter)) {
        return Err(CliError::Usage(format!(
            "{text:?} cannot be written into a systemd unit: expected no quotes, backslashes, $ or control characters"
        )));
    }
    let text = text.replace('%', "%%");
    Ok(match text.contains(char::is_whitespace) {
        true => format!("\"{text}\""),
        false => text,
    })
}

/// Runs `systemctl --user`. The error is the text that `systemctl` prints.
fn systemctl(arguments: &[&str]) -> io::Result<()> {
    let Output { status, stderr, .. } = Command::new("systemctl").arg("--user").args(arguments).output()?;
    if status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&stderr);
    Err(io::Error::other(format!(
        "systemctl --user {}: {}",
        arguments.join(" "),
        message.trim()
    )))
}

fn machine(what: String, cause: io::Error) -> CliError {
    CliError::Machine { what, cause }
}
