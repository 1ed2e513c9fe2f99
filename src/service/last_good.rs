//! Writes the copy of the last good configuration, which stands in for a file that cannot be read at the next start.

use std::fs;

use config::{Config, write_atomically};

/// Replaces the copy if every file of this configuration is good and the copy differs. Blocks on the disk.
pub(super) fn keep(config: &Config) {
    let Some((path, text)) = config.last_good() else {
        return;
    };
    if fs::read_to_string(&path).is_ok_and(|before| before == text) {
        return;
    }
    // Only its owner may read it: sections hold secrets.
    if let Err(error) = write_atomically(&path, text.as_bytes(), None) {
        let path = path.display();
        tracing::warn!(%path, %error, "the copy of the configuration, for a start with a broken file, is not written");
    }
}
