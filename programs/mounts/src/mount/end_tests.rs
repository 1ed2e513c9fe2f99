//! Tests of a mount whose server is no longer kept connected although the mount was not closed.

#![allow(clippy::unwrap_used, reason = "a failed test panics and prints")]

use std::os::unix::net::UnixStream;

use super::*;
use program::{Link, Notices};

#[tokio::test]
async fn the_end_of_the_task_that_keeps_a_server_is_told() {
    let panics = tokio::spawn(async { panic!("it was out of luck") });
    let ends = tokio::spawn(async {});
    for (task, expected) in [(panics, "it was out of luck"), (ends, "has changed")] {
        let (data, _service) = UnixStream::pair().unwrap();
        let (control, _service) = UnixStream::pair().unwrap();
        let notices = Arc::new(Notices::new(data, control).unwrap());
        let reporter = Reporter::new(Link::new(notices));
        let mut mount = Mount::open("fake", MountConfig::default(), reporter);
        mount.task.abort();
        mount.task = task;
        let why = timeout(Duration::from_secs(10), mount.given_up()).await;
        let why = why.unwrap();
        assert!(why.contains(expected), "{why}");
    }
}
