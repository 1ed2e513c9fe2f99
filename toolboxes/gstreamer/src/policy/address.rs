//! Parses addresses such as `srt://127.0.0.1:5000?mode=listener`.
//!
//! Strict; decides nothing. Pure. Read [`Address`].

use super::network::authority;

/// The target of an address.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// The address contains the data itself.
    Inline,
    File(String),
    Device(String),
    Remote {
        host: String,
        port: Option<u16>,
    },
}

/// Whether a text is an address rather than a path.
pub(super) fn is_address(text: &str) -> bool {
    let scheme = |scheme: &str| {
        !scheme.is_empty()
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte))
            && scheme.as_bytes()[0].is_ascii_alphabetic()
    };
    text.split_once(':').is_some_and(|(name, rest)| {
        scheme(name)
            && (rest.starts_with("//")
                || name.eq_ignore_ascii_case("file")
                || name.eq_ignore_ascii_case("data"))
    })
}

/// Parses an address.
pub(super) fn read(text: &str) -> Result<Address, String> {
    let unclear = || format!("the address {text:?} is not understood");
    let (scheme, rest) = text.split_once(':').ok_or_else(unclear)?;
    let scheme = scheme.to_ascii_lowercase();
    if scheme == "data" {
        return Ok(Address::Inline);
    }
    if scheme.ends_with("sdp") {
        return Err(format!(
            "the address {text:?} holds a description of a session, which names hosts of its own"
        ));
    }
    let rest = without_live(&scheme, rest);
    if rest.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(format!(
            "the address {text:?} has spaces, behind which options can hide"
        ));
    }
    if scheme == "file" {
        let path = rest.strip_prefix("//").map_or(rest, |rest| {
            // file://localhost/path and file:///path are the same.
            rest.strip_prefix("localhost")
                .filter(|path| path.starts_with('/'))
                .unwrap_or(rest)
        });
        if !path.starts_with('/') {
            return Err(unclear());
        }
        // Elements differ in whether a ? ends the path, so neither is allowed.
        if path.contains(['?', '#']) {
            return Err(format!("the address {text:?} has a ? or #; write %3F or %23"));
        }
        return Ok(Address::File(decode(path).ok_or_else(unclear)?));
    }
    let rest = rest
        .strip_prefix("//")
        .or_else(|| rest.strip_prefix("://"))
        .or_else(|| {
            // stun:host and turn:host have no slashes.
            (scheme.starts_with("stun") || scheme.starts_with("turn")).then_some(rest)
        });
    let rest = rest.ok_or_else(unclear)?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (place, tail) = rest.split_at(end);
    let path = &tail[..tail.find(['?', '#']).unwrap_or(tail.len())];
    if place.is_empty() && path.len() > 1 {
        let path = decode(path).ok_or_else(unclear)?;
        return Ok(if path.starts_with("/dev/") {
            Address::Device(path)
        } else {
            Address::File(path)
        });
    }
    // Elements interpret a fragment in different ways, but a server's they leave to it.
    if tail.contains('#') && !scheme.starts_with("http") {
        return Err(format!("the address {text:?} has a #; write %23"));
    }
    let (host, port) = authority(place).ok_or_else(unclear)?;
    Ok(Address::Remote { host, port })
}

/// Removes ` live=1`, the one RTMP option in common use.
fn without_live<'a>(scheme: &str, rest: &'a str) -> &'a str {
    if !scheme.starts_with("rtmp") {
        return rest;
    }
    rest.strip_suffix(" live=1")
        .or_else(|| rest.strip_suffix(" live=0"))
        .unwrap_or(rest)
}

/// Decodes percent-encoding; `None` if it is invalid or encodes a zero byte.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        if *first == b'%' {
            let digits = after.get(..2)?;
            let code = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
            bytes.push(code);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    let text = String::from_utf8(bytes).ok()?;
    (!text.contains('\0')).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::{Address, is_address, read};

    #[test]
    fn addresses_are_read_strictly() {
        let file = |path: &str| Ok(Address::File(path.to_owned()));
        let remote = |host: &str, port| {
            Ok(Address::Remote {
                host: host.to_owned(),
                port,
            })
        };
        for (text, expected) in [
            ("file:///etc/passwd", file("/etc/passwd")),
            ("FILE:/etc/passwd", file("/etc/passwd")),
            ("file://localhost/a%20b", file("/a b")),
            ("file:///rec/%2e%2e/x", file("/rec/../x")),
            (
                "v4l2:///dev/video0",
                Ok(Address::Device("/dev/video0".to_owned())),
            ),
            ("data:text/plain,x", Ok(Address::Inline)),
            ("srt://:5000?mode=listener", remote("", Some(5000))),
            (
                "rtp://127.0.0.1:5000?address=10.0.0.1",
                remote("127.0.0.1", Some(5000)),
            ),
            ("rtmp://host/app/key live=1", remote("host", None)),
            ("http://user:pw@host/x?url=http://other", remote("host", None)),
            ("http://host/page#part", remote("host", None)),
            ("stun://host:3478", remote("host", Some(3478))),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
        for text in [
            "rtmp://host/app socks=evil:1",
            "http://good@evil@host/",
            "http://host\\@evil/",
            "ges:+clip /etc/passwd",
            "file://other/etc/passwd",
            "file:///rec/a?/../../etc/passwd",
            "file:///a%00b",
            "file:///a%zz",
            "fd",
            "see:http://evil",
            "rtsp-sdp://127.0.0.1/x",
            "RTSPS-SDP://127.0.0.1/#v=0&m=video+9+RTP/AVP+96",
            "srt://127.0.0.1:5000#localaddress=0.0.0.0",
        ] {
            assert!(read(text).is_err(), "{text}: {:?}", read(text));
        }
        assert!(
            is_address("file:/x") && is_address("srt://x") && !is_address("hw:0,0") && !is_address("/a:b")
        );
    }
}
