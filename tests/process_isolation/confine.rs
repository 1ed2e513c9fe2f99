//! What a confined toolbox can access, and what it cannot.

use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use engine::{RunResult, Toolbox};
use host::{Confine, Hosted};
use landlock::{CompatLevel, Compatible, Ruleset, RulesetAttr, Scope};
use ovos_toolbox_wire::Completion;
use serde_json::json;

use crate::motion::Motor;
use crate::support::fixture::{FixtureFolder, Recorder, opening, process_of, run, within};
use crate::support::kernel::can_confine;

const EPERM: i64 = 1;
const ENOENT: i64 = 2;
const EACCES: i64 = 13;
const ECONNREFUSED: i64 = 111;

/// Whether this kernel can keep it from sending signals to other processes (Linux 6.12).
fn can_scope() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.scope(Scope::Signal).and_then(Ruleset::create).is_ok()
}

/// A folder that it may write, one that it may read, and one that is not named.
struct Yard {
    fixtures: FixtureFolder,
}

impl Yard {
    fn new() -> Self {
        let fixtures = FixtureFolder::new();
        for folder in ["rw", "ro", "secret"] {
            std::fs::create_dir(fixtures.path().join(folder)).unwrap();
            std::fs::write(fixtures.path().join(folder).join("file"), "held").unwrap();
        }
        Self { fixtures }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.fixtures.path().join(below)
    }

    fn confine(&self) -> Confine {
        Confine {
            paths_rw: vec![self.path("rw")],
            paths_ro: vec![self.path("ro")],
            ..Confine::default()
        }
    }

    async fn open(&self, confine: Option<Confine>, config: &str) -> Hosted {
        let (mut process, manifest) = process_of(&self.fixtures.build("reaches_out", &[])).await;
        process.confine = confine;
        Hosted::in_child(process, manifest, opening(config), Recorder::new())
            .await
            .unwrap()
    }
}

/// Checks each attempt: the expected errors, or 0 for a success.
async fn check(toolbox: &dyn Toolbox, attempts: &[(String, &[i64])]) {
    let mut wrong = Vec::new();
    for (number, (attempt, allowed)) in (1..).zip(attempts) {
        let ended = run(toolbox, number, attempt).await;
        let RunResult::Reported(Completion::Output(output)) = &ended else {
            panic!("{attempt}: {ended:?}");
        };
        let errno = output["errno"].as_i64().unwrap();
        if !allowed.contains(&errno) {
            wrong.push(format!("{attempt}: errno {errno}, expected one of {allowed:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_confined_toolbox_reaches_only_the_named_paths() {
    if !can_confine() {
        return;
    }
    let yard = Yard::new();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let socket = yard.path("ro/socket");
    let _unix = UnixListener::bind(&socket).unwrap();
    let at = |verb: &str, below: &str| format!("{verb}:{}", yard.path(below).display());
    let tcp = format!("tcp:{}", tcp.local_addr().unwrap().port());
    let udp = format!("udp:{}", udp.local_addr().unwrap().port());
    let unix = format!("unix:{}", socket.display());
    let us = format!("signal:{}", std::process::id());

    // The control: without confinement all of it works (except devices and mounts, which need root).
    let free = yard.open(None, "{}").await;
    let works: &[i64] = &[0];
    check(
        &free,
        &[
            (at("read", "secret/file"), works),
            (at("create", "secret/control"), works),
            (tcp.clone(), works),
            (udp.clone(), works),
            (unix.clone(), works),
            (us.clone(), works),
            ("read:/etc/hostname".into(), works),
            ("read:/proc/self/environ".into(), works),
        ],
    )
    .await;
    assert!(within(free.close()).await);

    let confined = yard.open(Some(yard.confine()), "{}").await;
    let denied: &[i64] = &[EACCES];
    check(
        &confined,
        &[
            (at("read", "secret/file"), denied),
            (at("write", "secret/file"), denied),
            (at("cut", "secret/file"), denied),
            (at("remove", "secret/file"), denied),
            (at("create", "secret/new"), denied),
            (at("mkdir", "secret/new"), denied),
            (at("list", "secret"), denied),
            (at("list", ""), denied),
            (at("read", "ro/file"), works),
            (at("list", "ro"), works),
            (at("write", "ro/file"), denied),
            (at("cut", "ro/file"), denied),
            (at("cut_open", "ro/file"), denied),
            (at("remove", "ro/file"), denied),
            (at("create", "ro/new"), denied),
            (at("read", "rw/file"), works),
            (at("cut", "rw/file"), works),
            (at("create", "rw/new"), works),
            (at("mkdir", "rw/folder"), works),
            (at("remove", "rw/new"), works),
            (at("device", "rw/zero"), &[EPERM, EACCES]),
            (at("mount", "rw"), &[EPERM, EACCES]),
            (tcp, denied),
            (udp, denied),
            (unix, denied),
            ("netlink:0".into(), denied),
            ("uring:".into(), denied),
            ("pair:".into(), works),
            ("core:".into(), &[EPERM]),
            ("write:/dev/null".into(), works),
            ("read:/dev/urandom".into(), works),
            ("read:/dev/kmsg".into(), &[EACCES, EPERM, ENOENT]),
            (us, if can_scope() { &[EPERM] } else { works }),
            ("create:/dev/shm/ovos-tools-reaches-out".into(), denied),
            ("read:/etc/hostname".into(), denied),
            ("read:/etc/shadow".into(), denied),
            ("read:/etc/passwd".into(), works),
            (format!("read:/proc/{}/environ", std::process::id()), denied),
            ("list:/".into(), denied),
            ("list:/dev".into(), works),
            ("list:/root".into(), denied),
            ("list:/tmp".into(), denied),
            ("run:/bin/true".into(), works),
        ],
    )
    .await;
    assert_eq!(std::fs::read(yard.path("secret/file")).unwrap(), b"held");
    assert_eq!(std::fs::read(yard.path("ro/file")).unwrap(), b"held");
    assert!(within(confined.close()).await);
}

#[tokio::test]
async fn network_and_devices_are_allowed_one_by_one() {
    if !can_confine() {
        return;
    }
    let yard = Yard::new();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let tcp = format!("tcp:{}", tcp.local_addr().unwrap().port());
    let confine = Confine {
        network: true,
        devices: vec!["/dev/ptmx".into()],
        ..yard.confine()
    };
    let toolbox = yard.open(Some(confine), "{}").await;
    check(
        &toolbox,
        &[
            (tcp, &[0, ECONNREFUSED]),
            ("udp:9".into(), &[0]),
            ("read:/etc/hostname".into(), &[EACCES]),
            // It can be opened; a read then gives EIO or EAGAIN, because the terminal has no input yet.
            ("write:/dev/ptmx".into(), &[0]),
            ("write:/dev/tty".into(), &[EACCES]),
        ],
    )
    .await;
    assert!(within(toolbox.close()).await);

    let without = yard.open(Some(yard.confine()), "{}").await;
    check(&without, &[("write:/dev/ptmx".into(), &[EACCES])]).await;
    assert!(within(without.close()).await);
}

#[tokio::test]
async fn the_process_of_a_safe_stop_is_confined_too() {
    if !can_confine() {
        return;
    }
    let yard = Yard::new();
    let motor = Motor(yard.path("rw/motor"));
    let config = json!({ "motor": motor.0 }).to_string();
    let toolbox = yard.open(Some(yard.confine()), &config).await;
    let died = toolbox.died();
    assert!(matches!(run(&toolbox, 1, "abort:").await, RunResult::Lost(_)));
    within(died).await.unwrap();
    within(toolbox.close()).await;
    assert_eq!(motor.commands(), ["shadow 13", "udp 13"]);
}

#[tokio::test]
async fn a_missing_path_gives_no_access_and_is_no_failure() {
    if !can_confine() {
        return;
    }
    let yard = Yard::new();
    let confine = Confine {
        devices: vec![yard.path("unplugged")],
        ..yard.confine()
    };
    let toolbox = yard.open(Some(confine), "{}").await;
    std::fs::write(yard.path("unplugged"), "here").unwrap();
    let plugged = format!("read:{}", yard.path("unplugged").display());
    check(&toolbox, &[(plugged, &[EACCES])]).await;
    assert!(within(toolbox.close()).await);
}

/// Its toolbox is not known yet, so it may change nothing, whatever a section allows.
#[tokio::test]
async fn a_file_that_is_tried_out_changes_nothing() {
    if !can_confine() {
        return;
    }
    let yard = Yard::new();
    let mark = yard.path("constructed");
    let define = format!("\"{}\"", mark.display());
    let file = yard.fixtures.build("reaches_out", &[("CONSTRUCTED", &define)]);
    let (process, manifest) = process_of(&file).await;
    assert!(!mark.exists(), "a process that only says hello wrote a file");
    let toolbox = Hosted::in_child(process, manifest, opening("{}"), Recorder::new())
        .await
        .unwrap();
    assert!(mark.exists(), "without confinement its constructor can");
    assert!(within(toolbox.close()).await);
}

/// If the confinement cannot be enforced, the file is not even loaded.
#[tokio::test]
async fn a_toolbox_whose_confinement_cannot_be_enforced_is_not_loaded() {
    let yard = Yard::new();
    let mark = yard.path("constructed");
    let define = format!("\"{}\"", mark.display());
    let file = yard.fixtures.build("reaches_out", &[("CONSTRUCTED", &define)]);
    let (mut process, manifest) = process_of(&file).await;
    // Imitates a kernel without Landlock: it forbids the calls by which the process confines itself.
    process.program = yard.fixtures.program(
        "without_landlock",
        &[("PROGRAM", concat!("\"", env!("CARGO_BIN_EXE_ovos-tools"), "\""))],
    );
    process.confine = Some(yard.confine());
    let failure = within(Hosted::in_child(
        process,
        manifest,
        opening("{}"),
        Recorder::new(),
    ))
    .await
    .unwrap_err();
    for part in ["Landlock", "Linux 6.2", "remove `confine`"] {
        assert!(failure.message.contains(part), "{failure}");
    }
    assert!(!mark.exists(), "its constructor ran");
}
