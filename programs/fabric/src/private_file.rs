//! Files that only their owner may read. Read [`write_private`].

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Replaces a file that only its owner may read, and makes its folder.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), String> {
    let path = &std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let folder = path.parent().unwrap_or(path);
    if !folder.exists() {
        let made = fs::create_dir_all(folder)
            .and_then(|()| fs::set_permissions(folder, fs::Permissions::from_mode(0o700)));
        made.map_err(|error| format!("make {}: {error}", folder.display()))?;
    }
    config::write_atomically(path, text.as_bytes(), None)
        .map_err(|error| format!("write {}: {error}", path.display()))
}
