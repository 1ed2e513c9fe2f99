//! `ovos-tools mcp config`: the entry of the door in the configuration of an MCP client.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use config::write_atomically;

/// The name of the entry.
const ENTRY: &str = "ovos-tools";

/// Arguments of `config`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The client
    client: Host,
    /// Write the entry into the client's file; everything else in it stays
    #[arg(long)]
    write: bool,
    /// The client's file, instead of the usual one
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The entry of a door over HTTP, by its URL [such as http://127.0.0.1:8765/mcp]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

/// A client whose configuration is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Host {
    /// Claude Desktop
    Claude,
    /// Claude Code
    ClaudeCode,
    /// Visual Studio Code
    Vscode,
    /// Cursor
    Cursor,
    /// Gemini CLI
    Gemini,
    /// Codex CLI
    Codex,
    /// Windsurf
    Windsurf,
    /// Home Assistant
    HomeAssistant,
}

/// How a client reaches the door.
enum Way<'a> {
    /// The client starts it.
    Stdio {
        program: &'a str,
        arguments: &'a [String],
    },
    /// It listens, and wants the token if there is one.
    Http { url: &'a str, token: Option<&'a str> },
}

/// Why the entry was not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostError {
    #[error("cannot {what} {}: {cause}", path.display())]
    File {
        what: &'static str,
        path: PathBuf,
        cause: io::Error,
    },
    #[error("{} cannot be edited ({cause}): run this without --write and add the entry by hand", path.display())]
    NoJson { path: PathBuf, cause: String },
    #[error("the home directory is not known: set HOME, or name the client's file with --file")]
    NoHome,
    #[error(
        "ovos-tools does not write this client's configuration: run this without --write and follow what it prints"
    )]
    ByHand,
}

impl Host {
    /// The usual file, below the home directory. `None` where there is none that a program may write.
    fn file(self) -> Option<&'static str> {
        Some(match self {
            Self::Claude => ".config/Claude/claude_desktop_config.json",
            Self::ClaudeCode => ".claude.json",
            Self::Vscode => ".config/Code/User/mcp.json",
            Self::Cursor => ".cursor/mcp.json",
            Self::Gemini => ".gemini/settings.json",
            Self::Windsurf => ".codeium/windsurf/mcp_config.json",
            Self::Codex | Self::HomeAssistant => return None,
        })
    }

    /// The key that holds the entries.
    fn key(self) -> &'static str {
        match self {
            Self::Vscode => "servers",
            _ => "mcpServers",
        }
    }

    fn entry(self, way: &Way<'_>) -> Value {
        let mut entry = match (self, way) {
            // It starts programs only; this one speaks HTTP for it.
            (Self::Claude, Way::Http { url, token }) => {
                let mut arguments = vec!["-y".to_owned(), "mcp-remote".to_owned(), (*url).to_owned()];
                if let Some(token) = token {
                    arguments.extend(["--header".to_owned(), format!("Authorization: Bearer {token}")]);
                }
                return json!({"command": "npx", "args": arguments});
            }
            (Self::Vscode | Self::ClaudeCode, Way::Stdio { .. }) => json!({"type": "stdio"}),
            (Self::Vscode | Self::ClaudeCode, Way::Http { .. }) => json!({"type": "http"}),
            _ => json!({}),
        };
        match way {
            Way::Stdio { program, arguments } => {
                entry["command"] = json!(program);
                entry["args"] = json!(arguments);
            }
            Way::Http { url, token } => {
                let key = match self {
                    Self::Gemini => "httpUrl",
                    Self::Windsurf => "serverUrl",
                    _ => "url",
                };
                entry[key] = json!(url);
                if let Some(token) = token {
                    entry["headers"] = json!({"Authorization": format!("Bearer {token}")});
                }
            }
        }
        entry
    }

    /// What to do for this client by hand, or beside its file.
    fn by_hand(self, way: &Way<'_>) -> Option<String> {
        match (self, way) {
            (Self::ClaudeCode, Way::Stdio { program, arguments }) => {
                Some(format!("claude mcp add {ENTRY} -- {}", line(program, arguments)))
            }
            (Self::ClaudeCode, Way::Http { url, token }) => {
                let header = token.map(|token| format!(" --header {}", quoted(&format!("Authorization: Bearer {token}"))));
                let header = header.unwrap_or_default();
                Some(format!("claude mcp add --transport http {ENTRY} {}{header}", quoted(url)))
            }
            (Self::Codex, Way::Stdio { program, arguments }) => {
                let entry = format!(
                    "[mcp_servers.{ENTRY}]\ncommand = {}\nargs = {}\n",
                    json!(program),
                    json!(arguments)
                );
                Some(format!(
                    "{entry}\nThat is for ~/.codex/config.toml. Or:\n  codex mcp add {ENTRY} -- {}",
                    line(program, arguments)
                ))
            }
            (Self::Codex, Way::Http { url, token }) => {
                let mut entry = format!("[mcp_servers.{ENTRY}]\nurl = {}\n", json!(url));
                if let Some(token) = token {
                    let header = json!(format!("Bearer {token}"));
                    entry.push_str(&format!("http_headers = {{ Authorization = {header} }}\n"));
                }
                Some(format!("{entry}\nThat is for ~/.codex/config.toml."))
            }
            (Self::HomeAssistant, Way::Http { url, token: None }) => Some(format!(
                "In Home Assistant: Settings, Devices & services, Add integration, Model Context Protocol; the URL is\n  {url}"
            )),
            (Self::HomeAssistant, Way::Http { url, token: Some(_) }) => Some(format!(
                "Home Assistant signs in to MCP servers by OAuth only, and cannot send the token of this door. Let the door listen \
                 without one on a loopback address of the same machine (service.doors.mcp.http_token: false), then in Home \
                 Assistant: Settings, Devices & services, Add integration, Model Context Protocol; the URL is\n  {url}"
            )),
            (Self::HomeAssistant, Way::Stdio { .. }) => Some(
                "Home Assistant starts no programs: let the door listen (ovos-tools mcp --http 127.0.0.1:8765), and call this \
                 again with --url http://127.0.0.1:8765/mcp"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

/// Writes the entry, or prints it. `before` are the arguments that the door needs before its own, `token` the token that clients
/// over HTTP have to send.
pub(crate) fn run(
    arguments: &Arguments,
    program: &Path,
    before: &[String],
    token: Option<&str>,
    home: Option<&Path>,
) -> Result<String, HostError> {
    let host = arguments.client;
    let program = program.to_string_lossy();
    let way = match &arguments.url {
        Some(url) => Way::Http { url, token },
        None => Way::Stdio {
            program: &program,
            arguments: before,
        },
    };
    let by_hand = host.by_hand(&way);
    let Some(usual) = host.file() else {
        return match by_hand {
            Some(text) if !arguments.write => Ok(format!("{text}\n")),
            _ => Err(HostError::ByHand),
        };
    };
    let file = match (&arguments.file, home) {
        (Some(file), _) => file.clone(),
        (None, Some(home)) => home.join(usual),
        (None, None) => return Err(HostError::NoHome),
    };
    let entry = host.entry(&way);
    if arguments.write {
        write(host, &file, entry)?;
        return Ok(format!(
            "added \"{ENTRY}\" to {}; restart the client\n",
            file.display()
        ));
    }
    let whole = json!({host.key(): {ENTRY: entry}});
    let mut text = format!("{whole:#}\n\nThat is for {} (or: --write).\n", file.display());
    if let Some(by_hand) = by_hand {
        text.push_str(&format!("Or:\n  {by_hand}\n"));
    }
    Ok(text)
}

/// A command as it is typed.
fn line(program: &str, arguments: &[String]) -> String {
    let words = std::iter::once(program).chain(arguments.iter().map(String::as_str));
    words.map(quoted).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Puts the entry into the file. The other contents of the file stay, and so does a link to it.
fn write(host: Host, path: &Path, entry: Value) -> Result<(), HostError> {
    let target = fs::canonicalize(path);
    let path = target.as_deref().unwrap_or(path);
    let failed = |what| {
        move |cause| HostError::File {
            what,
            path: path.to_owned(),
            cause,
        }
    };
    let no_json = |cause: &str| HostError::NoJson {
        path: path.to_owned(),
        cause: cause.to_owned(),
    };
    let text = match fs::read_to_string(path) {
        Ok(text) if text.trim().is_empty() => "{}".to_owned(),
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => "{}".to_owned(),
        Err(error) => return Err(failed("read")(error)),
    };
    let mut whole: Map<String, Value> = match serde_json::from_str(&text) {
        Ok(Value::Object(whole)) => whole,
        Ok(_) => return Err(no_json("it is not a JSON object")),
        Err(error) => return Err(no_json(&format!("it is not valid JSON: {error}"))),
    };
    match whole.entry(host.key()).or_insert_with(|| json!({})) {
        Value::Object(entries) => _ = entries.insert(ENTRY.to_owned(), entry),
        _ => return Err(no_json(&format!("its {} is not an object", host.key()))),
    }
    let permissions = fs::metadata(path).map(|metadata| metadata.permissions()).ok();
    let text = format!("{:#}\n", Value::Object(whole));
    write_atomically(path, text.as_bytes(), permissions).map_err(failed("write"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configured(host: Host, write: bool, home: &Path) -> Result<String, HostError> {
        of(host, write, None, None, home)
    }

    fn of(
        host: Host,
        write: bool,
        url: Option<&str>,
        token: Option<&str>,
        home: &Path,
    ) -> Result<String, HostError> {
        let arguments = Arguments {
            client: host,
            write,
            file: None,
            url: url.map(str::to_owned),
        };
        let before = ["--bus".to_owned(), "ws://h:1/c".to_owned()];
        let program = Path::new("/opt/a b/ovos-tools-mcp");
        run(&arguments, program, &before, token, Some(home))
    }

    fn json_of(path: &Path) -> Value {
        serde_json::from_str(&fs::read_to_string(path).expect("a file")).expect("JSON")
    }

    #[test]
    fn the_entry_is_what_each_client_reads() {
        let program = json!({"command": "/opt/a b/ovos-tools-mcp", "args": ["--bus", "ws://h:1/c"]});
        let typed = |kind: &str, mut entry: Value| {
            entry["type"] = json!(kind);
            entry
        };
        let at = |key: &str| json!({key: "http://r:1/mcp", "headers": {"Authorization": "Bearer t"}});
        let remote = json!({"command": "npx", "args": ["-y", "mcp-remote", "http://r:1/mcp", "--header",
            "Authorization: Bearer t"]});
        for (host, key, file, stdio, http) in [
            (
                Host::Claude,
                "mcpServers",
                ".config/Claude/claude_desktop_config.json",
                program.clone(),
                remote,
            ),
            (
                Host::ClaudeCode,
                "mcpServers",
                ".claude.json",
                typed("stdio", program.clone()),
                typed("http", at("url")),
            ),
            (
                Host::Vscode,
                "servers",
                ".config/Code/User/mcp.json",
                typed("stdio", program.clone()),
                typed("http", at("url")),
            ),
            (
                Host::Cursor,
                "mcpServers",
                ".cursor/mcp.json",
                program.clone(),
                at("url"),
            ),
            (
                Host::Gemini,
                "mcpServers",
                ".gemini/settings.json",
                program.clone(),
                at("httpUrl"),
            ),
            (
                Host::Windsurf,
                "mcpServers",
                ".codeium/windsurf/mcp_config.json",
                program.clone(),
                at("serverUrl"),
            ),
        ] {
            for (url, entry) in [(None, stdio), (Some("http://r:1/mcp"), http)] {
                let home = tempfile::tempdir().expect("a folder");
                let of = |write| of(host, write, url, Some("t"), home.path());
                let text = of(false).expect("a text");
                let (shown, _) = text.split_once("\nThat is for").expect("advice");
                assert_eq!(
                    serde_json::from_str::<Value>(shown).expect("JSON"),
                    json!({key: {ENTRY: entry}})
                );
                let path = home.path().join(file);
                assert!(!path.exists());
                of(true).expect("it is written");
                assert_eq!(json_of(&path), json!({key: {ENTRY: entry}}));
            }
        }
    }

    #[test]
    fn what_is_done_by_hand_is_said() {
        let home = tempfile::tempdir().expect("a folder");
        let url = Some("http://r:1/mcp");
        for (host, url, token, expected) in [
            (
                Host::ClaudeCode,
                None,
                None,
                "claude mcp add ovos-tools -- '/opt/a b/ovos-tools-mcp' --bus ws://h:1/c",
            ),
            (
                Host::ClaudeCode,
                url,
                Some("t"),
                "claude mcp add --transport http ovos-tools http://r:1/mcp --header 'Authorization: Bearer t'",
            ),
            (
                Host::Codex,
                None,
                None,
                "[mcp_servers.ovos-tools]\ncommand = \"/opt/a b/ovos-tools-mcp\"\nargs = [\"--bus\",\"ws://h:1/c\"]\n",
            ),
            (
                Host::Codex,
                url,
                Some("t"),
                "url = \"http://r:1/mcp\"\nhttp_headers = { Authorization = \"Bearer t\" }",
            ),
            (Host::HomeAssistant, url, None, "the URL is\n  http://r:1/mcp"),
            (Host::HomeAssistant, url, Some("t"), "by OAuth only"),
            (Host::HomeAssistant, None, None, "starts no programs"),
        ] {
            let text = of(host, false, url, token, home.path()).expect("a text");
            assert!(text.contains(expected), "{text}");
        }
        for host in [Host::Codex, Host::HomeAssistant] {
            let error = configured(host, true, home.path()).expect_err("there is no such file");
            assert!(error.to_string().contains("without --write"), "{error}");
        }
    }

    #[test]
    fn a_link_to_the_file_stays_a_link() {
        let home = tempfile::tempdir().expect("a folder");
        let (link, real) = (
            home.path().join(".cursor/mcp.json"),
            home.path().join("dotfiles.json"),
        );
        fs::create_dir_all(link.parent().expect("a folder")).expect("a folder");
        fs::write(&real, "{\"x\": 1}").expect("a file");
        std::os::unix::fs::symlink(&real, &link).expect("a link");
        configured(Host::Cursor, true, home.path()).expect("it is written");
        assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
        let after = json_of(&real);
        assert_eq!(
            (&after["x"], &after["mcpServers"][ENTRY]["args"][0]),
            (&json!(1), &json!("--bus"))
        );
    }

    #[test]
    fn what_else_stands_in_the_file_stays() {
        let home = tempfile::tempdir().expect("a folder");
        let path = home.path().join(".cursor/mcp.json");
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let before = json!({"x": 1, "mcpServers": {"other": {"url": "http://o"}, ENTRY: {"command": "old"}}});
        fs::write(&path, before.to_string()).expect("a file");
        configured(Host::Cursor, true, home.path()).expect("it is written");
        let after = json_of(&path);
        assert_eq!(
            (&after["x"], &after["mcpServers"]["other"]),
            (&json!(1), &json!({"url": "http://o"}))
        );
        assert_eq!(after["mcpServers"][ENTRY]["args"][0], "--bus");

        for text in ["// a comment\n{}", "[1]", "{\"mcpServers\": 3}"] {
            fs::write(&path, text).expect("a file");
            let error = configured(Host::Cursor, true, home.path()).expect_err("it is left alone");
            assert!(error.to_string().contains("by hand"), "{error}");
            assert_eq!(fs::read_to_string(&path).expect("a file"), text);
        }
    }
}
