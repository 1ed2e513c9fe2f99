//! A process that a toolbox starts in a role ends with its leash.

use std::ffi::c_int;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use ovos_toolbox_sdk::abi::{Status, Str};
use ovos_toolbox_sdk::testing::{role_env, role_host, stand_in};
use ovos_toolbox_sdk::{Leash, RoleEvent, RoleProcess, boundary};

/// Time limit of every wait; only a defect reaches it.
const DEADLINE: Duration = Duration::from_secs(60);

/// Starts a process in a role, and receives what is heard of it.
fn start(role: &str) -> (RoleProcess, Receiver<RoleEvent<String>>) {
    role_host(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/contract/role.sh"));
    role_env("ROLE_TESTS", std::env::current_exe().unwrap());
    let (sender, receiver) = channel();
    let hear = move |event| {
        // The test may have ended.
        _ = sender.send(event);
    };
    (RoleProcess::start(role, &[], hear).unwrap(), receiver)
}

fn word(receiver: &Receiver<RoleEvent<String>>) -> String {
    match receiver.recv_timeout(DEADLINE).unwrap() {
        RoleEvent::Word(word) => word,
        RoleEvent::End(how) => panic!("it ended: {how}"),
    }
}

/// How the process ended; what it still says is left out.
fn end(receiver: &Receiver<RoleEvent<String>>) -> String {
    loop {
        if let RoleEvent::End(how) = receiver.recv_timeout(DEADLINE).unwrap() {
            return how;
        }
    }
}

#[test]
fn what_is_told_is_answered_and_the_end_of_each_role_is_heard() {
    for (role, told_last, expected) in [
        ("role::echoing", Some("end"), ""),
        ("role::panicking", None, "exit code 101"),
        ("role::aborting", None, "signal 6 (SIGABRT)"),
    ] {
        let (process, receiver) = start(role);
        assert_eq!(word(&receiver), "it runs", "{role}");
        process.tell(&"a word").unwrap();
        assert_eq!(word(&receiver), "a word", "{role}");
        if let Some(last) = told_last {
            process.tell(&last).unwrap();
        }
        assert_eq!(end(&receiver), expected, "{role}");
        assert!(
            receiver.recv_timeout(DEADLINE).is_err(),
            "{role}: the end is the last"
        );
    }
    let (_process, receiver) = start("role::unknown");
    assert_eq!(end(&receiver), "exit code 101");
}

#[test]
fn a_process_is_killed_when_it_is_dropped_or_reads_nothing() {
    for role in ["role::echoing", "role::deaf", "role::talking"] {
        let (process, receiver) = start(role);
        word(&receiver);
        drop(process);
        // One that waits may see the end of its leash before the signal comes.
        let how = end(&receiver);
        assert!(
            how == "signal 9 (SIGKILL)" || how.is_empty() && role != "role::deaf",
            "{role}: {how}"
        );
    }
    let (process, receiver) = start("role::deaf");
    word(&receiver);
    let long = "x".repeat(1 << 20);
    let refused = (0..64).find_map(|_| process.tell(&long).err());
    assert!(refused.is_some());
    assert_eq!(end(&receiver), "signal 9 (SIGKILL)");
}

#[test]
fn no_process_outlives_a_toolbox_that_is_killed() {
    for role in ["role::echoing", "role::patient", "role::talking"] {
        let mut toolbox = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "role::the_toolbox_that_is_killed",
                "--ignored",
                "--nocapture",
            ])
            .env("ROLE", role)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(toolbox.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("it runs")), "{role}");
        toolbox.kill().unwrap();
        toolbox.wait().unwrap();
        // The process in the role has the other end of it, too: it ends with the last of them.
        let mut held = toolbox.stderr.take().unwrap();
        let (sender, receiver) = channel();
        std::thread::spawn(move || sender.send(held.read_to_end(&mut Vec::new()).is_ok()));
        assert_eq!(
            receiver.recv_timeout(DEADLINE),
            Ok(true),
            "{role} outlives its toolbox"
        );
    }
}

#[test]
#[ignore = "another test starts it in a process of its own, which is killed"]
fn the_toolbox_that_is_killed() {
    let Ok(role) = std::env::var("ROLE") else { return };
    let (_process, receiver) = start(&role);
    word(&receiver);
    println!("it runs");
    loop {
        std::thread::park();
    }
}

/// Says back what it is told, until it is told to end.
fn echo(leash: Leash) {
    leash.mouth().say(&"it runs");
    while let Some(word) = leash.hear::<String>().filter(|word| word != "end") {
        leash.mouth().say(&word);
    }
}

/// As one that ends when it is idle, but is not.
fn wait_patiently(leash: Leash) {
    leash.mouth().say(&"it runs");
    while !matches!(leash.hear_within::<String>(Duration::from_millis(1)), Ok(None)) {}
}

/// Talks while nothing may listen.
fn talk(leash: Leash) {
    let mouth = leash.mouth();
    std::thread::spawn(move || {
        loop {
            mouth.say(&"a long word ".repeat(1000));
        }
    });
    while leash.hear::<String>().is_some() {}
}

/// Heeds nothing.
fn be_deaf(leash: Leash) {
    leash.mouth().say(&"it runs");
    loop {
        std::thread::park();
    }
}

fn panic_when_told(leash: Leash) {
    leash.mouth().say(&"it runs");
    leash.mouth().say(&leash.hear::<String>());
    panic!("as this test wants");
}

fn abort_when_told(leash: Leash) {
    leash.mouth().say(&"it runs");
    leash.mouth().say(&leash.hear::<String>());
    std::process::abort();
}

/// The roles have the names of the tests that play them.
extern "C" fn enter(role: Str, leash: c_int) -> Status {
    boundary::role(
        role,
        leash,
        &[
            ("role::echoing", echo),
            ("role::patient", wait_patiently),
            ("role::talking", talk),
            ("role::deaf", be_deaf),
            ("role::panicking", panic_when_told),
            ("role::aborting", abort_when_told),
        ],
    )
}

macro_rules! played {
    ($($role:ident)+) => {$(
        #[test]
        #[ignore = "a process in this role"]
        fn $role() {
            if std::env::var_os("ROLE_TESTS").is_some() {
                assert_eq!(stand_in(enter), ExitCode::SUCCESS);
            }
        }
    )+};
}

played!(echoing patient talking deaf panicking aborting unknown);
