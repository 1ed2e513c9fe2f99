//! The topics of OVOS's own scheduler, `mycroft.scheduler.*`, by which skills have messages sent later: for installations without
//! ovos-core, which has one. Pure. What is published of OVOS's scheduler is the model; `tests/doors/schedule` runs both.

use client::topic::OVOS_SCHEDULER;
use ovos_toolbox_wire::Object;
use serde_json::{Value, json};

use crate::message::ScheduledMessage;
use crate::table::{Schedule, What};
use crate::timing::{FASTEST_OF_OPERATOR, Millis, Timing, millis};

/// Asks for a message at a time.
pub(crate) const ADD: &str = "mycroft.scheduler.schedule_event";
pub(crate) const REMOVE: &str = "mycroft.scheduler.remove_event";
pub(crate) const UPDATE: &str = "mycroft.scheduler.update_event";
pub(crate) const GET: &str = "mycroft.scheduler.get_event";
pub(crate) const LIST: &str = OVOS_SCHEDULER.name();
/// What a scheduler of OVOS says when it begins.
pub(crate) const READY: &str = "ovos.scheduler.ready";

/// All of them.
pub(crate) const TOPICS: [&str; 6] = [ADD, REMOVE, UPDATE, GET, LIST, READY];

/// Where the state of one message is answered.
pub(crate) const STATUS_PREFIX: &str = "mycroft.event_status.callback.";

/// Begins the ids of these schedules.
const ID_PREFIX: &str = "ovos:";

/// The topics of tools, which are called later by `ovos.tools.schedule`: only that decides on a call when it is due.
const TOOLS: [&str; 2] = ["ovos.tools.", "ovos.persona.tools."];

/// Topics that stand for no skill, although they look like it: what is said to OVOS makes it act.
const SAID: &str = "recognizer_loop";

/// The longest data and the longest context of a message, in bytes of JSON.
const LONGEST: usize = 16_384;

/// The id of the schedule of a message.
pub(crate) fn id_of(event: &str) -> String {
    format!("{ID_PREFIX}{event}")
}

/// The skill that a message belongs to.
fn skill_of(event: &str) -> &str {
    event.split_once(':').map_or("legacy", |(skill, _)| skill)
}

/// Whether a message is a reminder: one that a skill sends to itself, under its own id, as the published interface of skills does it. Any other
/// may make OVOS act, as words, the question to a persona and the intent of another skill do.
fn is_reminder(event: &str, context: &Object) -> bool {
    let skill = event.split_once(':').map(|(skill, _)| skill);
    skill.is_some_and(|skill| skill != SAID && context.get("skill_id").and_then(Value::as_str) == Some(skill))
}

/// The schedule that a request asks for.
///
/// # Errors
/// What is wrong with the request. The sender is not told: these topics have no answer.
pub(crate) fn read(
    data: &Object,
    context: &Object,
    session_id: Option<&str>,
    now: Millis,
) -> Result<Schedule, String> {
    let event = named(data, "event")?;
    // A message of another type is not taken by the bus client of OVOS.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".:_-".contains(&byte);
    if !event.bytes().all(is_plain) {
        return Err("event: expected letters, digits, `.`, `:`, `_` and `-`".to_owned());
    }
    if TOOLS.iter().any(|tools| event.starts_with(tools)) {
        return Err("tools are called later by ovos.tools.schedule".to_owned());
    }
    let farthest = Timing::farthest(now);
    let first_ms = data.get("time").and_then(millis).filter(|time| *time <= farthest);
    let first_ms = first_ms.ok_or("time: expected seconds since 1970, within ten years")?;
    let when = match data.get("repeat") {
        None | Some(Value::Null | Value::Bool(false)) => Timing::At { at_ms: first_ms },
        Some(repeat) if repeat.as_f64() == Some(0.0) => Timing::At { at_ms: first_ms },
        Some(repeat) => {
            let every_ms = millis(repeat).filter(|every| *every >= FASTEST_OF_OPERATOR && *every <= farthest);
            let every_ms = every_ms.ok_or("repeat: expected seconds from 1 on")?;
            Timing::Every {
                every_ms,
                from_ms: first_ms - every_ms,
            }
        }
    };
    let message = ScheduledMessage {
        event: event.to_owned(),
        data: payload(data)?,
        context: bounded("context", context)?.clone(),
    };
    Ok(Schedule {
        schedule_id: id_of(event),
        title: String::new(),
        when,
        what: What::Message(message),
        // A stop is for what may move; a reminder is not stopped by it.
        reads: is_reminder(event, context),
        asker: format!("skill {}", skill_of(event)),
        on_behalf: Value::Null,
        session_id: session_id.map(str::to_owned),
        times: None,
        next_ms: Some(first_ms),
        last_ms: None,
        firing_ms: None,
        fired: 0,
        outcome: None,
        suspended: None,
    })
}

/// The name of a message in a request.
///
/// # Errors
/// There is none.
pub(crate) fn named<'a>(data: &'a Object, key: &str) -> Result<&'a str, String> {
    let name = data
        .get(key)
        .and_then(Value::as_str)
        .filter(|name| !name.is_empty());
    name.ok_or_else(|| format!("{key}: expected the type of a message"))
}

/// The data of a message in a request.
///
/// # Errors
/// It is no object, or too long.
pub(crate) fn payload(data: &Object) -> Result<Object, String> {
    match data.get("data") {
        None | Some(Value::Null) => Ok(Object::new()),
        Some(Value::Object(payload)) => bounded("data", payload).cloned(),
        Some(_) => Err("data: expected an object".to_owned()),
    }
}

fn bounded<'a>(key: &str, part: &'a Object) -> Result<&'a Object, String> {
    let is_short = json!(part).to_string().len() <= LONGEST;
    is_short
        .then_some(part)
        .ok_or_else(|| format!("{key}: expected at most {LONGEST} bytes"))
}

/// The message that is sent for a time.
pub(crate) fn message(schedule: &Schedule, message: &ScheduledMessage, texts: [&str; 2]) -> (Object, Object) {
    let [due, fired] = texts;
    let is_once = matches!(schedule.when, Timing::At { .. });
    let mut context = message.context.clone();
    let marked = json!({
        "id": message.event, "skill_id": skill_of(&message.event), "due": due, "fired": fired,
        "remaining": is_once.then_some(0),
    });
    context.insert("scheduler".to_owned(), marked);
    (message.data.clone(), context)
}

/// A schedule as the topics show it: its next time, how often, its data, its context.
pub(crate) fn entry(schedule: &Schedule, message: &ScheduledMessage) -> Value {
    let seconds = |millis: Millis| std::time::Duration::from_millis(millis.unsigned_abs()).as_secs_f64();
    let every = match schedule.when {
        Timing::Every { every_ms, .. } => Some(seconds(every_ms)),
        _ => None,
    };
    let next = schedule.next_ms.map_or(0.0, seconds);
    json!([next, every, message.data, message.context])
}
