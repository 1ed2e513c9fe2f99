//! The published Python packages: the bus, the service we stand in for, and scripts that use the bus client.
//!
//! They live in `.venv`, which `scripts/venv.sh` fills; versions are pinned in `tests/python`.
#![allow(
    clippy::print_stderr,
    reason = "whoever reads a test's output has to know what was skipped"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::process::{Process, Sandbox};

/// The Python interpreter with the pinned packages, or `None` where this machine was told to do without.
///
/// `make test` sets `OVOS_TOOLS_SKIP_PYTHON` when Python itself is missing and says so; nothing else skips.
pub(crate) fn python() -> Option<&'static Path> {
    static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
    PYTHON.get_or_init(find).as_deref()
}

fn find() -> Option<PathBuf> {
    if std::env::var_os("OVOS_TOOLS_SKIP_PYTHON").is_some() {
        eprintln!("SKIPPED: OVOS_TOOLS_SKIP_PYTHON is set, so nothing was compared with the Python packages");
        return None;
    }
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = Command::new(checkout.join("scripts/venv.sh")).output().unwrap();
    let python = checkout.join(".venv/bin/python");
    let ready = out.status.success() && checkout.join(".venv/.ready").exists();
    assert!(
        ready,
        "scripts/venv.sh: {}\nset OVOS_TOOLS_SKIP_PYTHON=1 to do without",
        String::from_utf8_lossy(&out.stderr)
    );
    Some(python)
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
