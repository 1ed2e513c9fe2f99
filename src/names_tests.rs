//! Attacks on names: toolboxes whose tools are called like aliases, stops and portable names of others.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::names::{MAX_NAME, Meaning, NamedTool, Names, Stops, alias, fold, is_portable, portable_name};

/// Toolboxes that are known and offer no tools.
const IDS: [&str; 2] = ["off", "broken"];

const STOP: &str = "stop";

fn tool<'a>(toolbox_id: &'a str, name: &'a str) -> NamedTool<'a> {
    NamedTool {
        toolbox_id,
        name,
        stops: name == STOP,
        yields: false,
    }
}

/// The machine, and a mount with these tools, none of which stops anything.
fn names(foreign: &[&str]) -> (Names, Vec<(String, String)>) {
    let mut tools = vec![tool("robot", "wave"), tool("robot", STOP), tool("my-arm", "lift")];
    tools.extend(foreign.iter().map(|name| NamedTool {
        stops: false,
        ..tool("mount", name)
    }));
    let owners = tools
        .iter()
        .map(|tool| (tool.toolbox_id.to_owned(), tool.name.to_owned()));
    (Names::new(&tools, IDS), owners.collect())
}

#[test]
fn no_tool_takes_a_name_of_another_toolbox() {
    let portable = portable_name("robot", "wave");
    let portable = portable.as_str();
    // a tool of the mount; what the name means then: a tool of the machine, or none
    for (name, means) in [
        ("robot__wave", Some("robot/wave")),
        ("robot__stop", Some("robot/stop")),
        ("robot__jump", None),
        ("robot__", Some("mount/robot__")),
        ("Robot__Wave", None),
        ("ROBOT__STOP", None),
        ("robot--wave", None),
        ("my_arm__lift", None),
        ("my-arm__lift", Some("my-arm/lift")),
        ("MY-ARM__lift", None),
        ("off__wave", None),
        ("off__stop", None),
        ("broken__stop", None),
        ("Off__stop", None),
        ("stop", Some("robot/stop")),
        ("Stop", None),
        ("STOP", None),
        (portable, Some("robot/wave")),
        // Names that belong to no other toolbox.
        ("robot_wave", Some("mount/robot_wave")),
        ("robot", Some("mount/robot")),
        ("robots__wave", Some("mount/robots__wave")),
        ("mount__robot__wave", Some("mount/mount__robot__wave")),
        ("_obot__stop", Some("mount/_obot__stop")),
        ("Wave", Some("mount/Wave")),
        ("ovos_tools_stop", Some("mount/ovos_tools_stop")),
        ("emergency_stop", Some("mount/emergency_stop")),
    ] {
        let (names, tools) = names(&[name]);
        let text = |place: usize| format!("{}/{}", tools[place].0, tools[place].1);
        let found = match names.find(name, None) {
            Meaning::One(place) => Some(text(place)),
            Meaning::None => None,
            Meaning::Several(several) => panic!("{name}: {several:?}"),
        };
        assert_eq!(found.as_deref(), means, "{name}");
        // It is called by its alias, or with its toolbox_id, and the names of the machine stay its own.
        let place = tools.len() - 1;
        assert_eq!(names.find(name, Some("mount")), Meaning::One(place), "{name}");
        assert_eq!(
            names.find(&alias("mount", name), None),
            Meaning::One(place),
            "{name}"
        );
        let own = means == Some(&*format!("mount/{name}"));
        assert_eq!(names.rename_reasons()[place].is_none(), own, "{name}");
        assert_eq!(names.call_names()[place] == name, own, "{name}");
        for (place, (id, own)) in tools.iter().enumerate().take(3) {
            assert_eq!(names.find(&alias(id, own), None), Meaning::One(place), "{name}");
            assert_eq!(names.find(own, None), Meaning::One(place), "{name}");
            assert_eq!(&names.call_names()[place], own, "{name}");
        }
    }
}

#[test]
fn every_call_name_means_its_tool() {
    let all = [
        tool("a", "b__c"),
        tool("a__b", "c"),
        tool("a_", "x"),
        tool("a", "_x"),
        tool("x", "b__c"),
        tool("x", "c"),
        tool("x", "a__b"),
        tool("y", "x__c"),
        tool("Y", "größe"),
        tool("y", STOP),
        tool("x", STOP),
    ];
    let names = Names::new(&all, ["a__b__c"]);
    for (place, tool) in all.iter().enumerate() {
        let name = &names.call_names()[place];
        assert!(is_portable(name), "{tool:?} {name}");
        assert_eq!(names.find(name, None), Meaning::One(place), "{tool:?} {name}");
        assert_eq!(
            names.find(name, Some(tool.toolbox_id)),
            Meaning::One(place),
            "{tool:?} {name}"
        );
        assert_eq!(names.find(name, Some("other")), Meaning::None, "{tool:?} {name}");
    }
}

#[test]
fn the_alias_of_a_toolbox_without_tools_is_taken_over_by_no_shorter_id() {
    let tools = [tool("a", "b__c")];
    assert_eq!(Names::new(&tools, []).find("a__b__c", None), Meaning::One(0));
    let names = Names::new(&tools, ["a__b"]);
    assert_eq!(names.find("a__b__c", None), Meaning::None);
    assert_eq!(
        (
            names.owner_without_tools("a__b__c"),
            names.owner_without_tools("a__c")
        ),
        (Some("a__b"), None)
    );
}

#[test]
fn a_name_that_may_mean_a_stop_stops() {
    let (names, tools) = names(&["robot__stop", "ROBOT__Stop", "stop", "Stop"]);
    let stop = tools.iter().position(|tool| tool.1 == STOP).unwrap();
    let portable = portable_name("robot", STOP);
    for (name, stops, toolboxes) in [
        ("stop", true, &[][..]),
        ("Stop", true, &[]),
        ("robot__stop", true, &[]),
        ("Robot__STOP", true, &[]),
        ("robot--stop", true, &[]),
        (portable.as_str(), true, &[]),
        ("off__stop", false, &["off"]),
        ("OFF__emergency-stop", false, &["off"]),
        ("broken__Stop", false, &["broken"]),
        ("off__wave", false, &[]),
        ("stopp", false, &[]),
        ("mount__stop", false, &[]),
        ("other__stop", false, &[]),
        ("", false, &[]),
    ] {
        let found = names.stops(name);
        assert_eq!(found.tools == [stop], stops, "{name}");
        assert_eq!(found.toolboxes, toolboxes, "{name}");
        let marked = names.stop_marks().any(|mark| fold(name).contains(mark));
        assert!(marked || found == Stops::default(), "{name} is not recognised");
    }
}

fn call_names(tools: &[(&str, &str)]) -> Vec<String> {
    let tools: Vec<_> = tools.iter().map(|(id, name)| tool(id, name)).collect();
    Names::new(&tools, []).call_names().to_vec()
}

#[track_caller]
fn check(tools: &[(&str, &str)], expected: &[&str]) {
    let names = call_names(tools);
    assert_eq!(names, expected, "{tools:?}");
    assert!(names.iter().all(|name| is_portable(name)), "{names:?}");
}

#[test]
fn call_names_are_unique_and_portable() {
    check(&[("math", "add"), ("arm", "wave")], &["add", "wave"]);
    check(&[("math", "add"), ("sums", "add")], &["math__add", "sums__add"]);
    check(&[("math", "add.two")], &["math__add_two_85cb2e8f"]);
    // Two tools with the same alias, and an alias that another tool has as its name.
    check(
        &[("a", "b__c"), ("a__b", "c"), ("x", "b__c"), ("x", "c")],
        &["a__b__c_01b8a75b", "a__b__c_a92700ce", "x__b__c", "x__c"],
    );
    check(
        &[("a", "b"), ("c", "b"), ("d", "a__b")],
        &["a__b", "c__b", "d__a__b"],
    );
    let long = "n".repeat(70);
    let names = call_names(&[("box", &long)]);
    assert_eq!(names[0].len(), MAX_NAME);
    assert_eq!(names[0], portable_name("box", &long));
    assert!(is_portable(&portable_name("box", "größe")) && !is_portable("größe") && !is_portable(""));
}

#[test]
fn a_name_is_suggested_for_one_that_is_nearly_it() {
    let (names, _) = names(&[]);
    for (name, similar) in [
        ("wawe", Some("wave")),
        ("Wave", Some("wave")),
        ("lft", Some("lift")),
        ("nothing_like_it", None),
        ("", None),
        (&"w".repeat(100_000), None),
    ] {
        assert_eq!(names.similar_call_name(name), similar, "{name:.20}");
    }
}
