//! What the checkout links to is in the checkout.

use std::path::{Component, Path};
use std::process::Command;

/// A link to an environment of Python or to a build folder works on the machine that made it, and nowhere else.
#[test]
fn no_committed_link_leads_out_of_the_repository() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new("git")
        .args(["ls-files", "--stage", "-z"])
        .current_dir(root)
        .output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        return skip::skip("git", "this is not a checkout");
    };
    let list = String::from_utf8(output.stdout).unwrap();
    let links: Vec<&str> = list
        .split_terminator('\0')
        .filter(|entry| entry.starts_with("120000 "))
        .map(|entry| entry.split_once('\t').unwrap().1)
        .collect();
    assert!(!links.is_empty(), "the licence of a crate is a link");
    for link in links {
        let target = std::fs::read_link(root.join(link)).unwrap();
        let is_inside = stays_inside(Path::new(link).parent().unwrap(), &target);
        assert!(
            is_inside,
            "{link} leads out of the repository, to {}",
            target.display()
        );
        let committed = root.join(link).canonicalize();
        assert!(committed.is_ok(), "{link} leads nowhere: {}", target.display());
    }
}

#[test]
fn a_link_that_climbs_too_far_or_starts_at_the_root_leads_out() {
    for (folder, target, expected) in [
        ("crates/bus", "../../LICENSE", true),
        ("", "LICENSE", true),
        ("crates/bus", "../../../LICENSE", false),
        ("crates/bus", "../../../elsewhere/LICENSE", false),
        ("", "/opt/venv", false),
        ("a", "../../a/file", false),
    ] {
        assert_eq!(
            stays_inside(Path::new(folder), Path::new(target)),
            expected,
            "{folder} {target}"
        );
    }
}

/// Whether `target`, from `folder` below the root, at no step leaves the root.
fn stays_inside(folder: &Path, target: &Path) -> bool {
    let mut depth = folder.components().count();
    target.components().all(|part| match part {
        Component::Normal(_) => {
            depth += 1;
            true
        }
        Component::CurDir => true,
        Component::ParentDir => {
            let is_inside = depth > 0;
            depth = depth.saturating_sub(1);
            is_inside
        }
        Component::RootDir | Component::Prefix(_) => false,
    })
}
