//! Whether the kernel bounds this process.

use std::fs;
use std::io::ErrorKind;

/// Whether the kernel keeps this process to the folders and devices that the configuration allows: the service says so,
/// and `/` cannot be listed.
///
/// A confinement that the toolbox's section requests may allow more, and does not count.
pub(crate) fn is_confined() -> bool {
    let stated = std::env::var_os("OVOS_TOOLBOX_CONFINED").is_some_and(|value| value == "1");
    stated && fs::read_dir("/").is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}
