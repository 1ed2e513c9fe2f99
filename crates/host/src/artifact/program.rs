//! A program that the configuration names, as it is on the disk: what is executed, and whether it may be.
//!
//! Executing is loading code, so its files are checked as plugin files are. It is not copied: an interpreter finds its
//! libraries by where it is. Read [`Executable::find`]. Blocks.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::artifact::check;
use crate::artifact::fingerprint::{Fingerprint, sha256_of};
use section::ProgramConfig;

/// The largest script that is hashed; owner and mode of a larger one are checked.
const MAX_SCRIPT: u64 = 16 << 20;

/// What is executed for an entry of the configuration. Two are equal if a program that was started as the one need not be
/// replaced for the other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Executable {
    pub(crate) entry: Arc<ProgramConfig>,
    /// As it is written or found: where its links lead would be another program to one that looks at its own name.
    command: PathBuf,
    /// The command, and its script if that is an interpreter; with what they looked like.
    files: Vec<(PathBuf, Fingerprint)>,
    /// What `allow_sha256` pins: the hash of the last of them, in lower-case hex. Of a script that is too large to be hashed, words that no entry of
    /// `allow_sha256` equals.
    pub(crate) sha256: String,
}

impl Executable {
    /// Looks for the files of an entry and checks owner and mode of each.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub(crate) fn find(entry: &Arc<ProgramConfig>) -> Result<Self, String> {
        let command = command_of(entry)?;
        let mut files = Vec::new();
        let of_server = match server_of(entry)? {
            Some(server) => [Some(server), server_entry(entry).as_ref().and_then(script_of)],
            None => [None, None],
        };
        // The last one is what people know the entry by.
        let own = [Some(command.clone()), script_of(entry)];
        for path in of_server.into_iter().chain(own).flatten() {
            let real = check::file(&path).map_err(|error| error.to_string())?;
            let fingerprint = Fingerprint::read(&real);
            files.push((
                path.clone(),
                fingerprint.map_err(|error| format!("{}: {error}", path.display()))?,
            ));
        }
        check_imports(entry)?;
        if !is_executable(&command) {
            let shown = command.display();
            return Err(format!("{shown} is not executable: chmod +x '{shown}'"));
        }
        let known_by = files.last().map_or(command.as_path(), |(path, _)| path);
        let sha256 = hash(known_by, files.len() > 1)?;
        Ok(Self {
            entry: entry.clone(),
            command,
            files,
            sha256,
        })
    }

    /// Checks once more what was checked when it was found, before another of its processes is started: owner and mode of its
    /// files; and its hash, if the configuration names the allowed ones. Blocks.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub(crate) fn check_again(&self, allow_sha256: &[String]) -> Result<(), String> {
        for path in self.paths() {
            check::file(path).map_err(|error| error.to_string())?;
        }
        check_imports(&self.entry)?;
        if allow_sha256.is_empty() {
            return Ok(());
        }
        let shown = self.shown();
        let sha256 = hash(shown, self.files.len() > 1)?;
        check::allowed(shown, &sha256, allow_sha256).map_err(|error| error.to_string())
    }

    /// The file that people know it by: its script, or its command.
    pub(crate) fn shown(&self) -> &Path {
        self.files.last().map_or(&self.command, |(path, _)| path)
    }

    /// What that file looked like.
    pub(crate) fn fingerprint(&self) -> Option<Fingerprint> {
        self.files.last().map(|(_, fingerprint)| *fingerprint)
    }

    /// Its files.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|(path, _)| path.as_path())
    }

    /// What is executed, with its arguments.
    pub(crate) fn words(&self) -> impl Iterator<Item = std::ffi::OsString> {
        let arguments = self.entry.command.iter().skip(1).chain(&self.entry.args);
        std::iter::once(self.command.clone().into()).chain(arguments.map(Into::into))
    }
}

/// Checks owner and mode of what an interpreter imports from.
fn check_imports(entry: &ProgramConfig) -> Result<(), String> {
    let mut imports = entry.imports.iter();
    imports.try_for_each(|path| check::imported(path).map_err(|error| error.to_string()))
}

/// Commands that run the file of an argument, without the version at the end of their name.
const INTERPRETERS: &[&str] = &[
    "bash", "bun", "dash", "deno", "ksh", "lua", "luajit", "node", "nodejs", "perl", "php", "pypy", "python",
    "ruby", "rscript", "sh", "tclsh", "zsh",
];
/// Options of these whose value may be a file that is not the script.
const WITH_FILE: &[&str] = &[
    "-r",
    "--experimental-loader",
    "--import",
    "--init-file",
    "--loader",
    "--rcfile",
    "--require",
];

/// The script, if the command is an interpreter: its first argument that is the whole path of a file. Which options take a
/// value is not known, so every argument is looked at, up to `-m` or `-c`: these name code that is no file. What another
/// command is given is data.
fn script_of(entry: &ProgramConfig) -> Option<PathBuf> {
    let mut words = entry.command.iter().chain(&entry.args);
    let is_named = |word: &String, names: &[&str]| {
        let name = Path::new(word).file_name().and_then(|name| name.to_str());
        let name = name.unwrap_or_default().to_lowercase();
        names.contains(&name.trim_end_matches(|last: char| last.is_ascii_digit() || ".-".contains(last)))
    };
    let mut command = words.next()?;
    if is_named(command, &["env"]) {
        command = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    }
    if !is_named(command, INTERPRETERS) {
        return None;
    }
    let mut before = words.take_while(|word| !matches!(word.as_str(), "-m" | "-c"));
    loop {
        let word = before.next()?;
        if WITH_FILE.contains(&word.as_str()) {
            before.next();
        } else if word.starts_with('/') && Path::new(word).is_file() {
            return Some(word.into());
        }
    }
}

/// The hash of a file; or why a script has none.
fn hash(path: &Path, is_script: bool) -> Result<String, String> {
    let broken = |error: std::io::Error| format!("{}: {error}", path.display());
    if is_script && fs::metadata(path).map_err(broken)?.len() > MAX_SCRIPT {
        return Ok(format!("none: it has more than {} MiB", MAX_SCRIPT >> 20));
    }
    sha256_of(path).map_err(broken)
}

/// Where the command of a mounted server is; `None` for a server with a URL, and for what is no mount.
///
/// # Errors
/// It is in no folder of the service's `PATH`.
pub(crate) fn server_of(entry: &ProgramConfig) -> Result<Option<PathBuf>, String> {
    server_entry(entry).map(|server| command_of(&server)).transpose()
}

/// A mounted server, as if it were a program.
fn server_entry(entry: &ProgramConfig) -> Option<ProgramConfig> {
    let command = entry.mounted.clone().filter(|command| !command.is_empty())?;
    Some(ProgramConfig {
        command,
        ..ProgramConfig::new(&entry.name)
    })
}

/// Where the command is: where it is written, or in the first folder of the service's `PATH` that has it. A relative folder
/// is none: the working directory is never searched.
fn command_of(entry: &ProgramConfig) -> Result<PathBuf, String> {
    let word = entry.command.first().map_or("", String::as_str);
    if word.starts_with('/') {
        return Ok(word.into());
    }
    let searched = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&searched)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(word))
        .find(|path| path.is_file() && is_executable(path));
    found.ok_or_else(|| {
        let searched = searched.display();
        format!(
            "`{word}` is in no folder of the service's PATH ({searched}); write its whole path, or install it"
        )
    })
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_of_an_interpreter_is_its_first_file_whatever_options_come_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: u64| {
            let path = folder.path().join(name);
            fs::File::create(&path).unwrap().set_len(bytes).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (script, data, large) = (file("a.py", 1), file("data", 1), file("large", MAX_SCRIPT + 1));
        let gone = folder.path().join("gone").to_str().unwrap().to_owned();
        for (words, expected) in [
            (vec!["python3", &script, &data], Some(&script)),
            (vec!["python3", "-u", "-B", &script], Some(&script)),
            (vec!["python3", "-m", "arm", &data], None),
            (vec!["python3", "-u", "-c", "pass", &data], None),
            (vec!["python3", "-W", "ignore", &script], Some(&script)),
            (vec!["bash", "-o", "pipefail", &script, "-c"], Some(&script)),
            (vec!["/usr/bin/env", "python3", &script], Some(&script)),
            (
                vec!["/usr/bin/env", "-S", "A=1", "python3.11", &script],
                Some(&script),
            ),
            (vec!["/usr/bin/env", "arm", "--config", &data], None),
            (vec!["/v/bin/python3.14", &script], Some(&script)),
            (vec!["node", "--require", &data, &script], Some(&script)),
            (vec!["node-18", &script], Some(&script)),
            (vec!["python3", &large], Some(&large)),
            // What is given to another command is data.
            (vec!["arm", "serve", &data], None),
            (vec!["arm", "--config", &data], None),
            (vec!["/opt/sh/arm", &large, &script], None),
            (vec!["python-arm", &data], None),
            (vec!["python3", &gone, &script], Some(&script)),
            (vec!["python3", "a.py"], None),
            (vec!["arm"], None),
        ] {
            let entry = ProgramConfig {
                command: words.iter().map(|word| (*word).to_owned()).collect(),
                ..ProgramConfig::new("p")
            };
            assert_eq!(script_of(&entry), expected.map(PathBuf::from), "{words:?}");
        }
    }

    #[test]
    fn a_script_is_checked_also_behind_an_option_and_one_too_large_to_be_hashed_is_never_allowed_by_its_hash()
    {
        let folder = tempfile::tempdir().unwrap();
        for (bytes, mode, pins, expected) in [
            (1, 0o644, vec![], None),
            (1, 0o644, vec!["0".repeat(64)], Some("allow_sha256")),
            (1, 0o666, vec![], Some("others could put code")),
            (MAX_SCRIPT + 1, 0o644, vec![], None),
            (
                MAX_SCRIPT + 1,
                0o644,
                vec!["0".repeat(64)],
                Some("more than 16 MiB"),
            ),
            (MAX_SCRIPT + 1, 0o666, vec![], Some("others could put code")),
        ] {
            let path = folder.path().join(format!("{bytes}-{mode}-{}", pins.len()));
            fs::File::create(&path).unwrap().set_len(bytes).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let script = path.to_str().unwrap();
            let entry = ProgramConfig {
                command: ["/bin/sh", "-o", "nounset", script].map(str::to_owned).into(),
                ..ProgramConfig::new("p")
            };
            let outcome = Executable::find(&Arc::new(entry)).and_then(|found| found.check_again(&pins));
            match expected {
                None => assert_eq!(outcome, Ok(()), "{script}"),
                Some(expected) => {
                    let why = outcome.unwrap_err();
                    assert!(why.contains(expected) && why.contains(script), "{why}");
                }
            }
        }
    }
}
