//! A reload: what it adds, replaces, removes and leaves alone.
use engine::RunResult;
use host::{ReloadReport, State, ToolboxConfig};
use serde_json::{Value, json};

use crate::support::fixture::{run, within};
use crate::support::rig::{Rig, changes};

/// What a reload should say: every list that is not given is empty.
#[track_caller]
pub(crate) fn check(report: &ReloadReport, expected: Value) {
    let mut all = json!({"added": [], "removed": [], "replaced": [], "unchanged": [], "broken": 0});
    all.as_object_mut()
        .unwrap()
        .extend(expected.as_object().unwrap().clone());
    assert_eq!(changes(report), all, "broken: {:?}", report.broken);
}

#[tokio::test]
async fn a_reload_is_a_diff() {
    let rig = Rig::new();
    let gone = rig.add("gone", "1", &[]);
    rig.add("next", "1", &[]);
    rig.add("same", "1", &[]);
    check(&rig.reload().await, json!({"added": ["gone", "next", "same"]}));
    let same = rig.get("same");
    assert_eq!(
        (same.generation, &same.state, same.tools.tools.len()),
        (1, &State::Ready, 2)
    );
    assert_eq!(same.path, rig.fixtures.path().join("same.so"));

    std::fs::remove_file(gone).unwrap();
    rig.add("next", "2", &[]);
    rig.add("new", "1", &[]);
    std::fs::write(rig.fixtures.path().join("broken.so"), "no library").unwrap();
    let report = rig.reload().await;
    check(
        &report,
        json!({"added": ["new"], "removed": ["gone"], "replaced": ["next"], "unchanged": ["same"], "broken": 1}),
    );
    assert!(report.broken[0].reason.contains("broken.so"), "{report:?}");
    assert_eq!(rig.live().failed, report.broken);
    assert!(rig.live().get("gone").is_none());
    assert_eq!(
        (rig.version("next").await, rig.get("next").generation),
        ("2".into(), 2)
    );
    assert_eq!(
        (rig.version("same").await, rig.get("same").generation),
        ("1".into(), 1)
    );
    rig.seen.wait_for("closed", 2).await;
    let mut drained = rig.drains.asked.lock().unwrap().clone();
    drained.sort();
    assert_eq!(drained, [("gone".into(), 1), ("next".into(), 1)]);
    assert_eq!(rig.seen.count("halted"), 2, "each is halted before it is closed");

    // Touched, or moved: the contents decide.
    let (from, to) = (
        rig.fixtures.path().join("same.so"),
        rig.fixtures.path().join("zzz.so"),
    );
    std::fs::rename(from, &to).unwrap();
    std::fs::remove_file(rig.fixtures.path().join("broken.so")).unwrap();
    check(&rig.reload().await, json!({"unchanged": ["new", "next", "same"]}));
    assert_eq!((rig.get("same").path.clone(), rig.live().failed.len()), (to, 0));
}

#[tokio::test]
async fn a_replacement_that_fails_leaves_the_working_copy() {
    let rig = Rig::new();
    let path = rig.add("arm", "1", &[]);
    check(&rig.reload().await, json!({"added": ["arm"]}));
    let whole = std::fs::read(&path).unwrap();
    for (bytes, reason) in [(&b"garbage"[..], "arm.so"), (&whole[..whole.len() / 2], "arm.so")] {
        let made = rig.fixtures.path().join(".new");
        std::fs::write(&made, bytes).unwrap();
        std::fs::rename(&made, &path).unwrap();
        let report = rig.reload().await;
        check(&report, json!({"broken": 1}));
        assert!(report.broken[0].reason.contains(reason), "{report:?}");
        assert_eq!(report.broken[0].toolbox_id.as_deref(), Some("arm"));
        assert_eq!(
            (rig.version("arm").await, rig.get("arm").generation),
            ("1".into(), 1)
        );
    }
    // One that loads and does not open.
    rig.add("arm", "2", &[]);
    rig.configure("arm", &json!({"refuse_open": true}));
    let report = rig.reload().await;
    check(&report, json!({"broken": 1}));
    assert!(
        report.broken[0].reason.contains("HardwareError: no device"),
        "{report:?}"
    );
    assert_eq!(rig.version("arm").await, "1");
    rig.configure("arm", &json!({}));
    check(&rig.reload().await, json!({"replaced": ["arm"]}));
    assert_eq!(rig.version("arm").await, "2");
}

#[tokio::test]
async fn a_changed_configuration_counts_as_a_change() {
    let rig = Rig::new();
    let schema = r#"",\"config_schema\":{\"properties\":{\"speed\":{\"type\":\"number\"}}}""#;
    rig.add("arm", "1", &[("EXTRA", schema)]);
    rig.configure("arm", &json!({"speed": 1}));
    check(&rig.reload().await, json!({"added": ["arm"]}));
    check(&rig.reload().await, json!({"unchanged": ["arm"]}));
    rig.configure("arm", &json!({"speed": 2}));
    check(&rig.reload().await, json!({"replaced": ["arm"]}));
    assert_eq!(rig.output("arm").await["config"], json!({"speed": 2}));
    rig.configure("arm", &json!({"speed": "fast"}));
    let report = rig.reload().await;
    check(&report, json!({"broken": 1}));
    assert!(report.broken[0].reason.contains("speed: expected"), "{report:?}");
    assert_eq!(rig.output("arm").await["config"], json!({"speed": 2}));
    let off = ToolboxConfig {
        enabled: false,
        ..ToolboxConfig::default()
    };
    rig.obey("arm", off);
    check(&rig.reload().await, json!({"removed": ["arm"]}));
}

const EXCLUSIVE: (&str, &str) = ("EXTRA", r#"",\"exclusive\":true""#);

#[tokio::test]
async fn an_exclusive_toolbox_closes_before_the_next_opens_and_comes_back_when_that_fails() {
    let rig = Rig::new();
    rig.add("arm", "1", &[EXCLUSIVE]);
    check(&rig.reload().await, json!({"added": ["arm"]}));
    rig.add("arm", "2", &[EXCLUSIVE]);
    check(&rig.reload().await, json!({"replaced": ["arm"]}));
    let order: Vec<String> = rig
        .seen
        .events()
        .into_iter()
        .map(|(_, event)| event.kind)
        .collect();
    assert_eq!(order, ["opened", "halted", "closed", "opened"]);
    let mut states: Vec<State> = rig
        .published
        .lock()
        .unwrap()
        .iter()
        .filter_map(|live| Some(live.get("arm")?.state.clone()))
        .collect();
    states.dedup();
    assert_eq!(states, [State::Ready, State::Reloading, State::Ready]);

    // The new section opens nothing: version 2 is opened again with the old one.
    rig.configure("arm", &json!({"refuse_open": 1}));
    rig.add("arm", "3", &[EXCLUSIVE]);
    let report = rig.reload().await;
    check(&report, json!({"broken": 1}));
    assert!(
        report.broken[0]
            .reason
            .contains("the version before it was opened again"),
        "{report:?}"
    );
    assert_eq!(
        (rig.version("arm").await, &rig.get("arm").state),
        ("2".into(), &State::Ready)
    );
    rig.configure("arm", &json!({}));
    check(&rig.reload().await, json!({"replaced": ["arm"]}));
    assert_eq!(rig.version("arm").await, "3");
}

#[tokio::test]
async fn an_exclusive_toolbox_that_neither_opens_says_so_until_it_does() {
    let rig = Rig::new();
    let flag = rig.fixtures.path().join("device");
    std::fs::write(&flag, "").unwrap();
    let device = format!("\"{}\"", flag.display());
    let build = |version: &str| {
        let version = format!("\"{version}\"");
        rig.fixtures.build_as(
            "cam",
            "needs_device",
            &[("VERSION", &version), ("DEVICE", &device), EXCLUSIVE],
        );
    };
    build("1");
    check(&rig.reload().await, json!({"added": ["hostile"]}));
    std::fs::remove_file(&flag).unwrap();
    build("2");
    let report = rig.reload().await;
    check(&report, json!({"broken": 1}));
    assert!(
        report.broken[0].reason.contains("does not reopen either"),
        "{report:?}"
    );
    let failed = rig.get("hostile");
    assert!(
        matches!(&failed.state, State::Failed(reason) if reason.contains("unplugged")),
        "{:?}",
        failed.state
    );
    assert!(
        matches!(run(&*failed.toolbox, 900, "go").await, RunResult::Lost(_)),
        "a closed copy runs nothing"
    );
    std::fs::write(&flag, "").unwrap();
    check(&rig.reload().await, json!({"replaced": ["hostile"]}));
    assert_eq!(
        (rig.version("hostile").await, &rig.get("hostile").state),
        ("2".into(), &State::Ready)
    );
}

#[tokio::test]
async fn a_toolbox_may_refuse_to_be_replaced_or_removed() {
    // Also in words that the service has for a toolbox that cannot answer.
    for kind in ["BusyError", "TimeoutError", "ToolboxClosed"] {
        refuses_to_be_replaced_or_removed(kind).await;
    }
}

async fn refuses_to_be_replaced_or_removed(kind: &str) {
    let rig = Rig::new();
    let path = rig.add("arm", "1", &[("REFUSAL", &format!("\"{kind}\""))]);
    rig.configure("arm", &json!({"recording": true}));
    check(&rig.reload().await, json!({"added": ["arm"]}));
    rig.add("arm", "2", &[]);
    let report = rig.reload().await;
    check(&report, json!({"broken": 1}));
    assert!(
        report.broken[0]
            .reason
            .contains("cannot be replaced now: recording"),
        "{report:?}"
    );
    std::fs::remove_file(path).unwrap();
    let report = rig.reload().await;
    assert!(
        report.broken[0]
            .reason
            .contains("cannot be removed now: recording"),
        "{report:?}"
    );
    assert_eq!(rig.version("arm").await, "1");
}

#[tokio::test]
async fn the_first_file_of_an_id_wins() {
    let rig = Rig::new();
    let first = rig
        .fixtures
        .build_as("a", "well_behaved", &[("VERSION", "\"1\"")]);
    let second = rig
        .fixtures
        .build_as("b", "well_behaved", &[("VERSION", "\"2\"")]);
    let report = rig.reload().await;
    check(&report, json!({"added": ["good"], "broken": 1}));
    let reason = &report.broken[0].reason;
    assert!(
        reason.contains(&*first.to_string_lossy()) && reason.contains(&*second.to_string_lossy()),
        "{reason}"
    );
    std::fs::remove_file(first).unwrap();
    check(&rig.reload().await, json!({"replaced": ["good"]}));
    assert_eq!(rig.version("good").await, "2");
}

#[tokio::test]
async fn requests_for_a_reload_share_one() {
    let rig = Rig::new();
    rig.add("arm", "1", &[]);
    let reports = within(futures_util::future::join_all(
        (0..20).map(|_| rig.manager.reload()),
    ))
    .await;
    assert_eq!(
        reports.iter().filter(|report| report.added == ["arm"]).count(),
        20,
        "{reports:?}"
    );
    assert_eq!(rig.seen.count("opened"), 1);
}
