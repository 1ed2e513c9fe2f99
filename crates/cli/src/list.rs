//! `ovos-tools list`: lists the tools, or those that match some words, by toolbox.

use clap::Args;
use serde_json::Value;

use super::context::Context;
use super::error::CliError;
use super::paint::{Paint, Tone, count};
use super::tool_table::{ToolRow, tool_table};
use client::payload::{ListRequest, ToolEntry};
use client::topic;
use ovos_toolbox_wire::Effect;

/// Arguments of `list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools list
  ovos-tools list robot
  ovos-tools list --toolbox math
  ovos-tools list take photo
  ovos-tools list --effect motion --effect safe
  ovos-tools list --json | jq -r '.tools[].name'")]
pub struct Arguments {
    /// Only the tools that have each of these words in their toolbox id, name, description or category, in any case of
    /// letters
    #[arg(value_name = "WORD")]
    words: Vec<String>,
    /// Only the tools of this toolbox
    #[arg(long, value_name = "ID")]
    toolbox: Option<String>,
    /// Only the tools of this effect; may be repeated
    #[arg(long, value_name = "EFFECT", value_parser = effect)]
    effect: Vec<Effect>,
}

impl Arguments {
    fn selects(&self) -> bool {
        self.toolbox.is_some() || !self.words.is_empty() || !self.effect.is_empty()
    }

    /// Whether a tool passes the filters in the arguments.
    fn fits(&self, tool: &ToolEntry) -> bool {
        let meta = tool.meta.as_ref();
        let text = text_of(tool);
        self.toolbox.as_ref().is_none_or(|id| *id == tool.toolbox_id)
            && self.words.iter().all(|word| text.contains(&word.to_lowercase()))
            && (self.effect.is_empty() || meta.is_some_and(|meta| self.effect.contains(&meta.effect)))
    }
}

/// The text in which the words are looked for, in lower case.
fn text_of(tool: &ToolEntry) -> String {
    let category = tool.meta.as_ref().and_then(|meta| meta.category.as_deref());
    let text = [
        tool.toolbox_id.as_str(),
        tool.name.as_str(),
        tool.description.as_str(),
        category.unwrap_or_default(),
    ];
    text.join("\n").to_lowercase()
}

/// `; did you mean ...?` with the known name nearest to `wrong`, or nothing.
fn suggestion<'n>(wrong: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    let nearest = config::nearest(wrong, known.into_iter().map(str::to_owned));
    nearest.map_or_else(String::new, |name| format!("; did you mean {name:?}?"))
}

fn effect(text: &str) -> Result<Effect, String> {
    let known = Effect::ALL.into_iter().find(|effect| effect.as_str() == text);
    known.ok_or_else(|| {
        let names: Vec<&str> = Effect::ALL.iter().map(|effect| effect.as_str()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

pub(super) async fn run(arguments: &Arguments, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let wait = context.wait();
    let client = context.client().await?;
    let request = ListRequest {
        detail: true,
        ..ListRequest::default()
    };
    let mut answer = client.ask_all(topic::LIST, &request, wait).await?;
    context.refuse_error(&answer)?;
    let all = answer.read()?.tools;
    if let Some(wanted) = &arguments.toolbox
        && !all.iter().any(|tool| tool.toolbox_id == *wanted)
    {
        let mut toolbox_ids: Vec<String> = all.into_iter().map(|tool| tool.toolbox_id).collect();
        toolbox_ids.sort();
        toolbox_ids.dedup();
        let nearest = suggestion(wanted, toolbox_ids.iter().map(String::as_str));
        return Err(CliError::Refused(format!(
            "there is no toolbox `{wanted}` with tools{nearest}; there are: {}; see also `ovos-tools status`",
            super::paint::joined(&toolbox_ids)
        )));
    }
    let fits: Vec<bool> = all.iter().map(|tool| arguments.fits(tool)).collect();
    if arguments.selects() && !fits.contains(&true) {
        // A word that some tool has is not misspelt.
        let is_unknown = |word: &&String| {
            !all.iter()
                .any(|tool| text_of(tool).contains(&word.to_lowercase()))
        };
        let names = || {
            all.iter()
                .flat_map(|tool| [tool.toolbox_id.as_str(), tool.name.as_str()])
        };
        let nearest: String = arguments
            .words
            .iter()
            .filter(is_unknown)
            .map(|word| suggestion(word, names()))
            .collect();
        return Err(CliError::Refused(format!(
            "no tool matches ({} searched){nearest}; `ovos-tools list` shows all",
            count(all.len(), "tool", "tools")
        )));
    }
    if let Some(Value::Array(tools)) = answer.data.get_mut("tools") {
        let mut fits = fits.into_iter();
        tools.retain(|_| fits.next().unwrap_or(false));
    }
    let tools = answer.read()?.tools;
    context.output.result(&answer.data, |paint| render(&tools, paint))
}

fn render(tools: &[ToolEntry], paint: Paint) -> String {
    if tools.is_empty() {
        return "no tools: `ovos-tools status` shows the toolboxes that are starting, failed or off (`ovos-tools enable ID` turns \
                one on); to add one, put a plugin into a plugins folder (`ovos-tools config` shows plugins_dir), then \
                `ovos-tools reload`\n"
            .to_owned();
    }
    let mut ids: Vec<&str> = tools.iter().map(|tool| tool.toolbox_id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    let groups = ids.into_iter().map(|id| {
        let tools: Vec<&ToolEntry> = tools.iter().filter(|tool| tool.toolbox_id == id).collect();
        let rows = tools.iter().map(|tool| ToolRow {
            name: &tool.name,
            effect: tool.meta.as_ref().map(|meta| (meta.effect, meta.audience)),
            argument_schema: &tool.argument_schema,
            description: &tool.description,
        });
        format!(
            "{} ({})\n{}",
            paint.tone(Tone::Strong, id),
            count(tools.len(), "tool", "tools"),
            tool_table(rows, paint)
        )
    });
    groups.collect::<Vec<_>>().join("\n")
}
