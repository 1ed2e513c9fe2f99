//! Tests of [`Server`]: what the order of starts, cancels and stops on the two lanes means. The toolbox keeps the runs that it
//! was given; the test reads the notices at the other end of the sockets.

use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use ovos_toolbox_wire::{ActionIdentity, CallIdentity, Effect, Object, Start, ToolList};
use parking_lot::Mutex;
use protocol::{MAX_DATA, Notice, Opening, Order, Raw, RunEnd};
use serde::de::DeserializeOwned;

use crate::frame::Cutter;
use crate::link::Link;
use crate::notices::{Later, Notices};
use crate::run::Run;
use crate::server::Server;
use crate::toolbox::{Halt, Reply, Toolbox};

/// Notes what it is told. Its `start` waits, as long as the test wants it to.
#[derive(Default)]
struct Noting {
    notes: Mutex<Vec<String>>,
    runs: Mutex<Vec<Run>>,
    started: Mutex<Option<Sender<()>>>,
    goes_on: Mutex<Option<Receiver<()>>>,
}

impl Noting {
    fn note(&self, what: String) {
        self.notes.lock().push(what);
    }

    fn noted(&self) -> Vec<String> {
        std::mem::take(&mut self.notes.lock())
    }
}

impl Toolbox for Noting {
    fn tools(&self, reply: Reply<Raw<ToolList>>) {
        reply(Ok(Raw::of(&ToolList::default())));
    }

    fn start(&self, run: Run, _: Raw<Start>) {
        self.note(format!("start {}", run.number()));
        self.runs.lock().push(run);
        if let Some(started) = &*self.started.lock() {
            started.send(()).unwrap();
        }
        if let Some(goes_on) = &*self.goes_on.lock() {
            goes_on.recv().unwrap();
        }
    }

    fn cancel(&self, run: u64) -> Option<Later> {
        self.note(format!("cancel {run}"));
        None
    }

    fn halt(&self, halt: Halt, reply: Reply<()>) {
        self.note(format!("halt {:?} {}", halt.subsystems, halt.emergency));
        reply(Ok(()));
    }

    fn stopped(&self, stop_epoch: u64) {
        self.note(format!("stopped {stop_epoch}"));
    }
}

struct Bench {
    server: Server,
    toolbox: Arc<Noting>,
    data: UnixStream,
    control: UnixStream,
    cutter: Cutter,
}

impl Bench {
    /// A server whose toolbox is not open yet.
    fn new() -> Self {
        let ((data, their_data), (control, their_control)) =
            (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
        for socket in [&their_data, &their_control] {
            socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        }
        let link = Link::new(Arc::new(Notices::new(data, control).unwrap()));
        let toolbox = Arc::new(Noting::default());
        let opened: Arc<dyn Toolbox> = toolbox.clone();
        Self {
            server: Server::new(link, Box::new(move |_, _| Ok(opened))),
            toolbox,
            data: their_data,
            control: their_control,
            cutter: Cutter::new(MAX_DATA),
        }
    }

    fn open() -> Self {
        let mut bench = Self::new();
        bench.server.open(opening(0));
        assert!(matches!(bench.hears(), Notice::Opened { .. }));
        bench.toolbox.noted();
        bench
    }

    fn starts(&self, run: u64, stop_epoch: u64) {
        let start = Raw::of(&start(stop_epoch));
        let progress = false;
        self.server.data(Order::Start { run, progress, start });
    }

    /// The next notice of the data lane.
    fn hears(&mut self) -> Notice {
        next(&mut self.data, &mut self.cutter)
    }

    fn hears_end(&mut self) -> (u64, RunEnd) {
        loop {
            match self.hears() {
                Notice::Ended { run, end, .. } => return (run, end),
                Notice::Counts(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

fn next<T: DeserializeOwned>(socket: &mut UnixStream, cutter: &mut Cutter) -> T {
    let mut bytes = [0; 4096];
    loop {
        if let Some(notice) = cutter.read().unwrap() {
            return notice;
        }
        let count = socket.read(&mut bytes).unwrap();
        cutter.push(&bytes[..count]);
    }
}

fn opening(stop_epoch: u64) -> Opening {
    Opening {
        seq: 0,
        generation: 1,
        config: Raw::of(&Object::new()),
        stop_epoch,
        max_result_bytes: 1000,
        max_queued: 10,
        max_messages: 10,
        max_requests: 10,
        open_ms: 1000,
        close_ms: 1000,
        silence_ms: 500,
    }
}

fn start(stop_epoch: u64) -> Start {
    Start {
        call: CallIdentity {
            stop_epoch,
            ..CallIdentity::default()
        },
        action: ActionIdentity {
            id: "a".to_owned(),
            name: "a".to_owned(),
            subsystems: Vec::new(),
            params: Object::new(),
            effect: Effect::Motion,
        },
        inputs: Object::new(),
    }
}

fn emergency(stop_epoch: u64) -> Order {
    Order::Halt {
        seq: 9,
        subsystems: vec!["all".to_owned()],
        emergency: true,
        stop_epoch,
    }
}

#[test]
fn a_cancel_that_overtook_its_start_holds_and_is_forgotten() {
    let mut bench = Bench::open();
    bench.starts(1, 0);
    bench.server.control(Order::Cancel { run: 3, starts: 3 });
    bench.starts(2, 0);
    bench.starts(3, 0);
    assert!(
        matches!(bench.hears_end(), (3, RunEnd::Cancelled)),
        "its cancel was faster"
    );
    // As many starts as it said have come, and none of them was this one: it is forgotten.
    bench.server.control(Order::Cancel { run: 9, starts: 5 });
    bench.starts(4, 0);
    bench.starts(5, 0);
    bench.starts(9, 0);
    // A cancel after its start is for the toolbox.
    bench.server.control(Order::Cancel { run: 4, starts: 6 });
    let expected = ["start 1", "start 2", "start 4", "start 5", "start 9", "cancel 4"];
    assert_eq!(bench.toolbox.noted(), expected);
}

#[test]
fn no_start_of_before_an_emergency_stop_begins() {
    let mut bench = Bench::new();
    // A stop overtakes the order to open.
    bench.server.control(emergency(3));
    bench.server.open(opening(1));
    assert!(matches!(bench.hears(), Notice::Opened { .. }));
    bench.starts(1, 2);
    assert!(matches!(bench.hears_end(), (1, RunEnd::Cancelled)));
    bench.server.control(Order::Epoch { stop_epoch: 2 });
    bench.starts(2, 3);
    bench.server.control(Order::Epoch { stop_epoch: 4 });
    bench.starts(3, 3);
    assert!(matches!(bench.hears_end(), (3, RunEnd::Cancelled)));
    assert!(
        bench.toolbox.runs.lock()[0].is_void(),
        "it was planned before the stop"
    );
    let expected = ["stopped 3", "stopped 3", "start 2", "stopped 4"];
    assert_eq!(bench.toolbox.noted(), expected);
}

/// What the control lane serves waits neither for a `start` of the toolbox nor for a service that does not read the data lane.
#[test]
fn the_control_lane_is_served_while_a_start_does_not_return() {
    let mut bench = Bench::open();
    let ((started, has_started), (go_on, goes_on)) = (channel(), channel());
    *bench.toolbox.started.lock() = Some(started);
    *bench.toolbox.goes_on.lock() = Some(goes_on);
    let Bench { server, control, .. } = &mut bench;
    let mut cutter = Cutter::new(MAX_DATA);
    std::thread::scope(|scope| {
        let start = Raw::of(&start(0));
        let order = Order::Start {
            run: 1,
            progress: false,
            start,
        };
        scope.spawn(|| server.data(order));
        has_started.recv().unwrap();
        server.control(Order::Beat { seq: 7 });
        server.control(Order::Cancel { run: 1, starts: 1 });
        server.control(emergency(1));
        assert!(matches!(next(control, &mut cutter), Notice::Beat { seq: 7 }));
        assert!(matches!(
            next(control, &mut cutter),
            Notice::Halted { seq: 9, .. }
        ));
        go_on.send(()).unwrap();
    });
    // The toolbox is asked to end the run when it knows of it.
    let expected = ["start 1", "halt [\"all\"] true", "cancel 1"];
    assert_eq!(bench.toolbox.noted(), expected);
    assert!(bench.toolbox.runs.lock()[0].is_void());
}

#[test]
fn a_run_that_is_lost_ends_with_an_error_and_moves_nothing_any_more() {
    let mut bench = Bench::open();
    bench.starts(1, 0);
    assert!(bench.server.is_moving());
    bench.toolbox.runs.lock().clear();
    assert!(matches!(bench.hears_end(), (1, RunEnd::Error(_))));
    assert!(!bench.server.is_moving());
}
