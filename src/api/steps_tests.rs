//! Tests which runs are valid, and which values their steps get.

use serde_json::{Value, json};

use super::steps::{Invalid, Steps};

fn read(steps: Value) -> Result<Steps, Invalid> {
    let Value::Object(data) = json!({ "steps": steps }) else {
        panic!("an object")
    };
    Steps::read(&data)
}

#[track_caller]
fn valid(steps: Value) -> Steps {
    read(steps.clone()).unwrap_or_else(|error| panic!("{steps}: {error}"))
}

#[test]
fn a_step_waits_for_the_steps_that_it_names_and_takes_values_from() {
    let steps = valid(json!([
        {"id": "late", "name": "t", "args": {"a": {"$from": "find.x"}, "b": [{"c": {"$from": "look"}}]}, "after": ["near"]},
        {"id": "find", "name": "t"},
        {"id": "look", "name": "t", "after": ["find", "find"], "toolbox_id": "box"},
        {"id": "near", "name": "t", "args": {"x": {"$from": "find.0.1"}, "y": {"$from": "find.0.1"}}, "after": null},
    ]));
    let waits: Vec<_> = (0..4).map(|index| steps.waits_for(index).join(" ")).collect();
    assert_eq!(waits, ["find look near", "", "find", "find"]);
    assert_eq!(steps.open(0), ["find.x", "look"]);
    assert_eq!(steps.all()[2].toolbox_id.as_deref(), Some("box"));
}

#[test]
fn what_is_wrong_with_a_run_is_named() {
    let step = |id: &str| json!({"id": id, "name": "t"});
    let after = |id: &str, after: &[&str]| json!({"id": id, "name": "t", "after": after});
    let with = |key: &str, value: Value| {
        let mut step = step("a");
        step[key] = value;
        json!([step])
    };
    let many = |count: usize| Value::from_iter((0..count).map(|n| step(&n.to_string())));
    let values = Value::from_iter((0..=4096).map(|_| json!({"$from": "b"})));
    for (steps, expected) in [
        (json!(null), "'steps' must be a list of 1 to 64 steps, got null"),
        (json!([]), "got a list of 0"),
        (many(65), "got a list of 65"),
        (
            json!([7]),
            "step number 1 must be an object with id and name, got 7",
        ),
        (
            json!([{"name": "t"}]),
            "step number 1: 'id' must be 1 to 64 characters of [A-Za-z0-9_-], got nothing",
        ),
        (json!([step("a"), step("b.c")]), "step number 2: 'id' must be"),
        (json!([step(&"x".repeat(65))]), "step number 1: 'id' must be"),
        (json!([step("")]), "got \"\""),
        (
            json!([step("a"), step("b"), step("a")]),
            "steps number 1 and 3 both have the id 'a'",
        ),
        (
            json!([{"id": "a"}]),
            "step 'a': 'name' must be the name of a tool, got nothing",
        ),
        (
            with("name", json!("")),
            "step 'a': 'name' must be the name of a tool, got \"\"",
        ),
        (
            with("args", json!([1])),
            "step 'a': 'args' must be an object, got [1]",
        ),
        (
            with("args", json!("a cup")),
            "step 'a': 'args' must be an object, got \"a cup\"",
        ),
        (
            with("after", json!("b")),
            "step 'a': 'after' must be a list of ids of steps, got \"b\"",
        ),
        (with("after", json!([1])), "got 1"),
        (
            with("toolbox_id", json!(1)),
            "step 'a': 'toolbox_id' must be a string, got 1",
        ),
        (
            with("timeout_ms", json!(1)),
            "step 'a' has the unknown key 'timeout_ms'; a step has id, name, args",
        ),
        (
            json!([step("b"), after("a", &["b", "c"])]),
            "step 'a': 'after' names 'c', which is not a step of this run; its steps are b, a",
        ),
        (
            with("args", json!({"x": {"$from": "c.x"}})),
            "step 'a': '$from' names 'c', which is not a step",
        ),
        (
            with("args", json!({"x": {"$from": 1}})),
            "step 'a': a value from a result is {\"$from\": \"STEP.PATH\"}",
        ),
        (
            with("args", json!({"x": {"$from": "a", "y": 1}})),
            "and nothing beside it, got {\"$from\":\"a\",\"y\":1}",
        ),
        (with("args", json!({"x": {"$from": ""}})), "got {\"$from\":\"\"}"),
        (
            with("args", json!({"x": {"$from": "a..x"}})),
            "got {\"$from\":\"a..x\"}",
        ),
        (
            with("args", json!({ "x": values })),
            "the steps take more than 4096 values from results",
        ),
        (
            with("after", json!(["a"])),
            "the steps wait for each other in a circle: a -> a",
        ),
        (
            json!([
                step("d"),
                after("a", &["c", "d"]),
                after("b", &["a"]),
                {"id": "c", "name": "t", "args": {"x": {"$from": "b"}}},
            ]),
            "the steps wait for each other in a circle: ",
        ),
    ] {
        let error = read(steps.clone()).expect_err("it is not valid").to_string();
        assert!(error.contains(expected), "{steps}: no {expected:?} in {error}");
    }
    assert_eq!(valid(many(64)).all().len(), 64);
    // The error lists the steps in the order in which they would begin, wherever the circle is entered.
    let circle = read(json!([
        after("a", &["c"]),
        after("b", &["a"]),
        after("c", &["b"])
    ]));
    let error = circle.expect_err("a circle").to_string();
    let path = error.rsplit(": ").next().unwrap_or_default();
    assert!(
        ["a -> b -> c -> a", "b -> c -> a -> b", "c -> a -> b -> c"].contains(&path),
        "{error}"
    );
}

fn taking(args: Value) -> Steps {
    valid(json!([{"id": "find", "name": "t"}, {"id": "use", "name": "t", "args": args}]))
}

#[test]
fn values_come_from_where_the_path_leads() {
    let result = json!({"pose": {"x": 1.5, "0": "key"}, "list": [[1, 2], {"a": null}], "": 1});
    let big: Value = serde_json::from_str("123456789012345678901234567890").expect("a number");
    for (from, expected) in [
        ("find", result.clone()),
        ("find.pose", json!({"x": 1.5, "0": "key"})),
        ("find.pose.x", json!(1.5)),
        ("find.pose.0", json!("key")),
        ("find.list.0.1", json!(2)),
        ("find.list.1.a", json!(null)),
    ] {
        let mut steps = taking(json!({"deep": [{"v": {"$from": from}}], "n": big}));
        steps.give(0, &result);
        assert_eq!(steps.open(1), Vec::<String>::new());
        assert_eq!(
            steps.arguments(1),
            Ok(json!({"deep": [{"v": expected}], "n": big})),
            "{from}"
        );
    }
    let mut whole = taking(json!({"$from": "find.pose"}));
    whole.give(0, &result);
    assert_eq!(whole.arguments(1), Ok(json!({"x": 1.5, "0": "key"})));
}

#[test]
fn a_value_that_is_not_there_is_named_with_what_is() {
    let result = json!({"pose": {"x": 1.5, "y": 2}, "list": [1], "none": {}});
    for (from, expected) in [
        (
            "find.posse",
            "the result of step 'find' has no 'posse': it has pose, list, none",
        ),
        ("find.pose.z", "its 'pose' has no 'z': it has x, y"),
        ("find.pose.x.y", "its 'x' has no 'y': it is 1.5"),
        ("find.list.1", "its 'list' has no '1': it is a list of 1"),
        ("find.list.-1", "its 'list' has no '-1'"),
        ("find.list.+0", "its 'list' has no '+0'"),
        ("find.none.a", "its 'none' has no 'a': it is empty"),
    ] {
        let mut steps = taking(json!({"a": {"$from": from}, "b": {"$from": "find.pose.x"}}));
        steps.give(0, &result);
        let error = steps.arguments(1).expect_err("it is missing").to_string();
        let expected = format!("{{\"$from\": \"{from}\"}}: {expected}");
        assert!(error.starts_with(&expected), "{error}");
    }
}

/// Otherwise a tool could make the caller's next tool receive results of other tools.
#[test]
fn what_a_tool_returns_is_not_read_as_a_value_to_take() {
    let mut steps = valid(json!([
        {"id": "secret", "name": "t"},
        {"id": "evil", "name": "t"},
        {"id": "use", "name": "t", "args": {"a": {"$from": "evil"}, "b": {"$from": "secret.n"}}},
    ]));
    let evil = json!({"$from": "secret.n"});
    steps.give(1, &evil);
    steps.give(0, &json!({"n": 7}));
    assert_eq!(steps.arguments(2), Ok(json!({"a": evil, "b": 7})));
}

#[test]
fn values_are_bounded_together() {
    let mebibyte = json!("x".repeat(1 << 20));
    let takes = Value::from_iter((0..20).map(|_| json!({"$from": "find"})));
    let mut steps = taking(json!({ "all": takes }));
    steps.give(0, &mebibyte);
    let error = steps.arguments(1).expect_err("it is too much").to_string();
    assert!(error.contains("more than 16 MiB together"), "{error}");
    let mut few = taking(json!({"a": {"$from": "find"}}));
    few.give(0, &mebibyte);
    assert_eq!(few.arguments(1), Ok(json!({ "a": mebibyte })));
}
