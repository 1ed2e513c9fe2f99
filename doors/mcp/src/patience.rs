//! How long clients wait for an answer. Pure.

use std::time::Duration;

use config::McpDoor;
use rmcp::RoleServer;
use rmcp::service::RequestContext;

/// How soon a client is answered of which nothing is known. The least patient that is known gives up after 5 s.
const USUAL: Duration = Duration::from_secs(4);

/// A host that is known to wait.
struct Host {
    /// The beginning of the name that its client has in the protocol, in lower case.
    client: &'static str,
    /// How soon it is answered, in seconds.
    within: u64,
}

/// The hosts that wait for longer. Each is answered well before it gives up.
///
/// | host | gives up after | source |
/// |---|---|---|
/// | Claude Desktop (`claude-ai`) | 60 s | github.com/anthropics/claude-code/issues/22542 |
/// | Claude Code | 60 s over HTTP, else `MCP_TOOL_TIMEOUT` | github.com/anthropics/claude-code/issues/47076 |
/// | Codex | `tool_timeout_sec`, 60 s at first, longer since | codex-rs, `DEFAULT_TOOL_TIMEOUT` |
/// | Gemini CLI | 600 s | gemini-cli, packages/core/src/tools/mcp-client.ts, `MCP_DEFAULT_TIMEOUT_MSEC` |
/// | LiveKit Agents; openai-agents (`mcp`) | 5 s | `client_session_timeout_seconds` of both |
/// | Home Assistant (`mcp`) | 10 s | homeassistant/components/mcp, `TIMEOUT` |
const HOSTS: [Host; 4] = [
    Host {
        client: "claude-ai",
        within: 45,
    },
    Host {
        client: "claude-code",
        within: 45,
    },
    Host {
        client: "codex-mcp-client",
        within: 45,
    },
    Host {
        client: "gemini-cli-mcp-client",
        within: 45,
    },
];

/// How soon the client of a request is answered, whether its call has ended or not.
pub(crate) fn patience(context: &RequestContext<RoleServer>, config: &McpDoor) -> Duration {
    let client = context.client_info();
    config
        .reply_within
        .unwrap_or_else(|| of_client(client.as_ref().map(|client| client.name.as_str())))
}

fn of_client(name: Option<&str>) -> Duration {
    let name = name.unwrap_or_default().to_ascii_lowercase();
    let row = HOSTS.iter().find(|host| name.starts_with(host.client));
    row.map_or(USUAL, |host| Duration::from_secs(host.within))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_that_are_known_to_wait_are_answered_late() {
        for (name, seconds) in [
            (None, 4),
            (Some("mcp"), 4),
            (Some("home-assistant"), 4),
            (Some("Claude-AI"), 45),
            (Some("claude-code"), 45),
            (Some("gemini-cli-mcp-client-ovos-tools"), 45),
            (Some("codex-mcp-client"), 45),
            (Some("my claude-code"), 4),
        ] {
            assert_eq!(of_client(name).as_secs(), seconds, "{name:?}");
        }
    }
}
