//! The tools: what each does after the guards have allowed it.
//!
//! One file per category; each tool is a function from typed arguments to a [`Reply`]. Owns the list of tools. Read
//! [`entries`].

mod approach;
mod arguments;
mod camera;
mod entry;
mod lifecycle;
mod motion;
mod navigation;
mod perception;
mod policy;
pub(crate) mod shown;
mod telemetry;

use std::sync::OnceLock;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::{argument_schema, optional_unit, output_schema};

use crate::answer::{Reply, shapes};
use crate::guard;
pub(crate) use arguments::VEHICLE;
use arguments::{NoArgs, parsed};
pub(crate) use entry::{Entry, Job};
pub(crate) use lifecycle::disarm_standing;

macro_rules! entries {
    ($($tool:literal $function:path, $args:ty, $shape:ident, $blank:tt, $description:literal;)*) => {
        vec![$({
            let mut argument_schema = optional_unit(VEHICLE, argument_schema::<$args>());
            argument_schema["description"] = $description.into();
            Entry {
                // The fallback is unreachable: every tool has a row (test `every_tool_has_a_row`).
                row: guard::row($tool).unwrap_or(&guard::rows()[0]),
                argument_schema,
                output_schema: output_schema::<shapes::$shape>(),
                run: |job: Job| {
                    Box::pin(async move {
                        let args: $args = match parsed(job.args) {
                            Ok(args) => args,
                            Err(refusal) => return refusal.into(),
                        };
                        $function(&job.call, job.row, args).await.unwrap_or_else(Reply::from)
                    })
                },
                readable: |args| parsed::<$args>(args.clone()).map(drop),
                blank: || json!($blank),
            }
        },)*]
    };
}

/// Every tool, in the order of the catalogue.
#[rustfmt::skip]
pub(crate) fn entries() -> std::slice::Iter<'static, Entry> {
    static ENTRIES: OnceLock<Vec<Entry>> = OnceLock::new();
    ENTRIES.get_or_init(|| entries! {
        "arm" lifecycle::arm, NoArgs, Plain, {},
            "Arm the drone's motors. Take off within 10 s, or they disarm.";
        "disarm" lifecycle::disarm, NoArgs, Plain, {},
            "Disarm the drone's motors. Only on the ground.";
        "takeoff" lifecycle::takeoff, lifecycle::TakeoffArgs, Plain, {},
            "Have the drone take off and hover. Needs arm first, or arm: true.";
        "land" lifecycle::land, NoArgs, Plain, {},
            "Land the drone where it is.";
        "rtl" lifecycle::rtl, NoArgs, Plain, {},
            "Fly the drone home and land it there; it climbs first.";
        "set_yaw" motion::set_yaw, motion::YawArgs, Plain, {},
            "Turn the drone on the spot to a compass heading.";
        "turn_cw" motion::turn_cw, motion::TurnArgs, Plain, {},
            "Turn the drone clockwise, to the right, on the spot.";
        "turn_ccw" motion::turn_ccw, motion::TurnArgs, Plain, {},
            "Turn the drone counter-clockwise, to the left, on the spot.";
        "move_forward" motion::move_forward, motion::MoveArgs, Plain, {},
            "Move the drone forward, where the way is known to be free.";
        "move_backward" motion::move_backward, motion::MoveArgs, Plain, {},
            "Move the drone backward, where a sensor shows the way free.";
        "move_left" motion::move_left, motion::MoveArgs, Plain, {},
            "Move the drone to the left without turning.";
        "move_right" motion::move_right, motion::MoveArgs, Plain, {},
            "Move the drone to the right without turning.";
        "move_up" motion::move_up, motion::MoveArgs, Plain, {},
            "Have the drone climb.";
        "move_down" motion::move_down, motion::MoveArgs, Plain, {},
            "Have the drone descend. Does not land.";
        "hold" motion::hold, motion::HoldArgs, Plain, {},
            "Hover the drone in place.";
        "goto_gps" navigation::goto_gps, navigation::GpsArgs, Plain, {},
            "Fly the drone to a place by GPS, inside the fence.";
        "goto_local" navigation::goto_local, navigation::LocalArgs, Plain, {},
            "Fly the drone to a place in metres from the local origin, near home.";
        "follow_path" navigation::follow_path, navigation::PathArgs, Plain, {},
            "Fly the drone through waypoints.";
        "is_visible" perception::is_visible, perception::VisibleArgs, Visible, {"visible": false, "conf": 0.0},
            "Whether the drone's camera sees an object now.";
        "object_pose" perception::object_pose, perception::ObjectArgs, Pose, {"conf": 0.0},
            "Where an object is in the drone's picture (x from 0 left to 1 right, y from the top), and its distance.";
        "scene_free_ahead" perception::scene_free_ahead, perception::RangeArgs, Free, {"free": false, "min_dist_m": 0.0},
            "Whether the way ahead of the drone is free. Unknown counts as not free.";
        "count_objects" perception::count_objects, perception::LabelArgs, Count, {"count": 0},
            "How many objects of a kind the drone's camera sees now.";
        "safe_approach_until" approach::approach, approach::ApproachArgs, Approach, {"reached": false, "steps": 0},
            "Have the drone approach an object in small guarded steps. Call orient_to_object first.";
        "scan" policy::scan, policy::ScanArgs, Scan, {"found": false, "steps": 0},
            "Turn the drone clockwise in steps until its camera sees an object.";
        "orient_to_object" policy::orient, policy::OrientArgs, Orient, {"centered": false, "steps": 0},
            "Turn the drone until an object is in the middle of its picture.";
        "track_object" policy::track, policy::TrackArgs, Plain, {},
            "Have the drone keep an object in the middle of its picture.";
        "replan" policy::replan, policy::ReplanArgs, Replan, {"plan_id": "", "branches": []},
            "Start a new plan for the drone after a failure: resets the limits on turning and forward distance.";
        "vehicle_health" telemetry::vehicle_health, NoArgs, Health,
            {"px4_version": null, "gps_ok": false, "ekf_ok": false, "imu_ok": false, "magnetometer_ok": false, "battery_pct": null, "link_ok": false, "home_amsl_m": null,
             "flight_mode": "UNKNOWN", "armable": false, "why_not_armable": [], "status_text": []},
            "The drone's sensors, GPS, link and flight mode, and why it would not arm.";
        "battery_status" telemetry::battery_status, NoArgs, BatteryStatus, {"pct": null, "voltage_v": null, "remaining_m": null, "remaining_min": null},
            "The drone's battery: percent, volts, minutes left.";
        "vehicle_state" telemetry::vehicle_state, NoArgs, FlightState,
            {"goal": null, "last_detection": null, "rotation_accum_deg": 0.0, "forward_accum_m": 0.0, "flight_rotation_deg": 0.0, "flight_forward_m": 0.0,
             "position": null, "home": null, "fence": null, "plan_id": null, "replans": 0,
             "safety": {}, "limits": {}},
            "The drone's position, home, compass heading, height, speed, goal and limits.";
        "log" telemetry::log, telemetry::LogArgs, Plain, {},
            "Write a line into the drone's flight log.";
        "capture_photo" camera::capture_photo, NoArgs, Plain, {},
            "Take a photo with the drone's camera, which stores it.";
        "start_video" camera::start_video, NoArgs, Plain, {},
            "Start a video with the drone's camera.";
        "stop_video" camera::stop_video, NoArgs, Plain, {},
            "Stop the drone's video.";
        "emergency_brake" lifecycle::emergency_brake, NoArgs, Plain, {},
            "Emergency stop of the drone: zero velocity at once, then hover. Motion is refused until an operator lifts it; to wait, use hold.";
    })
    .iter()
}

/// The tool of this name.
pub(crate) fn entry(tool: &str) -> Option<&'static Entry> {
    entries().find(|entry| entry.row.tool == tool)
}

/// Whether a call arms the vehicle as its first step.
pub(crate) fn arms(entry: &Entry, args: &Value) -> bool {
    entry.row.tool == "takeoff" && args["arm"] == true
}

/// The tools that a call runs, in order, each with its arguments.
pub(crate) fn steps(own: &'static Entry, args: Value) -> Vec<(&'static Entry, Value)> {
    let mut steps = Vec::new();
    if arms(own, &args)
        && (own.readable)(&args).is_ok()
        && let Some(arm) = entry("arm")
    {
        let vehicle = args
            .get(VEHICLE)
            .map_or(json!({}), |vehicle| json!({VEHICLE: vehicle}));
        steps.push((arm, vehicle));
    }
    steps.push((own, args));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_a_row_and_every_row_a_tool() {
        let names: Vec<&str> = entries().map(|entry| entry.row.tool).collect();
        let mut rows: Vec<&str> = guard::rows().iter().map(|row| row.tool).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        rows.sort_unstable();
        assert_eq!(sorted, rows);
        assert_eq!(names.len(), 35);
    }

    #[test]
    fn every_blank_answer_has_what_its_schema_asks_for() {
        for entry in entries() {
            let answer = entry.complete(Reply::failed("x", "y")).json(None, true);
            let required = entry.output_schema["required"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            for key in required {
                let key = key.as_str().unwrap_or_default().to_string();
                assert!(
                    answer.get(&key).is_some(),
                    "{}: {key} is missing in {answer}",
                    entry.row.tool
                );
            }
        }
    }
}
