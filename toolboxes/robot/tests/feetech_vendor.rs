//! The simulated servos are what the vendor's own client expects of servos.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test panics")]

#[allow(dead_code, reason = "the helpers serve several test programs")]
mod support {
    pub(crate) mod peers;
}

use feetech_sim::{Line, Servo};
use support::peers::Peer;

#[test]
fn the_vendors_client_finds_servos() {
    let line = Line::start([1, 2, 3].map(Servo::new)).unwrap();
    let Some(client) = Peer::start("feetech_client.py", &[line.path().to_str().unwrap()]) else {
        return;
    };
    client.until("the vendor's client is content");
    client.finish();
}
