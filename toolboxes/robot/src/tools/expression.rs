//! Body language: express, gesture_while_speaking, point_at_person.

use std::time::Duration;

use ovos_toolbox_sdk::argument_schema;
use ovos_toolbox_sdk::prelude::*;

use super::arguments::{word, words, yes};
use super::listing::{Listing, Planned, any_arm, anything, arm_or_head};
use super::movement::look;
use crate::graph::{Graph, aside, on};
use crate::model::{Kind, Rounds};
use crate::resolve::{farthest_seconds, routine_seconds};
use crate::step::Step;
use crate::subsystem::Subsystem;
use crate::unit::Unit;

/// How often the robot points at one person: pointing at people again and again is rude.
pub const POINT_PAUSE: Duration = Duration::from_secs(120);

pub(super) fn list(listing: &mut Listing<'_>) {
    let arguments = (argument_schema::<Express>(), json!({"intensity": null}));
    listing.add_with("express", Effect::Motion, arm_or_head, express, arguments);
    let arguments = (
        argument_schema::<PointAtPerson>(),
        json!({"context": null, "name": {"description": null}}),
    );
    listing.add_with(
        "point_at_person",
        Effect::Motion,
        any_arm,
        point_at_person,
        arguments,
    );
    // A setting for the owner's speech program.
    listing.audience = Audience::Person;
    listing.add(
        "gesture_while_speaking",
        Effect::Write,
        anything,
        gesture_while_speaking,
    );
}

words!(
    /// A feeling.
    Emotion, Happy: Happy "happy", Sad "sad", Excited "excited", Curious "curious", Thinking "thinking",
    Surprised "surprised", Confused "confused", Proud "proud", Shy "shy"
);
words!(
    /// How clearly to show it.
    Drama, Normal: Subtle "subtle", Normal "normal", Dramatic "dramatic"
);
words!(
    /// How lively gestures are.
    GestureStyle, Natural: Minimal "minimal", Natural "natural", Expressive "expressive", Dramatic "dramatic"
);
words!(
    /// An arm, or whichever is nearer.
    AutoArm, Auto: Left "left", Right "right", Auto "auto"
);
words!(
    /// Why to point.
    PointContext, Introduction: Introduction "introduction", Clarification "clarification", Emphasis "emphasis"
);

/// Show an emotion with the robot's arms and head.
#[derive(Deserialize, JsonSchema)]
struct Express {
    /// Which emotion.
    emotion: Emotion,
    /// Strength of the gesture.
    #[serde(default)]
    intensity: Drama,
}

fn express(unit: &Unit, args: Express) -> Planned<'_> {
    let (emotion, intensity) = (
        args.emotion.as_str().to_string(),
        args.intensity.as_str().to_string(),
    );
    let rounds = Rounds::One(crate::resolve::intensity(&intensity));
    let part = |part: Subsystem| {
        let seconds = routine_seconds(unit, Kind::Gesture, &emotion, part, rounds);
        let (emotion, intensity) = (emotion.clone(), intensity.clone());
        let node = on(part, 10.0, Step::Gesture { emotion, intensity });
        node.lasting(seconds).optional()
    };
    let [left, right, head] = [Subsystem::LeftArm, Subsystem::RightArm, Subsystem::Gantry].map(part);
    Ok(Graph::new(unit).wave([left, right, head.named("head_gesture")]))
}

/// Set whether the robot gestures while it speaks.
#[derive(Deserialize, JsonSchema)]
struct GestureWhileSpeaking {
    /// On or off.
    #[serde(default = "yes")]
    enabled: bool,
    /// Liveliness of the gestures.
    #[serde(default)]
    style: GestureStyle,
}

fn gesture_while_speaking(unit: &Unit, args: GestureWhileSpeaking) -> Planned<'_> {
    let step = Step::SetFlag {
        enabled: args.enabled,
        style: args.style.as_str().to_string(),
    };
    Ok(Graph::new(unit).wave([aside(1.0, step)]))
}

/// Have the robot point at a person it sees, then lower the arm.
#[derive(Deserialize, JsonSchema)]
struct PointAtPerson {
    /// Name of the person.
    name: String,
    /// auto is the arm on the person's side.
    #[serde(default)]
    arm: AutoArm,
    /// Send clarification to point again within 2 min.
    #[serde(default)]
    context: PointContext,
}

fn point_at_person(unit: &Unit, args: PointAtPerson) -> Planned<'_> {
    let name = word("name", &args.name)?;
    let again = match args.context {
        PointContext::Clarification => None,
        _ => not_again(unit, &name).err(),
    };
    let graph = Graph::new(unit)
        .refused(again)
        .wave([look(unit, &name).optional()]);
    let arm = match args.arm {
        AutoArm::Left => Subsystem::LeftArm,
        AutoArm::Right => Subsystem::RightArm,
        AutoArm::Auto => match unit.adapter.locate(&name) {
            Some(seen) => unit.nearer_arm(seen.bearing),
            // The person's side is known only when the robot points. Both arms are reserved, and the arm that pointed
            // goes home in the same action.
            None => {
                let arms = [Subsystem::LeftArm, Subsystem::RightArm];
                let arms = arms.into_iter().filter(|arm| unit.capabilities().has(*arm));
                let step = Step::Point {
                    target: name,
                    nearer: true,
                };
                let first = unit.nearer_arm(0.0);
                let seconds = arms
                    .clone()
                    .map(|arm| farthest_seconds(unit, arm, 0.5))
                    .fold(0.0, f64::max);
                return Ok(graph.wave([on(first, 25.0, step).holding(arms).lasting(2.0 * seconds)]));
            }
        },
    };
    let home = Step::MoveToPose {
        pose: "home".to_string(),
        speed: 0.5,
    };
    let point = Step::Point {
        target: name,
        nearer: false,
    };
    let seconds = farthest_seconds(unit, arm, 0.5);
    Ok(graph
        .wave([on(arm, 10.0, point).lasting(seconds)])
        .wave([on(arm, 15.0, home).lasting(seconds)]))
}

fn not_again(unit: &Unit, name: &str) -> Result<(), ToolError> {
    let memory = unit.memory();
    let Some(last) = memory.pointed.get(&name.to_lowercase()) else {
        return Ok(());
    };
    let passed = last.elapsed();
    if passed >= POINT_PAUSE {
        return Ok(());
    }
    Err(ToolError::new(
        "RateLimited",
        format!(
            "{} has pointed at {name} {} s ago: wait {} s, or send context=clarification",
            unit.name,
            passed.as_secs(),
            (POINT_PAUSE - passed).as_secs() + 1
        ),
    ))
}
