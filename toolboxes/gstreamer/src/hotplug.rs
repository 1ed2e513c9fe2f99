//! Devices that come and go while nothing is asked.
//!
//! The kernel says when something in `/dev` changes; then the judge is asked, whose monitor knows what it is. An idle watch costs
//! no processor time. Read [`Hotplug::watch`].

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
use rustix::io::Errno;

/// Watches folders of devices. Ends when it is dropped.
pub(crate) struct Hotplug {
    end: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

/// How long further changes of the same device are collected after the first: a camera has several nodes, and udev sets their
/// rights.
const SETTLE: Duration = Duration::from_millis(500);

impl Hotplug {
    /// Calls `changed` when cameras or sound devices below `dev` have come or gone.
    ///
    /// # Errors
    /// The kernel does not watch the folder.
    pub(crate) fn watch(dev: &Path, changed: impl Fn() + Send + 'static) -> io::Result<Self> {
        let watch = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        add_watch(&watch, dev, WatchFlags::CREATE | WatchFlags::DELETE)?;
        let sound = dev.join("snd");
        let (end, ends) = UnixStream::pair()?;
        let watching = move || {
            // There is none without a sound card, and another one when the card has come back; a watch that is there stays.
            let watch_sound = || {
                _ = add_watch(&watch, &sound, WatchFlags::CREATE | WatchFlags::DELETE);
            };
            watch_sound();
            loop {
                let mut both = [
                    PollFd::new(&watch, PollFlags::IN),
                    PollFd::new(&ends, PollFlags::IN),
                ];
                match poll(&mut both, None) {
                    Ok(_) if both[1].revents().is_empty() => {}
                    Err(Errno::INTR) => continue,
                    Ok(_) => return,
                    Err(error) => {
                        tracing::warn!(%error, "devices that come or go are not noticed any more");
                        return;
                    }
                }
                let mut ours = drain(&watch);
                let mut end = [PollFd::new(&ends, PollFlags::IN)];
                let settle = Timespec::try_from(SETTLE).unwrap_or_default();
                if poll(&mut end, Some(&settle)).is_ok_and(|ready| ready > 0) {
                    return;
                }
                ours |= drain(&watch);
                watch_sound();
                if ours {
                    changed();
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("hotplug".to_owned())
            .spawn(watching)?;
        Ok(Self {
            end: Some(end),
            thread: Some(thread),
        })
    }
}

impl Drop for Hotplug {
    fn drop(&mut self) {
        drop(self.end.take());
        // It does not panic.
        _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Reads what has changed; whether a camera or a sound device is among it.
fn drain(watch: &impl std::os::fd::AsFd) -> bool {
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let mut reader = rustix::fs::inotify::Reader::new(watch, &mut buffer);
    let mut ours = false;
    while let Ok(event) = reader.next() {
        let name = event.file_name().map(|name| name.to_string_lossy().into_owned());
        let media = ["video", "vdin", "media", "snd", "pcm", "control"];
        ours |= name.is_some_and(|name| media.iter().any(|start| name.starts_with(start)));
    }
    ours
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    #[test]
    fn a_camera_that_comes_or_goes_is_noticed_once_and_other_devices_are_not() {
        let dev = tempfile::tempdir().unwrap();
        let (sender, receiver) = sync_channel(8);
        let hotplug = Hotplug::watch(dev.path(), move || sender.send(()).unwrap()).unwrap();
        std::fs::write(dev.path().join("sda"), "").unwrap();
        assert!(receiver.recv_timeout(2 * SETTLE).is_err(), "a disk is no camera");
        for node in ["video0", "video1"] {
            std::fs::write(dev.path().join(node), "").unwrap();
        }
        receiver.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(
            receiver.recv_timeout(2 * SETTLE).is_err(),
            "its nodes come together"
        );
        std::fs::remove_file(dev.path().join("video0")).unwrap();
        receiver.recv_timeout(Duration::from_secs(20)).unwrap();
        // The first sound card, and a further one.
        let sound = dev.path().join("snd");
        std::fs::create_dir(&sound).unwrap();
        receiver.recv_timeout(Duration::from_secs(20)).unwrap();
        std::fs::write(sound.join("controlC1"), "").unwrap();
        receiver.recv_timeout(Duration::from_secs(20)).unwrap();
        drop(hotplug);
        assert!(receiver.recv().is_err(), "its thread has ended");
    }
}
