//! `ovos-tools mcp config`: the entry of the door in the configuration of an MCP client.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

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
}

/// A client whose configuration is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Host {
    /// Claude Desktop; for Claude Code the command is printed, too
    Claude,
    /// Visual Studio Code
    Vscode,
    /// Cursor
    Cursor,
}

/// Why the entry was not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostError {
    #[error("{what} {}: {cause}", path.display())]
    File {
        what: &'static str,
        path: PathBuf,
        cause: io::Error,
    },
    #[error("{} is no JSON object ({cause}): put the entry in by hand, without --write", path.display())]
    NoJson { path: PathBuf, cause: String },
    #[error("the home directory is not known: set HOME, or name the client's file with --file")]
    NoHome,
}

impl Host {
    /// The usual file, below the home directory.
    fn file(self) -> &'static str {
        match self {
            Self::Claude => ".config/Claude/claude_desktop_config.json",
            Self::Vscode => ".config/Code/User/mcp.json",
            Self::Cursor => ".cursor/mcp.json",
        }
    }

    /// The key that holds the entries.
    fn key(self) -> &'static str {
        match self {
            Self::Vscode => "servers",
            Self::Claude | Self::Cursor => "mcpServers",
        }
    }

    fn entry(self, program: &Path, arguments: &[String]) -> Value {
        let program = program.to_string_lossy();
        match self {
            Self::Vscode => json!({"type": "stdio", "command": program, "args": arguments}),
            Self::Claude | Self::Cursor => json!({"command": program, "args": arguments}),
        }
    }
}

/// Writes the entry, or prints it. `before` are the arguments that the door needs before its own.
pub(crate) fn run(
    arguments: &Arguments,
    program: &Path,
    before: &[String],
    home: Option<&Path>,
) -> Result<String, HostError> {
    let host = arguments.client;
    let usual = || home.map(|home| home.join(host.file())).ok_or(HostError::NoHome);
    let file = arguments.file.clone().map_or_else(usual, Ok)?;
    let entry = host.entry(program, before);
    if arguments.write {
        write(host, &file, entry)?;
        return Ok(format!(
            "{} has the entry \"{ENTRY}\" now; restart the client\n",
            file.display()
        ));
    }
    let whole = json!({host.key(): {ENTRY: entry}});
    let mut text = format!("{whole:#}\n");
    if host == Host::Claude {
        let words: Vec<String> = before.iter().map(|word| quoted(word)).collect();
        let program = quoted(&program.to_string_lossy());
        text = format!(
            "{text}\nThat is for {} (or: --write). For Claude Code:\n  claude mcp add {ENTRY} -- {}\n",
            file.display(),
            [vec![program], words].concat().join(" ")
        );
    } else {
        text = format!("{text}\nThat is for {} (or: --write).\n", file.display());
    }
    Ok(text)
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Puts the entry into the file. The other contents of the file stay.
fn write(host: Host, path: &Path, entry: Value) -> Result<(), HostError> {
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
        Ok(_) => return Err(no_json("it is another value")),
        Err(error) => return Err(no_json(&error.to_string())),
    };
    match whole.entry(host.key()).or_insert_with(|| json!({})) {
        Value::Object(entries) => _ = entries.insert(ENTRY.to_owned(), entry),
        _ => return Err(no_json(&format!("its {} is no object", host.key()))),
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(failed("make the folder of"))?;
    // The new file is written beside the old one and then renamed, so that the client never reads half of it.
    let beside = path.with_extension("json.new");
    let written = fs::File::create(&beside).and_then(|mut file| {
        if let Ok(metadata) = fs::metadata(path) {
            file.set_permissions(metadata.permissions())?;
        }
        writeln!(file, "{:#}", Value::Object(whole))?;
        file.sync_all()
    });
    written
        .and_then(|()| fs::rename(&beside, path))
        .map_err(failed("write"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(host: Host, write: bool, home: &Path) -> Result<String, HostError> {
        let arguments = Arguments {
            client: host,
            write,
            file: None,
        };
        let before = ["--bus".to_owned(), "ws://h:1/c".to_owned()];
        run(
            &arguments,
            Path::new("/opt/a b/ovos-tools-mcp"),
            &before,
            Some(home),
        )
    }

    fn json_of(path: &Path) -> Value {
        serde_json::from_str(&fs::read_to_string(path).expect("a file")).expect("JSON")
    }

    #[test]
    fn the_entry_is_what_each_client_reads() {
        let home = tempfile::tempdir().expect("a folder");
        let plain = json!({"command": "/opt/a b/ovos-tools-mcp", "args": ["--bus", "ws://h:1/c"]});
        for (host, key, file) in [
            (
                Host::Claude,
                "mcpServers",
                ".config/Claude/claude_desktop_config.json",
            ),
            (Host::Cursor, "mcpServers", ".cursor/mcp.json"),
            (Host::Vscode, "servers", ".config/Code/User/mcp.json"),
        ] {
            let mut entry = plain.clone();
            if host == Host::Vscode {
                entry["type"] = json!("stdio");
            }
            let text = said(host, false, home.path()).expect("a text");
            let (shown, _) = text.split_once("\nThat is for").expect("advice");
            assert_eq!(
                serde_json::from_str::<Value>(shown).expect("JSON"),
                json!({key: {ENTRY: entry}})
            );
            let path = home.path().join(file);
            assert!(!path.exists());
            said(host, true, home.path()).expect("it is written");
            assert_eq!(json_of(&path), json!({key: {ENTRY: entry}}));
        }
        let text = said(Host::Claude, false, home.path()).expect("a text");
        let command = "claude mcp add ovos-tools -- '/opt/a b/ovos-tools-mcp' --bus ws://h:1/c";
        assert!(text.contains(command), "{text}");
    }

    #[test]
    fn what_else_stands_in_the_file_stays() {
        let home = tempfile::tempdir().expect("a folder");
        let path = home.path().join(".cursor/mcp.json");
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let before = json!({"x": 1, "mcpServers": {"other": {"url": "http://o"}, ENTRY: {"command": "old"}}});
        fs::write(&path, before.to_string()).expect("a file");
        said(Host::Cursor, true, home.path()).expect("it is written");
        let after = json_of(&path);
        assert_eq!(
            (&after["x"], &after["mcpServers"]["other"]),
            (&json!(1), &json!({"url": "http://o"}))
        );
        assert_eq!(after["mcpServers"][ENTRY]["args"][0], "--bus");

        for text in ["// a comment\n{}", "[1]", "{\"mcpServers\": 3}"] {
            fs::write(&path, text).expect("a file");
            let error = said(Host::Cursor, true, home.path()).expect_err("it is left alone");
            assert!(error.to_string().contains("by hand"), "{error}");
            assert_eq!(fs::read_to_string(&path).expect("a file"), text);
        }
    }
}
