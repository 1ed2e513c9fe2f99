//! Log lines of the steps of calls, at the levels DEBUG and TRACE.
//!
//! It follows the facts only while one of these levels is in force: at other levels no facts are made for it. Read
//! [`follow`].

use tokio::sync::watch;

use config::LogLevel;
use engine::{Fact, Facts, Followed};

/// Writes a line for each step while the level asks for it, until the level can no longer change.
pub(super) async fn follow(facts: Facts, mut level: watch::Receiver<LogLevel>) {
    let wanted = |level: &LogLevel| *level <= LogLevel::Debug;
    while level.wait_for(wanted).await.is_ok() {
        let mut follower = facts.follow();
        loop {
            tokio::select! {
                changed = level.wait_for(|level| !wanted(level)) => match changed {
                    Ok(_) => break,
                    Err(_) => return,
                },
                followed = follower.next() => match followed {
                    Some(Followed::Fact(fact)) => write(&fact.fact),
                    Some(Followed::Lost { from, to }) => {
                        tracing::warn!(from, to, "log lines of calls are missing: their writer did not keep up");
                    }
                    None => return,
                },
            }
        }
    }
}

/// A line about a call, with further fields.
macro_rules! log_step {
    ($level:ident, $call:ident, $($fields:tt)+) => {
        tracing::$level!(
            call_id = $call.call_id,
            toolbox = $call.toolbox_id,
            tool = $call.tool,
            $($fields)+
        )
    };
}

/// Writes the line of a fact. Changes of toolboxes, stops and resumes are logged where they happen, so that their lines
/// are never lost.
fn write(fact: &Fact) {
    match fact {
        Fact::Received { call, .. } => log_step!(debug, call, "call received"),
        Fact::Policy {
            call,
            principal,
            decision,
            rule,
        } => log_step!(debug, call, principal, decision, rule, "policy decided"),
        Fact::Confirmed { call, principal, by } => log_step!(info, call, principal, by, "call confirmed"),
        Fact::Refused { call, error } => log_step!(debug, call, %error, "call refused"),
        Fact::Planned {
            call,
            generation,
            waves,
            ..
        } => log_step!(debug, call, generation, waves = waves.len(), "call planned"),
        Fact::Waiting { call, ahead } => log_step!(debug, call, ahead, "call waits"),
        Fact::Wave { call, wave, waves } => log_step!(debug, call, wave, waves, "wave starts"),
        Fact::ActionStarted {
            call, action, wave, ..
        } => log_step!(trace, call, action, wave, "action starts"),
        Fact::ActionEnded {
            call,
            action,
            outcome,
            wave,
            duration_ms,
            ..
        } => log_step!(
            trace,
            call,
            action,
            wave,
            outcome = outcome.as_str(),
            duration_ms,
            "action ended"
        ),
        Fact::Cancelled { call, cause } => log_step!(debug, call, %cause, "call is to end"),
        Fact::Answered {
            call: Some(call),
            answer,
            ..
        } => log_step!(
            debug,
            call,
            ok = answer.ok,
            elapsed_ms = answer.elapsed_ms,
            "call answered"
        ),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::sync::Arc;

    use super::*;
    use config::LogConfig;
    use engine::{Answer, RequestOrigin};
    use logs::{LogOptions, prepare};
    use ovos_toolbox_wire::Effect;

    /// The level changes twice; calls are made before, between and after.
    #[tokio::test]
    async fn steps_are_logged_while_the_level_asks_for_them() {
        let dir = tempfile::tempdir().unwrap();
        let config = LogConfig {
            level: LogLevel::Info,
            dir: Some(dir.path().to_owned()),
            max_bytes: 0,
            backup_count: 0,
        };
        let options = LogOptions {
            json: false,
            file: true,
        };
        let (subscriber, logs) = prepare(&config, options);
        let file = dir.path().join("ovos_tools.log");
        let guard = tracing::subscriber::set_default(subscriber);
        let facts = Facts::default();
        let follower = tokio::spawn(follow(facts.clone(), logs.level()));
        for (call_id, level) in [
            ("one", LogLevel::Info),
            ("two", LogLevel::Debug),
            ("three", LogLevel::Warning),
        ] {
            logs.set_level(level).unwrap();
            // The follower runs on the same thread: these yields let it see the level, and then the facts.
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            let origin = Arc::new(RequestOrigin::default());
            let call = facts.received(call_id, "robot", "wave", Effect::Motion, origin.clone());
            call.refused("BusyError: full");
            facts.answered(Some(&call), origin, Answer::default());
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
        }
        drop(guard);
        drop(logs);
        follower.await.unwrap();
        let text = std::fs::read_to_string(file).unwrap();
        let of_calls = |line: &&str| line.contains(r#"toolbox="robot" tool="wave""#);
        let lines: Vec<&str> = text.lines().filter(of_calls).collect();
        let expected = ["call received", "call refused", "call answered"];
        assert_eq!(lines.len(), expected.len(), "{text}");
        for (line, expected) in lines.iter().zip(expected) {
            assert!(
                line.contains(expected) && line.contains(r#"call_id="two""#),
                "{line}"
            );
        }
    }
}
