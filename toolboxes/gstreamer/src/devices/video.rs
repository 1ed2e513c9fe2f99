//! Video inputs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ovos_toolbox_sdk::prelude::*;
use rustix::fs::Access;

use super::amlogic;
use super::v4l2::{Answer, Format, Incoming, Inquiry, Signal};
use crate::config::Config;
use crate::policy::is_confined;

/// A video input.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct VideoDevice {
    /// The device as an element takes it, such as `/dev/video0`.
    pub(crate) device: String,
    /// The name that people know.
    pub(crate) name: String,
    /// `hdmi-in`, `usb-cam`, `camera` or `gst`, which only GStreamer knows.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    /// Whether a pipeline could start with it now.
    pub(crate) available: bool,
    /// Why it is not available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The instance that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) in_use_by: Option<String>,
    /// What comes in through the cable, such as `1920x1080@60`; null without one.
    pub(crate) current_signal: Option<String>,
    /// The incoming signal in numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) signal: Option<Signal>,
    /// The formats that it gives, by their four letters.
    pub(crate) formats: Vec<String>,
    /// The formats with their sizes and frame rates.
    pub(crate) format_details: Vec<Format>,
    /// The kernel driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) driver: Option<String>,
    /// Where it is connected, such as `usb-0000:00:14.0-2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bus: Option<String>,
    /// The element that reads it, according to GStreamer's device monitor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) element: Option<String>,
    /// The caps that this element can give.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) caps: Option<String>,
}

/// The kernel's devices, below `sysroot`.
pub(super) fn list(
    config: &Config,
    inquiry: &Inquiry,
    owner: &dyn Fn(&str) -> Option<String>,
) -> Vec<VideoDevice> {
    let mut devices = Vec::new();
    let hdmi = amlogic::incoming(config);
    for (device, path) in amlogic::inputs(config) {
        devices.push(hdmi_in(&device, &path, inquiry, hdmi.clone(), owner(&device)));
    }
    for node in nodes(config) {
        // A vdin that also has a video node is already listed.
        if !devices
            .iter()
            .any(|known: &VideoDevice| known.device == node.device)
        {
            devices.extend(camera(&node, inquiry, owner(&node.device)));
        }
    }
    devices
}

/// A Video4Linux node.
struct Node {
    device: String,
    path: PathBuf,
    /// Its name in sysfs.
    name: String,
    on_usb: bool,
}

fn nodes(config: &Config) -> Vec<Node> {
    let Ok(entries) = fs::read_dir(config.below_sysroot("/sys/class/video4linux")) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        // Others are radios, teletext and parts of larger devices.
        .filter(|name| name.starts_with("video") || name.starts_with("vdin"))
        .collect();
    // video2 before video10.
    names.sort_by_key(|name| (name.len(), name.clone()));
    names
        .into_iter()
        .map(|name| {
            let class = config.below_sysroot(&format!("/sys/class/video4linux/{name}"));
            let real = fs::canonicalize(&class).unwrap_or_else(|_| class.clone());
            Node {
                device: format!("/dev/{name}"),
                path: config.below_sysroot(&format!("/dev/{name}")),
                name: fs::read_to_string(class.join("name"))
                    .unwrap_or_default()
                    .trim()
                    .to_owned(),
                on_usb: real
                    .components()
                    .any(|part| part.as_os_str().to_string_lossy().starts_with("usb")),
            }
        })
        .collect()
}

fn hdmi_in(
    device: &str,
    path: &Path,
    inquiry: &Inquiry,
    hdmi: Option<Incoming>,
    owner: Option<String>,
) -> VideoDevice {
    let inquiry_answer = inquiry.ask(path, owner.is_some());
    let mut answer = inquiry_answer.as_ref().ok().cloned().unwrap_or_default();
    answer.signal = hdmi.or(answer.signal);
    let problem = match inquiry_answer {
        // Older kernels have no Video4Linux for a vdin, which counts as available if it can be opened.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NOTTY.raw_os_error()) => None,
        Err(error) => Some(why(&error, path)),
        Ok(_) => None,
    };
    let name = "HDMI-In".to_owned();
    describe(device, name, "hdmi-in", answer, problem, owner)
}

/// A camera or another input; `None` for a device that does not capture, such as a decoder.
fn camera(node: &Node, inquiry: &Inquiry, owner: Option<String>) -> Option<VideoDevice> {
    let (answer, problem) = match inquiry.ask(&node.path, owner.is_some()) {
        Ok(answer) if !answer.captures => return None,
        Ok(answer) => (answer, None),
        Err(error) => (Answer::default(), Some(why(&error, &node.path))),
    };
    let usb = node.on_usb || answer.bus.starts_with("usb-");
    let kind = if answer.signal.is_some() {
        "hdmi-in"
    } else if usb {
        "usb-cam"
    } else {
        "camera"
    };
    let name = [&answer.card, &node.name]
        .into_iter()
        .find(|name| !name.is_empty())
        .unwrap_or(&node.device)
        .clone();
    Some(describe(&node.device, name, kind, answer, problem, owner))
}

fn describe(
    device: &str,
    name: String,
    kind: &'static str,
    answer: Answer,
    problem: Option<String>,
    owner: Option<String>,
) -> VideoDevice {
    let signal_problem = match &answer.signal {
        Some(Incoming::Nothing) => Some("no signal: connect a source and switch it on".to_owned()),
        Some(Incoming::Unstable) => Some("the signal is not stable: check the cable".to_owned()),
        _ => None,
    };
    let owned = owner
        .as_ref()
        .map(|owner| format!("the pipeline '{owner}' uses it: stop that pipeline first"));
    let reason = owned.or(problem).or(signal_problem);
    let signal = match answer.signal {
        Some(Incoming::Signal(signal)) => Some(signal),
        _ => None,
    };
    let unless_empty = |text: String| (!text.is_empty()).then_some(text);
    VideoDevice {
        device: device.to_owned(),
        name,
        kind,
        available: reason.is_none(),
        reason,
        in_use_by: owner,
        current_signal: signal.as_ref().map(Signal::long),
        signal,
        formats: answer
            .formats
            .iter()
            .map(|format| format.fourcc.clone())
            .collect(),
        format_details: answer.formats,
        driver: unless_empty(answer.driver),
        bus: unless_empty(answer.bus),
        element: None,
        caps: None,
    }
}

/// Why a device cannot be used, and what to do.
pub(super) fn why(error: &io::Error, path: &Path) -> String {
    match error.kind() {
        // The file's permissions allow access, so the confinement denies it.
        io::ErrorKind::PermissionDenied
            if is_confined() && rustix::fs::access(path, Access::READ_OK | Access::WRITE_OK).is_ok() =>
        {
            "this toolbox may not open it: add it to `devices` of the section gstreamer; if it is there, it was plugged in later: restart \
             the toolbox with `ovos-tools reload`"
                .to_owned()
        }
        io::ErrorKind::PermissionDenied => format!(
            "no permission to open it: add the user of this service to the group that owns it{}",
            group(path).map(|group| format!(" ({group})")).unwrap_or_default()
        ),
        io::ErrorKind::NotFound => "the device is gone".to_owned(),
        _ if error.raw_os_error() == Some(rustix::io::Errno::BUSY.raw_os_error()) => {
            "another program uses it: close that program".to_owned()
        }
        _ => format!("it does not answer: {error}"),
    }
}

/// The name of a device's group, such as `video`.
fn group(path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let id = fs::metadata(path).ok()?.gid().to_string();
    let groups = fs::read_to_string("/etc/group").ok()?;
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number == id).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::super::v4l2::Probe;
    use super::*;
    use crate::config::Section;

    /// A fake kernel with given answers. It answers once about `video0`, which streams afterwards.
    struct Answers(HashMap<&'static str, Result<Answer, i32>>, AtomicBool);

    impl Probe for Answers {
        fn ask(&self, path: &Path) -> io::Result<Answer> {
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(
                name != "video0" || !self.1.swap(true, Ordering::Relaxed),
                "asked while it streams"
            );
            match self.0.get(name) {
                Some(Ok(answer)) => Ok(answer.clone()),
                Some(Err(code)) => Err(io::Error::from_raw_os_error(*code)),
                None => Err(io::Error::from(io::ErrorKind::NotFound)),
            }
        }
    }

    fn format(fourcc: &str) -> Format {
        Format {
            fourcc: fourcc.to_owned(),
            description: String::new(),
            compressed: fourcc == "MJPG",
            sizes: Vec::new(),
            size_range: None,
        }
    }

    #[test]
    fn what_devices_answer_decides_what_is_available() {
        let root = tempfile::tempdir().unwrap();
        let make = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for node in ["video0", "video1", "video2", "video3", "video4", "video10"] {
            make(&format!("dev/{node}"), "");
            make(
                &format!("sys/class/video4linux/{node}/name"),
                &format!("name of {node}\n"),
            );
        }
        let camera = Answer {
            driver: "uvcvideo".to_owned(),
            card: "Camera".to_owned(),
            bus: "usb-0000:00:14.0-2".to_owned(),
            captures: true,
            formats: vec![format("YUYV"), format("MJPG")],
            signal: None,
        };
        let signal = Signal {
            width: 3840,
            height: 2160,
            rate: 30.0,
            interlaced: false,
        };
        let receiver = |incoming| Answer {
            card: "rk_hdmirx".to_owned(),
            captures: true,
            formats: vec![format("NV12")],
            signal: Some(incoming),
            ..Answer::default()
        };
        let devices = Answers(
            HashMap::from([
                ("video0", Ok(camera.clone())),
                ("video1", Err(rustix::io::Errno::ACCESS.raw_os_error())),
                // A decoder.
                ("video2", Ok(Answer::default())),
                ("video3", Ok(receiver(Incoming::Signal(signal)))),
                ("video4", Ok(receiver(Incoming::Nothing))),
                ("video10", Err(rustix::io::Errno::BUSY.raw_os_error())),
            ]),
            AtomicBool::new(false),
        );
        let config = Config::check(Section {
            sysroot: root.path().to_owned(),
            state_dir: Some(root.path().join("state")),
            ..Section::default()
        })
        .unwrap();
        let inquiry = Inquiry::new(devices);
        let before = list(&config, &inquiry, &|_| None);
        assert!(before[0].available, "{:?}", before[0]);
        let found = list(&config, &inquiry, &|device| {
            (device == "/dev/video0").then(|| "cam".to_owned())
        });
        let texts: Vec<String> = found
            .iter()
            .map(|device| {
                format!(
                    "{} {} {} {} {} {:?}",
                    device.device,
                    device.name,
                    device.kind,
                    device.current_signal.as_deref().unwrap_or("-"),
                    device.formats.join("+"),
                    device
                        .reason
                        .as_deref()
                        .map(|reason| reason.split(':').next().unwrap())
                )
            })
            .collect();
        assert_eq!(
            texts,
            [
                "/dev/video0 Camera usb-cam - YUYV+MJPG Some(\"the pipeline 'cam' uses it\")",
                "/dev/video1 name of video1 camera -  Some(\"no permission to open it\")",
                "/dev/video3 rk_hdmirx hdmi-in 3840x2160@30 NV12 None",
                "/dev/video4 rk_hdmirx hdmi-in - NV12 Some(\"no signal\")",
                "/dev/video10 name of video10 camera -  Some(\"another program uses it\")",
            ]
        );
        assert!(
            found
                .iter()
                .all(|device| device.available == device.reason.is_none())
        );
        assert_eq!(found[0].in_use_by.as_deref(), Some("cam"));
    }
}
