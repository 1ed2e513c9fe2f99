//! The confinement of a toolbox whose section has no `confine`.
//!
//! An assistant writes the pipelines of the toolbox `gstreamer`, so the kernel confines it to what its section allows
//! and what GStreamer itself needs. Every other toolbox runs unconfined, because its needs are unknown. Read
//! [`default`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::paths::Xdg;
use section::{Confine, DefaultConfinement};

/// What GStreamer and the libraries of its plugins read, in addition to what every program needs.
const READ: &[&str] = &[
    // ALSA's own configuration.
    "/etc/alsa",
    "/etc/asound.conf",
    // The sockets and settings of sound and media servers.
    "/etc/pulse",
    "/etc/pipewire",
    // The name of this machine for those servers and for D-Bus.
    "/etc/machine-id",
    // udev's data on cameras and sound cards.
    "/run/udev",
    // The list of fonts, for texts in pictures and graphs of pipelines.
    "/var/cache/fontconfig",
    // dpkg and apt-cache, which name the package of a missing element or of a plugin file.
    "/etc/apt",
    "/etc/dpkg",
    "/var/cache/apt",
    "/var/lib/apt",
    "/var/lib/dpkg",
];

/// What GStreamer and those libraries read below the home folder.
const READ_AT_HOME: &[&str] = &[
    ".asoundrc",
    // The key of the sound server.
    ".config/pulse",
    ".config/pipewire",
];

/// Processors that codecs and filters open themselves, without being named in the pipeline.
const PROCESSORS: &[&str] = &[
    // Graphics, VA-API, codecs on DRM.
    "/dev/dri",
    // Memory shared by those and by cameras.
    "/dev/dma_heap",
    // The hardware's media controllers, which stateless codecs configure.
    "/dev/media*",
    // NVIDIA: graphics, and codecs on Jetson boards.
    "/dev/nvidia*",
    "/dev/nvhost*",
    "/dev/nvmap",
    // Rockchip: codecs, and the scaler.
    "/dev/mpp_service",
    "/dev/rga",
    // Amlogic: codecs, the scaler, and the memory that both use.
    "/dev/amvenc_*",
    "/dev/ge2d",
    "/dev/ion",
    // Raspberry Pi: the codecs from before Video4Linux.
    "/dev/vchiq",
];

/// The toolbox's own default of `devices`.
const DEVICES: &[&str] = &["/dev/video*", "/dev/vdin*", "/dev/snd/*"];

/// The folder of all sound cards of ALSA.
const SOUND: &str = "/dev/snd";

/// What a toolbox's process may access if its section has no `confine`; `None`: everything. `own` are the toolbox's
/// own keys.
pub(super) fn default(
    id: &str,
    own: &Map<String, Value>,
    env: &BTreeMap<String, String>,
    xdg: &Xdg,
) -> Option<Confine> {
    (id == "gstreamer").then(|| gstreamer(own, env, xdg))
}

fn gstreamer(own: &Map<String, Value>, env: &BTreeMap<String, String>, xdg: &Xdg) -> Confine {
    let variable = |name: &str| env.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let path = |key: &str| own.get(key).and_then(Value::as_str).map(PathBuf::from);
    // The folders are found as the toolbox and GLib find them: with the environment of the toolbox's process.
    let home = variable("HOME").unwrap_or_else(|| xdg.home.clone());
    let below_home = |name: &str, folder: &str| variable(name).unwrap_or_else(|| home.join(folder));
    let state = path("state_dir")
        .unwrap_or_else(|| below_home("XDG_STATE_HOME", ".local/state").join("ovos-tools/gstreamer"));
    // The folder of GStreamer's list of plugins. Without write access to it, every start takes many seconds to make the list
    // again.
    let registry = ["GST_REGISTRY_1_0", "GST_REGISTRY"]
        .iter()
        .find_map(|name| variable(name)?.parent().map(Path::to_owned))
        .unwrap_or_else(|| below_home("XDG_CACHE_HOME", ".cache").join("gstreamer-1.0"));
    let temp = state.join("scratch");
    let mut make = vec![state, registry, temp.clone()];
    make.extend(path("snapshot_dir"));

    let mut paths_rw = make.clone();
    paths_rw.extend(strings(own, "write_roots").map(PathBuf::from));
    let mut paths_ro: Vec<PathBuf> = strings(own, "read_roots").map(PathBuf::from).collect();
    paths_ro.extend(path("sysroot").filter(|root| root != Path::new("/")));
    paths_ro.extend(READ.iter().map(PathBuf::from));
    paths_ro.extend(READ_AT_HOME.iter().map(|file| home.join(file)));
    // The user's own plugins.
    paths_ro.push(
        variable("XDG_DATA_HOME")
            .unwrap_or_else(|| xdg.data_home.clone())
            .join("gstreamer-1.0"),
    );
    // Landlock lets a process connect to a socket, but not look into its folder.
    paths_ro.extend(xdg.runtime_dir.iter().map(|run| run.join("pulse")));
    // The plugins and libraries of the board's vendor.
    let searched = |name: &str| name.starts_with("GST_PLUGIN") || name == "LD_LIBRARY_PATH";
    let searched = env.iter().filter(|(name, _)| searched(name));
    paths_ro.extend(searched.flat_map(|(_, paths)| std::env::split_paths(paths)));

    let devices: Vec<&str> = match own.get("devices") {
        Some(_) => strings(own, "devices").collect(),
        None => DEVICES.to_vec(),
    };
    let node = |device: &&str| match device.strip_suffix("/*") {
        // The whole folder, so that the rules include a sound card which is plugged in later.
        Some(folder) => PathBuf::from(folder),
        None if device.starts_with('/') => PathBuf::from(device),
        // A name of ALSA, such as `hw:0`, which does not say in which files the card is: all of them.
        None => PathBuf::from(SOUND),
    };
    let mut devices: Vec<PathBuf> = devices.iter().map(node).collect();
    devices.extend(PROCESSORS.iter().map(PathBuf::from));
    devices.dedup();
    for paths in [&mut paths_rw, &mut paths_ro, &mut devices] {
        paths.retain(|path| path.is_absolute());
    }
    Confine {
        paths_rw,
        paths_ro,
        // A section that allows no host needs no network.
        network: own
            .get("network_targets")
            .is_none_or(|targets| *targets != Value::Array(Vec::new())),
        devices,
        default: Some(DefaultConfinement { make, temp }),
    }
}

/// The strings of the list under a key; none where it is not a list. The toolbox itself refuses what is not one.
fn strings<'a>(own: &'a Map<String, Value>, key: &str) -> impl Iterator<Item = &'a str> {
    own.get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}
