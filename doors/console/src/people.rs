//! Who is signed in: an operator, or a viewer. A token is traded for a cookie, which is made of the token, so that it outlives a
//! restart of the console, and ends when the file of the token goes.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, COOKIE};
use config::ConsoleDoor;
use door::{Token, TokenError};
use parking_lot::Mutex;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// The name of the cookie.
const NAME: &str = "ovos-tools-console";

/// How many wrong tokens of one address, and of all, are looked at in a time; further tokens are not looked at.
const WRONG: usize = 5;
const WRONG_IN_ALL: usize = 100;
const WITHIN: Duration = Duration::from_secs(60);

/// What a person may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// Looks, calls tools that read, and stops.
    Viewer,
    /// Also calls other tools, approves, and lifts a stop.
    Operator,
}

/// Those who may sign in.
pub(crate) struct People {
    tokens: [(Role, String); 2],
    wrong: Mutex<Vec<(IpAddr, Instant)>>,
}

/// Why a token opens nothing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotSignedIn {
    /// It is none of the tokens.
    Wrong,
    /// There were too many wrong ones.
    Wait,
}

impl People {
    /// Reads the tokens, and makes those that are missing.
    pub(crate) fn of(door: &ConsoleDoor) -> Result<Self, TokenError> {
        let operator = Token::of_file(&door.token_file, "service.doors.console.token_file")?;
        let viewer = Token::of_file(&door.viewer_token_file, "service.doors.console.viewer_token_file")?;
        Ok(Self {
            tokens: [(Role::Operator, operator.text), (Role::Viewer, viewer.text)],
            wrong: Mutex::default(),
        })
    }

    /// The token of a role, for the person at the terminal.
    pub(crate) fn token(&self, role: Role) -> &str {
        let found = self.tokens.iter().find(|(of, _)| *of == role);
        found.map_or("", |(_, token)| token)
    }

    /// Trades a token for its role and the cookie.
    pub(crate) fn sign_in(
        &self,
        shown: &str,
        from: IpAddr,
        now: Instant,
    ) -> Result<(Role, String), NotSignedIn> {
        let mut wrong = self.wrong.lock();
        wrong.retain(|(_, at)| now.duration_since(*at) < WITHIN);
        let own = wrong.iter().filter(|(by, _)| *by == from).count();
        if own >= WRONG || wrong.len() >= WRONG_IN_ALL {
            return Err(NotSignedIn::Wait);
        }
        match self.role_of(shown) {
            Some((role, token)) => Ok((
                role,
                format!(
                    "{NAME}={}; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000",
                    secret(token)
                ),
            )),
            None => {
                wrong.push((from, now));
                Err(NotSignedIn::Wrong)
            }
        }
    }

    fn role_of(&self, shown: &str) -> Option<(Role, &str)> {
        let found = self
            .tokens
            .iter()
            .find(|(_, token)| Token::of(token).is(shown.trim()));
        found.map(|(role, token)| (*role, token.as_str()))
    }

    /// The role of the cookie of a request.
    pub(crate) fn role(&self, headers: &HeaderMap) -> Option<Role> {
        let cookies = headers.get_all(COOKIE).iter();
        let mut pairs = cookies
            .filter_map(|cookies| cookies.to_str().ok())
            .flat_map(|cookies| cookies.split(';'))
            .filter_map(|cookie| cookie.trim().split_once('='));
        pairs.find_map(|(name, value)| {
            let is_it = |token: &str| name == NAME && Token::of(&secret(token)).is(value);
            let found = self.tokens.iter().find(|(_, token)| is_it(token));
            found.map(|(role, _)| *role)
        })
    }

    /// The role of a program that shows a token in the header `Authorization`.
    pub(crate) fn bearer(&self, headers: &HeaderMap) -> Option<Role> {
        let header = headers.get(AUTHORIZATION)?.to_str().ok()?;
        let (scheme, token) = header.split_once(' ')?;
        let (role, _) = self
            .role_of(token)
            .filter(|_| scheme.eq_ignore_ascii_case("bearer"))?;
        Some(role)
    }
}

/// What the cookie of a token holds: the token cannot be had from it.
fn secret(token: &str) -> String {
    let digest = Sha256::digest(format!("cookie of the ovos-tools console\n{token}"));
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn people() -> People {
        People {
            tokens: [
                (Role::Operator, "operators-token-0".to_owned()),
                (Role::Viewer, "viewers-token-000".to_owned()),
            ],
            wrong: Mutex::default(),
        }
    }

    #[test]
    fn a_token_is_traded_for_a_cookie_of_its_role_and_neither_is_guessed() {
        let (people, now) = (people(), Instant::now());
        let from = IpAddr::from([192, 0, 2, 1]);
        for (token, role) in [
            ("operators-token-0", Role::Operator),
            ("viewers-token-000", Role::Viewer),
        ] {
            let (found, cookie) = people.sign_in(token, from, now).unwrap();
            assert_eq!(found, role);
            assert!(cookie.contains("HttpOnly; SameSite=Strict") && !cookie.contains(token));
            let pair = cookie.split(';').next().unwrap();
            for (shown, expected) in [
                (pair.to_owned(), Some(role)),
                (format!("other=1; {pair}"), Some(role)),
                (format!("{pair}0"), None),
                (format!("x{pair}"), None),
                (format!("{NAME}={token}"), None),
                (String::new(), None),
            ] {
                let mut headers = HeaderMap::new();
                headers.insert(COOKIE, HeaderValue::from_str(&shown).unwrap());
                assert_eq!(people.role(&headers), expected, "{shown}");
                assert_eq!(people.bearer(&headers), None);
            }
        }
        for _ in 0..WRONG {
            assert_eq!(people.sign_in("guess", from, now), Err(NotSignedIn::Wrong));
        }
        assert_eq!(
            people.sign_in("operators-token-0", from, now),
            Err(NotSignedIn::Wait)
        );
        // One who guesses keeps no other from signing in.
        let other = IpAddr::from([192, 0, 2, 2]);
        assert!(people.sign_in("operators-token-0", other, now).is_ok());
        assert!(people.sign_in("operators-token-0", from, now + WITHIN).is_ok());
    }
}
