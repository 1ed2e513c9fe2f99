//! Ends a run from outside. The first reason counts, but the first one from people or an emergency stop replaces any other.

use std::collections::BTreeSet;

use tokio::sync::watch;

use crate::end::End;

/// The reason why the run ends, once there is one.
#[derive(Clone)]
pub(crate) struct Interrupt(watch::Sender<InterruptState>);

#[derive(Debug, Default)]
struct InterruptState {
    /// Why the run ends; `None` while nothing ends it.
    end: Option<End>,
    /// The toolboxes whose machines people have taken over.
    taken_over: BTreeSet<String>,
}

impl InterruptState {
    /// Sets the reason, unless one stands that this one does not outrank. Returns whether it is set.
    fn set_end(&mut self, end: End) -> bool {
        let outranked = |raised: &End| end.is_of_people() && !raised.is_of_people();
        let stands = self.end.as_ref().is_some_and(|raised| !outranked(raised));
        if !stands {
            self.end = Some(end);
        }
        !stands
    }
}

impl Interrupt {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::default())
    }

    /// Ends the run.
    pub(crate) fn raise(&self, end: End) {
        self.0.send_if_modified(|raised| raised.set_end(end));
    }

    /// Ends the run, because a person has taken over a machine of this toolbox.
    pub(crate) fn take_over(&self, toolbox_id: &str, how: &str) {
        self.0.send_if_modified(|raised| {
            let new = raised.taken_over.insert(toolbox_id.to_owned());
            raised.set_end(End::Takeover(how.to_owned())) || new
        });
    }

    /// Whether a person has taken over a machine of this toolbox.
    pub(crate) fn is_taken_over(&self, toolbox_id: &str) -> bool {
        self.0.borrow().taken_over.contains(toolbox_id)
    }

    /// The reason, if there is one by now.
    pub(crate) fn raised(&self) -> Option<End> {
        self.0.borrow().end.clone()
    }

    /// Waits for the reason.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn wait(&self) -> End {
        self.wait_for(|_| true).await
    }

    /// Waits for a reason of this kind.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn wait_for(&self, kind: impl Fn(&End) -> bool) -> End {
        let mut raised = self.0.subscribe();
        loop {
            if let Some(end) = raised.borrow_and_update().end.clone().filter(&kind) {
                return end;
            }
            // The sender is a field, so it exists as long as `self`.
            _ = raised.changed().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::end::BudgetKind;

    #[test]
    fn an_end_of_people_takes_the_place_of_any_other_and_stands() {
        let time = || End::Budget(BudgetKind::Time);
        let gone = || End::Service("gone".to_owned());
        let operator = || End::Operator("a key".to_owned());
        for (ends, expected) in [
            (vec![time(), gone()], time()),
            (vec![time(), End::UserStop], End::UserStop),
            (vec![gone(), operator(), End::UserStop], operator()),
            (vec![operator(), time()], operator()),
        ] {
            let interrupt = Interrupt::new();
            ends.iter().cloned().for_each(|end| interrupt.raise(end));
            assert_eq!(interrupt.raised(), Some(expected), "{ends:?}");
        }
        let interrupt = Interrupt::new();
        interrupt.raise(time());
        interrupt.take_over("drone", "drone says so");
        assert_eq!(
            interrupt.raised(),
            Some(End::Takeover("drone says so".to_owned()))
        );
        assert!(interrupt.is_taken_over("drone") && !interrupt.is_taken_over("robot"));
    }
}
