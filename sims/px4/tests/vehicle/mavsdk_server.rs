//! The published mavsdk_server accepts the simulated vehicle: flights of its own Python client at four times real time,
//! with each quirk on and off.
use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// The Python interpreter of `.venv-mavsdk`, or `None` where Python tests are disabled.
fn python() -> Option<&'static Path> {
    if std::env::var_os("OVOS_TOOLS_SKIP_PYTHON").is_some() {
        skip::skip(
            "python",
            "OVOS_TOOLS_SKIP_PYTHON is set, so mavsdk_server is not tried",
        );
        return None;
    }
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    Some(PYTHON.get_or_init(find))
}

fn find() -> PathBuf {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let venv = checkout.join(".venv-mavsdk");
    if !venv.join(".ready").exists() {
        let out = Command::new(checkout.join("scripts/venv.sh")).output().unwrap();
        assert!(
            out.status.success() && venv.join(".ready").exists(),
            "scripts/venv.sh: {}\nset OVOS_TOOLS_SKIP_PYTHON=1 to do without",
            String::from_utf8_lossy(&out.stderr)
        );
    }
    venv.join("bin/python")
}

/// The path of the server in the wheel.
fn server(python: &Path) -> String {
    let out = Command::new(python)
        .args([
            "-c",
            "import mavsdk_grpc, os; print(os.path.join(os.path.dirname(mavsdk_grpc.__file__), 'bin', 'mavsdk_server'))",
        ])
        .output()
        .unwrap();
    String::from_utf8(out.stdout).unwrap().trim().to_owned()
}

/// Without drift, for measurements to the centimetre; `tests/quirks.rs` tests the drift.
const STEADY: &str = "all,-hover_wanders,-home_moves_in_flight,-ground_drifts";

fn check(flight: &str, quirks: &str) {
    let quirks = &quirks.replacen("all", STEADY, 1);
    let Some(python) = python() else { return };
    let out = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/flights.py"))
        .args([env!("CARGO_BIN_EXE_px4-sim"), &server(python), flight, quirks])
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{flight} with {quirks}:\n{}\n{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
}

macro_rules! flights {
    ($($name:ident: $flight:literal $quirks:literal,)+) => {
        $(#[test]
        fn $name() {
            check($flight, $quirks);
        })+
    };
}

flights! {
    a_whole_flight: "whole_flight" "all",
    a_whole_flight_without_quirks: "whole_flight" "return_climbs",
    a_mission_needs_to_settle: "mission" "all",
    a_mission_starts_at_once: "mission" "all,-mission_needs_settling",
    a_fence_is_overshot: "fence" "all",
    a_fence_holds: "fence" "all,-fence_overshoot,-goto_outside_fence_acked",
    a_fence_without_home_is_ignored: "fence_without_home" "all",
    a_fence_without_home_is_refused: "fence_without_home" "all,-fence_without_home_ignored",
    a_takeoff_while_disarmed_does_nothing: "takeoff_while_disarmed" "all",
    a_takeoff_while_disarmed_is_denied: "takeoff_while_disarmed" "none",
    a_disarm_in_the_air_is_denied: "disarm_in_air" "all",
    a_disarm_in_the_air_is_obeyed: "disarm_in_air" "all,-disarm_in_air_denied",
    offboard_needs_a_setpoint: "offboard_without_a_setpoint" "all",
    arming_is_denied_after_boot: "arming_after_boot" "all",
    arming_works_at_once: "arming_after_boot" "none",
    why_it_does_not_arm_is_told: "arming_checks" "all",
    without_texts_why_it_does_not_arm_is_not_told: "arming_checks" "all,no_event_metadata",
    velocities_lag: "open_loop_velocity" "all",
    velocities_are_obeyed_at_once: "open_loop_velocity" "all,-sluggish_velocity,-slow_braking",
    a_camera_takes_photos_and_videos: "camera" "all",
    without_a_camera_there_are_none: "no_camera" "all",
    a_killed_server_ends_offboard_in_posctl: "server_killed" "all",
    a_killed_server_ends_offboard_in_hold: "server_killed" "all,-offboard_loss_posctl",
    a_dead_client_leaves_the_setpoint: "client_gone" "all",
    a_lost_link_comes_back: "link_lost" "all",
    the_heartbeat_watchdog_holds: "heartbeat_watchdog" "all",
    streams_are_slow: "slow_streams" "all",
    streams_are_fast: "slow_streams" "all,-slow_streams",
    the_pilot_takes_over: "pilot_override" "all",
    the_scene_is_seen_from_the_vehicle: "perception" "all",
    an_idle_simulator_ends_on_the_ground_only: "idle" "all",
}
