//! Either side may be newer, and what is passed on unread arrives as it was written.
use ovos_tools_protocol::{Answer, Notice, Order, RunEnd, address, write};

#[test]
fn names_of_a_newer_side_are_passed_over_with_any_body() {
    for body in [
        "",
        r#","body":null"#,
        r#","body":7"#,
        r#","body":{"a":[{"b":1}]}"#,
    ] {
        let order = format!(r#"{{"order":"dance"{body}}}"#);
        assert!(
            matches!(serde_json::from_str(&order), Ok(Order::Unknown)),
            "{order}"
        );
        let notice = format!(r#"{{"notice":"danced"{body}}}"#);
        assert!(
            matches!(serde_json::from_str(&notice), Ok(Notice::Unknown)),
            "{notice}"
        );
    }
}

#[test]
fn keys_that_are_missing_or_new_are_no_reason_to_fail() {
    let hello = r#"{"notice":"hello","later":1,"body":{"protocol":9,"later":{}}}"#;
    let Notice::Hello(hello) = serde_json::from_str(hello).unwrap() else {
        panic!("it is a hello");
    };
    assert_eq!((hello.protocol, hello.version.as_str()), (9, ""));
    let counts = r#"{"notice":"counts","body":{"stale_starts":1,"later":2}}"#;
    assert!(matches!(serde_json::from_str(counts), Ok(Notice::Counts(counts)) if counts.stale_starts == 1));
}

#[test]
fn a_payload_arrives_as_it_was_written_however_deep_it_is() {
    let deep = format!("{}1.50{}", "[".repeat(1000), "]".repeat(1000));
    for payload in [
        r#"{ "b":1,"a" :123456789012345678901234567890}"#,
        r#""\ud800""#,
        &deep,
    ] {
        let line = format!(r#"{{"notice":"ended","body":{{"run":1,"end":{{"output":{payload}}}}}}}"#);
        let notice: Notice = serde_json::from_str(&line).unwrap();
        assert_eq!(serde_json::to_string(&notice).unwrap(), line);
        let Notice::Ended {
            end: RunEnd::Output(output),
            ..
        } = notice
        else {
            panic!("{line}");
        };
        assert_eq!(
            (output.text(), output.clone().into_text().as_str()),
            (payload, payload)
        );
    }
}

#[test]
fn what_is_no_order_is_refused() {
    for (body, why) in [
        (r#"{"order":"tools"}"#, "a body is missing"),
        (r#"{"order":"tools","body":{"seq":-1}}"#, "a number is not one"),
        (
            r#"{"order":"plan","body":{"seq":1,"tool":"t"}}"#,
            "a key is missing",
        ),
        (
            r#"{"body":{"run":1,"start":{}},"order":"start"}"#,
            "the body comes first",
        ),
        (r#"{"notice":"beat","body":{"seq":1}}"#, "it is a notice"),
        ("5", "it is no object"),
    ] {
        assert!(serde_json::from_str::<Order>(body).is_err(), "{why}: {body}");
    }
}

#[test]
fn an_answer_has_one_key() {
    let failed = r#"{"error":{"kind":"E","message":"m"}}"#;
    let answer: Answer<()> = serde_json::from_str(failed).unwrap();
    assert_eq!(serde_json::to_string(&answer).unwrap(), failed);
    assert!(serde_json::from_str::<Answer<()>>(r#"{"ok":null,"error":null}"#).is_err());
}

#[test]
fn the_toolbox_of_a_frame_stands_between_its_name_and_its_body() {
    let order = Order::Resume { seq: 3 };
    for (toolbox, expected) in [
        (None, r#"{"order":"resume","body":{"seq":3}}"#),
        (
            Some("a-b"),
            r#"{"order":"resume","toolbox":"a-b","body":{"seq":3}}"#,
        ),
    ] {
        let mut written = b"before".to_vec();
        write(&mut written, &order, toolbox).unwrap();
        let frame = &written[6..];
        assert_eq!(std::str::from_utf8(frame).unwrap(), expected);
        assert_eq!(address(frame).unwrap().as_deref(), toolbox);
        assert!(matches!(
            serde_json::from_slice(frame),
            Ok(Order::Resume { seq: 3 })
        ));
    }
    for wrong in [
        r#"{"notice":"beat","toolbox":7,"body":{"seq":1}}"#,
        r#"{"notice":"beat","toolbox":"a","toolbox":"b"}"#,
    ] {
        assert!(address(wrong.as_bytes()).is_err(), "{wrong}");
    }
}
