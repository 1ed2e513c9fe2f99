//! The locations of files: the XDG base directories and the layers of the mycroft.conf stack.
//!
//! Everything is read through [`Environment`], never directly from the process environment, so a test describes a
//! machine instead of changing the real one.

use std::path::{Path, PathBuf};

/// The properties of a machine that determine the locations of files.
pub trait Environment {
    /// Returns a variable; `None` if it is not set or not UTF-8.
    fn var(&self, name: &str) -> Option<String>;

    /// The home directory of the user.
    fn home(&self) -> Option<PathBuf>;

    /// The folder that built-in absolute locations (`/etc/mycroft`, `/usr/share/mycroft`, ...) are relative to. Paths
    /// from variables are used unchanged.
    fn root(&self) -> &Path {
        Path::new("/")
    }

    /// The file of the running program, without links.
    fn program(&self) -> Option<PathBuf> {
        None
    }
}

/// The environment of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn var(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn home(&self) -> Option<PathBuf> {
        std::env::home_dir()
    }

    fn program(&self) -> Option<PathBuf> {
        std::env::current_exe().ok()
    }
}

/// The directories of the XDG base directory specification. A variable that is empty or relative counts as not set,
/// as in the specification and in OVOS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Xdg {
    /// The home directory, for `~/`.
    pub home: PathBuf,
    /// `XDG_CONFIG_HOME`.
    pub config_home: PathBuf,
    /// `XDG_CONFIG_DIRS`, in the order written.
    pub config_dirs: Vec<PathBuf>,
    /// `XDG_DATA_HOME`.
    pub data_home: PathBuf,
    /// `XDG_STATE_HOME`.
    pub state_home: PathBuf,
    /// `XDG_CACHE_HOME`.
    pub cache_home: PathBuf,
    /// `XDG_RUNTIME_DIR`, which has no default.
    pub runtime_dir: Option<PathBuf>,
}

impl Xdg {
    /// Reads the variables of `env`.
    #[must_use]
    pub fn new(env: &dyn Environment) -> Self {
        let absolute = |name: &str| env.var(name).map(PathBuf::from).filter(|path| path.is_absolute());
        // A service account may have no home directory.
        let home = env
            .home()
            .filter(|home| home.is_absolute())
            .unwrap_or_else(|| rooted(env, "/var/lib/ovos-tools"));
        let config_dirs = env.var("XDG_CONFIG_DIRS").map(|list| {
            list.split(':')
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
                .collect::<Vec<_>>()
        });
        Self {
            config_home: absolute("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")),
            config_dirs: config_dirs
                .filter(|dirs| !dirs.is_empty())
                .unwrap_or_else(|| vec![rooted(env, "/etc/xdg")]),
            data_home: absolute("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share")),
            state_home: absolute("XDG_STATE_HOME").unwrap_or_else(|| home.join(".local/state")),
            cache_home: absolute("XDG_CACHE_HOME").unwrap_or_else(|| home.join(".cache")),
            runtime_dir: absolute("XDG_RUNTIME_DIR"),
            home,
        }
    }
}

/// Places a built-in absolute location below the environment's root.
pub(super) fn rooted(env: &dyn Environment, path: &str) -> PathBuf {
    env.root().join(path.trim_start_matches('/'))
}

/// The folder of plugins that every package puts below its prefix, as `scripts/install.sh` lays it out.
const INSTALLED_PLUGINS: &str = "lib/ovos-tools/plugins";

/// The folders of plugins that are installed with the service: that of the prefix in which the program is installed
/// (`PREFIX/bin`), if it is in one, and the two of the system.
pub(super) fn installed_plugins(env: &dyn Environment) -> Vec<PathBuf> {
    let program = env.program();
    let bin = program.as_deref().and_then(Path::parent);
    let own = bin.filter(|bin| bin.ends_with("bin")).and_then(Path::parent);
    let system = ["/usr/local", "/usr"].map(|prefix| rooted(env, prefix));
    let other = own.filter(|own| system.iter().all(|prefix| prefix != own));
    let prefixes = other.into_iter().chain(system.iter().map(PathBuf::as_path));
    prefixes.map(|prefix| prefix.join(INSTALLED_PLUGINS)).collect()
}

/// The author of a layer; decides which protections apply to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerKind {
    /// The packaged default (`OVOS_DEFAULT_CONFIG`).
    Default,
    /// The image or distribution.
    Distribution,
    /// The administrator.
    System,
    /// Written by the assistant itself (`runtime.conf`).
    Assistant,
    /// XDG directories and the user's own file.
    User,
    /// The file given with `--config`.
    Given,
}

/// Lists the files of the stack, lowest precedence first. `given_file` replaces the user's own file.
pub(super) fn locations(
    env: &dyn Environment,
    xdg: &Xdg,
    given_file: Option<&Path>,
) -> Vec<(LayerKind, PathBuf)> {
    let named = |name: &str, default: &str| {
        env.var(name)
            .filter(|value| !value.is_empty())
            .unwrap_or_else(|| default.to_owned())
    };
    let base = base_folder(env);
    let file = named("OVOS_CONFIG_FILENAME", "mycroft.conf");
    // For these two layers, a variable that is set but empty disables the layer.
    let system_wide = |name: &str, folder: &str| match env.var(name) {
        Some(path) => PathBuf::from(path),
        None => rooted(env, folder).join(&base).join(&file),
    };

    let mut layers = Vec::new();
    if let Some(path) = env.var("OVOS_DEFAULT_CONFIG") {
        layers.push((LayerKind::Default, PathBuf::from(path)));
    }
    layers.push((
        LayerKind::Distribution,
        system_wide("OVOS_DISTRIBUTION_CONFIG", "/usr/share"),
    ));
    layers.push((LayerKind::System, system_wide("MYCROFT_SYSTEM_CONFIG", "/etc")));
    layers.push((
        LayerKind::Assistant,
        xdg.config_home.join(&base).join("runtime.conf"),
    ));
    layers.extend(
        xdg.config_dirs
            .iter()
            .map(|dir| (LayerKind::User, dir.join(&base).join(&file))),
    );
    match given_file {
        Some(path) => layers.push((LayerKind::Given, path.to_owned())),
        None => layers.push((LayerKind::User, xdg.config_home.join(&base).join(&file))),
    }
    layers.retain(|(_, path)| !path.as_os_str().is_empty());
    layers
}

/// The folder of OVOS inside the XDG directories: `mycroft`, or the value of `OVOS_CONFIG_BASE_FOLDER`.
pub(super) fn base_folder(env: &dyn Environment) -> String {
    env.var("OVOS_CONFIG_BASE_FOLDER")
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "mycroft".to_owned())
}
