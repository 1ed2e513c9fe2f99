//! Work that a toolbox cannot stop its machine without.

/// Ends the process when a panic unwinds through it.
///
/// A thread that owns a port, watches a lease or hears a robot is not replaced when it panics: every later call would
/// hang, and a stop would not arrive. A process that has ended is: the service brings the hardware to rest from nothing
/// (`safe_stop`) and starts the toolbox anew. Hold one for as long as such a thread or task runs:
///
/// ```
/// use ovos_toolbox_sdk::Essential;
///
/// let thread = std::thread::spawn(|| {
///     let _essential = Essential::new("the bus of the left arm");
///     // ... the work ...
/// });
/// thread.join().unwrap();
/// ```
#[derive(Debug)]
#[must_use = "a panic ends the process only while this is held"]
pub struct Essential(String);

impl Essential {
    /// `what` names the work in the last line that the process writes.
    pub fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl Drop for Essential {
    #[allow(
        clippy::print_stderr,
        reason = "the log may be what has panicked; stderr goes to the service's log, too"
    )]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "{} has panicked: this process ends, so that its machine is stopped",
                self.0
            );
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const ASKED: &str = "OVOS_TEST_PANICS_IN";

    /// Runs in a process of its own: it is the end of it.
    #[test]
    fn panics_where_it_was_asked_to() {
        let Ok(place) = std::env::var(ASKED) else { return };
        let panics = || {
            let _essential = Essential::new("a bus");
            panic!("of the work");
        };
        match place.as_str() {
            "thread" => drop(std::thread::spawn(panics).join()),
            _ => {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                let task = async {
                    let _essential = Essential::new("a bus");
                    std::future::ready(()).await;
                    panic!("of the work");
                };
                drop(runtime.block_on(runtime.spawn(task)));
            }
        }
    }

    #[test]
    fn a_panic_of_essential_work_ends_the_process() {
        let test = std::env::current_exe().unwrap();
        for place in ["thread", "task"] {
            let ended = Command::new(&test)
                .args([
                    "--exact",
                    "essential::tests::panics_where_it_was_asked_to",
                    "--nocapture",
                ])
                .env(ASKED, place)
                .output()
                .unwrap();
            let stderr = String::from_utf8_lossy(&ended.stderr);
            assert_eq!(ended.status.code(), None, "{place}: ended by a signal: {stderr}");
            assert!(stderr.contains("a bus has panicked"), "{place}: {stderr}");
        }
    }
}
