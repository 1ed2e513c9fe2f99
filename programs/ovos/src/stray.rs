//! Utterances that ovos-core hands over although no question waits for them. A client that says something to the device tells
//! ovos-core how its session was when it heard of it last, and so may bring back the hold of a question that has ended. What is said then
//! would be lost, so the session is given back and it is said again. Read [`returned`].

use std::time::Duration;

use bus::Message;
use ovos_toolbox_wire::Failure;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::line::{Line, SKILL_ID};
use crate::question::{answers, give_back};

/// The key of the context of what is said again: how often it was. It ends at some time.
const AGAIN: &str = "ovos_tools_again";
const MOST_AGAIN: u64 = 3;

/// How long ovos-core may take to keep the session with which it has handed an utterance over.
const KEPT: Duration = Duration::from_millis(100);

/// Longer than any utterance is waited for.
const LONG: Duration = Duration::from_secs(3600);

/// Has what is for no question said again, as long as it is not dropped.
pub(crate) async fn returned(line: Line) {
    loop {
        // Without a bus this waits for one.
        let Ok(mut hearing) = line.hear([answers()]).await else {
            continue;
        };
        while let Ok(heard) = hearing.until(Instant::now() + LONG, |_| true).await {
            let Some(heard) = heard.filter(|heard| line.questions.is_stray(heard)) else {
                continue;
            };
            if again(&line, &heard).await.is_err() {
                break;
            }
        }
    }
}

/// Gives the session back, and says the utterance again.
async fn again(line: &Line, heard: &Message) -> Result<(), Failure> {
    let session_id = heard.session_id();
    // What it keeps then would bring the hold back.
    sleep(KEPT).await;
    if !line.questions.is_stray(heard) {
        // Another question waits by now, and the hold is its own.
        return Ok(());
    }
    give_back(line, session_id).await?;
    let times = heard
        .context
        .get(AGAIN)
        .and_then(Value::as_u64)
        .unwrap_or_default();
    if times == MOST_AGAIN {
        return Ok(());
    }
    let mut data = json!({"utterances": heard.data.get("utterances")});
    if let Some(lang) = heard.data.get("lang") {
        data["lang"] = lang.clone();
    }
    let mut message = line.message("recognizer_loop:utterance", data, session_id);
    message.context.shift_remove("skill_id");
    let session = heard.context.get("session").cloned().unwrap_or_default();
    message.context.insert("session".to_owned(), without_us(session));
    message.context.insert(AGAIN.to_owned(), json!(times + 1));
    line.send(&message)
}

/// A session without what holds it for us.
fn without_us(mut session: Value) -> Value {
    let Some(keys) = session.as_object_mut() else {
        return session;
    };
    keys.shift_remove("response_mode");
    keys.shift_remove("utterance_states");
    if let Some(handlers) = keys.get_mut("converse_handlers").and_then(Value::as_array_mut) {
        handlers.retain(|handler| handler["skill_id"] != SKILL_ID);
    }
    if let Some(active) = keys.get_mut("active_skills").and_then(Value::as_array_mut) {
        active.retain(|skill| skill[0] != SKILL_ID);
    }
    session
}
