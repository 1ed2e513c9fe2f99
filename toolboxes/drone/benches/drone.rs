//! Latencies of the toolbox: a guarded call compared with the bare gRPC call, a read from the cache, and a halt until
//! it reaches the vehicle. Prints a table of figures and goals.
//!
//! Uses the real mavsdk_server and px4-sim on this machine. The service's own bench, `end_to_end`, measures the brake
//! from the bus message on.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench prints, and fails by panicking"
)]

#[path = "../tests/support/rig.rs"]
mod rig;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use drone::Fleet;
use drone::mavsdk::camera::camera_service_client::CameraServiceClient;
use drone::mavsdk::camera::{SubscribeCaptureInfoRequest, TakePhotoRequest};
use ovos_toolbox_sdk::prelude::*;
use rig::Rig;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tonic::transport::{Channel, Endpoint};

/// Component id of px4-sim's camera.
const CAMERA: i32 = 100;
/// Photos taken per variant.
const PHOTOS: usize = 400;

fn percentile(times: &mut [Duration], part: f64) -> Duration {
    times.sort_unstable();
    times[((times.len() - 1) as f64 * part) as usize]
}

fn row(what: &str, times: &mut [Duration], goal: &str) {
    let (median, late) = (percentile(times, 0.5), percentile(times, 0.99));
    println!("{what:<62} {:>10.1?} {:>10.1?}   {goal}", median, late);
}

fn timed(count: usize, mut work: impl FnMut()) -> Vec<Duration> {
    (0..count)
        .map(|_| {
            let began = Instant::now();
            work();
            began.elapsed()
        })
        .collect()
}

/// A client of the same mavsdk_server, without the toolbox.
struct Bare {
    runtime: tokio::runtime::Runtime,
    client: CameraServiceClient<Channel>,
    /// One message for each photo that the camera reports.
    reports: UnboundedReceiver<()>,
}

impl Bare {
    fn open(rig: &Rig) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let address = format!("http://127.0.0.1:{}", rig.server_port());
        let (tell, reports) = unbounded_channel();
        let client = runtime.block_on(async {
            let endpoint = Endpoint::from_shared(address).unwrap().tcp_nodelay(true);
            let client = CameraServiceClient::new(endpoint.connect().await.unwrap());
            let mut listening = client.clone();
            // mavsdk_server answers a subscription with its first message.
            tokio::spawn(async move {
                let stream = listening.subscribe_capture_info(SubscribeCaptureInfoRequest {});
                let mut stream = stream.await.unwrap().into_inner();
                while let Ok(Some(_)) = stream.message().await {
                    let _ = tell.send(());
                }
            });
            client
        });
        Self {
            runtime,
            client,
            reports,
        }
    }

    /// Returns the time of the call alone, and of the call plus the camera's report of the photo.
    fn photo(&mut self) -> (Duration, Duration) {
        let Self {
            runtime,
            client,
            reports,
        } = self;
        runtime.block_on(async {
            let began = Instant::now();
            let request = TakePhotoRequest { component_id: CAMERA };
            let answer = client.take_photo(request).await.unwrap().into_inner();
            let answer_time = began.elapsed();
            assert_eq!(answer.camera_result.unwrap().result, 1);
            reports.recv().await.unwrap();
            (answer_time, began.elapsed())
        })
    }

    /// Discards the reports of photos that the toolbox took.
    fn forget(&mut self, photos: usize) {
        let Self { runtime, reports, .. } = self;
        runtime.block_on(async {
            for _ in 0..photos {
                reports.recv().await.unwrap();
            }
        });
    }
}

/// The toolbox without the C table and the test harness.
struct Direct {
    runtime: tokio::runtime::Runtime,
    fleet: Fleet,
}

impl Direct {
    fn open(rig: &Rig) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let address = format!("http://127.0.0.1:{}", rig.server_port());
        let fleet = runtime.block_on(async {
            let endpoint = Endpoint::from_shared(address).unwrap().tcp_nodelay(true);
            let fleet = Fleet::over(endpoint.connect_lazy(), json!({"upload_fence": false})).unwrap();
            let end = Instant::now() + Duration::from_secs(30);
            while fleet.call("vehicle_health", json!({})).await["armable"] != true
                || fleet.call("battery_status", json!({})).await["ok"] != true
            {
                assert!(Instant::now() < end, "the vehicle is not heard");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            fleet
        });
        Self { runtime, fleet }
    }

    fn photo(&self) -> Value {
        self.runtime.block_on(self.fleet.call("capture_photo", json!({})))
    }
}

/// Measures reads in the toolbox itself, without the C table and its threads.
fn reads(rig: &Rig) {
    let Direct { runtime, fleet } = Direct::open(rig);
    runtime.block_on(async {
        for (tool, goal) in [
            ("battery_status", "goal: 50 us"),
            ("vehicle_health", "goal: 50 us"),
            ("vehicle_state", "goal: 50 us"),
        ] {
            let mut times = Vec::new();
            for _ in 0..2000 {
                let began = Instant::now();
                let answer = fleet.call(tool, json!({})).await;
                times.push(began.elapsed());
                assert_eq!(answer["ok"], true, "{answer}");
            }
            row(
                &format!("{tool} from the cache, in the toolbox"),
                &mut times,
                goal,
            );
        }
    });
}

/// Takes the same photo with the bare client and with the guarded tool, alternately.
fn photos(rig: &Rig) {
    let fleet = Direct::open(rig);
    let mut bare = Bare::open(rig);
    // Reports sent before the subscription exists are missed.
    while bare.reports.is_empty() {
        let answer = rig.call("capture_photo", json!({}));
        assert_eq!(answer["ok"], true, "{answer}");
        std::thread::sleep(Duration::from_millis(100));
    }
    while bare.reports.try_recv().is_ok() {}
    let (mut alone, mut reported, mut guarded) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..PHOTOS {
        let (answered, shown) = bare.photo();
        alone.push(answered);
        reported.push(shown);
        let began = Instant::now();
        let answer = fleet.photo();
        guarded.push(began.elapsed());
        assert_eq!(answer["ok"], true, "{answer}");
        bare.forget(1);
    }
    row("take_photo, bare gRPC: until it is acknowledged", &mut alone, "");
    row("  and until the camera reports the photo", &mut reported, "");
    row(
        "capture_photo, the guarded tool: until the same report",
        &mut guarded,
        "",
    );
    let added = |part: f64| {
        let (with, without) = (
            percentile(&mut guarded.clone(), part),
            percentile(&mut reported.clone(), part),
        );
        (with.as_secs_f64() - without.as_secs_f64()) * 1e6
    };
    println!(
        "{:<62} {:>7.0} us {:>7.0} us",
        "  the tool adds",
        added(0.5),
        added(0.99)
    );
}

fn unix() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs_f64()
}

/// Measures from the halt to the zero velocity at the vehicle, in offboard control.
fn brake(rig: &Rig) -> Option<Duration> {
    rig.harness.resume().unwrap();
    rig.ok("replan", json!({"reason": "bench"}));
    let action = Action {
        params: json!({"cm": 300}).as_object().unwrap().clone(),
        subsystems: vec!["drone/flight".to_string()],
        ..Action::named("move_left")
    };
    let run = rig.harness.start_action("move_left", action, json!({})).unwrap();
    rig.until("offboard", |rig| rig.truth()["mode"] == "offboard");
    let since = rig.truth()["next_seq"].clone();
    let began = unix();
    rig.harness.halt(&["all"], true).unwrap();
    let _ = run.wait();
    rig.until("hold", |rig| rig.truth()["mode"] == "hold");
    let log = rig.sim(json!({"cmd": "log", "since": since, "kind": "setpoint", "limit": 1000}));
    let zero = log["log"]
        .as_array()?
        .iter()
        .find(|entry| entry["velocity"].is_array())?
        .clone();
    Duration::try_from_secs_f64(zero["unix"].as_f64()? - began).ok()
}

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        // `cargo test --benches` only checks that the bench starts.
        return;
    }
    let config = json!({"simulator": {"speed": 1.0}, "flight_limits": {"max_replans": 100_000}});
    let Some(rig) = Rig::open(config) else {
        return;
    };
    println!("{:<62} {:>10} {:>10}", "drone", "median", "p99");
    let mut empty = timed(2000, || {
        drop(rig.call("log", json!({"level": "INFO", "text": "x"})))
    });
    row(
        "a call that asks nothing, through the toolbox's C table",
        &mut empty,
        "",
    );
    let mut read = timed(2000, || drop(rig.call("battery_status", json!({}))));
    row("battery_status, through the toolbox's C table", &mut read, "");
    reads(&rig);
    photos(&rig);
    let mut refused = timed(2000, || drop(rig.call("move_up", json!({"cm": 50}))));
    row("move_up, judged by every guard and refused", &mut refused, "");
    let base = percentile(&mut empty, 0.5);
    println!(
        "{:<62} {:>10.1?} {:>10}",
        "  of which the guards",
        percentile(&mut refused, 0.5).saturating_sub(base),
        ""
    );
    rig.sim(json!({"cmd": "set_drain", "pct_per_s": 0}));
    rig.take_off(5.0);
    let mut brakes: Vec<Duration> = (0..60).filter_map(|_| brake(&rig)).collect();
    assert!(
        brakes.len() >= 50,
        "only {} brakes reached the vehicle",
        brakes.len()
    );
    row(
        "halt to zero velocity at the vehicle (60 brakes)",
        &mut brakes,
        "goal: p99 below 20 ms",
    );
}
