//! No bus, no service on it, and a bus that goes away: three cases that a script has to distinguish.

use crate::scripted::{Bus, run, unused_address};

const ASKING: &[&[&str]] = &[
    &["list"],
    &["get", "add"],
    &["invoke", "add", "a=1"],
    &["plan", "add"],
    &["export"],
    &["reload"],
    &["stop"],
    &["resume", "robot", "s-1"],
    &["resume", "robot"],
    &["cancel", "c-1"],
    &["status"],
];

#[tokio::test]
async fn without_a_bus_the_error_tells_how_to_start_one() {
    let url = unused_address().await;
    for arguments in ASKING {
        let ran = run(&[arguments, &["--bus", &url][..]].concat()).await;
        // A stop that was not confirmed has an exit code of its own.
        let expected = if arguments[0] == "stop" { 4 } else { 3 };
        assert_eq!(ran.code, expected, "{arguments:?}: {ran:?}");
        for part in [
            "error: ",
            &url,
            "run `ovos-tools serve --embedded-bus auto`",
            "--bus",
        ] {
            assert!(ran.err.contains(part), "{arguments:?}: {part} in {}", ran.err);
        }
        assert_eq!(ran.out, "", "{arguments:?}");
    }
}

#[tokio::test]
async fn a_bus_without_a_service_is_distinguished_from_no_bus() {
    let bus = Bus::start(Box::new(|_, _| Vec::new())).await;
    for arguments in ASKING {
        let ran = run(&[arguments, &["--bus", &bus.url, "--timeout", "0.3"][..]].concat()).await;
        assert_eq!(ran.code, 4, "{arguments:?}: {ran:?}");
        let expected = format!(
            "no ovos-tools service answered on {} within 0.3 s: start one with `ovos-tools serve`",
            bus.url
        );
        assert!(ran.err.contains(&expected), "{arguments:?}: {}", ran.err);
        assert_eq!(ran.out, "", "{arguments:?}");
    }
}

#[tokio::test]
async fn a_listener_without_a_handshake_does_not_block_the_client() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/core", listener.local_addr().unwrap());
    let ran = run(&["status", "--bus", &url, "--timeout", "0.3"]).await;
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.err.contains("no bus at"), "{}", ran.err);
}
