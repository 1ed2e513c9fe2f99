//! The kinds of robots that there are: those that come with the toolbox, and the owner's own files.
//!
//! Owns where files are looked for. An owner's file of the name of a built-in robot takes its place. A file that cannot be used
//! leaves out its robot alone. Read [`Shelf`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::kind::{RobotKind, plain};
use crate::model::ModelError;
use crate::model::error::nearest;

/// The robots that come with the toolbox: the name of the file, and its text.
const BUILT_IN: [(&str, &str); 10] = [
    ("booster-k1", include_str!("../robots/booster-k1.toml")),
    (
        "booster-k1-topics",
        include_str!("../robots/booster-k1-topics.toml"),
    ),
    ("create3", include_str!("../robots/create3.toml")),
    ("johnny5", include_str!("../robots/johnny5.toml")),
    ("lekiwi", include_str!("../robots/lekiwi.toml")),
    ("nav2-base", include_str!("../robots/nav2-base.toml")),
    ("so101", include_str!("../robots/so101.toml")),
    ("turtlebot3", include_str!("../robots/turtlebot3.toml")),
    ("unitree-g1", include_str!("../robots/unitree-g1.toml")),
    ("unitree-go2", include_str!("../robots/unitree-go2.toml")),
];
/// The largest file that is read.
const LARGEST: u64 = 1 << 20;

/// The kinds of robots, by name.
#[derive(Default)]
pub struct Shelf {
    folder: Option<PathBuf>,
    own: BTreeMap<String, (PathBuf, Result<RobotKind, ModelError>)>,
}

impl Shelf {
    /// The built-in robots, and those in a folder; by default `ovos-tools/robots` in the user's configuration.
    #[must_use]
    pub fn open(folder: Option<&Path>) -> Self {
        let folder = folder.map(Path::to_owned).or_else(user_config);
        let mut own: BTreeMap<String, (PathBuf, Result<RobotKind, ModelError>)> = BTreeMap::new();
        for path in folder.iter().flat_map(|folder| files(folder)) {
            let stem = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let mut kind = kind_of(&path);
            if let Some((before, _)) = own.get(&plain(&stem)) {
                let why = format!(
                    "{} is the same robot, because - and _ are the same in a name: remove one of the files",
                    before.display()
                );
                kind = Err(ModelError::parse(&format!("robot {}", path.display()), why));
            }
            own.insert(plain(&stem), (path, kind));
        }
        Self { folder, own }
    }

    /// The kind of a name; a name with a `/` is the path of a file.
    ///
    /// # Errors
    /// No robot has this name, with the known ones and the nearest; or its file cannot be used, with the reason.
    pub fn find(&self, name: &str) -> Result<RobotKind, ModelError> {
        if name.contains('/') {
            return kind_of(Path::new(name));
        }
        let wanted = plain(name);
        if let Some((_, own)) = self.own.get(&wanted) {
            return own.clone();
        }
        if let Some((stem, text)) = BUILT_IN.iter().find(|(stem, _)| plain(stem) == wanted) {
            return RobotKind::parse(&format!("robot {stem}.toml (built in)"), stem, text);
        }
        let known = self.names();
        let near = nearest(&wanted, known.iter().map(String::as_str))
            .map_or_else(String::new, |near| format!("; did you mean {near}?"));
        let folder = self.folder.as_ref().map_or_else(String::new, |folder| {
            format!("; files of your own are looked for in {}", folder.display())
        });
        Err(ModelError::parse(
            &format!("kind {name:?}"),
            format!(
                "no robot has this name, known are {}{near}{folder}",
                known.join(", ")
            ),
        ))
    }

    /// The owner's file of a kind; `None` for a built-in robot.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        if name.contains('/') {
            return Some(PathBuf::from(name));
        }
        self.own.get(&plain(name)).map(|(path, _)| path.clone())
    }

    /// The names of all robots, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let built_in = BUILT_IN.iter().map(|(stem, _)| plain(stem));
        let mut names: Vec<String> = built_in.chain(self.own.keys().cloned()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// What is wrong with files of the folder, apart from those of the robots that are asked for.
    pub fn troubles<'a>(&'a self, asked: &'a [String]) -> impl Iterator<Item = String> + 'a {
        let broken = self.own.iter().filter(|(name, _)| !asked.contains(name));
        broken.filter_map(|(_, (_, kind))| kind.as_ref().err().map(ToString::to_string))
    }
}

/// The kind that a file describes.
///
/// # Errors
/// The file cannot be read or used; with file, line and key.
pub fn kind_of(path: &Path) -> Result<RobotKind, ModelError> {
    let origin = format!("robot {}", path.display());
    let wrong = |message: String| ModelError::parse(&origin, message);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let size = std::fs::metadata(path)
        .map_err(|error| wrong(error.to_string()))?
        .len();
    if size > LARGEST {
        return Err(wrong("larger than 1 MiB: no file of a robot".to_owned()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    RobotKind::parse(&origin, &stem, &text)
}

/// The files of robots in a folder, sorted; none where there is no folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .collect();
    files.sort();
    files
}

/// `ovos-tools/robots` in the user's configuration folder.
fn user_config() -> Option<PathBuf> {
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    let config = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .and_then(absolute);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
    Some(config.or_else(home)?.join("ovos-tools/robots"))
}
