//! Tests of toolboxes that share a process. The test holds the process's ends of the sockets.

use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use futures_util::FutureExt as _;
use ovos_toolbox_wire::{ActionIdentity, CallIdentity, Effect, Event, Failure, Manifest, Object, Start};
use protocol::{Answer, Functions, MAX_CONTROL, Notice, Raw, RunEnd};
use serde_json::{Value, json};

use crate::contract::services::{HostServices, Limits, Open, Origin, Request};
use crate::contract::tools::Maker;
use crate::transport::hosted::Hosted;
use crate::transport::members::Members;
use crate::transport::peer::{Death, End, Peer};
use crate::transport::sockets::{Pairs, Sockets};
use engine::{Halt, NoAnswer, RunId, RunResult, Toolbox as _};
use program::frame::Cutter;

struct Nothing;

impl HostServices for Nothing {
    fn event(&self, _: &Origin, _: Event) {}

    fn request(&self, _: &Origin, _: Request) {}
}

/// The members of a process that the test plays.
struct Scene {
    members: Arc<Members>,
    process: Arc<Peer>,
    data: UnixStream,
    control: UnixStream,
}

fn peer(id: &str, lanes: Arc<dyn crate::transport::lanes::Lanes>) -> Peer {
    let open = Open {
        generation: 1,
        config: "{}".to_owned(),
        stop_epoch: 0,
        limits: Limits::default(),
    };
    let manifest = Manifest {
        id: id.to_owned(),
        ..Manifest::default()
    };
    Peer::new(&open, Arc::new(manifest), Arc::new(Nothing), lanes)
}

impl Scene {
    fn new() -> Self {
        let pairs = Pairs::new().unwrap();
        for end in [&pairs.their_data, &pairs.their_control] {
            end.set_nonblocking(true).unwrap();
        }
        let sockets = Arc::new(Sockets::new(pairs.data, pairs.control, "p", 0).unwrap());
        Self {
            members: Members::new(sockets.clone()),
            process: Arc::new(peer("p", sockets)),
            data: pairs.their_data,
            control: pairs.their_control,
        }
    }

    fn join(&self, id: &str) -> Result<Hosted, Failure> {
        let peer = self.members.join(id, |lanes| peer(id, lanes))?;
        let seq = peer.next_id();
        let _opened = peer.will_open(seq).unwrap();
        let answer = Answer::Ok(Functions::default());
        assert!(self.hear(Some(id), Notice::Opened { seq, answer }));
        Ok(Hosted {
            peer,
            maker: Maker::Program,
            content_dir: None,
        })
    }

    fn hear(&self, toolbox: Option<&str>, notice: Notice) -> bool {
        self.members.hear(&self.process, toolbox, notice)
    }

    /// The orders that were sent on the data lane, then those on the control lane.
    fn sent(&mut self) -> Vec<Value> {
        let mut sent = Vec::new();
        for lane in [&mut self.data, &mut self.control] {
            let (mut cutter, mut bytes) = (Cutter::new(MAX_CONTROL), [0; 4096]);
            while let Ok(count @ 1..) = lane.read(&mut bytes) {
                cutter.push(&bytes[..count]);
            }
            while let Some(value) = cutter.read().unwrap() {
                sent.push(value);
            }
        }
        sent
    }
}

fn start() -> Start {
    Start {
        call: CallIdentity::default(),
        action: ActionIdentity {
            id: "a".to_owned(),
            name: "a".to_owned(),
            subsystems: Vec::new(),
            params: Object::new(),
            effect: Effect::Write,
        },
        inputs: Object::new(),
    }
}

#[tokio::test]
async fn each_frame_names_its_toolbox_and_starts_are_counted_for_each() {
    let mut scene = Scene::new();
    let (a, b) = (scene.join("a").unwrap(), scene.join("b").unwrap());
    let _runs = [a.start(RunId(1), start(), None), a.start(RunId(2), start(), None)];
    let run = b.start(RunId(3), start(), None);
    b.cancel(RunId(3));
    drop(run);
    let summary = |frame: &Value| {
        let body = &frame["body"];
        (
            frame["order"].clone(),
            frame["toolbox"].clone(),
            body["run"].clone(),
            body["starts"].clone(),
        )
    };
    let sent: Vec<_> = scene.sent().iter().map(summary).collect();
    let row = |order: &str, toolbox: &str, run: u64, starts: Value| {
        (json!(order), json!(toolbox), json!(run), starts)
    };
    let none = Value::Null;
    assert_eq!(
        sent,
        [
            row("start", "a", 1, none.clone()),
            row("start", "a", 2, none.clone()),
            row("start", "b", 3, none),
            row("cancel", "b", 3, json!(1)),
            row("give_up", "b", 3, json!(1)),
        ]
    );
}

#[tokio::test]
async fn only_the_toolbox_that_was_asked_answers() {
    let mut scene = Scene::new();
    let (a, b) = (scene.join("a").unwrap(), scene.join("b").unwrap());
    let mut run = a.start(RunId(7), start(), None);
    let tools = b.tools();
    tokio::pin!(tools);
    assert!(tools.as_mut().now_or_never().is_none());
    let seq = scene
        .sent()
        .iter()
        .find_map(|frame| frame["body"]["seq"].as_u64())
        .unwrap();
    let ended = || Notice::Ended {
        run: 7,
        end: RunEnd::Output(Raw::of(&json!({}))),
        content: None,
    };
    let list = || Notice::Tools {
        seq,
        answer: Answer::Ok(Raw::from_text(r#"{"tools":[]}"#.to_owned()).unwrap()),
    };
    for wrong in [Some("b"), Some("c"), None] {
        scene.hear(wrong, ended());
    }
    for wrong in [Some("a"), Some("c"), None] {
        scene.hear(wrong, list());
    }
    assert!((&mut run).now_or_never().is_none() && tools.as_mut().now_or_never().is_none());
    scene.hear(Some("a"), ended());
    scene.hear(Some("b"), list());
    assert!(matches!(run.now_or_never(), Some(RunResult::Reported(_))));
    assert!(tools.await.is_ok());
}

#[tokio::test]
async fn a_copy_hears_nothing_that_was_said_to_the_one_before_it() {
    let mut scene = Scene::new();
    let before = scene.join("a").unwrap();
    assert!(scene.join("a").is_err(), "a process has one copy of a toolbox");
    // A toolbox ends only when it was asked to.
    scene.hear(
        Some("a"),
        Notice::Closed {
            seq: 0,
            in_time: true,
        },
    );
    assert!(scene.join("a").is_err());
    let tools = before.tools();
    tokio::pin!(tools);
    assert!(tools.as_mut().now_or_never().is_none());
    let old = scene.sent()[0]["body"]["seq"].as_u64().unwrap();
    let closed = before.close();
    scene.hear(
        Some("a"),
        Notice::Closed {
            seq: 9,
            in_time: true,
        },
    );
    assert!(closed.await);
    assert!(tools.await.is_err());
    let after = scene.join("a").unwrap();
    let tools = after.tools();
    tokio::pin!(tools);
    assert!(tools.as_mut().now_or_never().is_none());
    let answer = Answer::Ok(Raw::from_text(r#"{"tools":[]}"#.to_owned()).unwrap());
    scene.hear(Some("a"), Notice::Tools { seq: old, answer });
    assert!(tools.now_or_never().is_none());
}

#[tokio::test]
async fn one_that_does_not_close_is_not_opened_again_and_a_dead_process_has_none() {
    let scene = Scene::new();
    let (hangs, other) = (scene.join("a").unwrap(), scene.join("b").unwrap());
    hangs.peer.begin_close();
    hangs.peer.abandon();
    let refused = scene.join("a").unwrap_err().message;
    assert!(
        refused.contains("hangs in the same program and has not closed"),
        "{refused}"
    );
    let run = other.start(RunId(1), start(), None);
    scene.members.ended(&End::Died(Death {
        asked: false,
        reason: "its process ended with exit code 3".to_owned(),
        moving: false,
    }));
    let RunResult::Lost(failure) = run.await else {
        panic!("the run is lost")
    };
    assert_eq!(
        (failure.kind.as_str(), failure.message.as_str()),
        (
            "ToolboxCrashed",
            "toolbox `b`: its process ended with exit code 3"
        )
    );
    assert!(
        scene
            .join("c")
            .unwrap_err()
            .message
            .contains("its program has ended")
    );
    scene.members.settled().await;
}

#[test]
fn what_is_about_nothing_that_is_there_is_not_taken() {
    let scene = Scene::new();
    let event = |text: String| Notice::Event(Raw::from_text(text).unwrap());
    for (toolbox, notice, taken) in [
        (
            None,
            event(r#"{"kind":"latched","data":{"toolboxes":[]}}"#.to_owned()),
            false,
        ),
        (None, Notice::Hello(protocol::Hello::default()), false),
        (None, Notice::Counts(protocol::Counts::default()), false),
        (Some(""), Notice::Counts(protocol::Counts::default()), false),
    ] {
        let text = format!("{toolbox:?} {notice:?}")
            .chars()
            .take(200)
            .collect::<String>();
        assert_eq!(scene.hear(toolbox, notice), taken, "{text}");
    }
    assert_eq!(scene.process.lanes.starts(), 0);
}

#[tokio::test]
async fn a_process_that_reads_no_orders_is_sent_no_more_and_told_the_newest_epoch_when_it_does() {
    let mut scene = Scene::new();
    let a = scene.join("a").unwrap();
    let halt = |stop_epoch| {
        let halt = Halt {
            subsystems: vec!["all".to_owned()],
            emergency: true,
            stop_epoch,
        };
        a.halt(halt).now_or_never()
    };
    let mut epoch = 1;
    let refused = loop {
        if let Some(answer) = halt(epoch) {
            break answer;
        }
        epoch += 1;
        assert!(epoch < 50_000, "every halt is kept");
    };
    let Err(NoAnswer::Failed(failure)) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(failure.message, "its program does not read its orders");
    for newer in epoch..epoch + 20_000 {
        a.cancel(RunId(newer));
    }
    assert!(halt(epoch + 7).is_some() && halt(epoch + 6).is_some());
    let (mut bytes, mut piece) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        scene.members.catch_up();
        let before = bytes.len();
        while let Ok(count @ 1..) = scene.control.read(&mut piece) {
            bytes.extend_from_slice(&piece[..count]);
        }
        if bytes.len() == before {
            break;
        }
    }
    assert!(bytes.len() < 2 << 20, "{} bytes were kept", bytes.len());
    let mut cutter = Cutter::new(MAX_CONTROL);
    cutter.push(&bytes);
    let mut last = Value::Null;
    while let Some(frame) = cutter.read().unwrap() {
        last = frame;
    }
    assert_eq!(
        last,
        json!({ "order": "epoch", "toolbox": "a", "body": { "stop_epoch": epoch + 7 } })
    );
    assert!(halt(epoch + 8).is_none(), "it is sent again");
}
