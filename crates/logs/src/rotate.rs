//! A log file that is rotated when it reaches a size: `name.log`, `name.log.1` (the newest rotated file),
//! `name.log.2`, ..., the names of Python's `RotatingFileHandler`.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// An append-only log file that is rotated at a size limit.
#[derive(Debug)]
pub struct RotatingFile {
    path: PathBuf,
    file: File,
    size: u64,
    max_bytes: u64,
    backups: u32,
    /// The mode of a new file, before the umask.
    mode: u32,
    /// The first line of a new file.
    head: Vec<u8>,
}

impl RotatingFile {
    /// Opens `path` for appending. The file is rotated before a write that would exceed `max_bytes` (0: never), and
    /// `backups` rotated files are kept (0: the file is never rotated and grows).
    ///
    /// # Errors
    /// The file cannot be opened for writing.
    pub fn open(path: &Path, max_bytes: u64, backups: u32) -> io::Result<Self> {
        Self::with_mode(path, max_bytes, backups, 0o666, Vec::new())
    }

    /// As [`open`](Self::open), but a new file can be read and written only by its owner (mode 0600). The line `head` is written
    /// now, and at the beginning of each further file. An incomplete last line of an earlier process is ended before.
    ///
    /// # Errors
    /// As [`open`](Self::open), and if the line cannot be written.
    pub fn private(path: &Path, max_bytes: u64, backups: u32, head: Vec<u8>) -> io::Result<Self> {
        let torn = ends_within_a_line(path);
        let mut file = Self::with_mode(path, max_bytes, backups, 0o600, head)?;
        if torn {
            file.write_all(b"\n")?;
        }
        let head = file.head.clone();
        file.write_all(&head)?;
        Ok(file)
    }

    fn with_mode(path: &Path, max_bytes: u64, backups: u32, mode: u32, head: Vec<u8>) -> io::Result<Self> {
        let file = append(path, mode)?;
        let size = file.metadata()?.len();
        Ok(Self {
            path: path.to_owned(),
            file,
            size,
            max_bytes,
            backups,
            mode,
            head,
        })
    }

    fn rotate(&mut self) -> io::Result<()> {
        for number in (1..self.backups).rev() {
            rename(&rotated(&self.path, number), &rotated(&self.path, number + 1))?;
        }
        rename(&self.path, &rotated(&self.path, 1))?;
        self.file = append(&self.path, self.mode)?;
        self.size = self.head.len() as u64;
        self.file.write_all(&self.head)
    }
}

/// The rotated file of this number beside a log file; 1 is the newest.
#[must_use]
pub fn rotated(path: &Path, number: u32) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// Whether a file ends without the end of a line.
fn ends_within_a_line(path: &Path) -> bool {
    if !fs::metadata(path).is_ok_and(|of_file| of_file.is_file()) {
        return false;
    }
    let mut last = [b'\n'];
    let read = File::open(path).and_then(|mut file| {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)
    });
    read.is_ok() && last != [b'\n']
}

fn append(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(mode).open(path)
}

/// Renames a file; a missing file is not an error.
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
            // If the folder no longer allows renames, the line must not be lost: continue in the present file, and
            // restart the count so that not every line tries to rotate again.
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
