//! The files that a pipeline may access.
//!
//! Owns the allowed folders and the resolution of paths: symlinks and `..` are followed before a path is compared.
//! Reads the file system, changes nothing. Read [`Roots`].

use std::path::{Component, Path, PathBuf};

use super::access::Access;
use super::refusal::Refusal;

/// The folders below which files may be read and written.
#[derive(Debug)]
pub(super) struct Roots {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    confined: bool,
}

/// What makes a name a pattern.
const PATTERN: [char; 4] = ['%', '*', '?', '['];

impl Roots {
    pub(super) fn new(read: &[PathBuf], write: &[PathBuf], confined: bool) -> Self {
        Self {
            read: read.to_vec(),
            write: write.to_vec(),
            confined,
        }
    }

    /// Completes the path at a place of a description, see [`Roots::complete`].
    pub(super) fn place(&self, description: &mut String, at: usize, path: &str, access: Access) {
        let whole = self.complete(path, access);
        let rest = path.strip_prefix("~/").unwrap_or(path);
        let Some(folder) = whole
            .strip_suffix(rest)
            .filter(|folder| !folder.is_empty() && whole != path)
        else {
            return;
        };
        let quoted = description[at..].starts_with(['"', '\'']);
        let at = at + usize::from(quoted);
        let mut before = String::new();
        for letter in folder.chars() {
            if !(letter.is_alphanumeric() || "/-_.".contains(letter)) {
                before.push('\\');
            }
            before.push(letter);
        }
        description.replace_range(at..at + path.len() - rest.len(), &before);
    }

    /// The whole of a path: below the first folder if it is relative, below the home after `~/`.
    pub(super) fn complete(&self, path: &str, access: Access) -> String {
        // An address, or a name in a system of its own, is no path.
        let is_relative = !path.is_empty() && !path.starts_with('/') && !path.contains(':');
        let (folder, rest) = match path.strip_prefix("~/") {
            Some(rest) => (std::env::home_dir(), rest),
            None if is_relative => {
                let roots = if access == Access::Read {
                    &self.read
                } else {
                    &self.write
                };
                (roots.first().cloned(), path)
            }
            None => (None, path),
        };
        match folder.filter(|folder| folder.is_absolute()) {
            Some(folder) => format!("{}/{rest}", folder.display()),
            None => path.to_owned(),
        }
    }

    /// Whether `text` may be accessed in this way.
    pub(super) fn check(&self, text: &str, access: Access) -> Result<PathBuf, Refusal> {
        let refuse = |reason: String| Refusal::new(reason, key(access));
        let path = resolve(text).map_err(|why| refuse(format!("the path {text:?} {why}")))?;
        let within = |roots: &[PathBuf]| roots.iter().any(|root| covers(root, &path));
        let (read, write) = (within(&self.read), within(&self.write));
        let allowed = match access {
            Access::Read => read,
            Access::Write => write,
            Access::Both => read && write,
            Access::Either => read || write,
        };
        if !allowed {
            let leads = if Path::new(text) == path {
                String::new()
            } else {
                format!(" (which is {})", path.display())
            };
            let what = match access {
                Access::Read => "reads",
                Access::Write => "writes",
                Access::Both | Access::Either => "uses",
            };
            let folders = self.folders(access);
            let names = if folders.is_empty() {
                "(none)".to_owned()
            } else {
                folders.join(", ")
            };
            let folder = path.parent().unwrap_or(&path).display().to_string();
            let refusal = refuse(format!("it {what} {text:?}{leads}, outside the folders {names}"));
            return Err(refusal.allowed_by(&folders, &folder));
        }
        self.check_pattern(&path, access)?;
        Ok(path)
    }

    /// Checks a pattern, which may match links to other folders; where the kernel confines, it judges what they lead to.
    fn check_pattern(&self, path: &Path, access: Access) -> Result<(), Refusal> {
        let (name, folder) = (path.file_name().unwrap_or_default(), path.parent());
        if self.confined || !name.to_string_lossy().contains(PATTERN) {
            return Ok(());
        }
        let entries = folder.and_then(|folder| std::fs::read_dir(folder).ok());
        let mut entries = entries.into_iter().flatten().flatten();
        match entries.find(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink())) {
            None => Ok(()),
            Some(link) => {
                let why = format!(
                    "the pattern may match the link {}, which can lead outside the folders",
                    link.path().display()
                );
                Err(Refusal::new(why, key(access)))
            }
        }
    }

    fn folders(&self, access: Access) -> Vec<String> {
        let roots = if access == Access::Read {
            &self.read
        } else {
            &self.write
        };
        roots.iter().map(|root| root.display().to_string()).collect()
    }
}

fn key(access: Access) -> &'static str {
    match access {
        Access::Read => "read_roots",
        Access::Write | Access::Both | Access::Either => "write_roots",
    }
}

fn covers(root: &Path, path: &Path) -> bool {
    // A root may be a link itself, or be created after the service has started.
    root.to_str()
        .and_then(|root| resolve(root).ok())
        .is_some_and(|root| path.starts_with(root))
}

/// Resolves a path: links and `..` as far as it exists, the rest literally.
fn resolve(text: &str) -> Result<PathBuf, &'static str> {
    if text.contains('\0') {
        return Err("has a zero byte");
    }
    check_counter(text)?;
    let written = std::path::absolute(text).map_err(|_| "cannot be made absolute")?;
    let existing = written
        .ancestors()
        .find(|part| std::fs::symlink_metadata(part).is_ok())
        .ok_or("cannot be looked up")?;
    let mut path = existing
        .canonicalize()
        .map_err(|_| "goes through a broken link, or a folder that cannot be read")?;
    let rest = written.strip_prefix(existing).unwrap_or(Path::new(""));
    for part in rest.components() {
        let Component::Normal(name) = part else {
            return Err("goes up from a folder that does not exist");
        };
        path.push(name);
    }
    match path.parent().map(Path::to_string_lossy) {
        Some(folder) if folder.contains(PATTERN) => Err("has a wildcard in the name of a folder"),
        _ => Ok(path),
    }
}

/// Checks the counter in a file name. Elements pass such names to printf: anything but one number could crash them or read
/// their memory.
fn check_counter(text: &str) -> Result<(), &'static str> {
    let text = text.replace("%%", "");
    let Some((_, rest)) = text.split_once('%') else {
        return Ok(());
    };
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_counter = rest.len() - after.len() <= 3 && after.starts_with(['d', 'i', 'u']);
    if is_counter && !after.contains('%') {
        Ok(())
    } else {
        Err("has a % that is not a single counter such as %05d")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::{Access, Roots, check_counter};

    #[test]
    fn a_path_is_judged_by_where_it_leads() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let (inside, outside) = (base.join("rec"), base.join("private"));
        std::fs::create_dir_all(inside.join("sub")).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::write(outside.join("key"), "x").unwrap();
        symlink(outside.join("key"), inside.join("link")).unwrap();
        symlink(&outside, inside.join("folder")).unwrap();
        symlink(base.join("nowhere"), inside.join("dangling")).unwrap();
        let roots = Roots::new(&[], std::slice::from_ref(&inside), false);
        let rec = inside.to_str().unwrap();
        for (path, allowed) in [
            (format!("{rec}/a.ts"), true),
            (format!("{rec}/sub/../a.ts"), true),
            (format!("{rec}/new/folder/a.ts"), true),
            (format!("{rec}/../private/key"), false),
            (format!("{rec}/new/../../private/key"), false),
            (format!("{rec}/link"), false),
            (format!("{rec}/folder/key"), false),
            (format!("{rec}/folder/../rec/a.ts"), true),
            (format!("{rec}/dangling"), false),
            (format!("{rec}ord/a.ts"), false),
            (format!("{rec}/%s.ts"), false),
            // The folder contains links to other folders, which a pattern would follow.
            (format!("{rec}/%05d.ts"), false),
            (format!("{rec}/sub/%05d.ts"), true),
            (format!("{rec}/*/a.ts"), false),
            ("a.ts".to_owned(), false),
            ("~/a.ts".to_owned(), false),
            ("/etc/passwd".to_owned(), false),
        ] {
            let checked = roots.check(&path, Access::Write);
            assert_eq!(checked.is_ok(), allowed, "{path}: {checked:?}");
            assert!(
                roots.check(&path, Access::Read).is_err(),
                "{path} may not be read"
            );
        }
    }

    #[test]
    fn only_one_number_may_be_printed() {
        for (text, allowed) in [
            ("a%05d.ts", true),
            ("a%d", true),
            ("100%%", true),
            ("%s", false),
            ("%n", false),
            ("%d%d", false),
            ("%99999d", false),
            ("50%", false),
        ] {
            assert_eq!(check_counter(text).is_ok(), allowed, "{text}");
        }
    }
}
