//! How the service announces itself on its machine: to systemd, by its pid file, and to a second service.

use std::fs;
use std::os::unix::net::UnixDatagram;

use crate::support::client::Client;
use crate::support::process::DEADLINE;
use crate::support::scene::Scene;
use crate::support::service::{BusKind, testbed_plugins};
use rustix::process::Signal;
use serde_json::json;

#[test]
fn systemd_is_told_when_it_is_ready_and_when_it_goes() {
    let scene = Scene::new(&json!({}));
    let _bus = scene.bus(BusKind::Embedded);
    let address = scene.sandbox.path("notify");
    let socket = UnixDatagram::bind(&address).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    let next_word = || {
        let mut text = [0; 4096];
        let length = socket.recv(&mut text).expect("a word to systemd");
        String::from_utf8_lossy(&text[..length]).into_owned()
    };
    let plugins = testbed_plugins();
    let args = ["serve", "--plugins", plugins.to_str().unwrap()];
    let mut service = scene.ours_with("service", &args, &[("NOTIFY_SOCKET", address.to_str().unwrap())]);

    let first = next_word();
    assert!(first.lines().any(|line| line == "READY=1"), "{first:?}");
    service.until("its toolboxes", |service| {
        service.output().contains("testbed").then_some(())
    });
    service.signal(Signal::TERM);
    let second = next_word();
    assert!(second.lines().any(|line| line == "STOPPING=1"), "{second:?}");
    assert!(service.end_within(DEADLINE).success(), "{}", service.log());
}

#[test]
fn a_second_service_is_refused_and_the_first_does_not_notice() {
    let scene = Scene::new(&json!({}));
    let (_bus, mut first, mut client) = scene.open();
    let file = scene.sandbox.path("state/ovos-tools/service.pid");
    let named = format!("{}\n{}\n", first.pid(), scene.url());
    assert_eq!(fs::read_to_string(&file).unwrap(), named);

    let plugins = testbed_plugins();
    let mut second = scene.ours("second", &["serve", "--plugins", plugins.to_str().unwrap()]);
    assert_eq!(second.end_within(DEADLINE).code(), Some(5), "{}", second.log());
    let output = second.output();
    for part in [format!("process {}", first.pid()), "state_dir".to_owned()] {
        assert!(output.contains(&part), "no {part:?} in {output}");
    }
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        named,
        "it still names the first"
    );
    assert_eq!(client.invoke("ping", &json!({}))["result"]["pong"], true);
    assert!(first.ended().is_none());

    // After a crash of the first, the second one starts.
    first.kill();
    let third = scene.service(&mut client);
    assert!(
        fs::read_to_string(&file)
            .unwrap()
            .starts_with(&format!("{}\n", third.pid()))
    );
}

/// Another home is another service: it has a state directory of its own.
#[test]
fn a_second_service_may_run_with_its_own_state_directory() {
    let scene = Scene::new(&json!({}));
    let other = Scene::new(&json!({}));
    let (_bus, _other_bus) = (scene.bus(BusKind::Embedded), other.bus(BusKind::Embedded));
    let (mut client, mut other_client) = (Client::connect(scene.port), Client::connect(other.port));
    let (_first, _second) = (scene.service(&mut client), other.service(&mut other_client));
    assert_eq!(client.invoke("ping", &json!({}))["result"]["pong"], true);
    assert_eq!(other_client.invoke("ping", &json!({}))["result"]["pong"], true);
}
