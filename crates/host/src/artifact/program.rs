//! A program that the configuration names: the files that are executed, and whether they may be.
//!
//! Executing a file loads its code, so the files are checked as plugin files are. They are not copied, because an
//! interpreter finds its libraries by its own path. Read [`Executable::find`]. Blocks.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::artifact::check;
use crate::artifact::fingerprint::{Fingerprint, sha256_of};
use section::ProgramConfig;

/// The largest script that is hashed; owner and mode of a larger one are checked.
const MAX_SCRIPT: u64 = 16 << 20;

/// The files and words that are executed for an entry of the configuration. Two values are equal if a running program
/// that was started from one need not be replaced by the other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Executable {
    pub(crate) entry: Arc<ProgramConfig>,
    /// The command's path as it is written or found. Links are not resolved: a program that looks at its own name would
    /// behave as another one.
    command: PathBuf,
    /// The command, and the script if the command is an interpreter, each with its fingerprint.
    files: Vec<(PathBuf, Fingerprint)>,
    /// The value that `allow_sha256` pins: the hash of the last of the files, in lower-case hex. For a script that is
    /// too large to be hashed, a text that no entry of `allow_sha256` equals.
    pub(crate) sha256: String,
}

impl Executable {
    /// Looks for the files of an entry and checks owner and mode of each.
    ///
    /// # Errors
    /// The problem, and what to do about it.
    pub(crate) fn find(entry: &Arc<ProgramConfig>) -> Result<Self, String> {
        let command = command_of(entry)?;
        let mut files = Vec::new();
        let of_server = match server_of(entry)? {
            Some(server) => [Some(server), server_entry(entry).as_ref().and_then(script_of)],
            None => [None, None],
        };
        // The last file is the one by which people know the entry.
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
            let program = command.display();
            return Err(format!("{program} is not executable: chmod +x '{program}'"));
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

    /// Repeats the checks of [`Self::find`] before another process of the program is started: owner and mode of its
    /// files, and its hash if the configuration names the allowed hashes. Blocks.
    ///
    /// # Errors
    /// The problem, and what to do about it.
    pub(crate) fn check_again(&self, allow_sha256: &[String]) -> Result<(), String> {
        for path in self.paths() {
            check::file(path).map_err(|error| error.to_string())?;
        }
        check_imports(&self.entry)?;
        if allow_sha256.is_empty() {
            return Ok(());
        }
        let path = self.shown();
        let sha256 = hash(path, self.files.len() > 1)?;
        check::allowed(path, &sha256, allow_sha256).map_err(|error| error.to_string())
    }

    /// The file by which people know the program: its script, or else its command.
    pub(crate) fn shown(&self) -> &Path {
        self.files.last().map_or(&self.command, |(path, _)| path)
    }

    /// The fingerprint of that file.
    pub(crate) fn fingerprint(&self) -> Option<Fingerprint> {
        self.files.last().map(|(_, fingerprint)| *fingerprint)
    }

    /// The files of the program.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|(path, _)| path.as_path())
    }

    /// The command and its arguments.
    pub(crate) fn words(&self) -> impl Iterator<Item = std::ffi::OsString> {
        let arguments = self.entry.command.iter().skip(1).chain(&self.entry.args);
        std::iter::once(self.command.clone().into()).chain(arguments.map(Into::into))
    }
}

/// Checks owner and mode of the files and folders from which an interpreter imports.
fn check_imports(entry: &ProgramConfig) -> Result<(), String> {
    let mut imports = entry.imports.iter();
    imports.try_for_each(|path| check::imported(path).map_err(|error| error.to_string()))
}

/// Commands that run a file that an argument names; without the version at the end of their names.
const INTERPRETERS: &[&str] = &[
    "bash", "bun", "dash", "deno", "ksh", "lua", "luajit", "node", "nodejs", "perl", "php", "pypy", "python",
    "ruby", "rscript", "sh", "tclsh", "zsh",
];
/// Options of these commands whose value may be a file other than the script.
const WITH_FILE: &[&str] = &[
    "-r",
    "--experimental-loader",
    "--import",
    "--init-file",
    "--loader",
    "--rcfile",
    "--require",
];

/// The script, if the command is an interpreter: its first argument that is the whole path of a file. This function
/// does not know which options take a value, so it looks at every argument up to `-m` or `-c`, which name code that is
/// no file. Files among the arguments of any other command are data.
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

/// The hash of a file, or a text that says why a script has none.
fn hash(path: &Path, is_script: bool) -> Result<String, String> {
    let broken = |error: std::io::Error| format!("{}: {error}", path.display());
    if is_script && fs::metadata(path).map_err(broken)?.len() > MAX_SCRIPT {
        return Ok(format!("none: it has more than {} MiB", MAX_SCRIPT >> 20));
    }
    sha256_of(path).map_err(broken)
}

/// The path of a mounted server's command; `None` for a server with a URL, and for an entry that mounts no server.
///
/// # Errors
/// The command is in no folder of the service's `PATH`.
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

/// The path of the command: the path that is written, or the first match in the folders of the service's `PATH`.
/// Relative folders of `PATH` are skipped, so the working directory is never searched.
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
            "`{word}` was not found in the service's PATH ({searched}); install it, or write its whole path"
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
            // Files among the arguments of another command are data.
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
