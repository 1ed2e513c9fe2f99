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
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    let fresh = PathBuf::from(fresh);
    // A leftover may have other permissions, or be a link.
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&fresh)?;
    file.set_permissions(permissions.unwrap_or_else(|| Permissions::from_mode(0o600)))?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    // The rename is durable only after the folder is synced.
    File::open(folder)?.sync_all()
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
