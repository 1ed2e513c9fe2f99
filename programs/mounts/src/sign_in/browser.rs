//! Signing in with a browser, which comes back to a port of this machine. Where it cannot, because it runs on another one, the address
//! at which it ended is pasted into the terminal. Read [`Callback`].

use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::person::{PATIENCE, Page, say};

/// The longest request of a browser that is read.
const LONGEST: usize = 16 << 10;

const DONE: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n\r\nSigned in. You can close this page.\n";
const ELSEWHERE: &str = "HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\n";

/// Where the browser comes back to.
pub(super) struct Callback {
    listener: TcpListener,
    /// Its address.
    pub(super) home: String,
}

impl Callback {
    /// Opens a port for the browser.
    ///
    /// # Errors
    /// There is none.
    pub(super) async fn open() -> Result<Self, String> {
        let none = |error| format!("no port for the browser: {error}");
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(none)?;
        let port = listener.local_addr().map_err(none)?.port();
        let home = format!("http://127.0.0.1:{port}/callback");
        Ok(Self { listener, home })
    }

    /// Shows a page to the person, and waits for the address at which the browser ends. `secret`: a variable that the browser does not get.
    ///
    /// # Errors
    /// The person or the issuer refuses, or the browser does not come back.
    pub(super) async fn visit(&self, page: &Page, secret: Option<&str>) -> Result<String, String> {
        say(&format!(
            "Open this page in a browser and sign in:\n\n  {}\n\nIf the browser is on another machine, it ends at a page that cannot \
             be shown: paste its address here.\n",
            page.as_str()
        ));
        page.open(secret);
        let came_back = timeout(PATIENCE, async {
            tokio::select! {
                address = from_browser(&self.listener, &self.home) => address,
                address = from_terminal(&self.home) => address,
            }
        });
        came_back.await.map_err(|_| {
            format!(
                "the browser did not come back within {} minutes; try again",
                PATIENCE.as_secs() / 60
            )
        })?
    }
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
