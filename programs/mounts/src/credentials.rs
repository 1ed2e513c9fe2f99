//! What a mount keeps of signing in: a file in the state folder of the service, for its owner only. Read [`Credentials`].

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use config::MountConfig;
use oauth2::TokenResponse as _;
use parking_lot::Mutex;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, CredentialStore, OAuthClientConfig,
    StoredCredentials,
};
use serde::{Deserialize, Serialize};

use crate::secrets::Secrets;

/// The credentials of one mount. What a sign-in gives is written at once, so that a service never reads half of it.
#[derive(Clone)]
pub(crate) struct Credentials {
    path: PathBuf,
    /// The server that the tokens are for. They are never sent to another one.
    server: String,
    /// Learns the tokens, so that they are shown nowhere.
    secrets: Arc<Secrets>,
}

/// What is in the file.
#[derive(Serialize, Deserialize)]
struct CredentialsFile {
    server: String,
    credentials: StoredCredentials,
    /// The issuer as it was when the owner signed in: the token is renewed there and nowhere else.
    metadata: AuthorizationMetadata,
    /// The secret of the client, if the issuer has given it one. It takes part in renewing a token.
    #[serde(default)]
    client_secret: Option<String>,
    /// What the server has said when it refused a call, because the token allows too little.
    #[serde(default)]
    wanted: Option<String>,
}

impl Credentials {
    /// Those of a mount that may sign in.
    pub(crate) fn of(mount: &MountConfig, secrets: &Arc<Secrets>) -> Option<Self> {
        Some(Self {
            path: mount.credentials.clone()?,
            server: mount.url.clone()?,
            secrets: Arc::clone(secrets),
        })
    }

    /// Returns what sends the token and renews it; `None` before a person has signed in.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) async fn manager(&self) -> Result<Option<AuthorizationManager>, AuthError> {
        let Some(kept) = self.read()? else { return Ok(None) };
        let mut manager = self.signing_in().await?;
        manager.set_credential_store(SignedIn {
            credentials: self.clone(),
            issuer: kept.metadata.issuer.clone(),
            seen: Mutex::default(),
        });
        manager.set_metadata(kept.metadata);
        let is_signed_in = manager.initialize_from_store().await?;
        // The library keeps the id of the client alone.
        if let Some(secret) = kept.client_secret.filter(|_| is_signed_in) {
            let client = OAuthClientConfig::new(kept.credentials.client_id, self.server.as_str());
            manager.configure_client(client.with_client_secret(secret))?;
        }
        Ok(is_signed_in.then_some(manager))
    }

    /// Returns what signs in at the issuer of the server, and keeps nothing. Issuers and servers of a home have private addresses.
    ///
    /// # Errors
    /// The URL is none, or the machine has no certificates.
    pub(crate) async fn signing_in(&self) -> Result<AuthorizationManager, AuthError> {
        AuthorizationManager::new_allowing_private_addresses(self.server.as_str()).await
    }

    /// Keeps what an issuer gave, the issuer itself, and the secret that it knows the client by.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn keep(
        &self,
        credentials: StoredCredentials,
        metadata: AuthorizationMetadata,
        client_secret: Option<String>,
    ) -> Result<(), AuthError> {
        self.write(&CredentialsFile {
            server: self.server.clone(),
            credentials,
            metadata,
            client_secret,
            wanted: None,
        })
    }

    /// Keeps what the server has said when it refused a call, for the next time that a person signs in. Without a file it is asked again.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn want(&self, challenge: &str) -> Result<(), AuthError> {
        let Some(mut kept) = self.read()? else {
            return Ok(());
        };
        kept.wanted = Some(challenge.to_owned());
        self.write(&kept)
    }

    /// The issuer that knows this client by a secret, if that was signed in with.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn issuer_of(&self, client_id: &str) -> Result<Option<String>, AuthError> {
        let kept = self.read()?;
        let kept =
            kept.filter(|kept| kept.client_secret.is_some() && kept.credentials.client_id == client_id);
        Ok(kept.and_then(|kept| kept.metadata.issuer))
    }

    /// What the server has said since a person signed in.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn wanted(&self) -> Result<Option<String>, AuthError> {
        Ok(self.read()?.and_then(|kept| kept.wanted))
    }

    /// What this issuer has granted, if it was this one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn granted(&self, issuer: Option<&str>) -> Result<Vec<String>, AuthError> {
        let kept = self.read()?.map(|kept| kept.credentials);
        let kept = kept.filter(|kept| kept.issuer.as_deref() == issuer);
        Ok(kept.map(|kept| kept.granted_scopes).unwrap_or_default())
    }

    fn read(&self) -> Result<Option<CredentialsFile>, AuthError> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed(&error)),
        };
        // The text of the error of serde may show what is there.
        let kept: CredentialsFile = serde_json::from_slice(&text)
            .map_err(|_| self.failed(&"it is damaged: remove it and sign in again"))?;
        self.learn(&kept);
        Ok(Some(kept).filter(|kept| kept.server == self.server))
    }

    fn write(&self, kept: &CredentialsFile) -> Result<(), AuthError> {
        self.learn(kept);
        let text = serde_json::to_vec(kept).map_err(|error| self.failed(&error))?;
        config::write_atomically(&self.path, &text, None).map_err(|error| self.failed(&error))
    }

    fn learn(&self, kept: &CredentialsFile) {
        if let Some(secret) = &kept.client_secret {
            self.secrets.learn(secret);
        }
        let Some(tokens) = &kept.credentials.token_response else {
            return;
        };
        self.secrets.learn(tokens.access_token().secret());
        if let Some(refresh) = tokens.refresh_token() {
            self.secrets.learn(refresh.secret());
        }
    }

    fn failed(&self, cause: &dyn std::fmt::Display) -> AuthError {
        AuthError::CredentialStoreError(format!("{}: {cause}", self.path.display()))
    }
}

/// One sign-in, as the library reads it before each request and writes it when it has renewed the token. A sign-in that has taken its place
/// meanwhile is another one: its token is not sent to this issuer, and nothing of it is overwritten.
struct SignedIn {
    credentials: Credentials,
    issuer: Option<String>,
    /// The token that the library has.
    seen: Mutex<Option<String>>,
}

impl SignedIn {
    fn read(&self) -> Result<Option<CredentialsFile>, AuthError> {
        let kept = self.credentials.read()?;
        Ok(kept.filter(|kept| kept.metadata.issuer == self.issuer))
    }

    fn see(&self, credentials: Option<&StoredCredentials>) {
        *self.seen.lock() = credentials.and_then(token_of);
    }
}

fn token_of(credentials: &StoredCredentials) -> Option<String> {
    let token = credentials.token_response.as_ref()?;
    Some(token.access_token().secret().clone())
}

#[async_trait]
impl CredentialStore for SignedIn {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let kept = self.read()?.map(|kept| kept.credentials);
        self.see(kept.as_ref());
        Ok(kept)
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let seen = self.seen.lock().clone();
        // Whoever has removed the file meanwhile has signed out.
        let kept = self.read()?.filter(|kept| token_of(&kept.credentials) == seen);
        let Some(kept) = kept else { return Ok(()) };
        self.see(Some(&credentials));
        self.credentials.write(&CredentialsFile { credentials, ..kept })
    }

    async fn clear(&self) -> Result<(), AuthError> {
        // Only its owner signs out, by removing the file.
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics and prints")]

    use serde_json::json;

    use super::*;

    fn given(issuer: &str, token: &str) -> (StoredCredentials, AuthorizationMetadata) {
        let credentials = json!({
            "client_id": "c", "issuer": issuer, "token_response": {"access_token": token, "token_type": "bearer", "refresh_token": "again"},
        });
        let metadata = json!({"issuer": issuer, "authorization_endpoint": issuer, "token_endpoint": issuer});
        (
            serde_json::from_value(credentials).unwrap(),
            serde_json::from_value(metadata).unwrap(),
        )
    }

    /// A service renews a token while its owner signs in anew, or out.
    #[tokio::test]
    async fn a_renewal_leaves_a_newer_sign_in_as_it_is() {
        // What is kept when the renewal ends, and the token that counts then.
        for (meanwhile, counts) in [
            (Some(("https://a.test", "first")), Some("renewed")),
            (Some(("https://a.test", "second")), Some("second")),
            (Some(("https://b.test", "second")), Some("second")),
            (None, None),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let credentials = Credentials {
                path: folder.path().join("mounts/m.json"),
                server: "https://m.test/mcp".to_owned(),
                secrets: Arc::default(),
            };
            let keep = |issuer: &str, token: &str| {
                let (given, metadata) = given(issuer, token);
                credentials
                    .keep(given, metadata, Some("secret".to_owned()))
                    .unwrap();
            };
            keep("https://a.test", "first");
            let store = SignedIn {
                credentials: credentials.clone(),
                issuer: Some("https://a.test".to_owned()),
                seen: Mutex::default(),
            };
            assert!(store.load().await.unwrap().is_some());
            match meanwhile {
                Some((issuer, token)) => keep(issuer, token),
                None => fs::remove_file(&credentials.path).unwrap(),
            }
            store.save(given("https://a.test", "renewed").0).await.unwrap();
            store.clear().await.unwrap();
            let kept = credentials.read().unwrap();
            let token = kept.as_ref().and_then(|kept| token_of(&kept.credentials));
            assert_eq!(token.as_deref(), counts, "{meanwhile:?}");
            let issuer = kept.as_ref().and_then(|kept| kept.metadata.issuer.as_deref());
            assert_eq!(issuer, meanwhile.map(|(issuer, _)| issuer));
            let is_read = store.load().await.unwrap().is_some();
            assert_eq!(is_read, issuer == Some("https://a.test"), "{meanwhile:?}");
            assert_eq!(credentials.issuer_of("c").unwrap().as_deref(), issuer);
            assert_eq!(credentials.issuer_of("d").unwrap(), None);
        }
    }
}
