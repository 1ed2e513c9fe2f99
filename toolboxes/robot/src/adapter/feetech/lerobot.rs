//! LeRobot's calibration files.
//!
//! Owns their shape: one JSON object, a joint's name to `id`, `drive_mode`, `homing_offset`, `range_min` and `range_max`
//! in steps, as `lerobot calibrate` writes them for an SO-100, SO-101, LeKiwi or Koch. Reads a file once. Read [`load`].

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::layout::Layout;
use super::servo::exact;
use crate::adapter::ActionError;
use crate::servo::Family;
use crate::subsystem::Subsystem;

/// LeRobot's names of an arm's joints, from the shoulder outwards; a LeKiwi's begin with `arm_`.
const JOINTS: [&str; 6] = [
    "shoulder_pan",
    "shoulder_lift",
    "elbow_flex",
    "wrist_flex",
    "wrist_roll",
    "gripper",
];
/// The largest file that is read. A calibration file has some hundred bytes a joint.
const LARGEST: u64 = 1 << 16;

/// One joint of a file. The servo keeps all of these values but the drive mode.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Joint {
    id: u8,
    drive_mode: i64,
    homing_offset: i64,
    range_min: i64,
    range_max: i64,
}

/// Makes the zero and the range of an arm's servos those of a calibration file: the middle of a joint's range in the file
/// is the middle of its range in the layout, and the end `range_min` of the gripper is closed.
///
/// # Errors
/// The file cannot be read, is not one of LeRobot's, or is that of another arm.
pub(super) fn load(
    layout: &mut Layout,
    family: Family,
    arm: Subsystem,
    path: &Path,
) -> Result<(), ActionError> {
    let farthest = family.farthest();
    let wrong = |what: String| {
        ActionError::Refused(format!("channels.calibration.{arm}: {}: {what}", path.display()))
    };
    let size = std::fs::metadata(path)
        .map_err(|error| wrong(error.to_string()))?
        .len();
    if size > LARGEST {
        return Err(wrong(
            "larger than 64 KiB: no calibration file of LeRobot's".to_owned(),
        ));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let joints: BTreeMap<String, Joint> = serde_json::from_str(&text)
        .map_err(|error| wrong(format!("not a calibration file of LeRobot's: {error}")))?;
    let mut servos = layout.servos.iter_mut().filter(|servo| servo.subsystem == arm);
    for name in JOINTS {
        let Some(servo) = servos.next() else {
            return Err(wrong(format!("this layout has no {arm} of six joints")));
        };
        let joint = joints.get(name).or_else(|| joints.get(&format!("arm_{name}")));
        let joint = *joint.ok_or_else(|| wrong(format!("it has no joint {name}")))?;
        let numbers = (0..=4095).contains(&joint.range_min)
            && joint.range_min < joint.range_max
            && joint.range_max <= 4095
            && joint.homing_offset.abs() <= farthest;
        if joint.id != servo.id || joint.drive_mode != 0 || !numbers {
            return Err(wrong(format!(
                "{name}: expected id {}, drive_mode 0, a homing_offset within ±{farthest} and 0 <= range_min < range_max <= \
                 4095, got {joint:?}",
                servo.id
            )));
        }
        let (low, high) = (exact(joint.range_min), exact(joint.range_max));
        servo.zero = match name {
            // A closed gripper is at 0 in every layout.
            "gripper" if servo.scale > 0.0 => low,
            "gripper" => high,
            _ => f64::midpoint(low, high) - servo.scale * servo.middle,
        };
        let ends = [low, high].map(|step| (step - servo.zero) / servo.scale);
        servo.min = servo.min.max(ends[0].min(ends[1]));
        servo.max = servo.max.min(ends[0].max(ends[1]));
        servo.home = servo.home.max(servo.min).min(servo.max);
        servo.offset = Some(joint.homing_offset);
    }
    Ok(())
}
