//! Health, battery, state and log, from the telemetry cache; the vehicle is not asked.

use ovos_toolbox_sdk::prelude::*;

use super::arguments::NoArgs;
use crate::answer::{Outcome, Reply};
use crate::geo::compass_deg;
use crate::guard::{self, Fence, Health, Mode, Row, refuse};
use crate::vehicle::{Call, Link};

/// The reason while a new connection has no health report yet.
const UNHEARD: &str = "the vehicle has not reported its health yet";
/// Greatest length of a log entry, characters.
const LOG_CHARS: usize = 2000;

pub(crate) async fn vehicle_health(call: &Call, _: &Row, _: NoArgs) -> Outcome {
    let (facts, telemetry) = (call.vehicle.facts(), call.vehicle.telemetry());
    let health = facts.health.unwrap_or_default();
    let texts: Vec<String> = telemetry
        .texts
        .iter()
        .rev()
        .take(5)
        .map(|text| format!("{}: {}", text.severity, text.text))
        .collect();
    let reply = match call.vehicle.link() {
        Link::Up if facts.link_ok => match facts.health.map(Health::missing) {
            Some(missing) if missing.is_empty() => Reply::done("everything is well"),
            Some(missing) => Reply::done(format!("not well: {}", missing.join(", "))),
            None => Reply::done(UNHEARD),
        },
        Link::Missing(why) => Reply::failed("not_installed", why),
        Link::Untrusted(why) => Reply::failed("not_trusted", why),
        Link::Connecting(why) | Link::Absent(why) | Link::Lost(why) => Reply::failed("link_down", why),
        Link::Up | Link::Asleep => Reply::failed("link_down", "there is no telemetry from the vehicle"),
    };
    let failed = |checks: guard::Checks| {
        if checks.passed {
            Vec::new()
        } else {
            checks.problems
        }
    };
    let mut why = facts
        .checks
        .clone()
        .filter(|_| facts.link_ok)
        .map_or(Vec::new(), failed);
    // Data from before a link loss does not describe the present.
    let now = |ok: bool| ok && facts.link_ok;
    if facts.link_ok && !health.armable && why.is_empty() {
        why = match facts.health.map(Health::missing) {
            None => vec![UNHEARD.to_string()],
            Some(missing) if missing == ["armable"] => {
                vec![format!(
                    "the vehicle has not said why; {}",
                    guard::circumstances(&facts)
                )]
            }
            Some(missing) => missing.iter().map(|name| format!("not well: {name}")).collect(),
        };
    }
    Ok(reply
        .with("px4_version", call.vehicle.version())
        .with("gps_ok", now(health.global && health.home))
        .with("ekf_ok", now(health.local))
        .with("imu_ok", now(health.gyro && health.accel))
        .with("magnetometer_ok", now(health.mag))
        .with("battery_pct", facts.battery_pct.filter(|_| facts.link_ok))
        .with("link_ok", facts.link_ok)
        .with(
            "flight_mode",
            facts.mode.filter(|_| facts.link_ok).map_or("UNKNOWN", Mode::name),
        )
        .with(
            "home_amsl_m",
            facts.home.map(|home| (home.amsl_m * 10.0).round() / 10.0),
        )
        .with("armable", now(health.armable))
        .with("why_not_armable", why)
        .with("status_text", texts))
}

pub(crate) async fn battery_status(call: &Call, _: &Row, _: NoArgs) -> Outcome {
    let Some(battery) = call.vehicle.battery() else {
        return refuse("no_battery_data", "the battery's charge is not known");
    };
    let finite = |value: f64| value.is_finite().then_some(value);
    Ok(Reply::done(format!("{:.0} %", battery.pct))
        .with("pct", finite(battery.pct))
        .with("voltage_v", finite(battery.voltage_v))
        .with("remaining_m", battery.remaining_s.map(|seconds| seconds / 60.0))
        .with("remaining_min", battery.remaining_s.map(|seconds| seconds / 60.0)))
}

pub(crate) async fn vehicle_state(call: &Call, _: &Row, _: NoArgs) -> Outcome {
    let mut reply = Reply::done("the state of the flight");
    if let Value::Object(state) = call.vehicle.state_object() {
        reply
            .fields
            .extend(state.into_iter().filter(|(key, _)| key != "vehicle"));
    }
    let facts = call.vehicle.facts();
    let round = |value: f64, digits: i32| (value * 10f64.powi(digits)).round() / 10f64.powi(digits);
    let position = facts.pose.map(|pose| {
        json!({
            "lat": round(pose.lat, 7),
            "lon": round(pose.lon, 7),
            "alt_m": round(pose.alt_m, 2),
            "heading_deg": compass_deg(pose.yaw_deg, 1),
            "speed_mps": round(pose.speed(), 2),
            "north_m": round(pose.ned[0], 2),
            "east_m": round(pose.ned[1], 2),
            "down_m": round(pose.ned[2], 2),
        })
    });
    let home = facts.home.map(|home| {
        let (lat, lon) = home.origin.global(home.north_m, home.east_m);
        json!({
            "lat": round(lat, 7),
            "lon": round(lon, 7),
            "north_m": round(home.north_m, 2),
            "east_m": round(home.east_m, 2),
            "down_m": round(home.down_m, 2),
            "amsl_m": round(home.amsl_m, 1),
        })
    });
    let fence = facts.home.map(|home| match &call.vehicle.config.fence {
        Fence::RadiusM(radius) => json!({
            "centre_m": home.centre.map(|metres| round(metres, 2)),
            "radius_m": radius,
            "corners_m": null,
        }),
        Fence::Polygon(corners) => json!({
            "centre_m": null,
            "radius_m": null,
            "corners_m": corners
                .iter()
                .map(|[lat, lon]| home.origin.local(*lat, *lon).map(|metres| round(metres, 2)))
                .collect::<Vec<_>>(),
        }),
    });
    Ok(reply
        .with("position", position)
        .with("home", home)
        .with("fence", fence))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogArgs {
    /// Urgency.
    level: Level,
    /// At most 2000 characters.
    text: String,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum Level {
    Info,
    Warn,
    Error,
}

pub(crate) async fn log(call: &Call, _: &Row, args: LogArgs) -> Outcome {
    // Control characters could forge another log line.
    let text: String = args
        .text
        .chars()
        .filter(|letter| !letter.is_control())
        .take(LOG_CHARS)
        .collect();
    if text.trim().is_empty() {
        return refuse("out_of_range", "text: there is nothing to write");
    }
    match args.level {
        Level::Info => tracing::info!(call_id = call.id, "{text}"),
        Level::Warn => tracing::warn!(call_id = call.id, "{text}"),
        Level::Error => tracing::error!(call_id = call.id, "{text}"),
    }
    call.vehicle.log.write(
        "log",
        || json!({"call_id": call.id, "level": args.level, "text": text}),
    );
    Ok(Reply::done("written"))
}
