//! What a service that is killed leaves behind about motion: which toolboxes moved at that moment.
//!
//! One small file, written in place before something starts to move and after it came to rest. It outlives the service's
//! process, not a power cut: that ends the machine's motion by itself. Read [`MovingFile`].

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::engine::MotionWatch;

/// The file, below the state directory.
const FILE: &str = "moving.json";

/// Remembers which toolboxes move.
#[derive(Debug)]
pub(super) struct MovingFile {
    path: PathBuf,
    open: Mutex<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    file: File,
    /// The longest line so far: shorter ones are filled up to it, so that one write replaces all of it.
    longest: usize,
}

impl MovingFile {
    pub(super) fn new(state_dir: &Path) -> Self {
        Self {
            path: state_dir.join(FILE),
            open: Mutex::default(),
        }
    }

    /// The toolboxes that moved when the service last ended without being asked to. A file that says nothing (half a line,
    /// after a power cut) names none.
    pub(super) fn left_behind(&self) -> Vec<String> {
        let mut text = String::new();
        let read = File::open(&self.path).and_then(|mut file| file.read_to_string(&mut text));
        if read.is_err() {
            return Vec::new();
        }
        serde_json::from_str(text.trim()).unwrap_or_default()
    }

    fn write(&self, moving: &[&str]) -> std::io::Result<()> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Open { file, longest } = match &mut *open {
            Some(open) => open,
            closed => {
                if let Some(folder) = self.path.parent() {
                    std::fs::create_dir_all(folder)?;
                }
                // Not truncated: until the first write it says what was left behind.
                let file = File::options()
                    .create(true)
                    .truncate(false)
                    .write(true)
                    .open(&self.path)?;
                let longest = usize::try_from(file.metadata()?.len()).unwrap_or(0);
                closed.insert(Open { file, longest })
            }
        };
        let text = serde_json::to_string(moving)?;
        *longest = text.len().max(*longest);
        file.seek(SeekFrom::Start(0))?;
        file.write_all(format!("{text:<longest$}").as_bytes())
    }
}

impl MotionWatch for MovingFile {
    fn changed(&self, moving: &[&str]) {
        if let Err(error) = self.write(moving) {
            tracing::error!(
                path = %self.path.display(), %error,
                "cannot remember what moves: were the service killed now, it would come back without a latch"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_service_reads_what_moved_last() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let left = |expected: &[&str]| assert_eq!(MovingFile::new(&state).left_behind(), expected);
        left(&[]);
        let file = MovingFile::new(&state);
        for moving in [&["arm", "a_long_name"][..], &["arm"], &[], &["base"]] {
            file.changed(moving);
            left(moving);
        }
        let next = MovingFile::new(&state);
        next.changed(&[]);
        left(&[]);
        std::fs::write(state.join(FILE), "[\"ar").unwrap();
        left(&[]);
    }
}
