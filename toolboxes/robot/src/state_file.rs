//! A file of the robot's state: whole after a crash, of a bounded size, and for its owner only.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The largest file that is read. A saved configuration is far smaller.
const LARGEST: u64 = 1 << 20;

/// Writes a file beside the target and renames it; only its owner may read it.
pub(crate) fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let beside = path.with_extension("json.new");
    let mut options = std::fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)?;
    file.write_all(text.as_bytes())?;
    // The motors may lose these settings in a moment.
    file.sync_all()?;
    std::fs::rename(beside, path)
}

/// Reads a file that is not too large.
pub(crate) fn read(path: &Path) -> std::io::Result<String> {
    let size = std::fs::metadata(path)?.len();
    if size > LARGEST {
        return Err(std::io::Error::other("larger than 1 MiB"));
    }
    std::fs::read_to_string(path)
}
