//! `ovos-tools doctor`: what is found, and how it is mended.

use std::path::Path;

use serde_json::{Value, json};

use crate::scripted::{Bus, run};

/// Runs it against a bus whose services answer with these lists of tools, with this section of the configuration.
async fn examine(lists: Vec<Value>, section: Value) -> (i32, Value) {
    let bus = Bus::start(Box::new(move |asked, _| {
        let lists = lists.iter().filter(|_| asked == "ovos.tools.list");
        lists
            .map(|tools| ("ovos.tools.list.response".to_owned(), json!({ "tools": tools })))
            .collect()
    }))
    .await;
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("mycroft.conf");
    let mut sections = json!({"service": {"plugins_dir": [home.path().join("plugins")]}});
    sections
        .as_object_mut()
        .unwrap()
        .extend(section.as_object().unwrap().clone());
    std::fs::write(
        &file,
        json!({"PHAL": {"ovos-phal-plugin-tools": sections}}).to_string(),
    )
    .unwrap();
    std::fs::create_dir(home.path().join("plugins")).unwrap();
    std::fs::write(home.path().join("plugins/broken.so"), "no library").unwrap();
    let ran = run(&[
        "doctor",
        "--json",
        "--bus",
        &bus.url,
        "--config",
        file.to_str().unwrap(),
    ])
    .await;
    (
        ran.code,
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}")),
    )
}

#[track_caller]
fn told(report: &Value, part: &str, state: &str, found: &str, mend: &str) {
    let findings = report["findings"].as_array().unwrap();
    let fits = |finding: &&Value| {
        let text = |key: &str| finding[key].as_str().unwrap_or_default();
        text("part") == part
            && text("state") == state
            && text("found").contains(found)
            && text("mend").contains(mend)
    };
    assert!(
        findings.iter().any(|finding| fits(&finding)),
        "no {part}: {found}: {report:#}"
    );
}

fn ours() -> Value {
    json!([{"name": "add", "meta": {"effect": "read"}}])
}

#[tokio::test]
async fn every_service_that_answers_is_counted() {
    let python = json!([{"name": "add"}]);
    for (lists, state, found, mend) in [
        (vec![ours()], "good", "one ovos-tools answers", ""),
        (vec![], "broken", "no service answers", "ovos-tools serve"),
        (
            vec![python.clone()],
            "broken",
            "only ovos-PHAL-plugin-tools",
            "\"enabled\": false",
        ),
        (
            vec![ours(), python],
            "broken",
            "ovos-PHAL-plugin-tools answers, too",
            "\"enabled\": false",
        ),
        (
            vec![ours(), ours()],
            "broken",
            "2 ovos-tools answer",
            "stop all but one",
        ),
    ] {
        let (_, report) = examine(lists, json!({})).await;
        told(&report, "service", state, found, mend);
    }
}

#[tokio::test]
async fn what_a_section_names_is_looked_at() {
    let section = json!({
        "robot": {"ports": {"left": "/dev/null", "right": "/dev/ovos-tools-missing"}, "ros": {"interfaces": ["127.0.0.1", "192.0.2.7"]}},
        "drone": {"mavsdk_server": "/nowhere/mavsdk_server"},
        "wrong": {"isolation": "nowhere"},
    });
    let (code, report) = examine(vec![ours()], section).await;
    assert_eq!(code, 1);
    for (part, state, found, mend) in [
        ("messagebus", "good", "connected to ws://", ""),
        (
            "configuration",
            "broken",
            "isolation",
            "correct the section `wrong`",
        ),
        ("toolbox robot", "good", "may use /dev/null", ""),
        (
            "toolbox robot",
            "broken",
            "there is no /dev/ovos-tools-missing",
            "/dev/serial/by-id",
        ),
        ("toolbox robot", "good", "has the address 127.0.0.1", ""),
        (
            "toolbox robot",
            "broken",
            "has no address 192.0.2.7",
            "ip -brief address",
        ),
        (
            "toolbox drone",
            "broken",
            "mavsdk_server was not found",
            "pip install mavsdk-grpc",
        ),
    ] {
        told(&report, part, state, found, mend);
    }
    let broken = report["findings"].as_array().unwrap().iter();
    let broken = broken.filter_map(|finding| finding["part"].as_str()?.strip_prefix("plugin "));
    let files: Vec<&Path> = broken.map(Path::new).collect();
    assert!(files.iter().any(|file| file.ends_with("broken.so")), "{report:#}");
}

#[tokio::test]
async fn without_a_bus_it_says_how_to_get_one() {
    let ran = run(&["doctor", "--bus", "ws://127.0.0.1:9/core"]).await;
    assert_eq!(ran.code, 1);
    assert!(
        ran.out
            .contains("broken   messagebus: no bus at ws://127.0.0.1:9/core"),
        "{ran:?}"
    );
    assert!(
        ran.out.contains("ovos-tools serve --embedded-bus auto"),
        "{ran:?}"
    );
}
