//! The only way for a test to skip something that the machine does not have.
//!
//! `make test` names what was skipped at the end. In CI a skip that `tests/may_skip.txt` does not list fails the test.
//! `scripts/skip.sh` is the same for scripts.
#![allow(clippy::print_stderr, reason = "the output of a test names what was skipped")]

use std::io::Write as _;

const MAY_SKIP: &str = include_str!("../../may_skip.txt");

/// Reports that the running test skips what needs `name`, and the reason.
///
/// # Panics
/// In CI (`CI=true`), unless `tests/may_skip.txt` lists the name.
#[track_caller]
pub fn skip(name: &str, reason: &str) {
    let may_skip = MAY_SKIP.lines().any(|line| line.split(':').next() == Some(name));
    assert!(
        may_skip || std::env::var("CI").as_deref() != Ok("true"),
        "{name}: {reason}; CI may skip only what tests/may_skip.txt lists"
    );
    let thread = std::thread::current();
    let line = format!("{name}: {reason} ({})\n", thread.name().unwrap_or("a test"));
    eprint!("skipped: {line}");
    // The file in which scripts/test.sh collects the skipped names.
    if let Some(list) = std::env::var_os("OVOS_TOOLS_SKIPPED") {
        let list = std::fs::OpenOptions::new().append(true).create(true).open(list);
        // One write, so that tests which run beside each other do not mix their lines.
        let written = list.and_then(|mut list| list.write_all(line.as_bytes()));
        assert!(written.is_ok(), "OVOS_TOOLS_SKIPPED: {written:?}");
    }
}
