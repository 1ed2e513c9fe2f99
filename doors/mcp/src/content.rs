//! Converts the content of an answer into content blocks of the protocol.
//!
//! Any program on the bus can send an answer, so a file is opened only in the folder that this machine's configuration names,
//! and a URI is passed on and never fetched.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ovos_toolbox_wire::{Content, ContentKind, Object};
use rmcp::model::{ContentBlock, Resource, ResourceContents};
use rustix::fs::OFlags;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// How long the result waits for the disk.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many threads may wait for the disk.
const AT_ONCE: usize = 4;

/// The folder in which the service keeps the files of its answers.
pub(crate) struct Folder {
    path: PathBuf,
    /// A thread keeps its permit until the disk responds, even if its caller no longer waits for it.
    disk: Arc<Semaphore>,
}

impl Folder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            disk: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// Returns the blocks of items. If the disk does not respond, items that need it are left out.
    async fn read(&self, content: Vec<Result<Content, String>>) -> Vec<ContentBlock> {
        let (path, content) = (self.path.clone(), Arc::new(content));
        if content.iter().flatten().all(|item| item.path.is_none()) {
            return blocks_of(None, &content);
        }
        let (disk, items) = (self.disk.clone(), content.clone());
        let read = async move {
            let permit = disk.acquire_owned().await;
            let read = tokio::task::spawn_blocking(move || {
                let blocks = blocks_of(Some(&path), &items);
                drop(permit);
                blocks
            });
            read.await
        };
        match timeout(PATIENCE, read).await {
            Ok(Ok(blocks)) => blocks,
            Ok(Err(_)) => vec![left_out("a bug of ovos-tools-mcp; its log says more")],
            Err(_) => blocks_of(None, &content),
        }
    }
}

/// Returns the blocks for the content of an answer, or of the report of a step, in order.
///
/// # Cancel safety
/// Safe: it changes nothing.
pub(crate) async fn blocks(folder: &Folder, answer: &Object) -> Vec<ContentBlock> {
    let list = |key: &str| {
        answer
            .get(key)
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice)
    };
    let content = list("content")
        .iter()
        .take(Content::MAX_ITEMS)
        .map(item)
        .collect();
    let mut blocks = folder.read(content).await;
    let refused = list("content_refused").iter();
    blocks.extend(refused.filter_map(Value::as_str).map(left_out));
    blocks
}

/// Reads one item by itself, so that an item of a newer version does not affect the others.
fn item(given: &Value) -> Result<Content, String> {
    serde_json::from_value(given.clone()).map_err(|error| format!("it cannot be read: {error}"))
}

/// Returns the blocks. Without a folder, no file is read.
fn blocks_of(folder: Option<&Path>, content: &[Result<Content, String>]) -> Vec<ContentBlock> {
    let mut left = Content::MAX_FILES;
    let mut blocks = Vec::new();
    for item in content {
        let mut rest = left;
        let block_or_reason = match item {
            Ok(item) => block(folder, item, &mut rest).map(|block| (item, block)),
            Err(why) => Err(why.clone()),
        };
        match block_or_reason {
            Ok((item, block)) => {
                left = rest;
                // Only a link has a field for its title.
                if let (Some(title), None) = (&item.title, &item.uri) {
                    blocks.push(ContentBlock::text(title.clone()));
                }
                blocks.push(block);
            }
            Err(why) => blocks.push(left_out(&why)),
        }
    }
    blocks
}

fn left_out(why: &str) -> ContentBlock {
    ContentBlock::text(format!("Content is left out: {why}."))
}

fn block(folder: Option<&Path>, item: &Content, left: &mut u64) -> Result<ContentBlock, String> {
    let mime_type = item.mime_type.as_str();
    let (name, bytes) = match (&item.path, &item.data, &item.uri) {
        (Some(path), None, None) => {
            let folder = folder.ok_or("the disk does not respond")?;
            let name = name_in(folder, path)?;
            (name.clone(), read(&folder.join(name), left)?)
        }
        (None, Some(data), None) if item.kind == ContentKind::Text => {
            return Ok(ContentBlock::text(data.clone()));
        }
        (None, Some(data), None) => {
            let bytes = STANDARD
                .decode(data)
                .map_err(|error| format!("its data is not base64: {error}"))?;
            ("data".to_owned(), bytes)
        }
        (None, None, Some(uri)) => {
            let name = item.title.clone().unwrap_or_else(|| uri.clone());
            let mut link = Resource::new(uri.clone(), name).with_mime_type(mime_type);
            link.title.clone_from(&item.title);
            return Ok(ContentBlock::resource_link(link));
        }
        _ => return Err("it needs exactly one of `path`, `data` and `uri`".to_owned()),
    };
    Ok(match item.kind {
        ContentKind::Image => ContentBlock::image(STANDARD.encode(bytes), mime_type),
        ContentKind::Audio => ContentBlock::audio(STANDARD.encode(bytes), mime_type),
        ContentKind::Text => ContentBlock::text(utf8(bytes)?),
        ContentKind::Resource => {
            let uri = format!("ovos-tools://content/{name}");
            let contents = if mime_type.starts_with("text/") {
                ResourceContents::text(utf8(bytes)?, uri)
            } else {
                ResourceContents::blob(STANDARD.encode(bytes), uri)
            };
            ContentBlock::resource(contents.with_mime_type(mime_type))
        }
    })
}

fn utf8(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
}

/// Returns the name of the file, if the file is directly in the folder.
fn name_in(folder: &Path, path: &str) -> Result<String, String> {
    let name = Path::new(path).strip_prefix(folder).ok().and_then(Path::to_str);
    match name {
        Some(name) if !name.is_empty() && name != ".." && !name.contains('/') => Ok(name.to_owned()),
        _ => Err(format!(
            "{path} is not in {}; the service and this door need the same `service.state_dir`",
            folder.display()
        )),
    }
}

fn read(path: &Path, left: &mut u64) -> Result<Vec<u8>, String> {
    let name = path.display();
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(|error| format!("{name} cannot be opened: {error}"))?;
    let about = file.metadata().map_err(|error| format!("{name}: {error}"))?;
    if !about.is_file() {
        return Err(format!("{name} is not a regular file"));
    }
    let Some(rest) = left.checked_sub(about.len()) else {
        return Err(format!(
            "{name} is {} bytes, more than a client is sent",
            about.len()
        ));
    };
    *left = rest;
    let mut bytes = Vec::new();
    match file.take(about.len()).read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(format!("{name} cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(folder: &Path, items: &Value) -> Value {
        let items: Vec<_> = items.as_array().expect("items").iter().map(item).collect();
        serde_json::to_value(blocks_of(Some(folder), &items)).expect("blocks")
    }

    #[test]
    fn each_kind_becomes_the_block_of_its_kind() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).expect("a file");
            path
        };
        let (png, wav, txt, map) = (
            file("a.png", b"\x89PNG"),
            file("b.wav", b"RIFF"),
            file("c.txt", b"hello"),
            file("d.bin", b"\x00\x01"),
        );
        for (item, expected) in [
            (
                json!({"type": "image", "mime_type": "image/png", "path": png, "title": "The front"}),
                json!([{"type": "text", "text": "The front"}, {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}]),
            ),
            (
                json!({"type": "audio", "mime_type": "audio/wav", "path": wav}),
                json!([{"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}]),
            ),
            (
                json!({"type": "text", "mime_type": "text/plain", "path": txt}),
                json!([{"type": "text", "text": "hello"}]),
            ),
            (
                json!({"type": "text", "mime_type": "text/plain", "data": "hello"}),
                json!([{"type": "text", "text": "hello"}]),
            ),
            (
                json!({"type": "resource", "mime_type": "text/csv", "path": txt}),
                json!([{"type": "resource", "resource": {
                    "uri": "ovos-tools://content/c.txt", "mimeType": "text/csv", "text": "hello"}}]),
            ),
            (
                json!({"type": "resource", "mime_type": "application/x-map", "path": map}),
                json!([{"type": "resource", "resource": {
                    "uri": "ovos-tools://content/d.bin", "mimeType": "application/x-map", "blob": "AAE="}}]),
            ),
            (
                json!({"type": "image", "mime_type": "image/png", "uri": "https://example.org/a.png", "title": "Front"}),
                json!([{"type": "resource_link", "uri": "https://example.org/a.png", "name": "Front", "title": "Front",
                    "mimeType": "image/png"}]),
            ),
        ] {
            assert_eq!(shown(folder.path(), &json!([item])), expected, "{item}");
        }
    }

    #[test]
    fn an_item_that_cannot_be_shown_costs_no_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).expect("a file");
            path
        };
        let most = usize::try_from(Content::MAX_FILES).expect("a size");
        let (broken, whole) = (
            file("broken", &vec![0xff; most]),
            file("whole", &vec![b'x'; most]),
        );
        let text = |path: &Path| json!({"type": "text", "mime_type": "text/plain", "path": path});
        let later = json!({"type": "hologram", "mime_type": "model/x"});
        let blocks = shown(folder.path(), &json!([later, text(&broken), 7, text(&whole)]));
        for (number, expected) in [
            (0, "cannot be read"),
            (1, "not UTF-8"),
            (2, "cannot be read"),
            (3, "xxx"),
        ] {
            let text = blocks[number]["text"].as_str().unwrap_or_default();
            assert!(text.contains(expected), "{number}: {text:.200}");
        }
    }

    #[test]
    fn no_file_outside_the_folder_is_opened_whatever_the_answer_says() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("service");
        std::fs::create_dir_all(folder.join("below")).expect("a folder");
        std::fs::write(root.path().join("secret"), "secret").expect("a file");
        std::fs::write(folder.join("below/secret"), "secret").expect("a file");
        std::os::unix::fs::symlink(root.path().join("secret"), folder.join("link")).expect("a link");
        let big = std::fs::File::create(folder.join("big")).expect("a file");
        big.set_len(Content::MAX_FILES + 1).expect("a large file");
        let at = |name: &str| folder.join(name).display().to_string();
        for (path, why) in [
            (root.path().join("secret").display().to_string(), "is not in"),
            ("/etc/hostname".to_owned(), "is not in"),
            ("secret".to_owned(), "is not in"),
            (at("../secret"), "is not in"),
            (at("below/secret"), "is not in"),
            (at(".."), "is not in"),
            (at("link"), "cannot be opened"),
            (at("below"), "not a regular file"),
            (at("missing"), "cannot be opened"),
            (at("big"), "more than a client is sent"),
        ] {
            let item = json!({"type": "text", "mime_type": "text/plain", "path": path});
            let blocks = shown(&folder, &json!([item]));
            let text = blocks[0]["text"].as_str().unwrap_or_default();
            assert!(
                text.starts_with("Content is left out: ") && text.contains(why),
                "{path}: {blocks}"
            );
        }
    }
    #[tokio::test(start_paused = true)]
    async fn what_needs_no_disk_is_shown_while_the_disk_does_not_respond() {
        let folder = Folder::new(PathBuf::from("/nowhere"));
        let _hanging = folder.disk.clone().acquire_many_owned(4).await.expect("permits");
        let file = Content::file(ContentKind::Image, "image/png", "/nowhere/a.png");
        let blocks = folder.read(vec![Ok(file), Ok(Content::text("hello"))]).await;
        assert_eq!(
            serde_json::to_value(blocks).expect("blocks"),
            json!([
                {"type": "text", "text": "Content is left out: the disk does not respond."},
                {"type": "text", "text": "hello"},
            ])
        );
    }
}
