//! The files that are executed for the words of a command: the program, and its script where that is an interpreter.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

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
#[must_use]
pub fn script_of<'a>(words: impl IntoIterator<Item = &'a String>) -> Option<PathBuf> {
    let mut words = words.into_iter();
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

/// The program of this name: the first match in the folders of `searched`, a `PATH`. Relative folders of `PATH` are skipped, so the
/// working directory is never searched.
#[must_use]
pub fn in_path(name: &str, searched: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(searched)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|path| is_program(path))
}

/// The path of a command: the path that is written, or that of the program [`in_path`].
///
/// # Errors
/// It is in none of them; for a person.
pub fn command_of(word: &str, searched: &OsStr) -> Result<PathBuf, String> {
    if word.starts_with('/') {
        return Ok(word.into());
    }
    in_path(word, searched).ok_or_else(|| {
        let searched = searched.display();
        format!(
            "`{word}` was not found in the service's PATH ({searched}); install it, or write its whole path"
        )
    })
}

/// Whether the path is that of a file that somebody may execute.
#[must_use]
pub fn is_program(path: &Path) -> bool {
    path.is_file() && is_executable(path)
}

/// Whether somebody may execute the file.
#[must_use]
pub fn is_executable(path: &Path) -> bool {
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
        let (script, data, large) = (file("a.py", 1), file("data", 1), file("large", 17 << 20));
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
            let command: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(script_of(&command), expected.map(PathBuf::from), "{words:?}");
        }
    }
}
