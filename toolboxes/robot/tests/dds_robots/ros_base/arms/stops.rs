//! How an arm behind a controller is stopped: what has not confirmed its end is cancelled again, and said.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use super::super::Scene;
use super::{arm, far, file, rosbridge, scene, scene_with, to_ready};
use crate::each;
use crate::peers::domain;

impl Scene {
    /// Waits until so many stops have said that something goes on.
    pub(super) fn until_unconfirmed(&self, stops: usize) {
        self.base.wait("word of what goes on", |_| {
            let events = self.harness.events().into_iter();
            let unconfirmed = events.filter(|event| format!("{event:?}").contains("did not end everything"));
            (unconfirmed.count() >= stops).then_some(())
        });
    }

    /// Starts a call that moves the arm, and ends it by a stop that does not end the goal.
    pub(super) fn leave_a_goal(&self) {
        let run = self.start(far().0, far().1);
        self.base.until("\"goal\"");
        self.harness.cancel(run.id());
        self.harness.halt(&["right_arm"], false).unwrap();
        assert!(!run.wait().result().is_ok_and(|done| done["success"] == true));
        self.until_unconfirmed(1);
    }
}

/// A call that is cancelled, an emergency, and a stop without an instance, of controllers that end a goal at once, late, and never.
#[test]
fn a_stop_cancels_what_moves_an_arm_and_says_what_goes_on() {
    for (kind, word, emergency) in [
        ("gripper", "", false),
        ("gripper", "slow", true),
        ("stubborn", "", true),
    ] {
        let case = format!("{kind} {word} {emergency}");
        let Some(scene) = scene(kind) else { return };
        scene.base.say(word);
        let run = scene.start(far().0, far().1);
        scene.base.until("\"goal\"");
        scene.harness.cancel(run.id());
        scene.harness.halt(&["right_arm"], emergency).unwrap();
        assert!(
            !run.wait().result().is_ok_and(|done| done["success"] == true),
            "{case}"
        );
        scene.base.until("\"cancel\"");
        if kind == "stubborn" {
            scene.base.wait("word that the goal may go on", |_| {
                let events = format!("{:?}", scene.harness.events());
                events.contains("may still be running").then_some(())
            });
            continue;
        }
        scene.base.until("\"canceled\"");
        if emergency {
            scene.base.until("\"all\": true");
            assert_eq!(scene.answer(to_ready())["success"], false, "a stopped arm");
            scene.harness.resume().unwrap();
        }
        scene.does("move_arm", json!({"arm": "right", "position": "home"}));
    }
    let Some(scene) = scene("gripper") else { return };
    let run = scene.start(far().0, far().1);
    scene.base.until("\"goal\"");
    scene.harness.safe_stop(scene.config.clone()).unwrap();
    scene.base.until("\"all\": true");
    scene.base.until("\"canceled\"");
    assert!(!run.wait().result().is_ok_and(|done| done["success"] == true));
    // Where nothing serves what moves the arm, nothing shows that the robot was reached.
    let Some(absent) = self::scene("absent") else {
        return;
    };
    let stopped = absent.harness.safe_stop(absent.config.clone()).unwrap_err();
    assert!(stopped.to_string().contains("no action /scaled"), "{stopped}");
}

/// Over either carrier.
#[test]
fn a_cancel_that_was_refused_is_sent_again_by_the_next_stop_and_not_afterwards() {
    type Meet = fn(&str) -> Option<Scene>;
    let rows: [(&str, Meet); 2] = [("dds", scene), ("rosbridge", rosbridge::scene)];
    each(&rows, |(carrier, meet)| {
        let Some(objects) = meet("gripper") else { return };
        objects.base.say("objects");
        objects.leave_a_goal();
        objects.base.until("\"objected\"");
        assert_eq!(objects.lines_with("\"canceled\""), 0, "{carrier}");
        objects.harness.halt(&["right_arm"], false).unwrap();
        objects.base.until("\"canceled\"");
        objects.does("move_arm", json!({"arm": "right", "position": "home"}));
        let cancels = objects.lines_with("\"cancel");
        objects.harness.halt(&["right_arm"], false).unwrap();
        objects.does("motor_status", json!({"subsystem": "right_arm"}));
        let after = objects.lines_with("\"cancel");
        assert_eq!(after, cancels, "{carrier}: what has ended is not cancelled");
    });
}

/// A controller that never ends what it cancels, and one whose acceptance was lost.
#[test]
fn what_a_stop_has_not_ended_is_cancelled_by_the_next_one_until_it_has() {
    let Some(stubborn) = scene("stubborn") else { return };
    stubborn.leave_a_goal();
    for stops in 2..4 {
        stubborn.harness.halt(&["right_arm"], stops == 3).unwrap();
        stubborn.until_unconfirmed(stops);
        assert!(stubborn.lines_with("\"cancel\"") >= stops);
    }

    // Nothing names a goal whose acceptance was lost: all of its action are cancelled.
    let Some(unheard) = scene("gripper") else { return };
    for word in ["unheard", "busy"] {
        unheard.base.say(word);
    }
    let run = unheard.start(far().0, far().1);
    unheard.base.until("\"goal\"");
    unheard.harness.cancel(run.id());
    unheard.harness.halt(&["right_arm"], false).unwrap();
    let _ = run.wait();
    unheard.until_unconfirmed(1);
    unheard.base.say("answers");
    unheard.harness.halt(&["right_arm"], false).unwrap();
    unheard.base.until("\"canceled\"");
}

/// The goal of a controller that was started anew is known to none: the stop cancels whatever the new one pursues.
#[test]
fn a_controller_that_starts_anew_while_the_arm_moves_is_not_believed_to_have_stopped() {
    // Killed about when it accepts the goal, and long after.
    each(&[false, true], |&moves| {
        let domain = domain();
        let Some(mut scene) = scene_with("gripper", domain, &file()) else {
            return;
        };
        let run = scene.start(far().0, far().1);
        scene.base.until("\"goal\"");
        if moves {
            scene.base.wait("progress", |_| {
                let mut shares = run.progress().into_iter().filter_map(|one| one.fraction);
                shares.any(|share| share > 0.0).then_some(())
            });
        }
        scene.base.signal(Signal::KILL);
        let next = arm("gripper", domain).unwrap();
        let ended = run.wait().result();
        assert!(!ended.is_ok_and(|done| done["success"] == true));
        scene.base = next;
        scene.base.wait("a cancel of everything", |lines| {
            scene.harness.halt(&["right_arm"], false).unwrap();
            lines
                .iter()
                .any(|line| line.contains("\"all\": true"))
                .then_some(())
        });
        scene.base.wait("the new controller", |_| {
            let done = scene.answer(("move_arm", json!({"arm": "right", "position": "ready"})));
            (done["success"] == true).then_some(())
        });
    });
}

/// The service gives a stop without an instance five seconds.
#[test]
fn a_stop_without_an_instance_waits_once_for_all_parts_together() {
    let base = "[parts.base]\nkind = \"none\"\nmax_linear = 0.2\nmax_lateral = 0.0\nmax_angular = 0.5\nusual_linear = 0.1\n\n[channels]";
    let own = "\n[channels.tools.wipe]\nabout = \"Wipes the table.\"\naction = \"/wipe\"\n\n[stop]\norder = [[\"base\"], \
        [\"right_arm\"]]\n";
    let file = file().replace("[channels]", base).replace("[stop]\n", own);
    let Some(scene) = scene_with("gripper", domain(), &file) else {
        return;
    };
    scene.base.say("busy");
    scene.base.say("unheard");
    let since = Instant::now();
    let stopped = scene.harness.safe_stop(scene.config.clone()).unwrap_err();
    assert!(
        since.elapsed() < Duration::from_secs(5),
        "{:?}: {stopped}",
        since.elapsed()
    );
    // Each action that is there was asked, although neither has answered.
    scene.base.wait("both cancels", |lines| {
        (lines
            .iter()
            .filter(|line| line.contains("\"unanswered\""))
            .count()
            >= 2)
            .then_some(())
    });
}
