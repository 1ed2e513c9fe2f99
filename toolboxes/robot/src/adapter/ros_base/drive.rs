//! Driving a base: as far as its odometry says, and into nothing that its scan shows.

use std::time::{Duration, Instant};

use super::base::{Outcome, RosBase};
use super::channels::ScanChannel;
use super::link::BaseLink;
use super::readings::SILENCE;
use super::readings::Trip;
use crate::action::Velocity;
use crate::adapter::remote::Link;
use crate::adapter::{ActionError, ActionOutput, Control};
use crate::step::Step;

/// How fast a base slows down before the end of its way, in m/s² and rad/s².
const BRAKING: (f64, f64) = (0.3, 1.5);
/// The slowest that it goes there, in m/s and rad/s.
const CREEPING: (f64, f64) = (0.03, 0.15);
/// This near to its end a way has ended, in metres and radians.
const NEAR: (f64, f64) = (0.01, 0.02);
/// A base that has gone less than a tenth of its way by then does not move.
const BEGINS: Duration = Duration::from_millis(1500);
/// How long a base is given to come to rest.
const RESTS: Duration = Duration::from_secs(1);

/// How far a drive goes: metres, or radians of a turn. A drive for a time has no such end.
fn way(step: &Step, velocity: &Velocity, duration: Duration) -> Option<f64> {
    let speed = velocity.x.hypot(velocity.y).max(velocity.turn.abs());
    matches!(step, Step::BaseMove { .. } | Step::BaseRotate(_)).then_some(speed * duration.as_secs_f64())
}

fn times(velocity: &Velocity, factor: f64) -> Velocity {
    Velocity {
        x: velocity.x * factor,
        y: velocity.y * factor,
        turn: velocity.turn * factor,
    }
}

/// What is nearer in the way than it may be, at this speed.
fn in_the_way(link: &BaseLink, scan: &ScanChannel, velocity: &Velocity, speed: f64) -> Option<String> {
    if velocity.x.hypot(velocity.y) < 1e-6 {
        return None;
    }
    let (age, seen) = match link.readings.scans.fresh() {
        Ok(Some(seen)) => seen,
        Ok(None) => {
            return Some(format!(
                "no scan on {} for {} s, and the base does not drive blind: check the scanner",
                scan.topic,
                SILENCE.as_secs()
            ));
        }
        Err(why) => return Some(format!("{}: {why}", scan.topic)),
    };
    // It has gone on since.
    let free = seen.free(velocity.y.atan2(velocity.x), scan.half_width)? - speed * age.as_secs_f64();
    (free <= scan.keep_free).then(|| {
        format!(
            "an obstacle is {:.2} m ahead, closer than {} m: the base has stopped",
            free.max(0.0),
            scan.keep_free
        )
    })
}

impl RosBase {
    /// Drives at a velocity: to the end of the way where the base measures it, for the time otherwise.
    pub(super) async fn drive(
        &self,
        step: &Step,
        (velocity, duration): (Velocity, Duration),
        control: &Control,
    ) -> Outcome {
        let link = self.remote.there(control).await?;
        let start = Instant::now();
        let mut trip = match (&self.config.odometry, link.readings.odometry.fresh()) {
            (Some(_), None) => return Err(self.remote.away(BaseLink::SILENT)),
            (_, here) => here.map(|here| Trip::new(here, velocity.x.hypot(velocity.y))),
        };
        let driven = self
            .follow(
                link,
                way(step, &velocity, duration),
                (velocity, duration),
                trip.as_mut(),
                control,
            )
            .await;
        // A stop is sent after a failure, too. If the action has lost the right to command, the halt sends the stop.
        let seconds = start.elapsed().as_secs_f64();
        let stopped = self.remote.stand(control).await;
        driven.and(stopped)?;
        let output = ActionOutput::new("the base moved").with("duration_s", (seconds * 10.0).round() / 10.0);
        let Some(mut trip) = trip else {
            return Ok(output.note("the robot does not measure its way: it drove for a time"));
        };
        let stands = Instant::now();
        loop {
            self.measure(link, &mut trip)?;
            // What was told before says nothing of how it stands.
            let is_told = trip.told_at() >= stands;
            if is_told && trip.is_at_rest() {
                break;
            }
            if stands.elapsed() >= RESTS {
                let says = match is_told {
                    false => "no odometry has arrived for a second: check that it stands still".to_owned(),
                    true => format!(
                        "its odometry says a second later that it still moves; stop it by its own button and check what else publishes {}",
                        self.config.velocity.topic
                    ),
                };
                return Err(self.trouble(format!("the base was told to stop, but {says}")));
            }
            control.sleep(BaseLink::AGAIN).await?;
        }
        let rounded = |value: f64, parts: f64| (value * parts).round() / parts + 0.0;
        let (metres, degrees) = (
            rounded(trip.metres(), 1000.0),
            rounded(trip.turned().to_degrees(), 10.0),
        );
        let message = match velocity.turn == 0.0 {
            true => format!("drove {metres:.2} m"),
            false => format!("turned {degrees:.0} degrees"),
        };
        Ok(ActionOutput { message, ..output }
            .with("distance_m", metres)
            .with("turned_degrees", degrees))
    }

    /// How far it has gone by now.
    fn measure(&self, link: &BaseLink, trip: &mut Trip) -> Result<(), ActionError> {
        let Some(now) = link.readings.odometry.fresh() else {
            return Ok(());
        };
        trip.at(now).map_err(|metres| {
            self.trouble(format!(
                "the odometry jumped by {metres:.1} m, so the distance driven is unknown: check that only one program publishes {}",
                self.config.odometry.as_deref().unwrap_or_default()
            ))
        })
    }

    async fn follow(
        &self,
        link: &BaseLink,
        way: Option<f64>,
        (velocity, duration): (Velocity, Duration),
        mut trip: Option<&mut Trip>,
        control: &Control,
    ) -> Result<(), ActionError> {
        let (turns, straight) = (velocity.turn != 0.0, velocity.x.hypot(velocity.y));
        let of = |pair: (f64, f64)| if turns { pair.1 } else { pair.0 };
        let full = straight.max(velocity.turn.abs()).max(1e-6);
        let measured = way.filter(|_| trip.is_some());
        let limit = match measured {
            // A base that slips, or brakes longer, may take longer; the plan allows it half as much again and 3 s.
            Some(_) => duration.mul_f64(1.5) + Duration::from_secs(2),
            None => duration,
        };
        let start = Instant::now();
        // The part of the velocity that it was told last.
        let mut share = 0.0;
        loop {
            if let Some(scan) = &self.config.scan
                && let Some(what) = in_the_way(link, scan, &velocity, straight * share)
            {
                return Err(self.trouble(what));
            }
            let passed = start.elapsed();
            let mut gone = None;
            if let Some(trip) = trip.as_mut() {
                self.measure(link, trip)?;
                let way = if turns { trip.turned().abs() } else { trip.metres() };
                if passed > BEGINS && way < 0.1 * full * passed.min(duration).as_secs_f64() {
                    return Err(self.trouble(format!(
                        "the base does not move: after {:.1} s its odometry says {}",
                        passed.as_secs_f64(),
                        shown(way, turns)
                    )));
                }
                gone = Some((way, full * share * trip.told_at().elapsed().as_secs_f64()));
            }
            let mut speed = full;
            let mut done = passed.as_secs_f64() / duration.as_secs_f64().max(1e-3);
            if let (Some(way), Some((gone, since))) = (measured, gone) {
                let left = way - gone;
                if left <= of(NEAR) {
                    return Ok(());
                }
                // What it has gone since it was measured is not measured, and slows it down all the same.
                speed = (2.0 * of(BRAKING) * (left - since).max(0.0))
                    .sqrt()
                    .clamp(of(CREEPING).min(full), full);
                done = gone / way;
            }
            if passed >= limit {
                return match measured.zip(gone) {
                    Some((way, (gone, _))) => Err(self.trouble(format!(
                        "after {:.1} s the odometry shows {} of {}",
                        passed.as_secs_f64(),
                        shown(gone, turns),
                        shown(way, turns)
                    ))),
                    None => Ok(()),
                };
            }
            share = speed / full;
            self.remote.tell(link, &times(&velocity, share), control).await?;
            control.progress(done.clamp(0.0, 1.0), "driving");
            control
                .sleep(BaseLink::AGAIN.min(limit.saturating_sub(passed)))
                .await?;
        }
    }
}

fn shown(way: f64, turns: bool) -> String {
    match turns {
        true => format!("{:.0} degrees", way.to_degrees()),
        false => format!("{way:.2} m"),
    }
}
