//! What is shown to the person who signs in.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long a person may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(600);

/// The browser of this machine, if it has one.
pub(super) fn browser() -> Option<OsString> {
    let named = std::env::var_os("BROWSER").filter(|browser| !browser.is_empty());
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some());
    named.or_else(|| has_screen.then(|| "xdg-open".into()))
}

/// Opens a page in the browser of this machine, if it has one.
pub(super) fn open(page: &str) {
    let Some(browser) = browser() else { return };
    let mut command = Command::new(browser);
    command
        .arg(page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // The address is in the terminal, too.
    _ = command.spawn();
}

/// Tells the person something.
pub(super) fn say(text: &str) {
    // Without a terminal it goes on all the same.
    _ = io::stdout().write_all(text.as_bytes());
    _ = io::stdout().flush();
}
