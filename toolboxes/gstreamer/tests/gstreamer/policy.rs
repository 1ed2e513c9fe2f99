//! The toolbox gives access only to files, sockets and devices that its configuration allows, and everyday pipelines
//! work.
mod pipelines;
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use crate::rig::Rig;
use pipelines::{ESCAPES, EVERYDAY};
use serde_json::json;

/// Fills a row's pipeline in: `REC` and `PRIVATE` are folders.
fn filled(rig: &Rig, text: &str) -> String {
    let folder = |path: std::path::PathBuf| path.display().to_string().trim_end_matches('/').to_owned();
    text.replace("REC", &folder(rig.rec("")))
        .replace("PRIVATE", &folder(rig.private("")))
}

/// A rig whose allowed folder contains links to forbidden files.
fn trapped() -> Rig {
    crate::rig::faulty();
    let rig = Rig::new();
    symlink(rig.private("key"), rig.rec("link.ts")).unwrap();
    symlink(rig.private(""), rig.rec("folder")).unwrap();
    std::fs::create_dir(rig.rec("clean")).unwrap();
    std::fs::write(rig.rec("clean/plain.txt"), "free for all").unwrap();
    let list = format!(
        "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile://{}\n#EXT-X-ENDLIST\n",
        rig.private("key").display()
    );
    std::fs::write(rig.rec("clean/list.m3u8"), list).unwrap();
    rig
}

#[test]
fn no_pipeline_gets_out() {
    let rig = trapped();
    let mut wrong = Vec::new();
    let mut refused = 0;
    let here = || {
        let entries = std::fs::read_dir(".").unwrap();
        entries
            .map(|entry| entry.unwrap().file_name())
            .collect::<BTreeSet<_>>()
    };
    let before = here();
    for (key, text) in ESCAPES {
        let pipeline = filled(&rig, text);
        let answer = rig.call(
            "start_pipeline",
            json!({"pipeline": pipeline, "wait_for": "started"}),
        );
        match answer {
            Ok(started) => {
                _ = rig.call(
                    "stop_pipeline",
                    json!({"instance_id": started["instance_id"], "force": true}),
                );
                wrong.push(format!("{text}\n    was started"));
            }
            Err(failure) if failure.kind == "PermissionError" => {
                refused += 1;
                let named = &failure.data.as_ref().unwrap()["key"];
                // A folder outside both may be reported with either key.
                let roots = ["read_roots", "write_roots"];
                if named != key && !(roots.contains(key) && roots.contains(&named.as_str().unwrap())) {
                    wrong.push(format!("{text}\n    names {named}, not {key}: {failure}"));
                }
            }
            Err(failure) if failure.message.starts_with("no element") => {
                skip::skip("gstreamer-element", &format!("{failure}, so not tried: {text}"));
            }
            Err(failure) => wrong.push(format!("{text}\n    fails for another reason: {failure}")),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        ESCAPES.len(),
        wrong.join("\n")
    );
    assert!(refused >= 40, "only {refused} were refused");
    assert_eq!(here(), before, "something was written where the process stands");
    assert!(!std::path::Path::new("/tmp/ovos-tools-escape").exists());
}

/// A model that knows no folder writes `location=clip.mp4`.
#[test]
fn a_path_without_a_folder_is_below_the_first_root() {
    let rig = Rig::new();
    std::fs::create_dir(rig.rec("a b")).unwrap();
    let first = rig.rec("a b").canonicalize().unwrap();
    let rig = Rig::with(json!({"write_roots": [first, rig.rec("")], "read_roots": [first]}));
    for (written, file) in [
        ("one.raw", "one.raw"),
        ("\"two words.raw\"", "two words.raw"),
        ("'three words.raw'", "three words.raw"),
        ("four\\ words.raw", "four words.raw"),
        ("./five.raw", "five.raw"),
    ] {
        let text = format!("videotestsrc num-buffers=2 ! filesink location={written}");
        let checked = rig.ok("validate_pipeline", json!({"pipeline": text}));
        assert_eq!(checked["valid"], json!(true), "{text}: {checked}");
        let started = rig.ok("start_pipeline", json!({"pipeline": text, "wait_ms": 30_000}));
        let path = first.join(file);
        let file = std::path::PathBuf::from(started["files"][0].as_str().unwrap());
        assert_eq!(file, path, "{text}");
        let id = started["instance_id"].as_str().unwrap();
        rig.status_until(id, "end", |status| status["state"] == "ended");
        assert!(std::fs::metadata(&path).unwrap().len() > 0, "{text}");
        let text = format!("filesrc location={written} ! fakesink");
        rig.ok("start_pipeline", json!({"pipeline": text, "wait_ms": 30_000}));
    }
}

/// The error has the line to copy, and the line has what is there already.
#[test]
fn a_refusal_has_the_line_that_allows_it() {
    let rig = Rig::with(json!({"devices": ["/dev/video0"], "network_targets": ["localhost"]}));
    let rec = rig.rec("").display().to_string().trim_end_matches('/').to_owned();
    for (pipeline, line) in [
        (
            "videotestsrc ! filesink location=/srv/films/a.ts",
            format!("\"write_roots\": [\"{rec}\",\"/srv/films\"]"),
        ),
        (
            "v4l2src device=/dev/video7 ! fakesink",
            "\"devices\": [\"/dev/video0\",\"/dev/video7\"]".to_owned(),
        ),
        (
            "videotestsrc ! udpsink host=192.0.2.1",
            "\"network_targets\": [\"localhost\",\"192.0.2.1\"]".to_owned(),
        ),
        (
            "videotestsrc ! x264enc ! mpegtsmux ! srtsink uri=srt://:5000?mode=listener",
            "\"network_targets\": [\"localhost\",\"0.0.0.0\"]".to_owned(),
        ),
        (
            "videotestsrc ! tcpserversink host=::",
            "\"network_targets\": [\"localhost\",\"::\"]".to_owned(),
        ),
    ] {
        let failure = rig.fails("start_pipeline", json!({"pipeline": pipeline}));
        assert!(failure.message.contains(&line), "{pipeline}: {failure}");
        let checked = rig.ok("validate_pipeline", json!({"pipeline": pipeline}));
        assert!(
            checked["suggestion"].as_str().unwrap().contains(&line),
            "{checked}"
        );
    }
}

#[test]
fn everyday_pipelines_are_let_through() {
    let rig = trapped();
    // Patterns must not match links to other folders; these pipelines use a folder without links.
    for text in EVERYDAY {
        let pipeline = filled(&rig, text);
        let started = rig.ok("start_pipeline", json!({"pipeline": pipeline, "wait_ms": 30_000}));
        if started["state"] == "ended" {
            // It ended early; any other end would be an error of the call.
            continue;
        }
        assert_eq!(started["state"], "playing", "{text}: {started}");
        rig.ok(
            "stop_pipeline",
            json!({"instance_id": started["instance_id"], "force": true}),
        );
    }
}

#[test]
fn what_bins_make_later_is_judged_too() {
    let rig = trapped();
    let (key, plain) = (rig.private("key"), rig.rec("clean/plain.txt"));
    let odd = rig.rec("").join(std::ffi::OsStr::from_bytes(b"odd\xff"));
    let (outside, inside) = (rig.private("stolen"), rig.rec("clean/stolen"));
    // Texts that only the element itself recognises as paths, so that they cannot be checked before.
    let bin = |kind: &str, from: &std::path::Path, to: &std::path::Path| {
        let hidden =
            |path: &std::path::Path| gst::glib::base64_encode(path.as_os_str().as_bytes()).to_string();
        format!("{kind} gadget={} gizmo={}", hidden(from), hidden(to))
    };
    for (pipeline, wanted) in [
        (bin("faultylate", &key, &inside), "read_roots"),
        (bin("faultylate", &plain, &outside), "write_roots"),
        (bin("faultychange", &key, &inside), "read_roots"),
        (bin("faultychange", &odd, &inside), "not text in UTF-8"),
        (
            filled(&rig, "playbin uri=file://REC/clean/list.m3u8"),
            "allow_elements",
        ),
    ] {
        let failure = rig.fails("start_pipeline", json!({"pipeline": pipeline, "wait_ms": 30_000}));
        let text = failure.to_string();
        assert!(text.contains(wanted), "{pipeline}: {text}");
        assert_ne!(
            failure.kind, "PermissionError",
            "{pipeline} was refused before it had begun: {text}"
        );
        assert!(!outside.exists(), "{pipeline} wrote outside");
        let stolen = std::fs::read_to_string(&inside).unwrap_or_default();
        assert!(!stolen.contains("secret"), "{pipeline} read outside");
    }
    // The same bin may access allowed files.
    let text = bin("faultylate", &plain, &rig.rec("clean/copy"));
    let copied = rig.ok("start_pipeline", json!({"pipeline": text, "wait_for": "started"}));
    let id = copied["instance_id"].as_str().unwrap();
    let status = rig.status_until(id, "end", |status| status["state"] == "ended");
    assert_eq!(status["reason"], "end of stream", "{status}");
    assert_eq!(
        std::fs::read_to_string(rig.rec("clean/copy")).unwrap(),
        "free for all"
    );
}

/// The address of an HTTP server that starts an answer and never completes it.
fn server() -> std::net::SocketAddr {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for client in server.incoming() {
            let mut client = client.unwrap();
            _ = client.read(&mut [0; 4096]);
            _ = client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nit begins");
            open.push(client);
        }
    });
    address
}

#[test]
fn a_property_cannot_be_changed_into_an_escape() {
    let rig = trapped();
    let server = server();
    let id = rig.start(&filled(
        &rig,
        &format!(
            "videotestsrc is-live=true ! tee name=t t. ! queue ! udpsink name=u host=127.0.0.1 port=7415 \
             t. ! queue ! multifilesink name=m location=REC/clean/%05d.raw max-files=2 \
             t. ! queue ! jpegenc ! multipartmux name=o ! fakesink \
             souphttpsrc name=s is-live=true location=http://{server}/x ! fakesink async=false"
        ),
    ));
    let rows = [
        ("u", "host", json!("198.51.100.7"), Some("network_targets")),
        ("u", "clients", json!("198.51.100.7:1"), Some("network_targets")),
        ("u", "bind-address", json!("0.0.0.0"), Some("network_targets")),
        (
            "m",
            "location",
            json!(filled(&rig, "PRIVATE/%05d")),
            Some("write_roots"),
        ),
        ("m", "location", json!("/tmp/%s"), Some("write_roots")),
        ("s", "automatic-redirect", json!(true), Some("network_targets")),
        ("s", "automatic-redirect", json!("true"), Some("network_targets")),
        ("s", "automatic-redirect", json!(false), None),
        ("u", "host", json!("localhost"), None),
        ("u", "port", json!(7416), None),
        ("m", "location", json!(filled(&rig, "REC/clean/other-%05d")), None),
        ("o", "boundary", json!("/etc/passwd is only a text here"), None),
    ];
    for (element, property, value, key) in rows {
        let args = json!({"instance_id": id, "element": element, "property": property, "value": value});
        match (rig.call("set_pipeline_property", args), key) {
            (Ok(changed), None) => assert_eq!(changed["now"], value, "{element} {property}"),
            (Err(failure), Some(key)) => {
                assert_eq!(failure.kind, "PermissionError", "{element} {property}: {failure}");
                assert_eq!(failure.data.as_ref().unwrap()["key"], key, "{failure}");
                assert!(failure.message.contains(&format!("`{key}`")), "{failure}");
            }
            (answer, _) => panic!("{element} {property} {value}: {answer:?}"),
        }
    }
    // It runs on; no data comes from the server after its first.
    let status = rig.status(&id);
    assert!(
        status["state"] == "playing" || status["state"] == "stalled",
        "{status}"
    );
}

#[test]
fn the_configuration_widens_and_narrows_it() {
    crate::rig::faulty();
    let rows = [
        (
            json!({"deny_elements": ["videotestsrc"]}),
            "videotestsrc ! fakesink",
            Some("deny_elements"),
        ),
        (
            json!({"deny_elements": ["videotestsrc"]}),
            "audiotestsrc ! fakesink",
            None,
        ),
        (
            json!({"allow_elements": ["faultyscript"]}),
            "faultyscript startup-script=x",
            None,
        ),
        (
            json!({"network_targets": ["198.51.100.7:7417"]}),
            "videotestsrc ! udpsink host=198.51.100.7 port=7417",
            None,
        ),
        (
            json!({"network_targets": ["198.51.100.0:7417"]}),
            "videotestsrc ! udpsink host=198.51.100.0 port=1",
            Some("network_targets"),
        ),
        (
            json!({"network_targets": ["*"]}),
            "udpsrc port=0 ! fakesink async=false",
            None,
        ),
        (
            json!({"network_targets": []}),
            "videotestsrc ! udpsink host=127.0.0.1",
            Some("network_targets"),
        ),
        (
            json!({"read_roots": []}),
            "filesrc location=/etc/hostname ! fakesink",
            Some("read_roots"),
        ),
        (
            json!({"read_roots": ["/etc"]}),
            "filesrc location=/etc/passwd ! fakesink",
            None,
        ),
        (
            json!({"devices": []}),
            "faultydevice device=/dev/video97",
            Some("devices"),
        ),
        (
            json!({"max_pipeline_length": 30}),
            "videotestsrc ! identity ! identity ! fakesink",
            Some("max_pipeline_length"),
        ),
    ];
    for (config, pipeline, key) in rows {
        let rig = Rig::with(config.clone());
        let rig = rig.toolbox().call(
            "start_pipeline",
            json!({"pipeline": pipeline, "wait_for": "started"}),
        );
        match (rig, key) {
            (Ok(_), None) => {}
            (Err(failure), Some(key)) => {
                assert_eq!(
                    failure.data.as_ref().unwrap()["key"],
                    key,
                    "{config} {pipeline}: {failure}"
                );
            }
            (answer, _) => panic!("{config} {pipeline}: {answer:?}"),
        }
    }
}
