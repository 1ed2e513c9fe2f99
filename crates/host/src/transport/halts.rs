//! One halt for several toolboxes of a process: decides which orders are sent, and which toolboxes an answer is for.
//!
//! Pure: halts in, orders out, and back. Read [`Halts::take`], then [`Halts::answered`].

use std::collections::{HashMap, VecDeque};

use ovos_toolbox_wire::{Failure, FailureKind};
use protocol::{Answer, Order, Raw};
use serde_json::Value;

use program::json;

/// The number of shared halts that may be without an answer. Older ones are not answered any more, because callers wait
/// only 2 s for a halt.
const MAX_SENT: usize = 64;

/// A halt of all subsystems of one toolbox that was not sent yet.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    id: String,
    seq: u64,
    emergency: bool,
    stop_epoch: u64,
}

/// The halts of the toolboxes of one process.
#[derive(Debug, Default)]
pub(crate) struct Halts {
    waiting: Vec<Waiting>,
    /// The shared halts that were sent. By the number of the order: the toolboxes, each with the number of its own
    /// halt.
    sent: HashMap<u64, Vec<(String, u64)>>,
    oldest: VecDeque<u64>,
}

impl Waiting {
    /// A halt that may be sent together with the halts of other toolboxes.
    ///
    /// # Errors
    /// The order, if it is not such a halt.
    pub(crate) fn of(id: &str, order: Order) -> Result<Self, Order> {
        match order {
            Order::Halt {
                seq,
                ref subsystems,
                emergency,
                stop_epoch,
                ..
            } if subsystems.as_slice() == ["all"] => Ok(Self {
                id: id.to_owned(),
                seq,
                emergency,
                stop_epoch,
            }),
            other => Err(other),
        }
    }

    fn order(self) -> Order {
        Order::Halt {
            seq: self.seq,
            toolboxes: Vec::new(),
            subsystems: vec!["all".to_owned()],
            emergency: self.emergency,
            stop_epoch: self.stop_epoch,
        }
    }
}

impl Halts {
    pub(crate) fn add(&mut self, waiting: Waiting) {
        self.waiting.push(waiting);
    }

    /// The orders for the halts that wait, each with the toolbox that it names; emergencies come first. `number`
    /// returns the number for a shared halt.
    pub(crate) fn take(&mut self, mut number: impl FnMut() -> u64) -> Vec<(Option<String>, Order)> {
        let waiting = std::mem::take(&mut self.waiting);
        let mut orders = Vec::new();
        for emergency in [true, false] {
            let mut group: Vec<Waiting> = waiting
                .iter()
                .filter(|halt| halt.emergency == emergency)
                .cloned()
                .collect();
            if group.len() < 2 {
                orders.extend(group.pop().map(|halt| (Some(halt.id.clone()), halt.order())));
                continue;
            }
            let seq = number();
            if emergency {
                // A shared halt has no epoch, because each toolbox has its own.
                let epoch = |halt: &Waiting| {
                    let stop_epoch = halt.stop_epoch;
                    (Some(halt.id.clone()), Order::Epoch { stop_epoch })
                };
                orders.extend(group.iter().map(epoch));
            }
            let mut toolboxes: Vec<String> = group.iter().map(|halt| halt.id.clone()).collect();
            toolboxes.sort();
            toolboxes.dedup();
            let order = Order::Halt {
                seq,
                toolboxes,
                subsystems: vec!["all".to_owned()],
                emergency,
                stop_epoch: 0,
            };
            orders.push((None, order));
            self.sent
                .insert(seq, group.into_iter().map(|halt| (halt.id, halt.seq)).collect());
            self.oldest.push_back(seq);
            if self.oldest.len() > MAX_SENT
                && let Some(seq) = self.oldest.pop_front()
            {
                self.sent.remove(&seq);
            }
        }
        orders
    }

    /// Splits the answer to a shared halt: for each toolbox, the number of its own halt and the answer to it.
    pub(crate) fn answered(&mut self, seq: u64, answer: &Answer<()>) -> Vec<(String, u64, Answer<()>)> {
        let named = self.sent.remove(&seq).unwrap_or_default();
        let missed = match answer {
            Answer::Ok(()) => None,
            Answer::Error(failure) | Answer::Lost(failure) => {
                // An error that names none of the toolboxes holds for all of them.
                let names_one = |missed: &serde_json::Map<String, Value>| {
                    named.iter().any(|(id, _)| missed.contains_key(id))
                };
                Some(missed(failure).filter(names_one))
            }
        };
        let of = |(id, seq): (String, u64)| {
            let reached = match &missed {
                None => true,
                // Toolboxes that the error does not name were reached.
                Some(Some(missed)) => !missed.contains_key(&id),
                Some(None) => false,
            };
            let why = missed
                .as_ref()
                .and_then(|missed| missed.as_ref()?.get(&id)?.as_str());
            let answer = match (reached, why) {
                (true, _) => Answer::Ok(()),
                (false, Some(why)) => Answer::Error(Raw::of(&Failure::new(FailureKind::ToolboxError, why))),
                (false, None) => answer.clone(),
            };
            (id, seq, answer)
        };
        named.into_iter().map(of).collect()
    }
}

/// The toolboxes that a failure names in its data, with the reasons.
fn missed(failure: &Raw<Failure>) -> Option<serde_json::Map<String, Value>> {
    let failure: Failure = json::read(failure.text()).ok()?;
    match failure.data?.get("toolboxes")? {
        Value::Object(missed) => Some(missed.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn halt(id: &str, seq: u64, emergency: bool) -> Waiting {
        let order = Order::Halt {
            seq,
            toolboxes: Vec::new(),
            subsystems: vec!["all".to_owned()],
            emergency,
            stop_epoch: seq * 10,
        };
        Waiting::of(id, order).unwrap()
    }

    fn sent(halts: &mut Halts) -> Vec<Value> {
        let orders = halts.take(|| 100);
        let written = orders.iter().map(|(toolbox, order)| {
            let mut text = Vec::new();
            protocol::write(&mut text, order, toolbox.as_deref()).unwrap();
            serde_json::from_slice(&text).unwrap()
        });
        written.collect()
    }

    #[test]
    fn one_halt_names_one_toolbox_and_several_are_one_after_their_epochs() {
        let mut halts = Halts::default();
        assert_eq!(sent(&mut halts), Vec::<Value>::new());
        halts.add(halt("a", 1, true));
        let all = ["all"];
        let one = json!({"order": "halt", "toolbox": "a",
            "body": {"seq": 1, "subsystems": all, "emergency": true, "stop_epoch": 10}});
        assert_eq!(sent(&mut halts), [one]);
        for waiting in [
            halt("b", 2, true),
            halt("c", 3, false),
            halt("a", 4, true),
            halt("b", 5, true),
        ] {
            halts.add(waiting);
        }
        let epoch =
            |id: &str, epoch: u64| json!({"order": "epoch", "toolbox": id, "body": {"stop_epoch": epoch}});
        assert_eq!(
            sent(&mut halts),
            [
                epoch("b", 20),
                epoch("a", 40),
                epoch("b", 50),
                json!({"order": "halt", "body":
                    {"seq": 100, "toolboxes": ["a", "b"], "subsystems": all, "emergency": true, "stop_epoch": 0}}),
                json!({"order": "halt", "toolbox": "c",
                    "body": {"seq": 3, "subsystems": all, "emergency": false, "stop_epoch": 30}}),
            ]
        );
    }

    #[test]
    fn what_is_no_halt_of_everything_is_sent_as_it_is() {
        let of_one = Order::Halt {
            seq: 1,
            toolboxes: Vec::new(),
            subsystems: vec!["arm".to_owned()],
            emergency: true,
            stop_epoch: 1,
        };
        for order in [of_one, Order::Resume { seq: 1 }] {
            assert!(Waiting::of("a", order).is_err());
        }
    }

    #[test]
    fn one_answer_tells_each_whether_it_was_reached() {
        let failure = |data: Value| {
            let failure = json!({"kind": "ToolboxError", "message": "not reached: b", "data": data});
            Answer::Error(Raw::from_text(failure.to_string()).unwrap())
        };
        for (answer, expected) in [
            (Answer::Ok(()), [(1, None), (2, None)]),
            (
                failure(json!({"toolboxes": {"b": "it hangs"}})),
                [(1, None), (2, Some("it hangs"))],
            ),
            (
                failure(json!({"toolboxes": ["b"]})),
                [(1, Some("not reached: b")), (2, Some("not reached: b"))],
            ),
            (
                failure(json!(null)),
                [(1, Some("not reached: b")), (2, Some("not reached: b"))],
            ),
            (
                failure(json!({"toolboxes": {}})),
                [(1, Some("not reached: b")), (2, Some("not reached: b"))],
            ),
            (
                failure(json!({"toolboxes": {"c": "it hangs"}})),
                [(1, Some("not reached: b")), (2, Some("not reached: b"))],
            ),
        ] {
            let mut halts = Halts::default();
            halts.add(halt("a", 1, true));
            halts.add(halt("b", 2, true));
            sent(&mut halts);
            assert!(halts.answered(99, &answer).is_empty(), "of no halt");
            let told: Vec<(u64, Option<String>)> = halts
                .answered(100, &answer)
                .into_iter()
                .map(|(_, seq, answer)| match answer {
                    Answer::Ok(()) => (seq, None),
                    Answer::Error(failure) | Answer::Lost(failure) => {
                        let failure: Failure = json::read(failure.text()).unwrap();
                        (seq, Some(failure.message))
                    }
                })
                .collect();
            let expected = expected.map(|(seq, why)| (seq, why.map(str::to_owned)));
            assert_eq!(told, expected, "{answer:?}");
            assert!(halts.answered(100, &answer).is_empty(), "once");
        }
    }

    #[test]
    fn halts_that_are_never_answered_are_bounded() {
        let mut halts = Halts::default();
        let mut number = 0;
        for _ in 0..3 * MAX_SENT {
            halts.add(halt("a", 1, true));
            halts.add(halt("b", 2, true));
            number += 1;
            halts.take(|| number);
        }
        assert_eq!(halts.sent.len(), MAX_SENT);
        assert_eq!(halts.answered(number, &Answer::Ok(())).len(), 2);
    }
}
