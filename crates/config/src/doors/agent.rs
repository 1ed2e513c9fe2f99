//! The keys of the agent, `service.doors.agent`: which model it asks, what it shows to the model, and the limits of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use section::fields::{Millis, Whole, checked, texts, word};
use serde::{Deserialize, Deserializer, Serialize};
use url::Url;

use super::toolset::{Toolset, at};
use crate::reader::Reader;

/// `service.doors.agent`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentDoor {
    /// Which tools the model may call.
    #[serde(skip)]
    pub toolset: Toolset,
    /// The limits of a run.
    #[serde(skip)]
    pub budgets: AgentBudgets,
    /// Whether the service starts the door, watches it, and ends it with itself.
    pub start: bool,
    /// The base URL of an OpenAI-compatible API; `/chat/completions` is added to it.
    #[serde(deserialize_with = "http_url")]
    pub url: String,
    /// The name of the model, as the endpoint knows it.
    pub model: String,
    /// The name of the environment variable that holds the key; without a name no key is sent.
    #[serde(deserialize_with = "variable")]
    pub key_env: String,
    /// Headers of each request, in addition to the standard ones.
    #[serde(deserialize_with = "headers")]
    pub headers: BTreeMap<String, String>,
    /// How long one answer of the model may take.
    #[serde(rename = "timeout_ms", with = "Millis::<100, 3_600_000>")]
    pub timeout: Duration,
    /// How often a request that failed for a reason that may pass (no connection, HTTP 429 or 5xx) is sent again.
    #[serde(with = "Whole::<0, 20>")]
    pub retries: u32,
    /// The `max_tokens` of a request, which limits the answer; 0 leaves the limit to the endpoint.
    #[serde(with = "Whole::<0, 1_000_000>")]
    pub answer_tokens: u32,
    /// The `temperature` of a request; `null` leaves it to the endpoint.
    #[serde(deserialize_with = "temperature")]
    pub temperature: Option<f64>,
    /// Whether the model accepts pictures. If so, the pictures that tools return are sent to it.
    pub vision: bool,
    /// How the model calls tools: `native`, with the `tool_calls` of the API, or `text`, as lines of text (ReAct).
    #[serde(deserialize_with = "word")]
    pub calls: CallStyle,
    /// The size of the list of tools, in bytes of JSON, above which the model gets `find_tools` and `call_tool` instead.
    #[serde(with = "Whole::<0, 16_777_216>")]
    pub tools_budget_bytes: usize,
    /// The largest result of a tool that the model sees whole, in bytes. Of a larger result it sees the beginning.
    #[serde(with = "Whole::<256, 1_048_576>")]
    pub result_bytes: usize,
    /// The largest conversation, in bytes. If it grows larger, the oldest results are left out.
    #[serde(with = "Whole::<4096, 67_108_864>")]
    pub history_bytes: usize,
    /// The `read` tools without arguments that the agent calls before each step. Their results make the state object.
    #[serde(deserialize_with = "texts")]
    pub state_tools: Vec<String>,
    /// Whether the model has the tool `preview_plan`, which shows the plan of a call before the model makes the call.
    pub plan_preview: bool,
    /// Text for the model, placed after the agent's own instructions.
    pub instructions: String,
}

/// How a model calls tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStyle {
    /// With `tool_calls` of the API.
    Native,
    /// With `Action:` and `Action Input:` in the text of an answer.
    Text,
}

/// `service.doors.agent.budgets`: a run ends when any of them is spent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentBudgets {
    /// The number of the model's answers.
    #[serde(with = "Whole::<1, 10_000>")]
    pub steps: u32,
    /// The number of tool calls.
    #[serde(with = "Whole::<1, 100_000>")]
    pub calls: u32,
    /// The number of calls in one answer; the agent does not make the calls beyond it.
    #[serde(with = "Whole::<1, 64>")]
    pub calls_at_once: u32,
    /// The duration of the whole run.
    #[serde(rename = "time_ms", with = "Millis::<1000, 86_400_000>")]
    pub time: Duration,
    /// Tokens of all requests and answers, as the endpoint counts them. If it does not count them: a quarter of the number of
    /// bytes.
    #[serde(with = "Whole::<1, 1_000_000_000>")]
    pub tokens: u64,
    /// Failures in a row: calls that are malformed, refused or fail, and answers without a call.
    #[serde(with = "Whole::<1, 1000>")]
    pub failures: u32,
    /// How often the same call may be made in a row.
    #[serde(with = "Whole::<1, 1000>")]
    pub repeats: u32,
    /// Degrees of turning. The state object in the drone document has 360.
    #[serde(deserialize_with = "degrees")]
    pub rotation_deg: f64,
    /// Metres of moving forward. The state object in the drone document has 5.
    #[serde(deserialize_with = "metres")]
    pub forward_m: f64,
    /// The battery charge in percent below which the agent moves nothing any more. The state object in the drone document has
    /// 25.
    #[serde(deserialize_with = "percent")]
    pub battery_pct: f64,
}

impl Default for AgentBudgets {
    fn default() -> Self {
        Self {
            steps: 30,
            calls: 60,
            calls_at_once: 8,
            time: Duration::from_secs(600),
            tokens: 200_000,
            failures: 5,
            repeats: 4,
            rotation_deg: 360.0,
            forward_m: 5.0,
            battery_pct: 25.0,
        }
    }
}

impl AgentDoor {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let path = at(&["agent"]);
        let written = reader.written(&path);
        let (door, rest) = reader.open(&path, written, Self::default());
        let parts = [&Toolset::KEYS[..], &["budgets"]].concat();
        reader.refuse(&path, &door, rest, &parts);
        let toolset = Toolset::read(reader, "agent");
        let budgets = reader.closed(&at(&["agent", "budgets"]), AgentBudgets::default());
        Self {
            toolset,
            budgets,
            ..door
        }
    }
}

impl Default for AgentDoor {
    fn default() -> Self {
        Self {
            toolset: Toolset::default(),
            budgets: AgentBudgets::default(),
            start: false,
            // The default address of llama.cpp's server.
            url: "http://127.0.0.1:8080/v1".to_owned(),
            model: "default".to_owned(),
            key_env: String::new(),
            headers: BTreeMap::new(),
            timeout: Duration::from_secs(60),
            retries: 2,
            answer_tokens: 0,
            temperature: None,
            vision: false,
            calls: CallStyle::Native,
            tools_budget_bytes: 48 << 10,
            result_bytes: 8 << 10,
            history_bytes: 256 << 10,
            state_tools: vec!["vehicle_state".to_owned()],
            plan_preview: false,
            instructions: String::new(),
        }
    }
}

fn http_url<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    checked(from, "a URL such as http://127.0.0.1:8080/v1", |text: String| {
        let url = Url::parse(&text).ok()?;
        let is_http = matches!(url.scheme(), "http" | "https") && url.has_host();
        is_http.then_some(text)
    })
}

fn variable<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let accepted = "the name of an environment variable, such as OPENAI_API_KEY, not the key itself";
    checked(from, accepted, |name: String| {
        let good = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        good.then_some(name)
    })
}

fn headers<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let good = |(name, text): (&String, &String)| {
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let is_printable = |byte: u8| byte == b'\t' || (b' '..=b'~').contains(&byte);
        !name.is_empty() && name.bytes().all(token) && text.bytes().all(is_printable)
    };
    checked(
        from,
        "an object of header names and strings",
        |headers: BTreeMap<String, String>| headers.iter().all(good).then_some(headers),
    )
}

fn temperature<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    checked(from, "a number from 0 to 2, or null", |number: Option<f64>| {
        number
            .is_none_or(|number| (0.0..=2.0).contains(&number))
            .then_some(number)
    })
}

fn degrees<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    between(from, "a number of degrees from 0 to 36000", 36_000.0)
}

fn metres<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    between(from, "a number of metres from 0 to 100000", 100_000.0)
}

fn percent<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    between(from, "a number of percent from 0 to 100", 100.0)
}

fn between<'de, D: Deserializer<'de>>(from: D, accepted: &str, most: f64) -> Result<f64, D::Error> {
    checked(from, accepted, |number: f64| {
        (0.0..=most).contains(&number).then_some(number)
    })
}
