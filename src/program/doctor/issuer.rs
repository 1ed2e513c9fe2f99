//! Checks the issuer at which clients of the MCP door sign in. Read [`check_issuer`].

use std::time::Duration;

use config::SignIn;
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Url;

use super::finding::Finding;

/// How long the issuer may take to accept a connection.
const WAIT: Duration = Duration::from_secs(2);

const PART: &str = "signing in";

/// Connects to the issuer, and sends nothing: the door checks what it answers. No finding without an issuer.
pub(super) async fn check_issuer(config: Option<&SignIn>) -> Option<Finding> {
    let config = config?;
    let (issuer, audience) = (&config.issuer, &config.public_url);
    if config.allow.is_empty() {
        return Some(Finding::limited(
            PART,
            format!("tokens of {issuer} may only stop: service.doors.mcp.sign_in.allow is empty"),
            "add who may come in: {\"subject\": \"SUB OF THE TOKEN\", \"principal\": \"door:ada\"} (docs/mcp.md)",
        ));
    }
    Some(match connect(issuer).await {
        Ok(()) => Finding::good(
            PART,
            format!("{issuer} can be reached; tokens have to be for {audience}"),
        ),
        Err(why) => Finding::broken(
            PART,
            format!("the issuer {issuer} cannot be reached: {why}; without its keys no client can sign in"),
            "start it, or correct service.doors.mcp.sign_in.issuer",
        ),
    })
}

async fn connect(issuer: &str) -> Result<(), String> {
    let url = Url::parse(issuer).map_err(|error| error.to_string())?;
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let port = url.port_or_known_default().unwrap_or(443);
    match timeout(WAIT, TcpStream::connect((host, port))).await {
        Ok(connected) => connected.map(drop).map_err(|error| error.to_string()),
        Err(_) => Err(format!("it does not answer within {} s", WAIT.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use config::{Allowed, Principal};

    use super::super::finding::State;
    use super::*;

    #[tokio::test]
    async fn an_issuer_that_is_away_and_a_door_that_lets_nobody_in_are_named() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let here = listener.local_addr().expect("it");
        let gone = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let away = gone.local_addr().expect("it");
        drop(gone);
        let ada = Allowed {
            subject: Some("ada".to_owned()),
            client: None,
            principal: Principal::parse("door:ada").expect("a principal"),
        };
        for (port, allow, state) in [
            (here.port(), vec![ada.clone()], State::Good),
            (here.port(), vec![], State::Limited),
            (away.port(), vec![ada], State::Broken),
        ] {
            let config = SignIn {
                issuer: format!("http://127.0.0.1:{port}/realm"),
                public_url: "https://robot.test/mcp".to_owned(),
                allow,
            };
            let found = check_issuer(Some(&config)).await.expect("a finding");
            assert_eq!(found.state, state, "{found:?}");
        }
        assert_eq!(check_issuer(None).await, None);
    }
}
