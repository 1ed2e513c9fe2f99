//! Finds mavsdk_server and px4-sim.

use std::path::{Path, PathBuf};

use executable::command::{in_path, is_program};

/// Virtual environment with the wheel of mavsdk-grpc, made by `scripts/venv.sh`.
const VENV: &str = ".venv-mavsdk";

/// Finds mavsdk_server: the configured path, PATH, or the environment of `make venv`.
///
/// # Errors
/// It is not found; says how to install it.
pub(crate) fn mavsdk_server(configured: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(path) = configured {
        return configured_program(path, "mavsdk_server");
    }
    searched("mavsdk_server").or_else(in_venv).ok_or_else(|| {
        "mavsdk_server was not found: run `make venv` in the source tree, or `pip install mavsdk-grpc` and set \
         `mavsdk_server` in the section of the toolbox `drone` to its mavsdk_grpc/bin/mavsdk_server"
            .to_string()
    })
}

/// Finds px4-sim: the configured path, beside the program and in its `plugins`, or PATH.
///
/// # Errors
/// It is not found; says how to install it.
pub(crate) fn px4_sim(configured: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(path) = configured {
        return configured_program(path, "px4_sim");
    }
    let beside = places()
        .into_iter()
        .map(|place| place.join("px4-sim"))
        .find(|path| is_program(path));
    beside.or_else(|| searched("px4-sim")).ok_or_else(|| {
        "px4-sim was not found: run `make plugins` in the source tree, or set `px4_sim` in the section of the toolbox \
         `drone` to its path"
            .to_string()
    })
}

/// The program at a configured path.
fn configured_program(path: &Path, key: &str) -> Result<PathBuf, String> {
    if is_program(path) {
        return Ok(path.to_path_buf());
    }
    Err(format!("{key} {}: no such program", path.display()))
}

/// The folders of the running program and its parents, and the plugin folders there and in the home folder.
fn places() -> Vec<PathBuf> {
    let mut places = Vec::new();
    if let Ok(program) = std::env::current_exe() {
        for folder in program.ancestors().skip(1).take(5) {
            places.push(folder.to_path_buf());
            places.push(folder.join("plugins"));
            places.push(folder.join("lib/ovos-tools/plugins"));
        }
    }
    if let Some(home) = std::env::var_os("HOME") {
        places.push(Path::new(&home).join(".local/share/ovos-tools/plugins"));
    }
    places
}

fn searched(name: &str) -> Option<PathBuf> {
    in_path(name, &std::env::var_os("PATH")?)
}

fn in_venv() -> Option<PathBuf> {
    let below = |root: PathBuf| {
        let library = root.join(VENV).join("lib");
        let mut pythons = std::fs::read_dir(library).ok()?;
        pythons.find_map(|python| {
            let path = python
                .ok()?
                .path()
                .join("site-packages/mavsdk_grpc/bin/mavsdk_server");
            is_program(&path).then_some(path)
        })
    };
    places().into_iter().find_map(below)
}
