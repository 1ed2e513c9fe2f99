//! The keys by which clients of a door over HTTP sign in at an issuer of the owner (OAuth 2.1).

use section::fields::{checked, trimmed};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::{Host, Url};

use super::toolset::at;
use crate::principal::Principal;
use crate::reader::Reader;

/// `sign_in`, read and complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignIn {
    /// The issuer of the tokens, exactly as its own metadata has it.
    pub issuer: String,
    /// The URL under which clients reach the door. Tokens have to name it as their audience, character by character.
    pub public_url: String,
    /// Whom the owner lets in. The first entry that matches a token decides.
    pub allow: Vec<Allowed>,
}

/// An entry of `sign_in.allow`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allowed {
    /// The `sub` of a token: the person, or the program, that signed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The `client_id` of a token, or its `azp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// For whom such a token counts. `service.policy` decides on calls for this principal beside those for the door.
    #[serde(deserialize_with = "principal", serialize_with = "write_principal")]
    pub principal: Principal,
}

impl Allowed {
    /// Whether the entry is about a token of this subject and client. Every part that is written has to be equal.
    #[must_use]
    pub fn is_about(&self, subject: &str, client: Option<&str>) -> bool {
        let is = |written: &Option<String>, found: Option<&str>| {
            written.as_deref().is_none_or(|written| Some(written) == found)
        };
        is(&self.subject, Some(subject)) && is(&self.client, client)
    }
}

/// `sign_in` as it is written.
#[derive(Default, Serialize, Deserialize)]
struct SignInKeys {
    #[serde(deserialize_with = "issuer")]
    issuer: Option<String>,
    #[serde(deserialize_with = "public_url")]
    public_url: Option<String>,
    #[serde(deserialize_with = "allow")]
    allow: Vec<Allowed>,
}

impl SignIn {
    /// Reads the key `sign_in` of a door; `None` if it is not complete. Of `issuer` and `public_url`, one without the other is reported
    /// as an error.
    pub(super) fn read(reader: &mut Reader<'_>, door: &'static str) -> Option<Self> {
        let path = at(&[door, "sign_in"]);
        let written = reader.closed(&path, SignInKeys::default());
        match (written.issuer, written.public_url) {
            (Some(issuer), Some(public_url)) => Some(Self {
                issuer,
                public_url,
                allow: written.allow,
            }),
            (Some(_), None) => {
                let accepted = "the URL under which clients reach the door, such as https://robot.example.org/mcp: tokens have to be made for it";
                reader.wrong(&at(&[door, "sign_in", "public_url"]), "nothing", accepted);
                None
            }
            (None, Some(_)) => {
                let accepted =
                    "the issuer at which clients sign in, such as https://auth.example.org/realms/home";
                reader.wrong(&at(&[door, "sign_in", "issuer"]), "nothing", accepted);
                None
            }
            (None, None) => None,
        }
    }
}

/// Whether a text is a URL with https, or with http on this machine, and without user, query and fragment: what is sent there can be
/// read by nobody on the way, and the URL holds no secret.
fn is_protected(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| {
        let is_here = match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        let scheme = url.scheme() == "https" || (url.scheme() == "http" && is_here);
        let plain = url.username().is_empty() && url.password().is_none();
        scheme && plain && url.has_host() && url.query().is_none() && url.fragment().is_none()
    })
}

fn protected_url<'de, D: Deserializer<'de>>(from: D, what: &str) -> Result<Option<String>, D::Error> {
    let accepted = format!("{what}: https://... (http:// on this machine alone), without a query");
    checked(from, accepted, |text: Option<String>| match text {
        None => Some(None),
        Some(text) => is_protected(&text).then_some(Some(text)),
    })
}

fn issuer<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    protected_url(from, "the URL of an issuer, exactly as its metadata has it")
}

fn public_url<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    protected_url(from, "the URL under which clients reach the door")
}

fn allow<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Allowed>, D::Error> {
    let accepted = "a list of objects {subject, client, principal} with at least one of `subject` and `client`, each a string, and \
                    a `principal` with a name, such as door:ada";
    checked(from, accepted, |entries: Vec<Allowed>| {
        let whole = |text: &Option<String>| text.as_deref().is_none_or(|text| trimmed(text).is_some());
        let good = |entry: &Allowed| {
            (entry.subject.is_some() || entry.client.is_some())
                && whole(&entry.subject)
                && whole(&entry.client)
        };
        entries.iter().all(good).then_some(entries)
    })
}

fn principal<'de, D: Deserializer<'de>>(from: D) -> Result<Principal, D::Error> {
    checked(
        from,
        "a principal with a name, such as door:ada",
        |text: String| Principal::parse(&text).filter(|principal| !principal.name.is_empty()),
    )
}

fn write_principal<S: Serializer>(principal: &Principal, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(principal)
}
