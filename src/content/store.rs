//! The folders of content, and the files that answers carry. Read [`Store::gather`].

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ovos_toolbox_wire::{Content, ContentKind};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use serde_json::Value;
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;

use super::check::{self, Item, Source};
use super::sweep::{OWN, sweep};
use client::payload::ContentMode;

/// The most bytes of content in the answer itself, decoded and added up. The limit applies also to what a toolbox returns as
/// `data`.
const MAX_INLINE: u64 = 4 << 20;

/// How long an answer waits for the disk.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often files whose time is over are removed.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// How many threads may wait for the disk.
const AT_ONCE: usize = 4;

/// The content of an answer.
#[derive(Debug, Default)]
pub(crate) struct GatheredContent {
    pub(crate) content: Vec<Content>,
    /// Why items were left out.
    pub(crate) refused: Vec<String>,
}

/// The content folder of the service: one folder for each toolbox, by its id, and one for answers.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    root: PathBuf,
    /// A thread keeps its permit until the disk responds, even if its caller no longer waits for it.
    disk: Arc<Semaphore>,
    /// Notified when an answer with content has been sent.
    answered: Arc<Notify>,
}

impl Store {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self {
            root,
            disk: Arc::new(Semaphore::new(AT_ONCE)),
            answered: Arc::default(),
        }
    }

    /// Checks the items that a toolbox returned and makes them the content of an answer. `room` is the number of bytes of JSON
    /// that the answer has room for.
    ///
    /// # Cancel safety
    /// Files that were copied stay until they are swept.
    pub(crate) async fn gather(
        &self,
        toolbox_id: &str,
        items: Vec<Value>,
        mode: ContentMode,
        room: usize,
    ) -> GatheredContent {
        let items: Arc<[Value]> = items.into();
        let gathered = if items.iter().any(|item| needs_disk(item, mode)) {
            let (store, id, all) = (self.clone(), toolbox_id.to_owned(), items.clone());
            let work = self.on_disk(move || store.gather_now(&id, &all, mode, room, true));
            match timeout(PATIENCE, work).await {
                Ok(Some(gathered)) => gathered,
                Ok(None) => GatheredContent {
                    content: Vec::new(),
                    refused: vec!["bug in the service; its log says more".to_owned()],
                },
                Err(_) => self.gather_now(toolbox_id, &items, mode, room, false),
            }
        } else {
            self.gather_now(toolbox_id, &items, mode, room, false)
        };
        for refused in &gathered.refused {
            tracing::warn!(toolbox = toolbox_id, "content is left out: {refused}");
        }
        gathered
    }

    /// Runs `work` on a thread of its own as soon as fewer than `AT_ONCE` such threads wait for the disk. `None` if `work`
    /// panics, which is a bug.
    ///
    /// # Cancel safety
    /// Work that has begun goes on.
    async fn on_disk<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let permit = self.disk.clone().acquire_owned().await.ok()?;
        let work = move || {
            let done = work();
            drop(permit);
            done
        };
        tokio::task::spawn_blocking(work).await.ok()
    }

    /// Gathers the content at once. Without `disk`, items that need the disk are refused.
    fn gather_now(
        &self,
        toolbox_id: &str,
        items: &[Value],
        mode: ContentMode,
        room: usize,
        disk: bool,
    ) -> GatheredContent {
        let mut budget = Budget {
            total: match mode {
                ContentMode::Path => Content::MAX_FILES,
                ContentMode::Inline => MAX_INLINE,
            },
            data: MAX_INLINE,
            room,
        };
        let mut gathered = GatheredContent::default();
        for (number, item) in (1..).zip(items).take(Content::MAX_ITEMS) {
            let checked = match check::item(item) {
                Ok(_) if !disk && needs_disk(item, mode) => {
                    Err("the disk does not respond (service.state_dir)".to_owned())
                }
                checked => checked,
            };
            let mut left = budget;
            let taken = checked
                .and_then(|item| self.take(toolbox_id, item, mode, &mut left))
                .and_then(|content| left.take_room(content));
            match taken {
                Ok(content) => {
                    budget = left;
                    gathered.content.push(content);
                }
                Err(reason) => gathered
                    .refused
                    .push(format!("{}: {reason}", check::name(number, item))),
            }
        }
        if items.len() > Content::MAX_ITEMS {
            let more = format!(
                "the items from number {} on: an answer has at most {} items, and the tool returned {}",
                Content::MAX_ITEMS + 1,
                Content::MAX_ITEMS,
                items.len()
            );
            gathered.refused.push(more);
        }
        gathered
    }

    fn take(
        &self,
        toolbox_id: &str,
        item: Item,
        mode: ContentMode,
        budget: &mut Budget,
    ) -> Result<Content, String> {
        let Item {
            kind,
            mime_type,
            title,
            source,
        } = item;
        let mut content = Content {
            kind,
            mime_type,
            path: None,
            data: None,
            uri: None,
            title,
        };
        let bytes = match source {
            Source::Uri(uri) => {
                content.uri = Some(uri);
                return Ok(content);
            }
            Source::File(name) => {
                let (file, size) = open(&self.root.join(toolbox_id), &name)?;
                budget.take_file(size)?;
                read(file, size)?
            }
            Source::Data(data) => {
                budget.take_data(decoded_size(kind, &data))?;
                decode(kind, data)?
            }
        };
        if kind == ContentKind::Text && std::str::from_utf8(&bytes).is_err() {
            return Err("it is not UTF-8 text".to_owned());
        }
        match mode {
            ContentMode::Path => {
                let path = self.keep(toolbox_id, &content.mime_type, &bytes)?;
                content.path = Some(path);
            }
            ContentMode::Inline => content.data = Some(encode(kind, bytes)),
        }
        Ok(content)
    }

    /// Writes a file that no toolbox with a confinement can change.
    fn keep(&self, toolbox_id: &str, mime_type: &str, bytes: &[u8]) -> Result<String, String> {
        let folder = self.root.join(OWN);
        let name = format!("{toolbox_id}-{}.{}", uuid::Uuid::now_v7(), extension(mime_type));
        let path = folder.join(name);
        let written = || -> io::Result<()> {
            if !self.root.join(Content::FOLDER_MARK).is_file() {
                return Err(io::Error::other(
                    "ovos-tools did not make the folder (service.state_dir)",
                ));
            }
            DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)?;
            file.write_all(bytes)
        };
        if let Err(error) = written() {
            _ = std::fs::remove_file(&path);
            return Err(format!("it cannot be copied to {}: {error}", path.display()));
        }
        match path.into_os_string().into_string() {
            Ok(path) => Ok(path),
            Err(_) => Err("the path of the state folder is not UTF-8 (service.state_dir)".to_owned()),
        }
    }

    /// Notes that an answer with this content has been sent.
    pub(crate) fn answered(&self, content: &[Content]) {
        if !content.is_empty() {
            self.answered.notify_one();
        }
    }

    /// Removes files whose time is over: now, after each answer with content, and from time to time. Never ends.
    ///
    /// # Cancel safety
    /// A sweep that has begun goes on.
    pub(crate) async fn keep_swept(&self) {
        loop {
            let root = self.root.clone();
            // A sweep that panics is a bug; the next one is still attempted.
            _ = self.on_disk(move || sweep(&root)).await;
            // Waits for the earlier of the two.
            _ = timeout(SWEEP_EVERY, self.answered.notified()).await;
        }
    }
}

/// Whether an item is read from a file, or written to one.
fn needs_disk(given: &Value, mode: ContentMode) -> bool {
    let has = |key| given.get(key).is_some_and(|value| !value.is_null());
    has("path") || (has("data") && mode == ContentMode::Path)
}

/// What is left of an answer's limits, in bytes.
#[derive(Clone, Copy)]
struct Budget {
    total: u64,
    data: u64,
    /// In bytes of JSON.
    room: usize,
}

impl Budget {
    fn take_file(&mut self, size: u64) -> Result<(), String> {
        match self.total.checked_sub(size) {
            Some(left) => self.total = left,
            None => {
                return Err(format!(
                    "it is {size} bytes, and only {} more fit into the answer",
                    self.total
                ));
            }
        }
        Ok(())
    }

    fn take_room(&mut self, content: Content) -> Result<Content, String> {
        let size = serde_json::to_vec(&content).map_or(usize::MAX, |json| json.len());
        match self.room.checked_sub(size) {
            Some(left) => {
                self.room = left;
                Ok(content)
            }
            None => Err(
                "the bus takes no answer as long as this (websocket.max_msg_size); ask for \"path\""
                    .to_owned(),
            ),
        }
    }

    fn take_data(&mut self, size: u64) -> Result<(), String> {
        match self.data.checked_sub(size) {
            Some(left) => {
                self.take_file(size)?;
                self.data = left;
                Ok(())
            }
            None => Err(format!(
                "it is {size} bytes of data, and only {} more fit into the answer; return a file as `path`",
                self.data
            )),
        }
    }
}

/// Opens a file in a folder without following a link. Returns its size, too.
fn open(folder: &Path, name: &str) -> Result<(File, u64), String> {
    let failed = |error: rustix::io::Errno| match error {
        rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR => "it is a link".to_owned(),
        rustix::io::Errno::NOENT => "there is no such file in the toolbox's content folder".to_owned(),
        other => format!("it cannot be opened: {}", io::Error::from(other)),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(CWD, folder, flags, Mode::empty()).map_err(failed)?;
    // Without NONBLOCK the open of a pipe waits for its other end.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(&folder, name, flags, Mode::empty()).map_err(failed)?;
    let stat = fstat(&file).map_err(failed)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err("it is not a regular file".to_owned());
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err("it belongs to another user".to_owned());
    }
    if stat.st_nlink > 1 {
        return Err("it has another name (a hard link)".to_owned());
    }
    Ok((file.into(), u64::try_from(stat.st_size).unwrap_or(u64::MAX)))
}

/// Reads no more than the size that was checked: the toolbox may go on writing.
fn read(file: File, size: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    match file.take(size).read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(format!("it cannot be read: {error}")),
    }
}

/// Returns an upper bound of the size, which needs no decoding.
fn decoded_size(kind: ContentKind, data: &str) -> u64 {
    match kind {
        ContentKind::Text => data.len() as u64,
        _ => (data.trim_end_matches('=').len() as u64) * 3 / 4,
    }
}

fn decode(kind: ContentKind, data: String) -> Result<Vec<u8>, String> {
    match kind {
        ContentKind::Text => Ok(data.into_bytes()),
        _ => STANDARD
            .decode(data)
            .map_err(|error| format!("its data is not base64: {error}")),
    }
}

fn encode(kind: ContentKind, bytes: Vec<u8>) -> String {
    match kind {
        // The bytes were checked to be UTF-8.
        ContentKind::Text => String::from_utf8(bytes).unwrap_or_default(),
        _ => STANDARD.encode(bytes),
    }
}

/// Returns the extension of a file of a media type, so that a viewer recognises it.
fn extension(mime_type: &str) -> &'static str {
    match mime_type.split(';').next().unwrap_or_default() {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/webp" => "webp",
        "image/gif" => "gif",
        "image/svg+xml" => "svg",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/mpeg" => "mp3",
        "audio/ogg" => "ogg",
        "audio/flac" => "flac",
        "text/plain" => "txt",
        "text/html" => "html",
        "text/csv" => "csv",
        "text/markdown" => "md",
        "application/json" => "json",
        "application/pdf" => "pdf",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn an_inline_answer_takes_what_fits_beside_its_result() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::new(root.path().to_owned());
        let text = |size: usize| json!({"type": "text", "mime_type": "text/plain", "data": "x".repeat(size)});
        for (room, sizes, expected) in [
            (4000, [1000, 1000], 2),
            (4000, [3900, 100], 1),
            (2000, [1000, 1000], 1),
            (0, [1, 1], 0),
        ] {
            let items = sizes.map(text);
            let gathered = store.gather("t", items.to_vec(), ContentMode::Inline, room).await;
            assert_eq!(gathered.content.len(), expected, "{room} {sizes:?}");
            assert_eq!(gathered.refused.len(), 2 - expected, "{room} {sizes:?}");
        }
        let many = vec![text(1); 1000];
        let gathered = store.gather("t", many, ContentMode::Inline, 4000).await;
        assert_eq!(
            (gathered.content.len(), gathered.refused.len()),
            (Content::MAX_ITEMS, 1)
        );
    }
    #[tokio::test(start_paused = true)]
    async fn what_needs_no_disk_is_returned_while_the_disk_does_not_respond() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join(Content::FOLDER_MARK), "").unwrap();
        let store = Store::new(root.path().to_owned());
        let item = |key: &str, value: &str| json!({"type": "text", "mime_type": "text/plain", key: value});
        let (path, data, uri) = (
            item("path", "a.txt"),
            item("data", "hello"),
            item("uri", "https://example.org/a.txt"),
        );
        let items = vec![path, data.clone(), uri.clone()];
        let hanging = store.disk.clone().acquire_many_owned(4).await.unwrap();
        for (mode, expected) in [(ContentMode::Path, 1), (ContentMode::Inline, 2)] {
            let gathered = store.gather("t", items.clone(), mode, 4000).await;
            assert_eq!(gathered.content.len(), expected, "{gathered:?}");
            assert_eq!(gathered.refused.len(), 3 - expected, "{gathered:?}");
            let why = gathered
                .refused
                .iter()
                .all(|why| why.contains("the disk does not respond"));
            assert!(why, "{gathered:?}");
        }
        let gathered = store.gather("t", vec![uri], ContentMode::Path, 4000).await;
        assert_eq!(gathered.content.len(), 1, "{gathered:?}");
        drop(hanging);
        let gathered = store.gather("t", vec![data], ContentMode::Path, 4000).await;
        assert_eq!(gathered.content.len(), 1, "{gathered:?}");
    }
}
