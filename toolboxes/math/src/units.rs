//! Units, by their definitions in units of the SI.
//!
//! The names are those of OVOS's own toolbox. US volumes follow from the gallon of 231 cubic inches, the light-year
//! from the Julian year, the knot from the nautical mile; where OVOS rounds them, the results differ in the sixth
//! digit.

use crate::error::MathError;

type Category = (&'static str, &'static [(&'static str, f64)]);

const GALLON: f64 = 3.785_411_784;
const FOOT: f64 = 0.3048;
const POUND: f64 = 0.453_592_37;
const NAUTICAL_MILE: f64 = 1852.0;
const MILE: f64 = 1609.344;
const JULIAN_YEAR: f64 = 31_557_600.0;

/// Factors to m, kg, l, s, m/s, m² and bit.
const CATEGORIES: &[Category] = &[
    (
        "length",
        &[
            ("mm", 0.001),
            ("cm", 0.01),
            ("m", 1.0),
            ("km", 1000.0),
            ("in", 0.0254),
            ("inch", 0.0254),
            ("ft", FOOT),
            ("foot", FOOT),
            ("feet", FOOT),
            ("yd", 0.9144),
            ("yard", 0.9144),
            ("mi", MILE),
            ("mile", MILE),
            ("miles", MILE),
            ("nmi", NAUTICAL_MILE),
            ("ly", 299_792_458.0 * JULIAN_YEAR),
        ],
    ),
    (
        "mass",
        &[
            ("mg", 1e-6),
            ("g", 0.001),
            ("kg", 1.0),
            ("t", 1000.0),
            ("tonne", 1000.0),
            ("oz", POUND / 16.0),
            ("lb", POUND),
            ("lbs", POUND),
            ("pound", POUND),
            ("pounds", POUND),
            ("stone", 14.0 * POUND),
            ("ton", 2000.0 * POUND),
        ],
    ),
    (
        "volume",
        &[
            ("ml", 0.001),
            ("l", 1.0),
            ("litre", 1.0),
            ("liter", 1.0),
            ("cl", 0.01),
            ("dl", 0.1),
            ("m3", 1000.0),
            ("cm3", 0.001),
            ("mm3", 1e-6),
            ("tsp", GALLON / 768.0),
            ("tbsp", GALLON / 256.0),
            ("floz", GALLON / 128.0),
            ("cup", GALLON / 16.0),
            ("pt", GALLON / 8.0),
            ("pint", GALLON / 8.0),
            ("qt", GALLON / 4.0),
            ("quart", GALLON / 4.0),
            ("gal", GALLON),
            ("gallon", GALLON),
        ],
    ),
    (
        "time",
        &[
            ("ns", 1e-9),
            ("us", 1e-6),
            ("ms", 0.001),
            ("s", 1.0),
            ("sec", 1.0),
            ("second", 1.0),
            ("seconds", 1.0),
            ("min", 60.0),
            ("minute", 60.0),
            ("minutes", 60.0),
            ("h", 3600.0),
            ("hr", 3600.0),
            ("hour", 3600.0),
            ("hours", 3600.0),
            ("d", 86_400.0),
            ("day", 86_400.0),
            ("days", 86_400.0),
            ("week", 604_800.0),
            ("weeks", 604_800.0),
            ("year", JULIAN_YEAR),
            ("years", JULIAN_YEAR),
        ],
    ),
    (
        "speed",
        &[
            ("m/s", 1.0),
            ("mps", 1.0),
            ("km/h", 1.0 / 3.6),
            ("kph", 1.0 / 3.6),
            ("mph", MILE / 3600.0),
            ("knot", NAUTICAL_MILE / 3600.0),
            ("knots", NAUTICAL_MILE / 3600.0),
            ("ft/s", FOOT),
        ],
    ),
    (
        "area",
        &[
            ("mm2", 1e-6),
            ("cm2", 1e-4),
            ("m2", 1.0),
            ("km2", 1e6),
            ("ha", 1e4),
            ("hectare", 1e4),
            ("acre", 43_560.0 * FOOT * FOOT),
            ("ft2", FOOT * FOOT),
            ("sqft", FOOT * FOOT),
            ("yd2", 9.0 * FOOT * FOOT),
            ("mi2", MILE * MILE),
        ],
    ),
    (
        "data",
        &[
            ("bit", 1.0),
            ("byte", 8.0),
            ("b", 8.0),
            ("kb", 8e3),
            ("kib", 8192.0),
            ("mb", 8e6),
            ("mib", 8_388_608.0),
            ("gb", 8e9),
            ("gib", 8_589_934_592.0),
            ("tb", 8e12),
            ("tib", 8_796_093_022_208.0),
            ("pb", 8e15),
        ],
    ),
];

/// Converts a value; the category says what was measured.
pub(crate) fn convert(value: f64, from: &str, to: &str) -> Result<(f64, &'static str), MathError> {
    let (from, to) = (Unit::named(from)?, Unit::named(to)?);
    if from.category != to.category {
        return Err(MathError::IncompatibleUnits {
            from: from.name,
            from_category: from.category,
            to: to.name,
            to_category: to.category,
        });
    }
    let converted = match (from.scale, to.scale) {
        (Scale::Factor(from), Scale::Factor(to)) => value * from / to,
        (from, to) => to.of_celsius(from.to_celsius(value)),
    };
    Ok((converted, from.category))
}

struct Unit {
    name: String,
    category: &'static str,
    scale: Scale,
}

#[derive(Clone, Copy)]
enum Scale {
    Factor(f64),
    Celsius,
    Fahrenheit,
    Kelvin,
}

impl Scale {
    fn to_celsius(self, value: f64) -> f64 {
        match self {
            Self::Fahrenheit => (value - 32.0) * 5.0 / 9.0,
            Self::Kelvin => value - 273.15,
            Self::Celsius | Self::Factor(_) => value,
        }
    }

    fn of_celsius(self, celsius: f64) -> f64 {
        match self {
            Self::Fahrenheit => celsius * 9.0 / 5.0 + 32.0,
            Self::Kelvin => celsius + 273.15,
            Self::Celsius | Self::Factor(_) => celsius,
        }
    }
}

impl Unit {
    fn named(unit: &str) -> Result<Self, MathError> {
        let name = unit.trim().to_lowercase();
        let temperature = match name.as_str() {
            "c" | "celsius" | "°c" => Some(Scale::Celsius),
            "f" | "fahrenheit" | "°f" => Some(Scale::Fahrenheit),
            "k" | "kelvin" => Some(Scale::Kelvin),
            _ => None,
        };
        if let Some(scale) = temperature {
            return Ok(Self {
                name,
                category: "temperature",
                scale,
            });
        }
        for (category, units) in CATEGORIES {
            if let Some((_, factor)) = units.iter().find(|(known, _)| *known == name) {
                return Ok(Self {
                    name,
                    category,
                    scale: Scale::Factor(*factor),
                });
            }
        }
        let mut units_known: Vec<&str> = CATEGORIES
            .iter()
            .flat_map(|(_, units)| units.iter().map(|(name, _)| *name))
            .collect();
        units_known.extend(["celsius", "fahrenheit", "kelvin"]);
        units_known.sort_unstable();
        Err(MathError::UnknownUnit {
            unit: unit.chars().take(40).collect(),
            known: units_known.join(", "),
        })
    }
}
