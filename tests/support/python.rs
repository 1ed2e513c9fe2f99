//! The published Python packages: the bus, the service we stand in for, and scripts that use the bus client.
//!
//! They live in `.venv`, which `scripts/venv.sh` fills; versions are pinned in `tests/python`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::process::{Process, Sandbox};

/// The Python interpreter with the pinned packages, or `None` where this machine was told to do without.
///
/// `make test` sets `OVOS_TOOLS_SKIP_PYTHON` when Python itself is missing; nothing else skips.
pub(crate) fn python() -> Option<&'static Path> {
    if std::env::var_os("OVOS_TOOLS_SKIP_PYTHON").is_some() {
        skip::skip(
            "python",
            "OVOS_TOOLS_SKIP_PYTHON is set, so nothing is compared with the Python packages",
        );
        return None;
    }
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    Some(PYTHON.get_or_init(find))
}

fn find() -> PathBuf {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = Command::new(checkout.join("scripts/venv.sh")).output().unwrap();
    let python = checkout.join(".venv/bin/python");
    let ready = out.status.success() && checkout.join(".venv/.ready").exists();
    assert!(
        ready,
        "scripts/venv.sh: {}\nset OVOS_TOOLS_SKIP_PYTHON=1 to do without",
        String::from_utf8_lossy(&out.stderr)
    );
    python
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
