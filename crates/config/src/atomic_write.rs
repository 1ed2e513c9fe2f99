//! Replaces a file as a whole. Read [`write_atomically`].

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Replaces a file, and makes its folder if it is missing: a reader sees the old text or the new one. The text and its new
/// name are on the disk when this returns. `permissions` are those of the new file; without them only its
/// owner may read it.
///
/// # Errors
/// The text cannot be written beside the file, or the file cannot be replaced. The file is unchanged then.
pub fn write_atomically(path: &Path, text: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    StagedFile::write(path, text, permissions)?.replace()
}

/// The new text of a file, on the disk beside it. To replace several files that belong together, write all of them first: a disk
/// that is full changes none of them then.
#[derive(Debug)]
pub struct StagedFile {
    path: PathBuf,
    staged: PathBuf,
}

impl StagedFile {
    /// Writes the text beside the file, as [`write_atomically`] does.
    ///
    /// # Errors
    /// The text cannot be written.
    pub fn write(path: &Path, text: &[u8], permissions: Option<Permissions>) -> io::Result<Self> {
        fs::create_dir_all(folder_of(path))?;
        let mut staged = path.as_os_str().to_owned();
        staged.push(".new");
        let staged = PathBuf::from(staged);
        // A leftover may have other permissions, or be a link.
        match fs::remove_file(&staged) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&staged)?;
        file.set_permissions(permissions.unwrap_or_else(|| Permissions::from_mode(0o600)))?;
        file.write_all(text)?;
        file.sync_all()?;
        let path = path.to_owned();
        Ok(Self { path, staged })
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// The file cannot be replaced, and is unchanged.
    pub fn replace(self) -> io::Result<()> {
        fs::rename(&self.staged, &self.path)?;
        // The rename is durable only after the folder is synced.
        File::open(folder_of(&self.path))?.sync_all()
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_with_its_permissions_whatever_a_crash_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made/a.json");
        for (text, permissions, mode) in [
            ("first", None, 0o600),
            ("second", Some(Permissions::from_mode(0o640)), 0o640),
            ("third", None, 0o600),
        ] {
            write_atomically(&path, text.as_bytes(), permissions).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            let found = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(found, mode, "{text}");
            let elsewhere = folder.path().join("elsewhere");
            fs::write(&elsewhere, "kept").unwrap();
            std::os::unix::fs::symlink(&elsewhere, folder.path().join("made/a.json.new")).unwrap();
        }
        let path = folder.path().join("made/a.json.new");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        write_atomically(&folder.path().join("made/a.json"), b"x", None).unwrap_err();
        let text = fs::read_to_string(folder.path().join("made/a.json")).unwrap();
        assert_eq!(text, "third", "a replacement that fails changes nothing");
        assert_eq!(
            fs::read_to_string(folder.path().join("elsewhere")).unwrap(),
            "kept"
        );
    }
}
