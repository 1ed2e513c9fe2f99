//! The files of the record of facts, read: `facts.jsonl` and the rotated ones beside it.
//!
//! Everything here blocks on the disk. What is not a regular file is skipped, because opening or reading a pipe could wait forever.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use client::payload::{FactPosition, LostFacts, ServiceStart};
use logs::rotated;

/// The newest file, below the state folder.
const FILE_NAME: &str = "facts.jsonl";

/// How many rotated files there are beside it.
pub(super) const BACKUPS: u32 = 3;

/// How much of the end of a file is read to find its last number: many lines, because one is much shorter.
const TAIL_BYTES: u64 = 256 << 10;

/// The newest file of the record in this state folder.
pub(super) fn newest(state_dir: &Path) -> PathBuf {
    state_dir.join(FILE_NAME)
}

/// The keys by which a line of the record has its place in it.
#[derive(Deserialize)]
pub(super) struct Head {
    pub(super) start: Option<ServiceStart>,
    pub(super) lost: Option<LostFacts>,
    pub(super) number: Option<u64>,
}

/// The number of the last fact that the record names; 0 if it names none.
pub(super) fn last_number(state_dir: &Path) -> u64 {
    let newest = newest(state_dir);
    let found = (0..=BACKUPS).find_map(|number| last_number_in(&file_of(&newest, number)));
    found.unwrap_or_default()
}

fn last_number_in(path: &Path) -> Option<u64> {
    let mut file = open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))
        .ok()?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail).ok()?;
    let numbers = tail.split(|byte| *byte == b'\n').filter_map(|line| {
        let head: Head = serde_json::from_slice(line).ok()?;
        let before = head.start.map(|start| start.first.saturating_sub(1));
        head.number.or(head.lost.map(|lost| lost.to)).or(before)
    });
    numbers.max()
}

/// Passes on the lines of the record that follow the fact `after`, the oldest first; all of them if the record has nothing of the
/// run of that fact. Ends when `take` returns false.
///
/// # Errors
/// A file cannot be read.
pub(super) fn read_after(
    newest: &Path,
    after: Option<&FactPosition>,
    mut take: impl FnMut(String, Head) -> bool,
) -> io::Result<()> {
    let mut files = Vec::new();
    let mut seen = Vec::new();
    // The newest first: a file that is rotated meanwhile is met twice, and not missed.
    for number in 0..=BACKUPS {
        let Ok(file) = open(&file_of(newest, number)) else {
            continue;
        };
        let identity = file.metadata().map(|of_file| (of_file.dev(), of_file.ino()))?;
        if !seen.contains(&identity) {
            seen.push(identity);
            files.push(file);
        }
    }
    files.reverse();
    let mut from = match after {
        Some(after) if contains_run(&mut files, &after.start)? => Some(after),
        _ => None,
    };
    let mut run = None;
    for file in files {
        let mut lines = BufReader::new(file);
        loop {
            let mut line = String::new();
            // A crash leaves torn lines: bytes that are not UTF-8, and a last line without an end.
            match lines.read_line(&mut line) {
                Ok(0) => break,
                Ok(_) if line.ends_with('\n') => {}
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => continue,
                Err(error) => return Err(error),
            }
            let Ok(head) = serde_json::from_str::<Head>(&line) else {
                continue;
            };
            if let Some(start) = &head.start {
                if run.is_some()
                    && from.is_some_and(|from| run == Some(from.start.clone()) && start.id != from.start)
                {
                    // The run of `after` has ended here. The facts of the next run are others, even where they have the same numbers.
                    from = None;
                }
                run = Some(start.id.clone());
            }
            let is_before = from.is_some_and(|from| {
                let last = head.number.or(head.lost.map(|lost| lost.to));
                run.as_ref() != Some(&from.start) || last.is_some_and(|last| last <= from.number)
            });
            if !is_before && !take(line, head) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Whether one of these files has the beginning of this run of the service. Leaves the files at their beginnings.
fn contains_run(files: &mut [File], run: &str) -> io::Result<bool> {
    let mut found = false;
    for file in files {
        for line in BufReader::new(&mut *file).split(b'\n') {
            let line = line?;
            found = found
                || line.starts_with(br#"{"start""#)
                    && serde_json::from_slice::<Head>(&line)
                        .is_ok_and(|head| head.start.is_some_and(|start| start.id == run));
        }
        file.rewind()?;
    }
    Ok(found)
}

fn open(path: &Path) -> io::Result<File> {
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(file)
}

/// The newest file for 0, else a rotated one.
fn file_of(newest: &Path, number: u32) -> PathBuf {
    match number {
        0 => newest.to_owned(),
        number => rotated(newest, number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes files, the newest first; a number is a fact, `a3` the beginning of the run `a` whose first fact is 3, `-5` the
    /// facts up to 5 that were lost.
    fn record(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (number, lines) in (0..).zip(files) {
            let text = lines.split_whitespace().map(|word| {
                if let Some(to) = word.strip_prefix('-') {
                    format!("{{\"lost\":{{\"from\":{to},\"to\":{to}}}}}\n")
                } else if word.starts_with(|letter: char| letter.is_alphabetic()) {
                    let (id, first) = word.split_at(1);
                    format!("{{\"start\":{{\"id\":\"{id}\",\"first\":{first}}}}}\n")
                } else {
                    format!("{{\"number\":{word},\"at_us\":0,\"fact\":\"x\"}}\n")
                }
            });
            std::fs::write(file_of(&newest(dir.path()), number), text.collect::<String>()).unwrap();
        }
        dir
    }

    fn read(dir: &Path, after: Option<&str>) -> String {
        let after: Option<FactPosition> = after.map(|after| after.parse().unwrap());
        let mut words = Vec::new();
        read_after(&newest(dir), after.as_ref(), |_, head| {
            words.push(match (head.start, head.lost, head.number) {
                (Some(start), ..) => format!("{}{}", start.id, start.first),
                (_, Some(lost), _) => format!("-{}", lost.to),
                (.., number) => number.unwrap().to_string(),
            });
            true
        })
        .unwrap();
        words.join(" ")
    }

    #[test]
    fn the_facts_after_one_are_found_over_files_and_runs() {
        let dir = record(&["b4 6 -7 8", "a1 3 b4 4 5", "a1 1 2"]);
        assert_eq!(last_number(dir.path()), 8);
        for (after, expected) in [
            (None, "a1 1 2 a1 3 b4 4 5 b4 6 -7 8"),
            (Some("other/5"), "a1 1 2 a1 3 b4 4 5 b4 6 -7 8"),
            (Some("a/2"), "a1 a1 3 b4 4 5 b4 6 -7 8"),
            (Some("a/3"), "a1 a1 b4 4 5 b4 6 -7 8"),
            // More facts of that run were known than the record has: those of the next run are others, with the same numbers.
            (Some("a/5"), "a1 a1 b4 4 5 b4 6 -7 8"),
            (Some("b/4"), "b4 5 b4 6 -7 8"),
            (Some("b/8"), "b4 b4"),
        ] {
            let found = read(dir.path(), after);
            let starts: String = expected.split_inclusive(' ').collect();
            assert_eq!(
                found.replace("a1 a1", "a1"),
                starts.replace("a1 a1", "a1"),
                "{after:?}"
            );
        }
    }

    #[test]
    fn a_torn_line_is_passed_over_and_the_last_number_is_found_anywhere() {
        for (files, last) in [
            (&["a1"][..], 0),
            (&["a1 1 2"], 2),
            (&["a1 1 2 -9"], 9),
            (&["", "a1 1 2"], 2),
            (&["b3", "a1 1 2"], 2),
            (&[], 0),
        ] {
            assert_eq!(last_number(record(files).path()), last, "{files:?}");
        }
        let dir = record(&["a1 1 2"]);
        let path = newest(dir.path());
        let whole = std::fs::read_to_string(&path).unwrap();
        let torn = format!("{whole}{{\"number\":3,\"at\n{{\"number\":4,\"at_us\":0}}\n{{\"number\":5");
        std::fs::write(&path, torn).unwrap();
        assert_eq!(read(dir.path(), None), "a1 1 2 4");
        assert_eq!(last_number(dir.path()), 4);
    }
}
