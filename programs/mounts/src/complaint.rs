//! How this program says why it ends with an error. Read [`complain`].

/// The exit code where the program cannot go on.
pub(crate) const EXIT_MACHINE: u8 = 70;

#[allow(
    clippy::print_stderr,
    reason = "the service logs it, and a person who starts it by hand reads it"
)]
pub(crate) fn complain(error: &str) {
    eprintln!("ovos-tools-mounts: {error}");
}
