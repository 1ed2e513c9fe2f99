//! Web pages as clients, in a real browser.

use serde_json::{Value, json};

use crate::mcp::door::{Listening, Stage};
use crate::support::console::browser;
use crate::support::process::Process;
use crate::support::python::node;

#[test]
fn a_page_of_a_listed_origin_uses_the_door_and_one_of_another_cannot() {
    let Some(browser) = browser() else { return };
    let stage = Stage::new(&json!({ "http_origins": ["http://localhost"] }));
    let door = Listening::start(&stage);
    let Some(mut command) = node("browser.mjs", &stage.scene.sandbox) else {
        return;
    };
    let profiles = stage.scene.sandbox.path("profiles");
    command.arg(browser).args([&door.url, &door.token]).arg(profiles);
    let output = Process::start("browser", &stage.scene.sandbox, command).finish();
    let of = |host: &str| -> Value {
        let mut reports = output
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let is_of = |report: &Value| report["origin"].as_str().unwrap().starts_with(host);
        reports.find(is_of).unwrap_or_else(|| panic!("{host}: {output}"))["steps"].take()
    };

    let own_origin = of("http://localhost:");
    for lists in ["modern lists", "legacy lists"] {
        let names = own_origin[lists]
            .as_array()
            .unwrap_or_else(|| panic!("{own_origin:#}"));
        assert!(
            names.contains(&json!("add")) && names.contains(&json!("emergency_stop")),
            "{own_origin:#}"
        );
    }
    for (step, expected) in [
        ("modern calls", json!(42)),
        ("legacy opens", json!(202)),
        ("legacy calls", json!(42)),
        ("legacy listens", json!(200)),
        ("legacy ends", json!(200)),
        // It reads why it is not let in.
        ("without the token", json!(401)),
    ] {
        assert_eq!(own_origin[step], expected, "{step}: {own_origin:#}");
    }

    let foreign = of("http://127.0.0.1:");
    for (step, result) in foreign.as_object().unwrap() {
        let expected = match step.as_str() {
            "sends blindly" => json!("opaque"),
            _ => json!("TypeError: Failed to fetch"),
        };
        assert_eq!(*result, expected, "{step}: {foreign:#}");
    }
    assert_eq!(
        foreign.as_object().unwrap().len(),
        own_origin.as_object().unwrap().len()
    );
}
