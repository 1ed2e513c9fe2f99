//! The devices that a pipeline may open.
//!
//! Owns the configured patterns. A path is judged by what it resolves to, and a pattern of paths also names what the links resolve
//! to that fit it, such as those in `/dev/v4l/by-id`; a name goes to a sound system, and some of those accept files and programs as
//! names, so only plain names are allowed. Read [`Devices`].

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::refusal::Refusal;

/// The configured patterns.
#[derive(Debug)]
pub(super) struct Devices(Vec<String>);

impl Devices {
    pub(super) fn new(patterns: &[String]) -> Self {
        Self(patterns.to_vec())
    }

    /// Whether a device may be opened; returns its canonical name.
    pub(super) fn check(&self, device: &str) -> Result<String, Refusal> {
        let name = canonical(device).map_err(|reason| Refusal::new(reason, "devices"))?;
        let named = |pattern: &String| matches(pattern, &name) || is_linked(pattern, &name);
        if self.0.iter().any(named) {
            return Ok(name);
        }
        let text = if name == device {
            String::new()
        } else {
            format!(" (which is {name})")
        };
        let all = if self.0.is_empty() {
            "(none)".to_owned()
        } else {
            self.0.join(", ")
        };
        let why = format!("the device {device:?}{text} is not in `devices`: {all}");
        Err(Refusal::new(why, "devices").allowed_by(&self.0, &name))
    }
}

/// The canonical name of a device: links resolved, `plughw:0` as `hw:0,0`.
pub(crate) fn canonical(device: &str) -> Result<String, String> {
    if device.starts_with('/') {
        let path = Path::new(device);
        let path = path.canonicalize().or_else(|error| {
            let plain = path
                .components()
                .all(|part| part != std::path::Component::ParentDir);
            let missing = std::fs::symlink_metadata(path).is_err();
            if plain && missing {
                Ok(path.components().collect())
            } else {
                Err(error)
            }
        });
        return match path {
            Ok(path) => Ok(path.display().to_string()),
            Err(_) => Err(format!("the device {device:?} does not exist")),
        };
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.:,=-@".contains(c);
    if !device.chars().all(plain) {
        return Err(format!("the device {device:?} is not a plain name"));
    }
    let Some(address) = device
        .strip_prefix("plughw:")
        .or_else(|| device.strip_prefix("hw:"))
    else {
        return Ok(device.to_owned());
    };
    let address = without_keys(address);
    Ok(if address.contains(',') {
        format!("hw:{address}")
    } else {
        format!("hw:{address},0")
    })
}

/// The address of a sound card without the names of its parts.
fn without_keys(address: &str) -> String {
    address.replace("CARD=", "").replace("DEV=", "")
}

/// `*` matches any characters except `/`.
fn matches(pattern: &str, text: &str) -> bool {
    fits(&canonical_pattern(pattern), text)
}

/// Whether a pattern of paths fits a link that leads to the device. Only links in a folder count that its owner alone can change.
fn is_linked(pattern: &str, device: &str) -> bool {
    let Some((folder, names)) = pattern.rsplit_once('/') else {
        return false;
    };
    if !pattern.starts_with('/') || !names.contains('*') || folder.contains('*') {
        return false;
    }
    let is_private = fs::metadata(folder).is_ok_and(|folder| folder.mode() & 0o022 == 0);
    let entries = fs::read_dir(folder).ok().filter(|_| is_private);
    entries.into_iter().flatten().flatten().any(|entry| {
        entry.file_name().to_str().is_some_and(|name| fits(names, name))
            && entry
                .path()
                .canonicalize()
                .is_ok_and(|path| path == Path::new(device))
    })
}

fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        let Some((skipped, after)) = rest.split_once(part) else {
            return false;
        };
        if skipped.contains('/') {
            return false;
        }
        rest = after;
    }
    rest.strip_suffix(last)
        .is_some_and(|skipped| !skipped.contains('/'))
}

fn canonical_pattern(pattern: &str) -> String {
    if pattern.contains('*') {
        let address = pattern.strip_prefix("plughw:").or(pattern.strip_prefix("hw:"));
        return address.map_or_else(
            || pattern.to_owned(),
            |address| format!("hw:{}", without_keys(address)),
        );
    }
    canonical(pattern).unwrap_or_else(|_| pattern.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Devices, canonical};

    #[test]
    fn a_device_is_judged_by_what_it_is() {
        let allowed: Vec<String> = ["/dev/video*", "hw:*", "default", "/dev/gstrun-no/card"]
            .map(String::from)
            .into();
        let devices = Devices::new(&allowed);
        for (device, expected) in [
            ("/dev/video97", Some("/dev/video97")),
            ("/dev//video97", Some("/dev/video97")),
            ("hw:1", Some("hw:1,0")),
            ("plughw:CARD=2,DEV=1", Some("hw:2,1")),
            ("default", Some("default")),
            ("/dev/video0/../mem", None),
            ("/dev/video97/../sda", None),
            ("/dev/sda", None),
            ("/dev/null", None),
            ("/etc/passwd", None),
            ("file:'/tmp/x',raw", None),
            ("file:FILE=/tmp/x", None),
            ("tee:default", None),
            ("|sh", None),
        ] {
            assert_eq!(devices.check(device).ok().as_deref(), expected, "{device}");
        }
        assert_eq!(canonical("plughw:0,3").unwrap(), "hw:0,3");
    }

    #[test]
    fn a_pattern_names_cards_by_their_keys_and_devices_by_their_links() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let path = |name: &str| folder.join(name).display().to_string();
        std::fs::write(path("video2"), "").unwrap();
        std::fs::create_dir(path("by-id")).unwrap();
        std::os::unix::fs::symlink(path("video2"), path("by-id/usb-Logitech_X")).unwrap();
        let by_id = path("by-id/usb-Logitech*");
        let other = path("by-id/usb-Other*");
        let (link, video) = (path("by-id/usb-Logitech_X"), path("video2"));
        for (pattern, device, expected) in [
            ("hw:CARD=PCH*", "hw:CARD=PCH,DEV=3", Some("hw:PCH,3")),
            ("plughw:CARD=PCH*", "hw:PCH", Some("hw:PCH,0")),
            ("hw:CARD=PCH*", "hw:1", None),
            (&by_id, &link, Some(&*video)),
            (&other, &link, None),
            (&by_id, "/dev/null", None),
        ] {
            let devices = Devices::new(&[pattern.to_owned()]);
            let found = devices.check(device).ok();
            assert_eq!(found.as_deref(), expected, "{pattern} {device}");
        }
        // Anyone could lay a link to any device there.
        let anyone = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(path("by-id"), anyone).unwrap();
        assert!(Devices::new(&[by_id]).check(&link).is_err());
    }
}
