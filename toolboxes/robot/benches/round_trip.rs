//! What an action costs between the toolbox and an emulated robot, beside the bare library call, and how long a halt
//! takes to be said.
//!
//! Servos: is the torque of the head's two servos on? One sync read. K1: what is its status? One request, one response;
//! the robot is another DDS participant of this process. An action goes through the thread that owns the port, or the
//! domain, and back; what that costs alone stands beside it. Run it with `cargo bench -p robot --bench round_trip`.
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]
#![allow(
    clippy::expect_used,
    missing_docs,
    reason = "a bench that cannot run has no figures"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use feetech_sim::{Instruction, Line, Servo};
use futures_util::StreamExt;
use robot::action::Action;
use robot::adapter::{Adapter, Control};
use robot::dds::Participant;
use robot::dds::booster::{REQUEST, REQUESTS, RESPONSE, RESPONSES, RpcMsg};
use robot::driver::DrivenRobot;
use robot::ros::RosConfig;
use robot::shelf::Shelf;
use robot::step::Step;
use robot::subsystem::Subsystem;
use rustdds::no_key::{DataWriterCdr, SimpleDataReaderCdr};
use rustdds::policy::{History, Reliability};
use rustdds::{QosPolicyBuilder, TopicKind};
use rustypot::servo::feetech::sts3215::Sts3215Controller;
use serde_json::{Value, json};

/// Figures are the median of this many.
const ROUNDS: usize = 300;
const HALTS: usize = 50;
const HALT_GOAL: Duration = Duration::from_millis(50);

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    println!("round trip to an emulated robot, median of {ROUNDS}");
    println!("  a thread, there and back");
    println!("    {:7.1} us", hop(&runtime));
    servos(&runtime);
    k1(&runtime);
}

/// A job that does nothing, on a thread of its own.
fn hop(runtime: &tokio::runtime::Runtime) -> f64 {
    let (jobs, queue) = std::sync::mpsc::channel::<tokio::sync::oneshot::Sender<()>>();
    let thread = std::thread::spawn(move || {
        for done in queue {
            let _ = done.send(());
        }
    });
    let figure = median(|| {
        let (done, waiting) = tokio::sync::oneshot::channel();
        jobs.send(done).expect("the thread is there");
        runtime.block_on(waiting).expect("an answer");
    });
    drop(jobs);
    thread.join().expect("the thread ends");
    figure
}

fn report(name: &str, bare: f64, adapter: f64) {
    println!("  {name}");
    println!("    {bare:7.1} us          bare library call");
    println!(
        "    {adapter:7.1} us  x{:<5.2}  action of the adapter",
        adapter / bare
    );
}

/// The slowest halt of all parts: it has to be said within 50 ms.
fn halts(robot: &dyn Adapter) {
    let slowest = (0..HALTS)
        .map(|_| {
            let begun = Instant::now();
            robot.halt(&[Subsystem::All], false).expect("a halt");
            begun.elapsed()
        })
        .max()
        .unwrap_or_default();
    let met = if slowest < HALT_GOAL { "met" } else { "MISSED" };
    println!(
        "    {:7.1} us  {met:6}  slowest of {HALTS} halts (goal: under {HALT_GOAL:?})",
        slowest.as_secs_f64() * 1e6
    );
}

fn median(mut round: impl FnMut()) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begun = Instant::now();
            round();
            begun.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

fn action(subsystem: Subsystem, step: Step) -> Action {
    Action {
        subsystem,
        step,
        motion: None,
        expected: Duration::from_secs(1),
    }
}

fn servos(runtime: &tokio::runtime::Runtime) {
    let line = || Line::start((1..=11).map(Servo::new)).expect("a pseudo terminal");
    let (left, right) = (line(), line());
    let port = serialport::new(right.path().to_string_lossy(), 1_000_000)
        .timeout(Duration::from_millis(100))
        .open()
        .expect("a port");
    let mut controller = Sts3215Controller::new().with_protocol_v1().with_serial_port(port);
    let _ = right.take_frames();
    let bare = median(|| {
        let torque = controller.sync_read_torque_enable(&[7, 8]).expect("an answer");
        assert_eq!(torque, [false, false], "what both servos say");
    });
    assert_eq!(right.take_frames().len(), ROUNDS, "each call was one on the bus");
    drop(controller);
    let section = json!({"answer_ms": 100, "ports": {"left": left.path(), "right": right.path()}});
    let robot = driven("johnny5", section);
    runtime.block_on(robot.connect()).expect("a connection");
    let _ = right.take_frames();
    let (check, control) = (action(Subsystem::Gantry, Step::CheckTorque {}), Control::free());
    let adapter = median(|| {
        drop(
            runtime
                .block_on(robot.execute(&check, &control))
                .expect("an answer"),
        )
    });
    assert_eq!(frames_of(&right), ROUNDS, "and so was each action");
    report("torque of two servos", bare, adapter);
    halts(robot.as_ref());
    runtime.block_on(robot.close());
    drop(robot);
}

/// A built-in robot with changes to its channels.
fn driven(kind: &str, channels: Value) -> Arc<dyn Adapter> {
    let kind = Shelf::default().find(kind).expect("a built-in robot");
    let channels = channels.as_object().expect("an object");
    let driver = kind.driver(channels, "channels").expect("channels");
    let model = kind.model(driver.as_ref());
    let fitted = driver.fit(model.clone()).expect("a robot that fits");
    let robot = DrivenRobot {
        name: "it",
        model: &model,
        capabilities: &fitted.capabilities,
        stop: &kind.stop,
    };
    driver.drive(robot, Arc::new(|_| ())).expect("a robot")
}

/// The reads that a bus has heard.
fn frames_of(line: &Line) -> usize {
    let frames = line.take_frames().into_iter();
    frames
        .filter(|frame| frame.instruction == Instruction::SyncRead)
        .count()
}

fn k1(runtime: &tokio::runtime::Runtime) {
    let ros = json!({"domain": fastrand::u16(10..230), "interfaces": ["127.0.0.1"]});
    let network: RosConfig = serde_json::from_value(ros.clone()).expect("a configuration");
    let robot = Participant::join(&network, "k1").expect("a participant");
    let answers = robot.publish::<RpcMsg>(RESPONSES, RESPONSE).expect("a topic");
    let answer = move |request: RpcMsg| {
        let header = json!({"status": 0}).to_string();
        let _ = answers.publish(RpcMsg {
            uuid: request.uuid,
            header,
            body: "{}".to_owned(),
        });
    };
    robot.subscribe(REQUESTS, REQUEST, true, answer).expect("a topic");
    let bare = bare_dds(runtime, &network);

    let section = json!({"ros": ros});
    let k1 = driven("booster_k1", section);
    runtime.block_on(k1.connect()).expect("a connection");
    let (test, control) = (
        action(Subsystem::Base, Step::SelfTest { verbose: false }),
        Control::free(),
    );
    let adapter = median(|| drop(runtime.block_on(k1.execute(&test, &control)).expect("an answer")));
    report("status of a K1", bare, adapter);
    halts(k1.as_ref());
    runtime.block_on(k1.close());
    drop(k1);
}

/// The same request and response with the library alone.
fn bare_dds(runtime: &tokio::runtime::Runtime, network: &RosConfig) -> f64 {
    let participant = rustdds::DomainParticipantBuilder::new(network.domain)
        .with_only_networks(network.interfaces.iter().copied())
        .build()
        .expect("a participant");
    let quality = QosPolicyBuilder::new()
        .reliability(Reliability::Reliable {
            max_blocking_time: rustdds::Duration::ZERO,
        })
        .history(History::KeepLast { depth: 10 })
        .build();
    let topic = |name: &str, of: &str| {
        let kind = format!("{}_", of.replace("/msg/", "::msg::dds_::"));
        participant
            .create_topic(format!("rt{name}"), kind, &quality, TopicKind::NoKey)
            .expect("a topic")
    };
    let (requests, responses) = (topic(REQUESTS, REQUEST), topic(RESPONSES, RESPONSE));
    let publisher = participant.create_publisher(&quality).expect("a publisher");
    let writer: DataWriterCdr<RpcMsg> = publisher
        .create_datawriter_no_key_cdr(&requests, None)
        .expect("a writer");
    let subscriber = participant.create_subscriber(&quality).expect("a subscriber");
    let reader: SimpleDataReaderCdr<RpcMsg> = subscriber
        .create_simple_datareader_no_key(&responses, None)
        .expect("a reader");
    let mut stream = Box::pin(reader.as_async_stream());
    let ask = |number: usize| RpcMsg {
        uuid: number.to_string(),
        header: json!({"api_id": 2018}).to_string(),
        body: String::new(),
    };
    // The first ones are lost.
    let first = Instant::now();
    let answered = loop {
        assert!(first.elapsed() < Duration::from_secs(10), "no answer came");
        assert!(writer.write(ask(0), None).is_ok(), "a request");
        let answer =
            runtime.block_on(async { tokio::time::timeout(Duration::from_millis(200), stream.next()).await });
        if answer.is_ok() {
            break true;
        }
    };
    assert!(answered);
    let mut number = 0;
    median(|| {
        number += 1;
        assert!(writer.write(ask(number), None).is_ok(), "a request");
        loop {
            let answer = runtime
                .block_on(stream.next())
                .expect("a stream")
                .expect("an answer");
            if answer.into_value().uuid == number.to_string() {
                break;
            }
        }
    })
}
