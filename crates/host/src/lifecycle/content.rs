//! The folders for the files that toolboxes return as content.
//!
//! Files in them are removed, so the service makes them itself and marks the folder that holds them. Blocks.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

use ovos_toolbox_wire::Content;

/// Makes the folder of one toolbox.
///
/// # Errors
/// The folder that is to hold it was not made by the service, or a folder cannot be made.
pub(crate) fn private_folder(root: &Path, id: &str) -> Result<()> {
    own(root)?;
    let path = root.join(id);
    DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
    // An existing folder may be open to other users.
    std::fs::set_permissions(path, Permissions::from_mode(0o700))
}

/// Makes the folder that holds the folders of the toolboxes, unless the service has made it already.
fn own(root: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(root)?;
    // Read before the mark is looked for: another process that makes the folder now puts the mark into it before
    // anything else.
    let is_empty = std::fs::read_dir(root)?.next().is_none();
    let mark = root.join(Content::FOLDER_MARK);
    if mark.is_file() {
        return Ok(());
    }
    if !is_empty {
        let root = root.display();
        return Err(Error::new(
            ErrorKind::AlreadyExists,
            format!(
                "{root} was not created by ovos-tools and is not empty; move it away, or set `service.state_dir` to a folder \
                 that only this service uses"
            ),
        ));
    }
    match File::create_new(mark) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_the_service_did_not_make_stays_as_it_is() {
        let site = tempfile::tempdir().unwrap();
        let (ours, theirs) = (site.path().join("ours"), site.path().join("content"));
        std::fs::create_dir_all(theirs.join("posts")).unwrap();
        std::fs::set_permissions(theirs.join("posts"), Permissions::from_mode(0o755)).unwrap();
        for _ in 0..2 {
            private_folder(&ours, "posts").unwrap();
            let refused = private_folder(&theirs, "posts").unwrap_err().to_string();
            assert!(refused.contains("service.state_dir"), "{refused}");
        }
        assert!(ours.join("posts").is_dir() && ours.join(Content::FOLDER_MARK).is_file());
        let mode = std::fs::metadata(theirs.join("posts"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o755);
        assert!(!theirs.join(Content::FOLDER_MARK).exists());
    }
}
