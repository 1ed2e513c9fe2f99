//! Queries about detections and obstacles. They only read the scene store.

use ovos_toolbox_sdk::prelude::*;

use crate::answer::{Outcome, Reply};
use crate::guard::{Refusal, Row, refuse};
use crate::scene::Side;
use crate::scene::{Detection, is_called};
use crate::vehicle::Call;

/// Least confidence of a detection where the caller gives none.
pub(super) const CONF_MIN: f64 = 0.5;
/// Greatest length of an object's name, characters.
const NAME_CHARS: usize = 100;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct VisibleArgs {
    /// Such as `red cup`.
    object: String,
    /// Minimum confidence, 0 to 1.
    #[serde(default = "default_conf")]
    conf_min: f64,
}

fn default_conf() -> f64 {
    CONF_MIN
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ObjectArgs {
    /// Such as `red cup`.
    object: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LabelArgs {
    /// Such as `chair`.
    label: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RangeArgs {
    /// Metres, 0.5 to 10.
    range_m: f64,
}

/// Checks the name of an object.
pub(super) fn name<'a>(arg: &str, text: &'a str) -> Result<&'a str, Refusal> {
    let trimmed = text.trim();
    if trimmed.is_empty() || trimmed.chars().count() > NAME_CHARS {
        return refuse(
            "out_of_range",
            format!("{arg}: expected 1 to {NAME_CHARS} characters"),
        );
    }
    Ok(trimmed)
}

/// The detection with the highest confidence; remembered as the flight's last detection.
pub(super) fn find(call: &Call, object: &str, conf_min: f64) -> Result<Option<Detection>, Refusal> {
    let found = call.vehicle.scene.find(object, conf_min);
    let found = found.map_err(|msg| Refusal {
        code: "vision_unavailable",
        msg,
    })?;
    if let Some(found) = &found {
        call.vehicle
            .change_flight(|flight| flight.last_detection = Some((object.to_string(), found.clone())));
    }
    Ok(found)
}

pub(crate) async fn is_visible(call: &Call, row: &Row, args: VisibleArgs) -> Outcome {
    let conf_min = row.number("conf_min", args.conf_min, &mut Vec::new())?;
    let object = name("object", &args.object)?;
    let found = find(call, object, conf_min)?;
    let (visible, conf) = (found.is_some(), found.map_or(0.0, |found| found.conf));
    let msg = if visible {
        format!("{object} is visible")
    } else {
        format!("{object} is not visible")
    };
    Ok(Reply::done(msg).with("visible", visible).with("conf", conf))
}

pub(crate) async fn object_pose(call: &Call, _: &Row, args: ObjectArgs) -> Outcome {
    let object = name("object", &args.object)?;
    let Some(found) = find(call, object, 0.0)? else {
        return refuse("not_found", format!("{object} is not in the picture"));
    };
    let mut reply = Reply::done(format!("{object} is in the picture"))
        .with("x", found.x)
        .with("y", found.y)
        .with("conf", found.conf);
    for (key, value) in [("z_m", found.z_m), ("dist_m", found.dist_m)] {
        if let Some(value) = value {
            reply = reply.with(key, value);
        }
    }
    Ok(reply)
}

pub(crate) async fn scene_free_ahead(call: &Call, row: &Row, args: RangeArgs) -> Outcome {
    let mut adjusted = Vec::new();
    let range = row.number("range_m", args.range_m, &mut adjusted)?;
    let reply = match call.vehicle.scene.free(Side::Ahead) {
        Ok(metres) => {
            let free = metres > range;
            let word = if free { "free" } else { "not free" };
            Reply::done(format!(
                "the next {range} m ahead are {word}: the nearest obstacle is {metres:.2} m away"
            ))
            .with("free", free)
            .with("min_dist_m", metres)
        }
        Err(why) => Reply::failed("no_obstacle_data", why),
    };
    Ok(reply.clamped(adjusted))
}

pub(crate) async fn count_objects(call: &Call, _: &Row, args: LabelArgs) -> Outcome {
    let label = name("label", &args.label)?;
    let seen = call.vehicle.scene.detections();
    let seen = seen.map_err(|msg| Refusal {
        code: "vision_unavailable",
        msg,
    })?;
    let count = seen
        .iter()
        .filter(|seen| seen.conf >= CONF_MIN && is_called(&seen.label, label))
        .count();
    Ok(Reply::done(format!("{count} of {label}")).with("count", count))
}
