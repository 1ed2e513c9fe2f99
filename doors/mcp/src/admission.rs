//! Who is let in over HTTP: with the token of the owner, or with one of the owner's issuer (OAuth 2.1, as the protocol's revision of
//! 2026-07-28 has it). Read [`Admission::admit`], then [`Admission::lacks`].

use bytes::Bytes;
use config::SignIn;
use door::Token;
use http::header::{AUTHORIZATION, CACHE_CONTROL, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::json;
use url::Url;

use crate::early_answer::Answer;
use crate::grant::{Grant, Scope, Scopes};
use crate::issuer::{Issuer, NoClaims};

/// The endpoint.
pub(crate) const PATH: &str = "/mcp";

/// Where a protected resource tells who protects it (RFC 9728).
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Who is let in.
pub(crate) struct Admission {
    token: Option<Token>,
    protection: Option<Protection>,
}

/// The issuer, and what clients are told about it.
struct Protection {
    config: SignIn,
    issuer: Issuer,
    public: Url,
}

impl Admission {
    /// # Errors
    /// The certificates of this machine cannot be read.
    pub(crate) fn new(token: Option<Token>, config: Option<&SignIn>) -> std::io::Result<Self> {
        let protection = config.map(|config| {
            let public = Url::parse(&config.public_url).map_err(std::io::Error::other)?;
            Ok::<_, std::io::Error>(Protection {
                issuer: Issuer::new(config)?,
                config: config.clone(),
                public,
            })
        });
        Ok(Self {
            token,
            protection: protection.transpose()?,
        })
    }

    /// The issuer, whose keys have to be renewed.
    pub(crate) fn issuer(&self) -> Option<&Issuer> {
        Some(&self.protection.as_ref()?.issuer)
    }

    /// The name and port under which clients reach the door, if the owner has written it.
    pub(crate) fn public_host(&self) -> Option<String> {
        let public = &self.protection.as_ref()?.public;
        let host = public.host_str()?;
        Some(match public.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        })
    }

    /// The description of the door as a protected resource, if this is a path where clients look for it.
    pub(crate) fn metadata(&self, path: &str) -> Option<Response<Answer>> {
        let protection = self.protection.as_ref()?;
        let of = path.strip_prefix(WELL_KNOWN)?;
        let is_one = ["", PATH, protection.path()].contains(&of.trim_end_matches('/'));
        is_one.then(|| {
            let metadata = json!({
                "resource": protection.config.public_url,
                "resource_name": "OVOS tools",
                "authorization_servers": [protection.config.issuer],
                "scopes_supported": Scope::ALL.map(Scope::as_str),
                "bearer_methods_supported": ["header"],
            });
            let mut answer = Response::new(Full::new(Bytes::from(metadata.to_string())).boxed_unsync());
            let headers = answer.headers_mut();
            headers.insert(
                http::header::CONTENT_TYPE,
                HeaderValue::from_static("application/json"),
            );
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
            answer
        })
    }

    /// Decides what the sender of these headers may do. Only the header `Authorization` counts: a token in an address ends in logs.
    ///
    /// # Errors
    /// The answer to one that is not let in.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn admit(&self, headers: &HeaderMap) -> Result<Grant, Box<Response<Answer>>> {
        if self.token.is_none() && self.protection.is_none() {
            return Ok(Grant::of_owner());
        }
        let mut authorizations = headers.get_all(AUTHORIZATION).iter();
        let bearer = match (authorizations.next(), authorizations.next()) {
            (Some(header), None) => bearer(header),
            _ => None,
        };
        let Some(bearer) = bearer else {
            return Err(Box::new(self.unauthorized(None)));
        };
        if self.token.as_ref().is_some_and(|token| token.is(bearer)) {
            return Ok(Grant::of_owner());
        }
        let Some(protection) = &self.protection else {
            return Err(Box::new(self.unauthorized(None)));
        };
        match protection.issuer.claims(bearer).await {
            Ok(claims) => Ok(Grant::of_claims(&claims, &protection.config)),
            Err(NoClaims::Rejected(why)) => Err(Box::new(self.unauthorized(Some(&why.to_string())))),
            Err(no_keys) => {
                let mut answer = answer(
                    StatusCode::SERVICE_UNAVAILABLE,
                    format!("{no_keys}; try again later"),
                );
                answer
                    .headers_mut()
                    .insert(RETRY_AFTER, HeaderValue::from_static("10"));
                Err(Box::new(answer))
            }
        }
    }

    /// The answer to a request that needs more than its token allows; `None` if it does not. A stop needs no entry of the owner.
    pub(crate) fn lacks(&self, grant: &Grant, needed: &Scopes, is_stop: bool) -> Option<Response<Answer>> {
        if !grant.is_known && !is_stop {
            let text = "this token fits no entry of service.doors.mcp.sign_in.allow, and may only stop; the owner of the robot can add its \
                        subject or its client there";
            return Some(answer(StatusCode::FORBIDDEN, text.to_owned()));
        }
        let missing: Vec<&str> = needed
            .difference(&grant.scopes)
            .map(|scope| scope.as_str())
            .collect();
        if missing.is_empty() {
            return None;
        }
        let missing = missing.join(", ");
        let mut answer = answer(
            StatusCode::FORBIDDEN,
            format!("the access token lacks the scope {missing}; sign in again and ask for it"),
        );
        // All that the next token needs, because it takes the place of this one.
        let scopes: Scopes = needed.union(&grant.scopes).copied().collect();
        let error = Some((
            "insufficient_scope",
            format!("the token lacks the scope {missing}"),
        ));
        challenge(&mut answer, self.protection.as_ref(), &scopes, error);
        Some(answer)
    }

    fn unauthorized(&self, rejected: Option<&str>) -> Response<Answer> {
        let text = match (rejected, &self.protection) {
            (Some(why), _) => format!("the access token is not accepted: {why}; sign in again to get a new one"),
            (None, Some(protection)) => {
                format!("expected the header Authorization: Bearer TOKEN; sign in at {}", protection.config.issuer)
            }
            (None, None) => "expected the header Authorization: Bearer TOKEN; the token is in the file service.doors.mcp.token_file (by \
                default mcp-token in the state folder, ~/.local/state/ovos-tools)"
                .to_owned(),
        };
        let mut answer = answer(StatusCode::UNAUTHORIZED, text);
        let error = rejected.map(|why| ("invalid_token", why.to_owned()));
        challenge(
            &mut answer,
            self.protection.as_ref(),
            &[Scope::Read].into(),
            error,
        );
        answer
    }
}

impl Protection {
    /// The path of the public URL.
    fn path(&self) -> &str {
        self.public.path().trim_end_matches('/')
    }

    /// Where the description of the door is, for clients.
    fn metadata_url(&self) -> String {
        format!(
            "{}{WELL_KNOWN}{}",
            self.public.origin().ascii_serialization(),
            self.path()
        )
    }
}

/// Tells in a header how to sign in (RFC 6750, RFC 9728).
fn challenge(
    answer: &mut Response<Answer>,
    protection: Option<&Protection>,
    scopes: &Scopes,
    error: Option<(&str, String)>,
) {
    let mut text = "Bearer realm=\"ovos-tools\"".to_owned();
    if let Some((error, description)) = error {
        // None of our descriptions has a quote.
        text += &format!(", error=\"{error}\", error_description=\"{description}\"");
    }
    if let Some(protection) = protection {
        let scopes: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
        text += &format!(
            ", scope=\"{}\", resource_metadata=\"{}\"",
            scopes.join(" "),
            protection.metadata_url()
        );
    }
    if let Ok(text) = HeaderValue::from_str(&text) {
        answer.headers_mut().insert(WWW_AUTHENTICATE, text);
    }
}

/// The token in a header `Authorization`.
fn bearer(header: &HeaderValue) -> Option<&str> {
    let (scheme, token) = header.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn answer(status: StatusCode, text: String) -> Response<Answer> {
    let mut answer = Response::new(Full::new(Bytes::from(text)).boxed_unsync());
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(http::header::CONTENT_TYPE, kind);
    answer
}
