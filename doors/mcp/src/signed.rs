//! Access tokens as an issuer signs them: JSON Web Tokens (RFC 7519, RFC 9068), and the keys that verify them (RFC 7517). Pure.
//!
//! The table of [`ALGORITHMS`] is the list of what is accepted. A key is used only by an algorithm of its own kind, and there is no
//! row for `none` or for a shared secret, so a public key never verifies as one. The crate `jsonwebtoken` would bring a second library
//! of cryptography, and cannot read numbers where `serde_json` keeps them in full.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};
use serde::Deserialize;
use serde_json::Value;

/// The longest token that is read, in bytes.
const LONGEST: usize = 16 << 10;

/// The most keys of an issuer.
const MOST_KEYS: usize = 64;

/// How far the clock of an issuer may differ from ours, in seconds.
const LEEWAY: f64 = 30.0;

/// How a signature is verified.
#[derive(Clone, Copy)]
enum Verifies {
    Rsa(&'static RsaParameters),
    /// Elliptic curves, with the name of the curve.
    Curve(&'static str, &'static dyn VerificationAlgorithm),
}

/// The accepted algorithms, all of them asymmetric.
const ALGORITHMS: [(&str, Verifies); 9] = [
    ("RS256", Verifies::Rsa(&RSA_PKCS1_2048_8192_SHA256)),
    ("RS384", Verifies::Rsa(&RSA_PKCS1_2048_8192_SHA384)),
    ("RS512", Verifies::Rsa(&RSA_PKCS1_2048_8192_SHA512)),
    ("PS256", Verifies::Rsa(&RSA_PSS_2048_8192_SHA256)),
    ("PS384", Verifies::Rsa(&RSA_PSS_2048_8192_SHA384)),
    ("PS512", Verifies::Rsa(&RSA_PSS_2048_8192_SHA512)),
    ("ES256", Verifies::Curve("P-256", &ECDSA_P256_SHA256_FIXED)),
    ("ES384", Verifies::Curve("P-384", &ECDSA_P384_SHA384_FIXED)),
    ("EdDSA", Verifies::Curve("Ed25519", &ED25519)),
];

/// Why a token does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Rejection {
    #[error("it is not a signed JSON Web Token with the claims iss, aud, exp and sub")]
    Malformed,
    #[error(
        "its algorithm is not accepted; the issuer has to sign with a private key (RS256, PS256, ES256, EdDSA or longer)"
    )]
    Algorithm,
    #[error("the issuer has no such key")]
    UnknownKey,
    #[error("its signature is wrong")]
    Signature,
    #[error("it is from another issuer")]
    Issuer,
    #[error("its audience (aud) is not service.doors.mcp.sign_in.public_url")]
    Audience,
    #[error("it has expired")]
    Expired,
    #[error("it is not valid yet")]
    NotYet,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    /// Extensions that a reader has to know. None is known here.
    crit: Option<Value>,
}

/// A public key as an issuer publishes it. What it has of a private key is not read.
#[derive(Clone, Deserialize)]
struct Key {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// The public keys of an issuer.
pub(crate) struct Keys(Vec<Key>);

/// The claims of a token that decide.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Claims {
    iss: String,
    aud: Value,
    exp: f64,
    nbf: Option<f64>,
    /// Who signed in.
    pub(crate) sub: String,
    client_id: Option<String>,
    azp: Option<String>,
    scope: Option<Value>,
    scp: Option<Value>,
}

/// A token whose signature is not verified yet.
pub(crate) struct SignedToken<'t> {
    message: &'t [u8],
    claims: Vec<u8>,
    signature: Vec<u8>,
    algorithm: (&'static str, Verifies),
    kid: Option<String>,
}

impl<'t> SignedToken<'t> {
    /// Reads a token.
    ///
    /// # Errors
    /// It is no signed token, or its algorithm is not accepted.
    pub(crate) fn read(token: &'t str) -> Result<Self, Rejection> {
        if token.len() > LONGEST {
            return Err(Rejection::Malformed);
        }
        let (message, signature) = token.rsplit_once('.').ok_or(Rejection::Malformed)?;
        let (header, claims) = message.split_once('.').ok_or(Rejection::Malformed)?;
        let header = serde_json::from_slice::<Header>(&decoded(header).ok_or(Rejection::Malformed)?);
        let header = header.map_err(|_| Rejection::Malformed)?;
        let row = ALGORITHMS.into_iter().find(|(name, _)| *name == header.alg);
        let algorithm = row
            .filter(|_| header.crit.is_none())
            .ok_or(Rejection::Algorithm)?;
        Ok(Self {
            message: message.as_bytes(),
            claims: decoded(claims).ok_or(Rejection::Malformed)?,
            signature: decoded(signature).ok_or(Rejection::Malformed)?,
            algorithm,
            kid: header.kid,
        })
    }
}

impl Keys {
    /// Reads a set of keys, without those that are for something else.
    ///
    /// # Errors
    /// It is no set of keys, it has none that could verify a token, or too many.
    pub(crate) fn read(text: &[u8]) -> Result<Self, String> {
        let set: Value =
            serde_json::from_slice(text).map_err(|error| format!("its keys are not JSON: {error}"))?;
        let keys = set["keys"].as_array().ok_or("its keys are not a list")?;
        if keys.len() > MOST_KEYS {
            return Err(format!("it has more than {MOST_KEYS} keys"));
        }
        let keys = keys.iter().filter_map(|key| Key::deserialize(key).ok());
        let keys: Vec<Key> = keys.filter(Key::verifies).collect();
        if keys.is_empty() {
            return Err("it has no key for an algorithm that is accepted".to_owned());
        }
        Ok(Self(keys))
    }

    /// Verifies the signature of a token, and returns its claims, which are not checked yet.
    ///
    /// # Errors
    /// No key fits, the signature is wrong, or claims are missing.
    pub(crate) fn verify(&self, signed: &SignedToken<'_>) -> Result<Claims, Rejection> {
        let (name, verifies) = signed.algorithm;
        let fits = |key: &&Key| key.is_for(name, verifies) && (signed.kid.is_none() || key.kid == signed.kid);
        let mut fitting = self.0.iter().filter(fits);
        let key = match (fitting.next(), fitting.next()) {
            (Some(key), None) => key,
            // Without a name of the key it must be clear which one is meant.
            _ => return Err(Rejection::UnknownKey),
        };
        if !key.verify(verifies, signed.message, &signed.signature) {
            return Err(Rejection::Signature);
        }
        serde_json::from_slice(&signed.claims).map_err(|_| Rejection::Malformed)
    }
}

impl Key {
    fn verifies(&self) -> bool {
        let usage = self.usage.as_deref().unwrap_or("sig");
        usage == "sig"
            && ALGORITHMS
                .iter()
                .any(|(name, verifies)| self.is_for(name, *verifies))
    }

    /// Whether the key is one of this algorithm.
    fn is_for(&self, name: &str, verifies: Verifies) -> bool {
        let is_named = self.alg.as_deref().is_none_or(|alg| alg == name);
        is_named
            && match verifies {
                Verifies::Rsa(_) => self.kty == "RSA",
                Verifies::Curve("Ed25519", _) => self.kty == "OKP" && self.crv.as_deref() == Some("Ed25519"),
                Verifies::Curve(curve, _) => self.kty == "EC" && self.crv.as_deref() == Some(curve),
            }
    }

    fn verify(&self, verifies: Verifies, message: &[u8], signature: &[u8]) -> bool {
        let part = |part: &Option<String>| part.as_deref().and_then(decoded);
        let verified = match verifies {
            Verifies::Rsa(parameters) => part(&self.n)
                .zip(part(&self.e))
                .map(|(n, e)| RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)),
            Verifies::Curve("Ed25519", algorithm) => {
                part(&self.x).map(|x| UnparsedPublicKey::new(algorithm, x).verify(message, signature))
            }
            Verifies::Curve(_, algorithm) => part(&self.x).zip(part(&self.y)).map(|(x, y)| {
                let point = [&[4], &*x, &*y].concat();
                UnparsedPublicKey::new(algorithm, point).verify(message, signature)
            }),
        };
        matches!(verified, Some(Ok(())))
    }
}

impl Claims {
    /// Checks for whom the token was made, by whom and for which time. `now`: seconds since 1970.
    ///
    /// # Errors
    /// The first claim that does not hold.
    pub(crate) fn check(&self, issuer: &str, audience: &str, now: f64) -> Result<(), Rejection> {
        let is_meant = match &self.aud {
            Value::String(one) => one == audience,
            Value::Array(several) => several.iter().any(|one| one == audience),
            _ => false,
        };
        if self.iss != issuer {
            Err(Rejection::Issuer)
        } else if !is_meant {
            Err(Rejection::Audience)
        } else if self.exp + LEEWAY <= now {
            Err(Rejection::Expired)
        } else if self.nbf.is_some_and(|begin| begin - LEEWAY > now) {
            Err(Rejection::NotYet)
        } else {
            Ok(())
        }
    }

    /// The client that got the token. The issuer writes it, as `client_id` (RFC 9068) or `azp`.
    pub(crate) fn client(&self) -> Option<&str> {
        self.client_id.as_deref().or(self.azp.as_deref())
    }

    /// The scopes, from `scope` or `scp`, each a text or a list.
    pub(crate) fn scopes(&self) -> impl Iterator<Item = &str> {
        let written = [&self.scope, &self.scp].into_iter().flatten();
        written.flat_map(|written| match written {
            Value::String(text) => text.split_whitespace().collect::<Vec<_>>(),
            Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        })
    }
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
    use serde_json::json;

    use super::*;

    const ISSUER: &str = "https://issuer.test";
    const AUDIENCE: &str = "https://robot.test/mcp";
    const NOW: f64 = 1_800_000_000.0;

    struct Signer(EcdsaKeyPair);

    fn encoded(bytes: impl AsRef<[u8]>) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    impl Signer {
        fn new() -> Self {
            let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
            let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
            Self(EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).expect("the key"))
        }

        fn key(&self, more: &Value) -> Value {
            let point = self.0.public_key().as_ref();
            let mut key = json!({
                "kty": "EC", "crv": "P-256", "kid": "k", "x": encoded(&point[1..33]), "y": encoded(&point[33..]),
            });
            for (name, value) in more.as_object().into_iter().flatten() {
                key[name] = value.clone();
            }
            key
        }

        fn token(&self, header: &Value, claims: &Value) -> String {
            let message = format!("{}.{}", encoded(header.to_string()), encoded(claims.to_string()));
            let signature = self
                .0
                .sign(&SystemRandom::new(), message.as_bytes())
                .expect("a signature");
            format!("{message}.{}", encoded(signature))
        }
    }

    fn claims(more: &Value) -> Value {
        let mut claims = json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": NOW + 60.0});
        for (name, value) in more.as_object().into_iter().flatten() {
            claims[name] = value.clone();
        }
        claims
    }

    fn judged(keys: &[Value], token: &str) -> Result<Claims, Rejection> {
        let keys =
            Keys::read(json!({"keys": keys}).to_string().as_bytes()).map_err(|_| Rejection::UnknownKey)?;
        let claims = keys.verify(&SignedToken::read(token)?)?;
        claims.check(ISSUER, AUDIENCE, NOW)?;
        Ok(claims)
    }

    #[test]
    fn a_token_counts_only_as_its_issuer_made_it_for_this_door_and_time() {
        let signer = Signer::new();
        let header = json!({"alg": "ES256", "kid": "k"});
        for (more, expected) in [
            (json!({}), None),
            (json!({"aud": ["https://other.test", AUDIENCE]}), None),
            (json!({"exp": NOW - 29.0}), None),
            (json!({"nbf": NOW + 29.0}), None),
            (json!({"exp": 1_800_000_060}), None),
            (json!({"exp": NOW - 31.0}), Some(Rejection::Expired)),
            (json!({"exp": 0}), Some(Rejection::Expired)),
            (json!({"exp": null}), Some(Rejection::Malformed)),
            (json!({"exp": "1900000000"}), Some(Rejection::Malformed)),
            (json!({"nbf": NOW + 31.0}), Some(Rejection::NotYet)),
            (json!({"iss": "https://issuer.test/"}), Some(Rejection::Issuer)),
            (json!({"iss": [ISSUER]}), Some(Rejection::Malformed)),
            (json!({"aud": "https://robot.test"}), Some(Rejection::Audience)),
            (
                json!({"aud": "https://robot.test/mcp/"}),
                Some(Rejection::Audience),
            ),
            (json!({"aud": []}), Some(Rejection::Audience)),
            (json!({"aud": {"0": AUDIENCE}}), Some(Rejection::Audience)),
            (json!({"sub": null}), Some(Rejection::Malformed)),
        ] {
            let token = signer.token(&header, &claims(&more));
            let found = judged(&[signer.key(&json!({}))], &token);
            assert_eq!(found.err(), expected, "{more}");
        }
    }

    #[test]
    fn only_a_key_of_the_issuer_for_this_algorithm_verifies() {
        let (signer, other) = (Signer::new(), Signer::new());
        let own = signer.key(&json!({}));
        let header = |more: Value| {
            let mut header = json!({"alg": "ES256", "kid": "k"});
            for (name, value) in more.as_object().into_iter().flatten() {
                header[name] = value.clone();
            }
            header
        };
        let second = signer.key(&json!({"kid": "l"}));
        for (keys, header, expected) in [
            (vec![own.clone()], header(json!({})), None),
            (vec![own.clone()], header(json!({"kid": null})), None),
            (
                vec![own.clone(), second.clone()],
                header(json!({"kid": null})),
                Some(Rejection::UnknownKey),
            ),
            (
                vec![own.clone()],
                header(json!({"kid": "other"})),
                Some(Rejection::UnknownKey),
            ),
            (
                vec![other.key(&json!({}))],
                header(json!({})),
                Some(Rejection::Signature),
            ),
            (
                vec![own.clone()],
                header(json!({"alg": "none"})),
                Some(Rejection::Algorithm),
            ),
            (
                vec![own.clone()],
                header(json!({"alg": "NONE"})),
                Some(Rejection::Algorithm),
            ),
            (
                vec![own.clone()],
                header(json!({"alg": "HS256"})),
                Some(Rejection::Algorithm),
            ),
            (
                vec![own.clone()],
                header(json!({"alg": "RS256"})),
                Some(Rejection::UnknownKey),
            ),
            (
                vec![own.clone()],
                header(json!({"alg": "ES384"})),
                Some(Rejection::UnknownKey),
            ),
            (
                vec![own.clone()],
                header(json!({"crit": ["b64"], "b64": false})),
                Some(Rejection::Algorithm),
            ),
            // Keys in the token are the sender's.
            (
                vec![other.key(&json!({}))],
                header(json!({"jwk": own.clone()})),
                Some(Rejection::Signature),
            ),
            (
                vec![signer.key(&json!({"use": "enc"}))],
                header(json!({})),
                Some(Rejection::UnknownKey),
            ),
            (
                vec![signer.key(&json!({"alg": "RS256"}))],
                header(json!({})),
                Some(Rejection::UnknownKey),
            ),
            (
                vec![json!({"kty": "oct", "kid": "k", "k": "AAAA"})],
                header(json!({})),
                Some(Rejection::UnknownKey),
            ),
        ] {
            let token = signer.token(&header, &claims(&json!({})));
            assert_eq!(judged(&keys, &token).err(), expected, "{header} {keys:?}");
        }
    }

    #[test]
    fn a_changed_or_broken_token_is_refused() {
        let signer = Signer::new();
        let keys = [signer.key(&json!({}))];
        let token = signer.token(
            &json!({"alg": "ES256", "kid": "k"}),
            &claims(&json!({"scope": "read"})),
        );
        let parts: Vec<&str> = token.split('.').collect();
        let widened = encoded(claims(&json!({"scope": "read act move"})).to_string());
        for (token, expected) in [
            (
                format!("{}.{widened}.{}", parts[0], parts[2]),
                Rejection::Signature,
            ),
            (format!("{}.{}.", parts[0], parts[1]), Rejection::Signature),
            (format!("{}.{}", parts[0], parts[1]), Rejection::Malformed),
            (format!("{token}.{}", parts[2]), Rejection::Malformed),
            (String::new(), Rejection::Malformed),
            ("..".to_owned(), Rejection::Malformed),
            ("x".repeat(20_000), Rejection::Malformed),
        ] {
            assert_eq!(judged(&keys, &token).err(), Some(expected), "{token:.80}");
        }
    }

    #[test]
    fn scopes_and_client_are_read_as_issuers_write_them() {
        for (more, scopes, client) in [
            (
                json!({"scope": "read act", "client_id": "c"}),
                vec!["read", "act"],
                Some("c"),
            ),
            (json!({"scp": ["read"], "azp": "a"}), vec!["read"], Some("a")),
            (
                json!({"scope": "read", "client_id": "c", "azp": "a"}),
                vec!["read"],
                Some("c"),
            ),
            (json!({"scope": 5}), vec![], None),
            (
                json!({"name": "door:admin", "client_name": "door:admin"}),
                vec![],
                None,
            ),
        ] {
            let claims: Claims = serde_json::from_value(claims(&more)).expect("claims");
            assert_eq!(claims.scopes().collect::<Vec<_>>(), scopes, "{more}");
            assert_eq!(claims.client(), client, "{more}");
        }
    }
}
