//! The control channel: what a test or a developer may do to the vehicle behind the autopilot's back, and the truth.
//!
//! A JSON object a line in, a JSON object a line out. Pure; [`crate::serve`] has the socket. Start with [`Request`].

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

/// What may be asked.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "cmd", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Where it really is.
    Truth {},
    /// What happened from sequence number `since` on; at most `limit` entries, `kind` picks one kind.
    Log {
        /// First sequence number.
        #[serde(default)]
        since: u64,
        /// At most so many.
        #[serde(default = "thousand")]
        limit: usize,
        /// One of the log's kinds: `setpoint`, `command`, `mode`, `armed`, `text`, `collision`, `param`.
        kind: Option<String>,
    },
    /// The pilot takes over with the remote control, with the sticks in metres per second forward, right, down.
    Pilot {
        /// The mode switch.
        mode: Mode,
        /// The sticks.
        #[serde(default)]
        sticks: Ned,
    },
    /// A ground station changes the mode.
    GroundStation {
        /// To.
        mode: Mode,
    },
    /// The pilot's kill switch, or a disarm on the ground.
    Disarm {
        /// In the air, too.
        #[serde(default)]
        force: bool,
    },
    /// The autopilot's own failsafe.
    Failsafe {
        /// What it does.
        mode: Mode,
        /// What it says.
        #[serde(default = "failsafe_text")]
        text: String,
    },
    /// Battery.
    SetBattery {
        /// 0 to 100.
        pct: f64,
    },
    /// Percent of the battery used in a simulated second of flight.
    SetDrain {
        /// 0 never empties it.
        pct_per_s: f64,
    },
    /// Sensors.
    SetHealth(Health),
    /// Neither hears nor says anything for so many simulated seconds.
    DropLink {
        /// From now; 0 ends it.
        seconds: f64,
    },
    /// Whether the camera does what it acknowledges.
    SetCamera {
        /// Off, it says yes and does nothing.
        obeys: bool,
    },
    /// Somebody else uploads a fence: a circle around home.
    SetFence {
        /// Metres.
        radius_m: f64,
    },
    /// The scene file is no longer written, or is again.
    FreezeScene {
        /// Which.
        frozen: bool,
    },
    /// Adds a thing to the world.
    AddThing(Thing),
    /// Moves every thing with this label.
    MoveThing {
        /// Which.
        label: String,
        /// Metres north of home.
        north_m: f64,
        /// Metres east of home.
        east_m: f64,
        /// Metres above the ground; none: as it is.
        up_m: Option<f64>,
    },
    /// Removes every thing with this label.
    RemoveThing {
        /// Which.
        label: String,
    },
    /// Empties the world.
    ClearWorld {},
    /// Puts the vehicle somewhere.
    Teleport {
        /// Metres north, east, down of home.
        place: Ned,
        /// Degrees.
        #[serde(default)]
        yaw_deg: f64,
    },
    /// Switches a quirk.
    SetQuirk {
        /// Its name.
        name: String,
        /// On or off.
        on: bool,
    },
    /// How many times faster than real time.
    SetSpeed {
        /// 0.1 to 20.
        factor: f64,
    },
    /// A parameter, as another ground station sets it.
    SetParam {
        /// Its name.
        name: String,
        /// A whole number.
        value: i32,
    },
    /// The autopilot boots anew where it stands, as after a loss of power.
    Reboot {},
    /// Starts the excursions anew.
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

/// What a request changes outside of the vehicle and the link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Effect {
    /// The scene file stands still.
    FreezeScene(bool),
    /// Time runs so many times faster than real time.
    Speed(f64),
    /// The end.
    Quit,
}

/// Where it really is.
#[derive(Debug, Clone, Serialize)]
pub struct Truth {
    /// Simulated seconds since the start.
    pub t: f64,
    /// Seconds since 1970 by the wall clock, when it was asked; 0 where nobody told the log.
    pub unix: f64,
    /// Metres north, east, down of home.
    pub position: Ned,
    /// Metres per second.
    pub velocity: Ned,
    /// Degrees, -180 to 180.
    pub yaw_deg: f64,
    /// Degrees.
    pub lat: f64,
    /// Degrees.
    pub lon: f64,
    /// Metres above the sea.
    pub alt_m: f64,
    /// The autopilot's home position, metres north and east.
    pub launch: (f64, f64),
    /// Flight mode.
    pub mode: Mode,
    /// Motors.
    pub armed: bool,
    /// On the ground or not.
    pub landed: Landed,
    /// 0 to 100.
    pub battery_pct: f64,
    /// Photos taken.
    pub photos: i32,
    /// Recording now.
    pub recording: bool,
    /// Whether the autopilot has a fence and obeys it.
    pub fence: bool,
    /// Farthest, highest, fastest.
    pub excursions: Excursions,
    /// Sequence number the next log entry gets.
    pub next_seq: u64,
}

impl Truth {
    /// The truth about a vehicle.
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

/// Carries out a line and answers it: `{"ok": true, ...}` or `{"ok": false, "error": ...}`.
pub fn answer(vehicle: &mut Vehicle, link: &mut Link, line: &str) -> (Value, Option<Effect>) {
    match serde_json::from_str(line) {
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
