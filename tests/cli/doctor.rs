//! `ovos-tools doctor`: what is found, and how it is mended.

mod machine;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::machine::{Machine, assert_finding, ours};
use crate::scripted::{self, DEADLINE, run};
use bus::{EmbeddedBus, ServerConfig};

#[tokio::test]
async fn every_service_that_answers_is_counted() {
    let python = json!([{"name": "add"}]);
    for (lists, state, found, mend) in [
        (vec![ours()], "good", "one ovos-tools service answers", ""),
        (vec![], "broken", "no service answers", "ovos-tools serve"),
        (
            vec![python.clone()],
            "broken",
            "only the Python plugin",
            "\"enabled\": false",
        ),
        (
            vec![ours(), python],
            "broken",
            "(ovos-PHAL-plugin-tools) answers, too",
            "\"enabled\": false",
        ),
        (
            vec![ours(), ours()],
            "broken",
            "2 ovos-tools services answer",
            "stop all but one",
        ),
    ] {
        let (_, report) = Machine::new(lists).await.examine(&json!({})).await;
        assert_finding(&report, "service", state, found, mend);
    }
}

/// The scripted bus looks at no headers, as ovos-messagebus does.
#[tokio::test]
async fn a_bus_that_takes_web_pages_is_named() {
    let mut machine = Machine::new(vec![ours()]).await;
    let (_, report) = machine.examine(&json!({})).await;
    assert_finding(&report, "web pages", "limited", "any web page", "service.policy");

    let config = ServerConfig {
        port: 0,
        ..ServerConfig::default()
    };
    let bus = EmbeddedBus::bind(config).await.unwrap();
    machine.bus.url = bus.url();
    let end = CancellationToken::new();
    let _end = end.clone().drop_guard();
    tokio::spawn(bus.run(end));
    let (_, report) = machine.examine(&json!({})).await;
    assert_finding(&report, "web pages", "good", "rejects", "");
}

/// The running service knows best: what it has loaded is not looked for elsewhere.
#[tokio::test]
async fn a_running_service_is_asked_and_believed() {
    let toolbox =
        |id: &str| json!({"toolbox_id": id, "state": "ready", "tools": 3, "path": format!("/p/{id}.so")});
    let good = || json!({"service": {"version": env!("CARGO_PKG_VERSION")}, "toolboxes": [toolbox("math"), toolbox("gstreamer")]});
    let machine = Machine::with(vec![ours()], Some(good())).await;
    // Neither a plugin in the configured folder nor any device of other boards is there.
    let (code, report) = machine.examine(&json!({"gstreamer": {}})).await;
    assert_finding(&report, "toolbox math", "good", "3 tools in /p/math.so", "");
    let broken = report["findings"].as_array().unwrap().iter();
    let broken: Vec<&Value> = broken.filter(|finding| finding["state"] == "broken").collect();
    assert!(broken.is_empty() && code == 0, "{broken:#?}");

    for (change, part, state, found, mend) in [
        (
            json!({"failed": [{"path": "/x/python3", "toolbox_id": "ovos-math-tools", "reason": "program `python`: no module named x"}]}),
            "toolbox ovos-math-tools",
            "broken",
            "no module named x",
            "ovos-tools check",
        ),
        (
            json!({"toolboxes": [{"toolbox_id": "arm", "state": "failed", "reason": "its process died 5 times"}]}),
            "toolbox arm",
            "broken",
            "its process died 5 times",
            "ovos-tools reload",
        ),
        (
            json!({"closed": "cannot read the configuration: /e: line 3: EOF"}),
            "configuration",
            "broken",
            "line 3: EOF",
            "ovos-tools reload",
        ),
        (
            json!({"warnings": ["section `gstremer` matches no installed toolbox"]}),
            "configuration",
            "limited",
            "gstremer",
            "correct the name",
        ),
        (
            json!({"off": [{"toolbox_id": "robot", "path": "/p/robot.so", "reason": "toolbox `robot` is installed but off", "enable": "ovos-tools enable robot"}]}),
            "toolbox robot",
            "good",
            "is installed but off",
            "",
        ),
        (
            json!({"service": {"version": "0.0.1"}}),
            "service",
            "limited",
            "version 0.0.1 runs",
            "restart ovos-tools",
        ),
        (
            json!({"pending_config": ["math"]}),
            "configuration",
            "limited",
            "not applied yet: math",
            "ovos-tools reload",
        ),
        (
            json!({"pythons": [{"program": "python", "interpreter": "/v/python3", "toolboxes": [], "left_out": ["a: no id"]}]}),
            "program python",
            "limited",
            "leaves out a: no id",
            "",
        ),
    ] {
        let mut status = good();
        status
            .as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        let machine = Machine::with(vec![ours()], Some(status)).await;
        let (code, report) = machine.examine(&json!({})).await;
        assert_finding(&report, part, state, found, mend);
        assert_eq!(code, i32::from(state == "broken"), "{found}: {report:#}");
    }
}

#[tokio::test]
async fn what_is_built_in_is_optional_and_what_is_written_is_needed() {
    let machine = Machine::new(vec![ours()]).await;
    let (_, report) = machine.examine(&json!({"gstreamer": {}})).await;
    assert!(!report.to_string().contains("there is no /dev/"), "{report:#}");
    let (code, report) = machine
        .examine(&json!({"gstreamer": {"devices": ["/dev/ovos-tools-missing"]}}))
        .await;
    assert_finding(
        &report,
        "toolbox gstreamer",
        "broken",
        "there is no /dev/ovos-tools-missing",
        "",
    );
    assert_eq!(code, 1);
    let named = json!({"service": {"programs": {"python": {"interpreter": "/no/such/python3"}}}});
    let (_, report) = machine.examine(&named).await;
    assert_finding(
        &report,
        "program python",
        "broken",
        "/no/such/python3",
        "set `interpreter`",
    );
}

#[tokio::test]
async fn what_a_section_names_is_looked_at() {
    let section = json!({
        "robot": {"ports": {"left": "/dev/null", "right": "/dev/ovos-tools-missing"}, "ros": {"interfaces": ["127.0.0.1", "192.0.2.7"]}},
        "drone": {"mavsdk_server": "/nowhere/mavsdk_server"},
        "wrong": {"allow_sha256": "nowhere"},
    });
    let machine = Machine::new(vec![ours()]).await;
    fs::write(machine.path("plugins/broken.so"), "no library").unwrap();
    let (code, report) = machine.examine(&section).await;
    assert_eq!(code, 1);
    for (part, state, found, mend) in [
        ("messagebus", "good", "connected to ws://", ""),
        (
            "configuration",
            "broken",
            "allow_sha256",
            "correct the section `wrong`",
        ),
        ("toolbox robot", "good", "may use /dev/null", ""),
        (
            "toolbox robot",
            "broken",
            "there is no /dev/ovos-tools-missing",
            "/dev/serial/by-id",
        ),
        ("toolbox robot", "good", "has the address 127.0.0.1", ""),
        (
            "toolbox robot",
            "broken",
            "has no address 192.0.2.7",
            "ip -brief address",
        ),
        (
            "toolbox drone",
            "broken",
            "mavsdk_server was not found",
            "pip install mavsdk-grpc",
        ),
    ] {
        assert_finding(&report, part, state, found, mend);
    }
    let broken = report["findings"].as_array().unwrap().iter();
    let broken = broken.filter_map(|finding| finding["part"].as_str()?.strip_prefix("plugin "));
    let files: Vec<&Path> = broken.map(Path::new).collect();
    assert!(files.iter().any(|file| file.ends_with("broken.so")), "{report:#}");
}

#[tokio::test]
async fn without_a_bus_it_says_how_to_get_one() {
    let ran = run(&["doctor", "--bus", "ws://127.0.0.1:9/core"]).await;
    assert_eq!(ran.code, 1);
    assert!(
        ran.out
            .contains("broken   messagebus: no bus at ws://127.0.0.1:9/core"),
        "{ran:?}"
    );
    assert!(
        ran.out.contains("ovos-tools serve --embedded-bus auto"),
        "{ran:?}"
    );
}

#[tokio::test]
async fn a_toolbox_that_was_not_installed_is_named_unless_it_is_switched_off() {
    let machine = Machine::new(vec![ours()]).await;
    let source = machine.path("plugin.c");
    fs::write(&source, "const void *toolbox_entry_v1(void) { return 0; }").unwrap();
    machine.compiled("plugins/other.so", &source, &["-shared"]);
    let (_, report) = machine.examine(&json!({})).await;
    let found = "there is no gstreamer.so";
    assert_finding(
        &report,
        "toolbox gstreamer",
        "limited",
        found,
        "ovos-tools-gstreamer",
    );
    let (_, report) = machine.examine(&json!({"gstreamer": {"enabled": false}})).await;
    assert!(!report.to_string().contains(found), "{report:#}");
}

/// A plugin that lacks a library names the packages that have it.
#[tokio::test]
async fn a_missing_gstreamer_is_named() {
    let machine = Machine::new(vec![ours()]).await;
    let source = machine.path("plugin.c");
    fs::write(&source, "const void *toolbox_entry_v1(void) { return 0; }").unwrap();
    let soname = "-Wl,-soname,libgstreamer-1.0.so.none";
    let library = machine.compiled("libgst.so", &source, &["-shared", soname]);
    let linked = [
        "-shared",
        "-Wl,--no-as-needed",
        "-x",
        "none",
        library.to_str().unwrap(),
    ];
    let plugin = machine.compiled("plugins/gstreamer.so", &source, &linked);
    let (_, report) = machine.examine(&json!({})).await;
    let part = format!("plugin {}", plugin.display());
    assert_finding(
        &report,
        &part,
        "broken",
        "libgstreamer-1.0.so.none",
        "apt install gstreamer1.0-tools",
    );
    assert!(
        !report.to_string().contains("there is no gstreamer.so"),
        "{report:#}"
    );
}

/// A group that may use the device is named; root's is not, because it may do much else.
#[tokio::test]
async fn a_device_of_another_user_names_its_group_or_a_rule() {
    for (gid, mode, mend) in [
        (20, 0o660, "sudo usermod -aG dialout $USER"),
        (20, 0o640, "/etc/udev/rules.d"),
        (0, 0o660, "/etc/udev/rules.d"),
    ] {
        let device = tempfile::Builder::new()
            .prefix("ovos-tools-")
            .tempfile_in("/dev/shm")
            .unwrap();
        let mut machine = Machine::new(vec![ours()]).await;
        // Root may use every device, so it looks as another user. Another user cannot give a file to root, and looks at its own.
        let mode = if chown(device.path(), Some(0), Some(gid)).is_ok() {
            machine.user = Some(65534);
            mode
        } else if gid == 0 {
            0
        } else {
            continue;
        };
        fs::set_permissions(device.path(), fs::Permissions::from_mode(mode)).unwrap();
        let (_, report) = machine.examine(&json!({"robot": {"port": device.path()}})).await;
        let found = format!("may not read from and write to {}", device.path().display());
        assert_finding(&report, "toolbox robot", "broken", &found, mend);
    }
}

/// A serial port that another program has open, and the ports of a robot whose section names none.
#[tokio::test]
async fn a_port_that_another_program_uses_is_named_and_those_that_are_used_by_default() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&near).unwrap();
    unlockpt(&near).unwrap();
    let port = ptsname(&near, Vec::new()).unwrap().into_string().unwrap();
    let machine = Machine::new(vec![ours()]).await;
    // A link, as under /dev/serial/by-id.
    let link = tempfile::tempdir_in("/dev/shm").unwrap();
    let by_id = link.path().join("usb-servos");
    std::os::unix::fs::symlink(&port, &by_id).unwrap();
    for path in [port.clone(), by_id.display().to_string()] {
        let section = |extra: Value| {
            let mut own = json!({"layout": "so101", "ports": {"right": path}});
            own.as_object_mut()
                .unwrap()
                .extend(extra.as_object().unwrap().clone());
            json!({"robot": {"robots": {"arm": {"adapter": "johnny5", "johnny5": own}}}})
        };
        let (_, report) = machine.examine(&section(json!({}))).await;
        assert_finding(&report, "toolbox robot", "good", &format!("may use {path}"), "");
        assert!(!report.to_string().contains("ttyACM"), "{report:#}");
        let far = fs::OpenOptions::new().read(true).write(true).open(&port).unwrap();
        let mut other = std::process::Command::new("sleep")
            .arg("60")
            .stdin(far)
            .spawn()
            .unwrap();
        let (code, report) = machine.examine(&section(json!({}))).await;
        let found = format!(
            "{path} is used by another program: sleep (process {})",
            other.id()
        );
        assert_finding(
            &report,
            "toolbox robot",
            "broken",
            &found,
            &format!("kill {}", other.id()),
        );
        assert_eq!(code, 1);
        other.kill().unwrap();
        other.wait().unwrap();
    }
    let before = |own: Value| json!({"adapter": "johnny5", "johnny5": own});
    let left = json!({"ports": {"left": "/dev/null"}});
    for (own, looked_at) in [
        (before(json!({})), &["/dev/ttyACM0", "/dev/ttyACM1"][..]),
        (before(json!({"layout": "so101"})), &["/dev/ttyACM1"]),
        (before(left.clone()), &["/dev/null", "/dev/ttyACM1"]),
        (json!({"kind": "johnny5"}), &["/dev/ttyACM0", "/dev/ttyACM1"]),
        (json!({"kind": "lekiwi"}), &["/dev/ttyACM1"]),
        (
            json!({"kind": "johnny5", "channels": left}),
            &["/dev/null", "/dev/ttyACM1"],
        ),
        (json!({"kind": "johnny5", "simulated": true}), &[]),
    ] {
        let section = json!({"robot": {"robots": {"five": own}}});
        let (_, report) = machine.examine(&section).await;
        let report = report.to_string();
        for path in ["/dev/ttyACM0", "/dev/ttyACM1", "/dev/null"] {
            assert_eq!(
                report.contains(path),
                looked_at.contains(&path),
                "{own}: {path}: {report}"
            );
        }
    }
    // Of the robots that ship, those of servos have a device where their section names none, and no other has.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("toolboxes/robot/robots");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    for file in files.filter(|file| file.extension().is_some_and(|end| end == "toml")) {
        let is_of_servos = fs::read_to_string(&file)
            .unwrap()
            .contains("driver = \"feetech\"");
        let kind = file.file_stem().unwrap().to_str().unwrap();
        let (_, report) = machine
            .examine(&json!({"robot": {"robots": {"five": {"kind": kind}}}}))
            .await;
        let is_looked_at = report.to_string().contains("/dev/ttyACM1");
        assert_eq!(
            is_looked_at, is_of_servos,
            "{kind}: USUAL in src/program/doctor/machine.rs: {report:#}"
        );
    }
}

/// A confinement that is asked for keeps a toolbox from being loaded; the usual one does not.
#[tokio::test]
async fn a_kernel_that_cannot_confine_is_named() {
    let mut machine = Machine::new(vec![ours()]).await;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile/without_landlock.c");
    let define = format!("-DPROGRAM=\"{}\"", machine.program.display());
    machine.program = machine.compiled("without_landlock", &source, &[&define]);
    let boxed = json!({"paths_rw": [], "paths_ro": [], "network": true, "devices": []});
    let section = json!({
        "gstreamer": {}, "boxed": {"confine": boxed},
        "service": {"programs": {"arm": {"command": ["/bin/true"], "confine": boxed}}},
    });
    let (_, report) = machine.examine(&section).await;
    let mend = "Linux 6.2 or newer";
    assert_finding(&report, "toolbox gstreamer", "limited", "runs unconfined", mend);
    assert_finding(&report, "toolbox boxed", "broken", "is not loaded", mend);
    assert_finding(&report, "program arm", "broken", "is not loaded", mend);
}

/// Which interpreter has toolboxes, what is left out, and what a systemd unit would not find.
#[tokio::test]
async fn the_interpreter_of_python_toolboxes_is_named() {
    let mut machine = Machine::new(vec![ours()]).await;
    let python = machine.path("venv/bin/python3");
    fs::create_dir_all(python.parent().unwrap()).unwrap();
    let toolbox = |name: &str, problem: Value| json!({"entry_point": name, "distribution": name, "version": "1", "revision": "1", "problem": problem});
    let says = |toolboxes: &[Value]| {
        let listing = json!({"python": {"executable": python, "version": "3.11.2"}, "toolboxes": toolboxes, "imports": []});
        fs::write(
            &python,
            format!("#!/bin/sh\ncase \"$*\" in *--folders) exit;; esac\ncat <<'E'\n{listing}\nE\n"),
        )
        .unwrap();
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let part = "program python";
    let (_, report) = machine.examine(&json!({})).await;
    assert_finding(
        &report,
        part,
        "good",
        "no Python toolboxes: there is no python3 in PATH",
        "",
    );

    let named = json!({"service": {"programs": {"python": {"interpreter": python}}}});
    says(&[]);
    let (_, report) = machine.examine(&named).await;
    assert_finding(
        &report,
        part,
        "good",
        "has no OPM toolbox that can be offered",
        "",
    );
    let mut wanted = named.clone();
    wanted["service"]["programs"]["python"]["enabled"] = true.into();
    let (_, report) = machine.examine(&wanted).await;
    assert_finding(
        &report,
        part,
        "broken",
        "has no OPM toolbox",
        "set `interpreter` in `service.programs.python`",
    );

    says(&[
        toolbox("ovos-math-tools", Value::Null),
        toolbox("Odd", "no id".into()),
    ]);
    let found = "(3.11.2) has ovos-math-tools; left out: Odd (no id)";
    let (_, report) = machine.examine(&named).await;
    assert_finding(&report, part, "good", found, "");
    machine.env.push(("VIRTUAL_ENV", machine.path("venv")));
    let (_, report) = machine.examine(&json!({})).await;
    assert_finding(
        &report,
        part,
        "limited",
        "which is not set in a systemd unit",
        "\"interpreter\":\"/",
    );
}

#[tokio::test]
async fn serve_points_to_it_where_something_is_missing() {
    let machine = Machine::new(Vec::new()).await;
    let plugins = machine.path("plugins");
    fs::write(plugins.join("broken.so"), "no library").unwrap();
    let arguments = [
        "serve",
        "--bus",
        &machine.bus.url,
        "--plugins",
        plugins.to_str().unwrap(),
    ];
    let mut service = scripted::command(machine.home.path(), &arguments)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(service.stdout.take().unwrap()).lines();
    let mut printed = String::new();
    while !printed.contains("Try: ") {
        let line = timeout(DEADLINE, lines.next_line())
            .await
            .expect("no summary")
            .unwrap();
        printed += &line.unwrap_or_else(|| panic!("it ended: {printed}"));
    }
    assert!(
        printed.contains("`ovos-tools doctor` shows what is missing"),
        "{printed}"
    );
}
