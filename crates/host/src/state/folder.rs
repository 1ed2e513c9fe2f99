//! The state that outlives the service: which toolboxes are in emergency stop, and which move at the moment.
//!
//! There are two small JSON files. One that cannot be read is never treated as empty: it causes a stop of everything,
//! and a copy of it is kept until that stop is lifted. Everything here blocks on the disk; [`StateWriter`](super::StateWriter)
//! runs it on its own thread. Read [`StateFolder::read`].

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::writer::Store;
use crate::process::descriptors;
use engine::StopRecord;

/// Which toolboxes are in emergency stop. Replaced by write and rename, and synced to the disk before success is
/// reported.
const LATCHES: &str = "latches.json";

/// Which toolboxes move. Written in place before motion starts and after it has come to rest. Not synced to the disk:
/// it covers a killed service, not a power cut.
const MOVING: &str = "moving.json";

/// The key that stands for every toolbox in the file of the latches.
const EVERYTHING: &str = "all";

/// The state folder.
#[derive(Debug)]
pub struct StateFolder {
    folder: PathBuf,
    /// Files that could not be read and have not been replaced yet.
    unreadable: Vec<&'static str>,
    moving: Option<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    /// The longest content so far, in bytes: shorter content is padded to it, so that one write replaces all of it.
    longest: usize,
}

#[derive(Serialize, Deserialize)]
struct Record {
    stop_id: String,
    reason: String,
}

impl StateFolder {
    /// Returns the folder and the stops that are in force from the start: those in force when the last service ended,
    /// one for each toolbox that moved then, and one of everything if a file or the folder cannot be read. Changes no
    /// file.
    pub fn read(folder: &Path) -> (Self, HashMap<String, StopRecord>) {
        let mut this = Self {
            folder: folder.to_owned(),
            unreadable: Vec::new(),
            moving: None,
        };
        let mut trouble = Vec::new();
        let records: BTreeMap<String, Record> = this.read_file(LATCHES, &mut trouble);
        let moving: Vec<String> = this.read_file(MOVING, &mut trouble);
        let record = |(id, Record { stop_id, reason })| (id, StopRecord { stop_id, reason });
        let mut latched: HashMap<_, _> = records.into_iter().map(record).collect();
        for toolbox_id in moving {
            let stop = || StopRecord::new("the service ended while it moved something");
            latched.entry(toolbox_id).or_insert_with(stop);
        }
        if !trouble.is_empty() {
            let reason = format!(
                "cannot tell what was in emergency stop or moving when the service last ended ({}); check every machine, then resume `all`",
                trouble.join("; ")
            );
            tracing::error!("{reason}");
            latched
                .entry(EVERYTHING.to_owned())
                .or_insert_with(|| StopRecord::new(&reason));
        }
        (this, latched)
    }

    /// Returns the content of a file, or the default if there is no file or it cannot be read. An unreadable file is
    /// added to `trouble`.
    fn read_file<T: DeserializeOwned + Default>(
        &mut self,
        name: &'static str,
        trouble: &mut Vec<String>,
    ) -> T {
        let path = self.folder.join(name);
        read_json(&path)
            .or_else(|error| {
                let missing = error.kind() == ErrorKind::NotFound;
                if missing && is_readable(&self.folder) {
                    return Ok(T::default());
                }
                Err(error)
            })
            .unwrap_or_else(|error| {
                self.unreadable.push(name);
                trouble.push(format!("{}: {error}", path.display()));
                T::default()
            })
    }

    /// Keeps a second name or a copy of a file that could not be read, so that replacing the file does not lose it.
    fn set_aside(&self, name: &str) -> io::Result<()> {
        if !self.unreadable.contains(&name) {
            return Ok(());
        }
        let (path, aside) = (self.folder.join(name), self.aside(name));
        remove(&aside)?;
        match fs::hard_link(&path, &aside) {
            Err(error) if error.kind() != ErrorKind::NotFound => fs::copy(&path, &aside).map(drop),
            _ => Ok(()),
        }
    }

    fn aside(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.broken"))
    }

    /// Replaces a file; it is synced to the disk when this returns.
    fn replace(&mut self, name: &'static str, text: &str) -> io::Result<()> {
        // A stop that is not on record is lifted by a restart.
        let _spare = descriptors::spare();
        fs::create_dir_all(&self.folder)?;
        self.set_aside(name)?;
        let fresh = self.folder.join(format!("{name}.new"));
        let mut file = File::create(&fresh)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, self.folder.join(name))?;
        self.unreadable.retain(|unreadable| *unreadable != name);
        // The rename is durable only after the folder is synced.
        File::open(&self.folder)?.sync_all()
    }
}

impl Store for StateFolder {
    fn latches(&mut self, latched: &BTreeMap<String, StopRecord>) -> io::Result<()> {
        let record = |(id, stop): (&String, &StopRecord)| {
            let StopRecord { stop_id, reason } = stop.clone();
            (id.clone(), Record { stop_id, reason })
        };
        let records: BTreeMap<String, Record> = latched.iter().map(record).collect();
        self.replace(LATCHES, &serde_json::to_string_pretty(&records)?)?;
        if !latched.contains_key(EVERYTHING) {
            for name in [LATCHES, MOVING] {
                let aside = self.aside(name);
                if let Err(error) = remove(&aside) {
                    tracing::warn!(path = %aside.display(), %error, "cannot remove the broken file");
                }
            }
        }
        Ok(())
    }

    fn moving(&mut self, moving: &[String]) -> io::Result<()> {
        let text = serde_json::to_string(moving)?;
        if let Some(Open { file, longest }) = &mut self.moving {
            *longest = text.len().max(*longest);
            let wrote = file.write_all_at(format!("{text:<longest$}").as_bytes(), 0);
            return wrote.inspect_err(|_| self.moving = None);
        }
        self.replace(MOVING, &text)?;
        self.moving = Some(Open {
            file: File::options().write(true).open(self.folder.join(MOVING))?,
            longest: text.len(),
        });
        Ok(())
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    // Reading anything else, such as a pipe, could block the start of the service.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let text = fs::read_to_string(path)?;
    Ok(serde_json::from_str(text.trim())?)
}

/// Whether the folder can be listed, so that a missing file is known to be absent. Creates a missing folder.
fn is_readable(folder: &Path) -> bool {
    fs::create_dir_all(folder)
        .and_then(|()| fs::read_dir(folder))
        .is_ok()
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop(id: &str) -> StopRecord {
        StopRecord {
            stop_id: id.into(),
            reason: "a test".into(),
        }
    }

    fn ids(latched: &HashMap<String, StopRecord>) -> Vec<&str> {
        let mut ids: Vec<_> = latched.keys().map(String::as_str).collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn a_restarted_service_knows_the_latches_and_the_toolboxes_that_moved() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let (mut folder, latched) = StateFolder::read(&path);
        assert_eq!(latched, HashMap::new(), "a folder that is not there yet");
        folder
            .latches(&BTreeMap::from([("arm".into(), stop("stop-1"))]))
            .unwrap();
        for moving in [&["arm", "a_long_name"][..], &["base"], &[], &["arm", "base"]] {
            let moving: Vec<_> = moving.iter().map(ToString::to_string).collect();
            folder.moving(&moving).unwrap();
            let (_, latched) = StateFolder::read(&path);
            let mut expected = [vec!["arm".to_owned()], moving].concat();
            expected.sort();
            expected.dedup();
            assert_eq!(ids(&latched), expected);
            assert_eq!(latched["arm"], stop("stop-1"), "the stop that holds it already");
        }
    }

    #[test]
    fn an_unreadable_state_file_holds_everything_and_is_kept_until_that_stop_is_lifted() {
        type Break = fn(&Path);
        let rows: [(&str, Break); 6] = [
            (LATCHES, |path| fs::write(path, r#"{ "arm": "#).unwrap()),
            (LATCHES, |path| fs::write(path, "").unwrap()),
            (LATCHES, |path| fs::write(path, [0xff, 0xfe]).unwrap()),
            (MOVING, |path| fs::write(path, r#"["ar"#).unwrap()),
            (MOVING, |path| fs::write(path, "").unwrap()),
            (MOVING, |path| fs::write(path, vec![0; 64]).unwrap()),
        ];
        for (name, break_it) in rows {
            let dir = tempfile::tempdir().unwrap();
            let (mut folder, _) = StateFolder::read(dir.path());
            folder
                .latches(&BTreeMap::from([("leg".into(), stop("stop-1"))]))
                .unwrap();
            folder.moving(&[]).unwrap();
            let path = dir.path().join(name);
            break_it(&path);
            let broken = fs::read(&path).ok();
            // Until something is written, every start finds the broken file again.
            let _ = StateFolder::read(dir.path());
            let (mut folder, latched) = StateFolder::read(dir.path());
            let all = latched
                .get("all")
                .unwrap_or_else(|| panic!("{name}: {latched:?}"));
            assert!(all.reason.contains(name), "{}", all.reason);
            assert_eq!(fs::read(&path).ok(), broken, "it was only read");
            // After the first write the next start finds the stop itself.
            let latched: BTreeMap<_, _> = latched.into_iter().collect();
            folder.latches(&latched).unwrap();
            folder.moving(&[]).unwrap();
            let aside = dir.path().join(format!("{name}.broken"));
            assert!(fs::symlink_metadata(&aside).is_ok(), "{name} is gone");
            assert_eq!(fs::read(&aside).ok(), broken);
            let (mut folder, again) = StateFolder::read(dir.path());
            assert_eq!(again.into_iter().collect::<BTreeMap<_, _>>(), latched);
            folder.latches(&latched).unwrap();
            assert!(fs::symlink_metadata(&aside).is_ok(), "{name}: not lifted yet");
            folder.latches(&BTreeMap::new()).unwrap();
            assert!(fs::symlink_metadata(&aside).is_err(), "{name}: lifted");
            assert_eq!(StateFolder::read(dir.path()).1, HashMap::new());
        }
    }

    #[test]
    fn a_folder_that_cannot_be_looked_into_holds_everything() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        fs::write(&path, "a file").unwrap();
        let (mut folder, latched) = StateFolder::read(&path);
        assert_eq!(ids(&latched), ["all"]);
        assert!(folder.latches(&latched.into_iter().collect()).is_err());
        assert!(folder.moving(&[]).is_err());
    }
}
