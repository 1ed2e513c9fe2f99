//! The files that came with an answer, put into this toolbox's folder for content. Read [`kept`].

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ovos_toolbox_wire::Content;

/// The items as the service takes them: what was a file on the host is a file here, beneath `folder`. Without a folder nobody asked
/// for content.
pub(super) fn kept(items: Vec<Content>, folder: Option<&str>) -> Vec<Content> {
    let Some(folder) = folder else { return Vec::new() };
    let items = items.into_iter().take(Content::MAX_ITEMS);
    items.filter_map(|item| keep(item, Path::new(folder))).collect()
}

fn keep(mut item: Content, folder: &Path) -> Option<Content> {
    let Some(there) = item.path.take() else {
        return Some(item);
    };
    let bytes = STANDARD.decode(item.data.take()?).ok()?;
    // A name of its own: that on the host says nothing about this folder. The ending is for people who open it.
    let ending = Path::new(&there).extension().and_then(|ending| ending.to_str());
    let ending = ending.filter(|ending| ending.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    let name = format!("{}.{}", uuid::Uuid::now_v7(), ending.unwrap_or("bin"));
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(folder.join(&name))
        .ok()?;
    file.write_all(&bytes).ok()?;
    item.path = Some(name);
    Some(item)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ovos_toolbox_wire::ContentKind;

    #[test]
    fn a_file_of_the_host_becomes_one_here_under_a_name_of_our_own() {
        let dir = tempfile::tempdir().unwrap();
        let item = |path: Option<&str>, data: &str| Content {
            kind: ContentKind::Image,
            mime_type: "image/png".to_owned(),
            path: path.map(str::to_owned),
            data: Some(data.to_owned()),
            uri: None,
            title: None,
        };
        let picture = STANDARD.encode("picture");
        let folder = dir.path().to_str();
        for (path, ending) in [("front.png", ".png"), ("../../x.p/g", ".bin"), ("x", ".bin")] {
            let kept = kept(vec![item(Some(path), &picture)], folder);
            let name = kept[0].path.clone().unwrap();
            assert!(name.ends_with(ending) && !name.contains('/'), "{name}");
            assert_eq!(std::fs::read(dir.path().join(&name)).unwrap(), b"picture");
            assert_eq!(kept[0].data, None);
        }
        assert!(kept(vec![item(Some("a.png"), "no base64!")], folder).is_empty());
        assert_eq!(
            kept(vec![item(None, "aGk=")], folder)[0].data.as_deref(),
            Some("aGk=")
        );
        assert!(kept(vec![item(None, "aGk=")], None).is_empty());
    }
}
