//! What `find_tools` finds among the tools of the toolboxes that ship, as the committed lists have them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test panics")]

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use client::payload::ToolboxStatus;
use door::find::CallTool;
use door::{Finder, Guide, ListedTool};
use ovos_toolbox_wire::{Effect, Object, ToolList};
use proptest::prop_assert_eq;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

/// How many tools a model surely reads.
const FIRST: usize = 3;

fn read_text(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

fn read(file: &str) -> Value {
    serde_json::from_str(&read_text(file)).unwrap()
}

/// The tools of all toolboxes that ship. Doors show stops of their own, and never what lifts a stop.
fn tools() -> Vec<Arc<ListedTool>> {
    let toolboxes = ["drone", "gstreamer", "hello", "hello_c", "math", "robot"];
    let of = |id: &str| {
        let list: ToolList =
            serde_json::from_value(read(&format!("../../schemas/toolboxes/{id}.json"))).unwrap();
        let tools = list.tools.into_iter();
        let tools = tools.filter(|tool| !matches!(tool.effect, Effect::Stop | Effect::Resume));
        let id = id.to_owned();
        let registered = tools.map(move |tool| {
            let Value::Object(arguments) = tool.argument_schema else {
                panic!("a schema")
            };
            Arc::new(ListedTool {
                exported: tool.name.clone(),
                name: tool.name,
                toolbox_id: id.clone(),
                effect: tool.effect,
                category: tool.category,
                description: tool.description,
                arguments: Arc::new(arguments),
                output: None,
                agent_end: Vec::new(),
            })
        });
        registered.collect::<Vec<_>>()
    };
    toolboxes.into_iter().flat_map(of).collect()
}

fn guides() -> Vec<Guide> {
    let of = |id: &str, guide: Option<&str>| {
        Guide::new(&ToolboxStatus {
            toolbox_id: id.to_owned(),
            description: format!("What {id} is for."),
            guide: guide.map(str::to_owned),
            ..ToolboxStatus::default()
        })
    };
    vec![
        of("hello_c", None),
        of("robot", Some("# Using the robot\n\nMetres.")),
        of("away", None),
    ]
}

fn finder() -> Finder {
    let tools = tools();
    let guides = guides();
    Finder::new(&tools, guides.iter())
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("{other}"),
    }
}

/// How many requests of a file have a right tool among the first ones.
#[track_caller]
fn at_least(least: usize, file: &str) {
    let finder = finder();
    let requests = read(file);
    let requests = requests.as_array().unwrap();
    let missed: Vec<String> = requests
        .iter()
        .filter_map(|row| {
            let (request, right) = (row["request"].as_str().unwrap(), row["right"].as_array().unwrap());
            let found = finder.ranked(request).into_iter().take(FIRST);
            let found: Vec<&str> = found.map(|tool| tool.name.as_str()).collect();
            let is_right = found.iter().any(|name| right.contains(&json!(name)));
            (!is_right).then(|| format!("{request:?}: found {found:?}, right are {right:?}"))
        })
        .collect();
    let good = requests.len() - missed.len();
    assert!(good >= least, "{good} of {} right: {missed:#?}", requests.len());
}

/// Written by people who had seen neither the search nor the requests that it knows.
#[test]
fn plain_requests_find_their_tool() {
    at_least(96, "tests/find/requests.json");
    at_least(25, "tests/find/german.json");
}

/// The search knows how people ask for the tools that ship; that does not put them before those of others.
#[test]
fn tools_of_others_are_found_by_what_they_say() {
    let mut tools = tools();
    let rows = [
        (
            "get_forecast",
            "Weather forecast for a city.",
            "what's the weather in Berlin tomorrow",
        ),
        (
            "play_music",
            "Play a song, an artist or a playlist.",
            "play some jazz music",
        ),
        (
            "make_coffee",
            "Brew coffee with the kitchen machine.",
            "make me a coffee, please",
        ),
        (
            "set_light",
            "Switch a lamp on or off, or dim it.",
            "turn the lamp in the kitchen off",
        ),
        (
            "set_timer",
            "Start a timer that rings.",
            "start a timer for ten minutes",
        ),
        (
            "search_wikipedia",
            "Look something up in Wikipedia.",
            "look up Ada Lovelace on Wikipedia",
        ),
        (
            "read_mail",
            "Read the newest mail aloud.",
            "is there any new mail for me?",
        ),
        (
            "open_blinds",
            "Raise or lower the blinds of a window.",
            "lower the blinds",
        ),
    ];
    tools.extend(rows.map(|(name, description, _)| {
        Arc::new(ListedTool {
            exported: name.to_owned(),
            name: name.to_owned(),
            toolbox_id: "house".to_owned(),
            effect: Effect::Write,
            category: None,
            description: description.to_owned(),
            arguments: Arc::default(),
            output: None,
            agent_end: Vec::new(),
        })
    }));
    let finder = Finder::new(&tools, [].iter());
    for (name, _, request) in rows {
        let found = finder.ranked(request).into_iter().take(FIRST);
        let found: Vec<&str> = found.map(|tool| tool.name.as_str()).collect();
        assert!(found.contains(&name), "{request}: {found:?}");
    }
}

/// What a file of known requests has would be found in any case.
#[test]
fn the_requests_that_judge_the_search_are_not_among_those_that_it_knows() {
    let examples = read_text("src/find/requests.txt").to_lowercase();
    let examples: HashSet<&str> = examples.lines().collect();
    for file in ["tests/find/requests.json", "tests/find/german.json"] {
        for row in read(file).as_array().unwrap() {
            let request = row["request"].as_str().unwrap().to_lowercase();
            assert!(!examples.contains(request.as_str()), "{file}: {request}");
        }
    }
}

#[test]
fn the_known_requests_name_tools_that_ship() {
    let tools = tools();
    let text = read_text("src/find/requests.txt");
    let groups = text.lines().filter_map(|line| line.strip_prefix("# "));
    for name in groups.flat_map(|group| group.split(", ")) {
        assert!(tools.iter().any(|tool| tool.name == name), "{name}");
    }
}

#[test]
fn the_forms_of_a_word_are_one_word() {
    let finder = finder();
    let first = |request: &str| finder.ranked(request).first().map(|tool| tool.name.clone());
    for (requests, expected) in [
        (["wave", "waving", "waves", "WAVE!", "please wave now"], "wave"),
        (
            ["take off", "takeoff", "taking off", "take-off", "lift off"],
            "takeoff",
        ),
        (["dance", "dancing", "danced", "do dance", "tanze"], "dance"),
        (
            [
                "unit_convert",
                "convert units",
                "converting a unit",
                "UnitConvert",
                "unit conversion convert",
            ],
            "unit_convert",
        ),
    ] {
        for request in requests {
            assert_eq!(first(request).as_deref(), Some(expected), "{request}");
        }
    }
}

#[test]
fn words_that_say_nothing_find_nothing_and_the_answer_says_what_there_is() {
    let finder = finder();
    for query in [
        "could you please do it for me",
        "the and of",
        "?!",
        "xyzzy plugh",
        "was ist das",
    ] {
        let found = finder.find(&object(json!({ "query": query })), 4096).unwrap();
        assert_eq!(found["tools"], json!([]), "{query}: {found}");
        let toolboxes = found["toolboxes"].as_array().unwrap();
        assert_eq!(
            toolboxes.len(),
            2,
            "a toolbox without tools here is not named: {found}"
        );
        assert_eq!(
            toolboxes[1],
            json!({
                "toolbox": "robot", "for": "What robot is for.", "tools": toolboxes[1]["tools"],
                "guide": "skill://robot/SKILL.md",
            })
        );
    }
}

#[test]
fn what_is_found_names_toolbox_effect_and_arguments_within_limit_and_budget() {
    let finder = finder();
    let find = |arguments: Value, budget| finder.find(&object(arguments), budget).unwrap()["tools"].take();
    let found = find(json!({"query": "turn"}), 1 << 20);
    assert_eq!(found.as_array().unwrap().len(), 5);
    for (limit, expected) in [
        (json!(1), 1),
        (json!(8), 8),
        (json!(10_000), 20),
        (json!("all"), 5),
    ] {
        let found = find(
            json!({"query": "move turn object camera motor", "limit": limit}),
            1 << 20,
        );
        assert_eq!(found.as_array().unwrap().len(), expected, "{limit}");
    }
    let found = find(json!({"query": "turn", "limit": 20}), 1500);
    let count = found.as_array().unwrap().len();
    assert!(
        (1..20).contains(&count) && found.to_string().len() < 4000,
        "{count}: {found}"
    );
    assert_eq!(find(json!({"query": "turn"}), 1).as_array().unwrap().len(), 1);
    let wave = &find(json!({"query": "wave"}), 4096)[0];
    assert_eq!(
        (&wave["name"], &wave["toolbox"], &wave["effect"]),
        (&json!("wave"), &json!("robot"), &json!("motion"))
    );
    assert!(wave["arguments"]["properties"]["arm"].is_object(), "{wave}");
    assert!(!wave.to_string().contains("\"title\":\""), "{wave}");
}

#[test]
fn a_request_that_cannot_be_searched_says_what_to_send() {
    let finder = finder();
    for (arguments, expected) in [
        (json!({}), "expected `query`"),
        (json!({"query": " "}), "expected `query`"),
        (json!({"query": 5}), "expected `query`"),
        (
            json!({"guide": "nowhere"}),
            "there is no toolbox 'nowhere'; there are hello_c, robot",
        ),
    ] {
        let why = finder.find(&object(arguments.clone()), 4096).unwrap_err();
        assert!(why.contains(expected), "{arguments}: {why}");
    }
}

#[test]
fn the_page_of_a_toolbox_is_a_skill() {
    let finder = finder();
    let page = |id: &str| {
        let found = finder.find(&object(json!({ "guide": id })), 1 << 20).unwrap();
        found["guide"].as_str().unwrap().to_owned()
    };
    let robot = page("robot");
    let head = "---\nname: \"robot\"\ndescription: \"What robot is for. How the tools of the toolbox robot go together: ";
    assert!(robot.starts_with(head), "{robot}");
    for part in [
        "---\n\n# Using the robot\n\nMetres.\n",
        "## Tools: movement\n",
        "- `wave` (motion): Wave with the robot's arm, to greet or say goodbye.",
    ] {
        assert!(robot.contains(part), "{part:?} in {robot}");
    }
    assert!(
        !robot.contains("`takeoff`") && !robot.contains("- `stop`"),
        "{robot}"
    );
    // Names of skills have no underscore. A toolbox without a guide has its description and its tools.
    let hello = page("skill://hello-c/SKILL.md");
    assert!(hello.starts_with("---\nname: \"hello-c\"\n"), "{hello}");
    assert!(
        hello.contains("# hello_c\n\nWhat hello_c is for.\n") && hello.contains("- `hello_c` (read): "),
        "{hello}"
    );
    assert_eq!(page("hello_c"), hello);
    let short = finder.find(&object(json!({"guide": "robot"})), 300).unwrap();
    let short = short["guide"].as_str().unwrap();
    assert!(
        short.len() < 400 && short.contains("This page is shortened"),
        "{short}"
    );
}

#[test]
fn a_call_of_call_tool_is_a_call_of_the_tool() {
    let read = |arguments: Value| CallTool::read(&object(arguments));
    for arguments in [json!({"a": 1}), json!("{\"a\": 1}")] {
        let call = read(json!({"name": " add ", "arguments": arguments})).unwrap();
        assert_eq!(
            (call.name.as_str(), Value::Object(call.arguments)),
            ("add", json!({"a": 1}))
        );
    }
    for none in [json!(null), json!({}), json!("")] {
        assert!(
            read(json!({"name": "add", "arguments": none}))
                .unwrap()
                .arguments
                .is_empty()
        );
    }
    for wrong in [
        json!({}),
        json!({"name": ""}),
        json!({"name": 5}),
        json!({"name": "add", "arguments": 5}),
        json!({"name": "add", "arguments": "{\"a\""}),
    ] {
        assert!(
            read(wrong.clone())
                .unwrap_err()
                .starts_with("call_tool: expected `"),
            "{wrong}"
        );
    }
}

#[test]
fn an_unknown_name_is_answered_with_similar_ones() {
    let finder = finder();
    for (name, expected) in [
        ("take_picture", "capture_photo"),
        ("robot__wave_hand", "wave"),
        ("battery", "battery_status"),
    ] {
        assert!(
            finder.like(name).contains(&expected),
            "{name}: {:?}",
            finder.like(name)
        );
    }
}

#[test]
fn any_text_is_searched() {
    let finder = finder();
    let texts = (
        "(?s).{0,80}",
        proptest::collection::vec("[a-zäöüß'_-]{1,12}", 0..12),
    );
    let mut runner = TestRunner::default();
    let searched = runner.run(&texts, |(text, words)| {
        for request in [text, words.join(" ")] {
            let found = finder.ranked(&request);
            let mut names: Vec<&str> = found.iter().map(|tool| tool.exported.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            prop_assert_eq!(names.len(), found.len(), "each tool once");
        }
        Ok(())
    });
    searched.unwrap();
}
