//! Checks files, devices, programs and the kernel.

use std::collections::BTreeSet;
use std::net::{IpAddr, UdpSocket};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use ovos_toolbox_wire::Manifest;
use rustix::fs::{Access, access};
use serde_json::{Value, json};

use super::finding::Finding;
use crate::program::check;
use ::config::{Config, Environment, Notice, Origin, ProcessEnvironment, Switch};
use cli::{CliError, count};
use executable::command::in_path;
use host::{Confine, FailedFile, Inspection, inspect, section_of, why_unconfined};
use host::{PythonConfig, python::Interpreter};

/// Libraries that a plugin may lack, by the beginning of their names, and the Debian packages that have them.
const LIBRARIES: [(&str, &str); 1] = [(
    "libgst",
    "sudo apt install gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad \
     gstreamer1.0-plugins-ugly gstreamer1.0-libav gstreamer1.0-alsa gstreamer1.0-nice",
)];

/// Toolboxes that come with the service and that some of its packages leave out: toolbox, and how to get it.
const OPTIONAL: [(&str, &str); 1] = [(
    "gstreamer",
    "`sudo apt install ./ovos-tools-gstreamer_*.deb` beside the .deb of ovos-tools; or, in the source tree, `sudo apt install \
     pkg-config libgstreamer1.0-dev libgstreamer-plugins-base1.0-dev` and `make plugins`",
)];

/// Programs that a toolbox starts: toolbox, key of its section with the path, program, how to get it.
const PROGRAMS: [(&str, &str, &str, &str); 1] = [(
    "drone",
    "mavsdk_server",
    "mavsdk_server",
    "`python3 -m venv ~/.mavsdk && ~/.mavsdk/bin/pip install mavsdk-grpc`, and set `mavsdk_server` in the section `drone` to the \
     path that `ls ~/.mavsdk/lib/python3*/site-packages/mavsdk_grpc/bin/mavsdk_server` prints",
)];

/// The robots that use devices where their sections name none, with the keys of a section that say which robot it is and what
/// belongs to it: `kind` and `channels`, and the spelling of before.
const USUAL: [(&str, &str, &[&str]); 2] = [
    ("kind", "channels", &["johnny5", "so101", "lekiwi"]),
    ("adapter", "johnny5", &["johnny5"]),
];
/// The robot among them that has both devices, and the key of a section's devices.
const WHOLE: &str = "johnny5";
const PORTS: &str = "ports";
/// The name and the path of each of those devices.
const USUAL_DEVICES: [(&str, &str); 2] = [("left", "/dev/ttyACM0"), ("right", "/dev/ttyACM1")];

/// Checks the files of the configuration.
pub(super) fn configuration(config: &Config) -> Vec<Finding> {
    let part = "configuration";
    let mut findings: Vec<Finding> = config
        .section_errors()
        .map(|(id, error)| Finding::broken(part, error.to_string(), format!("correct the section `{id}`")))
        .collect();
    for notice in &config.notices {
        let mend = "see docs/bus.md and mycroft.conf.example";
        findings.push(match notice {
            Notice::BrokenLayer { .. } => {
                Finding::broken(part, notice.to_string(), "fix the file, then `ovos-tools reload`")
            }
            _ => Finding::limited(part, notice.to_string(), mend),
        });
    }
    if findings.is_empty() {
        findings.push(Finding::good(part, "every value is accepted"));
    }
    findings
}

/// Returns the folders of plugins that cannot be read.
pub(super) fn unread(folders: &[FailedFile]) -> impl Iterator<Item = Finding> {
    let mend = "let the service's user read it";
    folders
        .iter()
        .map(move |folder| Finding::broken("plugins", folder.reason.as_str(), mend))
}

/// Tries out the plugins, each in a process of its own with the `env` of its section.
///
/// # Errors
/// The file of this program is not known.
pub(super) async fn plugins(files: &[PathBuf], config: &Config) -> Result<Vec<Inspection>, CliError> {
    let mut inspections = Vec::new();
    for file in files {
        let mut greeter = check::greeter()?;
        if let Some(id) = section_of(file)
            && let Ok(section) = config.toolbox(id)
        {
            greeter.env = section.toolbox.env.clone();
        }
        inspections.push(inspect(file, &greeter).await);
    }
    Ok(inspections)
}

/// Reports that no folder has a plugin.
pub(super) fn no_plugins(config: &Config) -> Finding {
    let folders = config.service.plugins_dir.iter();
    let folders: Vec<String> = folders.map(|folder| folder.display().to_string()).collect();
    Finding::broken(
        "plugins",
        format!("there is no *.so in {}", folders.join(", ")),
        "install the package again; or run `make plugins` in the source tree, and set `plugins_dir` in the section `service` to its \
         folder plugins",
    )
}

/// Reports the result of trying out a plugin.
pub(super) fn tried(inspection: &Inspection) -> Finding {
    let path = inspection.path.display().to_string();
    let part = match &inspection.manifest {
        Some(manifest) => format!("toolbox {}", manifest.id),
        None => format!("plugin {path}"),
    };
    let Some(error) = inspection.errors.first() else {
        let tools = count(inspection.tools.len(), "tool", "tools");
        return Finding::good(&part, format!("{tools} in {path}"));
    };
    Finding::broken(&part, error, mend_of(error, &inspection.path))
}

/// How to fix the error of a plugin file.
pub(super) fn mend_of(error: &str, path: &Path) -> String {
    let known = match LoadProblem::of(error) {
        LoadProblem::MissingLibrary(name) => LIBRARIES.iter().find(|(library, _)| name.starts_with(library)),
        LoadProblem::Other => None,
    };
    match known {
        Some((_, mend)) => (*mend).to_owned(),
        None => format!("`ovos-tools check {}` shows more", path.display()),
    }
}

/// What keeps a plugin file from being loaded, as far as its remedy depends on it.
#[derive(Debug, PartialEq, Eq)]
enum LoadProblem<'a> {
    /// The library that it needs and that is not installed, such as `libgstreamer-1.0.so.0`.
    MissingLibrary(&'a str),
    Other,
}

impl<'a> LoadProblem<'a> {
    /// Reads the kind from the error. The dynamic linker has no code for it, only this sentence after the library's name (glibc,
    /// `elf/dl-load.c`); it is not translated, because the process that loads the file sets no locale.
    fn of(error: &'a str) -> Self {
        let before = error
            .split_once(": cannot open shared object file")
            .map(|(before, _)| before);
        let name = before.and_then(|before| before.split_whitespace().next_back());
        name.map_or(Self::Other, Self::MissingLibrary)
    }
}

/// Reports a toolbox that is installed and that nothing asks for.
pub(super) fn off(manifest: &Manifest) -> Finding {
    let id = &manifest.id;
    let why = match manifest.needs_section {
        true => "it has no section that names what it reaches",
        false => "it would drive a simulator",
    };
    Finding::good(
        &format!("toolbox {id}"),
        format!("installed but off, because {why}; `ovos-tools enable {id}` turns it on"),
    )
}

/// Returns the toolboxes that could be installed in addition. `ids` are the toolboxes that were found.
pub(super) fn left_out(config: &Config, files: &[PathBuf], ids: &BTreeSet<&str>) -> Vec<Finding> {
    let is_wanted = |id: &str| config.toolbox(id).is_ok_and(|section| section.toolbox.enabled);
    // A file that does not load has its own finding.
    let is_there = |id: &str| ids.contains(id) || files.iter().any(|file| section_of(file) == Some(id));
    let missing = OPTIONAL.iter().filter(|(id, _)| is_wanted(id) && !is_there(id));
    let finding = |(id, mend): &(&str, &str)| {
        Finding::limited(
            &format!("toolbox {id}"),
            format!("there is no {id}.so in the folders of plugins"),
            *mend,
        )
    };
    missing.map(finding).collect()
}

/// Checks the Python interpreters whose toolboxes are hosted, or would be.
pub(super) async fn pythons(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    let used = config
        .pythons
        .iter()
        .filter(|python| python.enabled != Switch::Off);
    for python in used {
        let part = format!("program {}", python.name);
        let looked = match check::greeter() {
            Ok(greeter) => host::python::look(python, &greeter).await,
            Err(error) => Err(error.to_string()),
        };
        let found = match looked {
            Ok(found) => found,
            Err(reason) => {
                findings.push(Finding::limited(
                    &part,
                    reason,
                    "install the package again, or run the binary of the source tree",
                ));
                continue;
            }
        };
        findings.push(match (&found.interpreter, python.enabled) {
            (Some(interpreter), _) => hosted(&part, python, interpreter),
            // What the configuration names is needed, whatever else is optional.
            (None, Switch::Auto) if python.interpreter.as_deref().is_none_or(is_there) => {
                let looked_at = match found.passed_over.as_slice() {
                    [] => "there is no python3 in PATH".to_owned(),
                    reasons => reasons.join("; "),
                };
                Finding::good(&part, format!("no Python toolboxes: {looked_at}"))
            }
            (None, _) => Finding::broken(
                &part,
                found.passed_over.join("; "),
                format!(
                    "set `interpreter` in `service.programs.{}` to the python3 for which the toolboxes are installed",
                    python.name
                ),
            ),
        });
    }
    findings
}

/// Whether a program that is named by its path, or by a name in PATH, exists.
fn is_there(program: &str) -> bool {
    let path = ProcessEnvironment.var("PATH").unwrap_or_default();
    match program.contains('/') {
        true => Path::new(program).is_file(),
        false => in_path(program, path.as_ref()).is_some(),
    }
}

/// Reports on an interpreter that is used: its toolboxes, and those that are left out.
fn hosted(part: &str, python: &PythonConfig, interpreter: &Interpreter) -> Finding {
    let names = |problem: bool| {
        let those = interpreter.toolboxes.iter();
        let those = those.filter(move |one| one.problem.is_some() == problem);
        those.map(|one| match &one.problem {
            Some(problem) => format!("{} ({problem})", one.entry_point),
            None => one.entry_point.clone(),
        })
    };
    let path = interpreter.path.display();
    let mut found = format!(
        "{path} ({}) has {}",
        interpreter.version,
        names(false).collect::<Vec<_>>().join(", ")
    );
    let left_out = names(true).collect::<Vec<_>>().join(", ");
    if !left_out.is_empty() {
        found += &format!("; left out: {left_out}");
    }
    let venv = ProcessEnvironment.var("VIRTUAL_ENV").map(PathBuf::from);
    // `install-service` writes the virtual environment of this program into the unit.
    let own = std::env::current_exe().ok();
    let own = own.and_then(|program| Some(program.parent()?.parent()?.to_owned()));
    let by_venv = python.interpreter.is_none()
        && venv.is_some_and(|venv| interpreter.path.starts_with(&venv) && own != Some(venv));
    if by_venv {
        found += "; it was found through VIRTUAL_ENV, which is not set in a systemd unit";
        let entry =
            json!({"service": {"programs": {python.name.as_str(): {"interpreter": interpreter.path}}}});
        return Finding::limited(part, found, format!("add to the section: {entry}"));
    }
    Finding::good(part, found)
}

/// Checks what the sections of toolboxes require: devices, addresses, programs, a confinement.
pub(super) fn sections(config: &Config, ids: &BTreeSet<&str>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for &id in ids {
        let Ok(section) = config.toolbox(id) else { continue };
        let part = format!("toolbox {id}");
        findings.extend(confined(&part, section.toolbox.confine.as_ref()));
        // What is built in is a list of candidates: no board has all of them.
        let written = section.settings.iter();
        let written = written.filter(|setting| setting.origin != Origin::Default);
        for setting in written {
            let name = setting.key.rsplit('.').next().unwrap_or_default();
            named(name, &setting.value, &part, &mut findings);
            usual_devices(&setting.value, &part, &mut findings);
        }
        let needs = PROGRAMS.iter().filter(|(toolbox, ..)| *toolbox == id);
        findings.extend(needs.map(|(_, key, program, mend)| {
            let written = section
                .settings
                .iter()
                .find(|setting| setting.key.ends_with(&format!(".{key}")));
            let written = written.and_then(|setting| setting.value.as_str());
            needed(&part, program, written.map(Path::new), mend)
        }));
    }
    findings
}

/// Checks the programs whose entries confine them.
pub(super) fn confined_programs(config: &Config) -> impl Iterator<Item = Finding> {
    let programs = config.programs.iter();
    programs.filter_map(|program| confined(&format!("program {}", program.name), program.confine.as_ref()))
}

/// Reports that this machine cannot confine a process as required; `None` if it can.
fn confined(part: &str, confine: Option<&Confine>) -> Option<Finding> {
    let confine = confine?;
    let mut tried = confine.clone();
    // The usual confinement is tried. If the section requires more, that fails only when the process starts.
    tried.default.get_or_insert_default();
    let missed = why_unconfined(&tried)?;
    let mend = match cfg!(target_pointer_width = "64") {
        true => {
            "use Linux 6.2 or newer with Landlock; if `cat /sys/kernel/security/lsm` does not list landlock, add \
             `lsm=landlock,` and the names that it lists to the kernel's command line"
        }
        false => "use a 64-bit system: no toolbox can be confined on a 32-bit one",
    };
    Some(match confine.default {
        Some(_) => Finding::limited(part, format!("runs unconfined: {missed}"), mend),
        None => Finding::broken(part, format!("is not loaded: {missed}"), mend),
    })
}

/// Checks the devices that a robot uses because its section names no others.
fn usual_devices(value: &Value, part: &str, findings: &mut Vec<Finding>) {
    let Value::Object(map) = value else { return };
    let real = map.get("simulated") != Some(&Value::Bool(true));
    for (key, own, known) in USUAL {
        let named = map.get(key).and_then(Value::as_str);
        let Some(kind) = named.filter(|named| real && known.contains(named)) else {
            continue;
        };
        let own = map.get(own);
        let layout = own.and_then(|own| own.get("layout")).and_then(Value::as_str);
        let written = own.and_then(|own| own.get(PORTS));
        for (port, path) in USUAL_DEVICES {
            // All but the whole robot have one bus.
            let has = layout.unwrap_or(kind) == WHOLE || port == "right";
            if has && written.is_none_or(|written| written.get(port).is_none()) {
                findings.push(device(part, Path::new(path)));
            }
        }
    }
    map.values()
        .for_each(|value| usual_devices(value, part, findings));
}

/// Checks the devices and addresses that a value names, at any depth.
fn named(key: &str, value: &Value, part: &str, findings: &mut Vec<Finding>) {
    match value {
        Value::String(text) if text.starts_with("/dev/") && !text.contains('*') => {
            findings.push(device(part, Path::new(text)));
        }
        Value::String(text) if key == "interfaces" => {
            if let Ok(ip) = text.parse() {
                findings.push(interface(part, ip));
            }
        }
        Value::Array(items) => items.iter().for_each(|item| named(key, item, part, findings)),
        Value::Object(map) => map
            .iter()
            .for_each(|(key, value)| named(key, value, part, findings)),
        _ => {}
    }
}

/// Checks that a device file exists and that this user may open it.
fn device(part: &str, path: &Path) -> Finding {
    let name = path.display();
    if access(path, Access::READ_OK | Access::WRITE_OK).is_ok() {
        return match user_of(path) {
            Some((pid, program)) if !is_own(&program) => Finding::broken(
                part,
                format!("{name} is used by another program: {program} (process {pid})"),
                format!("end it with `kill {pid}`: two programs on one port read each other's answers"),
            ),
            _ => Finding::good(part, format!("may use {name}")),
        };
    }
    let Ok(metadata) = std::fs::metadata(path) else {
        return Finding::broken(
            part,
            format!("there is no {name}"),
            "connect the device; `ls /dev/serial/by-id` lists what is connected",
        );
    };
    let mend = if metadata.gid() != 0 && metadata.mode() & 0o060 == 0o060 {
        let group = group_name(metadata.gid());
        format!("sudo usermod -aG {group} $USER, then log in again")
    } else {
        let kernel = path.file_name().unwrap_or_default().display();
        format!(
            "echo 'KERNEL==\"{kernel}\", GROUP=\"dialout\", MODE=\"0660\"' | sudo tee /etc/udev/rules.d/99-ovos-tools.rules; \
             sudo udevadm control --reload; sudo udevadm trigger; sudo usermod -aG dialout $USER; then log in again"
        )
    };
    Finding::broken(
        part,
        format!("this user may not read from and write to {name}"),
        mend,
    )
}

/// The process that has a serial port open, and its name. Others may share any other device. Processes of other users are
/// seen by root alone.
fn user_of(path: &Path) -> Option<(u32, String)> {
    let path = path.canonicalize().ok()?;
    let name = path.file_name()?.to_str()?;
    let is_serial = ["tty", "pts"]
        .iter()
        .any(|kind| name.starts_with(kind) || path.parent().is_some_and(|folder| folder.ends_with(kind)));
    if !is_serial {
        return None;
    }
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let pid = pids.find(|pid| {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
        open.flatten()
            .any(|entry| std::fs::read_link(entry.path()).is_ok_and(|target| target == path))
    })?;
    let program = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some((pid, program.trim().to_owned()))
}

/// Whether a process is one of the service's, which has the port because it drives what is behind it.
fn is_own(program: &str) -> bool {
    // The kernel cuts names off after 15 letters.
    program.starts_with("ovos-tools")
}

/// Returns the name of a group, or its number.
fn group_name(gid: u32) -> String {
    let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
    let number = gid.to_string();
    let named = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == number).then(|| name.to_owned())
    });
    named.unwrap_or(number)
}

/// Checks an address of the network that a robot is on.
fn interface(part: &str, ip: IpAddr) -> Finding {
    // Only an address of this machine can be bound to.
    match UdpSocket::bind((ip, 0)) {
        Ok(_) => Finding::good(part, format!("this machine has the address {ip}")),
        Err(_) => Finding::broken(
            part,
            format!("this machine has no address {ip}, which `interfaces` names"),
            "plug in the robot's network and give this machine that address; `ip -brief address` shows those it has",
        ),
    }
}

/// Checks a program that a toolbox starts.
fn needed(part: &str, program: &str, written: Option<&Path>, mend: &str) -> Finding {
    let path = ProcessEnvironment.var("PATH").unwrap_or_default();
    // The folder in which `make mavsdk` puts the program and the toolbox looks for it: in a folder above this program.
    let own = std::env::current_exe().unwrap_or_default();
    let above = own
        .ancestors()
        .skip(1)
        .take(5)
        .map(|folder| folder.join(".venv-mavsdk/lib"));
    let versions = above.flat_map(|library| std::fs::read_dir(library).into_iter().flatten().flatten());
    let mut in_venv =
        versions.map(|version| version.path().join("site-packages/mavsdk_grpc/bin").join(program));
    let found = match written {
        Some(written) => Some(written.to_owned()).filter(|path| path.is_file()),
        None => in_path(program, path.as_ref()).or_else(|| in_venv.find(|path| path.is_file())),
    };
    match found {
        Some(path) => Finding::good(part, format!("{program} is {}", path.display())),
        None => Finding::broken(part, format!("{program} was not found"), mend),
    }
}

/// Checks the folder of the control socket, through which people approve calls and stop without a bus.
pub(super) fn runtime_dir() -> Finding {
    let part = "control socket";
    let named = ProcessEnvironment.var("XDG_RUNTIME_DIR").map(PathBuf::from);
    match named {
        Some(folder) if access(&folder, Access::WRITE_OK).is_ok() => {
            Finding::good(part, format!("in {}", folder.display()))
        }
        Some(folder) => Finding::limited(
            part,
            format!(
                "{} cannot be written: `approve`, `deny` and a stop without the bus do not work",
                folder.display()
            ),
            "log in as the service's user, or set XDG_RUNTIME_DIR to a folder that this user owns",
        ),
        None => Finding::limited(
            part,
            "XDG_RUNTIME_DIR is not set: `approve`, `deny` and a stop without the bus do not work",
            "log in as the service's user, or set XDG_RUNTIME_DIR to a folder that this user owns",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_told_from_a_file_that_is_called_like_it() {
        for (error, expected) in [
            (
                "load /p/gstreamer.so: libgstreamer-1.0.so.0: cannot open shared object file: No such file or directory",
                LoadProblem::MissingLibrary("libgstreamer-1.0.so.0"),
            ),
            (
                "/p/libgstreamer_toolbox.so: required functions are null: start",
                LoadProblem::Other,
            ),
            ("", LoadProblem::Other),
        ] {
            assert_eq!(LoadProblem::of(error), expected, "{error}");
        }
        let mend = |error| mend_of(error, Path::new("/p/x.so"));
        assert!(mend("libgstreamer-1.0.so.0: cannot open shared object file").contains("apt install"));
        for error in [
            "libgstreamer_toolbox.so is broken",
            "libm.so.6: cannot open shared object file",
        ] {
            assert!(mend(error).contains("ovos-tools check"), "{error}");
        }
    }
}
