//! A base that comes after the toolbox, and one that comes back as another.

use serde_json::{Value, json};

use super::{Scene, base, channels, domain, driven, over_rosbridge};

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
        stands_and_walks(&scene, kind);
    }
}

#[test]
fn a_base_that_comes_over_rosbridge_is_told_to_stand_before_it_is_driven() {
    let Some((first, port)) = over_rosbridge::base(0, "deaf") else {
        return;
    };
    let scene = driven(first, "nav2-base", over_rosbridge::channels(port, 100));
    let away = scene.harness.invoke("walk", walk()).unwrap();
    assert_eq!(away["success"], false, "{away:#}");
    // The connection breaks with the old one; the new one listens at the same port.
    scene.base.say("quit");
    let Scene {
        base,
        harness,
        config,
        _folder,
    } = scene;
    base.finish();
    let (base, _) = over_rosbridge::base(port, "twist").unwrap();
    stands_and_walks(
        &Scene {
            base,
            harness,
            config,
            _folder,
        },
        "rosbridge",
    );
}

/// A base that comes may follow the velocity of a process that is gone.
fn stands_and_walks(scene: &Scene, kind: &str) {
    scene.base.wait("zero", |_| scene.velocities().first().copied());
    assert!(
        scene.velocities().iter().all(|(_, speed)| *speed == 0.0),
        "{kind}: {:?}",
        scene.velocities()
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
