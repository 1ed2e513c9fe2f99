//! Suggestions for misspelled or missing names.
//!
//! Finds similar names and the Debian package of a missing element. Its only side effect is a query of apt-cache,
//! within [`ASK`]. Read [`Suggestions`].

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use gst::prelude::*;
use parking_lot::{Mutex, MutexGuard};

/// Time limit of apt-cache: it reads about 60 MB, in 0.7 s on an idle machine.
const ASK: Duration = Duration::from_secs(8);

/// Lifetime of apt's answer; `apt update` may change it.
const KEEP: Duration = Duration::from_secs(600);

/// Least similarity of a suggestion. With 0.75 `nvh264enc` still finds `x264enc`.
const LIKE: f64 = 0.75;

/// Suggests names and packages.
#[derive(Default)]
pub(crate) struct Suggestions {
    packages: Mutex<Option<(Instant, HashMap<String, String>)>>,
}

impl Suggestions {
    /// The suggestion for a missing element, from what is known without a query.
    pub(crate) fn element(&self, name: &str) -> String {
        let near = nearest_element(name).map(|near| format!("Did you mean '{near}'?"));
        let package = self
            .packages()
            .as_ref()
            .and_then(|(_, packages)| packages.get(name))
            .map(|package| format!("'{name}' is in the Debian package {package}: apt install {package}"));
        package.or(near).unwrap_or_else(|| {
            "search_elements finds the elements of this machine by words, class and caps".to_owned()
        })
    }

    /// Whether the list of packages is up to date.
    pub(crate) fn is_fresh(&self) -> bool {
        self.packages()
            .as_ref()
            .is_some_and(|(read, _)| read.elapsed() < KEEP)
    }

    /// Queries the list of packages. Blocks for up to some seconds.
    pub(crate) fn refresh(&self) {
        // Without the lock, so that other suggestions need not wait.
        let mut packages = ask_apt(&[]);
        if packages.is_empty() {
            // Root without the right to write gets no answer, because apt does not expect that: ask again without its
            // caches.
            packages = ask_apt(&["-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache="]);
        }
        *self.packages() = Some((Instant::now(), packages));
    }

    fn packages(&self) -> MutexGuard<'_, Option<(Instant, HashMap<String, String>)>> {
        self.packages.lock()
    }
}

/// The installed element with the most similar name.
pub(crate) fn nearest_element(name: &str) -> Option<String> {
    // By type there are no filters, such as videoconvert.
    let all = gst::Registry::get().features(gst::ElementFactory::static_type());
    let names: Vec<(String, i32)> = all
        .iter()
        .map(|factory| (factory.name().to_string(), factory.rank().into()))
        .collect();
    nearest(name, names.iter().map(|(name, _)| name.clone())).or_else(|| same_end(name, names))
}

/// Length of a common ending that indicates the same kind of element: `264enc`, `h265dec`, `overlay`.
const END: usize = 6;

/// The element with the same ending, and of several the one with the highest rank. Vendors prefix their own name:
/// `aml_h264enc` on one board corresponds to `x264enc` on another.
fn same_end(name: &str, candidates: Vec<(String, i32)>) -> Option<String> {
    let shared = |candidate: &str| {
        let pairs = name.chars().rev().zip(candidate.chars().rev());
        pairs.take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count()
    };
    candidates
        .into_iter()
        .filter(|(candidate, _)| shared(candidate) >= END)
        .max_by(|(a, first), (b, second)| {
            first
                .cmp(second)
                .then_with(|| shared(a).cmp(&shared(b)))
                .then_with(|| b.cmp(a))
        })
        .map(|(candidate, _)| candidate)
}

/// The writable property of an element with the most similar name.
pub(crate) fn nearest_property(element: &gst::Element, name: &str) -> Option<String> {
    let names = element
        .list_properties()
        .iter()
        .filter(|spec| spec.flags().contains(gst::glib::ParamFlags::WRITABLE))
        .map(|spec| spec.name().to_owned())
        .collect::<Vec<_>>();
    nearest(name, names)
}

/// The most similar candidate, if one is similar enough.
pub(crate) fn nearest(name: &str, candidates: impl IntoIterator<Item = String>) -> Option<String> {
    let plain = |text: &str| text.to_lowercase().replace(['_', '-'], "");
    let wanted = plain(name);
    candidates
        .into_iter()
        .map(|candidate| (likeness(&wanted, &plain(&candidate)), candidate))
        .filter(|(like, _)| *like >= LIKE)
        .max_by(|(a, first), (b, second)| a.total_cmp(b).then_with(|| second.cmp(first)))
        .map(|(_, candidate)| candidate)
}

/// Similarity from 0 to 1. Transposed and missing letters count relative to the length, a common start raises it, and
/// so does containing the whole other name.
fn likeness(wanted: &str, candidate: &str) -> f64 {
    let edits = strsim::normalized_damerau_levenshtein(wanted, candidate);
    let starts = strsim::jaro_winkler(wanted, candidate) * 0.9;
    let holds = wanted.len() >= 4
        && candidate.len() >= 4
        && (candidate.contains(wanted) || wanted.contains(candidate));
    edits.max(starts).max(if holds { 0.8 } else { 0.0 })
}

/// Debian's package lists name the elements of each package. Empty without apt.
fn ask_apt(options: &[&str]) -> HashMap<String, String> {
    let mut packages = HashMap::new();
    let started = Command::new("apt-cache")
        .args(options)
        .arg("dumpavail")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = started else {
        return packages;
    };
    if let Some(output) = child.stdout.take() {
        // At most one answer.
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let reader = std::thread::spawn(move || {
            // Fails when the time limit has passed.
            _ = sender.send(read_packages(BufReader::new(output)));
        });
        match receiver.recv_timeout(ASK) {
            Ok(read) => packages = read,
            Err(_) => tracing::debug!("apt-cache timed out: names of packages are unavailable"),
        }
        // Also ends the reader. It may have ended already.
        _ = child.kill();
        _ = reader.join();
    }
    _ = child.wait();
    packages
}

fn read_packages(dump: impl BufRead) -> HashMap<String, String> {
    let mut packages = HashMap::new();
    let mut package = String::new();
    for line in dump.lines().map_while(Result::ok) {
        if let Some(name) = line.strip_prefix("Package: ") {
            name.clone_into(&mut package);
        } else if let Some(elements) = line.strip_prefix("Gstreamer-Elements: ") {
            for element in elements.split(',').map(str::trim) {
                packages
                    .entry(element.to_owned())
                    .or_insert_with(|| package.clone());
            }
        }
    }
    packages
}

#[cfg(test)]
mod tests {
    use super::{nearest, same_end};

    #[test]
    fn what_another_vendor_calls_it_is_suggested() {
        let names = || {
            [
                ("openh264enc", 64),
                ("x264enc", 256),
                ("x265enc", 256),
                ("h264parse", 256),
                ("timeoverlay", 0),
            ]
            .map(|(name, rank)| (name.to_owned(), rank))
            .to_vec()
        };
        for (wrong, expected) in [
            ("aml_h264enc", Some("x264enc")),
            ("omxh265enc", Some("x265enc")),
            ("rkoverlay", Some("timeoverlay")),
            ("nosuch", None),
            ("x", None),
        ] {
            assert_eq!(same_end(wrong, names()).as_deref(), expected, "{wrong}");
        }
    }

    #[test]
    fn packages_name_their_elements() {
        let dump = "Package: gstreamer1.0-x\nVersion: 1\nGstreamer-Elements: cairooverlay, timeoverlay\n\nPackage: other\n";
        let packages = super::read_packages(dump.as_bytes());
        assert_eq!(
            packages.get("timeoverlay").map(String::as_str),
            Some("gstreamer1.0-x")
        );
        assert_eq!(packages.len(), 2);
    }

    #[test]
    fn the_nearest_name_is_suggested_and_far_ones_are_not() {
        let names = [
            "x264enc",
            "x265enc",
            "openh264enc",
            "videoconvert",
            "videotestsrc",
            "fakesink",
            "aml_h264enc",
        ];
        for (wrong, expected) in [
            ("x264encc", Some("x264enc")),
            ("vidoeconvert", Some("videoconvert")),
            ("videotestsource", Some("videotestsrc")),
            ("amlh264enc", Some("aml_h264enc")),
            ("fake_sink", Some("fakesink")),
            ("nvh264enc", Some("x264enc")),
            ("rtmpbird", None),
        ] {
            let found = nearest(wrong, names.map(str::to_owned));
            assert_eq!(found.as_deref(), expected, "{wrong}");
        }
    }
}
