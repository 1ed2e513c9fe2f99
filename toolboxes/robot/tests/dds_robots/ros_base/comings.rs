//! A base that comes after the toolbox, one that comes back as another, and one that freezes.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{base, channels, domain, driven, scene};

fn walk() -> Value {
    json!({"direction": "forward", "speed": 0.2, "duration": 0.5})
}

#[test]
fn a_base_that_comes_is_told_to_stand_before_it_is_driven() {
    let domain = domain();
    let Some(first) = base("deaf", domain) else { return };
    let mut scene = driven(first, "turtlebot3", channels(domain, 100));
    let away = scene.harness.invoke("walk", walk()).unwrap();
    assert_eq!(away["success"], false, "{away:#}");
    // What comes hears the one type, then the other; what went before is gone.
    for kind in ["twist", "stamped"] {
        scene.base.say("quit");
        let next = base(kind, domain).unwrap();
        drop(std::mem::replace(&mut scene.base, next));
        // A base that comes may follow the velocity of a process that is gone.
        scene.base.wait("zero", |_| scene.told().first().copied());
        assert!(
            scene.told().iter().all(|(_, speed)| *speed == 0.0),
            "{kind}: {:?}",
            scene.told()
        );
        let done = scene.base.wait("a walk", |_| {
            let done = scene.harness.invoke("walk", walk()).unwrap();
            (done["success"] == true).then_some(done)
        });
        assert!(
            done["data"]["distance_m"].as_f64().unwrap() > 0.02,
            "{kind}: {done:#}"
        );
    }
}

#[test]
fn a_base_that_freezes_is_said_to_be_silent_and_stands_when_it_thaws() {
    let Some(scene) = scene("twist", "turtlebot3") else {
        return;
    };
    let run = scene.start(
        "walk",
        json!({"direction": "forward", "speed": 0.2, "duration": 30.0}),
    );
    scene.moves();
    let base = Pid::from_raw(scene.base.pid().try_into().unwrap()).unwrap();
    kill_process(base, Signal::STOP).unwrap();
    let ended = run.wait().result();
    kill_process(base, Signal::CONT).unwrap();
    let failed = ended.unwrap_err().to_string();
    assert!(failed.contains("silent"), "{failed}");
    scene.base.wait("three zeros at the end", |_| {
        let zeros = scene
            .told()
            .into_iter()
            .rev()
            .take_while(|(_, speed)| *speed == 0.0);
        (zeros.count() >= 3).then_some(())
    });
}
