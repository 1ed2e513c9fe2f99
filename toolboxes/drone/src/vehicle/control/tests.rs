//! Stories of who commands the vehicle.

use super::super::telemetry::{GlobalPosition, Mission, Reading};
use super::*;
use crate::geo::Origin;

fn report_of(mode: Mode, armed: bool, in_air: bool) -> Telemetry {
    Telemetry {
        mode: Some(mode),
        armed: Some(armed),
        in_air: Some(in_air),
        landed: Some(if in_air { Landed::InAir } else { Landed::OnGround }),
        ..Telemetry::default()
    }
}

/// Like [`heard`] in the air: metres north of 47 degrees, and height.
fn flies(mode: Mode, north_m: f64, relative_m: f64, mission: Option<(i32, i32)>) -> Telemetry {
    let (lat, lon) = HERE.global(north_m, 0.0);
    Telemetry {
        place: Some(Reading::now(GlobalPosition {
            lat,
            lon,
            amsl_m: 500.0 + relative_m,
            relative_m,
        })),
        local: Some(Reading::now(([north_m, 0.0, -relative_m], [0.0; 3]))),
        yaw_deg: Some(Reading::now(0.0)),
        mission: mission.map(|(current, total)| Reading::now(Mission { current, total })),
        launch: Some((HERE.lat, HERE.lon)),
        ..report_of(mode, true, true)
    }
}

const HERE: Origin = Origin { lat: 47.0, lon: 8.0 };

/// Whether the change from one of our modes, once reached, to another counts as a takeover.
fn foreign(own: Mode, next: &Telemetry) -> bool {
    let mut control = Control::default();
    let (lat, lon) = HERE.global(40.0, 0.0);
    control.store_target(&Command::TakeoffAltitude(5.0));
    control.store_target(&Command::UploadMission(vec![Waypoint {
        lat,
        lon,
        alt_m: 8.0,
        speed_mps: 3.0,
        last: true,
    }]));
    control.want(own);
    control.observe(&flies(own, 20.0, 2.0, None));
    control.observe(next).is_some()
}

#[tokio::test(start_paused = true)]
async fn a_mode_ends_by_itself_only_where_its_work_is_done() {
    use Mode::{Hold, Land, Posctl, ReturnToLaunch, Takeoff};
    for (own, next, is_foreign) in [
        (Takeoff, flies(Hold, 0.0, 4.6, None), false),
        (Takeoff, flies(Hold, 0.0, 4.0, None), false),
        (Takeoff, flies(Hold, 0.0, 3.5, None), true),
        (Takeoff, flies(Posctl, 0.0, 4.6, None), true),
        (Mode::Mission, flies(Hold, 39.0, 7.6, Some((3, 3))), false),
        (Mode::Mission, flies(Hold, 44.0, 7.6, Some((3, 3))), false),
        (Mode::Mission, flies(Hold, 44.0, 7.6, Some((2, 3))), true),
        (Mode::Mission, flies(Hold, 46.0, 7.6, Some((3, 3))), true),
        (Mode::Mission, flies(Hold, 39.0, 7.6, Some((2, 3))), false),
        (Mode::Mission, flies(Hold, 39.0, 7.6, None), false),
        (Mode::Mission, flies(Hold, 39.0, 7.6, Some((1, 3))), true),
        (Mode::Mission, flies(Hold, 30.0, 8.0, Some((2, 3))), true),
        (Mode::Mission, flies(Hold, 40.0, 3.0, Some((2, 3))), true),
        (ReturnToLaunch, flies(Land, 8.0, 12.0, None), false),
        (ReturnToLaunch, flies(Land, 30.0, 12.0, None), true),
        (ReturnToLaunch, flies(Hold, 0.0, 12.0, None), true),
        (Land, flies(Hold, 0.0, 12.0, None), true),
    ] {
        assert_eq!(
            foreign(own, &next),
            is_foreign,
            "{own:?}, then {:?} at {:?}",
            next.mode,
            next.place
        );
    }
}

/// Mode, armed, in the air.
type Heard = (Mode, bool, bool);

/// Each step requests a mode (`Some`) or none, then reports telemetry; `overridden` says whether a takeover
/// results.
fn check(story: &[(Option<Mode>, Heard)], overridden: bool) {
    let mut control = Control::default();
    control.observe(&report_of(Mode::Hold, true, true));
    let mut found = None;
    for (want, (mode, armed, in_air)) in story {
        if let Some(want) = want {
            control.want(*want);
        }
        found = found.or(control.observe(&report_of(*mode, *armed, *in_air)));
    }
    assert_eq!(found.is_some(), overridden, "{story:?}: {found:?}");
}

#[test]
fn a_mode_that_was_not_commanded_is_an_override() {
    use Mode::{Hold, Land, Mission, Offboard, Posctl, ReturnToLaunch, Takeoff};
    let fly = |mode| (mode, true, true);
    check(
        &[
            (Some(Offboard), fly(Hold)),
            (None, fly(Offboard)),
            (None, fly(Offboard)),
        ],
        false,
    );
    check(&[(Some(Offboard), fly(Offboard)), (None, fly(Posctl))], true);
    check(&[(Some(Offboard), fly(Hold)), (None, fly(Posctl))], true);
    check(&[(Some(Offboard), fly(Offboard)), (None, fly(Hold))], true);
    check(
        &[
            (Some(Offboard), fly(Offboard)),
            (Some(Hold), fly(Offboard)),
            (None, fly(Hold)),
        ],
        false,
    );
    check(
        &[
            (Some(Takeoff), fly(Takeoff)),
            (Some(Hold), fly(Hold)),
            (None, fly(ReturnToLaunch)),
        ],
        true,
    );
    check(
        &[(Some(Mission), fly(Mission)), (None, fly(ReturnToLaunch))],
        true,
    );
    check(
        &[
            (Some(Land), fly(Land)),
            (None, (Land, true, false)),
            (None, (Hold, false, false)),
        ],
        false,
    );
    check(
        &[(Some(ReturnToLaunch), fly(ReturnToLaunch)), (None, fly(Hold))],
        true,
    );
    check(&[(Some(Hold), fly(Hold)), (None, (Hold, false, true))], true);
    // A stop overtakes the start of offboard control, which the vehicle enters after all.
    let overtaken = [
        (Some(Offboard), fly(Hold)),
        (Some(Hold), fly(Hold)),
        (None, fly(Offboard)),
    ];
    check(&overtaken, false);
    check(&[&overtaken[..], &[(None, fly(Posctl))]].concat(), true);
    // Offboard control had begun before the stop and ended with it: another party began it again.
    check(
        &[
            (Some(Offboard), fly(Offboard)),
            (Some(Hold), fly(Hold)),
            (None, fly(Offboard)),
        ],
        true,
    );
    // We have commanded nothing yet: any mode is allowed.
    check(&[(None, fly(Posctl)), (None, fly(Mission))], false);
}

#[tokio::test(start_paused = true)]
async fn a_mode_is_not_judged_before_the_place_is_known() {
    let mut control = Control::default();
    control.store_target(&Command::TakeoffAltitude(5.0));
    control.want(Mode::Takeoff);
    control.observe(&flies(Mode::Takeoff, 0.0, 1.0, None));
    assert_eq!(control.observe(&report_of(Mode::Hold, true, true)), None);
    assert!(control.observe(&flies(Mode::Hold, 0.0, 2.0, None)).is_some());
}

/// A stop is sent, and then a report arrives that was made just before the stop took effect: of PX4's own landing
/// at the end of a return, or of a pilot.
#[tokio::test(start_paused = true)]
async fn a_change_that_crosses_a_command_is_judged_like_one_before_it() {
    for (shown, is_foreign) in [
        (flies(Mode::Land, 8.0, 12.0, None), false),
        (flies(Mode::Land, 30.0, 12.0, None), true),
        (flies(Mode::Posctl, 8.0, 12.0, None), true),
    ] {
        let mut control = Control::default();
        control.want(Mode::ReturnToLaunch);
        control.observe(&flies(Mode::ReturnToLaunch, 8.0, 12.0, None));
        control.want(Mode::Hold);
        let taken = control.observe(&shown);
        assert_eq!(taken.is_some(), is_foreign, "{:?}: {taken:?}", shown.mode);
        assert!(taken.is_none_or(|takeover| takeover.taken.how.contains("on its way")));
    }
}

#[test]
fn a_halt_ends_motion_and_an_emergency_ends_safe_calls_too() {
    let mut control = Control::default();
    let (motion, safe) = (control.right(false), control.right(true));
    control.withdraw(&EndReason::Halted, false);
    assert!(motion.is_withdrawn() && !safe.is_withdrawn());
    let taken = OverrideCause {
        how: "a pilot".into(),
        failsafe: false,
    };
    control.withdraw(&EndReason::Override(taken.clone()), true);
    assert_eq!(
        (motion.why(), safe.why()),
        (EndReason::Halted, EndReason::Override(taken))
    );
    assert!(control.holds(&control.right(false)) && control.holds(&control.right(true)));
}

#[test]
fn every_takeover_ends_the_calls_and_the_first_is_news_until_it_is_handed_back() {
    let mut control = Control::default();
    control.observe(&report_of(Mode::Hold, true, true));
    control.want(Mode::Offboard);
    control.observe(&report_of(Mode::Offboard, true, true));
    let taken = control.observe(&report_of(Mode::Posctl, true, true));
    assert!(taken.is_some_and(|taken| taken.first));
    assert!(control.observe(&report_of(Mode::Altctl, true, true)).is_none());
    // A safe call still runs, and the pilot takes over again.
    let safe = control.right(true);
    control.want(Mode::ReturnToLaunch);
    control.observe(&report_of(Mode::ReturnToLaunch, true, true));
    assert!(!safe.is_withdrawn());
    let again = control.observe(&report_of(Mode::Stabilized, true, true));
    assert!(again.is_some_and(|taken| !taken.first) && safe.is_withdrawn());
    assert!(
        control
            .overridden()
            .is_some_and(|taken| taken.how.contains("STABILIZED"))
    );
    control.hand_back();
    assert!(control.overridden().is_none());
    assert!(control.observe(&report_of(Mode::Posctl, true, true)).is_none());
}

/// The vehicle reports its mode many times a second, and several reports may have been heard before anything looks at them.
#[tokio::test(start_paused = true)]
async fn a_pilots_switch_is_noticed_also_where_later_reports_arrive_with_it() {
    use Mode::{Hold, Land, Manual, Offboard, Posctl};
    for (own, reports, is_foreign) in [
        (Hold, &[Hold, Posctl, Hold][..], true),
        (Hold, &[Posctl, Hold], true),
        (Offboard, &[Offboard, Manual, Hold, Offboard], true),
        (Hold, &[Posctl, Hold, Posctl], true),
        (Hold, &[Hold, Hold], false),
        // Another's switch to a mode that no pilot flies is found by the heartbeats.
        (Hold, &[Land, Hold], false),
    ] {
        let mut control = Control::default();
        control.want(own);
        let mut telemetry = flies(own, 0.0, 5.0, None);
        let report = |telemetry: &mut Telemetry, mode| {
            telemetry.hear_mode(ModeReport { mode, intended: mode }, Instant::now());
        };
        report(&mut telemetry, own);
        assert!(control.observe(&telemetry).is_none(), "{own:?}");
        for mode in reports {
            report(&mut telemetry, *mode);
        }
        assert_eq!(
            control.observe(&telemetry).is_some(),
            is_foreign,
            "{own:?}, then {reports:?}"
        );
        // It is one takeover, however often it is looked at.
        control.want(own);
        assert!(control.observe(&telemetry).is_none(), "{own:?}, then {reports:?}");
    }
}
