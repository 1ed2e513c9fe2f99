//! The options of the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use config::{AgentDoor, CallStyle, ToolFilter, suggestion};
use door::program::Options;

use crate::record::Record;
use crate::settings::{BudgetOverrides, Settings};

/// A language model that pursues a goal with the tools of a running ovos-tools
#[derive(Debug, Parser)]
#[command(
    name = "ovos-tools-agent",
    bin_name = "ovos-tools agent",
    version,
    after_help = "The model is any OpenAI-compatible endpoint: --url and --model, or service.doors.agent in mycroft.conf. It needs a \
                  bus and a service: `ovos-tools serve --embedded-bus auto` starts both. docs/agent.md has examples.\n\nExit codes: \
                  0 done, 1 given up, 2 wrong options or configuration, 3 no bus or service, 5 the record or the machine, 6 a replay \
                  differs from its record, 10 to 18 a \
                  budget is spent (steps, calls, time, tokens, failures, repeats, rotation, distance, battery), 20 emergency stop, 21 \
                  the user said stop, 22 a person ended it, 23 a person has taken over, 30 to 33 the model (unreachable, timeout, \
                  refused, unreadable)."
)]
pub(crate) struct Arguments {
    /// What to reach, in words
    #[arg(long, value_name = "TEXT", value_parser = words, required_unless_present_any = ["replay", "serve"])]
    pub(crate) goal: Option<String>,
    /// Wait for goals on the bus (ovos.tools.agent.run) instead
    #[arg(long, conflicts_with_all = ["goal", "replay", "record"])]
    pub(crate) serve: bool,
    /// Base URL of an OpenAI-compatible API [such as http://127.0.0.1:8080/v1]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Name of the model
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Longest time that the model may take for an answer, in seconds; a large model on a small machine may take minutes
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=3600))]
    model_timeout: Option<u32>,
    /// Run only tools that read; all other calls are only planned, and the model gets the plan. Stops are still real
    #[arg(long)]
    dry_run: bool,
    /// Write the record of the run to a new file, as lines of JSON
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Take the model's answers from a record, without a model; the calls are made again
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
    /// Maximum number of answers of the model
    #[arg(long, value_name = "N")]
    max_steps: Option<u32>,
    /// Maximum number of tool calls
    #[arg(long, value_name = "N")]
    max_calls: Option<u32>,
    /// Maximum time, in seconds
    #[arg(long, value_name = "S")]
    max_seconds: Option<u32>,
    /// Maximum number of tokens of the model
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// Maximum number of failures in a row
    #[arg(long, value_name = "N")]
    max_failures: Option<u32>,
    /// Maximum number of times that the same call is made in a row
    #[arg(long, value_name = "N")]
    max_repeats: Option<u32>,
    /// Maximum total rotation, in degrees
    #[arg(long, value_name = "DEG", value_parser = size)]
    max_rotation_deg: Option<f64>,
    /// Maximum total distance forward, in metres
    #[arg(long, value_name = "M", value_parser = size)]
    max_forward_m: Option<f64>,
    /// Minimum charge of the battery for motion, in percent
    #[arg(long, value_name = "PCT", value_parser = size)]
    min_battery_pct: Option<f64>,
    /// Offer only these tools, by name or `prefix*`
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    tools: Vec<String>,
    /// Hide these tools, by name or `prefix*`
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    without: Vec<String>,
    /// Hide these fields of results and of the state object from the model, such as dist_m
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    blank: Vec<String>,
    /// Show the model the plan of a call before it makes the call
    #[arg(long)]
    plan_preview: bool,
    /// Have the model write calls as lines of text (ReAct) instead of the API's tool calls
    #[arg(long)]
    text_calls: bool,
    /// Print only the end of the run, as a line of JSON; progress goes to stderr
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) options: Options,
}

/// Parses a text that says something.
fn words(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("expected what to reach, in words, such as \"bring the cup\"".to_owned());
    }
    Ok(text.to_owned())
}

/// Parses a number that can be a limit.
fn size(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok();
    let number = number.filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "expected a number of 0 or more".to_owned())
}

impl Arguments {
    /// Returns what is wrong with `--tools` and `--without`: an entry that stands for none of these tools.
    pub(crate) fn unknown_tools(&self, names: &[String]) -> Option<String> {
        let is_unknown = |pattern: &&String| {
            let filter = ToolFilter::only(pattern);
            !names.iter().any(|name| filter.permits(name))
        };
        let (option, unknown) = [("--tools", &self.tools), ("--without", &self.without)]
            .into_iter()
            .find_map(|(option, patterns)| Some((option, patterns.iter().find(is_unknown)?)))?;
        Some(format!(
            "{option} {unknown}: there is no such tool{}; expected names, or prefix*, of: {}",
            suggestion(unknown, names.iter().cloned()),
            names.join(", ")
        ))
    }

    /// Returns the settings of the run. Options take precedence over the configuration. A replay has the goal and the switches of
    /// its record.
    pub(crate) fn settings(&self, door: &AgentDoor, replayed: Option<&Record>) -> Settings {
        let mut settings = Settings {
            run_id: door::own_id("run"),
            goal: self.goal.clone().unwrap_or_default(),
            door: door.clone(),
            filters: vec![ToolFilter {
                allow: Some(self.tools.clone()).filter(|tools| !tools.is_empty()),
                deny: self.without.clone(),
            }],
            blank: self.blank.clone(),
            dry_run: self.dry_run,
            record: self.record.clone(),
        };
        if let Some(url) = &self.url {
            settings.door.url.clone_from(url);
        }
        if let Some(model) = &self.model {
            settings.door.model.clone_from(model);
        }
        if let Some(seconds) = self.model_timeout {
            settings.door.timeout = Duration::from_secs(u64::from(seconds));
        }
        if self.plan_preview {
            settings.door.plan_preview = true;
        }
        if self.text_calls {
            settings.door.calls = CallStyle::Text;
        }
        if let Some(record) = replayed {
            let start = &record.start;
            settings.goal.clone_from(&start.goal);
            // A record may come from another machine, so its budgets can only narrow those of this one.
            BudgetOverrides::of(&start.budgets).narrow(&mut settings.door.budgets);
            settings.dry_run |= start.dry_run;
            settings.switch(&start.ablations);
        }
        let seconds = self
            .max_seconds
            .map(|seconds| Duration::from_secs(u64::from(seconds)));
        let budgets = BudgetOverrides {
            steps: self.max_steps,
            calls: self.max_calls,
            time: seconds,
            tokens: self.max_tokens,
            failures: self.max_failures,
            repeats: self.max_repeats,
            rotation_deg: self.max_rotation_deg,
            forward_m: self.max_forward_m,
            battery_pct: self.min_battery_pct,
        };
        budgets.set(&mut settings.door.budgets);
        settings
    }
}
