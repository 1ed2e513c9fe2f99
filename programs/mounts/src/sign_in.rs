//! `ovos-tools mounts sign-in NAME`: a person signs in at the server of a mount, in a browser or with a code. Read [`run`].

mod browser;
mod device_code;
mod person;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use config::{Config, MountConfig, MountTransport, Overrides, ProcessEnvironment};
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, AuthorizationRequest, AuthorizationSession,
    CredentialStore as _, InMemoryCredentialStore, OAuthClientConfig,
};
use url::Url;

use self::browser::Callback;
use self::device_code::DeviceCode;
use self::person::{Page, browser, in_line, say};
use crate::complaint::complain;
use crate::connect::{NoConnection, connect_http, list};
use crate::credentials::Credentials;
use crate::peer::{Client, Notifications};
use crate::secrets::{Secrets, cut};

/// The exit code where signing in did not succeed.
const EXIT_REFUSED: u8 = 1;

/// Signs in at the server of the mount `name`. `words`: the further words of the command line.
pub(crate) fn run(name: &str, words: &[&str]) -> ExitCode {
    let signed_in = options(words).and_then(|options| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
        // This fails if another part of the program has already installed a provider, which is just as good.
        _ = rustls::crypto::ring::default_provider().install_default();
        let signed_in = runtime.block_on(sign_in(name, &options));
        // A thread may still wait for a line in the terminal.
        runtime.shutdown_background();
        signed_in
    });
    match signed_in {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            complain(&why);
            ExitCode::from(EXIT_REFUSED)
        }
    }
}

/// The options of the subcommand.
#[derive(Default)]
struct Options {
    config: Option<PathBuf>,
    /// The name under which the issuer knows this client, where it takes none that it does not know.
    client_id: Option<String>,
    /// The variable of the environment with the secret of that client, if it has one.
    client_secret_env: Option<String>,
    /// The issuer that the person means: at no other one is signed in.
    issuer: Option<String>,
    /// Whether the person signs in elsewhere, with a code.
    device: bool,
}

fn options(words: &[&str]) -> Result<Options, String> {
    const EXPECTED: &str =
        "expected --config FILE, --client-id ID, --client-secret-env VARIABLE, --issuer URL or --device";
    let mut options = Options::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if *word == "--device" {
            options.device = true;
            continue;
        }
        let value = words.next().filter(|value| !value.is_empty());
        let value = value.ok_or_else(|| format!("{word}: {EXPECTED}"))?;
        match *word {
            "--config" => options.config = Some(PathBuf::from(value)),
            "--client-id" => options.client_id = Some((*value).to_owned()),
            "--client-secret-env" => options.client_secret_env = Some((*value).to_owned()),
            "--issuer" => options.issuer = Some((*value).to_owned()),
            _ => return Err(format!("{word}: {EXPECTED}")),
        }
    }
    if options.client_secret_env.is_some() && options.client_id.is_none() {
        return Err(
            "--client-secret-env also needs --client-id ID, the client whose secret it is".to_owned(),
        );
    }
    Ok(options)
}

async fn sign_in(name: &str, options: &Options) -> Result<(), String> {
    let overrides = Overrides {
        config: options.config.clone(),
        ..Overrides::default()
    };
    let config = Config::load(&ProcessEnvironment, &overrides, None).map_err(|error| error.to_string())?;
    let mount = mount_of(&config, name)?;
    let secrets = Arc::new(Secrets::of(&mount, None));
    let credentials = Credentials::of(&mount, &secrets).ok_or(
        "this mount has no file for its tokens; set service.state_dir to a folder \
        that can be written",
    )?;
    let secret = match &options.client_secret_env {
        Some(variable) => Some(std::env::var(variable).map_err(|_| {
            format!("--client-secret-env: there is no variable `{variable}` in the environment")
        })?),
        None => None,
    };
    if let Some(secret) = &secret {
        secrets.learn(secret);
    }
    let signing_in = SigningIn {
        name,
        credentials,
        secrets,
        options,
        secret,
    };
    let wanted = signing_in
        .credentials
        .wanted()
        .map_err(|error| signing_in.wrong(&error))?;
    let mut challenge = match wanted {
        // The server has refused a call since.
        Some(challenge) => challenge,
        None => match tools(&mount, &signing_in.credentials).await {
            Ok(tools) => {
                say(&format!(
                    "{name} does not ask for signing in: it lists {tools} tools\n"
                ));
                return Ok(());
            }
            Err(refused) => signing_in.challenge(refused)?,
        },
    };
    let mut before = None;
    loop {
        let issuer = signing_in.once(&challenge).await?;
        match tools(&mount, &signing_in.credentials).await {
            Ok(tools) => {
                say(&format!(
                    "Signed in: {name} lists {tools} tools. A running service tries again within a minute, or with `ovos-tools \
                     reload`.\n"
                ));
                return Ok(());
            }
            Err(refused) => {
                let reason = signing_in.hidden(&refused.reason);
                let is_new = before.as_ref() != Some(&issuer);
                let again = refused.challenge.filter(|_| is_new);
                let is_elsewhere = match &again {
                    Some(again) => signing_in.issuer(again).await? != issuer,
                    None => false,
                };
                let Some(again) = again.filter(|_| is_elsewhere) else {
                    return Err(format!(
                        "{name} refuses the token of its own issuer: {reason}; ask the owner of the server"
                    ));
                };
                say(&format!(
                    "{name} names another issuer now, and asks to sign in there.\n"
                ));
                challenge = again;
                before = Some(issuer);
            }
        }
    }
}

/// One person who signs in at one server.
struct SigningIn<'a> {
    name: &'a str,
    credentials: Credentials,
    secrets: Arc<Secrets>,
    options: &'a Options,
    /// The secret that the person has given.
    secret: Option<String>,
}

impl SigningIn<'_> {
    /// What others say, as it is shown.
    fn hidden(&self, error: &dyn std::fmt::Display) -> String {
        in_line(&cut(&self.secrets.hide(&error.to_string())))
    }

    fn wrong(&self, error: &AuthError) -> String {
        format!("{}: {}", self.name, self.hidden(error))
    }

    /// What a server says about signing in.
    ///
    /// # Errors
    /// It fails for another reason.
    fn challenge(&self, refused: NoConnection) -> Result<String, String> {
        let reason = format!("{}: {}", self.name, self.hidden(&refused.reason));
        refused.challenge.ok_or(reason)
    }

    /// What signs in at the issuer that a challenge leads to.
    async fn manager(
        &self,
        challenge: &str,
    ) -> Result<(AuthorizationManager, AuthorizationMetadata), AuthError> {
        let mut manager = self.credentials.signing_in().await?;
        let found = manager.resolve_metadata_from_challenge(Some(challenge)).await?;
        manager.set_metadata(found.metadata.clone());
        Ok((manager, found.metadata))
    }

    async fn issuer(&self, challenge: &str) -> Result<Option<String>, String> {
        let found = self.manager(challenge).await;
        Ok(found.map_err(|error| self.wrong(&error))?.1.issuer)
    }

    /// Checks that this is the issuer which the person means. A server may name any, and the secret of a client is for one.
    ///
    /// # Errors
    /// It is another one, or the person has given a secret and not said for whom.
    fn check(&self, found: &AuthorizationMetadata) -> Result<(), String> {
        let client = self
            .options
            .client_id
            .as_deref()
            .filter(|_| self.secret.is_some());
        let before = match client {
            Some(client) => self
                .credentials
                .issuer_of(client)
                .map_err(|error| self.wrong(&error))?,
            None => None,
        };
        let meant = self.options.issuer.as_ref().or(before.as_ref());
        let plain = |issuer: &str| issuer.trim_end_matches('/').to_owned();
        let named = found.issuer.as_deref();
        let issuer = self.hidden(&named.unwrap_or("no issuer"));
        match meant {
            Some(meant) if named.map(plain) == Some(plain(meant)) => Ok(()),
            Some(meant) => Err(format!(
                "{}: its server names another issuer than {meant}; nothing was sent there. If the issuer has moved and you trust the new \
                 one, sign in with --issuer {issuer}",
                self.name
            )),
            None if self.secret.is_some() => Err(format!(
                "{}: --client-secret-env also needs --issuer, so that no other issuer gets the secret; the server names {issuer}: if that \
                 is yours, add --issuer {issuer}",
                self.name
            )),
            None => Ok(()),
        }
    }

    /// Says to whom the requests go that the person does not see.
    fn tell(&self, metadata: &AuthorizationMetadata, codes: Option<&str>) -> Result<(), String> {
        let endpoints = [Some(metadata.token_endpoint.as_str()), codes];
        let mut hosts = Vec::new();
        for endpoint in endpoints.into_iter().flatten() {
            let host = Url::parse(endpoint)
                .ok()
                .and_then(|url| url.host_str().map(str::to_owned));
            let host = host.ok_or_else(|| {
                format!(
                    "{}: the token endpoint of its issuer is not a URL with a host",
                    self.name
                )
            })?;
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        let issuer = match metadata.issuer.as_deref() {
            Some(issuer) => format!("the issuer {}", self.hidden(&issuer)),
            None => "an issuer without a name".to_owned(),
        };
        say(&format!(
            "Signing in at {issuer}; tokens come from {}.\n",
            hosts.join(" and ")
        ));
        Ok(())
    }

    /// Signs in once, and keeps what the issuer gives. Returns the issuer.
    async fn once(&self, challenge: &str) -> Result<Option<String>, String> {
        let wrong = |error: AuthError| self.wrong(&error);
        let callback = Callback::open().await?;
        let (mut manager, metadata) = self.manager(challenge).await.map_err(wrong)?;
        self.check(&metadata)?;
        // The token is kept with its issuer, at once.
        let given = InMemoryCredentialStore::new();
        manager.set_credential_store(given.clone());
        let mut scopes = manager.select_initial_scopes(&[]).await;
        // What was granted by this issuer before is not given up for more.
        let granted = self
            .credentials
            .granted(metadata.issuer.as_deref())
            .map_err(wrong)?;
        scopes.extend(
            granted
                .into_iter()
                .filter(|scope| !scopes.contains(scope))
                .collect::<Vec<_>>(),
        );
        let client = match &self.options.client_id {
            Some(id) => OAuthClientConfig::new(id, &callback.home),
            None => {
                let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
                let registered = manager
                    .register_client("ovos-tools", &callback.home, &scopes)
                    .await;
                registered.map_err(|error| {
                    format!(
                        "{}; if its issuer registers no clients by itself, register ovos-tools there with the redirect \
                         http://127.0.0.1/callback, and give its id with --client-id",
                        wrong(error)
                    )
                })?
            }
        };
        let secret = self.secret.clone().or(client.client_secret);
        if let Some(secret) = &secret {
            self.secrets.learn(secret);
        }
        let mut request = AuthorizationRequest::new(&callback.home)
            .with_preregistered_client(&client.client_id)
            .with_scopes(scopes)
            .with_initial_scope_selection();
        if let Some(secret) = &secret {
            request = request.with_client_secret(secret);
        }
        let session = AuthorizationSession::new(manager, request)
            .await
            .map_err(|(_, error)| wrong(error))?;
        let device = DeviceCode::offered(&metadata);
        let variable = self.options.client_secret_env.as_deref();
        let kept = match (device, self.options.device) {
            (None, true) => {
                return Err(format!(
                    "{}: its issuer does not support device codes; sign in without --device",
                    self.name
                ));
            }
            (Some(device), is_wanted) if is_wanted || browser().is_none() => {
                self.tell(&metadata, Some(device.address()))?;
                let signed_in = device.sign_in(&session, secret.as_deref(), variable).await;
                signed_in.map_err(|why| format!("{}: {}", self.name, self.hidden(&why)))?
            }
            _ => {
                self.tell(&metadata, None)?;
                let page = Page::read(session.get_authorization_url());
                let page = page.map_err(|why| format!("{}: {why}", self.name))?;
                let address = callback.visit(&page, variable).await;
                let address = address.map_err(|why| self.hidden(&why))?;
                session.handle_callback_url(&address).await.map_err(wrong)?;
                let given = given.load().await.map_err(wrong)?;
                given.ok_or_else(|| format!("{}: its issuer did not give a token; try again", self.name))?
            }
        };
        let issuer = metadata.issuer.clone();
        self.credentials.keep(kept, metadata, secret).map_err(wrong)?;
        Ok(issuer)
    }
}

/// The mount of this name, which has a URL and no token of its own.
fn mount_of(config: &Config, name: &str) -> Result<MountConfig, String> {
    let Some(mount) = config.mounts.get(name) else {
        let names: Vec<&str> = config.mounts.keys().map(String::as_str).collect();
        return Err(format!(
            "there is no mount '{name}' in service.mounts; there are: {}",
            names.join(", ")
        ));
    };
    let mount = mount.as_ref().map_err(ToString::to_string)?;
    let mount = mount.with_credentials(name, &config.service.state_dir);
    if mount.transport != Some(MountTransport::Http) {
        return Err(format!(
            "the mount '{name}' has no url; only servers over HTTP are signed in at"
        ));
    }
    if mount.has_own_token() {
        return Err(format!(
            "the mount '{name}' sends a token of its own; remove its bearer_env, or its header Authorization, to sign in"
        ));
    }
    Ok(mount)
}

/// How many tools the server lists.
async fn tools(mount: &MountConfig, credentials: &Credentials) -> Result<usize, NoConnection> {
    let client = Client(Arc::new(Notifications::default()));
    let connection = connect_http(mount, None, Some(credentials), None, client).await?;
    let tools = list(connection.service.peer()).await?;
    _ = connection.service.cancel().await;
    Ok(tools.len())
}
