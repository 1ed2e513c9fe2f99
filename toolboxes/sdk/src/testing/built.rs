//! The library of the crate under test.

/// The path of the library of the crate under test: `built("hello")` is libhello.so beside the test.
///
/// The crate needs `crate-type = ["cdylib", "rlib"]`: for a cdylib alone cargo builds no library before its tests, and
/// an outdated one might be tested.
///
/// # Panics
/// The library does not exist.
#[must_use]
pub fn built(library: &str) -> std::path::PathBuf {
    let test =
        std::env::current_exe().unwrap_or_else(|error| panic!("cannot find the test executable: {error}"));
    let path = test.with_file_name(format!("lib{library}.so"));
    assert!(
        path.exists(),
        "no {}: the crate needs crate-type = [\"cdylib\", \"rlib\"]",
        path.display()
    );
    path
}
