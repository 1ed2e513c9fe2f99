//! `ovos-tools mounts sign-in NAME`: a person signs in at the server of a mount, in a browser. Read [`run`].
//!
//! The browser comes back to a port of this machine. Where it cannot, because it runs on another one, the address at which it ended
//! is pasted into the terminal.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use config::{Config, MountConfig, MountTransport, Overrides, ProcessEnvironment};
use rmcp::transport::auth::{AuthorizationRequest, AuthorizationSession};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::complaint::complain;
use crate::connect::{NoConnection, connect_http, list};
use crate::credentials::Credentials;
use crate::peer::{Client, Notifications};
use crate::secrets::Secrets;

/// How long a person may take in the browser.
const PATIENCE: Duration = Duration::from_secs(600);

/// The exit code where signing in did not succeed.
const EXIT_REFUSED: u8 = 1;

/// The longest request of a browser that is read.
const LONGEST: usize = 16 << 10;

const DONE: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n\r\nSigned in. You can close this page.\n";
const ELSEWHERE: &str = "HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\n";

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
}

fn options(words: &[&str]) -> Result<Options, String> {
    let mut options = Options::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let value = words.next().filter(|value| !value.is_empty());
        let value = value.ok_or_else(|| format!("{word}: expected --config FILE or --client-id ID"))?;
        match *word {
            "--config" => options.config = Some(PathBuf::from(value)),
            "--client-id" => options.client_id = Some((*value).to_owned()),
            _ => return Err(format!("{word}: expected --config FILE or --client-id ID")),
        }
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
    let credentials = Credentials::of(&mount, &secrets).ok_or("no place for its tokens")?;
    let hidden = |error: &dyn std::fmt::Display| secrets.hide(&error.to_string());

    let challenge = match tools(&mount, &credentials).await {
        Ok(tools) => {
            say(&format!("{name} needs no signing in: it lists {tools} tools\n"));
            return Ok(());
        }
        Err(NoConnection {
            challenge: Some(challenge),
            ..
        }) => challenge,
        Err(other) => return Err(format!("{name}: {}", hidden(&other.reason))),
    };
    let wrong = |error: rmcp::transport::auth::AuthError| format!("{name}: {}", hidden(&error));
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .map_err(|error| format!("no port for the browser: {error}"))?;
    let port = listener
        .local_addr()
        .map_err(|error| format!("no port for the browser: {error}"))?
        .port();
    let home = format!("http://127.0.0.1:{port}/callback");
    let mut manager = credentials.signing_in().await.map_err(wrong)?;
    let found = manager
        .resolve_metadata_from_challenge(Some(&challenge))
        .await
        .map_err(wrong)?;
    manager.set_metadata(found.metadata.clone());
    let mut request = AuthorizationRequest::new(&home)
        .with_client_name("ovos-tools")
        .with_challenge(challenge)
        .with_initial_scope_selection();
    if let Some(id) = &options.client_id {
        request = request.with_preregistered_client(id);
    }
    let session = AuthorizationSession::new(manager, request).await.map_err(|(_, error)| {
        format!(
            "{}; if its issuer registers no clients by itself, register ovos-tools there as a public client with the redirect \
             http://127.0.0.1/callback, and give its id with --client-id",
            wrong(error)
        )
    })?;
    say(&format!(
        "Open this page in a browser and sign in:\n\n  {}\n\nIf the browser is on another machine, it ends at a page that cannot be \
         shown: paste its address here.\n",
        session.get_authorization_url()
    ));
    open_browser(session.get_authorization_url());
    let came_back = timeout(PATIENCE, async {
        tokio::select! {
            address = from_browser(&listener, &home) => address,
            address = from_terminal(&home) => address,
        }
    });
    let address = came_back.await.map_err(|_| {
        format!(
            "the browser did not come back within {} minutes; try again",
            PATIENCE.as_secs() / 60
        )
    })?;
    session.handle_callback_url(&address?).await.map_err(wrong)?;
    credentials.keep_metadata(found.metadata).map_err(wrong)?;
    match tools(&mount, &credentials).await {
        Ok(tools) => {
            say(&format!(
                "Signed in: {name} lists {tools} tools. A running service tries again within a minute, or with `ovos-tools reload`.\n"
            ));
            Ok(())
        }
        Err(refused) => Err(format!(
            "{name} has given a token, and does not take it: {}",
            hidden(&refused.reason)
        )),
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
    let listed = list(connection.service.peer())
        .await
        .map_err(NoConnection::from)?;
    _ = connection.service.cancel().await;
    Ok(listed.len())
}

/// Waits for the browser, and answers it.
async fn from_browser(listener: &TcpListener, home: &str) -> Result<String, String> {
    loop {
        let (mut stream, _) = listener
            .accept()
            .await
            .map_err(|error| format!("no port for the browser: {error}"))?;
        let mut head = Vec::new();
        let read = async {
            while !head.windows(2).any(|two| two == b"\r\n") && head.len() < LONGEST {
                if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
                    break;
                }
            }
        };
        // A browser also opens connections without a request, on speculation.
        _ = timeout(Duration::from_secs(2), read).await;
        let text = String::from_utf8_lossy(&head);
        let target = text
            .strip_prefix("GET ")
            .and_then(|rest| rest.split(' ').next())
            .unwrap_or_default();
        let query = target.strip_prefix("/callback?");
        let answer = if query.is_some() { DONE } else { ELSEWHERE };
        // The page is for the person only.
        _ = stream.write_all(answer.as_bytes()).await;
        _ = stream.shutdown().await;
        if let Some(query) = query {
            return refused(format!("{home}?{query}"));
        }
    }
}

/// Waits for an address in the terminal.
async fn from_terminal(home: &str) -> Result<String, String> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let line = line.trim();
        if line.starts_with(home) {
            return refused(line.to_owned());
        }
        if !line.is_empty() {
            say(&format!("expected an address that begins with {home}\n"));
        }
    }
    std::future::pending().await
}

/// The address, unless the issuer says in it that it refuses.
fn refused(address: String) -> Result<String, String> {
    let error = address
        .split(['?', '&'])
        .find_map(|pair| pair.strip_prefix("error="));
    match error {
        Some(error) => Err(format!("the issuer did not let you sign in: {error:.100}")),
        None => Ok(address),
    }
}

/// Opens a page in the browser of this machine, if it has one.
fn open_browser(page: &str) {
    let named = std::env::var_os("BROWSER").filter(|browser| !browser.is_empty());
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some());
    let Some(browser) = named.or_else(|| has_screen.then(|| "xdg-open".into())) else {
        return;
    };
    let mut command = Command::new(browser);
    command
        .arg(page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // The address is in the terminal, too.
    _ = command.spawn();
}

fn say(text: &str) {
    // Without a terminal it goes on all the same.
    _ = io::stdout().write_all(text.as_bytes());
    _ = io::stdout().flush();
}
