//! Folders and files that the toolbox makes for itself.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use ovos_toolbox_sdk::prelude::*;

use crate::order::Format;

/// Makes a folder that only its owner can read: descriptions may contain passphrases.
pub(crate) fn make_private(path: &Path) -> Result<(), ToolError> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| ToolError::msg(format!("make the folder {}: {error}", path.display())))
}

/// A file name for a picture that does not exist yet.
///
/// # Errors
/// The folder cannot be made.
pub(crate) fn new_picture(folder: &Path, format: Format) -> Result<PathBuf, ToolError> {
    make_private(folder)?;
    let time = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S-%3f").to_string();
    let extension = match format {
        Format::Jpeg => "jpg",
        Format::Png => "png",
    };
    Ok(folder.join(format!("snapshot-{time}.{extension}")))
}

/// A file name for a recording that does not exist yet.
pub(crate) fn new_recording(folder: &Path) -> PathBuf {
    let time = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S-%3f").to_string();
    folder.join(format!("recording-{time}.mkv"))
}

/// Writes a file that must not exist yet.
///
/// # Errors
/// It exists, or cannot be written.
pub(crate) fn write_new(path: &Path, content: &[u8]) -> Result<(), ToolError> {
    let wrong = |error: std::io::Error| ToolError::msg(format!("write {}: {error}", path.display()));
    let mut file = std::fs::File::create_new(path).map_err(wrong)?;
    file.write_all(content).map_err(wrong)
}
