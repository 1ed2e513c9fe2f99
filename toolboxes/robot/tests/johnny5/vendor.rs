//! The simulated servos are what the vendor's own client expects of servos.

use crate::peers::Peer;
use feetech_sim::{Dynamixel, Line, Model, Servo};

#[test]
fn the_vendors_client_finds_servos() {
    let line = Line::start([1, 2, 3].map(Servo::new)).unwrap();
    let Some(client) = Peer::start("feetech_client.py", &[line.path().to_str().unwrap()]) else {
        return;
    };
    client.until("the vendor's client is content");
    client.finish();
}

#[test]
fn robotis_client_finds_its_servos() {
    let servos = [
        Dynamixel::new(1, Model::Xl430),
        Dynamixel::new(2, Model::Xl330),
        Dynamixel::new(3, Model::Xl330),
    ];
    let line = Line::dynamixel(servos).unwrap();
    let Some(client) = Peer::start("dynamixel_client.py", &[line.path().to_str().unwrap()]) else {
        return;
    };
    client.until("against an obstacle");
    line.servo(3, |servo| {
        let here = servo.position();
        servo.block(here, here);
    });
    client.until("the vendor's client is content");
    client.finish();
}
