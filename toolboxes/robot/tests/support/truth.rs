//! A success is what the machine did: every tool, on a machine that fails in one way.

use std::collections::BTreeMap;

use ovos_toolbox_sdk::testing::Harness;
use ovos_toolbox_sdk::wire::{Action, Effect};
use serde_json::Value;

use crate::catalogue::{Came, calls, listed, run};

/// Tools that ask no machine: they set a word of the toolbox, or ask a handler of another program.
pub(crate) const NO_MACHINE: [&str; 17] = [
    "gesture_while_speaking",
    "enable_fire_detection",
    "stop",
    "reset_stop",
    "get_visible_people",
    "identify_person",
    "enroll_person",
    "get_speaker_direction",
    "identify_speaker",
    "enroll_voice",
    "get_known_people",
    "forget_person",
    "who_said_that",
    "get_last_seen",
    "what_is_there",
    "list_places",
    "forget_place",
];

/// The effects of the listed tools.
pub(crate) type Effects = BTreeMap<String, Effect>;

pub(crate) fn effects(harness: &Harness) -> Effects {
    let tools = harness.tools().into_iter();
    tools.map(|tool| (tool.name, tool.effect)).collect()
}

/// The parts without which a call cannot be done: those of its actions that are not optional. With `of_motion` only those
/// that it moves.
pub(crate) fn needed(
    (harness, effects): (&Harness, &Effects),
    tool: &str,
    args: &Value,
    of_motion: bool,
) -> Vec<String> {
    let own = effects.get(tool).copied();
    let plan: Vec<Action> = harness
        .plan(tool, args.clone())
        .ok()
        .flatten()
        .unwrap_or_default();
    plan.into_iter()
        .filter(|action| action.params.get("optional").is_none())
        .filter(|action| !of_motion || action.effect.or(own) == Some(Effect::Motion))
        // The others are held, because they are on the same bus.
        .filter_map(|action| action.subsystems.into_iter().next())
        .collect()
}

/// Calls every tool for which `concerned` holds, and returns how many there were.
///
/// # Panics
/// One of them reports success.
pub(crate) fn none_succeeds(
    what: &str,
    harness: &Harness,
    concerned: impl Fn(&str, &Value) -> bool,
    mut before: impl FnMut(),
) -> usize {
    let names = listed(harness);
    let (mut asked, mut wrong) = (0, Vec::new());
    for (tool, args) in calls() {
        if !names.iter().any(|name| name == tool) || !concerned(tool, &args) {
            continue;
        }
        before();
        match run(harness, &names, tool, &args) {
            Came::Absent => {}
            Came::Failed(why) => {
                assert!(why.len() > 10, "{what}: {tool} {args} does not say why: {why:?}");
                asked += 1;
            }
            Came::Done(output) => wrong.push(format!("{tool} {args}: {output}")),
        }
    }
    assert!(
        wrong.is_empty(),
        "{what}: success that is none:\n{}",
        wrong.join("\n")
    );
    asked
}
