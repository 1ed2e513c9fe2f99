//! The environments with the packages that judge this crate.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The folder of the checkout.
fn checkout() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .find(|folder| folder.join("scripts/venv.sh").exists())
        .expect("the tests run in a checkout")
}

/// A program of an environment, or `None` where this machine was told to do without or lacks one of the packages.
fn program(place: &str, program: &str, packages: &[(&str, &str)]) -> Option<PathBuf> {
    if std::env::var_os("OVOS_TOOLS_SKIP_PYTHON").is_some() {
        skip::skip(
            "python",
            "OVOS_TOOLS_SKIP_PYTHON is set, so no published package judges the graph",
        );
        return None;
    }
    static FILLED: OnceLock<Result<(), String>> = OnceLock::new();
    let filled = FILLED.get_or_init(|| {
        let output = Command::new(checkout().join("scripts/venv.sh"))
            .output()
            .map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    });
    let path = checkout().join(place).join("bin").join(program);
    if !path.exists() {
        skip::skip(place, &format!("scripts/venv.sh has not made it: {filled:?}"));
        return None;
    }
    for (package, test) in packages {
        let option = if program == "node" { "-e" } else { "-c" };
        let found = Command::new(&path)
            .args([option, test])
            .current_dir(checkout().join(place))
            .output()
            .unwrap();
        if !found.status.success() {
            skip::skip(package, &format!("it is not in {place}: run scripts/venv.sh"));
            return None;
        }
    }
    Some(path)
}

/// Python with cyclonedds.
pub(crate) fn cyclonedds() -> Option<PathBuf> {
    program(".venv-robots", "python", &[("cyclonedds", "import cyclonedds")])
}

/// Python with rosbags.
pub(crate) fn rosbags() -> Option<PathBuf> {
    program(".venv-robots", "python", &[("rosbags", "import rosbags")])
}

/// Python with ROS 2's own wheels, which there are for x86_64 alone.
pub(crate) fn ros() -> Option<PathBuf> {
    if cfg!(not(target_arch = "x86_64")) {
        skip::skip("rclpy-wheels", "PyPI has the wheels of ROS 2 for x86_64 alone");
        return None;
    }
    program(".venv-ros", "python", &[("rclpy", "import rclpy")])
}

/// Node with roslib and ws.
pub(crate) fn node() -> Option<PathBuf> {
    program(
        ".venv-node",
        "node",
        &[(
            "roslib",
            "require.resolve('ws'); require('fs').statSync('node_modules/roslib')",
        )],
    )
}
