//! The issuer of access tokens: where its keys are, and the keys, fetched now and then. Read [`Issuer::claims`].

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use config::SignIn;
use door::{HttpsClient, chain, https_client};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::{Instant, timeout};
use url::Url;

use crate::signed::{Claims, Keys, Rejection, SignedToken};

/// How often the keys are fetched while nothing asks for other ones.
pub(crate) const EVERY: Duration = Duration::from_secs(300);

/// The shortest time between two attempts. Any sender can name keys that do not exist.
const PACE: Duration = Duration::from_secs(5);

/// How long keys count after they were fetched. An issuer that is away for longer cannot withdraw a key.
const KEPT: Duration = Duration::from_secs(3600);

/// How long the metadata and the keys may take together.
const FETCH_LIMIT: Duration = Duration::from_secs(5);

/// The most bytes of either.
const LARGEST: usize = 256 << 10;

/// Why the claims of a token are not known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoClaims {
    #[error("{0}")]
    Rejected(#[from] Rejection),
    #[error("the keys of the issuer are not known, so that no token can be checked: {0}")]
    NoKeys(String),
}

/// The issuer of the owner.
pub(crate) struct Issuer {
    name: String,
    audience: String,
    http: HttpsClient,
    fetched: Mutex<Fetched>,
    /// When the keys were last asked for. The holder of the lock asks.
    asked: tokio::sync::Mutex<Option<Instant>>,
}

#[derive(Default)]
struct Fetched {
    keys: Option<(Instant, Arc<Keys>)>,
    /// Why the last attempt failed.
    failed: Option<String>,
}

impl Issuer {
    /// # Errors
    /// The certificates of this machine cannot be read.
    pub(crate) fn new(config: &SignIn) -> std::io::Result<Self> {
        Ok(Self {
            http: https_client(&config.issuer)?,
            name: config.issuer.clone(),
            audience: config.public_url.clone(),
            fetched: Mutex::default(),
            asked: tokio::sync::Mutex::default(),
        })
    }

    /// Returns the claims of a token that this issuer has made for this door, and that counts now.
    ///
    /// # Errors
    /// The token does not count, or it cannot be checked.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn claims(&self, token: &str) -> Result<Claims, NoClaims> {
        let signed = SignedToken::read(token)?;
        let mut verified = self.keys().map(|keys| keys.verify(&signed));
        if matches!(verified, None | Some(Err(Rejection::UnknownKey))) {
            // The issuer may have a new key.
            self.renew().await;
            verified = self.keys().map(|keys| keys.verify(&signed));
        }
        let Some(verified) = verified else {
            let failed = self.fetched.lock().failed.clone();
            return Err(NoClaims::NoKeys(failed.unwrap_or_default()));
        };
        let claims = verified?;
        // A clock before 1970 makes every token one of the future.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        claims.check(&self.name, &self.audience, now.as_secs_f64())?;
        Ok(claims)
    }

    fn keys(&self) -> Option<Arc<Keys>> {
        let fetched = self.fetched.lock();
        let (at, keys) = fetched.keys.as_ref()?;
        (at.elapsed() < KEPT).then(|| Arc::clone(keys))
    }

    /// Fetches the keys, unless that was tried just now. If it fails, the keys that are there go on to count.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn renew(&self) {
        let mut last_fetch = self.asked.lock().await;
        if last_fetch.is_some_and(|last_fetch| last_fetch.elapsed() < PACE) {
            return;
        }
        *last_fetch = Some(Instant::now());
        let late = || Err(format!("it did not answer within {} s", FETCH_LIMIT.as_secs()));
        let answer = timeout(FETCH_LIMIT, self.fetch())
            .await
            .unwrap_or_else(|_| late());
        *last_fetch = Some(Instant::now());
        let mut fetched = self.fetched.lock();
        match answer {
            Ok(keys) => {
                *fetched = Fetched {
                    keys: Some((Instant::now(), Arc::new(keys))),
                    failed: None,
                };
            }
            Err(why) => {
                tracing::warn!(
                    issuer = self.name,
                    "the keys of the issuer were not fetched: {why}"
                );
                fetched.failed = Some(why);
            }
        }
    }

    async fn fetch(&self) -> Result<Keys, String> {
        let metadata = self.metadata().await?;
        let place = metadata["jwks_uri"].as_str().unwrap_or_default();
        // What came over HTTPS must not be undone by keys over HTTP.
        let is_protected = place.starts_with("https:") || self.name.starts_with("http:");
        if !is_protected || Url::parse(place).is_err() {
            return Err(format!(
                "its jwks_uri is '{place:.100}', expected a URL with https"
            ));
        }
        Keys::read(&self.get(place).await?)
    }

    /// Returns the metadata from the first place that has them (RFC 8414, OpenID Connect Discovery).
    async fn metadata(&self) -> Result<Value, String> {
        let mut why = String::new();
        for place in places(&self.name) {
            let document = self.get(&place).await.and_then(|text| {
                serde_json::from_slice::<Value>(&text)
                    .map_err(|error| format!("{place} is not JSON: {error}"))
            });
            match document {
                Ok(metadata) if metadata["issuer"] == self.name.as_str() => return Ok(metadata),
                Ok(metadata) => {
                    return Err(format!(
                        "{place} names the issuer {}, expected '{}': set service.doors.mcp.sign_in.issuer to the name that the issuer \
                         gives itself",
                        metadata["issuer"], self.name
                    ));
                }
                Err(failed) => why = failed,
            }
        }
        Err(why)
    }

    async fn get(&self, place: &str) -> Result<Bytes, String> {
        let request = Request::get(place).header("accept", "application/json");
        let request = request
            .body(Full::default())
            .map_err(|error| format!("{place}: {error}"))?;
        let answer = self.http.request(request).await;
        let answer = answer.map_err(|error| format!("{place}: {}", chain(&error)))?;
        if answer.status() != StatusCode::OK {
            return Err(format!("{place}: HTTP {}", answer.status()));
        }
        let body = Limited::new(answer.into_body(), LARGEST).collect().await;
        Ok(body.map_err(|error| format!("{place}: {error}"))?.to_bytes())
    }
}

/// Where the metadata of an issuer may be.
fn places(issuer: &str) -> Vec<String> {
    let Ok(url) = Url::parse(issuer) else {
        return Vec::new();
    };
    let (origin, path) = (
        url.origin().ascii_serialization(),
        url.path().trim_end_matches('/'),
    );
    vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}{path}/.well-known/openid-configuration"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_of_an_issuer_are_looked_for_where_the_standards_put_them() {
        assert_eq!(
            places("https://auth.test/realms/home"),
            [
                "https://auth.test/.well-known/oauth-authorization-server/realms/home",
                "https://auth.test/realms/home/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            places("https://auth.test:8443/"),
            [
                "https://auth.test:8443/.well-known/oauth-authorization-server",
                "https://auth.test:8443/.well-known/openid-configuration",
            ]
        );
    }
}
