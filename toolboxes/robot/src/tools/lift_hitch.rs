//! The lift and the hitch: lift, hitch, tow_cart, dock_charger.

use ovos_toolbox_sdk::prelude::*;

use super::arguments::{range_of, words, yes};
use super::listing::{Listing, Planned};
use super::locomotion::base_move;
use super::movement::look;
use crate::capability::Capabilities;
use crate::graph::{Graph, Node, on};
use crate::resolve::lift_seconds;
use crate::step::{CLOSE_HITCH, HitchAction, LiftStep, Step};
use crate::subsystem::Subsystem;
use crate::unit::Unit;

pub(super) fn list(listing: &mut Listing<'_>) {
    listing.add("lift", Effect::Motion, |robot| robot.lift.is_some(), lift);
    listing.add("hitch", Effect::Motion, |robot| robot.hitch.is_some(), hitch);
    listing.add("tow_cart", Effect::Motion, tows, tow_cart);
    listing.add("dock_charger", Effect::Motion, tows, dock_charger);
}

fn tows(robot: &Capabilities) -> bool {
    robot.hitch.is_some() && robot.base.is_some()
}

words!(
    /// Where the lift goes.
    LiftAction, Up: Up "up", Down "down", Home "home", Top "top", Bottom "bottom"
);
words!(
    /// What to do with a cart.
    CartAction, Attach: Attach "attach", Detach "detach", Status "status"
);
words!(
    /// What to do at the charger.
    DockAction, Dock: Dock "dock", Undock "undock", Status "status"
);

/// Raise or lower the robot's lift.
#[derive(Deserialize, JsonSchema)]
struct Lift {
    /// up and down move by distance_mm; home, top and bottom go there. Ignored with position_mm.
    action: LiftAction,
    /// How far up or down, in millimetres; 50 when not given.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 300.0))]
    distance_mm: Option<f64>,
    /// The height to go to, in millimetres.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 300.0))]
    position_mm: Option<f64>,
}

fn lift(unit: &Unit, args: Lift) -> Planned<'_> {
    let position_mm = range_of("position_mm", args.position_mm, 0.0, 300.0)?;
    let distance = range_of("distance_mm", args.distance_mm, 0.0, 300.0)?;
    let by = matches!(args.action, LiftAction::Up | LiftAction::Down) && position_mm.is_none();
    let step = Step::Lift(LiftStep::Lift {
        action: args.action.as_str().to_string(),
        distance_mm: by.then(|| distance.unwrap_or(50.0)),
        position_mm,
    });
    Ok(Graph::new(unit).wave([on(Subsystem::Lift, 10.0, step).lasting(lift_seconds(unit))]))
}

/// Open or close the hitch at the robot's back; dock and release also check what it holds.
#[derive(Deserialize, JsonSchema)]
struct Hitch {
    /// What to do.
    action: HitchAction,
    /// How far to close it, 0 open to 100 closed.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 100.0))]
    grip_percent: Option<f64>,
}

fn hitch(unit: &Unit, args: Hitch) -> Planned<'_> {
    let grip_percent = range_of("grip_percent", args.grip_percent, 0.0, 100.0)?;
    Ok(Graph::new(unit).wave([hitch_node(unit, args.action, grip_percent)]))
}

fn hitch_node(unit: &Unit, action: HitchAction, grip_percent: Option<f64>) -> Node {
    let seconds = unit.capabilities().hitch.as_ref();
    let seconds = seconds.map_or(0.0, |hitch| (hitch.closed - hitch.open).abs() / hitch.max_speed);
    on(Subsystem::Hitch, 5.0, Step::Hitch { action, grip_percent }).lasting(seconds)
}

/// Attach a cart right behind the robot (it drives 0.1 m backwards without looking), let it go, or ask whether one is attached.
#[derive(Deserialize, JsonSchema)]
struct TowCart {
    /// What to do.
    #[serde(default)]
    action: CartAction,
}

fn tow_cart(unit: &Unit, args: TowCart) -> Planned<'_> {
    let tow = |towing| on(Subsystem::Base, 1.0, Step::SetTowMode { towing }).effect(Effect::Write);
    let graph = Graph::new(unit);
    Ok(match args.action {
        CartAction::Attach => graph
            .wave([hitch_node(unit, HitchAction::Open, None).called("open_hitch")])
            .wave([base_move(unit, "backward", 0.1)])
            .wave([hitch_node(unit, HitchAction::Close, None).called(CLOSE_HITCH)])
            // Fails where the hitch has closed on nothing.
            .wave([tow(true)]),
        CartAction::Detach => graph
            .wave([hitch_node(unit, HitchAction::Open, None).called("open_hitch")])
            .wave([base_move(unit, "forward", 0.2)])
            .wave([tow(false)]),
        CartAction::Status => graph.wave([status()]),
    })
}

fn status() -> Node {
    on(Subsystem::Hitch, 5.0, Step::HitchStatus {}).effect(Effect::Read)
}

/// Dock at the charger right behind the robot (it drives 0.3 m backwards without looking), leave it, or ask whether it is docked.
#[derive(Deserialize, JsonSchema)]
struct DockCharger {
    /// What to do.
    #[serde(default)]
    action: DockAction,
    /// Whether to make sure that it charges.
    #[serde(default = "yes")]
    verify_charge: bool,
}

fn dock_charger(unit: &Unit, args: DockCharger) -> Planned<'_> {
    let graph = Graph::new(unit);
    let can_tell = unit.capabilities().services.charge;
    Ok(match args.action {
        DockAction::Dock => {
            let graph = graph
                .wave([
                    look(unit, "behind").optional(),
                    hitch_node(unit, HitchAction::Open, None).called("open_hitch"),
                ])
                .wave([base_move(unit, "backward", 0.3)])
                .wave([hitch_node(unit, HitchAction::Dock, None).called("dock_hitch")]);
            if args.verify_charge && can_tell {
                graph.wave([on(Subsystem::Hitch, 5.0, Step::VerifyCharge {}).effect(Effect::Read)])
            } else if args.verify_charge {
                graph.note(format!("{} cannot tell whether it charges", unit.name))
            } else {
                graph
            }
        }
        DockAction::Undock => graph
            .wave([hitch_node(unit, HitchAction::Release, None).called("release_hitch")])
            .wave([base_move(unit, "forward", 0.3)]),
        DockAction::Status => graph.wave([status()]),
    })
}
