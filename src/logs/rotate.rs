//! A log file that is put aside when it has grown to a size: `name.log`, `name.log.1` (the newest put aside),
//! `name.log.2`, ... as Python's `RotatingFileHandler` names them.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// See the module.
#[derive(Debug)]
pub struct RotatingFile {
    path: PathBuf,
    file: File,
    size: u64,
    max_bytes: u64,
    backups: u32,
    /// The permissions of a new file, before the umask.
    mode: u32,
}

impl RotatingFile {
    /// Opens `path` for appending. It is put aside before a write that would take it past `max_bytes` (0: never),
    /// and `backups` of those are kept (0: it is never put aside and grows).
    ///
    /// # Errors
    /// When the file cannot be opened for writing.
    pub fn open(path: &Path, max_bytes: u64, backups: u32) -> io::Result<Self> {
        Self::with_mode(path, max_bytes, backups, 0o666)
    }

    /// As [`open`](Self::open), for a file that its owner alone may read.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn private(path: &Path, max_bytes: u64, backups: u32) -> io::Result<Self> {
        Self::with_mode(path, max_bytes, backups, 0o600)
    }

    fn with_mode(path: &Path, max_bytes: u64, backups: u32, mode: u32) -> io::Result<Self> {
        let file = append(path, mode)?;
        let size = file.metadata()?.len();
        Ok(Self {
            path: path.to_owned(),
            file,
            size,
            max_bytes,
            backups,
            mode,
        })
    }

    fn rotate(&mut self) -> io::Result<()> {
        for number in (1..self.backups).rev() {
            rename(&self.numbered(number), &self.numbered(number + 1))?;
        }
        rename(&self.path, &self.numbered(1))?;
        self.file = append(&self.path, self.mode)?;
        self.size = 0;
        Ok(())
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut name = OsString::from(&self.path);
        name.push(format!(".{number}"));
        PathBuf::from(name)
    }
}

fn append(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(mode).open(path)
}

/// Renames, where a file that is not there is as good as renamed.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

impl Write for RotatingFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let grown = self.size.saturating_add(line.len() as u64);
        if self.max_bytes > 0 && self.backups > 0 && self.size > 0 && grown > self.max_bytes {
            // A folder that no longer lets files be renamed must not cost the line: go on in the file there is, and
            // count from here, so that not every line tries again.
            if self.rotate().is_err() {
                self.size = 0;
            }
        }
        let written = self.file.write(line)?;
        self.size = self.size.saturating_add(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
