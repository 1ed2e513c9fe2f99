//! The addresses of the page: for this machine, and for a phone, to which a code in the terminal leads.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use config::ConsoleDoor;
use qrcode::render::unicode::Dense1x2;
use qrcode::types::QrError;
use qrcode::{EcLevel, QrCode};

use crate::gate;

/// What a phone needs that has no way to the page.
pub(crate) const NO_WAY: &str = "a phone does not reach the page, which listens on this machine only: set service.doors.console.address to \
                                 \"0.0.0.0:8770\" in mycroft.conf, and start the console again";

/// The address of the page, of which `bound` is the socket.
pub(crate) fn url(config: &ConsoleDoor, bound: SocketAddr) -> String {
    if bound.ip().is_loopback() {
        return format!("http://{bound}/");
    }
    phone_url(config, bound).unwrap_or_default()
}

/// The address for other devices: the first of the names, else that of this machine in its network. `None` if there is neither a name
/// nor such an address.
pub(crate) fn phone_url(config: &ConsoleDoor, bound: SocketAddr) -> Option<String> {
    let (port, local) = (bound.port(), bound.ip().is_loopback());
    match config.hosts.iter().find_map(|host| gate::named(host)) {
        // A proxy has a port of its own.
        Some(host) if local || host.port().is_some() => Some(format!("https://{host}/")),
        Some(host) => Some(format!("https://{host}:{port}/")),
        None if local => None,
        None => Some(format!("https://{}/", SocketAddr::new(own_address(bound), port))),
    }
}

/// The address of this machine that others reach where the page listens at `bound`.
pub(crate) fn own_address(bound: SocketAddr) -> IpAddr {
    if !bound.ip().is_unspecified() {
        return bound.ip();
    }
    // Nothing is sent: the kernel only chooses the interface. The addresses are ones for documentation.
    let (from, to) = match bound {
        SocketAddr::V4(_) => ("0.0.0.0:0", "192.0.2.1:9"),
        SocketAddr::V6(_) => ("[::]:0", "[2001:db8::1]:9"),
    };
    let chosen = UdpSocket::bind(from).and_then(|socket| {
        socket.connect(to)?;
        socket.local_addr()
    });
    // Without a network there is only this machine.
    chosen.map_or(IpAddr::from([127, 0, 0, 1]), |address| address.ip())
}

/// A text as a code that the camera of a phone reads, of characters; black on white where `colours` can be shown.
pub(crate) fn code(text: &str, colours: bool) -> Result<String, QrError> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L)?;
    let drawn = code.render::<Dense1x2>().build();
    if !colours {
        return Ok(drawn + "\n");
    }
    // Many readers want dark on light, whatever the terminal's own colours are.
    Ok(drawn
        .lines()
        .map(|line| format!("\x1b[38;5;16;48;5;231m{line}\x1b[0m\n"))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::door_in;

    #[test]
    fn a_phone_is_led_to_a_name_or_to_this_machine_in_its_network() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = door_in(folder.path());
        for (bound, hosts, here, phone) in [
            ("127.0.0.1:8770", &[][..], "http://127.0.0.1:8770/", None),
            (
                "127.0.0.1:8770",
                &["robot.test"],
                "http://127.0.0.1:8770/",
                Some("https://robot.test/"),
            ),
            (
                "[::1]:1",
                &["robot.test:444"],
                "http://[::1]:1/",
                Some("https://robot.test:444/"),
            ),
            (
                "192.0.2.7:8770",
                &[],
                "https://192.0.2.7:8770/",
                Some("https://192.0.2.7:8770/"),
            ),
            (
                "0.0.0.0:8770",
                &["robot.local"],
                "https://robot.local:8770/",
                Some("https://robot.local:8770/"),
            ),
            (
                "0.0.0.0:1",
                &["robot.local:2"],
                "https://robot.local:2/",
                Some("https://robot.local:2/"),
            ),
            (
                "[::]:1",
                &["[fd00::5]"],
                "https://[fd00::5]:1/",
                Some("https://[fd00::5]:1/"),
            ),
            (
                "[::]:1",
                &["fd00::5"],
                "https://[fd00::5]:1/",
                Some("https://[fd00::5]:1/"),
            ),
        ] {
            config.hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
            let bound = bound.parse().unwrap();
            assert_eq!(url(&config, bound), here, "{bound} {hosts:?}");
            assert_eq!(phone_url(&config, bound).as_deref(), phone, "{bound} {hosts:?}");
        }
        assert!(!own_address("0.0.0.0:1".parse().unwrap()).is_unspecified());
    }

    /// The dots of the characters, read as the camera of a phone reads them.
    fn read(code: &str) -> String {
        let rows: Vec<Vec<bool>> = code
            .lines()
            .flat_map(|line| {
                let half = |upper: bool| {
                    let dots = line.chars().map(move |letter| match letter {
                        '█' => true,
                        '▀' => upper,
                        '▄' => !upper,
                        _ => false,
                    });
                    dots.collect::<Vec<_>>()
                };
                [half(true), half(false)]
            })
            .collect();
        let scale = 4;
        let (width, height) = (rows[0].len() * scale, rows.len() * scale);
        let mut picture = rqrr::PreparedImage::prepare_from_greyscale(width, height, |x, y| {
            if rows[y / scale][x / scale] { 0 } else { 255 }
        });
        let grids = picture.detect_grids();
        grids[0].decode().unwrap().1
    }

    #[test]
    fn the_code_in_the_terminal_is_the_address_with_the_token() {
        let url = format!(
            "https://192.168.178.123:8770/#token={}",
            "0123456789abcdef".repeat(4)
        );
        assert_eq!(read(&code(&url, false).unwrap()), url);
        let drawn = code(&url, true).unwrap();
        assert!(drawn.lines().count() <= 27, "{drawn}");
        assert!(
            drawn
                .lines()
                .all(|line| line.starts_with("\x1b[") && line.ends_with("\x1b[0m"))
        );
    }
}
