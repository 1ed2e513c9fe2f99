//! The HDMI input of Amlogic's chips.
//!
//! Amlogic kernels have the devices `/dev/vdin<n>` and report the received signal in `/sys/class/hdmirx/hdmirx0/info`:
//! one `Name: value` per line, among them `Hactive`, `Vactive`, `Interlace` and `Frame Rate` in hundredths of a frame
//! per second. Some write `1920x1080p60hz` instead.

use std::fs;
use std::path::PathBuf;

use super::v4l2::{Incoming, Signal};
use crate::config::Config;

/// The received signal; `None` without such a receiver.
pub(super) fn incoming(config: &Config) -> Option<Incoming> {
    let class = config.below_sysroot("/sys/class/hdmirx");
    let receiver = fs::read_dir(class)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .min()?;
    let info = fs::read_to_string(receiver.join("info")).ok()?;
    Some(match read(&info) {
        Some(signal) => Incoming::Signal(signal),
        None => Incoming::Nothing,
    })
}

/// The inputs, by number.
pub(super) fn inputs(config: &Config) -> Vec<(String, PathBuf)> {
    let Ok(entries) = fs::read_dir(config.below_sysroot("/dev")) else {
        return Vec::new();
    };
    let mut found: Vec<(String, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let number = name.strip_prefix("vdin")?;
            let is_number = !number.is_empty() && number.chars().all(|digit| digit.is_ascii_digit());
            is_number.then(|| (format!("/dev/{name}"), entry.path()))
        })
        .collect();
    found.sort();
    found
}

fn read(info: &str) -> Option<Signal> {
    let field = |name: &str| -> Option<u32> {
        let value = info.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.trim().eq_ignore_ascii_case(name).then(|| value.trim())
        })?;
        value
            .split(|letter: char| !letter.is_ascii_digit())
            .next()?
            .parse()
            .ok()
    };
    let (width, lines, rate) = (field("Hactive"), field("Vactive"), field("Frame Rate"));
    let (Some(width), Some(lines), Some(rate)) = (width, lines, rate) else {
        return mode(info);
    };
    if width == 0 || lines == 0 {
        return None;
    }
    let interlaced = field("Interlace").is_some_and(|interlaced| interlaced != 0);
    // For an interlaced signal it reports the lines of one field: 540 of 1080, at most 576.
    let height = if interlaced && lines <= 576 {
        lines * 2
    } else {
        lines
    };
    // Hundredths in current kernels, whole frames in old ones.
    let rate = if rate > 1000 {
        f64::from(rate) / 100.0
    } else {
        f64::from(rate)
    };
    Some(Signal {
        width,
        height,
        rate,
        interlaced,
    })
}

/// `1920x1080p60hz`.
fn mode(info: &str) -> Option<Signal> {
    info.split_whitespace().find_map(|word| {
        let word = word.to_ascii_lowercase();
        let (width, rest) = word.split_once('x')?;
        let scan = rest.find(['p', 'i'])?;
        let interlaced = rest[scan..].starts_with('i');
        let rate: String = rest[scan + 1..]
            .chars()
            .take_while(|digit| digit.is_ascii_digit() || *digit == '.')
            .collect();
        let (width, height) = (width.parse().ok()?, rest[..scan].parse().ok()?);
        (width > 0 && height > 0).then_some(())?;
        Some(Signal {
            width,
            height,
            rate: rate.parse().ok()?,
            interlaced,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn what_the_receiver_says_is_understood() {
        let kernel = |active: (u32, u32), interlace: u32, rate: u32| {
            format!(
                "HDMI info\n\nColor Space: 0-RGB\nDvi: 0\nInterlace: {interlace}\nHtotal: 2200\nHactive: {}\nVtotal: 1125\n\
                 Vactive: {}\nRepetition: 0\nColor Depth: 8\nFrame Rate: {rate}\nSkip frame: 0\n",
                active.0, active.1
            )
        };
        for (info, expected) in [
            (kernel((1920, 1080), 0, 6000), Some(("1080p60", 60.0))),
            (kernel((1920, 540), 1, 5994), Some(("1080i60", 59.94))),
            (kernel((720, 288), 1, 5000), Some(("576i50", 50.0))),
            (kernel((3840, 2160), 0, 2997), Some(("2160p30", 29.97))),
            (kernel((0, 0), 0, 0), None),
            ("1920x1080p60hz".to_owned(), Some(("1080p60", 60.0))),
            ("1280x720i50hz rgb".to_owned(), Some(("720i50", 50.0))),
            ("no signal".to_owned(), None),
            (String::new(), None),
        ] {
            let signal = read(&info);
            let found = signal.as_ref().map(|signal| (signal.short(), signal.rate));
            let found = found.as_ref().map(|(short, rate)| (short.as_str(), *rate));
            assert_eq!(found, expected, "{info}");
        }
    }
}
