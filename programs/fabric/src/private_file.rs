//! Files that only their owner may read. Read [`write_private`].

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use config::StagedFile;

/// Replaces a file that only its owner may read, and makes its folder.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), String> {
    write_all_private(&[(path, text)])
}

/// Replaces files that belong together, in this order: none of them before all new texts are on the disk.
///
/// # Errors
/// A file cannot be written. If there is no room for all of them, none is replaced.
pub(crate) fn write_all_private(files: &[(&Path, &str)]) -> Result<(), String> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error| format!("write {path}: {error}")
    };
    let mut staged = Vec::new();
    for (path, text) in files {
        let path = &std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let folder = path.parent().unwrap_or(path);
        if !folder.exists() {
            let made = fs::create_dir_all(folder)
                .and_then(|()| fs::set_permissions(folder, fs::Permissions::from_mode(0o700)));
            made.map_err(|error| format!("make {}: {error}", folder.display()))?;
        }
        staged.push(StagedFile::write(path, text.as_bytes(), None).map_err(failed(path))?);
    }
    for (file, (path, _)) in staged.into_iter().zip(files) {
        file.replace().map_err(failed(path))?;
    }
    Ok(())
}
