//! Heights and headings of destinations.
//!
//! A destination is not clamped: a vehicle that goes somewhere else than it was told to surprises people. A height outside
//! the band is refused with the band, and a heading is taken modulo 360. Read [`height`].

use super::facts::Home;
use super::range::{HEIGHT, shown};
use super::refusal::{Refusal, refuse};
use crate::geo::wrap_deg;

/// The greatest number that is taken for a heading, degrees: ten turns.
const MOST_DEG: f64 = 3600.0;
/// Below this height of home above sea level, a height above sea level cannot be told from one above home, metres.
const NEAR_SEA_M: f64 = 10.0;

/// Checks that a destination's height above home is between `lowest` and `highest`.
///
/// # Errors
/// It is not; the message has the band, and the number to send where the height looks like one above sea level.
pub(crate) fn height(
    arg: &str,
    asked: f64,
    (lowest, highest): (f64, f64),
    home: Home,
) -> Result<f64, Refusal> {
    if !asked.is_finite() {
        return refuse("not_finite", format!("{arg}: expected a finite number"));
    }
    if inside(asked, lowest, highest) {
        return Ok(asked);
    }
    let (from, to) = within(lowest, highest);
    let expected = format!(
        "{arg} {}: expected {from:.1} to {to:.1} m above home",
        shown(asked)
    );
    let hint = above_sea(asked, (lowest, highest), home, "");
    match hint {
        Some(hint) => refuse("altitude_ceiling", format!("{expected}; {hint}")),
        None if asked < 0.0 => refuse("out_of_range", format!("{expected}; {HEIGHT}")),
        None if asked < lowest => refuse("altitude_floor", expected),
        None => refuse("altitude_ceiling", expected),
    }
}

/// Checks that a destination in metres down of the local origin is in the band of heights above home.
///
/// # Errors
/// Like [`height`].
pub(crate) fn down(asked: f64, (lowest, highest): (f64, f64), home: Home) -> Result<f64, Refusal> {
    let above = home.down_m - asked;
    if inside(above, lowest, highest) {
        return Ok(asked);
    }
    let (top, bottom) = within(home.down_m - highest, home.down_m - lowest);
    let expected = format!("down_m {}: expected {top:.1} to {bottom:.1}", shown(asked));
    // The number to send is down of the local origin, and the band is above home.
    let of_origin = (lowest - home.down_m, highest - home.down_m);
    match above_sea(asked.abs(), of_origin, home, "-") {
        Some(hint) => refuse("altitude_ceiling", format!("{expected}; {hint}")),
        None if above < 0.0 => refuse(
            "out_of_range",
            format!("{expected}: that is below home; down is negative in the air, -5 is about 5 m up"),
        ),
        None if above < lowest => refuse("altitude_floor", expected),
        None => refuse("altitude_ceiling", expected),
    }
}

/// Whether a height is in a band, to the millimetre: a sum of decimal numbers is not exact.
fn inside(height: f64, lowest: f64, highest: f64) -> bool {
    const EXACT_M: f64 = 0.001;
    (lowest - EXACT_M..=highest + EXACT_M).contains(&height)
}

/// The ends of a band with one digit behind the point, rounded to the side on which they still hold: each may be sent back.
pub(crate) fn within(lowest: f64, highest: f64) -> (f64, f64) {
    const EXACT: f64 = 1e-6;
    let (from, to) = ((lowest * 10.0 - EXACT).ceil(), (highest * 10.0 + EXACT).floor());
    // Without a sign before a zero.
    (from / 10.0 + 0.0, to / 10.0 + 0.0)
}

/// What to send instead of a height that makes sense above sea level and not above home; `sign` goes before it.
pub(crate) fn above_sea(asked: f64, (lowest, highest): (f64, f64), home: Home, sign: &str) -> Option<String> {
    let above = ((asked - home.amsl_m) * 10.0).round() / 10.0;
    let likely = home.amsl_m.abs() >= NEAR_SEA_M && above > 0.0 && (lowest..=highest).contains(&above);
    likely.then(|| {
        format!(
            "this looks like a height above sea level: home is at {:.0} m, send {sign}{above}",
            home.amsl_m
        )
    })
}

/// A compass heading above -180 and at most 180 degrees; any number of turns is taken off.
///
/// # Errors
/// It is not finite, or no heading.
pub(crate) fn heading(arg: &str, asked: f64) -> Result<f64, Refusal> {
    if !asked.is_finite() {
        return refuse("not_finite", format!("{arg}: expected a finite number"));
    }
    if asked.abs() > MOST_DEG {
        return refuse(
            "out_of_range",
            format!(
                "{arg} {}: expected a compass heading in degrees, such as 0 to 360 or -180 to 180",
                shown(asked)
            ),
        );
    }
    Ok(wrap_deg(asked))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geo::Origin;

    fn home(amsl_m: f64) -> Home {
        Home {
            origin: Origin { lat: 47.0, lon: 8.0 },
            north_m: 0.0,
            east_m: 0.0,
            down_m: 0.5,
            amsl_m,
            centre: [0.0; 2],
        }
    }

    const BAND: (f64, f64) = (1.3, 27.5);

    /// Each row: height of home above sea level, the height asked for, the code and a part of the message.
    #[test]
    fn heights_outside_the_band_are_refused_with_what_to_send() {
        for (amsl, value, code, part) in [
            (488.0, 2.5, "ok", ""),
            (488.0, 27.5, "ok", ""),
            (488.0, 495.0, "altitude_ceiling", "home is at 488 m, send 7"),
            (487.6, 495.0, "altitude_ceiling", "home is at 488 m, send 7.4"),
            (1655.0, 1660.0, "altitude_ceiling", "send 5"),
            (-430.0, -420.0, "altitude_ceiling", "home is at -430 m, send 10"),
            (488.0, 500.0, "altitude_ceiling", "send 12"),
            (
                488.0,
                600.0,
                "altitude_ceiling",
                "expected 1.3 to 27.5 m above home",
            ),
            (
                488.0,
                488.5,
                "altitude_ceiling",
                "expected 1.3 to 27.5 m above home",
            ),
            (488.0, 0.5, "altitude_floor", "expected 1.3 to 27.5 m above home"),
            (488.0, -7.0, "out_of_range", "positive above home"),
            (3.0, 30.0, "altitude_ceiling", "expected 1.3 to 27.5 m above home"),
            (488.0, 1e300, "altitude_ceiling", "1e300"),
            (488.0, -0.0, "altitude_floor", "expected 1.3 to 27.5 m above home"),
            (488.0, 1.3, "ok", ""),
            (488.0, 515.5, "altitude_ceiling", "send 27.5"),
            (
                488.0,
                515.6,
                "altitude_ceiling",
                "expected 1.3 to 27.5 m above home",
            ),
            (488.0, 489.3, "altitude_ceiling", "send 1.3"),
            (488.0, f64::NAN, "not_finite", ""),
            (488.0, f64::INFINITY, "not_finite", ""),
        ] {
            let found = height("alt_m", value, BAND, home(amsl));
            let (found_code, msg) = found.map_or_else(|r| (r.code, r.msg), |_| ("ok", String::new()));
            assert_eq!(found_code, code, "{value} over {amsl}: {msg}");
            assert!(msg.contains(part), "{value} over {amsl}: {msg}");
            let hints = msg.contains("sea level");
            assert_eq!(hints, part.contains("send"), "{value} over {amsl}: {msg}");
        }
    }

    #[test]
    fn a_place_in_metres_down_is_refused_alike() {
        for (value, code, part) in [
            (-5.0, "ok", ""),
            (-27.0, "ok", ""),
            (-28.0, "altitude_ceiling", "expected -27.0 to -0.8"),
            (-0.5, "altitude_floor", "expected -27.0 to -0.8"),
            (3.0, "out_of_range", "down is negative in the air"),
            (-495.0, "altitude_ceiling", "home is at 488 m, send -7"),
            (495.0, "altitude_ceiling", "send -7"),
            (1e300, "out_of_range", "1e300"),
        ] {
            let found = down(value, BAND, home(488.0));
            let (found_code, msg) = found.map_or_else(|r| (r.code, r.msg), |_| ("ok", String::new()));
            assert_eq!(found_code, code, "{value}: {msg}");
            assert!(msg.contains(part), "{value}: {msg}");
        }
    }

    /// What a refusal names is taken when it is sent back.
    #[test]
    fn the_ends_of_a_band_and_the_heights_that_are_proposed_are_in_it() {
        let number = |text: &str| text.trim_end_matches([',', ';']).parse::<f64>();
        let after = |msg: &str, word: &str| {
            let rest = msg.split(word).nth(1)?;
            number(rest.split_whitespace().next()?).ok()
        };
        for tenths in 0..50 {
            let part = f64::from(tenths) / 50.0;
            let band = (0.75 + part, 26.96 + part * 0.3);
            let home = Home {
                down_m: part * 3.0 - 1.5,
                ..home(488.0 + part)
            };
            for asked in [0.1, 60.0, 490.0, 495.03, 512.0, 516.2] {
                let msg = height("alt_m", asked, band, home).unwrap_err().msg;
                for sent in [
                    after(&msg, "expected "),
                    after(&msg, " to "),
                    after(&msg, "send "),
                ] {
                    let taken = sent.is_none_or(|sent| height("alt_m", sent, band, home).is_ok());
                    assert!(taken, "{band:?}: {msg}: {sent:?}");
                }
                let msg = down(-asked, band, home).map_or_else(|refusal| refusal.msg, |_| String::new());
                for sent in [
                    after(&msg, "expected "),
                    after(&msg, " to "),
                    after(&msg, "send "),
                ] {
                    let taken = sent.is_none_or(|sent| down(sent, band, home).is_ok());
                    assert!(taken, "{band:?}: {msg}: {sent:?}");
                }
            }
        }
    }

    #[test]
    fn headings_are_taken_modulo_a_turn_and_never_clamped() {
        for (value, expected) in [
            (0.0, Ok(0.0)),
            (90.0, Ok(90.0)),
            (187.3, Ok(-172.7)),
            (190.0, Ok(-170.0)),
            (270.0, Ok(-90.0)),
            (359.9, Ok(-0.1)),
            (360.0, Ok(0.0)),
            (-180.0, Ok(180.0)),
            (-200.0, Ok(160.0)),
            (720.0, Ok(0.0)),
            (720.5, Ok(0.5)),
            (-0.0, Ok(0.0)),
            (-359.5, Ok(0.5)),
            (540.0, Ok(180.0)),
            (3599.5, Ok(-0.5)),
            (1e9, Err("out_of_range")),
            (-3600.0, Ok(0.0)),
            (4000.0, Err("out_of_range")),
            (-1e300, Err("out_of_range")),
            (f64::NAN, Err("not_finite")),
            (f64::NEG_INFINITY, Err("not_finite")),
        ] {
            let found = heading("deg", value).map_err(|refusal| refusal.code);
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert!((found - expected).abs() < 1e-9, "{value}: {found}"),
                (found, expected) => assert_eq!(found, expected, "{value}"),
            }
        }
    }
}
