//! The toolbox `ovos` on a bus with the published packages that speak, listen and set the volume, and with none of them.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::process::Process;
use crate::support::python::{audio_python, skills_python, stable_python};
use crate::support::scene::Scene;

/// A session in which someone speaks.
const SESSION: &str = "kitchen";

struct Stage {
    scene: Scene,
    client: Client,
    _service: Process,
    _bus: Process,
}

impl Stage {
    fn new() -> Self {
        Self::with_player("true")
    }

    /// `player` is what plays sounds on this machine.
    fn with_player(player: &str) -> Self {
        let scene = Scene::new(&json!({}));
        let program = Path::new(env!("CARGO_BIN_EXE_ovos-tools")).with_file_name("ovos-tools-ovos");
        assert!(
            program.exists(),
            "no {}: cargo build --package ovos-tools-ovos",
            program.display()
        );
        scene.configure(
            &json!({ "programs": { "ovos": { "command": program, "args": ["--bus", scene.url()] } } }),
            &json!({
                "play_wav_cmdline": player, "disable_ocp": true,
                // Ours gives way to a tool of the same name.
                "PHAL": { "ovos-phal-plugin-tools": { "testbed": { "tools": { "deny": ["ask"] } } } },
            }),
        );
        let (bus, service, client) = scene.open();
        Self {
            scene,
            client,
            _service: service,
            _bus: bus,
        }
    }

    /// A device of the published packages.
    fn device(&self, python: &Path) -> Process {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/ovos_device.py");
        let mut command = self.scene.sandbox.command(python);
        command.arg("-u").arg(script);
        let mut device = Process::start("ovos-device", &self.scene.sandbox, command);
        device.until("a device", |device| {
            device.output().contains("READY").then_some(())
        });
        let client = &mut Client::connect(self.scene.port);
        device.until("a voice", |_| {
            let ready = client.ask("mycroft.audio.is_ready", &json!({}));
            (ready["status"] == true).then_some(())
        });
        device
    }

    fn call(&mut self, name: &str, args: &Value) -> Value {
        let request = json!({ "name": name, "args": args, "toolbox_id": "ovos" });
        self.client.ask("ovos.tools.invoke", &request)
    }

    /// The result of a call that succeeds.
    fn good(&mut self, name: &str, args: &Value) -> Value {
        let answer = self.call(name, args);
        assert!(answer.get("error").is_none(), "{name} {args}: {answer}");
        answer["result"].clone()
    }

    /// What a call that fails says.
    fn bad(&mut self, name: &str, args: &Value) -> String {
        let answer = self.call(name, args);
        let error = answer["error"].as_str();
        error
            .unwrap_or_else(|| panic!("{name} {args}: {answer}"))
            .to_owned()
    }
}

#[test]
fn where_nothing_answers_nothing_is_said_to_be_done() {
    let mut stage = Stage::new();
    let list = stage.client.ask("ovos.tools.list", &json!({}));
    let tools = list["tools"].as_array().unwrap();
    let mut tools: Vec<String> = tools
        .iter()
        .filter(|tool| tool["toolbox_id"] == "ovos")
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    let cases = [
        ("announce", json!({"text": "Hello."}), "start ovos-audio"),
        ("ask", json!({"question": "How are you?"}), "start ovos-core"),
        ("control_media", json!({"action": "pause"}), "start ovos-media"),
        ("get_volume", json!({}), "start ovos-PHAL"),
        ("now_playing", json!({}), "start ovos-media"),
        (
            "play_media",
            json!({"uri": "https://radio.example/live"}),
            "start ovos-media",
        ),
        ("set_volume", json!({"percent": 50}), "start ovos-PHAL"),
        ("speak", json!({"text": "Hello."}), "start ovos-audio"),
    ];
    tools.sort();
    assert_eq!(
        tools,
        cases.each_ref().map(|(name, ..)| *name),
        "a row for each tool"
    );
    for (name, args, why) in cases {
        let error = stage.bad(name, &args);
        assert!(
            error.contains("StateError: nothing answers") && error.contains(why),
            "{name}: {error}"
        );
    }
    for (name, args) in [
        ("speak", json!({"text": ""})),
        ("set_volume", json!({})),
        ("set_volume", json!({"percent": 101})),
        ("play_media", json!({"uri": "radio"})),
        ("control_media", json!({"action": "dance"})),
        ("ask", json!({"question": "How?", "wait_seconds": 1})),
    ] {
        let error = stage.bad(name, &args);
        assert!(error.contains("ValueError"), "{name} {args}: {error}");
    }
}

/// What the newest and the stable ovos-audio do.
#[test]
fn the_published_audio_service_speaks_and_each_outcome_is_what_it_did() {
    for python in [audio_python(), stable_python()] {
        let Some(python) = python else { return };
        let mut stage = Stage::new();
        let mut device = stage.device(python);
        let spoken = stage.good("speak", &json!({"text": "Good morning.", "lang": "en-US"}));
        assert_eq!(spoken, json!({"outcome": "spoken", "text": "Good morning."}));
        let speech = stage.good("speak", &json!({"text": "Good night.", "wait": false}));
        assert_eq!(speech["outcome"], "begun");
        let announced = stage.good("announce", &json!({"text": "Dinner."}));
        assert_eq!(
            announced,
            json!({"sessions": [{"session_id": "default", "outcome": "begun", "error": null}]})
        );
        // In a session where someone speaks, its client says it, which need not report that.
        let mut satellite = Client::connect(stage.scene.port).in_session(SESSION);
        satellite.send("recognizer_loop:utterance", &json!({"utterances": ["hello"]}));
        let announced = device.until("a session", |_| {
            let announced = stage.good("announce", &json!({"text": "Dinner.", "session_id": "all"}));
            (announced["sessions"].as_array()?.len() == 2).then_some(announced)
        });
        let outcomes = announced["sessions"].as_array().unwrap();
        let outcomes: Vec<_> = outcomes
            .iter()
            .map(|one| (&one["session_id"], &one["outcome"]))
            .collect();
        let (speech, sent) = (json!("begun"), json!("sent"));
        assert_eq!(outcomes, [(&json!("default"), &speech), (&json!(SESSION), &sent)]);
        let request = json!({"name": "speak", "args": {"text": "Hello."}, "toolbox_id": "ovos"});
        let answer = satellite.ask("ovos.tools.invoke", &request);
        assert_eq!(answer["result"]["outcome"], sent, "{answer}");
        // Its own player plays nothing, and does not say what it does.
        let playing = stage.good("now_playing", &json!({}));
        assert_eq!(
            (&playing["player"], &playing["state"]),
            (&json!("ovos-audio"), &Value::Null)
        );
        let answer = stage.good("control_media", &json!({"action": "pause"}));
        assert_eq!(answer["confirmed"], false);
    }
}

#[test]
fn media_do_what_they_are_told_or_the_call_fails() {
    let Some(python) = audio_python() else { return };
    let mut stage = Stage::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/ovos_player.py");
    let mut command = stage.scene.sandbox.command(python);
    command.arg("-u").arg(script);
    let mut player = Process::start("ovos-player", &stage.scene.sandbox, command);
    player.until("a player", |player| {
        player.output().contains("READY").then_some(())
    });
    let play = |uri: &str, title: &str| json!({"uri": uri, "name": title});
    let action = |action: &str| json!({"action": action});
    for (tool, args, state, title) in [
        (
            "play_media",
            play("https://radio.example/1", "one"),
            "playing",
            "one",
        ),
        ("control_media", action("pause"), "paused", "one"),
        ("control_media", action("resume"), "playing", "one"),
        ("control_media", action("next"), "playing", "the next one"),
        ("control_media", action("previous"), "playing", "the one before"),
        ("now_playing", json!({}), "playing", "the one before"),
        ("control_media", action("stop"), "stopped", "the one before"),
    ] {
        let expected = json!({"state": state, "title": title, "artist": "Nobody", "player": "ovos-media", "confirmed": true});
        assert_eq!(stage.good(tool, &args), expected, "{args}");
    }
    let error = stage.bad("play_media", &play("file:///none.ogg", "none"));
    assert!(error.contains("it reports that it cannot play it"), "{error}");
    stage.good("play_media", &play("https://radio.example/2", "stubborn"));
    let error = stage.bad("control_media", &action("pause"));
    assert!(
        error.contains("was told to do that") && error.contains("it plays"),
        "{error}"
    );
}

/// It has no backend here, so that it cannot play anything, whatever it says at first.
#[test]
fn the_published_player_is_believed_when_it_plays_and_not_before() {
    let Some(python) = audio_python() else { return };
    let mut stage = Stage::new();
    let mut command = stage.scene.sandbox.command(python);
    command.args(["-m", "ovos_media"]);
    let mut media = Process::start("ovos-media", &stage.scene.sandbox, command);
    media.until("a player", |_| {
        let playing = stage.call("now_playing", &json!({}));
        (playing["result"]["state"] == "stopped").then_some(())
    });
    let track = json!({"uri": "https://radio.example/live", "name": "Radio"});
    let error = stage.bad("play_media", &track);
    assert!(
        error.contains("StateError: ovos-media was told to play it"),
        "{error}"
    );
    for action in ["pause", "resume", "next", "previous"] {
        let error = stage.bad("control_media", &json!({"action": action}));
        assert!(error.contains("nothing is playing"), "{action}: {error}");
    }
    let stopped = stage.good("control_media", &json!({"action": "stop"}));
    assert_eq!(
        (&stopped["state"], &stopped["player"]),
        (&json!("stopped"), &json!("ovos-media"))
    );
}

#[test]
fn a_text_ends_with_its_call() {
    for python in [audio_python(), stable_python()] {
        let Some(python) = python else { return };
        let mut stage = Stage::with_player("sleep 300");
        let _device = stage.device(python);
        let request = json!({"name": "speak", "args": {"text": "A long story."}, "toolbox_id": "ovos", "call_id": "story"});
        stage.client.send("ovos.tools.invoke", &request);
        let is = |frame: &Value, kind: &str| (frame["type"] == kind).then_some(());
        stage.client.until("a beginning", |frame| {
            is(frame, "recognizer_loop:audio_output_start")
        });
        stage
            .client
            .send("ovos.tools.cancel", &json!({"call_id": "story"}));
        stage
            .client
            .until("an end", |frame| is(frame, "recognizer_loop:audio_output_end"));
        stage.client.until_answered(&["story".to_owned()]);
        let answer = stage.client.settled("story");
        assert!(answer.to_string().contains("CancelledError"), "{answer}");
    }
}

#[test]
fn the_published_plugin_sets_the_volume_and_is_asked_whether_it_did() {
    let Some(python) = audio_python() else { return };
    let mut stage = Stage::new();
    let _device = stage.device(python);
    for (args, expected) in [
        (json!({"percent": 30}), json!({"percent": 30, "muted": false})),
        (json!({"muted": true}), json!({"percent": 30, "muted": true})),
        (
            json!({"percent": 0, "muted": false}),
            json!({"percent": 0, "muted": false}),
        ),
        (json!({"percent": 100}), json!({"percent": 100, "muted": false})),
    ] {
        assert_eq!(stage.good("set_volume", &args), expected, "{args}");
        assert_eq!(stage.good("get_volume", &json!({})), expected, "{args}");
    }
}

/// The next utterance is the answer, in the way that the newest and the stable ovos-core hand it over.
#[test]
fn the_published_core_hands_over_the_answer_to_a_question() {
    let Some(user_python) = skills_python() else {
        return;
    };
    for core_python in [skills_python(), stable_python()] {
        let Some(core_python) = core_python else { return };
        let stage = Stage::new();
        let sandbox = &stage.scene.sandbox;
        let mut command = sandbox.command(user_python);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/ovos_asks.py");
        command.arg("-u").arg(script).arg(stage.scene.url());
        let mut user = Process::start("ovos_asks", sandbox, command);
        user.until("a configuration", |user| {
            user.output().contains("START OVOS-CORE").then_some(())
        });
        let mut command = sandbox.command(core_python);
        command.args(["-m", "ovos_core", "--disable-installer", "--disable-file-watcher"]);
        let core = Process::start("ovos-core", sandbox, command);
        let output = user.finish();
        assert!(output.contains("the user is asked"), "{output}\n{}", core.log());
    }
}
