//! The published Python packages: the bus, the reference service, and scripts that use the bus client.
//!
//! They live in `.venv`, the MCP clients in `.venv-mcp`, the SDKs of speech services in `.venv-voice`, what drives a browser in `.venv-console`, the OPM toolboxes in
//! `.venv-opm`, ovos-workshop, ovos-core and OVOS's agents in `.venv-skills`, and
//! the programs that need Node in `.venv-node`; `scripts/venv.sh` fills all of them, and versions are pinned in `tests/python`
//! and `tests/node`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::process::{Process, Sandbox};

/// The Python interpreter with the pinned packages, or `None` if the tests were told to do without Python.
///
/// `make test` sets `OVOS_TOOLS_SKIP_PYTHON` when Python itself is missing; nothing else skips.
pub(crate) fn python() -> Option<&'static Path> {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    is_wanted().then(|| PYTHON.get_or_init(|| find(".venv", &[])).as_path())
}

/// The same for the interpreter with the MCP clients.
pub(crate) fn mcp_python() -> Option<&'static Path> {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    is_wanted().then(|| PYTHON.get_or_init(|| find(".venv-mcp", &["mcp"])).as_path())
}

/// The same for the interpreter with the frameworks of agents.
pub(crate) fn frameworks_python() -> Option<&'static Path> {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    is_wanted().then(|| {
        PYTHON
            .get_or_init(|| find(".venv-frameworks", &["frameworks"]))
            .as_path()
    })
}

/// The same for the interpreter with the published OPM toolboxes, and with the service and the bus that they are made for.
pub(crate) fn opm_python() -> Option<&'static Path> {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    is_wanted().then(|| PYTHON.get_or_init(|| find(".venv-opm", &["opm"])).as_path())
}

/// The same for the interpreter with the SDKs of speech services.
pub(crate) fn voice_python() -> Option<&'static Path> {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    is_wanted().then(|| PYTHON.get_or_init(|| find(".venv-voice", &["voice"])).as_path())
}

/// The same for the interpreter that drives a browser.
pub(crate) fn console_python() -> Option<&'static Path> {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    is_wanted().then(|| {
        PYTHON
            .get_or_init(|| find(".venv-console", &["console"]))
            .as_path()
    })
}

/// The same for the interpreter with a HiveMind hub and a satellite.
pub(crate) fn hive_python() -> Option<&'static Path> {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    is_wanted().then(|| PYTHON.get_or_init(|| find(".venv-hive", &["hive"])).as_path())
}

/// A command that runs a program of `tests/node/package.json`, which names its file below `node_modules`, or a script of `tests/node` that
/// gets that folder as its first argument.
pub(crate) fn node(program: &str, sandbox: &Sandbox) -> Option<Command> {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    let python = is_wanted().then(|| PYTHON.get_or_init(|| find(".venv-node", &["node"])))?;
    let mut command = sandbox.command(python.with_file_name("node"));
    let packages = python.ancestors().nth(2).unwrap().join("node_modules");
    let own = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/node")
        .join(program);
    if own.is_file() {
        command.arg(own).arg(packages);
    } else {
        command.arg(packages.join(program));
    }
    Some(command)
}

/// The same for the interpreter with ovos-workshop, ovos-core, OVOS's agents and our toolbox for them.
pub(crate) fn skills_python() -> Option<&'static Path> {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    is_wanted().then(|| PYTHON.get_or_init(|| find(".venv-skills", &["skills"])).as_path())
}

/// The same for the interpreter with the newest ovos-audio and ovos-media, and the plugin for the volume.
pub(crate) fn audio_python() -> Option<&'static Path> {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    is_wanted().then(|| PYTHON.get_or_init(|| find(".venv-audio", &["audio"])).as_path())
}

/// The same for the interpreter with the stable releases of ovos-core and ovos-audio.
pub(crate) fn stable_python() -> Option<&'static Path> {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    is_wanted().then(|| PYTHON.get_or_init(|| find(".venv-stable", &["stable"])).as_path())
}

fn is_wanted() -> bool {
    let wanted = std::env::var_os("OVOS_TOOLS_SKIP_PYTHON").is_none();
    if !wanted {
        skip::skip(
            "python",
            "OVOS_TOOLS_SKIP_PYTHON is set, so nothing is compared with the Python packages",
        );
    }
    wanted
}

fn find(venv: &str, arguments: &[&str]) -> PathBuf {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut filling = Command::new(checkout.join("scripts/venv.sh"));
    let out = filling.args(arguments).output().unwrap();
    let python = checkout.join(venv).join("bin/python");
    let ready = out.status.success() && checkout.join(venv).join(".ready").exists();
    assert!(
        ready,
        "scripts/venv.sh: {}\nset OVOS_TOOLS_SKIP_PYTHON=1 to do without",
        String::from_utf8_lossy(&out.stderr)
    );
    python
}

/// The server of the published package `mavsdk_grpc`, which `scripts/venv.sh mavsdk` installs.
pub(crate) fn mavsdk_server() -> Option<PathBuf> {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv-mavsdk/lib");
    let mut pythons = std::fs::read_dir(library).ok()?;
    pythons.find_map(|python| {
        let path = python
            .ok()?
            .path()
            .join("site-packages/mavsdk_grpc/bin/mavsdk_server");
        path.exists().then_some(path)
    })
}

/// Starts a Python module (`python -m`) in `sandbox`.
pub(crate) fn module(name: &str, sandbox: &Sandbox) -> Process {
    let mut command = sandbox.command(python().unwrap());
    command.args(["-m", name]);
    Process::start(name, sandbox, command)
}

/// Starts a script of `tests/python` in `sandbox`.
pub(crate) fn script(name: &str, args: &[&str], sandbox: &Sandbox) -> Process {
    let mut command = sandbox.command(python().unwrap());
    command
        .arg("-u")
        .arg(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/python")
                .join(name),
        )
        .args(args);
    Process::start(name, sandbox, command)
}
