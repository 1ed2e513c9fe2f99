//! Calibration and setup: calibrate_*, set_motor_id, set_home_position, setup_robot, self_test, save_config, load_config.

use ovos_toolbox_sdk::prelude::*;

use super::arguments::{Arm, file_word, range, words, yes};
use super::diagnostics::{bus_of, buses, on_bus};
use super::listing::{Listing, Planned};
use crate::capability::{BusName, Capabilities};
use crate::error::tool_error;
use crate::graph::{Graph, Node, on};
use crate::resolve::{calibration_seconds, test_seconds};
use crate::step::Step;
use crate::subsystem::Subsystem;
use crate::unit::Unit;

pub(super) fn list(listing: &mut Listing<'_>) {
    let files = |robot: &Capabilities| robot.services.config;
    listing.add(
        "calibrate_arm",
        Effect::Motion,
        |robot| arms(&robot.services.calibrate),
        calibrate_arm,
    );
    listing.add(
        "calibrate_gantry",
        Effect::Motion,
        |robot| calibrates(robot, Subsystem::Gantry),
        calibrate_gantry,
    );
    listing.add(
        "calibrate_lift",
        Effect::Motion,
        |robot| calibrates(robot, Subsystem::Lift),
        calibrate_lift,
    );
    listing.add(
        "calibrate_base",
        Effect::Motion,
        |robot| calibrates(robot, Subsystem::Base),
        calibrate_base,
    );
    listing.add(
        "calibrate_hitch",
        Effect::Motion,
        |robot| calibrates(robot, Subsystem::Hitch),
        calibrate_hitch,
    );
    listing.add("set_motor_id", Effect::Write, buses, set_motor_id);
    listing.add(
        "set_home_position",
        Effect::Write,
        |robot| !robot.services.set_home.is_empty(),
        set_home_position,
    );
    listing.add(
        "setup_robot",
        Effect::Motion,
        |robot| !robot.services.calibrate.is_empty(),
        setup_robot,
    );
    listing.add(
        "self_test",
        Effect::Motion,
        |robot| !robot.services.self_test.is_empty(),
        self_test,
    );
    listing.add("save_config", Effect::Write, files, save_config);
    listing.add("load_config", Effect::Write, files, load_config);
}

fn arms(parts: &[Subsystem]) -> bool {
    parts.iter().any(|part| part.is_arm())
}

fn calibrates(robot: &Capabilities, part: Subsystem) -> bool {
    robot.services.calibrate.contains(&part)
}

words!(
    /// How thoroughly to calibrate an arm.
    ArmMode, Quick: Full "full", Quick "quick", OffsetsOnly "offsets_only"
);
words!(
    /// How thoroughly to calibrate the head.
    GantryMode, CenterOnly: Full "full", CenterOnly "center_only"
);
words!(
    /// What to test of the base.
    BaseMode, WheelTest: WheelTest "wheel_test", DriveTest "drive_test", Full "full"
);
words!(
    /// What to calibrate of the hitch.
    HitchMode, Full: Full "full", RangeTest "range_test", SetHome "set_home"
);
words!(
    /// A part that has a home.
    HomePart, LeftArm: LeftArm "left_arm", RightArm "right_arm", Gantry "gantry", Lift "lift"
);
words!(
    /// A step of the setup.
    SetupStep, Scan: Scan "scan", CalibrateArms "calibrate_arms", CalibrateGantry "calibrate_gantry",
    CalibrateLift "calibrate_lift", CalibrateBase "calibrate_base", CalibrateHitch "calibrate_hitch",
    TestAll "test_all"
);
words!(
    /// A part that can test itself.
    TestPart, LeftArm: LeftArm "left_arm", RightArm "right_arm", Gantry "gantry", Lift "lift", Base "base",
    Hitch "hitch"
);
words!(
    /// A part whose settings are saved, or all.
    SavePart, All: LeftArm "left_arm", RightArm "right_arm", Gantry "gantry", Lift "lift", Base "base",
    Hitch "hitch", All "all"
);

/// A calibration, with the time that its movements need.
fn calibrate(unit: &Unit, part: Subsystem, seconds: f64, mode: &str, write: bool) -> Result<Node, ToolError> {
    if !calibrates(unit.capabilities(), part) {
        return Err(tool_error(unit.lacks(format!("calibration of {part}"))));
    }
    let mode = mode.to_string();
    let expected = calibration_seconds(unit, part, &mode);
    Ok(on(part, seconds, Step::Calibrate { mode, write }).lasting(expected))
}

/// By how much each joint is moved in a test, in degrees; the lift in millimetres.
const TEST: f64 = 5.0;

/// Check the calibration of the robot's arm: what its motors keep is read and compared, and nothing is changed. Mode full measures the
/// ends of every joint by pushing gently: it moves, keep clear of it.
#[derive(Deserialize, JsonSchema)]
struct CalibrateArm {
    /// Which arm.
    arm: Arm,
    /// quick reads the limits and offsets, offsets_only reads how far the arm is from home; both move nothing. full moves
    /// every joint to both ends.
    #[serde(default)]
    mode: ArmMode,
    /// Write into the motors, and move nothing: with full the ends that the last call without write felt, with offsets_only
    /// that the arm is at home now. Only when the operator asks for it; what was there is saved first. The arm lets go for a
    /// moment.
    #[serde(default)]
    write: bool,
}

fn calibrate_arm(unit: &Unit, args: CalibrateArm) -> Planned<'_> {
    if args.write && args.mode == ArmMode::Quick {
        return Err(ToolError::bad_args(
            "write: mode quick measures nothing; expected mode full or offsets_only",
        ));
    }
    let mode = args.mode.as_str();
    let node = calibrate(unit, args.arm.subsystem(), 60.0, mode, args.write)?;
    Ok(Graph::new(unit).refused(forbidden(unit, args.write)).wave([node]))
}

/// Why a step that changes what the motors keep is not allowed.
fn forbidden(unit: &Unit, writes: bool) -> Option<ToolError> {
    if unit.capabilities().services.calibration_write || !writes {
        return None;
    }
    Some(ToolError::new(
        "PermissionError",
        format!(
            "this writes into the motors of {0}, and robots.{0}.channels.allow_calibration_write is not true",
            unit.name
        ),
    ))
}

/// Calibrate the robot's head: its middle, or its whole range. It moves.
#[derive(Deserialize, JsonSchema)]
struct CalibrateGantry {
    /// How thoroughly.
    #[serde(default)]
    mode: GantryMode,
}

fn calibrate_gantry(unit: &Unit, args: CalibrateGantry) -> Planned<'_> {
    let node = calibrate(unit, Subsystem::Gantry, 30.0, args.mode.as_str(), false)?;
    Ok(Graph::new(unit).wave([node]))
}

/// Measure the ends of the robot's lift by driving to them gently, then home it; or only home it. It moves.
#[derive(Deserialize, JsonSchema)]
struct CalibrateLift {
    /// Whether to drive to both ends to find them.
    #[serde(default = "yes")]
    find_limits: bool,
}

fn calibrate_lift(unit: &Unit, args: CalibrateLift) -> Planned<'_> {
    let mode = if args.find_limits {
        "find_limits"
    } else {
        "home_only"
    };
    let node = calibrate(unit, Subsystem::Lift, 30.0, mode, false)?;
    Ok(Graph::new(unit).wave([node]))
}

/// Test the wheels of the robot's base or a short drive. It moves: keep clear.
#[derive(Deserialize, JsonSchema)]
struct CalibrateBase {
    /// What to test.
    #[serde(default)]
    mode: BaseMode,
}

fn calibrate_base(unit: &Unit, args: CalibrateBase) -> Planned<'_> {
    let node = calibrate(unit, Subsystem::Base, 30.0, args.mode.as_str(), false)?;
    Ok(Graph::new(unit).wave([node]))
}

/// Measure the range of the robot's hitch by closing and opening it; or, with set_home, read how far it is from home.
#[derive(Deserialize, JsonSchema)]
struct CalibrateHitch {
    /// What to calibrate.
    #[serde(default)]
    mode: HitchMode,
    /// With set_home: write into the motor that the hitch is at home now. Only when the operator asks for it; what was there
    /// is saved first.
    #[serde(default)]
    write: bool,
}

fn calibrate_hitch(unit: &Unit, args: CalibrateHitch) -> Planned<'_> {
    if args.write && args.mode != HitchMode::SetHome {
        return Err(ToolError::bad_args(
            "write: only a home is written into the hitch; expected mode set_home",
        ));
    }
    let node = calibrate(unit, Subsystem::Hitch, 30.0, args.mode.as_str(), args.write)?;
    Ok(Graph::new(unit).refused(forbidden(unit, args.write)).wave([node]))
}

/// Give a servo of the robot another id, while it is the only one with its present id on the bus.
#[derive(Deserialize, JsonSchema)]
struct SetMotorId {
    /// On which bus.
    bus: BusName,
    /// The id it has.
    #[schemars(range(min = 1, max = 253))]
    current_id: u8,
    /// The id it gets.
    #[schemars(range(min = 1, max = 253))]
    new_id: u8,
}

fn set_motor_id(unit: &Unit, args: SetMotorId) -> Planned<'_> {
    range("current_id", f64::from(args.current_id), 1.0, 253.0)?;
    range("new_id", f64::from(args.new_id), 1.0, 253.0)?;
    let step = Step::SetMotorId {
        bus: args.bus,
        current_id: args.current_id,
        new_id: args.new_id,
    };
    Ok(Graph::new(unit).wave([on_bus(bus_of(unit, args.bus)?, 5.0, step)]))
}

/// Read how far a part of the robot is from home; or, with write, write into its motors that it is at home now. The part has to be
/// without power then.
#[derive(Deserialize, JsonSchema)]
struct SetHomePosition {
    /// Which part of the robot; gantry is the head.
    subsystem: HomePart,
    /// Write it. Only when the operator asks for it; what was there is saved first.
    #[serde(default)]
    write: bool,
}

fn set_home_position(unit: &Unit, args: SetHomePosition) -> Planned<'_> {
    let part = args.subsystem.as_str().parse().map_err(ToolError::from)?;
    if !unit.capabilities().services.set_home.contains(&part) {
        return Err(tool_error(unit.lacks(format!("a home of {part}"))));
    }
    Ok(Graph::new(unit).refused(forbidden(unit, args.write)).wave([on(
        part,
        5.0,
        Step::SetHomePosition { write: args.write },
    )]))
}

/// Check the robot after it was built or repaired: scan the motors, check and measure the parts, test everything. Writes
/// nothing into the motors. Takes minutes and moves: keep clear of it.
#[derive(Deserialize, JsonSchema)]
struct SetupRobot {
    /// What to do; always in this order.
    #[serde(default = "usual_setup")]
    #[schemars(length(max = 16))]
    steps: Vec<SetupStep>,
}

fn usual_setup() -> Vec<SetupStep> {
    vec![
        SetupStep::Scan,
        SetupStep::CalibrateArms,
        SetupStep::CalibrateGantry,
        SetupStep::CalibrateHitch,
    ]
}

fn setup_robot(unit: &Unit, args: SetupRobot) -> Planned<'_> {
    if args.steps.is_empty() {
        return Err(ToolError::bad_args("steps: expected at least one"));
    }
    let wanted = |step: SetupStep| args.steps.contains(&step);
    let can = |part: Subsystem| calibrates(unit.capabilities(), part);
    let mut graph = Graph::new(unit);
    if wanted(SetupStep::Scan) {
        let buses: Vec<BusName> = unit.capabilities().buses.iter().map(|bus| bus.name).collect();
        graph = if buses.is_empty() {
            graph.note(format!("{} has no servo bus to scan", unit.name))
        } else {
            graph.wave([on(Subsystem::All, 15.0, Step::ScanMotors { buses })])
        };
    }
    for (step, name, parts, seconds, mode) in CALIBRATIONS {
        if !wanted(step) {
            continue;
        }
        let (present, absent): (Vec<Subsystem>, Vec<Subsystem>) = parts.iter().partition(|part| can(**part));
        for part in absent {
            graph = graph.note(format!("{} has no {part} to calibrate", unit.name));
        }
        let nodes = present
            .into_iter()
            .map(|part| Ok(calibrate(unit, part, seconds, mode, false)?.named(name)));
        graph = graph.wave(nodes.collect::<Result<Vec<Node>, ToolError>>()?);
    }
    if wanted(SetupStep::TestAll) {
        let parts = unit.capabilities().services.self_test.iter();
        let seconds = parts.map(|part| test_seconds(unit, *part, None, TEST)).sum();
        let test = on(Subsystem::All, 60.0, Step::SelfTest { verbose: false });
        graph = graph.wave([test.lasting(seconds)]);
    }
    Ok(graph)
}

/// The calibrations of the setup in their order: the name in the plan, the parts, the seconds and the mode.
const CALIBRATIONS: [(SetupStep, &str, &[Subsystem], f64, &str); 5] = [
    (
        SetupStep::CalibrateArms,
        "calibrate",
        &[Subsystem::LeftArm, Subsystem::RightArm],
        60.0,
        "quick",
    ),
    (
        SetupStep::CalibrateGantry,
        "calibrate_gantry",
        &[Subsystem::Gantry],
        30.0,
        "center_only",
    ),
    (
        SetupStep::CalibrateLift,
        "calibrate_lift",
        &[Subsystem::Lift],
        30.0,
        "find_limits",
    ),
    (
        SetupStep::CalibrateBase,
        "calibrate_base",
        &[Subsystem::Base],
        30.0,
        "wheel_test",
    ),
    (
        SetupStep::CalibrateHitch,
        "calibrate_hitch",
        &[Subsystem::Hitch],
        30.0,
        "full",
    ),
];

/// Test parts of the robot, with small movements.
#[derive(Deserialize, JsonSchema)]
struct SelfTest {
    /// Which parts; gantry is the head.
    #[serde(default = "usual_test")]
    #[schemars(length(max = 16))]
    subsystems: Vec<TestPart>,
    /// Include every measured value.
    #[serde(default)]
    verbose: bool,
}

fn usual_test() -> Vec<TestPart> {
    vec![
        TestPart::LeftArm,
        TestPart::RightArm,
        TestPart::Gantry,
        TestPart::Hitch,
    ]
}

fn self_test(unit: &Unit, args: SelfTest) -> Planned<'_> {
    if args.subsystems.is_empty() {
        return Err(ToolError::bad_args("subsystems: expected at least one"));
    }
    let mut graph = Graph::new(unit);
    let mut parts: Vec<Subsystem> = Vec::new();
    for part in &args.subsystems {
        let part: Subsystem = part.as_str().parse().map_err(ToolError::from)?;
        if parts.contains(&part) {
            continue;
        }
        if unit.capabilities().services.self_test.contains(&part) {
            parts.push(part);
        } else {
            graph = graph.note(format!("{} has no {part} to test", unit.name));
        }
    }
    let test = |part: Subsystem| {
        on(
            part,
            30.0,
            Step::SelfTest {
                verbose: args.verbose,
            },
        )
        .lasting(test_seconds(unit, part, None, TEST))
    };
    Ok(graph.wave(parts.into_iter().map(test)))
}

/// Save the robot's calibration and homes under a name, to load them again later.
#[derive(Deserialize, JsonSchema)]
struct SaveConfig {
    /// Letters, digits, _ and -.
    #[schemars(length(min = 1, max = 64))]
    name: String,
    /// Which parts; gantry is the head.
    #[serde(default = "all_parts")]
    #[schemars(length(max = 16))]
    subsystems: Vec<SavePart>,
}

fn all_parts() -> Vec<SavePart> {
    vec![SavePart::All]
}

fn save_config(unit: &Unit, args: SaveConfig) -> Planned<'_> {
    let name = file_word("name", &args.name)?;
    let mut subsystems: Vec<Subsystem> = Vec::new();
    for part in args.subsystems {
        let part: Subsystem = part.as_str().parse().map_err(ToolError::from)?;
        for part in part.each() {
            if unit.capabilities().has(part) && !subsystems.contains(&part) {
                subsystems.push(part);
            }
        }
    }
    Ok(Graph::new(unit).wave([on(Subsystem::All, 5.0, Step::SaveConfig { name, subsystems })]))
}

/// Compare the limits and homes in the robot's motors with those that were saved under a name; or, with write, restore them.
/// Moves nothing; the parts have to be without power to be written to.
#[derive(Deserialize, JsonSchema)]
struct LoadConfig {
    /// The name they were saved under.
    #[schemars(length(min = 1, max = 64))]
    name: String,
    /// Write them into the motors. Only when the operator asks for it; what was there is saved first.
    #[serde(default)]
    write: bool,
}

fn load_config(unit: &Unit, args: LoadConfig) -> Planned<'_> {
    let name = file_word("name", &args.name)?;
    let step = Step::LoadConfig {
        name,
        write: args.write,
        config: Value::Null,
    };
    Ok(Graph::new(unit)
        .refused(forbidden(unit, args.write))
        .wave([on(Subsystem::All, 10.0, step)]))
}
