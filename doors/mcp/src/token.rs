//! The token in the header of a request over HTTP.

use door::Token;
use http::HeaderValue;

/// Whether an `Authorization` header has the token.
pub(crate) fn is_shown(token: &Token, header: Option<&HeaderValue>) -> bool {
    let shown = header.and_then(|value| value.to_str().ok()?.split_once(' '));
    shown.is_some_and(|(scheme, text)| scheme.eq_ignore_ascii_case("bearer") && token.is(text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bearer_with_the_token_shows_it() {
        let token = Token::of("0123456789abcdef");
        for (shown, right) in [
            ("Bearer 0123456789abcdef", true),
            ("bearer  0123456789abcdef", true),
            ("Basic 0123456789abcdef", false),
            ("Bearer 0123456789abcdefx", false),
            ("0123456789abcdef", false),
        ] {
            let header = HeaderValue::from_str(shown).expect("a header");
            assert_eq!(is_shown(&token, Some(&header)), right, "{shown}");
        }
        assert!(!is_shown(&token, None));
    }
}
