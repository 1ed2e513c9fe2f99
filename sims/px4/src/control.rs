//! The control channel: lets a test or a developer change the simulation without the autopilot, and read its true
//! state.
//!
//! One JSON object per line in, one per line out. Pure; [`crate::serve`] owns the socket. Start with [`Request`].

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    fence::{Area, Fence},
    geo::Ned,
    link::Link,
    log::Cause,
    mode::Mode,
    quirks::Quirk,
    vehicle::{Excursions, Health, Landed, Vehicle},
    world::Thing,
};

/// A request on the control channel.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "cmd", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Reads the true state.
    Truth {},
    /// Reads the log from sequence number `since` on: at most `limit` entries, optionally of one `kind`.
    Log {
        /// First sequence number.
        #[serde(default)]
        since: u64,
        /// Greatest number of entries.
        #[serde(default = "thousand")]
        limit: usize,
        /// One of the log's kinds: `setpoint`, `command`, `mode`, `armed`, `text`, `collision`, `param`.
        kind: Option<String>,
    },
    /// The pilot takes over with the remote control; the sticks are metres per second forward, right, down.
    Pilot {
        /// The mode that the pilot selects.
        mode: Mode,
        /// The sticks.
        #[serde(default)]
        sticks: Ned,
    },
    /// A ground station changes the mode.
    GroundStation {
        /// The new mode.
        mode: Mode,
    },
    /// The pilot's kill switch, or a disarm on the ground.
    Disarm {
        /// Whether it also disarms in the air.
        #[serde(default)]
        force: bool,
    },
    /// A failsafe of the autopilot.
    Failsafe {
        /// The mode that it selects.
        mode: Mode,
        /// Its status text.
        #[serde(default = "failsafe_text")]
        text: String,
    },
    /// Sets the battery's charge.
    SetBattery {
        /// Percent, 0 to 100.
        pct: f64,
    },
    /// Sets the battery's drain in flight.
    SetDrain {
        /// Percent per simulated second; 0 never empties it.
        pct_per_s: f64,
    },
    /// Sets the health of the sensors.
    SetHealth(Health),
    /// Stops the link in both directions.
    DropLink {
        /// Simulated seconds from now; 0 restores the link.
        seconds: f64,
    },
    /// Sets whether the camera does what it acknowledges.
    SetCamera {
        /// False: it acknowledges and does nothing.
        obeys: bool,
    },
    /// Another ground station uploads a fence: a circle around home.
    SetFence {
        /// Radius in metres.
        radius_m: f64,
    },
    /// Stops or resumes writing the scene file.
    FreezeScene {
        /// Whether the writing is stopped.
        frozen: bool,
    },
    /// Adds an object to the world.
    AddThing(Thing),
    /// Moves every object with this label.
    MoveThing {
        /// The label.
        label: String,
        /// Metres north of home.
        north_m: f64,
        /// Metres east of home.
        east_m: f64,
        /// Metres above the ground; unchanged if missing.
        up_m: Option<f64>,
    },
    /// Removes every object with this label.
    RemoveThing {
        /// The label.
        label: String,
    },
    /// Empties the world.
    ClearWorld {},
    /// Puts the vehicle at a position, at rest.
    Teleport {
        /// Metres north, east, down of home.
        place: Ned,
        /// Heading in degrees.
        #[serde(default)]
        yaw_deg: f64,
    },
    /// Switches a quirk on or off.
    SetQuirk {
        /// The quirk's name.
        name: String,
        /// Whether it is on.
        on: bool,
    },
    /// Sets the simulation's speed.
    SetSpeed {
        /// Simulated seconds per real second, 0.1 to 20.
        factor: f64,
    },
    /// Sets a parameter, as another ground station would.
    SetParam {
        /// The parameter's name.
        name: String,
        /// An integer value.
        value: i32,
    },
    /// Reboots the autopilot where it stands, as after a loss of power.
    Reboot {},
    /// Resets the excursions.
    ResetExcursions {},
    /// Ends the program.
    Quit {},
}

fn thousand() -> usize {
    1000
}

fn failsafe_text() -> String {
    "Failsafe activated".to_owned()
}

/// An effect of a request outside the vehicle and the link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Effect {
    /// Whether to stop writing the scene file.
    FreezeScene(bool),
    /// Simulated seconds per real second.
    Speed(f64),
    /// End the program.
    Quit,
}

/// The vehicle's true state.
#[derive(Debug, Clone, Serialize)]
pub struct Truth {
    /// Simulated seconds since the start.
    pub t: f64,
    /// Wall clock at the time of the request, seconds since 1970; 0 if the log has no clock.
    pub unix: f64,
    /// Metres north, east, down of home.
    pub position: Ned,
    /// Metres per second.
    pub velocity: Ned,
    /// Heading in degrees, -180 to 180.
    pub yaw_deg: f64,
    /// Latitude in degrees.
    pub lat: f64,
    /// Longitude in degrees.
    pub lon: f64,
    /// Metres above sea level.
    pub alt_m: f64,
    /// The autopilot's home position, metres north and east.
    pub launch: (f64, f64),
    /// Flight mode.
    pub mode: Mode,
    /// Whether the motors are armed.
    pub armed: bool,
    /// The landed state.
    pub landed: Landed,
    /// Battery charge in percent, 0 to 100.
    pub battery_pct: f64,
    /// Number of photos taken.
    pub photos: i32,
    /// Whether the camera is recording.
    pub recording: bool,
    /// Whether the autopilot has a valid fence.
    pub fence: bool,
    /// Extremes of the flight so far.
    pub excursions: Excursions,
    /// The sequence number of the next log entry.
    pub next_seq: u64,
}

impl Truth {
    /// The true state of a vehicle.
    #[must_use]
    pub fn of(vehicle: &Vehicle) -> Self {
        let (lat, lon, alt_m) = vehicle.global();
        let (fence, valid) = vehicle.fence();
        Self {
            t: vehicle.time(),
            unix: vehicle.log.unix,
            position: vehicle.body().position,
            velocity: vehicle.body().velocity,
            yaw_deg: vehicle.body().yaw.to_degrees(),
            lat,
            lon,
            alt_m,
            launch: vehicle.launch(),
            mode: vehicle.mode(),
            armed: vehicle.armed(),
            landed: vehicle.landed(),
            battery_pct: vehicle.battery_pct,
            photos: vehicle.payload.photos,
            recording: vehicle.payload.recording_since.is_some(),
            fence: valid && !fence.is_empty(),
            excursions: vehicle.excursions(),
            next_seq: vehicle.log.next_seq(),
        }
    }
}

/// Executes one line and returns `{"ok": true, ...}` or `{"ok": false, "error": ...}`.
pub fn answer(vehicle: &mut Vehicle, link: &mut Link, line: &str) -> (Value, Option<Effect>) {
    // By way of a `Value`: a build in which another crate switches `arbitrary_precision` on reads no fractions into a tagged enum.
    let request = serde_json::from_str::<Value>(line).and_then(serde_json::from_value);
    match request {
        Ok(request) => match run(vehicle, link, request) {
            Ok((value, effect)) => (value, effect),
            Err(error) => (json!({"ok": false, "error": error}), None),
        },
        Err(error) => (json!({"ok": false, "error": error.to_string()}), None),
    }
}

fn run(vehicle: &mut Vehicle, link: &mut Link, request: Request) -> Result<(Value, Option<Effect>), String> {
    let mut effect = None;
    let mut answer = json!({"ok": true});
    match request {
        Request::Truth {} => answer["truth"] = json!(Truth::of(vehicle)),
        Request::Log { since, limit, kind } => {
            let entries: Vec<Value> = vehicle.log.since(since).map(|entry| json!(entry)).collect();
            let wanted = |entry: &Value| kind.as_ref().is_none_or(|kind| entry["kind"] == kind.as_str());
            let entries: Vec<Value> = entries.into_iter().filter(wanted).take(limit).collect();
            answer["log"] = json!(entries);
            answer["next_seq"] = json!(vehicle.log.next_seq());
        }
        Request::Pilot { mode, sticks } => {
            vehicle.health.rc = true;
            vehicle.sticks = sticks;
            answer["ack"] = json!(vehicle.set_mode(mode, Cause::Pilot));
        }
        Request::GroundStation { mode } => {
            answer["ack"] = json!(vehicle.set_mode(mode, Cause::GroundStation))
        }
        Request::Disarm { force } => answer["ack"] = json!(vehicle.disarm(force, Cause::Pilot)),
        Request::Failsafe { mode, text } => vehicle.failsafe(mode, &text),
        Request::SetBattery { pct } => vehicle.battery_pct = within("pct", pct, 0.0, 100.0)?,
        Request::SetDrain { pct_per_s } => vehicle.drain = within("pct_per_s", pct_per_s, 0.0, 100.0)?,
        Request::SetHealth(health) => vehicle.health = health,
        Request::DropLink { seconds } => {
            link.silence_until(vehicle.time() + within("seconds", seconds, 0.0, 1e6)?)
        }
        Request::SetCamera { obeys } => vehicle.payload.obeys = obeys,
        Request::SetFence { radius_m } => {
            let radius = within("radius_m", radius_m, 0.0, 1e6)?;
            let centre = (0.0, 0.0);
            answer["ack"] = json!(vehicle.upload_fence(Fence {
                inside: vec![Area::Circle { centre, radius }],
                outside: Vec::new(),
            }));
        }
        Request::FreezeScene { frozen } => effect = Some(Effect::FreezeScene(frozen)),
        Request::AddThing(thing) => vehicle.world.things.push(thing),
        Request::MoveThing {
            label,
            north_m,
            east_m,
            up_m,
        } => {
            let mut moved = 0;
            for thing in vehicle
                .world
                .things
                .iter_mut()
                .filter(|thing| thing.label == label)
            {
                thing.north_m = north_m;
                thing.east_m = east_m;
                thing.up_m = up_m.unwrap_or(thing.up_m);
                moved += 1;
            }
            answer["moved"] = json!(moved);
        }
        Request::RemoveThing { label } => vehicle.world.things.retain(|thing| thing.label != label),
        Request::ClearWorld {} => vehicle.world.things.clear(),
        Request::Teleport { place, yaw_deg } => vehicle.teleport(place, yaw_deg.to_radians()),
        Request::SetQuirk { name, on } => {
            let quirk: Quirk = name
                .parse()
                .map_err(|error: crate::quirks::UnknownQuirk| error.to_string())?;
            vehicle.quirks.set(quirk, on);
        }
        Request::SetSpeed { factor } => effect = Some(Effect::Speed(within("factor", factor, 0.1, 20.0)?)),
        Request::SetParam { name, value } => vehicle
            .params
            .set(&name, crate::params::Param::Int(value))
            .map_err(|error| error.to_string())?,
        Request::Reboot {} => {
            vehicle.reboot();
            link.reboot();
        }
        Request::ResetExcursions {} => vehicle.reset_excursions(),
        Request::Quit {} => effect = Some(Effect::Quit),
    }
    Ok((answer, effect))
}

fn within(name: &str, value: f64, least: f64, most: f64) -> Result<f64, String> {
    if (least..=most).contains(&value) {
        Ok(value)
    } else {
        Err(format!("{name} is {value}, expected {least} to {most}"))
    }
}
