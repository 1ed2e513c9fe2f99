//! What each tool that changes or moves something would do, as a sentence for the person who confirms it.
//!
//! Owns the table of sentences. A tool without a row has the sentence that the service makes from its arguments. Read [`of`].

use std::collections::BTreeMap;

use ovos_toolbox_sdk::prelude::Object;
use ovos_toolbox_sdk::sentence::{Row, fill, sentences};

/// The sentences of a call, by language.
#[must_use]
pub(crate) fn of(tool: &str, args: &Object) -> BTreeMap<String, String> {
    let mut sentences = sentences(TABLE, tool, args);
    for (language, sentence) in &mut sentences {
        // Which one, where there are several.
        sentence.push_str(&fill(language, "[ (vehicle {vehicle})]", args).unwrap_or_default());
    }
    sentences
}

#[rustfmt::skip]
const TABLE: &[Row] = &[
    ("arm", &[
        ("en", "arm the drone, which starts its motors"),
        ("de", "die Drohne scharf schalten; ihre Motoren laufen dann an"),
    ]),
    ("disarm", &[("en", "disarm the drone"), ("de", "die Motoren der Drohne abschalten")]),
    ("takeoff", &[
        ("en", "{arm:true=arm the drone and take off,false=take off} to {alt_m} metres"),
        ("de", "{arm:true=die Drohne scharf schalten und ,false=}auf {alt_m} Meter starten"),
    ]),
    ("land", &[("en", "land the drone where it is"), ("de", "die Drohne landen, wo sie ist")]),
    ("rtl", &[("en", "fly the drone back to its start and land"), ("de", "die Drohne zum Startpunkt zurückfliegen und landen")]),
    ("set_yaw", &[
        ("en", "turn the drone to the compass heading {deg} degrees"),
        ("de", "die Drohne auf Kompasskurs {deg} Grad drehen"),
    ]),
    ("turn_cw", &[
        ("en", "turn the drone {deg} degrees to the right"),
        ("de", "die Drohne um {deg} Grad nach rechts drehen"),
    ]),
    ("turn_ccw", &[
        ("en", "turn the drone {deg} degrees to the left"),
        ("de", "die Drohne um {deg} Grad nach links drehen"),
    ]),
    ("move_forward", &[("en", "fly {cm} centimetres forward"), ("de", "{cm} Zentimeter vorwärts fliegen")]),
    ("move_backward", &[("en", "fly {cm} centimetres backward"), ("de", "{cm} Zentimeter rückwärts fliegen")]),
    ("move_left", &[("en", "fly {cm} centimetres to the left"), ("de", "{cm} Zentimeter nach links fliegen")]),
    ("move_right", &[("en", "fly {cm} centimetres to the right"), ("de", "{cm} Zentimeter nach rechts fliegen")]),
    ("move_up", &[("en", "fly {cm} centimetres up"), ("de", "{cm} Zentimeter nach oben fliegen")]),
    ("move_down", &[("en", "fly {cm} centimetres down"), ("de", "{cm} Zentimeter nach unten fliegen")]),
    ("hold", &[("en", "hold the drone in place for {ms} milliseconds"), ("de", "die Drohne {ms} Millisekunden lang auf der Stelle halten")]),
    ("goto_gps", &[
        ("en", "fly to latitude {lat}, longitude {lon}, {alt_m} metres above the start[, and turn to the compass heading {yaw_deg} degrees]"),
        ("de", "zu Breite {lat}, Länge {lon} fliegen, {alt_m} Meter über dem Start[, mit Kompasskurs {yaw_deg} Grad]"),
    ]),
    ("goto_local", &[
        ("en", "fly to the point {north_m.abs} metres {north_m:+=north,-=south} and {east_m.abs} metres {east_m:+=east,-=west} of the origin and {down_m.abs} metres {down_m:-=above,+=below} it[, and turn to the compass heading {yaw_deg} degrees]"),
        ("de", "zu dem Punkt {north_m.abs} Meter {north_m:+=nördlich,-=südlich} und {east_m.abs} Meter {east_m:+=östlich,-=westlich} des Ursprungs fliegen, {down_m.abs} Meter {down_m:-=darüber,+=darunter}[, mit Kompasskurs {yaw_deg} Grad]"),
    ]),
    ("follow_path", &[
        ("en", "fly along a path of several points at up to {cruise_mps} metres a second"),
        ("de", "einen Weg aus mehreren Punkten abfliegen, mit bis zu {cruise_mps} Metern in der Sekunde"),
    ]),
    ("safe_approach_until", &[
        ("en", "fly towards {object} in steps of {step_cm} centimetres, up to {stop_dist_m} metres from it"),
        ("de", "in Schritten von {step_cm} Zentimetern auf {object} zufliegen, bis auf {stop_dist_m} Meter"),
    ]),
    ("scan", &[
        ("en", "turn the drone in up to {max_steps} steps of {step_deg} degrees and look for {object}"),
        ("de", "die Drohne in bis zu {max_steps} Schritten von {step_deg} Grad drehen und nach {object} suchen"),
    ]),
    ("orient_to_object", &[
        ("en", "turn the drone towards {object}"),
        ("de", "die Drohne zu {object} drehen"),
    ]),
    ("track_object", &[
        ("en", "turn the drone with {object} for {horizon_s} seconds"),
        ("de", "die Drohne {horizon_s} Sekunden lang mit {object} drehen"),
    ]),
    ("capture_photo", &[("en", "take a photo"), ("de", "ein Foto machen")]),
    ("start_video", &[("en", "begin to record a video"), ("de", "eine Videoaufnahme beginnen")]),
    ("stop_video", &[("en", "end the video recording"), ("de", "die Videoaufnahme beenden")]),
];

#[cfg(test)]
mod tests {
    use ovos_toolbox_sdk::prelude::*;
    use ovos_toolbox_sdk::wire::ToolList;

    use super::*;

    /// A value that the schema of an argument accepts.
    fn value(schema: &Value) -> Value {
        let choices = schema["anyOf"]
            .as_array()
            .map_or_else(|| vec![schema.clone()], Clone::clone);
        let kind = choices[0]["type"].as_str().unwrap_or_default();
        match kind {
            "number" | "integer" => json!(3),
            "boolean" => json!(true),
            "array" => json!([]),
            "object" => json!({}),
            _ => json!("cup"),
        }
    }

    #[test]
    fn what_changes_or_moves_something_says_so_in_a_sentence() {
        let text = include_str!("../../../schemas/toolboxes/drone.json");
        let list: ToolList = serde_json::from_str(text).unwrap();
        for tool in list.tools {
            if !matches!(tool.effect, Effect::Motion | Effect::Write) || tool.name == "replan" {
                continue;
            }
            let properties = tool.argument_schema["properties"].as_object().unwrap();
            let args: Object = properties
                .iter()
                .filter(|(name, _)| *name != "vehicle")
                .map(|(name, schema)| (name.clone(), value(schema)))
                .collect();
            let sentences = of(&tool.name, &args);
            for language in ["en", "de"] {
                let sentence = sentences.get(language);
                let sentence = sentence
                    .unwrap_or_else(|| panic!("{} has no {language} sentence for {args:?}", tool.name));
                assert!(!sentence.contains(['{', '[']), "{sentence}");
            }
        }
        for (tool, args, expected) in [
            (
                "turn_cw",
                json!({"deg": 90}),
                "turn the drone 90 degrees to the right",
            ),
            (
                "takeoff",
                json!({"alt_m": 5, "arm": true}),
                "arm the drone and take off to 5 metres",
            ),
            (
                "goto_local",
                json!({"north_m": -2, "east_m": 1.5, "down_m": -4, "vehicle": "two"}),
                "fly to the point 2 metres south and 1.5 metres east of the origin and 4 metres above it (vehicle \"two\")",
            ),
        ] {
            assert_eq!(of(tool, args.as_object().unwrap())["en"], expected);
        }
    }
}
