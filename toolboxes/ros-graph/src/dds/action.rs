//! Goals over DDS: three services and a topic for each action.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::domain::{Dds, whole};
use super::names::{dds_name, ros_type};
use super::participant::Quality;
use super::peers::{SETTLE, of_topic};
use crate::definition::{Kind, TypeName};
use crate::error::GraphError;
use crate::graph::{Goal, GoalEnd, GoalStatus, Reply, one_type};
use crate::inbox::{Bounds, Inbox, Message};

/// Feedback that waits to be taken: the newest count.
const FEEDBACK: Bounds = Bounds {
    messages: 16,
    bytes: 4 << 20,
};

/// How often the action is looked for while a goal runs, in case it left without an answer.
const LOOK: Duration = Duration::from_millis(500);

/// How much later than the end the last feedback may come: it is on another topic.
const LAST: Duration = Duration::from_millis(50);

/// How long a goal whose acceptance was not heard has to take its cancel.
const CANCELLING: Duration = Duration::from_millis(500);

/// What CancelGoal answers where it takes the cancel.
const NO_ERROR: i64 = 0;
/// The goal has ended.
const TERMINATED: i64 = 3;
/// As [`NO_ERROR`]: nothing pursues a goal of this id.
const UNKNOWN: i64 = 2;

fn cancel_type() -> TypeName {
    TypeName::new("action_msgs", Kind::Service, "CancelGoal")
}

/// Sends a goal. It takes a fifth of a second until the action knows what hears its feedback.
///
/// # Errors
/// Nothing moves after an error: a goal that was sent and cannot be followed is cancelled. Where its cancel is not
/// confirmed within half a second, that is [`GraphError::GoalGoesOn`].
pub(super) async fn send(
    dds: &Dds,
    action: &str,
    goal: &Value,
    patience: Duration,
) -> Result<Goal, GraphError> {
    let end = Instant::now() + patience;
    let left = || end.saturating_duration_since(Instant::now());
    let topic = dds_name("rt", action, "/_action/feedback")?;
    let served = || {
        let endpoints = dds.inner.participant.peers.now();
        let writers = of_topic(&endpoints.writers, &topic);
        let hash = writers.iter().find_map(|writer| writer.hash.clone());
        let types = writers
            .iter()
            .filter_map(|writer| whole(&ros_type(&writer.dds_type)?, "_FeedbackMessage"));
        (!writers.is_empty()).then(|| (types.map(|of| of.to_string()).collect(), hash))
    };
    let (found, hash) = dds
        .wait(left(), served)
        .await
        .ok_or_else(|| GraphError::absent("action", action, patience))?;
    let of = one_type(action, None, &found)?;
    let message = of.part("_FeedbackMessage");
    let shape = dds.shape(&message, &message, hash).await?;
    // All are opened before the goal is sent, so that nothing that is said of it is missed.
    let feedback = Arc::new(Inbox::new(FEEDBACK));
    let all = Arc::new(Inbox::new(FEEDBACK));
    let quality = Quality {
        reliable: true,
        keeps: false,
        depth: 10,
    };
    let guard = dds.filling(&topic, &shape, &all).begin(quality)?;
    let opened = tokio::time::Instant::now();
    let (send_goal, get_result) = (
        format!("{action}/_action/send_goal"),
        format!("{action}/_action/get_result"),
    );
    let result_client = dds
        .client(&get_result, Some(&of.part("_GetResult")), left())
        .await?;
    let send_client = dds
        .client(&send_goal, Some(&of.part("_SendGoal")), left())
        .await?;
    let cancel_client = dds
        .client(
            &format!("{action}/_action/cancel_goal"),
            Some(&cancel_type()),
            left(),
        )
        .await?;
    let id = STANDARD.encode(uuid());
    let settled = || {
        [&result_client, &send_client, &cancel_client]
            .iter()
            .all(|client| client.server().is_some_and(|server| server.settled))
            .then_some(())
    };
    // What could be neither followed nor cancelled is not sent.
    dds.wait(left(), settled)
        .await
        .ok_or_else(|| GraphError::absent("action", action, patience))?;
    tokio::time::sleep_until(opened + SETTLE).await;
    let request = json!({"goal_id": {"uuid": id}, "goal": goal});
    let accepting = dds.send(&send_goal, &send_client, &request, left()).await?;
    let followed = async {
        let accepted = dds
            .answer(&send_goal, &send_client, accepting, (left(), patience))
            .await?;
        if accepted["accepted"] != true {
            return Ok(None);
        }
        let asked = json!({"goal_id": {"uuid": id}});
        dds.send(&get_result, &result_client, &asked, left())
            .await
            .map(Some)
    };
    let answer = match followed.await {
        Ok(Some(answer)) => answer,
        Ok(None) => {
            return Err(GraphError::Refused {
                name: action.to_owned(),
                reason: "the goal was not accepted".to_owned(),
            });
        }
        // It may have been accepted all the same, and nothing else knows its id.
        Err(error) => {
            let request = json!({"goal_info": {"goal_id": {"uuid": id}}});
            let cancelled = cancel(dds, action, &request, CANCELLING).await;
            return Err(cancelled.map_or_else(
                |_| GraphError::GoalGoesOn {
                    action: action.to_owned(),
                    waited: CANCELLING,
                },
                |()| error,
            ));
        }
    };
    let (sender, receiver) = watch::channel(None);
    let name = action.to_owned();
    let waiting = {
        let (cdr, shape) = (dds.inner.cdr, Arc::clone(&result_client.response));
        let (feedback, id) = (Arc::clone(&feedback), id.clone());
        async move {
            let _guard = guard;
            let mut answer = answer;
            // Feedback of all goals of the action comes here.
            let pass = |message: Result<Message, GraphError>| match message {
                Ok(message) if message.value["goal_id"]["uuid"] == *id => {
                    let value = message.value["feedback"].clone();
                    feedback.put(1, Box::new(move || Ok(value)));
                }
                Ok(_) => {}
                Err(error) => feedback.put(1, Box::new(move || Err(error))),
            };
            let end = loop {
                tokio::select! {
                    answer = &mut answer => break match answer {
                        Ok(raw) => cdr.decode(&shape, &raw.bytes, raw.order).map_err(GraphError::from),
                        Err(_) => Err(GraphError::Closed),
                    },
                    message = all.next(false, LOOK) => match message {
                        Some(message) => pass(message),
                        None if result_client.server().is_none() => break Err(GraphError::Lost {
                            name: name.clone(),
                            reason: "the action server left before the goal ended".to_owned(),
                        }),
                        None => {}
                    },
                }
            };
            // Other goals may give theirs for ever.
            let last = Instant::now() + LAST;
            while let Some(left) = last.checked_duration_since(Instant::now()) {
                match all.next(false, left).await {
                    Some(message) => pass(message),
                    None => break,
                }
            }
            let end = end.map(|answer| GoalEnd {
                status: GoalStatus::of_number(answer["status"].as_i64().unwrap_or_default()),
                result: answer["result"].clone(),
            });
            if let Err(error) = &end {
                feedback.end(error.clone());
            }
            sender.send_replace(Some(end));
        }
    };
    dds.run(waiting);
    let (canceller, name) = (dds.clone(), action.to_owned());
    let cancel = move |limit| -> Reply<'static, ()> {
        let (dds, name, info) = (canceller.clone(), name.clone(), json!({"goal_id": {"uuid": id}}));
        async move { self::cancel(&dds, &name, &json!({"goal_info": info}), limit).await }.boxed()
    };
    Ok(Goal::new(action, feedback, receiver, Box::new(cancel)))
}

/// Cancels what the request names: one goal, or all where it names none.
pub(super) async fn cancel(
    dds: &Dds,
    action: &str,
    request: &Value,
    patience: Duration,
) -> Result<(), GraphError> {
    let service = format!("{action}/_action/cancel_goal");
    let answer = dds.ask(&service, Some(&cancel_type()), request, patience).await?;
    match answer["return_code"].as_i64() {
        Some(NO_ERROR | TERMINATED) => Ok(()),
        // To cancel all where there is none is refused by some, and is done all the same.
        Some(_) if request["goal_info"].is_null() => Ok(()),
        Some(UNKNOWN) => Err(GraphError::UnknownGoal {
            action: action.to_owned(),
        }),
        code => Err(GraphError::Refused {
            name: action.to_owned(),
            reason: format!("the cancel was answered with {}", code.unwrap_or_default()),
        }),
    }
}

/// Sixteen random bytes, marked as such.
fn uuid() -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes.fill_with(|| fastrand::u8(..));
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    bytes
}
