//! People: who is there, who speaks, and remembering them.
//!
//! The robot does not recognise people itself: these tools ask the handler of `ovos.robot.recognise` on the bus.

use ovos_toolbox_sdk::prelude::*;
use serde::de::DeserializeOwned;

use super::arguments::{range, word, words, yes};
use super::listing::{Listing, Planned, anything, head};
use super::movement::look;
use crate::graph::{Graph, ask};
use crate::unit::Unit;

pub(super) fn list(listing: &mut Listing<'_>) {
    listing.question::<GetVisiblePeople>("get_visible_people", Effect::Read);
    listing.question::<IdentifyPerson>("identify_person", Effect::Read);
    listing.question::<EnrollPerson>("enroll_person", Effect::Write);
    listing.question::<GetSpeakerDirection>("get_speaker_direction", Effect::Read);
    listing.question::<IdentifySpeaker>("identify_speaker", Effect::Read);
    listing.question::<EnrollVoice>("enroll_voice", Effect::Write);
    listing.question::<GetKnownPeople>("get_known_people", Effect::Read);
    listing.question::<ForgetPerson>("forget_person", Effect::Write);
    listing.question::<WhoSaidThat>("who_said_that", Effect::Read);
    listing.add("look_at_speaker", Effect::Motion, head, look_at_speaker);
    listing.question::<GetLastSeen>("get_last_seen", Effect::Read);
    listing.question::<WhatIsThere>("what_is_there", Effect::Read);
}

/// List the things the robot sees now, with bearing_degrees (positive is left), distance and, for an arm, position in metres.
#[derive(Serialize, Deserialize, JsonSchema)]
struct WhatIsThere {}

impl Question for WhatIsThere {
    const TOOL: &'static str = "what_is_there";
}

/// A question to the handler that recognises people. Checks what a schema cannot.
trait Question: DeserializeOwned + Serialize + JsonSchema + 'static {
    /// The name of the question's tool.
    const TOOL: &'static str;

    /// Seconds that the answer may take.
    fn seconds(&self) -> f64 {
        10.0
    }

    fn check(&self) -> Result<(), ToolError> {
        Ok(())
    }
}

impl Listing<'_> {
    fn question<A: Question>(&mut self, name: &'static str, effect: Effect) {
        self.add(name, effect, anything, question::<A>);
    }
}

fn question<A: Question>(unit: &Unit, args: A) -> Planned<'_> {
    args.check()?;
    let seconds = args.seconds();
    let params = match serde_json::to_value(args)? {
        Value::Object(params) => params,
        _ => Object::new(),
    };
    Ok(Graph::new(unit).wave([ask(A::TOOL, seconds, params)]))
}

words!(
    /// Where a person stands.
    Position, Closest: Left "left", Center "center", Right "right", Closest "closest"
);

/// List the people the robot sees now, with bearing_degrees (positive is left) and distance in metres.
#[derive(Serialize, Deserialize, JsonSchema)]
struct GetVisiblePeople {
    /// Include people it does not know.
    #[serde(default = "yes")]
    include_unknown: bool,
}

impl Question for GetVisiblePeople {
    const TOOL: &'static str = "get_visible_people";
}

/// Identify a person that the robot sees. Needs track_id or position.
#[derive(Serialize, Deserialize, JsonSchema)]
struct IdentifyPerson {
    /// From get_visible_people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    track_id: Option<i64>,
    /// Where the person stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    position: Option<Position>,
}

impl Question for IdentifyPerson {
    const TOOL: &'static str = "identify_person";
}

/// Have the robot remember a person's face. Ask the person first.
#[derive(Serialize, Deserialize, JsonSchema)]
struct EnrollPerson {
    /// The person's name.
    #[schemars(length(min = 1, max = 200))]
    name: String,
    /// From get_visible_people; the closest person when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    track_id: Option<i64>,
    /// Whether the person may administer the robot.
    #[serde(default)]
    is_admin: bool,
}

impl Question for EnrollPerson {
    const TOOL: &'static str = "enroll_person";
    fn check(&self) -> Result<(), ToolError> {
        word("name", &self.name).map(drop)
    }
}

/// Get the direction of the person who is speaking to the robot: bearing_degrees, positive is left.
#[derive(Serialize, Deserialize, JsonSchema)]
struct GetSpeakerDirection {}

impl Question for GetSpeakerDirection {
    const TOOL: &'static str = "get_speaker_direction";
}

/// Identify who is speaking to the robot, by the voice.
#[derive(Serialize, Deserialize, JsonSchema)]
struct IdentifySpeaker {
    /// Use the direction of the voice, too.
    #[serde(default = "yes")]
    use_doa: bool,
}

impl Question for IdentifySpeaker {
    const TOOL: &'static str = "identify_speaker";
}

/// Have the robot remember a person's voice, while the person speaks. Ask the person first.
#[derive(Serialize, Deserialize, JsonSchema)]
struct EnrollVoice {
    /// The person's name.
    #[schemars(length(min = 1, max = 200))]
    name: String,
    /// Seconds to listen.
    #[serde(default = "ten")]
    #[schemars(range(min = 1.0, max = 60.0))]
    duration_seconds: f64,
}

fn ten() -> f64 {
    10.0
}

impl Question for EnrollVoice {
    const TOOL: &'static str = "enroll_voice";
    fn seconds(&self) -> f64 {
        crate::graph::allow(self.duration_seconds).max(10.0)
    }
    fn check(&self) -> Result<(), ToolError> {
        word("name", &self.name)?;
        range("duration_seconds", self.duration_seconds, 1.0, 60.0).map(drop)
    }
}

/// List the people whom the robot knows, by face and by voice.
#[derive(Serialize, Deserialize, JsonSchema)]
struct GetKnownPeople {
    /// Include whom it knows by face.
    #[serde(default = "yes")]
    include_face: bool,
    /// Include whom it knows by voice.
    #[serde(default = "yes")]
    include_voice: bool,
}

impl Question for GetKnownPeople {
    const TOOL: &'static str = "get_known_people";
}

/// Have the robot forget a person's face, voice or both.
#[derive(Serialize, Deserialize, JsonSchema)]
struct ForgetPerson {
    /// Name of the person to forget.
    #[schemars(length(min = 1, max = 200))]
    name: String,
    /// Forget the face.
    #[serde(default = "yes")]
    forget_face: bool,
    /// Forget the voice.
    #[serde(default = "yes")]
    forget_voice: bool,
}

impl Question for ForgetPerson {
    const TOOL: &'static str = "forget_person";
    fn check(&self) -> Result<(), ToolError> {
        word("name", &self.name).map(drop)
    }
}

/// Identify who said what the robot heard in the last seconds.
#[derive(Serialize, Deserialize, JsonSchema)]
struct WhoSaidThat {
    /// Seconds to look back.
    #[serde(default = "five")]
    #[schemars(range(min = 0.1, max = 300.0))]
    lookback_seconds: f64,
}

fn five() -> f64 {
    5.0
}

impl Question for WhoSaidThat {
    const TOOL: &'static str = "who_said_that";
    fn check(&self) -> Result<(), ToolError> {
        range("lookback_seconds", self.lookback_seconds, 0.1, 300.0).map(drop)
    }
}

/// Get when and where the robot last saw a person.
#[derive(Serialize, Deserialize, JsonSchema)]
struct GetLastSeen {
    /// Name of the person.
    #[schemars(length(min = 1, max = 200))]
    name: String,
}

impl Question for GetLastSeen {
    const TOOL: &'static str = "get_last_seen";
    fn check(&self) -> Result<(), ToolError> {
        word("name", &self.name).map(drop)
    }
}

/// Turn the robot's head to the person who is speaking.
#[derive(Deserialize, JsonSchema)]
struct LookAtSpeaker {}

fn look_at_speaker(unit: &Unit, _: LookAtSpeaker) -> Planned<'_> {
    Ok(Graph::new(unit)
        .wave([ask("get_speaker_direction", 10.0, Object::new()).effect(Effect::Read)])
        .wave([look(unit, crate::resolve::SPEAKER)]))
}
