//! Hostile input gets an error within a short time.

use std::time::Instant;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::{Harness, built};

fn open() -> Harness {
    Harness::load(&built("math"), json!({})).unwrap()
}

/// `Ok` for an answer, or the kind of the error. The library runs in this process, so a stack overflow would end the
/// test.
#[track_caller]
fn check(math: &Harness, tool: &str, args: Value, expected: &str) {
    let start = Instant::now();
    let text = args.to_string();
    let kind = math
        .call(tool, args)
        .map_or_else(|failure| failure.kind, |_| "Ok".to_string());
    let text: String = text.chars().take(60).collect();
    assert_eq!(kind, expected, "{tool} {text}");
    assert!(
        start.elapsed() < Duration::from_secs(30),
        "{tool} {text} took {:?}",
        start.elapsed()
    );
}

#[test]
fn expressions_are_bounded() {
    let math = open();
    let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    for (expression, expected) in [
        ("1+".repeat(499) + "1", "Ok"),
        ("1+".repeat(500) + "1", "ValueError"),
        ("é".repeat(1000), "SyntaxError"),
        (nested(50), "Ok"),
        (nested(51), "ValueError"),
        (nested(499), "ValueError"),
        ("-".repeat(100) + "1", "Ok"),
        ("-".repeat(999) + "1", "ValueError"),
        ("- ".repeat(300) + "1", "ValueError"),
        ("1**".repeat(90) + "1", "Ok"),
        ("1**".repeat(333) + "1", "ValueError"),
        ("1**-".repeat(249) + "1", "ValueError"),
        ("abs(".repeat(45) + "1" + &")".repeat(45), "Ok"),
        ("abs(".repeat(240) + "1", "ValueError"),
        ("(-".repeat(240) + "1", "ValueError"),
        ("1*(".repeat(300) + "1", "ValueError"),
        ("gcd(".to_string() + &"1,".repeat(490) + "1)", "Ok"),
        (
            "lcm(".to_string() + &(100..320).map(|n| n.to_string()).collect::<Vec<_>>().join(",") + ")",
            "Ok",
        ),
        ("lcm(1e300,3e300-1,7e299+1e284)".to_string(), "OverflowError"),
        ("factorial(1e300)".to_string(), "OverflowError"),
        ("9**9**9**9**9".to_string(), "OverflowError"),
        ("1e999".to_string(), "OverflowError"),
        ("9".repeat(999), "OverflowError"),
        ("0x".to_string() + &"f".repeat(900), "SyntaxError"),
        ("inf*0".to_string(), "OverflowError"),
        ("round(1,1e9)".to_string(), "ValueError"),
        ("\u{0}".to_string(), "SyntaxError"),
        ("__import__(1)".to_string(), "ValueError"),
    ] {
        check(
            &math,
            "evaluate_expression",
            json!({"expression": expression}),
            expected,
        );
    }
    check(
        &math,
        "evaluate_expression",
        json!({"expression": "1".repeat(10_000_000)}),
        "ValueError",
    );
}

#[test]
fn lists_are_bounded_and_exact() {
    let math = open();
    check(
        &math,
        "statistics_summary",
        json!({"numbers": vec![1.5; 10_000]}),
        "Ok",
    );
    check(
        &math,
        "statistics_summary",
        json!({"numbers": vec![1.5; 10_001]}),
        "ValueError",
    );
    check(
        &math,
        "statistics_summary",
        json!({"numbers": [1.7e308, 1.7e308]}),
        "OverflowError",
    );
    for (numbers, mean, stdev) in [
        (
            vec![1.7e308, 1.7e308, -1.7e308],
            1.7e308 / 3.0,
            1.7e308 * (4.0_f64 / 3.0).sqrt(),
        ),
        (vec![1e16, 1.0, -1e16], 1.0 / 3.0, 1e16),
        (vec![5e-324, 5e-324], 5e-324, 0.0),
        (vec![1e-160, 3e-160], 2e-160, 2e-160 / 2.0_f64.sqrt()),
    ] {
        let output = math.call("statistics_summary", json!({ "numbers": numbers }));
        let Ok(output) = output else {
            assert!(!stdev.is_finite(), "{numbers:?}: {output:?}");
            continue;
        };
        for (key, expected) in [("mean", mean), ("stdev", stdev)] {
            let found = output[key].as_f64().unwrap();
            assert!(
                (found - expected).abs() <= 1e-15 * expected.abs(),
                "{key} of {numbers:?}: {found}, not {expected}"
            );
        }
    }
}

#[test]
fn equations_are_bounded_and_complete() {
    let math = open();
    let solutions = |equation: &str| {
        let output = math
            .call("solve_equation", json!({ "equation": equation }))
            .unwrap();
        let list = output["solutions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|root| root.as_f64().unwrap());
        (
            list.collect::<Vec<f64>>(),
            output["method"].as_str().unwrap().to_string(),
            output["error"].clone(),
        )
    };
    for (equation, expected, method) in [
        ("x**2 = 4", vec![-2.0, 2.0], "symbolic"),
        ("2*x + 6 = 0", vec![-3.0], "symbolic"),
        ("x**2 - 2000001*x + 2000000", vec![1.0, 2_000_000.0], "symbolic"),
        (
            "(x-1)*(x-2)*(x-3)*(x-4)*(x-5)*(x-6)",
            vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            "symbolic",
        ),
        ("(x-2)**4", vec![2.0], "symbolic"),
        ("x**3", vec![0.0], "symbolic"),
        ("x - x", vec![], "symbolic"),
        // The sign changes at the pole, too.
        ("1/(x-0.5)", vec![], "numeric"),
        ("tan(x/1000) - 1", vec![785.398_163_397_448_3], "numeric"),
        ("x**64 - 1", vec![-1.0, 1.0], "symbolic"),
        ("abs(x) - 3", vec![-3.0, 3.0], "numeric"),
    ] {
        let (found, by, error) = solutions(equation);
        let near = found.len() == expected.len()
            && found
                .iter()
                .zip(&expected)
                .all(|(a, b)| (a - b).abs() < 1e-3_f64.min(1e-6 * b.abs().max(1.0)));
        assert!(
            near && by == method && error.is_null(),
            "{equation}: {found:?} {by} {error}"
        );
    }
    for broken in ["x**2 -", "", "y - 1", "x = 1 = 2", "sin(x, 1)", &"x+".repeat(600)] {
        let (found, _, error) = solutions(broken);
        assert!(found.is_empty() && error.is_string(), "{broken}: {found:?}");
    }
    for slow in [
        "x**1000 - 2",
        "(x+1)**64*(x+2)",
        "factorial(x) - lcm(x*1e9, 7)",
        &("sin(x)*".repeat(140) + "x"),
    ] {
        check(&math, "solve_equation", json!({ "equation": slow }), "Ok");
    }
}

#[test]
fn integers_have_no_limit_but_length() {
    let math = open();
    let sum = |digits: usize| {
        let nines = "9".repeat(digits);
        let start = format!(
            r#"{{"call":{{"call_id":"c","toolbox_id":"math","tool":"add"}},
                "action":{{"id":"add","name":"add","effect":"read","params":{{"a":{nines},"b":1}}}}}}"#
        );
        math.start_text(&start).map(|run| run.wait().text)
    };
    assert_eq!(
        sum(4000).unwrap(),
        format!(r#"{{"output":{{"result":1{}}}}}"#, "0".repeat(4000))
    );
    assert!(sum(5000).unwrap_err().failure.message.contains("4300"));
    for wrong in [json!(1.5), json!("1"), json!(null), json!(true), json!([1])] {
        check(&math, "add", json!({"a": wrong, "b": 1}), "ValueError");
    }
}
