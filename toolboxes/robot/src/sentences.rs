//! What each tool that changes or moves something would do, as a sentence for the person who confirms it.
//!
//! Owns the table of sentences. A tool without a row has the sentence that the service makes from its arguments. Read [`of`].

use std::collections::BTreeMap;

use ovos_toolbox_sdk::prelude::Object;
use ovos_toolbox_sdk::sentence::{Row, fill, sentences};

use crate::unit::Unit;

/// The tools that lead an arm through joint angles.
const BY_ANGLES: [&str; 6] = [
    "wave",
    "move_arm",
    "go_to_pose",
    "express",
    "point_at_person",
    "dance",
];

/// The sentences of a call to a robot, by language.
#[must_use]
pub(crate) fn of(tool: &str, args: &Object, unit: Option<&Unit>) -> BTreeMap<String, String> {
    let mut sentences = sentences(TABLE, tool, args);
    let unchecked = BY_ANGLES.contains(&tool) && unit.is_some_and(has_unchecked_arm);
    for (language, sentence) in &mut sentences {
        // Which one, where there are several.
        sentence.push_str(&fill(language, "[ (robot {robot})]", args).unwrap_or_default());
        sentence.push_str(match (unchecked, language.as_str()) {
            (false, _) => "",
            (true, "de") => {
                " (der Arm kann auf den Tisch stoßen: seine Form fehlt in der Datei des Roboters)"
            }
            (true, _) => " (the arm may hit the table: its shape is not in the robot's file)",
        });
    }
    sentences
}

/// Whether an arm is led by a controller's trajectories, which are checked against the table where the robot's file has its shape, and it
/// has none.
fn has_unchecked_arm(unit: &Unit) -> bool {
    let parts = unit.capabilities();
    let has_table = |arm| {
        unit.model
            .geometry(arm)
            .is_some_and(|shape| shape.least().is_some())
    };
    let arms = parts.subsystems().into_iter().filter(|part| part.is_arm());
    parts.services.trajectories && !arms.into_iter().all(has_table)
}

#[rustfmt::skip]
const TABLE: &[Row] = &[
    // Movement
    ("wave", &[
        ("en", "wave with {arm:left=the left arm,right=the right arm,both=both arms}"),
        ("de", "mit {arm:left=dem linken Arm,right=dem rechten Arm,both=beiden Armen} winken"),
    ]),
    ("move_arm", &[
        ("en", "move {arm:left=the left arm,right=the right arm,both=both arms} to {position}"),
        ("de", "{arm:left=den linken Arm,right=den rechten Arm,both=beide Arme} nach {position} bewegen"),
    ]),
    ("look_at", &[
        ("en", "turn the head {bearing_degrees.abs} degrees to the {bearing_degrees:+=left,-=right}"),
        ("en", "turn the head towards {target}"),
        ("de", "den Kopf um {bearing_degrees.abs} Grad nach {bearing_degrees:+=links,-=rechts} drehen"),
        ("de", "den Kopf zu {target} drehen"),
    ]),
    ("nod", &[
        ("en", "{type:yes=nod,no=shake the head,maybe=tilt the head}"),
        ("de", "{type:yes=nicken,no=den Kopf schütteln,maybe=den Kopf wiegen}"),
    ]),
    ("go_to_pose", &[
        ("en", "move into the pose {pose}"),
        ("de", "die Haltung {pose} einnehmen"),
    ]),
    // Expression
    ("express", &[
        ("en", "show the emotion {emotion.word} by moving"),
        ("de", "sich bewegen und das Gefühl {emotion} zeigen"),
    ]),
    ("gesture_while_speaking", &[
        ("en", "{enabled:true=start,false=stop} gesturing while speaking"),
        ("de", "beim Sprechen {enabled:true=ab jetzt,false=nicht mehr} gestikulieren"),
    ]),
    ("point_at_person", &[
        ("en", "point at {name} with {arm:left=the left arm,right=the right arm,auto=an arm}"),
        ("de", "mit {arm:left=dem linken Arm,right=dem rechten Arm,auto=einem Arm} auf {name} zeigen"),
    ]),
    ("dance", &[
        ("en", "dance for {duration} seconds"),
        ("de", "{duration} Sekunden lang tanzen"),
    ]),
    // Manipulation
    ("run_policy", &[
        ("en", "let the program {policy} move the robot by itself, for up to {seconds} seconds and without this toolbox's limits"),
        ("de", "das Programm {policy} den Roboter bis zu {seconds} Sekunden lang selbst bewegen lassen, ohne die Grenzen dieser Toolbox"),
    ]),
    ("pick_object", &[
        ("en", "pick up {object} with the {hand.word} hand"),
        ("de", "{object} mit der {hand:left=linken,right=rechten} Hand aufheben"),
    ]),
    ("place_object", &[
        ("en", "put down what the {hand.word} hand holds at {location}"),
        ("de", "ablegen, was die {hand:left=linke,right=rechte} Hand hält, und zwar hier: {location}"),
    ]),
    ("gripper", &[
        ("en", "{action:open=open,close=close,toggle=open or close} the {arm.word} gripper"),
        ("de", "den {arm:left=linken,right=rechten} Greifer {action:open=öffnen,close=schließen,toggle=öffnen oder schließen}"),
    ]),
    // Locomotion
    ("move_base", &[
        ("en", "turn the robot[ {degrees} degrees] {direction:rotate_left=to the left,rotate_right=to the right}"),
        ("en", "move the robot[ {distance} metres] {direction:left=to the left,right=to the right,forward=forward,backward=backward}"),
        ("de", "den Roboter[ um {degrees} Grad] {direction:rotate_left=nach links,rotate_right=nach rechts} drehen"),
        ("de", "den Roboter[ um {distance} Meter] {direction:left=nach links,right=nach rechts,forward=vorwärts,backward=rückwärts} bewegen"),
    ]),
    ("remember_place", &[
        ("en", "remember this place as {place}"),
        ("de", "sich diesen Ort als {place} merken"),
    ]),
    ("go_to_place", &[
        ("en", "drive to the place {place}"),
        ("de", "zum Ort {place} fahren"),
    ]),
    ("forget_place", &[
        ("en", "forget the place {place}"),
        ("de", "den Ort {place} vergessen"),
    ]),
    ("walk", &[
        ("en", "walk {direction:forward=forward,backward=backward,left=to the left,right=to the right} for {duration} seconds at {speed} metres a second"),
        ("en", "turn {direction:rotate_left=to the left,rotate_right=to the right} on the spot for {duration} seconds"),
        ("de", "{duration} Sekunden lang mit {speed} Metern in der Sekunde {direction:forward=vorwärts,backward=rückwärts,left=nach links,right=nach rechts} gehen"),
        ("de", "sich {duration} Sekunden lang auf der Stelle nach {direction:rotate_left=links,rotate_right=rechts} drehen"),
    ]),
    ("spin", &[
        ("en", "turn the robot {degrees} degrees to the {direction:clockwise=right,cw=right,counterclockwise=left,ccw=left}"),
        ("de", "den Roboter um {degrees} Grad nach {direction:clockwise=rechts,cw=rechts,counterclockwise=links,ccw=links} drehen"),
    ]),
    ("turn", &[
        ("en", "turn the robot {target:left=90 degrees to the left,right=90 degrees to the right,around=around,behind=around,back=around}"),
        ("en", "turn the robot {target.abs} degrees to the {target:+=left,-=right}"),
        ("en", "turn the robot towards {target}"),
        ("de", "den Roboter {target:left=um 90 Grad nach links,right=um 90 Grad nach rechts,around=um 180 Grad,behind=um 180 Grad,back=um 180 Grad} drehen"),
        ("de", "den Roboter um {target.abs} Grad nach {target:+=links,-=rechts} drehen"),
        ("de", "den Roboter zu {target} drehen"),
    ]),
    // Safety
    ("alert_hazard", &[
        ("en", "stop the robot, and look and point at a danger[ {bearing_degrees.abs} degrees to the {bearing_degrees:+=left,-=right}]"),
        ("de", "den Roboter anhalten, und auf eine Gefahr blicken und zeigen[, {bearing_degrees.abs} Grad {bearing_degrees:+=links,-=rechts}]"),
    ]),
    ("enable_fire_detection", &[
        ("en", "switch the fire detection {enabled:true=on,false=off}"),
        ("de", "die Branderkennung {enabled:true=einschalten,false=ausschalten}"),
    ]),
    // Lift and hitch
    ("lift", &[
        ("en", "move the lift {action:up=up,down=down,home=home,top=to the top,bottom=to the bottom}[ by {distance_mm} millimetres][ to {position_mm} millimetres]"),
        ("de", "den Hub {action:up=nach oben,down=nach unten,home=in die Grundstellung,top=ganz nach oben,bottom=ganz nach unten} fahren[, um {distance_mm} Millimeter][, auf {position_mm} Millimeter]"),
    ]),
    ("hitch", &[
        ("en", "{action:open=open the hitch,close=close the hitch,toggle=open or close the hitch,dock=dock the hitch,release=release the hitch}[ with a grip of {grip_percent} percent]"),
        ("de", "die Kupplung {action:open=öffnen,close=schließen,toggle=öffnen oder schließen,dock=andocken,release=lösen}[, mit {grip_percent} Prozent Griff]"),
    ]),
    ("tow_cart", &[
        ("en", "{action:attach=attach the cart,detach=detach the cart,status=look at the cart}"),
        ("de", "den Wagen {action:attach=ankuppeln,detach=abkuppeln,status=prüfen}"),
    ]),
    ("dock_charger", &[
        ("en", "{action:dock=drive to the charger and dock,undock=leave the charger,status=look at the charger}"),
        ("de", "{action:dock=an die Ladestation fahren,undock=die Ladestation verlassen,status=die Ladestation prüfen}"),
    ]),
    // Diagnostics and calibration
    ("scan_motors", &[("en", "look for the motors of {bus:left=the left bus,right=the right bus,both=both buses}")]),
    ("test_motor", &[
        ("en", "move motor {motor_id} of the {bus.word} bus by {angle} degrees"),
        ("de", "Motor {motor_id} am {bus:left=linken,right=rechten} Bus um {angle} Grad bewegen"),
    ]),
    ("enable_torque", &[
        ("en", "{enable:true=switch the torque on,false=switch the torque off so that it may fall}: {subsystem:all=every part,left_arm=the left arm,right_arm=the right arm,gantry=the gantry,lift=the lift,base=the base}"),
        ("de", "das Drehmoment {enable:true=einschalten,false=ausschalten (was es hält kann fallen)}: {subsystem:all=alles,left_arm=linker Arm,right_arm=rechter Arm,gantry=Kopf,lift=Hub,base=Fahrgestell}"),
    ]),
    ("recover_servo", &[("en", "recover motor {motor_id} of the {bus.word} bus: {action.word}")]),
    ("enable_degraded_mode", &[("en", "work without these motors: {missing_servos}")]),
    ("calibrate_arm", &[
        ("en", "calibrate the {arm.word} arm, which moves it{write:true= and writes the result into the motors,false=}"),
        ("de", "den {arm:left=linken,right=rechten} Arm kalibrieren; er bewegt sich dabei"),
    ]),
    ("calibrate_gantry", &[("en", "calibrate the gantry, which moves it"), ("de", "den Kopf kalibrieren; er bewegt sich dabei")]),
    ("calibrate_lift", &[("en", "calibrate the lift, which moves it"), ("de", "den Hub kalibrieren; er bewegt sich dabei")]),
    ("calibrate_base", &[("en", "calibrate the base, which moves it"), ("de", "das Fahrgestell kalibrieren; es bewegt sich dabei")]),
    ("calibrate_hitch", &[("en", "calibrate the hitch, which moves it"), ("de", "die Kupplung kalibrieren; sie bewegt sich dabei")]),
    ("set_motor_id", &[("en", "give motor {current_id} of the {bus.word} bus the number {new_id}")]),
    ("set_home_position", &[("en", "make the present position of {subsystem} its home position")]),
    ("setup_robot", &[("en", "set the robot up, which moves it: {steps}")]),
    ("self_test", &[("en", "test the robot, which moves these parts: {subsystems}")]),
    ("save_config", &[("en", "save the configuration of {subsystems} as {name}")]),
    ("load_config", &[("en", "load the configuration {name}")]),
    // Recognition
    ("enroll_person", &[("en", "remember the face of {name}{is_admin:true= as an administrator,false=}")]),
    ("enroll_voice", &[("en", "listen for {duration_seconds} seconds and remember the voice of {name}")]),
    ("forget_person", &[
        ("en", "forget {name}"),
        ("de", "{name} vergessen"),
    ]),
    ("look_at_speaker", &[
        ("en", "turn the head towards the speaker"),
        ("de", "den Kopf zum Sprecher drehen"),
    ]),
];
