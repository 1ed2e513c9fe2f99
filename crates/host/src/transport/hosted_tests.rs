//! Tests of the service's side of a transport, whatever the toolbox on the other side sends. The toolbox is a list of
//! the orders that it received; a test sends its notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use ovos_toolbox_wire::{
    ActionIdentity, CallIdentity, Completion, Effect, Event, Failure, Manifest, Object, Start,
};
use parking_lot::Mutex;
use protocol::{Answer, Functions, Notice, Order, Raw, RunEnd};
use serde_json::{Value, json};

use crate::contract::services::Open;
use crate::contract::services::{HostServices, Limits, Origin, Request};
use crate::contract::tools::Maker;
use crate::transport::hosted::Hosted;
use crate::transport::lanes::Lanes;
use crate::transport::peer::{Death, End, Peer};
use engine::{Halt, NoAnswer, RunId, RunResult, Toolbox};

/// Lanes that keep the orders.
#[derive(Default)]
struct KeptProcess {
    orders: Mutex<Vec<Order>>,
    requests: Mutex<Vec<u64>>,
    full: AtomicBool,
}

impl KeptProcess {
    fn take(&self) -> Vec<Order> {
        std::mem::take(&mut *self.orders.lock())
    }
}

impl Lanes for KeptProcess {
    fn start(&self, run: u64, start: &Start, progress: bool) -> Result<(), Failure> {
        let start = Raw::of(start);
        self.data(Order::Start { run, progress, start })
    }

    fn starts(&self) -> u64 {
        0
    }

    fn pid(&self) -> u32 {
        0
    }

    fn is_full(&self) -> bool {
        self.full.load(Ordering::SeqCst)
    }

    fn data(&self, order: Order) -> Result<(), Failure> {
        self.orders.lock().push(order);
        Ok(())
    }

    fn chatter(&self, order: Order) -> bool {
        self.data(order).is_ok()
    }

    fn control(&self, order: Order) {
        self.orders.lock().push(order);
    }

    fn close(&self, seq: u64) {
        self.orders.lock().push(Order::Close { seq });
    }

    fn is_kept(&self) -> bool {
        true
    }
}

impl HostServices for KeptProcess {
    fn event(&self, _: &Origin, _: Event) {}

    fn request(&self, _: &Origin, request: Request) {
        self.requests.lock().push(request.id);
    }
}

/// An open toolbox whose only request topic is `ask.time`.
fn open(limits: Limits) -> (Hosted, Arc<KeptProcess>) {
    let process = Arc::new(KeptProcess::default());
    let manifest = Manifest {
        id: "arm".to_owned(),
        requests: vec!["ask.time".to_owned()],
        ..Manifest::default()
    };
    let open = Open {
        generation: 1,
        config: "{}".to_owned(),
        stop_epoch: 3,
        limits,
    };
    let peer = Arc::new(Peer::new(
        &open,
        Arc::new(manifest),
        process.clone(),
        process.clone(),
    ));
    let _opened = peer.will_open(0).unwrap();
    let answer = Answer::Ok(Functions {
        plan: true,
        halt: true,
        ..Functions::default()
    });
    peer.hear(Notice::Opened { seq: 0, answer });
    let toolbox = Hosted {
        peer,
        maker: Maker::Plugin,
        content_dir: None,
    };
    (toolbox, process)
}

fn start(effect: Effect, stop_epoch: u64) -> Start {
    Start {
        call: CallIdentity {
            stop_epoch,
            ..CallIdentity::default()
        },
        action: ActionIdentity {
            id: "wave".to_owned(),
            name: "wave".to_owned(),
            subsystems: Vec::new(),
            params: Object::new(),
            effect,
        },
        inputs: Object::new(),
    }
}

fn ended(run: u64) -> Notice {
    Notice::Ended {
        run,
        end: RunEnd::Output(Raw::of(&json!("done"))),
        content: None,
    }
}

fn request(request: u64, topic: &str, data: Value) -> Notice {
    Notice::Request {
        request,
        topic: topic.to_owned(),
        data: Raw::of(&data),
        timeout_ms: 1000,
    }
}

fn all() -> Halt {
    Halt {
        subsystems: vec!["all".to_owned()],
        emergency: true,
        stop_epoch: 4,
    }
}

#[tokio::test]
async fn every_caller_is_told_once_how_the_toolbox_ended() {
    let died = End::Died(Death {
        asked: false,
        reason: "its process ended with exit code 3".to_owned(),
        moving: false,
    });
    let rows = [
        (End::Closed(true), "ToolboxClosed", "was closed while it ran"),
        (
            End::Closed(false),
            "ToolboxClosed",
            "did not close in time and was ended",
        ),
        (died, "ToolboxCrashed", "exit code 3"),
    ];
    for (end, kind, words) in rows {
        let (toolbox, _) = open(Limits::default());
        let run = toolbox.start(RunId(1), start(Effect::Motion, 3), None);
        let args = Object::new();
        let plan = toolbox.plan("wave", &args);
        let halt = toolbox.halt(all());
        let is_death = matches!(end, End::Died(_));
        toolbox.peer.ended(end);
        let RunResult::Lost(lost) = run.await else {
            panic!("the run is lost")
        };
        let error = plan.await.unwrap_err();
        let halted = halt.await.unwrap_err();
        assert_eq!(matches!(error, NoAnswer::Died(_)), is_death, "{error:?}");
        for failure in [lost, error.into_failure(), halted.into_failure()] {
            assert_eq!(failure.kind, kind);
            assert!(failure.message.contains(words), "{}", failure.message);
        }
        // A later start was never sent, so that another copy may run it.
        let later = toolbox.start(RunId(2), start(Effect::Motion, 3), None).await;
        assert_eq!(matches!(later, RunResult::NeverBegun(_)), is_death, "{later:?}");
        assert!(!toolbox.peer.is_moving());
    }
}

#[tokio::test]
async fn an_abandoned_toolbox_can_still_be_halted() {
    let (toolbox, process) = open(Limits::default());
    toolbox.peer.abandon();
    let halt = toolbox.halt(all());
    let seq = process.take().into_iter().find_map(|order| match order {
        Order::Halt { seq, .. } => Some(seq),
        _ => None,
    });
    let answer = Answer::Ok(());
    toolbox.peer.hear(Notice::Halted {
        seq: seq.expect("the halt is sent"),
        answer,
    });
    halt.await.unwrap();
}

#[tokio::test]
async fn an_end_counts_once_and_only_for_a_run_that_was_sent() {
    let (toolbox, _) = open(Limits::default());
    toolbox.peer.hear(ended(7));
    let run = toolbox.start(RunId(7), start(Effect::Motion, 3), None);
    toolbox.peer.hear(ended(7));
    toolbox.peer.hear(ended(7));
    assert_eq!(run.await, RunResult::Reported(Completion::Output(json!("done"))));
    let counts = toolbox.counts();
    assert_eq!((counts.unknown_completions, counts.late_completions), (1, 1));
}

#[tokio::test]
async fn a_start_that_must_not_begin_is_not_sent() {
    let limits = Limits {
        max_queued: 1,
        ..Limits::default()
    };
    let (toolbox, process) = open(limits);
    let old = toolbox.start(RunId(1), start(Effect::Motion, 2), None).await;
    assert_eq!(old, RunResult::Cancelled);
    assert_eq!(toolbox.counts().stale_starts, 1);
    process.full.store(true, Ordering::SeqCst);
    let refused = toolbox.start(RunId(2), start(Effect::Motion, 3), None).await;
    assert!(is_busy(&refused), "{refused:?}");
    process.full.store(false, Ordering::SeqCst);
    let _first = toolbox.start(RunId(3), start(Effect::Motion, 3), None);
    let refused = toolbox.start(RunId(4), start(Effect::Motion, 3), None).await;
    assert!(is_busy(&refused), "{refused:?}");
    let again = toolbox.start(RunId(3), start(Effect::Motion, 3), None).await;
    assert!(
        matches!(again, RunResult::Reported(Completion::Error(_))),
        "{again:?}"
    );
    toolbox.peer.hear(ended(3));
    // After an emergency stop, no start that was planned before it is sent, even before the toolbox knows of the stop.
    let _halt = toolbox.halt(all());
    let late = toolbox.start(RunId(5), start(Effect::Motion, 3), None).await;
    assert_eq!(late, RunResult::Cancelled);
    let starts = process.take();
    let starts = starts.iter().filter(|order| matches!(order, Order::Start { .. }));
    assert_eq!(starts.count(), 1);
}

fn is_busy(ended: &RunResult) -> bool {
    matches!(ended, RunResult::Reported(Completion::Error(failure)) if failure.kind == "BusyError")
}

#[tokio::test]
async fn a_run_that_no_caller_waits_for_is_given_up() {
    let (toolbox, process) = open(Limits::default());
    drop(toolbox.start(RunId(1), start(Effect::Motion, 3), None));
    assert!(matches!(
        process.take()[..],
        [Order::Start { run: 1, .. }, Order::GiveUp { run: 1, .. }]
    ));
    // A run may still move something until the toolbox reports its end.
    assert!(toolbox.peer.is_moving());
    toolbox.peer.hear(ended(1));
    assert!(!toolbox.peer.is_moving());
}

#[tokio::test]
async fn a_question_to_the_bus_is_passed_on_or_refused_and_answered_once() {
    let limits = Limits {
        max_requests: 1,
        ..Limits::default()
    };
    let (toolbox, process) = open(limits);
    for (id, topic, data) in [
        (1, "ovos.tools.stop", json!({})),
        (2, "ask.time", json!("no object")),
        (3, "ask.time", json!({})),
        (4, "ask.time", json!({})),
    ] {
        toolbox.peer.hear(request(id, topic, data));
    }
    assert_eq!(*process.requests.lock(), [3]);
    assert_eq!(toolbox.counts().refused_requests, 3);
    assert!(toolbox.respond(3, &Ok(json!({"hour": 7}))));
    assert!(
        !toolbox.respond(3, &Ok(json!({"hour": 8}))),
        "it is answered already"
    );
    let answers: Vec<(u64, bool)> = process
        .take()
        .into_iter()
        .filter_map(|order| match order {
            Order::Response { request, answer } => Some((request, matches!(answer, Answer::Ok(_)))),
            _ => None,
        })
        .collect();
    assert_eq!(answers, [(1, false), (2, false), (4, false), (3, true)]);
}

#[tokio::test]
async fn a_tool_without_a_plan_is_asked_for_one_once() {
    let (toolbox, process) = open(Limits::default());
    let args = Object::new();
    let plan = toolbox.plan("wave", &args);
    let Some(Order::Plan { seq, .. }) = process.take().pop() else {
        panic!("it is asked")
    };
    let answer = Answer::Ok(Raw::of(&None));
    toolbox.peer.hear(Notice::Planned { seq, answer });
    assert_eq!(plan.await, Ok(None));
    let again = toolbox.plan("wave", &args).now_or_never();
    assert_eq!(again, Some(Ok(None)));
    assert!(process.take().is_empty());
}
