//! The bus that the service uses: it waits for one that is missing and tells what to do, and it opens one of its own
//! only if it is told to.

use crate::support::client::Client;
use crate::support::process::{DEADLINE, Process};
use crate::support::scene::{Scene, ready};
use crate::support::service::BusKind;
use rustix::process::Signal;
use serde_json::json;

fn until_said(service: &mut Process, what: &str) {
    service.until(what, |service| service.output().contains(what).then_some(()));
}

#[test]
fn without_a_bus_it_says_what_to_do_and_waits_for_one() {
    let scene = Scene::new(&json!({}));
    let mut service = scene.service_started(&[]);
    until_said(&mut service, "Try: ");
    let text = service.output();
    for part in [scene.url().as_str(), "ovos-messagebus", "--embedded-bus auto"] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    until_said(
        &mut service,
        "no connection to the bus; trying again until there is one",
    );
    for round in 0..2 {
        let bus = scene.bus(BusKind::Embedded);
        let mut client = Client::connect(scene.port);
        ready(&mut service, &mut client);
        let answer = client.invoke("add", &json!({ "a": round, "b": 0 }));
        assert_eq!(answer["result"]["result"], round, "{answer}");
        drop(bus);
    }
}

#[test]
fn auto_opens_a_bus_where_there_is_none() {
    let scene = Scene::new(&json!({}));
    let mut service = scene.service_started(&["--embedded-bus", "auto"]);
    until_said(&mut service, "Try: ");
    assert!(
        service
            .output()
            .contains(&format!("embedded, listening on {}", scene.url())),
        "{}",
        service.log()
    );
    let mut client = Client::connect(scene.port);
    ready(&mut service, &mut client);
    assert_eq!(client.invoke("ping", &json!({}))["result"]["pong"], true);
    // A service with a bus of its own ends as completely as any: no private copy of a plugin stays.
    let own = format!("ovos-tools/ovos-tools-{}", service.pid());
    let folders = [format!("run/{own}"), format!("cache/{own}")].map(|folder| scene.sandbox.path(&folder));
    assert!(folders.iter().any(|folder| folder.exists()), "{folders:?}");
    service.signal(Signal::TERM);
    assert!(service.end_within(DEADLINE).success(), "{}", service.log());
    assert!(!folders.iter().any(|folder| folder.exists()), "{folders:?}");
}

#[test]
fn auto_takes_the_bus_that_is_there() {
    let scene = Scene::new(&json!({}));
    let bus = scene.bus(BusKind::Embedded);
    let mut client = Client::connect(scene.port);
    let mut service = scene.service_started(&["--embedded-bus", "auto"]);
    ready(&mut service, &mut client);
    assert!(
        !service.output().contains("embedded, listening"),
        "{}",
        service.log()
    );
    // A bus of the service itself would still listen after this.
    drop(bus);
    assert!(
        Client::try_connect(scene.port).is_none(),
        "another program listens there"
    );
}

#[test]
fn never_is_the_default() {
    let scene = Scene::new(&json!({}));
    let mut service = scene.service_started(&[]);
    until_said(&mut service, "Try: ");
    assert!(
        Client::try_connect(scene.port).is_none(),
        "it listens although it was not told to"
    );
}

#[test]
fn always_fails_where_the_port_is_taken() {
    let scene = Scene::new(&json!({}));
    let _bus = scene.bus(BusKind::Embedded);
    let mut service = scene.service_started(&["--embedded-bus", "always"]);
    let status = service.end_within(DEADLINE);
    assert_eq!(status.code(), Some(5), "{}", service.log());
    let expected = format!("cannot listen on 127.0.0.1:{}", scene.port);
    assert!(
        service.output().contains(&expected),
        "no {expected:?} in {}",
        service.log()
    );
}
