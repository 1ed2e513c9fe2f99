//! The lists of tools that the service asks for: those of the host, and its last one while it is away. Read [`Shared::ask_list`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use ovos_toolbox_wire::ToolList;
use program::Reply;
use protocol::{Answer, Raw};

use super::line::Way;
use super::shared::{Shared, failure_of};
use crate::messages::{Ask, Right};

/// How long the first list of tools waits for the host.
const FIRST_LIST: Duration = Duration::from_secs(3);

impl Shared {
    /// Answers with the tools of the host, once it is reached or was waited for.
    pub(super) fn ask_list(self: &Arc<Self>, reply: Reply<Raw<ToolList>>) {
        let mut lists = self.lists.lock();
        lists.was_asked = true;
        if self.view.lock().reached {
            drop(lists);
            return self.list(reply);
        }
        lists.waiting.push((Instant::now() + FIRST_LIST, reply));
    }

    pub(super) fn answer_lists(self: &Arc<Self>) {
        if self.lists.lock().waiting.is_empty() {
            return;
        }
        let this = self.clone();
        // Called where the network is read, and a question waits for room in it. Without a thread the wait ends as without a host.
        self.aside("lists", move || {
            let waiting = std::mem::take(&mut this.lists.lock().waiting);
            for (_, reply) in waiting {
                this.list(reply);
            }
        });
    }

    /// Answers lists for which the host did not come in time: with what it had last, or with none.
    pub(super) fn give_up_lists(&self, now: Instant) {
        let (overdue, last) = {
            let mut lists = self.lists.lock();
            let waiting = std::mem::take(&mut lists.waiting);
            let (overdue, rest): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(until, _)| *until <= now);
            lists.waiting = rest;
            (overdue, lists.last.clone())
        };
        for (_, reply) in overdue {
            let none = || Raw::of(&ToolList { tools: Vec::new() });
            reply(Ok(last.clone().unwrap_or_else(none)));
        }
    }

    fn list(self: &Arc<Self>, reply: Reply<Raw<ToolList>>) {
        let this = self.clone();
        let ask = Ask::Tools {
            toolbox: self.toolbox.clone(),
        };
        let limit = Duration::from_secs(5);
        self.line.ask(
            Right::Read,
            Way::Data,
            limit,
            &ask,
            move |answer: Option<Answer<Raw<ToolList>>>| {
                let mut lists = this.lists.lock();
                let listed = match answer {
                    Some(Answer::Ok(list)) => {
                        lists.last = Some(list.clone());
                        Ok(list)
                    }
                    Some(refused) => Err(failure_of(refused).into()),
                    None => lists.last.clone().ok_or_else(|| this.not_reached().into()),
                };
                drop(lists);
                reply(listed);
            },
        );
    }
}
