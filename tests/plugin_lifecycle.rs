//! The promises of a toolbox's life, for toolboxes in the service's own process.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]

#[path = "support/fixture.rs"]
mod fixture;
#[path = "support/lifecycle.rs"]
mod lifecycle;
#[path = "support/rig.rs"]
mod rig;

use lifecycle::check;
use rig::Rig;
use serde_json::json;

const ISOLATION: ovos_tools::plugin::Isolation = ovos_tools::plugin::Isolation::InProcess;

#[tokio::test]
async fn generations_are_limited_and_the_limit_counts_libraries() {
    let rig = Rig::with(|settings| settings.max_generations = 2);
    rig.add("arm", "1", &[]);
    rig.reload().await;
    rig.add("arm", "2", &[]);
    check(&rig.reload().await, json!({"replaced": ["arm"]}));
    // Another configuration needs no other library.
    rig.configure("arm", &json!({"speed": 1}));
    check(&rig.reload().await, json!({"replaced": ["arm"]}));
    assert_eq!(rig.get("arm").generation, 3);
    rig.add("arm", "3", &[]);
    let report = rig.reload().await;
    check(&report, json!({"broken": 1}));
    assert!(report.broken[0].reason.contains("restart needed"), "{report:?}");
    assert_eq!(rig.version("arm").await, "2");
}
