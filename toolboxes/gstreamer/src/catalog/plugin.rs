//! Plugins and their origin.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use ovos_toolbox_sdk::prelude::*;

/// Where an element comes from.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct PluginInfo {
    /// The plugin's name.
    pub(crate) name: String,
    /// What it is for.
    pub(crate) description: String,
    /// The library.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) filename: Option<PathBuf>,
    /// Its version.
    pub(crate) version: String,
    /// Its licence.
    pub(crate) license: String,
    /// The module of source code.
    pub(crate) source: String,
    /// The package, as the plugin names it.
    pub(crate) package: String,
    /// Where the package comes from.
    pub(crate) origin: String,
}

/// Describes a plugin.
pub(super) fn describe(plugin: &gst::Plugin) -> PluginInfo {
    PluginInfo {
        name: plugin.plugin_name().to_string(),
        description: plugin.description().to_string(),
        filename: plugin.filename(),
        version: plugin.version().to_string(),
        license: plugin.license().to_string(),
        source: plugin.source().to_string(),
        package: plugin.package().to_string(),
        origin: plugin.origin().to_string(),
    }
}

/// The modules that GStreamer itself releases (<https://gstreamer.freedesktop.org/modules/>); plugins name their
/// module.
const UPSTREAM: &[&str] = &[
    "gstreamer",
    "gst-plugins-base",
    "gst-plugins-good",
    "gst-plugins-bad",
    "gst-plugins-ugly",
    "gst-libav",
    "gst-rtsp-server",
    "gst-editing-services",
    "gstreamer-editing-services",
    "gst-devtools",
    "gst-python",
    "gstreamer-vaapi",
    "gst-omx",
    "gst-plugins-rs",
];

/// The names of the plugins that are neither from GStreamer's own modules nor from the distribution, sorted.
pub(super) fn custom() -> Vec<String> {
    let foreign: Vec<gst::Plugin> = gst::Registry::get()
        .plugins()
        .into_iter()
        // A plugin without a file is part of the core or of this process.
        .filter(|plugin| plugin.filename().is_some() && !UPSTREAM.contains(&plugin.source().as_str()))
        .collect();
    if foreign.is_empty() {
        return Vec::new();
    }
    let distributed = Distribution::read(Path::new("/"));
    let mut names: Vec<String> = foreign
        .iter()
        .filter(|plugin| !plugin.filename().is_some_and(|file| distributed.has(&file)))
        .map(|plugin| plugin.plugin_name().to_string())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The packages maintained by the distribution, where dpkg is the package manager.
///
/// A board's vendor ships Debian packages, too, so the maintainer of a package decides.
struct Distribution {
    root: PathBuf,
    packages: HashSet<String>,
}

impl Distribution {
    fn read(root: &Path) -> Self {
        let names = distribution_names(&fs::read_to_string(root.join("etc/os-release")).unwrap_or_default());
        let status = fs::read_to_string(root.join("var/lib/dpkg/status")).unwrap_or_default();
        let packages = status
            .split("\n\n")
            .filter(|entry| {
                let maintainer = field(entry, "Maintainer").unwrap_or_default().to_lowercase();
                names.iter().any(|name| maintainer.contains(name))
            })
            .filter_map(|entry| field(entry, "Package").map(str::to_owned))
            .collect();
        Self {
            root: root.to_owned(),
            packages,
        }
    }

    /// Whether one of the packages contains this file.
    fn has(&self, file: &Path) -> bool {
        // `/lib` is a link to `/usr/lib` today; packages use either path.
        let real = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        let short = real.strip_prefix("/usr").map(|rest| Path::new("/").join(rest));
        let wanted: Vec<&Path> = [Some(file), Some(real.as_path()), short.as_deref().ok()]
            .into_iter()
            .flatten()
            .collect();
        let Ok(lists) = fs::read_dir(self.root.join("var/lib/dpkg/info")) else {
            return false;
        };
        lists.flatten().any(|entry| {
            let name = entry.file_name();
            let Some(package) = name.to_str().and_then(|name| name.strip_suffix(".list")) else {
                return false;
            };
            let package = package.split(':').next().unwrap_or(package);
            self.packages.contains(package)
                && fs::read_to_string(entry.path())
                    .is_ok_and(|list| list.lines().any(|line| wanted.contains(&Path::new(line))))
        })
    }
}

fn field<'a>(entry: &'a str, name: &str) -> Option<&'a str> {
    entry
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .map(str::trim)
}

/// `ID` and `ID_LIKE` of os-release, in lower case.
fn distribution_names(os_release: &str) -> Vec<String> {
    os_release
        .lines()
        .filter_map(|line| line.strip_prefix("ID=").or_else(|| line.strip_prefix("ID_LIKE=")))
        .flat_map(|names| names.trim_matches(['"', '\'']).split_whitespace())
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vendors_package_is_not_the_distributions() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "etc/os-release",
            "NAME=\"Armbian\"\nID=armbian\nID_LIKE=\"debian\"\n",
        );
        write(
            "var/lib/dpkg/status",
            "Package: libnice\nMaintainer: Team <team@lists.alioth.debian.org>\n\nPackage: board-gst\nMaintainer: Board <dev@board.example>\n",
        );
        write(
            "var/lib/dpkg/info/libnice:arm64.list",
            "/.\n/nowhere/libgstnice.so\n",
        );
        write("var/lib/dpkg/info/board-gst.list", "/nowhere/libgstboard.so\n");
        let distribution = Distribution::read(root.path());
        for (file, expected) in [
            ("/nowhere/libgstnice.so", true),
            ("/nowhere/libgstboard.so", false),
            ("/nowhere/libgstmade.so", false),
        ] {
            assert_eq!(distribution.has(Path::new(file)), expected, "{file}");
        }
    }
}
