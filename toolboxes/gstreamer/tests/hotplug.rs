//! The device monitor's devices are in the lists, and changes are events. A provider in the judge's process simulates the
//! devices, because the test machine has none.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics and prints"
)]

use std::io::Write as _;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use gstreamer_toolbox::Gstreamer;
use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::{self, Harness};
use rustix::process::{Pid, Signal};

/// The variable with the path of this test's socket, to which the provider of `support/played.rs` connects.
const DEVICES: &str = "OVOS_TEST_DEVICES";

#[test]
fn devices_that_come_and_go_are_events_and_are_listed() {
    testing::role_host(env!("CARGO_BIN_EXE_gstreamer-role"));
    let state = tempfile::tempdir().unwrap();
    let socket = state.path().join("devices");
    let listener = UnixListener::bind(&socket).unwrap();
    testing::role_env(DEVICES, &socket);
    let toolbox = Harness::open::<Gstreamer>(json!({"state_dir": state.path()})).unwrap();
    let device_count = || {
        let list = toolbox.call("list_video_devices", json!({})).unwrap();
        let devices = list["devices"].as_array().unwrap().clone();
        devices
            .into_iter()
            .find(|device| device["device"] == json!("/dev/video42"))
    };
    // The toolbox asks for the devices by itself when it is opened.
    let (mut provider, _) = listener.accept().unwrap();
    provider.write_all(b"nothing\n").unwrap();
    assert!(device_count().is_none());
    provider.write_all(b"add\n").unwrap();
    let event = toolbox.wait_event("device_added");
    assert_eq!(event.data.unwrap()["name"], json!("Played camera"));
    let found = device_count().expect("the device that was plugged in");
    assert_eq!(found["name"], json!("Played camera"));
    assert_eq!(found["element"], json!("v4l2src"));
    assert!(found["caps"].as_str().unwrap().contains("NV12"), "{found}");

    provider.write_all(b"remove\n").unwrap();
    let event = toolbox.wait_event("device_removed");
    assert_eq!(event.data.unwrap()["class"], json!("Video/Source"));
    assert!(device_count().is_none());

    // What comes while no judge sits is reported by the next one.
    let judge = Pid::from_raw(judge()).unwrap();
    rustix::process::kill_process(judge, Signal::KILL).unwrap();
    let answer = std::thread::scope(|scope| {
        let question = scope.spawn(|| {
            // The question that is under way when the judge dies is answered with that.
            let end = Instant::now() + Duration::from_secs(30);
            loop {
                match toolbox.call("list_video_devices", json!({})) {
                    Ok(_) => return true,
                    Err(failure) => assert!(Instant::now() < end, "{failure}"),
                }
            }
        });
        let (mut provider, _) = listener.accept().unwrap();
        provider.write_all(b"add\n").unwrap();
        question.join().unwrap()
    });
    assert!(answer);
    let events = toolbox.events();
    let added = events.iter().filter(|event| event.kind == "device_added");
    assert_eq!(added.count(), 2, "{events:?}");
    assert!(toolbox.close().is_clean());
}

/// The only process that this one has started.
fn judge() -> i32 {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let children =
        threads.map(|thread| std::fs::read_to_string(thread.unwrap().path().join("children")).unwrap());
    children.collect::<String>().trim().parse().unwrap()
}
