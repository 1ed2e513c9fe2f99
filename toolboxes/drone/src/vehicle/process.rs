//! A child program that ends with this process, however this process ends.
//!
//! The kernel's parent-death signal needs unsafe code between fork and exec, and is bound to the thread that forked.
//! Instead a shell holds the read end of a pipe: when our end closes, because we closed it, crashed or were killed, it
//! kills the program within milliseconds. For a vehicle this means no more setpoints, and PX4 acts on its parameters.
//! Read [`Child`].

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{ChildStdin, Command};
use tokio_util::task::TaskTracker;

/// `$1` is the file that goes with the program, or empty; the rest is the program. Standard input is the pipe, which the
/// program does not inherit.
const SCRIPT: &str = r#"exec 3<&0
file=$1
shift
"$@" </dev/null 3<&- & program=$!
{ read -r _ <&3; kill -KILL $program; } >/dev/null 2>&1 & watch=$!
exec 3<&-
wait $program; code=$?
kill $watch 2>/dev/null
[ -z "$file" ] || rm -f "$file"
exit $code"#;

/// Number of lines of a child's output that are kept for error messages.
const LINES: usize = 20;

/// A running program. Dropping it kills it.
pub(crate) struct Child {
    child: tokio::process::Child,
    /// The write end of the pipe; the program lives until it closes.
    _leash: Option<ChildStdin>,
    lines: Arc<Mutex<VecDeque<String>>>,
    name: String,
}

impl Child {
    /// Starts a program. Each line of its output goes to the log and to `each`.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn start<A: AsRef<OsStr>>(
        tasks: &TaskTracker,
        program: &Path,
        args: &[A],
        each: impl Fn(&str) + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        Self::start_with_file(tasks, program, args, Path::new(""), each)
    }

    /// Starts a program that writes `file`, which is removed when the program has ended, also where this process was killed.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn start_with_file<A: AsRef<OsStr>>(
        tasks: &TaskTracker,
        program: &Path,
        args: &[A],
        file: &Path,
        each: impl Fn(&str) + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let mut child = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "sh"])
            .arg(file)
            .arg(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let name = program
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let lines: Arc<Mutex<VecDeque<String>>> = Arc::default();
        let each: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(each);
        // These tasks end with the pipes, which close with the program.
        if let Some(out) = child.stdout.take() {
            tasks.spawn(copy(out, name.clone(), Arc::clone(&lines), Arc::clone(&each)));
        }
        if let Some(out) = child.stderr.take() {
            tasks.spawn(copy(out, name.clone(), Arc::clone(&lines), each));
        }
        Ok(Self {
            _leash: child.stdin.take(),
            child,
            lines,
            name,
        })
    }

    /// Resolves when the program has ended; returns its last line of output.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn ended(&mut self) -> String {
        let status = self
            .child
            .wait()
            .await
            .map_or_else(|error| error.to_string(), |status| status.to_string());
        format!("{} ended ({status}): {}", self.name, self.last_line())
    }

    /// The program's last line of output.
    pub(crate) fn last_line(&self) -> String {
        self.lines
            .lock()
            .back()
            .cloned()
            .unwrap_or_else(|| "it said nothing".to_string())
    }
}

async fn copy(
    out: impl AsyncRead + Unpin,
    name: String,
    kept: Arc<Mutex<VecDeque<String>>>,
    each: Arc<dyn Fn(&str) + Send + Sync>,
) {
    let mut lines = BufReader::new(out).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        tracing::debug!(program = name, "{line}");
        each(&line);
        let mut kept = kept.lock();
        if kept.len() == LINES {
            kept.pop_front();
        }
        kept.push_back(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_file_of_a_program_goes_with_it() {
        for ends_by_itself in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("scene.json");
            let script = r#"echo {} >"$1"; echo written; [ "$2" = true ] || exec sleep 60"#;
            let args = [
                "-c",
                script,
                "sh",
                file.to_str().unwrap(),
                &ends_by_itself.to_string(),
            ];
            let tasks = TaskTracker::new();
            let (written, mut is_written) = tokio::sync::mpsc::unbounded_channel();
            let child = Child::start_with_file(&tasks, Path::new("/bin/sh"), &args, &file, move |line| {
                let _ = written.send(line.to_owned());
            });
            let mut child = child.unwrap();
            assert_eq!(is_written.recv().await.as_deref(), Some("written"));
            if ends_by_itself {
                child.ended().await;
            } else {
                assert!(file.exists());
            }
            drop(child);
            // The tasks copy the output, which ends when nothing holds it any more.
            tasks.close();
            let over = tokio::time::timeout(std::time::Duration::from_secs(20), tasks.wait());
            over.await.expect("the program ends with its owner");
            assert!(!file.exists(), "{ends_by_itself}: {} remains", file.display());
        }
    }
}
