//! Running pipelines can be watched, paused, changed, inspected and stopped, and a failing one does not affect the
//! others.
mod blocked;
mod recording;
mod stopping;

use std::time::{Duration, Instant};

use crate::rig::Rig;
use ovos_toolbox_sdk::wire::Severity;
use serde_json::{Value, json};

const LIVE: &str = "videotestsrc name=v is-live=true ! video/x-raw,width=160,height=120,framerate=25/1 ! tee name=t \
     t. ! queue ! x264enc name=e tune=zerolatency speed-preset=ultrafast bitrate=300 ! fakesink name=end sync=false \
     t. ! queue ! fakesink name=shown sync=true";

/// `playing` means that data flows.
#[test]
fn a_pipeline_without_data_is_stalled_until_data_flows_again() {
    let rig = Rig::new();
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let id = rig.start(&format!(
        "udpsrc address=127.0.0.1 port={port} ! fakesink name=end async=false"
    ));
    let event = rig.toolbox().wait_event("pipeline_stalled");
    assert_eq!(event.severity, Severity::Warning);
    assert_eq!(event.data.unwrap()["element"], "end");
    let status = rig.status(&id);
    assert_eq!(status["state"], "stalled", "{status:#}");
    assert!(
        status["flows"][0]["idle_s"].as_f64().unwrap() >= 4.0,
        "{status:#}"
    );
    let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let status = rig.status_until(&id, "flow", |status| {
        sender.send_to(b"data", ("127.0.0.1", port)).unwrap();
        status["state"] == "playing"
    });
    assert!(status["flows"][0]["buffers"].as_u64().unwrap() > 0, "{status:#}");
    assert_eq!(
        rig.toolbox().wait_event("pipeline_flows").severity,
        Severity::Info
    );
}

/// A live source that cannot keep up drops frames, and nothing else reports them.
#[test]
fn frames_that_a_slow_pipeline_loses_are_counted() {
    let rig = Rig::new();
    let id = rig.start(
        "videotestsrc is-live=true ! video/x-raw,width=64,height=64,framerate=100/1 ! identity sleep-time=50000 \
         ! fakesink sync=false",
    );
    let status = rig.status_until(&id, "loss", |status| {
        status["dropped_frames"].as_u64().unwrap() > 100
    });
    let source = status["flows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|flow| flow["place"] == "source")
        .unwrap();
    assert_eq!(source["nominal_rate"], json!(100.0), "{source}");
    assert!(source["rate"].as_f64().unwrap() < 50.0, "{source}");
    assert_eq!(status["state"], "playing", "{status:#}");
    let id = rig.start(LIVE);
    let status = rig.status_until(&id, "frames", |status| {
        status["flows"][0]["buffers"].as_u64().unwrap() > 60
    });
    assert!(status["dropped_frames"].as_u64().unwrap() < 25, "{status:#}");
}

#[test]
fn a_pipeline_plays_is_held_goes_on_and_stops() {
    let rig = Rig::new();
    let started = rig.ok(
        "start_pipeline",
        json!({"pipeline": LIVE, "name": "cam one", "wait_ms": 30_000}),
    );
    let id = started["instance_id"].as_str().unwrap();
    assert!(id.starts_with("cam-one-"), "{started}");
    assert_eq!(
        rig.toolbox().wait_event("pipeline_started").data.unwrap()["name"],
        "cam one"
    );

    let running = rig.ok("get_running_instances", json!({}));
    assert_eq!(running["instances"][0]["instance_id"], id, "{running}");
    assert_eq!(running["instances"][0]["pipeline"], LIVE);

    let frames = |status: &Value, place: &str| {
        let flows = status["flows"].as_array().unwrap().clone();
        flows
            .iter()
            .filter(|flow| flow["place"] == place)
            .map(|flow| flow["buffers"].as_u64().unwrap())
            .max()
            .unwrap_or(0)
    };
    let status = rig.status_until(id, "frames", |status| frames(status, "encoder") >= 25);
    assert_eq!(
        (&status["state"], &status["live"]),
        (&json!("playing"), &json!(true)),
        "{status:#}"
    );
    assert!(status["position_s"].as_f64().unwrap() > 0.5, "{status:#}");
    assert!(status["latency_ms"].as_f64().is_some(), "{status:#}");
    let source = status["flows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|flow| flow["place"] == "source")
        .unwrap();
    let rate = source["rate"].as_f64().unwrap();
    assert!(
        (20.0..30.0).contains(&rate),
        "25 frames per second were asked for: {source}"
    );

    let held = rig.ok("pause_pipeline", json!({"instance_id": "cam one"}));
    assert_eq!(held["state"], "paused");
    let before = frames(&rig.status(id), "encoder");
    let resumed = rig.ok("resume_pipeline", json!({"instance_id": id}));
    assert_eq!(resumed["state"], "playing");
    rig.status_until(id, "more frames", |status| {
        frames(status, "encoder") >= before + 10
    });

    let stopped = rig.ok("stop_pipeline", json!({"instance_id": id}));
    assert_eq!(
        stopped["files_finished"], true,
        "the end of the stream went through"
    );
    let ended = rig.toolbox().wait_event("pipeline_ended").data.unwrap();
    assert_eq!(
        (&ended["reason"], &ended["instance_id"]),
        (&json!("stopped"), &json!(id))
    );
    let running = rig.ok("get_running_instances", json!({}));
    assert_eq!(running["instances"], json!([]));
    assert_eq!(running["ended"][0]["instance_id"], id);
    assert_eq!(rig.status(id)["state"], "ended");
}

#[test]
fn properties_are_changed_while_it_runs() {
    let rig = Rig::new();
    let id = rig.start(LIVE);
    let set = |element: &str, property: &str, value: Value| {
        let args = json!({"instance_id": id, "element": element, "property": property, "value": value});
        rig.call("set_pipeline_property", args)
    };
    assert_eq!(
        set("e", "bitrate", json!(600)).unwrap(),
        json!({"before": 300, "now": 600})
    );
    // As a client writes it that has one kind of number.
    assert_eq!(set("e", "bitrate", json!(700.0)).unwrap()["now"], 700);
    assert_eq!(set("v", "pattern", json!("snow")).unwrap()["now"], "snow");
    assert_eq!(set("shown", "sync", json!(false)).unwrap()["now"], false);
    for (element, property, value, expected) in [
        ("nobody", "bitrate", json!(1), "no element nobody"),
        ("e", "nothing", json!(1), "has no property nothing"),
        ("e", "bitrat", json!(1), "did you mean bitrate?"),
        (
            "e",
            "bitrate",
            json!("much"),
            "expected a whole number from 1 to 2048000",
        ),
        (
            "e",
            "bitrate",
            json!(600.5),
            "expected a whole number from 1 to 2048000",
        ),
        (
            "e",
            "bitrate",
            json!(-5),
            "expected a whole number from 1 to 2048000",
        ),
        (
            "e",
            "bitrate",
            json!(4_000_000),
            "expected a whole number from 1 to 2048000",
        ),
        ("v", "pattern", json!("snwo"), "expected one of smpte, snow"),
        ("shown", "sync", json!("maybe"), "expected true or false"),
        ("end", "last-sample", json!("x"), "cannot be written"),
    ] {
        let failure = set(element, property, value).unwrap_err();
        assert!(failure.message.contains(expected), "{failure}");
    }
}

#[test]
fn a_value_no_range_knows_is_refused_and_costs_nothing() {
    let rig = Rig::new();
    let id = rig.start(
        "audiotestsrc is-live=true ! audioconvert ! volume name=double ! audioecho name=float ! fakesink \
         fakesrc is-live=true sizetype=fixed sizemax=115200 ! rawvideoparse name=fraction ! fakesink",
    );
    let set = |element: &str, property: &str, value: &str| {
        let args = json!({"instance_id": id, "element": element, "property": property, "value": value});
        rig.call("set_pipeline_property", args)
    };
    for (element, property, value) in [
        ("double", "volume", "nan"),
        ("double", "volume", "-nan"),
        ("double", "volume", "inf"),
        ("float", "intensity", "nan"),
        ("float", "intensity", "-nan"),
        ("fraction", "pixel-aspect-ratio", "0/1"),
    ] {
        let failure = set(element, property, value).unwrap_err();
        assert_eq!(failure.kind, "ValueError", "{property} {value}: {failure}");
    }
    for (element, property, value) in [
        ("double", "volume", "0.5"),
        ("float", "intensity", "1"),
        ("fraction", "pixel-aspect-ratio", "16/15"),
    ] {
        set(element, property, value).unwrap();
    }
    assert_eq!(rig.status(&id)["state"], "playing");
}

#[test]
fn pictures_and_graphs_are_taken() {
    let rig = Rig::new();
    let id = rig.start(LIVE);
    rig.status_until(&id, "a shown frame", |status| {
        status["position_s"].as_f64().unwrap_or(0.0) > 0.2
    });
    for (args, width, start) in [
        (json!({"instance_id": id}), 160, &b"\xff\xd8\xff"[..]),
        (
            json!({"instance_id": id, "element": "v", "format": "png"}),
            160,
            b"\x89PNG",
        ),
        (
            json!({"instance_id": id, "element": "shown", "path": rig.rec("shot.jpg"), "inline": true}),
            160,
            b"\xff\xd8\xff",
        ),
    ] {
        let (shot, content) = rig.shows("take_snapshot", args.clone());
        assert_eq!(shot["width"], width, "{args}: {shot}");
        let picture = std::fs::read(shot["path"].as_str().unwrap()).unwrap();
        assert_eq!(content, std::slice::from_ref(&picture), "{args}");
        assert!(picture.starts_with(start), "{args}");
        assert_eq!(shot["bytes"], picture.len());
        if args["inline"] == true {
            let data = gst::glib::base64_decode(shot["data"].as_str().unwrap());
            assert_eq!(data, picture);
        }
    }
    // A path that is not absolute is below the folder for recordings, as in a pipeline.
    let shot = rig.ok("take_snapshot", json!({"instance_id": id, "path": "below.jpg"}));
    assert_eq!(shot["path"], json!(rig.rec("below.jpg")));
    rig.ok("pause_pipeline", json!({"instance_id": id}));
    let failure = rig.fails("take_snapshot", json!({"instance_id": id, "element": "v"}));
    assert!(failure.message.contains("use resume_pipeline first"), "{failure}");
    rig.ok("resume_pipeline", json!({"instance_id": id}));
    for (args, kind, expected) in [
        (
            json!({"instance_id": id, "element": "e2"}),
            "ValueError",
            "no element e2",
        ),
        (
            json!({"instance_id": id, "element": "end"}),
            "ValueError",
            "end has no uncompressed video",
        ),
        (
            json!({"instance_id": id, "path": "/tmp/shot.jpg"}),
            "PermissionError",
            "write_roots",
        ),
        (
            json!({"instance_id": id, "path": rig.rec("shot.jpg")}),
            "ToolError",
            "exists",
        ),
        (json!({"device": "/dev/sda"}), "PermissionError", "devices"),
        (json!({}), "ValueError", "either"),
    ] {
        let failure = rig.fails("take_snapshot", args.clone());
        assert_eq!(failure.kind, kind, "{args}: {failure}");
        assert!(failure.message.contains(expected), "{args}: {failure}");
    }
    let graph = rig.ok(
        "pipeline_graph",
        json!({"instance_id": id, "svg": true, "detail": "all"}),
    );
    let dot = graph["dot"].as_str().unwrap();
    assert!(
        dot.starts_with("digraph") && dot.contains("GstX264Enc"),
        "{dot:.300}"
    );
    assert!(graph["elements"].as_array().unwrap().contains(&json!("e")));
    match graph["svg"].as_str() {
        Some(svg) => assert!(svg.contains("</svg>"), "{svg}"),
        None => skip::skip(
            "graphviz",
            &format!("no picture of a pipeline: {}", graph["note"]),
        ),
    }
}

#[test]
fn graphs_keep_secrets() {
    let rig = Rig::new();
    let id = rig.start(
        "videotestsrc is-live=true ! rtpvrawpay ! srtsink uri=srt://127.0.0.1:0?mode=listener wait-for-connection=false \
         passphrase=correcthorsebattery",
    );
    let graph = rig.ok("pipeline_graph", json!({"instance_id": id, "detail": "all"}));
    assert!(!graph.to_string().contains("correcthorsebattery"));
}

#[test]
fn a_device_a_name_and_a_file_have_one_owner() {
    crate::rig::faulty();
    let rig = Rig::with(json!({"max_instances": 4}));
    let first = rig.start("faultydevice device=/dev/video97");
    let record = format!(
        "videotestsrc is-live=true ! filesink location={}",
        rig.rec("a.raw").display()
    );
    let second = rig.start(&record);
    rig.ok(
        "start_pipeline",
        json!({"pipeline": "fakesrc is-live=true ! fakesink", "name": "mine"}),
    );
    for (args, owner) in [
        (
            json!({"pipeline": "faultydevice device=/dev//video97"}),
            first.as_str(),
        ),
        (
            json!({"pipeline": "faultydevice device=/dev/video96 faultydevice device=/dev/video97"}),
            &first,
        ),
        (json!({"pipeline": record}), &second),
        (
            json!({"pipeline": "videotestsrc ! fakesink", "name": "mine"}),
            "mine-",
        ),
    ] {
        let failure = rig.fails("start_pipeline", args.clone());
        assert_eq!(failure.kind, "BusyError", "{args}: {failure}");
        assert!(
            failure.message.contains(owner),
            "{args} does not name {owner}: {failure}"
        );
    }
    let running = rig.ok("get_running_instances", json!({}));
    assert_eq!(
        running["instances"][0]["devices"],
        json!(["/dev/video97"]),
        "{running:#}"
    );
    // A refused pipeline holds nothing.
    let other = rig.start("faultydevice device=/dev/video96");
    let failure = rig.fails("start_pipeline", json!({"pipeline": "fakesrc ! fakesink"}));
    assert!(failure.message.contains("max_instances"), "{failure}");
    rig.ok("stop_pipeline", json!({"instance_id": first, "force": true}));
    rig.ok("stop_pipeline", json!({"instance_id": other, "force": true}));
    let again = rig.start("faultydevice device=/dev/video97");
    assert_ne!(again, first);
}

#[test]
fn a_failure_is_told_with_all_it_says() {
    crate::rig::faulty();
    let rig = Rig::new();
    let failure = rig.fails("start_pipeline", json!({"pipeline": "faultyerror name=bad"}));
    assert_eq!(failure.kind, "PipelineError");
    assert!(failure.message.contains("it was told to fail"), "{failure}");
    let data = failure.data.unwrap();
    assert!(
        data["error"]["debug"]
            .as_str()
            .unwrap()
            .contains("and this is why"),
        "{data}"
    );
    let event = rig.toolbox().wait_event("pipeline_error");
    assert_eq!(event.severity, Severity::Error);
    assert_eq!(event.data.unwrap()["error"]["element"], "bad");
    let failure = rig.fails("start_pipeline", json!({"pipeline": "videotestsrc ! nothing"}));
    assert!(failure.message.contains("no element \"nothing\""), "{failure}");
    let missing = format!("filesrc location={} ! fakesink", rig.rec("missing").display());
    let failure = rig.fails("start_pipeline", json!({"pipeline": missing}));
    assert!(failure.message.contains("missing"), "{failure}");
}

#[test]
fn a_failed_pipeline_is_started_again_later_each_time() {
    crate::rig::faulty();
    let rig = Rig::new();
    let started = rig.ok(
        "start_pipeline",
        json!({"pipeline": "faultyerror", "restart": "on_failure", "wait_ms": 30_000}),
    );
    assert_eq!(started["state"], "restarting", "{started}");
    assert!(
        started["error"].as_str().unwrap().contains("told to fail"),
        "{started}"
    );
    let id = started["instance_id"].as_str().unwrap();
    rig.status_until(id, "third start", |status| {
        status["restarts"].as_u64().unwrap() >= 3
    });
    let waits: Vec<u64> = rig
        .toolbox()
        .events()
        .iter()
        .filter(|event| event.kind == "pipeline_restarting")
        .map(|event| event.data.as_ref().unwrap()["wait_ms"].as_u64().unwrap())
        .collect();
    assert_eq!(waits[..3], [500, 1000, 2000]);
    rig.ok("stop_pipeline", json!({"instance_id": id}));
    // An end of stream is no failure.
    let ended = rig.ok(
        "start_pipeline",
        json!({"pipeline": "videotestsrc num-buffers=2 ! fakesink", "restart": "on_failure", "wait_for": "started"}),
    );
    let status = rig.status_until(ended["instance_id"].as_str().unwrap(), "end", |status| {
        status["state"] == "ended"
    });
    assert_eq!(status["reason"], "end of stream");
}

#[test]
fn what_is_to_run_always_begins_again_at_its_end() {
    let rig = Rig::new();
    let pipeline = "videotestsrc num-buffers=3 ! fakesink";
    let args = json!({"pipeline": pipeline, "name": "loop", "restart": "always", "wait_for": "started"});
    rig.ok("start_pipeline", args);
    let status = rig.status_until("loop", "third life", |status| {
        status["restarts"].as_u64().unwrap() >= 2
    });
    assert_eq!(status["error"], Value::Null, "{status:#}");
    rig.ok("stop_pipeline", json!({"instance_id": "loop"}));
    assert_eq!(rig.status("loop")["reason"], "stopped");
}

#[test]
fn an_element_that_hangs_costs_only_its_own_pipeline() {
    crate::rig::faulty();
    let rig = Rig::with(json!({"eos_timeout_ms": 500}));
    let hung = rig.ok(
        "start_pipeline",
        json!({"pipeline": "faultyhang", "name": "hung", "wait_ms": 300}),
    );
    assert_eq!(hung["state"], "starting", "{hung}");
    let other = rig.start(LIVE);
    let start = Instant::now();
    let status = rig.status("hung");
    assert_eq!(status["state"], "starting");
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "a question waited {:?}",
        start.elapsed()
    );
    rig.ok("stop_pipeline", json!({"instance_id": other}));
    let running = rig.status_until("hung", "mark", |status| status["stuck"] == true);
    assert_eq!(running["state"], "starting", "{running}");
    // What hangs is killed, soon after the time limit of the end of stream.
    for force in [false, true] {
        let began = Instant::now();
        let stopped = rig.ok("stop_pipeline", json!({"instance_id": "hung", "force": force}));
        assert_eq!(stopped["files_finished"], false, "{stopped}");
        assert!(
            began.elapsed() < Duration::from_millis(1_500),
            "{:?}",
            began.elapsed()
        );
        let args = json!({"pipeline": "faultyhang", "name": "hung", "wait_for": "started"});
        rig.ok("start_pipeline", args);
    }
    // A close does not wait for it either.
    let began = Instant::now();
    drop(rig);
    assert!(
        began.elapsed() < Duration::from_secs(9),
        "closing took {:?}",
        began.elapsed()
    );
}
