//! With several robots the toolbox's last notice, which is what `ovos-tools status` shows, names each of them.

use ovos_toolbox_sdk::testing::Harness;
use robot::robots::Robots;
use serde_json::{Value, json};

use crate::servos::{Body, within};

#[test]
fn the_last_notice_names_every_robot() {
    let (five, other) = (Body::new(), Body::new());
    other.left.unplug();
    let section = |body: &Body| json!({"adapter": "johnny5", "johnny5": body.section()});
    let robots = json!({"five": section(&five), "other": section(&other), "toy": {"adapter": "sim"}});
    let harness = Harness::open::<Robots>(json!({ "robots": robots })).unwrap();
    let says = |expected: [&str; 2]| {
        let state_is = |data: Value| {
            let reason = data["reason"].as_str().unwrap().to_owned();
            let lists = |robot: &str, state: &str| reason.contains(&format!("{robot} ({state})"));
            (lists("five", expected[0]) && lists("other", expected[1]) && lists("toy", "simulated"))
                .then(|| data["state"].clone())
        };
        within(&format!("notice {expected:?}"), || {
            let last = harness
                .events()
                .into_iter()
                .rfind(|event| event.kind == "backend");
            state_is(last?.data?)
        })
    };
    // The word for the whole toolbox is the worst.
    assert_eq!(says(["connected", "lost"]), "lost");
    other.left.plug();
    assert_eq!(says(["connected", "connected"]), "connected");
    five.right.unplug();
    assert_eq!(says(["lost", "connected"]), "lost");
}
