//! Every frame comes back as it was, however it is cut; whatever else comes is an error.

use crate::contract::functions::Functions;
use ovos_toolbox_wire::{Event, Failure, Object, Progress, Report};
use serde_json::Value;

use super::order::HaltOrder;
use super::*;
use crate::contract::counts::Counts;
use engine::Ended;
use ovos_toolbox_wire::{CallOutcome, Completion};
use proptest::prelude::*;
use serde_json::json;

fn object(value: Value) -> Object {
    value.as_object().cloned().unwrap_or_default()
}

fn big() -> Value {
    serde_json::from_str(r#"{"n":123456789012345678901234567890,"f":1.5,"t":"ü\n"}"#).unwrap()
}

fn orders() -> Vec<Order> {
    let report = Report {
        outcome: CallOutcome::Completed,
        duration_ms: 7,
        actions: Vec::new(),
    };
    vec![
        Order::Open(Opening {
            config: "{}".into(),
            stop_epoch: u64::MAX,
            ..Opening::default()
        }),
        Order::Start {
            run: 1,
            progress: true,
            json: "{}".into(),
        },
        Order::Tools { ask: 2 },
        Order::MayClose { ask: 3 },
        Order::Plan {
            ask: 4,
            tool: "t".into(),
            args: object(big()),
        },
        Order::Conclude {
            ask: 5,
            tool: "t".into(),
            args: object(big()),
            report: Box::new(report),
        },
        Order::Message {
            topic: "speak".into(),
            json: "{}".into(),
        },
        Order::Response {
            request: 6,
            answer: Ok(big()),
        },
        Order::Response {
            request: 6,
            answer: Err(Failure::new("E", "m")),
        },
        Order::Close,
        Order::Cancel { run: 7, starts: 9 },
        Order::Halt {
            id: 8,
            halt: HaltOrder {
                subsystems: vec!["all".into()],
                emergency: true,
                stop_epoch: 3,
            },
        },
        Order::Resume { id: 9 },
        Order::Epoch(10),
        Order::Heartbeat(11),
        Order::GiveUp { run: 12, starts: 3 },
        Order::Unknown(9999),
    ]
}

fn notices() -> Vec<Notice> {
    let failure = Failure {
        data: Some(big()),
        ..Failure::new("E", "m")
    };
    vec![
        Notice::Hello(Hello {
            abi: PROTOCOL,
            version: "1".into(),
            features: vec!["x".into()],
        }),
        Notice::Opened(Ok(Functions {
            plan: true,
            ..Functions::default()
        })),
        Notice::Opened(Err(failure.clone())),
        Notice::Answer {
            ask: 1,
            ok: false,
            json: "{}".into(),
        },
        Notice::Complete {
            run: 2,
            ended: Ended::Reported(Completion::Output(big())),
        },
        Notice::Complete {
            run: 3,
            ended: Ended::Reported(Completion::Error(failure.clone())),
        },
        Notice::Complete {
            run: 4,
            ended: Ended::Cancelled,
        },
        Notice::Complete {
            run: 5,
            ended: Ended::Lost(failure.clone()),
        },
        Notice::Progress {
            run: 6,
            progress: Progress {
                fraction: Some(0.5),
                ..Progress::default()
            },
        },
        Notice::Event(Event {
            kind: "k".into(),
            data: Some(big()),
            ..Event::default()
        }),
        Notice::Request {
            request: 7,
            topic: "t".into(),
            data: big(),
            timeout_ms: 5,
        },
        Notice::Log {
            level: 3,
            target: "t".into(),
            message: "m".into(),
        },
        Notice::Counts(Counts::default()),
        Notice::Closed { in_time: false },
        Notice::Said { id: 8, said: Ok(()) },
        Notice::Said {
            id: 9,
            said: Err(failure),
        },
        Notice::Alive(10),
        Notice::Unknown(7777),
    ]
}

/// Sends frames through a decoder in pieces of these sizes.
fn through(frames: &[Frame], sizes: &[usize]) -> Vec<Frame> {
    let bytes: Vec<u8> = frames.iter().flat_map(Frame::encode).collect();
    let mut decoder = Decoder::new(MAX_DATA);
    let (mut rest, mut found) = (bytes.as_slice(), Vec::new());
    let mut sizes = sizes.iter().cycle();
    while !rest.is_empty() {
        let size = sizes.next().map_or(1, |size| (*size).clamp(1, rest.len()));
        decoder.push(&rest[..size]);
        rest = &rest[size..];
        while let Some(frame) = decoder.next().unwrap() {
            found.push(frame);
        }
    }
    found
}

#[test]
fn every_frame_comes_back_as_it_was() {
    for order in orders() {
        assert_eq!(Order::read(order.frame()).unwrap(), order);
    }
    for notice in notices() {
        assert_eq!(Notice::read(notice.frame()).unwrap(), notice);
    }
}

#[test]
fn keys_that_are_missing_or_new_are_no_reason_to_fail() {
    let hello = Frame::json(1, 0, 0, &json!({"abi": 1, "later": {}}));
    assert_eq!(
        Notice::read(hello).unwrap(),
        Notice::Hello(Hello {
            abi: 1,
            ..Hello::default()
        })
    );
}

#[test]
fn a_length_beyond_the_limit_is_refused_before_its_body_is_kept() {
    let mut decoder = Decoder::new(MAX_CONTROL);
    decoder.push(&[0xff; HEADER]);
    assert!(matches!(decoder.next(), Err(FrameError::TooLong { length, .. }) if length == u32::MAX as usize));
}

proptest! {
    #[test]
    fn frames_survive_being_cut_anywhere(
        bodies in prop::collection::vec((any::<u16>(), any::<u16>(), any::<u64>(), prop::collection::vec(any::<u8>(), 0..200)), 0..20),
        sizes in prop::collection::vec(1usize..64, 1..10),
    ) {
        let frames: Vec<Frame> = bodies.into_iter().map(|(kind, code, id, body)| Frame::new(kind, code, id, body)).collect();
        prop_assert_eq!(through(&frames, &sizes), frames);
    }

    #[test]
    fn garbage_is_an_error_or_passed_over_and_never_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        kind in prop_oneof![0u16..30, 100u16..130],
        code in 0u16..3,
    ) {
        let mut decoder = Decoder::new(512);
        decoder.push(&bytes);
        while let Ok(Some(frame)) = decoder.next() {
            _ = Notice::read(frame.clone());
            _ = Order::read(frame);
        }
        let frame = Frame::new(kind, code, 1, bytes);
        _ = Notice::read(frame.clone());
        _ = Order::read(frame);
    }
}
