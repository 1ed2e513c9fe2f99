//! The Python environments with the packages that judge this crate.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The folder of the checkout.
pub(crate) fn checkout() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .find(|folder| folder.join("scripts/venv.sh").exists())
        .expect("the tests run in a checkout")
}

/// The interpreter of an environment, or `None` where this machine was told to do without.
fn interpreter(place: &str, program: &str) -> Option<PathBuf> {
    if std::env::var_os("OVOS_TOOLS_SKIP_PYTHON").is_some() {
        skip::skip("python", "OVOS_TOOLS_SKIP_PYTHON is set, so no published package judges the graph");
        return None;
    }
    static FILLED: OnceLock<Result<(), String>> = OnceLock::new();
    let filled = FILLED.get_or_init(|| {
        let output = Command::new(checkout().join("scripts/venv.sh")).output().map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    });
    let path = checkout().join(place).join("bin").join(program);
    assert!(
        filled.is_ok() && path.exists(),
        "scripts/venv.sh: {filled:?}, {}\nset OVOS_TOOLS_SKIP_PYTHON=1 to do without",
        path.display()
    );
    Some(path)
}

/// Python with cyclonedds and rosbags.
pub(crate) fn robots() -> Option<PathBuf> {
    interpreter(".venv-robots", "python")
}

/// Python with ROS 2's own wheels, which there are for x86_64 alone.
pub(crate) fn ros() -> Option<PathBuf> {
    if cfg!(not(target_arch = "x86_64")) {
        skip::skip("rclpy", "PyPI has the wheels of ROS 2 for x86_64 alone");
        return None;
    }
    interpreter(".venv-ros", "python")
}
