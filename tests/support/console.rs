//! The console's program and its page, and a browser to look at it.

use std::path::{Path, PathBuf};

use super::process::Process;
use super::scene::Scene;

/// The console's program, beside the service's.
pub(crate) fn binary() -> PathBuf {
    let service = Path::new(env!("CARGO_BIN_EXE_ovos-tools"));
    let console = service.with_file_name("ovos-tools-console");
    assert!(
        console.exists(),
        "no {}: cargo build --package ovos-tools-console",
        console.display()
    );
    console
}

/// A console that may not listen yet.
pub(crate) fn start(scene: &Scene) -> Process {
    Process::start("console", &scene.sandbox, scene.sandbox.command(binary()))
}

/// A console whose page listens.
pub(crate) fn serving(scene: &Scene) -> Process {
    let mut console = start(scene);
    console.until("page", |console| {
        console.log().contains("the page is at").then_some(())
    });
    // What is no terminal may be a log.
    assert!(!console.log().contains("#token"), "{}", console.log());
    console
}

/// What `ovos-tools console address` prints first: an address with a token.
pub(crate) fn address(scene: &Scene, options: &[&str]) -> String {
    let mut command = scene.sandbox.command(binary());
    let out = command.arg("address").args(options).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    text.lines().next().unwrap().to_owned()
}

/// The browser, or `None` where `scripts/setup.sh --with-browser` could not install it.
pub(crate) fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join("chromium"))
        .find(|program| program.exists());
    if found.is_none() {
        skip::skip("chromium", "it is not installed: scripts/setup.sh --with-browser");
    }
    found
}
