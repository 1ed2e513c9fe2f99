//! Calls as lines of text, for models without tool calls: `Thought:`, `Action:` and `Action Input:`, the format of ReAct. Pure.

use serde_json::Value;

use crate::answer::{Answer, CUT, Ids, ModelCall, of_text};

/// The instructions to the model about the form of its answers.
pub(crate) const FORM: &str = "Answer with exactly these three lines and nothing after them:
Thought: what you know and what to do next
Action: the name of one tool
Action Input: its arguments as one JSON object on one line
The result follows as `Observation:`. Never write an observation yourself.";

/// Describes the tools as text.
pub(crate) fn tools(tools: &[Value]) -> String {
    let mut text = String::from("The tools:\n");
    for tool in tools {
        let function = &tool["function"];
        text.push_str(&format!(
            "- {}: {} Arguments: {}\n",
            function["name"].as_str().unwrap_or_default(),
            function["description"].as_str().unwrap_or_default(),
            function["parameters"]
        ));
    }
    text
}

/// Reads the call from the text of an answer. A text with several actions has no call, because the intended one is unknown. But if
/// one of them is a stop, the stop is called.
pub(crate) fn read(answer: Answer, ids: &mut Ids, step: u32, is_stop: impl Fn(&str) -> bool) -> Answer {
    let starts = |prefix: &'static str| {
        move |line: &&str| {
            let line = line.trim_start();
            line.get(..prefix.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        }
    };
    // Anything that a model writes after an observation of its own is invented.
    let own: Vec<&str> = answer
        .text
        .lines()
        .take_while(|line| !starts("Observation:")(line))
        .collect();
    let after = |line: &str| {
        line.split_once(':')
            .map_or("", |(_, rest)| rest)
            .trim()
            .to_owned()
    };
    let actions: Vec<String> = own
        .iter()
        .filter(|line| starts("Action:")(line))
        .map(|line| {
            after(line)
                .trim_matches(['`', '"', '*', '(', ')', '.', ' '])
                .to_owned()
        })
        .collect();
    let input_at = own.iter().position(|line| starts("Action Input:")(line));
    let text = own
        .iter()
        .find(|line| starts("Thought:")(line))
        .map_or_else(|| own.join("\n").trim().to_owned(), |line| after(line));
    let input = input_at.map(|at| {
        let mut lines = vec![after(own[at])];
        lines.extend(own[at + 1..].iter().map(|line| (*line).to_owned()));
        let input = lines.join("\n");
        let input = input.trim().trim_start_matches("```json").trim_matches('`');
        input.trim().to_owned()
    });
    // A stop counts wherever it is in the text.
    let named = actions.iter().find(|name| is_stop(name)).or(actions.first());
    let calls = named.map(|name| {
        let arguments = match input.as_deref() {
            _ if actions.len() > 1 => Err(format!(
                "the answer has {} actions: write one at a time",
                actions.len()
            )),
            _ if answer.cut => Err(CUT.to_owned()),
            // Without this line it is unknown whether the answer is complete.
            None | Some("") => {
                Err("`Action Input:` has no JSON; write {} where there are no arguments".to_owned())
            }
            Some(input) => of_text(input),
        };
        let written = input.as_deref().unwrap_or_default();
        ModelCall::new(ids.of(None, step, 1), name, arguments, written)
    });
    let calls = calls.into_iter().collect();
    Answer {
        text,
        calls,
        ..answer
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_action_is_a_call_and_anything_else_is_not() {
        for (text, expected) in [
            (
                "Thought: near\nAction: move_forward\nAction Input: {\"cm\": 50}",
                Some(("move_forward", Some(json!({"cm": 50})))),
            ),
            (
                "thought: x\naction: `wave`\naction input: ```json\n{}\n```",
                Some(("wave", Some(json!({})))),
            ),
            ("Action: land", Some(("land", None))),
            ("Action: land\nAction Input:", Some(("land", None))),
            (
                "Action: wave\nAction Input: {}\nObservation: done\nAction: land\nAction Input: {}",
                Some(("wave", Some(json!({})))),
            ),
            ("Action: wave\nAction Input: {bad", Some(("wave", None))),
            (
                "Action: a\nAction Input: {}\nAction: b\nAction Input: {}",
                Some(("a", None)),
            ),
            (
                "Action: a\nAction Input: {}\nAction: emergency_stop\nAction Input: {}",
                Some(("emergency_stop", None)),
            ),
            ("Action: emergency_stop()", Some(("emergency_stop", None))),
            ("I am done.", None),
            ("", None),
        ] {
            for cut in [false, true] {
                let answer = Answer {
                    text: text.to_owned(),
                    cut,
                    ..Answer::default()
                };
                let read = read(answer, &mut Ids::default(), 1, |name| name == "emergency_stop");
                let call = read.calls.first().map(|call| {
                    let arguments = call.arguments.clone().ok().map(Value::Object);
                    (call.name.as_str(), arguments)
                });
                // Text that was cut off is not a call, even if it looks complete.
                let expected = expected
                    .clone()
                    .map(|(name, arguments)| (name, arguments.filter(|_| !cut)));
                assert_eq!(call, expected, "{text}");
            }
        }
    }
}
