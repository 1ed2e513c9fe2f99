//! The people around a simulated robot.
//!
//! Owns the people it sees, hears and knows, and answers the recognition tools. Read [`People`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::adapter::Sighting;
use crate::bearing::half_circle;

/// A person in view.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Person {
    /// Missing: a person whom the robot does not know.
    #[serde(default)]
    pub name: Option<String>,
    /// Degrees from straight ahead as the robot stands at the start, negative to the left.
    pub bearing: f64,
    /// Metres.
    #[serde(default = "near")]
    pub distance: f64,
    /// Is the one who speaks.
    #[serde(default)]
    pub speaking: bool,
}

fn near() -> f64 {
    1.5
}

/// The people that the robot sees and knows.
#[derive(Debug)]
pub(super) struct People {
    visible: Vec<Person>,
    known: BTreeMap<String, Enrolment>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Enrolment {
    face: bool,
    voice: bool,
    admin: bool,
}

impl People {
    pub(super) fn new(visible: Vec<Person>) -> Self {
        let name = |person: &Person| person.name.clone();
        let known = visible.iter().filter_map(name).map(|name| {
            let both = Enrolment {
                face: true,
                voice: true,
                admin: false,
            };
            (name, both)
        });
        let known = known.collect();
        Self { visible, known }
    }

    /// Where a person is for a robot that has turned by so many degrees to the left.
    pub(super) fn locate(&self, name: &str, turned: f64) -> Option<Sighting> {
        let person = self.visible.iter().find(|person| named(person, name))?;
        Some(Sighting {
            bearing: half_circle(person.bearing + turned),
            tilt: 0.0,
            distance: person.distance,
            at: None,
        })
    }

    /// The answer of a recognition tool, for a robot that has turned by so many degrees to the left; `None` for a question it does
    /// not know.
    pub(super) fn answer(&mut self, tool: &str, args: &Value, turned: f64) -> Option<Value> {
        let bearing = |person: &Person| half_circle(person.bearing + turned);
        let seen = |index: usize, person: &Person| {
            json!({
                "track_id": index + 1,
                "name": person.name,
                "angle": bearing(person),
                "distance": person.distance,
            })
        };
        let text = |key: &str| {
            args.get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_string()
        };
        let flag = |key: &str| args.get(key).and_then(Value::as_bool).unwrap_or(true);
        Some(match tool {
            "get_visible_people" => {
                let all = self.visible.iter().enumerate();
                let shown = all.filter(|(_, person)| person.name.is_some() || flag("include_unknown"));
                let people: Vec<Value> = shown.map(|(index, person)| seen(index, person)).collect();
                json!({"count": people.len(), "people": people})
            }
            "identify_person" => match self.pick(args, turned) {
                Some((index, person)) => seen(index, person),
                None => not_done("no person stands there"),
            },
            "enroll_person" => {
                let Some((index, _)) = self.pick(args, turned) else {
                    return Some(not_done("no person is in view"));
                };
                let name = text("name");
                self.visible[index].name = Some(name.clone());
                let known = self.known.entry(name.clone()).or_default();
                known.face = true;
                known.admin = args.get("is_admin").and_then(Value::as_bool).unwrap_or(false);
                json!({"name": name, "track_id": index + 1, "is_admin": known.admin})
            }
            "get_speaker_direction" => match self.speaker() {
                Some(person) => json!({"angle": bearing(person), "confidence": 0.9}),
                None => json!({"angle": null, "confidence": 0.0}),
            },
            "identify_speaker" | "who_said_that" => match self.speaker() {
                Some(person) => json!({"name": person.name, "angle": bearing(person), "confidence": 0.9}),
                None => json!({"name": null, "confidence": 0.0}),
            },
            "enroll_voice" => {
                let name = text("name");
                self.known.entry(name.clone()).or_default().voice = true;
                json!({"name": name, "duration_seconds": args.get("duration_seconds")})
            }
            "get_known_people" => {
                let wanted = |known: &Enrolment| {
                    (known.face && flag("include_face")) || (known.voice && flag("include_voice"))
                };
                let people: Vec<Value> = self
                    .known
                    .iter()
                    .filter(|(_, known)| wanted(known))
                    .map(|(name, known)| {
                        json!({"name": name, "face": known.face, "voice": known.voice, "is_admin": known.admin})
                    })
                    .collect();
                json!({"count": people.len(), "people": people})
            }
            "forget_person" => self.forget(&text("name"), flag("forget_face"), flag("forget_voice")),
            "get_last_seen" => {
                let name = text("name");
                match self
                    .visible
                    .iter()
                    .enumerate()
                    .find(|(_, person)| named(person, &name))
                {
                    Some((index, person)) => {
                        let mut answer = seen(index, person);
                        answer["seconds_ago"] = json!(0);
                        answer
                    }
                    None => not_done(&format!("{name} has not been seen")),
                }
            }
            _ => return None,
        })
    }

    fn speaker(&self) -> Option<&Person> {
        self.visible.iter().find(|person| person.speaking)
    }

    fn pick(&self, args: &Value, turned: f64) -> Option<(usize, &Person)> {
        let bearing = |person: &Person| half_circle(person.bearing + turned);
        let everybody = || self.visible.iter().enumerate();
        if let Some(track) = args.get("track_id").and_then(Value::as_i64) {
            return everybody().find(|(index, _)| i64::try_from(index + 1) == Ok(track));
        }
        match args.get("position").and_then(Value::as_str) {
            Some("left") => everybody().find(|(_, person)| bearing(person) < -10.0),
            Some("right") => everybody().find(|(_, person)| bearing(person) > 10.0),
            Some("center") => everybody().find(|(_, person)| bearing(person).abs() <= 10.0),
            _ => everybody().min_by(|a, b| a.1.distance.total_cmp(&b.1.distance)),
        }
    }

    fn forget(&mut self, name: &str, face: bool, voice: bool) -> Value {
        let found = self
            .known
            .iter_mut()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        let Some((known_name, known)) = found else {
            return not_done(&format!("no person is known as {name}"));
        };
        known.face &= !face;
        known.voice &= !voice;
        let known_name = known_name.clone();
        if !(known.face || known.voice) {
            self.known.remove(&known_name);
        }
        if face {
            for person in &mut self.visible {
                if named(person, name) {
                    person.name = None;
                }
            }
        }
        json!({"name": known_name, "forgot_face": face, "forgot_voice": voice})
    }
}

fn named(person: &Person, name: &str) -> bool {
    person
        .name
        .as_ref()
        .is_some_and(|own| own.eq_ignore_ascii_case(name.trim()))
}

fn not_done(why: &str) -> Value {
    json!({"success": false, "message": why})
}
