//! The simulated servos are what the vendor's own client expects of servos.

use crate::peers::Peer;
use feetech_sim::{Line, Servo};

#[test]
fn the_vendors_client_finds_servos() {
    let line = Line::start([1, 2, 3].map(Servo::new)).unwrap();
    let Some(client) = Peer::start("feetech_client.py", &[line.path().to_str().unwrap()]) else {
        return;
    };
    client.until("the vendor's client is content");
    client.finish();
}
