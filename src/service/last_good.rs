//! Writes the copy of the last good configuration, which stands in for a file that cannot be read at the next start.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use config::Config;

/// Replaces the copy if every file of this configuration is good and the copy differs. Blocks on the disk.
pub(super) fn keep(config: &Config) {
    let Some((path, text)) = config.last_good() else {
        return;
    };
    if fs::read_to_string(&path).is_ok_and(|before| before == text) {
        return;
    }
    if let Err(error) = replace(&path, &text) {
        let path = path.display();
        tracing::warn!(%path, %error, "the copy of the configuration, for a start with a broken file, is not written");
    }
}

/// Replaces the file whole, and syncs it to the disk. Only its owner may read it: sections hold secrets.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let fresh = path.with_extension("json.new");
    // A leftover may have another mode.
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&fresh)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(fresh, path)
}
