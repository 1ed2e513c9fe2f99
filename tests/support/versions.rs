//! Several builds of testbed that differ in their version, made once.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::service::testbed_plugins;

/// The number of builds.
const BUILDS: usize = 4;

/// Version and content of each build.
///
/// `make testbed` makes them; if they are missing, or older than testbed, they are made here.
pub(crate) fn builds() -> Vec<(String, Vec<u8>)> {
    let dir = testbed_plugins().with_file_name("testbed-versions");
    let newest = fs::metadata(testbed_plugins().join("testbed.so"))
        .unwrap()
        .modified()
        .unwrap();
    let path = |version: usize| dir.join(format!("testbed-{version}.so"));
    let fresh = |version| fs::metadata(path(version)).is_ok_and(|file| file.modified().unwrap() >= newest);
    if !(1..=BUILDS).all(fresh) {
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut make = Command::new(checkout.join("scripts/testbed-versions.sh"));
        let made = make.arg(BUILDS.to_string()).arg(&dir).output().unwrap();
        assert!(
            made.status.success(),
            "testbed-versions.sh: {}",
            String::from_utf8_lossy(&made.stderr)
        );
    }
    (1..=BUILDS)
        .map(|version| (format!("build-{version}"), fs::read(path(version)).unwrap()))
        .collect()
}
