//! An open toolbox that behaves well: what the engine can rely on from open to close.
use crate::support::fixture::{FixtureFolder, all, completed, error, output, run, start, within};
use engine::{NoAnswer, RunId, RunResult, Toolbox};
use ovos_toolbox_wire::{Conclusion, Object};
use serde_json::json;

#[tokio::test]
async fn lists_plans_runs_and_concludes() {
    let fixtures = FixtureFolder::new();
    let (toolbox, _) = fixtures.open_with("well_behaved", &[], r#"{"speed":3}"#).await;
    let tools = within(toolbox.tools()).await.unwrap();
    assert_eq!(
        tools
            .tools
            .iter()
            .map(|t| t.definition.name.as_str())
            .collect::<Vec<_>>(),
        ["work", "move"]
    );
    assert!(tools.dropped.is_empty());

    let args = Object::new();
    let plan = within(toolbox.plan("move", &args)).await.unwrap().unwrap();
    assert_eq!(
        plan.actions.iter().map(|a| a.name.as_str()).collect::<Vec<_>>(),
        ["lift", "turn"]
    );
    assert_eq!(
        within(toolbox.plan("work", &args)).await.unwrap(),
        None,
        "TB_UNKNOWN_TOOL means: no plan of its own"
    );
    let mut impossible = Object::new();
    impossible.insert("impossible".into(), json!(1));
    assert_eq!(
        within(toolbox.plan("move", &impossible))
            .await
            .unwrap_err()
            .into_failure()
            .to_string(),
        "PlanError: cannot be done"
    );

    assert_eq!(output(&toolbox, 1).await["config"], json!({"speed": 3}));
    assert_eq!(error(run(&toolbox, 2, "refuse").await), "ValueError: refused");

    let report = completed();
    let concluded = within(toolbox.conclude("move", &args, &report)).await.unwrap();
    assert_eq!(concluded, Some(Conclusion::Output(json!({"success": true}))));
    assert_eq!(
        within(toolbox.conclude("work", &args, &report)).await.unwrap(),
        None
    );
    assert_eq!(toolbox.counts(), host::Counts::default());
}

#[tokio::test]
async fn a_cancel_ends_a_run_and_is_harmless_otherwise() {
    let fixtures = FixtureFolder::new();
    let (toolbox, seen) = fixtures.open("well_behaved").await;
    let waiting = start(&toolbox, 1, "wait");
    seen.wait_for("started", 1).await;
    toolbox.cancel(RunId(1));
    assert_eq!(within(waiting).await, RunResult::Cancelled);
    toolbox.cancel(RunId(1));
    toolbox.cancel(RunId(77));
    assert_eq!(output(&toolbox, 2).await["version"], "1");
}

#[tokio::test]
async fn messages_reach_subscribers_and_requests_are_answered_once() {
    let fixtures = FixtureFolder::new();
    let (toolbox, seen) = fixtures.open("well_behaved").await;
    toolbox.message("not.subscribed", "{}");
    toolbox.message("speak", r#"{"ask":1}"#);
    seen.wait_for("heard", 1).await;
    assert_eq!(output(&toolbox, 1).await["last"], "asked refused");
    let request = seen.requests().remove(0);
    assert_eq!(
        (request.topic.as_str(), request.data),
        ("time.ask", json!({"zone": "utc"}))
    );
    assert!(toolbox.respond(request.id, &Ok(json!({"time": "noon"}))));
    assert!(
        !toolbox.respond(request.id, &Ok(json!({}))),
        "the second answer has nowhere to go"
    );
    seen.wait_for("answered", 1).await;
    let output = output(&toolbox, 2).await;
    assert_eq!(
        (&output["last"], &output["messages"]),
        (&json!("answer 0 1"), &json!(1))
    );
}

#[tokio::test]
async fn closing_ends_every_run_and_later_ones_say_so() {
    let fixtures = FixtureFolder::new();
    let (toolbox, seen) = fixtures.open("well_behaved").await;
    let waiting = start(&toolbox, 1, "wait");
    seen.wait_for("started", 1).await;
    assert!(within(toolbox.close()).await);
    assert_eq!(within(waiting).await, RunResult::Cancelled);
    assert_eq!(seen.count("closed"), 1);
    let RunResult::Lost(failure) = run(&toolbox, 2, "go").await else {
        panic!("a closed toolbox runs nothing")
    };
    assert_eq!(failure.kind, "ToolboxClosed");
    let refusal = within(toolbox.halt(all(true, 1))).await.unwrap_err();
    assert!(matches!(&refusal, NoAnswer::Closed(_)), "{refusal:?}");
    assert_eq!(refusal.into_failure().kind, "ToolboxClosed");
    assert!(within(toolbox.close()).await, "closing twice is closing once");
}

#[tokio::test]
async fn dropping_a_toolbox_closes_it() {
    let fixtures = FixtureFolder::new();
    let (toolbox, seen) = fixtures.open("well_behaved").await;
    drop(toolbox);
    seen.wait_for("closed", 1).await;
}
