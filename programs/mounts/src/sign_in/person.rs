//! What is shown to the person who signs in, and opened for it. Issuers are chosen by servers: what they write is checked first.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use url::{Host, Url};

/// How long a person may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(600);

/// The longest address of a page, and the longest code, that are shown.
const LONGEST_PAGE: usize = 8 << 10;
const LONGEST_CODE: usize = 64;

/// The browser of this machine, if it has one.
pub(super) fn browser() -> Option<OsString> {
    let named = std::env::var_os("BROWSER").filter(|browser| !browser.is_empty());
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some());
    named.or_else(|| has_screen.then(|| "xdg-open".into()))
}

/// A page of an issuer, which can be shown: plain ASCII, on the web.
#[derive(Debug)]
pub(super) struct Page(Url);

impl Page {
    /// Reads the address of a page.
    ///
    /// # Errors
    /// It is none of the web.
    pub(super) fn read(address: &str) -> Result<Self, String> {
        let page = Url::parse(address).ok().filter(|page| {
            let is_of_web = matches!(page.scheme(), "http" | "https") && page.has_host();
            // A name before the host looks like the host.
            let is_plain = page.username().is_empty() && page.password().is_none();
            is_of_web && is_plain && page.as_str().len() <= LONGEST_PAGE
        });
        page.map(Self).ok_or_else(|| {
            format!("the issuer's page for signing in is refused: expected an http or https URL without a user name, of at most {LONGEST_PAGE} bytes")
        })
    }

    pub(super) fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether nobody between can have changed what it shows.
    fn is_sealed(&self) -> bool {
        let is_here = match self.0.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        self.0.scheme() == "https" || is_here
    }

    /// Opens it in the browser of this machine, if it has one and the page comes over https or from this machine. The browser does not get
    /// the variable `secret` of the environment.
    pub(super) fn open(&self, secret: Option<&str>) {
        let Some(browser) = browser().filter(|_| self.is_sealed()) else {
            return;
        };
        let mut command = Command::new(browser);
        command
            .arg(self.as_str())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some(secret) = secret {
            command.env_remove(secret);
        }
        // The address is in the terminal, too.
        _ = command.spawn();
    }
}

/// The code of an issuer, which a person types.
///
/// # Errors
/// It cannot be typed.
pub(super) fn read_code(code: &str) -> Result<&str, String> {
    let is_typed = code.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    let is_code = is_typed && !code.trim().is_empty() && code.len() <= LONGEST_CODE;
    is_code.then_some(code).ok_or_else(|| {
        format!(
            "the issuer's device code is refused: expected at most {LONGEST_CODE} printable ASCII characters"
        )
    })
}

/// A text of others as part of one line.
pub(super) fn in_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// Tells the person something.
pub(super) fn say(text: &str) {
    // Without a terminal it goes on all the same.
    _ = io::stdout().write_all(text.as_bytes());
    _ = io::stdout().flush();
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics and prints")]

    use super::*;

    #[test]
    fn what_an_issuer_writes_is_opened_over_https_and_shown_in_ascii() {
        for (address, shown, is_opened) in [
            (
                "https://a.test/device?code=A B",
                Some("https://a.test/device?code=A%20B"),
                true,
            ),
            ("http://localhost:8080/d", Some("http://localhost:8080/d"), true),
            ("http://127.9.0.1/d", Some("http://127.9.0.1/d"), true),
            ("http://[::1]/d", Some("http://[::1]/d"), true),
            // An issuer of the home without https: a person may open it.
            ("http://192.168.1.5/d", Some("http://192.168.1.5/d"), false),
            (
                "http://localhost.a.test/d",
                Some("http://localhost.a.test/d"),
                false,
            ),
            (
                "https://a.test/\u{1b}[2J\u{7}é",
                Some("https://a.test/%1B[2J%07%C3%A9"),
                true,
            ),
            ("https://bü.test/", Some("https://xn--b-eha.test/"), true),
            ("https://good.test@evil.test/", None, false),
            ("file:///etc/passwd", None, false),
            ("javascript:alert(1)", None, false),
            ("-psn", None, false),
            ("/device", None, false),
            ("", None, false),
        ] {
            let page = Page::read(address).ok();
            assert_eq!(page.as_ref().map(Page::as_str), shown, "{address}");
            assert_eq!(page.is_some_and(|page| page.is_sealed()), is_opened, "{address}");
        }
        assert!(Page::read(&format!("https://a.test/{}", "x".repeat(LONGEST_PAGE))).is_err());
        for (code, is_shown) in [
            ("WDJB-MJHT", true),
            ("123 456", true),
            (&"x".repeat(64), true),
            (&"x".repeat(65), false),
            ("A\u{1b}]0;x\u{7}", false),
            ("A\nSigned in", false),
            ("é", false),
            (" ", false),
            ("", false),
        ] {
            assert_eq!(read_code(code).is_ok(), is_shown, "{code:?}");
        }
        assert_eq!(in_line("a\n\u{1b}[2Jb"), "a  [2Jb");
    }
}
