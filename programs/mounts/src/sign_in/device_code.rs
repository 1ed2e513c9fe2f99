//! Signing in with a code (RFC 8628), for machines without a browser: the person opens a page anywhere, and types it there. Read
//! [`DeviceCode`].

use std::time::{Duration, SystemTime};

use oauth2::basic::BasicErrorResponse;
use oauth2::{
    AuthType, ClientId, ClientSecret, DeviceAuthorizationUrl, EmptyExtraDeviceAuthorizationFields,
    EndpointNotSet, HttpRequest, HttpResponse, Scope, StandardDeviceAuthorizationResponse,
    StandardRevocableToken, TokenResponse as _, TokenUrl,
};
use rmcp::transport::auth::{
    AuthorizationMetadata, AuthorizationSession, OAuthTokenResponse, StoredCredentials,
};
use serde_json::Value;

use super::person::{PATIENCE, Page, read_code, say};
use crate::connect::{chain, oauth_http};

/// A client of `oauth2`, with the type of rmcp's tokens.
type Client = oauth2::Client<
    BasicErrorResponse,
    OAuthTokenResponse,
    oauth2::basic::BasicTokenIntrospectionResponse,
    StandardRevocableToken,
    oauth2::basic::BasicRevocationErrorResponse,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
>;

/// The longest answer of an issuer, in bytes.
const LONGEST: usize = 1 << 20;

/// An issuer that gives codes.
pub(super) struct DeviceCode<'a> {
    codes: &'a str,
    metadata: &'a AuthorizationMetadata,
}

/// Why there is no answer of an issuer.
#[derive(Debug, thiserror::Error)]
enum NoAnswer {
    #[error("{0}")]
    Http(String),
    #[error("its answer is longer than {LONGEST} bytes")]
    TooLong,
}

impl<'a> DeviceCode<'a> {
    /// The issuer, if it gives codes.
    pub(super) fn offered(metadata: &'a AuthorizationMetadata) -> Option<Self> {
        let codes = metadata.additional_fields.get("device_authorization_endpoint");
        let codes = codes.and_then(Value::as_str)?;
        Some(Self { codes, metadata })
    }

    /// Where the codes come from.
    pub(super) fn address(&self) -> &str {
        self.codes
    }

    /// Shows a code to the person, and waits until the issuer gives the tokens for it. `variable`: that of the environment which the browser
    /// does not get.
    ///
    /// # Errors
    /// The person or the issuer refuses, or the person takes too long.
    pub(super) async fn sign_in(
        &self,
        session: &AuthorizationSession,
        secret: Option<&str>,
        variable: Option<&str>,
    ) -> Result<StoredCredentials, String> {
        // rmcp shows the client's id, scopes and resource only in the address for the browser.
        let address = url::Url::parse(session.get_authorization_url()).map_err(|error| error.to_string())?;
        let of = |key: &str| {
            let mut pairs = address.query_pairs();
            pairs.find_map(|(name, value)| (name == key).then(|| value.into_owned()))
        };
        let client_id = of("client_id").unwrap_or_default();
        let scopes: Vec<String> = of("scope")
            .map(|scopes| scopes.split(' ').map(str::to_owned).collect())
            .unwrap_or_default();
        let resource = of("resource").unwrap_or_default();
        let codes = DeviceAuthorizationUrl::new(self.codes.to_owned()).map_err(|error| error.to_string())?;
        let tokens =
            TokenUrl::new(self.metadata.token_endpoint.clone()).map_err(|error| error.to_string())?;
        let mut client = Client::new(ClientId::new(client_id.clone()))
            .set_device_authorization_url(codes)
            .set_token_uri(tokens);
        if let Some(secret) = secret {
            client = client.set_client_secret(ClientSecret::new(secret.to_owned()));
            client = client.set_auth_type(self.authentication());
        }
        let http = oauth_http(&self.metadata.token_endpoint)?;
        let send = |request: HttpRequest| answer(&http, request);
        let code: StandardDeviceAuthorizationResponse = client
            .exchange_device_code()
            .add_scopes(scopes.iter().cloned().map(Scope::new))
            .add_extra_param("resource", resource.clone())
            .request_async::<_, EmptyExtraDeviceAuthorizationFields>(&send)
            .await
            .map_err(|error| chain(&error))?;
        let page = Page::read(code.verification_uri().as_str())?;
        say(&format!(
            "Open this page in a browser, on any machine, and sign in:\n\n  {}\n\nIt asks for this code:  {}\n",
            page.as_str(),
            read_code(code.user_code().secret())?
        ));
        let whole = code
            .verification_uri_complete()
            .map(|page| Page::read(page.secret()))
            .transpose()?;
        whole.unwrap_or(page).open(variable);
        let token = client
            .exchange_device_access_token(&code)
            .add_extra_param("resource", resource)
            .request_async(&send, tokio::time::sleep, Some(PATIENCE))
            .await
            .map_err(|error| {
                format!(
                    "the issuer gives no tokens for the code: {}; if it does not know this client, register ovos-tools there with codes \
                     for devices, and give its id with --client-id",
                    chain(&error)
                )
            })?;
        let granted = token
            .scopes()
            .map(|scopes| scopes.iter().map(|scope| scope.to_string()).collect());
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let kept = StoredCredentials::new(
            client_id,
            Some(token),
            granted.unwrap_or(scopes),
            Some(since.as_secs()),
        );
        Ok(kept.with_issuer(self.metadata.issuer.clone()))
    }

    /// How the client authenticates at the token endpoint.
    fn authentication(&self) -> AuthType {
        let methods = self
            .metadata
            .additional_fields
            .get("token_endpoint_auth_methods_supported");
        let has = |wanted: &str| {
            let methods = methods.and_then(Value::as_array);
            methods.is_some_and(|methods| methods.iter().any(|method| method == wanted))
        };
        if has("client_secret_post") && !has("client_secret_basic") {
            AuthType::RequestBody
        } else {
            AuthType::BasicAuth
        }
    }
}

/// Sends a request of the protocol.
async fn answer(http: &reqwest::Client, request: HttpRequest) -> Result<HttpResponse, NoAnswer> {
    let failed = |error: reqwest::Error| NoAnswer::Http(chain(&error));
    let (head, body) = request.into_parts();
    let request = http
        .request(head.method, head.uri.to_string())
        .headers(head.headers)
        .body(body)
        .timeout(Duration::from_secs(30));
    let mut answer = request.send().await.map_err(failed)?;
    let mut whole = Vec::new();
    while let Some(part) = answer.chunk().await.map_err(failed)? {
        if whole.len() + part.len() > LONGEST {
            return Err(NoAnswer::TooLong);
        }
        whole.extend_from_slice(&part);
    }
    let mut response = http::Response::new(whole);
    *response.status_mut() = answer.status();
    *response.headers_mut() = answer.headers().clone();
    Ok(response)
}
