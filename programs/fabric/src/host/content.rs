//! The files that a toolbox returns as content, made part of the answer: a path means nothing on another machine. Read [`carried`].

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ovos_toolbox_wire::Content;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use serde_json::Value;

/// The most bytes of all files of one answer.
const MAX_BYTES: u64 = 8 << 20;

/// The items with the content of their files; `folder` is the toolbox's. An item that cannot be read is left out, and the log says
/// why. Blocks on the disk.
pub(super) fn carried(items: Vec<Value>, folder: &Path) -> Vec<Content> {
    let mut left = MAX_BYTES;
    let items = items.into_iter().take(Content::MAX_ITEMS);
    let carried = items.filter_map(|item| match carry(item, folder, &mut left) {
        Ok(item) => Some(item),
        Err(why) => {
            tracing::warn!(folder = %folder.display(), why, "content is left out");
            None
        }
    });
    carried.collect()
}

fn carry(item: Value, folder: &Path, left: &mut u64) -> Result<Content, String> {
    let mut item: Content = serde_json::from_value(item).map_err(|error| error.to_string())?;
    if let Some(path) = &item.path {
        let bytes = read(folder, path, *left).map_err(|error| format!("{path:?}: {error}"))?;
        *left = left.saturating_sub(bytes.len() as u64);
        item.data = Some(STANDARD.encode(bytes));
    }
    Ok(item)
}

/// Reads a regular file of this user beneath the folder; no link is followed.
fn read(folder: &Path, path: &str, limit: u64) -> std::io::Result<Vec<u8>> {
    let folder = File::open(folder)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let file = openat2(&folder, path, flags, Mode::empty(), resolve)?;
    let found = fstat(&file)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    if found.st_uid != rustix::process::geteuid().as_raw() {
        return Err(std::io::Error::other("it belongs to another user"));
    }
    let mut bytes = Vec::new();
    File::from(file).take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(std::io::Error::other(
            "the files of an answer have 8 MiB together",
        ));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_files_beneath_the_folder_are_carried() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("arm");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("front.png"), b"picture").unwrap();
        std::fs::write(dir.path().join("secret"), b"secret").unwrap();
        std::os::unix::fs::symlink("../secret", folder.join("link")).unwrap();
        let item = |path: &str| json!({ "type": "image", "mime_type": "image/png", "path": path });
        let outside = dir.path().join("secret");
        let items = [
            "front.png",
            "../secret",
            "link",
            "missing",
            ".",
            outside.to_str().unwrap(),
        ];
        let found = carried(items.map(item).to_vec(), &folder);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            found[0].data.as_deref(),
            Some(STANDARD.encode("picture").as_str())
        );
        let text = json!({ "type": "text", "mime_type": "text/plain", "data": "hello" });
        assert_eq!(carried(vec![text], &folder)[0].data.as_deref(), Some("hello"));
    }
}
