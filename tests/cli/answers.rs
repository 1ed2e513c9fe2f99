//! The output for people and for scripts: each row is a command and an answer.

use serde_json::{Value, json};

use crate::scripted::{Bus, Ran, run};

/// Runs a command against a service that answers `topic` with `answer`; returns the requests, too.
async fn ask(arguments: &[&str], topic: &str, answer: &Value) -> (Ran, Vec<Value>) {
    let bus = Bus::answering(topic, answer.clone()).await;
    let ran = run(&[arguments, &["--bus", &bus.url][..]].concat()).await;
    (ran, bus.requests(topic))
}

/// Checks that the command sends `request`, prints `text` for people and the data with `--json`, and exits with 1 if
/// there is an `error`.
#[track_caller]
fn verify(arguments: &[&str], ran: &Ran, text: &str, error: Option<&str>) {
    assert_eq!(ran.out, text, "{arguments:?}: {}", ran.err);
    match error {
        None => assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{arguments:?}"),
        Some(error) => assert_eq!(
            (ran.code, ran.err.as_str()),
            (1, &*format!("error: {error}\n")),
            "{arguments:?}"
        ),
    }
}

async fn check(arguments: &[&str], request: Value, answer: Value, text: &str, error: Option<&str>) {
    let topic = format!("ovos.tools.{}", arguments[0]);
    let (ran, asked) = ask(arguments, &topic, &answer).await;
    verify(arguments, &ran, text, error);
    assert_eq!(asked, [request], "{arguments:?}");

    let scripted = [arguments, &["--json"]].concat();
    let (ran, _) = ask(&scripted, &topic, &answer).await;
    verify(&scripted, &ran, &format!("{answer}\n"), error);

    let quiet = [arguments, &["--quiet"]].concat();
    let (ran, _) = ask(&quiet, &topic, &answer).await;
    verify(&quiet, &ran, "", error);
}

fn tools() -> Value {
    json!({"tools": [
        {"name": "add", "description": "Adds two numbers.\nExactly.", "toolbox_id": "math",
         "argument_schema": {"type": "object", "required": ["a", "b"], "properties": {
            "a": {"type": "integer", "description": "first"}, "b": {"type": "integer"},
            "base": {"type": "integer", "minimum": 2, "maximum": 36, "default": 10}}},
         "output_schema": {"type": "object", "properties": {"result": {"type": "integer"}}},
         "meta": {"category": "calculation", "effect": "read", "timeout_ms": 10000, "subsystems": []}},
        {"name": "wave", "description": "Waves. \u{1b}[2J", "toolbox_id": "robot",
         "argument_schema": {"type": "object", "properties": {}}, "output_schema": {"type": "object"},
         "meta": {"category": "motion", "effect": "motion", "timeout_ms": 15000, "subsystems": ["left_arm"]}},
        {"name": "ping", "description": "", "toolbox_id": "math", "argument_schema": {}, "output_schema": {}}
    ]})
}

#[tokio::test]
async fn list_groups_by_toolbox() {
    let text = "\
math (2 tools)
 NAME  EFFECT  ARGUMENTS     DESCRIPTION
 add   read    a, b, [base]  Adds two numbers.
 ping  -       -

robot (1 tool)
 NAME  EFFECT  ARGUMENTS  DESCRIPTION
 wave  motion  -          Waves. \\u{1b}[2J
";
    check(&["list"], json!({"detail": true}), tools(), text, None).await;
    for (selection, expected) in [
        (&["--toolbox", "robot"][..], &["wave"][..]),
        (&["Two", "NUMBERS"], &["add"]),
        (&["math"], &["add", "ping"]),
        (&["Robot"], &["wave"]),
        (&["robot", "waves"], &["wave"]),
        (&["motion"], &["wave"]),
        (&["--effect", "read", "--effect", "motion"], &["add", "wave"]),
        (&["wave", "--effect", "motion", "--toolbox", "robot"], &["wave"]),
    ] {
        let arguments = [&["list", "--json"], selection].concat();
        let (ran, _) = ask(&arguments, "ovos.tools.list", &tools()).await;
        let data: Value = serde_json::from_str(&ran.out).unwrap();
        let names: Vec<&str> = data["tools"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|tool| tool["name"].as_str())
            .collect();
        assert_eq!(names, expected, "{selection:?}");
    }
    let (ran, _) = ask(&["list", "two", "waves"], "ovos.tools.list", &tools()).await;
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (
            1,
            "error: no tool matches (3 tools searched); `ovos-tools list` shows all\n"
        )
    );
    let (ran, _) = ask(&["list", "--toolbox", "drone"], "ovos.tools.list", &tools()).await;
    let error =
        "there is no toolbox `drone` with tools; there are: math, robot; see also `ovos-tools status`";
    verify(&["list", "--toolbox", "drone"], &ran, "", Some(error));
    for (arguments, meant) in [
        (&["list", "--toolbox", "robots"][..], Some("robot")),
        (&["list", "--toolbox", "Math"], Some("math")),
        (&["list", "--toolbox", "turtle"], None),
        (&["list", "robto"], Some("robot")),
        (&["list", "wavee"], Some("wave")),
        (&["list", "robot", "pingg"], Some("ping")),
        (&["list", "turtle"], None),
        // Each word is somewhere.
        (&["list", "robot", "numbers"], None),
    ] {
        let (ran, _) = ask(arguments, "ovos.tools.list", &tools()).await;
        assert_eq!(ran.code, 1, "{arguments:?}");
        let output = meant.map(|name| format!("; did you mean {name:?}?;"));
        match output {
            Some(output) => assert!(ran.err.contains(&output), "{arguments:?}: {}", ran.err),
            None => assert!(!ran.err.contains("did you mean"), "{arguments:?}: {}", ran.err),
        }
    }
    let none = "no tools: `ovos-tools status` shows the toolboxes that are starting, failed or off (`ovos-tools enable ID` turns \
                one on); to add one, put a plugin into a plugins folder (`ovos-tools config` shows plugins_dir), then \
                `ovos-tools reload`\n";
    check(
        &["list"],
        json!({"detail": true}),
        json!({"tools": []}),
        none,
        None,
    )
    .await;
}

#[tokio::test]
async fn get_shows_arguments_and_result() {
    let text = "\
add (math) · read · calculation · at most 10 s
Adds two numbers.
Exactly.

Arguments
 NAME  TYPE           DEFAULT   DESCRIPTION
 a     integer        required  first
 b     integer        required
 base  integer 2..36  10

Result
 NAME    TYPE     DEFAULT  DESCRIPTION
 result  integer  -

Call it with: ovos-tools invoke add a=... b=...
";
    let request = json!({"name": "add", "detail": true});
    check(&["get", "add"], request, tools()["tools"][0].clone(), text, None).await;
    let request = json!({"name": "ad", "detail": true, "toolbox_id": "math"});
    let error = json!({"error": "Unknown tool: 'ad'"});
    check(
        &["get", "ad", "--toolbox", "math"],
        request,
        error,
        "",
        Some("Unknown tool: 'ad'"),
    )
    .await;
}

#[tokio::test]
async fn plan_is_a_table_of_waves() {
    let answer = json!({"name": "fetch", "toolbox_id": "robot", "effect": "motion", "bound_ms": 90000,
        "subsystems": ["left_arm", "gantry"], "mermaid": "flowchart TD\n  a --> b\n", "dot": "digraph {}\n",
        "waves": [
            [{"id": "scan", "name": "scan", "subsystems": [], "effect": "read", "timeout_ms": 500,
              "dependencies": [], "params": {}}],
            [{"id": "reach", "name": "reach", "subsystems": ["left_arm"], "effect": "motion", "timeout_ms": 15000,
              "dependencies": ["scan"], "params": {"object": "cup", "speed": 0.5}},
             {"id": "drive", "name": "drive", "subsystems": ["gantry"], "effect": "motion", "timeout_ms": 60000,
              "dependencies": ["scan"], "params": {"to": [1, 2]}}]]});
    let text = "\
fetch (robot) · motion · at most 90 s · holds left_arm, gantry
 WAVE  ACTION  SUBSYSTEMS  TIMEOUT  AFTER  PARAMS
 1     scan    -           500 ms   -      -
 2     reach   left_arm    15 s     scan   object=cup speed=0.5
       drive   gantry      60 s     scan   to=[1,2]
";
    let request = json!({"name": "fetch", "args": {"object": "cup", "n": 2}});
    check(
        &["plan", "fetch", "object=cup", "n=2"],
        request,
        answer.clone(),
        text,
        None,
    )
    .await;
    for (format, text) in [
        ("mermaid", "flowchart TD\n  a --> b\n".to_owned()),
        ("dot", "digraph {}\n".to_owned()),
        ("json", format!("{answer:#}\n")),
    ] {
        let arguments = ["plan", "fetch", "--format", format];
        let (ran, _) = ask(&arguments, "ovos.tools.plan", &answer).await;
        verify(&arguments, &ran, &text, None);
    }
    let error = json!({"name": "fetch", "error": "PlanError: cycle a -> b -> a"});
    let request = json!({"name": "fetch", "args": {}, "toolbox_id": "robot"});
    let arguments = ["plan", "fetch", "--toolbox", "robot"];
    check(
        &arguments,
        request,
        error,
        "",
        Some("PlanError: cycle a -> b -> a"),
    )
    .await;
}

#[tokio::test]
async fn export_prints_the_tools_of_the_format() {
    let tools = json!([{"type": "function", "function": {"name": "add"}}]);
    let answer = json!({"format": "openai", "tools": tools});
    let request = json!({"format": "openai", "toolbox_id": "math", "names": ["add", "ping"]});
    let arguments = ["export", "openai", "--toolbox", "math", "--names", "add,ping"];
    check(&arguments, request, answer, &format!("{tools:#}\n"), None).await;
    let error = "ValueError: unknown format \"x\"; accepted: anthropic, hume, json, mcp, openai";
    check(
        &["export", "x"],
        json!({"format": "x"}),
        json!({ "error": error }),
        "",
        Some(error),
    )
    .await;
}

#[tokio::test]
async fn reload_tells_what_changed_and_fails_for_a_broken_plugin() {
    let good = json!({"loaded": ["hello", "math"], "total_tools": 6, "tools": [], "added": ["math"], "removed": [],
        "replaced": [], "unchanged": ["hello"], "failed": []});
    let text = "2 toolboxes with 6 tools: hello, math\nadded      math\nunchanged  hello\n";
    let request = json!({"detail": true});
    check(&["reload"], request.clone(), good, text, None).await;
    let bad = json!({"loaded": ["hello"], "total_tools": 1, "unchanged": ["hello"],
        "failed": [{"path": "/p/x.so", "reason": "no symbol toolbox_entry_v1"}]});
    let text = "\
1 toolbox with 1 tool: hello
unchanged  hello

 NOT LOADED  FILE     REASON
 -           /p/x.so  no symbol toolbox_entry_v1
";
    check(
        &["reload"],
        request.clone(),
        bad,
        text,
        Some("1 plugin could not be loaded"),
    )
    .await;
    // The answer of the Python service.
    let reference = json!({"loaded": ["a-tools"], "total_tools": 2});
    check(
        &["reload"],
        request,
        reference,
        "1 toolbox with 2 tools: a-tools\n",
        None,
    )
    .await;
}

#[tokio::test]
async fn cancel_tells_a_cancelled_call_from_one_that_is_not() {
    let request = json!({"call_id": "c-1"});
    let done = json!({"call_id": "c-1", "cancelled": true, "state": "running"});
    check(
        &["cancel", "c-1"],
        request.clone(),
        done,
        "cancelled c-1 (running)\n",
        None,
    )
    .await;
    let ended = json!({"call_id": "c-1", "cancelled": false, "state": "ended"});
    check(
        &["cancel", "c-1"],
        request.clone(),
        ended,
        "",
        Some("c-1 was not cancelled: the call is ended"),
    )
    .await;
    let unknown = json!({"call_id": "c-1", "cancelled": false, "state": "unknown", "error": "no such call"});
    check(
        &["cancel", "c-1"],
        request,
        unknown,
        "",
        Some("c-1 was not cancelled: no such call"),
    )
    .await;
}

fn status() -> Value {
    json!({"service": {"version": "0.1.0", "pid": 42, "uptime_ms": 61000, "ready": true},
        "bus": {"url": "ws://127.0.0.1:8181/core", "connected": true},
        "toolboxes": [
            {"toolbox_id": "math", "state": "live", "isolation": "process", "generation": 1, "version": "1.0.0",
             "path": "/p/libmath.so", "sha256": "00", "tools": 5, "latched": false, "restarts": 0},
            {"toolbox_id": "robot", "state": "live", "isolation": "process", "generation": 3, "version": "0.2.0",
             "path": "/p/librobot.so", "sha256": "00", "tools": 9, "latched": true, "stop_id": "s-7",
             "stop_reason": "asked on the bus", "restarts": 1, "backend": {"state": "simulator", "reason": null}},
            {"toolbox_id": "drone", "state": "live", "isolation": "process", "generation": 1, "version": "0.1.0",
             "path": "/p/libdrone.so", "sha256": "00", "tools": 35, "latched": false, "restarts": 0,
             "backend": {"unit": "drone", "vehicle": "drone", "state": "connected", "reason": "", "simulated": true}}],
        "failed": [{"path": "/p/x.so", "reason": "not an ELF file", "toolbox_id": null}],
        "calls": [{"call_id": "c-1", "name": "wave", "toolbox_id": "robot", "phase": "running", "effect": "motion",
                   "session_id": "s", "subsystems": ["left_arm"], "elapsed_ms": 1500, "generation": 3}],
        "counters": {"calls": 12}, "pending_config": ["service.max_calls"]})
}

#[tokio::test]
async fn status_shows_stops_and_running_calls() {
    let text = "\
ovos-tools 0.1.0 · process 42 · up 61 s · ready
bus ws://127.0.0.1:8181/core · connected

 TOOLBOX  STATE          TOOLS  VERSION  GENERATION  ISOLATION  RESTARTS  BACKEND
 math     live           5      1.0.0    1           process    0         -
 robot    live, stopped  9      0.2.0    3           process    1         simulator
 drone    live           35     0.1.0    1           process    0         simulator: connected
robot is in emergency stop: asked on the bus; when it is safe, run: ovos-tools resume robot s-7

 NOT LOADED  FILE     REASON
 -           /p/x.so  not an ELF file

 CALL  TOOL          PHASE    SUBSYSTEMS  RUNS FOR
 c-1   wave (robot)  running  left_arm    1.5 s

counters: calls 12

changed in the files but not applied yet (reload or restart): service.max_calls
";
    check(&["status"], json!({}), status(), text, None).await;
}

#[tokio::test]
async fn resume_lifts_the_stop_it_names() {
    let request = json!({"toolbox_id": "robot", "stop_id": "s-7"});
    let lifted = json!({"toolboxes": [{"toolbox_id": "robot", "ok": true, "stop_id": "s-7"}]});
    let text = " TOOLBOX  STATE    STOP ID  ERROR\n robot    resumed  s-7\n";
    check(&["resume", "robot", "s-7"], request.clone(), lifted, text, None).await;
    let refused =
        json!({"toolboxes": [{"toolbox_id": "robot", "ok": false, "error": "button still pressed"}]});
    let text =
        " TOOLBOX  STATE        STOP ID  ERROR\n robot    NOT resumed  -        button still pressed\n";
    let error = "not resumed: robot: button still pressed";
    check(&["resume", "robot", "s-7"], request, refused, text, Some(error)).await;
}

#[tokio::test]
async fn resume_without_an_id_lifts_nothing_and_shows_it() {
    for (toolbox, error) in [
        (
            "robot",
            "robot is in emergency stop (asked on the bus); when it is safe, run: ovos-tools resume robot s-7",
        ),
        ("math", "math is not in emergency stop: there is nothing to lift"),
        (
            "camera",
            "there is no toolbox \"camera\"; toolboxes: math, robot, drone",
        ),
    ] {
        let bus = Bus::answering("ovos.tools.status", status()).await;
        let ran = run(&["resume", toolbox, "--bus", &bus.url]).await;
        assert_eq!((ran.code, ran.err), (2, format!("error: {error}\n")));
        assert_eq!(bus.requests("ovos.tools.resume"), Vec::<Value>::new());
    }
}

#[tokio::test]
async fn an_answer_of_another_shape_is_an_error_of_its_own() {
    for (command, answer) in [
        ("list", json!({"tools": 5})),
        ("status", json!({"toolboxes": "x"})),
    ] {
        let topic = format!("ovos.tools.{command}");
        let (ran, _) = ask(&[command], &topic, &answer).await;
        assert_eq!(ran.code, 1, "{ran:?}");
        let expected = format!("the answer to {topic} cannot be read");
        assert!(ran.err.contains(&expected), "{}", ran.err);
    }
}
