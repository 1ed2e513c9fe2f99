//! Checks the messagebus, and the services that answer on it. Read [`find_services`].

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::finding::Finding;
use bus::{BusClient, BusHandler, ClientConfig, Message, Utf8Bytes, shown};
use client::payload::StatusResponse;
use client::{Address, topic};

/// How long answers are collected. A running service answers within milliseconds, the Python service within 50.
const ANSWERS: Duration = Duration::from_millis(1000);

/// The topic that every service answers. Only our service also tells the effect of each tool, in `meta`.
const LIST: &str = topic::LIST.name();

/// The topic that only our service answers.
const STATUS: &str = topic::STATUS.name();

/// Connects to the bus and asks which services list tools there.
///
/// Also returns the status of our service, if exactly one answers.
pub(super) async fn find_services(
    address: &Address,
    wait: Duration,
) -> (Vec<Finding>, Option<StatusResponse>) {
    let url = shown(&address.url);
    let report = match timeout(wait, query(address)).await {
        Ok(Ok(report)) => report,
        Ok(Err(reason)) => return (vec![no_bus(reason)], None),
        Err(_) => {
            let seconds = wait.as_secs_f64();
            return (
                vec![no_bus(format!("{url} does not answer within {seconds} s"))],
                None,
            );
        }
    };
    let PeerReport { lists, mut statuses } = report;
    let ours = lists.iter().filter(|tools| is_ours(tools)).count();
    let findings = vec![
        Finding::good("messagebus", format!("connected to {url}")),
        services(ours, lists.len() - ours),
    ];
    let status = statuses.pop().filter(|_| statuses.is_empty());
    (findings, status)
}

fn no_bus(found: String) -> Finding {
    Finding::broken(
        "messagebus",
        found,
        "start ovos-messagebus, or run `ovos-tools serve --embedded-bus auto`",
    )
}

/// Explains what it means that this many services of ours and this many others answer.
fn services(ours: usize, others: usize) -> Finding {
    let part = "service";
    match (ours, others) {
        (1, 0) => Finding::good(part, "one ovos-tools service answers"),
        (0, 0) => Finding::broken(part, "no service answers", "run `ovos-tools serve`"),
        (0, _) => Finding::broken(
            part,
            "only the Python plugin answers (ovos-PHAL-plugin-tools)",
            "run `ovos-tools serve`, and turn the plugin \
             off: \"PHAL\": {\"ovos-phal-plugin-tools\": {\"enabled\": false}} in mycroft.conf",
        ),
        (_, 0) => Finding::broken(
            part,
            format!("{ours} ovos-tools services answer on this bus, so every call runs {ours} times"),
            "stop all but one: `pgrep -a ovos-tools` lists the processes, and `systemctl --user stop ovos-tools` or `kill PID` ends a \
             service",
        ),
        (_, _) => Finding::broken(
            part,
            "the Python plugin (ovos-PHAL-plugin-tools) answers, too, and each client takes the first answer",
            "turn it off: \"PHAL\": {\"ovos-phal-plugin-tools\": {\"enabled\": false}} in mycroft.conf, and restart ovos-PHAL",
        ),
    }
}

/// Whether a list is from a service of ours. An empty list counts as ours: the Python service has no reason to run without tools.
fn is_ours(tools: &[Value]) -> bool {
    tools.iter().all(|tool| tool.get("meta").is_some())
}

/// What the services on the bus have answered.
#[derive(Default)]
struct PeerReport {
    lists: Vec<Vec<Value>>,
    statuses: Vec<StatusResponse>,
}

/// Asks all services for their lists of tools, and ours for its status.
async fn query(address: &Address) -> Result<PeerReport, String> {
    let config = ClientConfig {
        extra_ca: address.certificate.clone(),
        ..ClientConfig::new(address.url.clone())
    };
    let session = uuid::Uuid::new_v4().to_string();
    let lists = Arc::new(Lists {
        session: session.clone(),
        report: Mutex::default(),
    });
    let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
    let _end = shutdown.clone().drop_guard();
    let connected = BusClient::connect(config, lists.clone(), &tasks, shutdown).await;
    let bus = connected.map_err(|error| error.to_string())?;
    for topic in [LIST, STATUS] {
        let mut question = Message::new(topic, Map::from_iter([("detail".to_owned(), Value::Bool(true))]));
        question
            .context
            .insert("session".to_owned(), json!({"session_id": session}));
        if !bus.notify(question.to_text()) {
            return Err("the question could not be sent".to_owned());
        }
    }
    sleep(ANSWERS).await;
    Ok(std::mem::take(&mut *lists.report.lock()))
}

/// Collects the answers for one session.
struct Lists {
    session: String,
    report: Mutex<PeerReport>,
}

impl BusHandler for Lists {
    fn frame(&self, text: Utf8Bytes) {
        // Checked before parsing, because the bus relays every frame to every client.
        if !text.contains(&self.session) {
            return;
        }
        let Ok(answer) = serde_json::from_str::<Value>(&text) else {
            return;
        };
        let kind = answer["type"].as_str();
        match kind.and_then(|kind| kind.strip_suffix(".response")) {
            Some(LIST) => {
                let tools = answer["data"]["tools"].as_array().cloned().unwrap_or_default();
                self.report.lock().lists.push(tools);
            }
            Some(STATUS) => {
                if let Ok(status) = serde_json::from_value(answer["data"].clone()) {
                    self.report.lock().statuses.push(status);
                }
            }
            _ => {}
        }
    }

    fn connected(&self) {}

    fn disconnected(&self, _: &str) {}

    fn instead(&self, _: &str, _: &str) -> Option<String> {
        None
    }
}
