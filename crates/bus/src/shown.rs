//! Addresses as they may be shown.

use url::Url;

/// Returns an address without its password: texts with it go to logs, answers and terminals.
#[must_use]
pub fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // Only an address that cannot have a password refuses one.
    if url.password().is_some() && url.set_password(Some("hidden")).is_err() {
        return url.scheme().to_owned();
    }
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        for (url, expected) in [
            ("ws://127.0.0.1:8181/core", "ws://127.0.0.1:8181/core"),
            ("wss://me@bus:1/core", "wss://me@bus:1/core"),
            ("wss://me:pw@bus/core", "wss://me:hidden@bus/core"),
            ("ws://:p%40w@[::1]:1/", "ws://:hidden@[::1]:1/"),
        ] {
            assert_eq!(shown(&Url::parse(url).expect(url)), expected);
        }
    }
}
