//! `ovos-tools config`: the configuration in force, and which file each value came from.

use clap::Args;
use serde_json::{Value, json};
use url::Url;

use ::bus::shown;
use ::config::{Backend, Config, Decide, LayerKind, LayerState, Setting};
use cli::{Cell, CliError, Context, Paint, Tone, plain};
use ovos_tools::policy::{RuleNumber, built_in};

/// The text that replaces a secret.
const HIDDEN: &str = "(hidden)";

/// Arguments of `config`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools config
  ovos-tools config --all
  ovos-tools config --json | jq .policy
  ovos-tools config --config ./mycroft.conf --json | jq '.settings[] | select(.origin != \"default\")'

Reads the files as `serve` would; a running service may have read them earlier (`ovos-tools status` shows what is not applied \
yet). Values whose keys look like secrets are hidden.")]
pub(crate) struct Arguments {
    /// Also list the files that do not exist
    #[arg(long)]
    all: bool,
    /// Show secrets
    #[arg(long)]
    show_secrets: bool,
}

pub(super) fn run(arguments: &Arguments, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let config = context.config()?;
    let settings: Vec<Setting> = config
        .settings()
        .map(|setting| {
            let mut setting = setting.clone();
            if !arguments.show_secrets {
                let last = setting.key.rsplit('.').next().unwrap_or_default().to_owned();
                hide(&last, &mut setting.value);
                if let Some(url) = setting.value.as_str().and_then(|text| Url::parse(text).ok()) {
                    setting.value = match url.password() {
                        Some(_) => shown(&url).into(),
                        None => setting.value,
                    };
                }
            }
            setting
        })
        .collect();
    let wrong: Vec<(&String, String)> = config
        .section_errors()
        .map(|(id, error)| (id, error.to_string()))
        .collect();
    let data = json!({
        "settings": settings,
        "policy": {"configured": config.service.policy, "built_in": built_in(config.service.operator_tools)},
        "files": config.stack().layers().iter().map(|layer| json!({
            "path": layer.path,
            "kind": kind(layer.kind),
            "state": state(layer.state),
        })).collect::<Vec<_>>(),
        "notices": config.notices.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "errors": wrong.iter().map(|(id, error)| json!({"toolbox_id": id, "error": error})).collect::<Vec<_>>(),
    });
    context
        .output
        .result(&data, |paint| render(&config, &settings, arguments.all, paint))?;
    if wrong.is_empty() {
        return Ok(());
    }
    let errors: Vec<String> = wrong.into_iter().map(|(_, error)| error).collect();
    Err(CliError::Usage(errors.join("\n")))
}

fn render(config: &Config, settings: &[Setting], all: bool, paint: Paint) -> String {
    let rows = settings.iter().map(|setting| {
        let origin = setting.origin.to_string();
        let origin = if origin == "default" {
            Cell::toned(Tone::Dim, origin)
        } else {
            origin.into()
        };
        vec![
            setting.key.as_str().into(),
            setting.value.to_string().into(),
            origin,
        ]
    });
    let mut text = paint.table(&["KEY", "VALUE", "FROM"], rows);
    text.push('\n');
    text += &rules(config, paint);
    let layers = config.stack().layers().iter();
    let rows = layers
        .filter(|layer| all || layer.state != LayerState::Absent)
        .map(|layer| {
            let tone = match layer.state {
                LayerState::Broken => Tone::Bad,
                LayerState::Read => Tone::Good,
                LayerState::Absent | LayerState::Disabled => Tone::Dim,
            };
            vec![
                layer.path.display().to_string().into(),
                kind(layer.kind).into(),
                Cell::toned(tone, state(layer.state)),
            ]
        });
    let rows: Vec<Vec<Cell>> = rows.collect();
    text.push('\n');
    if rows.is_empty() {
        text += "no file of the mycroft.conf stack exists; --all shows where they are looked for\n";
    } else {
        text += &paint.table(&["FILE (the later one wins)", "WHOSE", "STATE"], rows);
    }
    for notice in &config.notices {
        text += &format!(
            "{} {}\n",
            paint.tone(Tone::Warning, "note:"),
            plain(&notice.to_string())
        );
    }
    text
}

/// Describes who may call which tools: the configured rules, then the built-in ones.
fn rules(config: &Config, paint: Paint) -> String {
    let built_in = built_in(config.service.operator_tools);
    let configured = (1..).map(RuleNumber::Configured).zip(&config.service.policy);
    let built_in = (1..).map(RuleNumber::BuiltIn).zip(&built_in);
    let rows = configured.chain(built_in).map(|(place, rule)| {
        let list =
            |words: Option<Vec<String>>| Cell::from(words.map_or("any".to_owned(), |words| words.join(", ")));
        let who = rule.who.as_ref();
        let effects = rule.effects.as_ref();
        let backend = rule.backend.map(|backend| match backend {
            Backend::Simulated => vec!["simulated".to_owned()],
            Backend::Hardware => vec!["hardware".to_owned()],
        });
        let tone = match rule.decide {
            Decide::Allow => Tone::Good,
            Decide::Confirm => Tone::Warning,
            Decide::Deny => Tone::Bad,
        };
        vec![
            place.to_string().into(),
            list(who.map(|who| who.iter().map(ToString::to_string).collect())),
            list(rule.tools.clone()),
            list(effects.map(|effects| effects.iter().map(|effect| effect.as_str().to_owned()).collect())),
            list(backend),
            Cell::toned(tone, rule.decide.as_str()),
            rule.reason.as_deref().unwrap_or("").into(),
        ]
    });
    let head = [
        "POLICY (the first that matches decides)",
        "WHO",
        "TOOLS",
        "EFFECTS",
        "BACKEND",
        "DECIDES",
        "REASON",
    ];
    paint.table(&head, rows)
}

fn kind(kind: LayerKind) -> &'static str {
    match kind {
        LayerKind::Default => "default",
        LayerKind::Distribution => "distribution",
        LayerKind::System => "system",
        LayerKind::Assistant => "assistant",
        LayerKind::User => "user",
        LayerKind::Given => "--config",
    }
}

fn state(state: LayerState) -> &'static str {
    match state {
        LayerState::Absent => "absent",
        LayerState::Read => "read",
        LayerState::Broken => "broken, skipped",
        LayerState::Disabled => "disabled by system.disable_user_config",
    }
}

/// Hides the value if its key names a secret, and such values inside it.
fn hide(key: &str, value: &mut Value) {
    let key = key.to_ascii_lowercase();
    let names = |words: &[&str]| words.iter().any(|word| key.contains(word));
    let secret = names(&[
        "password",
        "passwd",
        "secret",
        "token",
        "api_key",
        "apikey",
        "api-key",
        "authorization",
    ]);
    match value {
        Value::Null | Value::Bool(_) => {}
        // The key counts tokens and has no secret.
        Value::Number(_) if secret && names(&["tokens"]) => {}
        // Endpoints take their keys in headers of any name.
        Value::Object(headers) if key == "headers" => {
            headers.values_mut().for_each(|text| *text = HIDDEN.into());
        }
        value if secret => *value = HIDDEN.into(),
        Value::Object(map) => map.iter_mut().for_each(|(key, value)| hide(key, value)),
        Value::Array(list) => list.iter_mut().for_each(|value| hide("", value)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_wherever_they_stand() {
        for (key, value, shown) in [
            ("API_KEY", json!("x"), json!(HIDDEN)),
            ("mqtt_password", json!(5), json!(HIDDEN)),
            ("secrets", json!(["x"]), json!(HIDDEN)),
            (
                "env",
                json!({"HUB_TOKEN": "x", "PATH": "/bin"}),
                json!({"HUB_TOKEN": HIDDEN, "PATH": "/bin"}),
            ),
            (
                "hubs",
                json!([{"token": "x", "port": 1}]),
                json!([{"token": HIDDEN, "port": 1}]),
            ),
            ("token", json!(null), json!(null)),
            ("tokens", json!(200_000), json!(200_000)),
            ("answer_tokens", json!(0), json!(0)),
            ("tokens", json!("x"), json!(HIDDEN)),
            (
                "headers",
                json!({"x-team": "a", "Cookie": "b"}),
                json!({"x-team": HIDDEN, "Cookie": HIDDEN}),
            ),
            ("authorization", json!("Bearer x"), json!(HIDDEN)),
            ("x-api-key", json!("x"), json!(HIDDEN)),
            ("port", json!(14540), json!(14540)),
        ] {
            let mut found = value;
            hide(key, &mut found);
            assert_eq!(found, shown, "{key}");
        }
    }
}
