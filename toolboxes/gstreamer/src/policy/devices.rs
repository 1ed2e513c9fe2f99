//! The devices that a pipeline may open.
//!
//! Owns the configured patterns. A path is judged by what it resolves to; a name is passed to a sound system, some of
//! which accept files and programs in names, so that only plain names are allowed. Read [`Devices`].

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
        if self.0.iter().any(|pattern| matches(pattern, &name)) {
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
    let address = address.replace("CARD=", "").replace("DEV=", "");
    Ok(if address.contains(',') {
        format!("hw:{address}")
    } else {
        format!("hw:{address},0")
    })
}

/// `*` matches any characters except `/`.
fn matches(pattern: &str, text: &str) -> bool {
    let pattern = canonical_pattern(pattern);
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
        return pattern.replace("plughw:", "hw:");
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
}
