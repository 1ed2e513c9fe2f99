//! Questions about people.
//!
//! Owns the bus topic that a vision or speaker skill answers, and the fallback to the simulator's people. It does not
//! recognise people itself. Read [`answer`].

use ovos_toolbox_sdk::prelude::*;

use crate::adapter::Sighting;
use crate::bearing::half_circle;
use crate::conclude::ActionResult;
use crate::recogniser::TOPIC;
use crate::robots::Robots;
use crate::subsystem::Subsystem;
use crate::unit::Unit;

/// The tools that are questions.
pub const TOOLS: [&str; 11] = [
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
];

/// The tool whose answer has a schema.
const THINGS: &str = "what_is_there";

/// What a handler answers to `what_is_there`: the things that it sees now.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ThingsAnswer {
    /// The things, those of which it is surest first.
    pub things: Vec<SeenThing>,
}

/// A thing that a handler sees. The answer to `locate` has the same keys.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct SeenThing {
    /// What it is called: the word for pick_object and look_at.
    pub name: String,
    /// Degrees from straight ahead, negative to the left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub angle: Option<f64>,
    /// Degrees, positive downwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tilt: Option<f64>,
    /// Metres.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<f64>,
    /// Where it is, for an arm that goes there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<SeenPosition>,
    /// How sure it is, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: Option<f64>,
}

/// A point in a frame, in metres.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct SeenPosition {
    /// The frame that the question asked for: `right_arm` or `left_arm`, whose origin is the arm's base.
    pub frame: String,
    /// Ahead.
    pub x: f64,
    /// To the left.
    pub y: f64,
    /// Upwards.
    pub z: f64,
}

/// How long a simulated robot waits for an answer from the bus.
const SIMULATED: Duration = Duration::from_millis(500);

/// Asks the bus, then the simulator.
///
/// # Errors
/// No handler answers, or the handler says that it did not work.
///
/// # Cancel safety
/// Dropping the future gives up the answer; the handler may still act on the question.
pub async fn answer(
    context: &Context<Robots>,
    unit: &Unit,
    tool: &str,
    args: Object,
) -> Result<ActionResult, ToolError> {
    let mut args = Value::Object(args);
    let arm = [Subsystem::RightArm, Subsystem::LeftArm]
        .into_iter()
        .find(|arm| unit.capabilities().reaches(*arm));
    if tool == THINGS
        && let Some(arm) = arm
    {
        args["frame"] = json!(arm);
    }
    let asked = ask(context, unit, tool, &args).await;
    let (answer, note) = match asked {
        Ok(answer) => (answer, None),
        Err(error) if error.is_cancelled() => return Err(error),
        Err(_) => {
            let known = unit.adapter.recognise(tool, &args);
            let answer =
                known.ok_or_else(|| ToolError::new("NotConfigured", "Recognition handler not configured"))?;
            (answer, Some("the simulator's people".to_string()))
        }
    };
    let failed = says_no(&answer);
    if tool == THINGS
        && !failed
        && let Err(error) = serde_json::from_value::<ThingsAnswer>(answer.clone())
    {
        return Err(ToolError::new(
            "RecognitionError",
            format!(
                "the handler of {TOPIC} answered {tool} otherwise than schemas/recognition says: {error}"
            ),
        ));
    }
    let mut data = match to_the_left(answer) {
        Value::Object(data) => data,
        other => Object::from_iter([("result".to_string(), other)]),
    };
    let nothing = data.values().all(Value::is_null);
    data.shift_remove("success");
    let message = match data
        .shift_remove("message")
        .or_else(|| data.get("error").cloned())
    {
        Some(Value::String(message)) => message,
        _ => String::new(),
    };
    if failed || nothing {
        let message = match (message.as_str(), nothing) {
            ("", true) => format!("the handler of {TOPIC} returned an empty answer for {tool}"),
            ("", false) => format!("{tool} did not work"),
            _ => message,
        };
        return Err(ToolError::new("RecognitionError", message));
    }
    Ok(ActionResult {
        message,
        data,
        notes: note.into_iter().collect(),
        ..ActionResult::default()
    })
}

/// Whether an answer says that it did not work. A handler says so in one of these words; whatever it says there, only `true` is a
/// success.
fn says_no(answer: &Value) -> bool {
    let value = |key: &&str| answer.get(*key).filter(|value| !value.is_null());
    let mut words = ["success", "ok", "passed"].iter().filter_map(value);
    words.any(|value| *value != json!(true)) || value(&"error").is_some()
}

/// The keys under which a handler says where something is, in degrees from straight ahead, negative to the left.
const CLOCKWISE: [&str; 4] = ["angle", "direction", "direction_degrees", "bearing"];

/// The key under which results say it, in degrees from straight ahead, positive to the left.
pub(crate) const BEARING: &str = "bearing_degrees";

/// An answer with its bearings as all results of tools have them.
fn to_the_left(answer: Value) -> Value {
    match answer {
        Value::Object(answer) => {
            let each = answer.into_iter().map(|(key, value)| {
                if !CLOCKWISE.contains(&key.as_str()) {
                    return (key, to_the_left(value));
                }
                match value.as_f64() {
                    Some(degrees) => (BEARING.to_string(), json!(half_circle(-degrees))),
                    None if value.is_null() => (BEARING.to_string(), value),
                    // A word, such as left.
                    None => (key, value),
                }
            });
            Value::Object(each.collect())
        }
        Value::Array(items) => items.into_iter().map(to_the_left).collect(),
        other => other,
    }
}

/// Where a person or a thing is, as the handler sees it; for an arm also in the frame of its base.
///
/// # Cancel safety
/// As [`answer`].
pub async fn locate(
    context: &Context<Robots>,
    unit: &Unit,
    what: &str,
    arm: Option<Subsystem>,
) -> Option<Sighting> {
    let mut question = json!({"name": what});
    if let Some(arm) = arm {
        question["frame"] = json!(arm);
    }
    let answer = ask(context, unit, "locate", &question).await.ok()?;
    if says_no(&answer) {
        return None;
    }
    let number = |keys: &[&str]| keys.iter().find_map(|key| answer.get(*key)?.as_f64());
    let metre = |key: &str| {
        answer["position"][key]
            .as_f64()
            .filter(|metres| metres.is_finite())
    };
    // A position in another frame is none that the arm can go to.
    let is_ours = arm.is_some_and(|arm| answer["position"]["frame"] == json!(arm));
    let at = match (metre("x"), metre("y"), metre("z")) {
        (Some(x), Some(y), Some(z)) if is_ours => Some([x, y, z]),
        _ => None,
    };
    let sighting = Sighting {
        bearing: number(&CLOCKWISE).or(at.map(|[x, y, _]| -y.atan2(x).to_degrees()))?,
        tilt: number(&["tilt"]).unwrap_or(0.0),
        distance: number(&["distance"]).unwrap_or(1.0),
        at,
    };
    (sighting.bearing.is_finite() && sighting.tilt.is_finite()).then_some(sighting)
}

async fn ask(context: &Context<Robots>, unit: &Unit, tool: &str, args: &Value) -> Result<Value, ToolError> {
    let robots = context.toolbox();
    if !robots.is_worth_asking() {
        return Err(ToolError::new(
            "TimeoutError",
            "no handler answered the previous request a moment ago; try again later",
        ));
    }
    // The handler listens for a while before it enrolls a voice.
    let listening = args
        .get("duration_seconds")
        .and_then(Value::as_f64)
        .unwrap_or(0.0);
    // A simulated robot has its own people, so it waits only a short time.
    let patience = robots.recognition_timeout();
    let patience = if unit.capabilities().simulated {
        patience.min(SIMULATED)
    } else {
        patience
    };
    let limit = patience + Duration::from_secs_f64(listening.clamp(0.0, 60.0));
    let question = json!({"robot": unit.name, "tool": tool, "args": args});
    let answer = context.request(TOPIC, question, limit).await;
    // A cancelled call does not show that the handler is missing.
    if !answer.as_ref().is_err_and(ToolError::is_cancelled) {
        robots.answered(answer.is_ok());
    }
    answer
}
