//! A robot, or the network to it, that comes after the toolbox was opened.

use std::time::Duration;

use ovos_toolbox_sdk::testing::Harness;
use robot::robots::Robots;
use serde_json::{Value, json};

use crate::peers::Peer;
use crate::{domain, each, own, velocities};

#[test]
fn an_address_that_this_machine_has_not_is_named() {
    // Reserved for documentation: no machine has it.
    let ros = json!({"domain": 7, "interfaces": ["127.0.0.1", "203.0.113.77"], "discovery_ms": 300});
    each(&["k1_topics", "k1_rpc", "g1"], |&kind| {
        let config = json!({"robots": {"hal": own(kind, &ros)}});
        let harness = Harness::open::<Robots>(config.clone()).unwrap();
        let expected = "this machine has no address 203.0.113.77";
        let lost = harness.wait_event("backend").data.unwrap();
        assert!(
            lost["reason"].as_str().unwrap().contains(expected),
            "{kind}: {lost}"
        );
        let away = harness.invoke("walk", json!({"duration": 0.5})).unwrap();
        let message = away["message"].as_str().unwrap();
        assert!(
            message.contains("is not connected") && message.contains(expected),
            "{kind}: {away}"
        );
        harness.halt(&["all"], true).unwrap();
        let unheard = harness.safe_stop(config).unwrap_err().to_string();
        assert!(unheard.contains(expected), "{kind}: {unheard}");
    });
}

#[test]
fn a_robot_that_comes_later_is_found() {
    each(&["k1_topics", "k1_rpc", "g1"], |&kind| {
        let domain = domain();
        let ros = json!({"domain": domain, "interfaces": ["127.0.0.1"], "discovery_ms": 100});
        let config = json!({"robots": {"hal": own(kind, &ros)}});
        let harness = Harness::open::<Robots>(config)
            .unwrap()
            .with_deadline(Duration::from_secs(60));
        let away = harness.invoke("walk", json!({"duration": 0.5})).unwrap();
        assert_eq!(away["success"], false, "{kind}: {away}");
        let Some(robot) = Peer::start("dds_robot.py", &[kind, &domain.to_string()]) else {
            return;
        };
        robot.wait("word that it is connected", |_| {
            let connected = |data: &Value| data["state"] == "connected";
            let events = harness.events();
            events
                .iter()
                .any(|event| event.data.as_ref().is_some_and(connected))
                .then_some(())
        });
        robot.wait("a stop", |_| {
            velocities(&crate::frames(&robot))
                .contains(&[0.0; 3])
                .then_some(())
        });
        let walked = harness
            .invoke("walk", json!({"direction": "forward", "duration": 0.5}))
            .unwrap();
        assert_eq!(walked["success"], true, "{kind}: {walked}");
    });
}
