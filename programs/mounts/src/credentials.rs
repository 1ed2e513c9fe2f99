//! What a mount keeps of signing in: a file in the state folder of the service, for its owner only. Read [`Credentials`].

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use config::MountConfig;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, CredentialStore, OAuthClientConfig,
    StoredCredentials,
};
use serde::{Deserialize, Serialize};

use crate::secrets::Secrets;

/// The credentials of one mount. The library reads them before each request, and writes them when it has renewed the token.
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
    #[serde(default)]
    metadata: Option<AuthorizationMetadata>,
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
        if let Some(metadata) = kept.metadata {
            manager.set_metadata(metadata);
        }
        let is_signed_in = manager.initialize_from_store().await?;
        // The library keeps the id of the client alone.
        if let Some(secret) = kept.client_secret.filter(|_| is_signed_in) {
            let client = OAuthClientConfig::new(kept.credentials.client_id, self.server.as_str());
            manager.configure_client(client.with_client_secret(secret))?;
        }
        Ok(is_signed_in.then_some(manager))
    }

    /// Returns what signs in at the issuer of the server. Issuers and servers of a home have private addresses.
    ///
    /// # Errors
    /// The URL is none, or the machine has no certificates.
    pub(crate) async fn signing_in(&self) -> Result<AuthorizationManager, AuthError> {
        let mut manager = AuthorizationManager::new_allowing_private_addresses(self.server.as_str()).await?;
        manager.set_credential_store(self.clone());
        Ok(manager)
    }

    /// Keeps the metadata of the issuer, and the secret that it knows the client by, beside the token that it gave.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn keep(
        &self,
        metadata: AuthorizationMetadata,
        client_secret: Option<String>,
    ) -> Result<(), AuthError> {
        self.change(|kept| {
            kept.metadata = Some(metadata);
            kept.client_secret = client_secret;
            kept.wanted = None;
        })
    }

    /// Keeps what the server has said when it refused a call, for the next time that a person signs in.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn want(&self, challenge: &str) -> Result<(), AuthError> {
        self.change(|kept| kept.wanted = Some(challenge.to_owned()))
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

    fn change(&self, change: impl FnOnce(&mut CredentialsFile)) -> Result<(), AuthError> {
        match self.read()? {
            Some(mut kept) => {
                change(&mut kept);
                self.write(&kept)
            }
            None => Ok(()),
        }
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
        use oauth2::TokenResponse as _;
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

#[async_trait]
impl CredentialStore for Credentials {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        Ok(self.read()?.map(|kept| kept.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let before = self.read()?;
        let (metadata, client_secret, wanted) = before.map_or((None, None, None), |kept| {
            (kept.metadata, kept.client_secret, kept.wanted)
        });
        self.write(&CredentialsFile {
            server: self.server.clone(),
            credentials,
            metadata,
            client_secret,
            wanted,
        })
    }

    async fn clear(&self) -> Result<(), AuthError> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.failed(&error)),
            _ => Ok(()),
        }
    }
}
