//! What a mount knows of its toolbox, and what follows from what it hears. Pure: the time is handed in. Read [`View::hear`].

use std::collections::VecDeque;

use ovos_toolbox_wire::Event;

use crate::clock::HostClock;
use crate::messages::{LEASE_MS, Pulse, ResumeAnswer, StopAnswer, StopView};

/// How many stops are remembered as known to the service.
const KNOWN_STOPS: usize = 32;

/// How long the host may be heard without the lease that it is about to give, until it counts as reached without: another mount of this
/// machine holds it, and does not end.
const LEASE_COMES_MS: u64 = 2 * LEASE_MS;

/// How long an emergency halt of the service may be its echo of a stop that this mount reported.
const ECHO_MS: u64 = 1000;

/// What a mount knows.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) boot: Option<String>,
    pub(super) epoch: u64,
    /// The stop that holds the toolbox on its host.
    pub(super) stop: Option<StopView>,
    pub(super) clock: Option<HostClock>,
    pub(super) held: bool,
    /// When the first answer of this contact came. What was sent before it may have waited in the network or in the host for any time.
    contact_since: Option<u64>,
    /// Since when the lease is about to come.
    comes_since: Option<u64>,
    pub(super) commander: Option<String>,
    pub(super) state: String,
    /// The last event that arrived.
    pub(super) after: Option<u64>,
    tools: Option<u64>,
    /// Whether the service was told that the host is there.
    pub(super) reached: bool,
    /// Stops that the service made, or was told of.
    known: VecDeque<String>,
    /// The host's clock at the last stop or resume of the service: what it said of a stop before is out of date.
    settled: u64,
    /// The stop that was reported to the service, and until when an emergency halt of the service may be its echo.
    echo: Option<(String, u64)>,
    /// The stop of the host for which the service is latched, as far as is known here.
    latched_for: Option<String>,
    /// Whether the host only halts what moves without its commander.
    pub(super) halts_on_loss: bool,
}

/// What the service is to be told.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum News {
    /// The host is there, for the first time or again.
    Reached,
    /// It did not answer for so long.
    Lost(u64),
    /// The host was started anew: its runs are gone.
    NewBoot,
    /// The toolbox is in emergency stop there, for this reason.
    Latched(String),
    /// The list of tools is another one.
    ToolsChanged,
    /// The toolbox reported something.
    Event(Event),
}

impl View {
    /// Takes a host's sign of life.
    ///
    /// The host counts as reached once a beat was answered in time that was sent in this contact and asked for the lease, and that is
    /// settled: this mount holds it, or does not get it. What is asked then finds it so, and the lease lasts until the next beats.
    /// Answers to what was sent before the contact say nothing of now: the lease that they confirm may be about to run out.
    pub(super) fn hear(&mut self, pulse: &Pulse, clock: HostClock, asked: bool) -> Vec<News> {
        let mut news = Vec::new();
        // Answers may overtake each other.
        let is_old = self.clock.is_some_and(|newest| newest.host > pulse.clock)
            && self.boot.as_ref() == Some(&pulse.boot);
        if is_old {
            return news;
        }
        self.clock = Some(clock);
        self.contact_since.get_or_insert(clock.received);
        if self.boot.as_ref().is_some_and(|boot| *boot != pulse.boot) {
            news.push(News::NewBoot);
            (self.settled, self.tools, self.after) = (0, None, None);
        }
        self.boot = Some(pulse.boot.clone());
        self.comes_since = pulse
            .lease_comes
            .then(|| self.comes_since.unwrap_or(clock.received));
        let is_of_now = clock.is_timely() && self.is_of_contact(clock);
        if !self.reached && asked && is_of_now && !self.waits_for_lease(clock.received) {
            self.reached = true;
            news.push(News::Reached);
        }
        (self.held, self.halts_on_loss) = (pulse.held, pulse.halts_on_loss);
        self.commander.clone_from(&pulse.commander);
        self.state.clone_from(&pulse.state);
        let after = self.after.replace(pulse.last);
        let fresh = pulse
            .events
            .iter()
            .filter(|(number, _)| after.is_none_or(|after| *number > after));
        news.extend(fresh.map(|(_, event)| News::Event(event.clone())));
        if self.tools != Some(pulse.tools) {
            self.tools = Some(pulse.tools);
            news.push(News::ToolsChanged);
        }
        if pulse.clock <= self.settled {
            return news;
        }
        self.epoch = pulse.epoch;
        self.stop.clone_from(&pulse.stop);
        if let Some(stop) = &pulse.stop
            && !self.known.contains(&stop.stop_id)
        {
            // A service that is latched already stays so for the stop of before, and sends nothing.
            if self.latched_for.is_none() {
                self.latched_for = Some(stop.stop_id.clone());
                self.echo = Some((stop.stop_id.clone(), clock.received + ECHO_MS));
            }
            self.know(stop.stop_id.clone());
            news.push(News::Latched(stop.reason.clone()));
        }
        news
    }

    /// Looks whether the host is still there.
    pub(super) fn look(&mut self, now: u64) -> Option<News> {
        if !self.reached || now < self.lost_at()? {
            return None;
        }
        self.lose();
        Some(News::Lost(LEASE_MS))
    }

    /// The host is not reached; the next sign of life is news.
    pub(super) fn lose(&mut self) {
        (self.reached, self.held) = (false, false);
        (self.comes_since, self.contact_since) = (None, None);
    }

    /// Whether a beat was sent after the first answer of this contact.
    fn is_of_contact(&self, clock: HostClock) -> bool {
        self.contact_since.is_some_and(|since| clock.sent >= since)
    }

    /// Whether the next beat is to be sent at once, because contact is made with it: this answer is the first, or one that lets the
    /// lease be asked for.
    pub(super) fn hastens(&self, clock: HostClock, asked: bool) -> bool {
        let is_first = self.contact_since == Some(clock.received);
        !self.reached && clock.is_timely() && (is_first || (!asked && self.is_of_contact(clock)))
    }

    /// Whether what the service asks is answered now as it will be in the next moment: the host is reached, and no lease is about to come.
    pub(super) fn is_settled(&self, now: u64) -> bool {
        self.reached && !self.waits_for_lease(now)
    }

    fn waits_for_lease(&self, now: u64) -> bool {
        self.comes_since.is_some_and(|since| now < since + LEASE_COMES_MS)
    }

    /// When the host counts as lost, unless it is heard before: when the lease that its last answer confirmed has run out there.
    fn lost_at(&self) -> Option<u64> {
        Some(self.clock?.sent + LEASE_MS)
    }

    /// Until when the lease is asked for, by the host's clock: it lasts from the last beat that was answered, so that both sides see
    /// its end, whichever way of the network is dark. While contact is made only a beat of this contact counts: with an older one the
    /// lease would end at once.
    pub(super) fn lease_until(&self, now: u64) -> Option<u64> {
        let clock = self.clock.filter(|clock| now < clock.sent + LEASE_MS)?;
        if !self.reached && !self.is_of_contact(clock) {
            return None;
        }
        Some(clock.when_sent() + LEASE_MS)
    }

    /// The stop of the host that an emergency halt of the service follows. Once for each stop that was reported.
    pub(super) fn take_echo(&mut self, now: u64) -> Option<String> {
        let (stop_id, until) = self.echo.take()?;
        (now < until).then_some(stop_id)
    }

    /// The stop that holds the toolbox on its host, if the service does not know it as that for which it is latched. From then on it
    /// does: whoever is told of it and asks again means it.
    pub(super) fn take_newer_stop(&mut self) -> Option<StopView> {
        let stop = self.stop.clone()?;
        let before = self.latched_for.replace(stop.stop_id.clone());
        before
            .is_some_and(|before| before != stop.stop_id)
            .then_some(stop)
    }

    /// Takes the answer to a stop of the service.
    pub(super) fn stopped(&mut self, done: &StopAnswer, reason: &str) {
        self.know(done.stop_id.clone());
        self.latched_for = Some(done.stop_id.clone());
        self.settle(done.clock, Some(done.epoch));
        self.stop = Some(StopView {
            stop_id: done.stop_id.clone(),
            reason: reason.to_owned(),
        });
    }

    /// Takes the answer to a resume of the service.
    pub(super) fn resumed(&mut self, done: &ResumeAnswer) {
        self.settle(done.clock, done.epoch);
        (self.stop, self.latched_for) = (None, None);
    }

    /// What the host says of stops is of this moment: the service may start something before the next sign of life.
    fn settle(&mut self, clock: u64, epoch: Option<u64>) {
        if clock < self.settled {
            return;
        }
        self.settled = clock;
        self.epoch = epoch.unwrap_or(self.epoch);
    }

    fn know(&mut self, stop_id: String) {
        if self.known.contains(&stop_id) {
            return;
        }
        if self.known.len() == KNOWN_STOPS {
            self.known.pop_front();
        }
        self.known.push_back(stop_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pulse(clock: u64, stop: Option<&str>) -> Pulse {
        Pulse {
            boot: "b".to_owned(),
            clock,
            epoch: 0,
            stop: stop.map(|id| StopView {
                stop_id: id.to_owned(),
                reason: format!("because of {id}"),
            }),
            held: true,
            lease_comes: false,
            commander: None,
            state: "ready".to_owned(),
            tools: 1,
            last: 0,
            halts_on_loss: false,
            events: Vec::new(),
        }
    }

    /// What is told after a pulse that was sent at `clock` by the host and arrives 10 ms later, here in the same time. Contact was made
    /// before.
    fn hear(view: &mut View, clock: u64, stop: Option<&str>) -> Vec<News> {
        view.contact_since.get_or_insert(0);
        let pulse = pulse(clock, stop);
        let clock = HostClock {
            host: clock,
            sent: clock - 10,
            received: clock + 10,
        };
        view.hear(&pulse, clock, true)
    }

    fn resumed(clock: u64) -> ResumeAnswer {
        ResumeAnswer {
            clock,
            epoch: Some(1),
        }
    }

    fn latched(id: &str) -> News {
        News::Latched(format!("because of {id}"))
    }

    #[test]
    fn the_latch_here_follows_the_one_there_through_every_order_of_things() {
        enum Step {
            /// The host says this at this time, and the service is told of this stop.
            Hear(u64, Option<&'static str>, Option<&'static str>),
            /// The service's own stop was answered.
            Stopped(u64, &'static str),
            /// A resume was answered at this time of the host.
            Resumed(u64),
            /// A partition.
            Dark(u64),
        }
        use Step::{Dark, Hear, Resumed, Stopped};
        let rows: [(&str, &[Step], Option<&str>); 10] = [
            (
                "a stop there is told once",
                &[
                    Hear(100, None, None),
                    Hear(200, Some("s1"), Some("s1")),
                    Hear(300, Some("s1"), None),
                ],
                Some("s1"),
            ),
            (
                "an own stop is not told",
                &[
                    Hear(100, None, None),
                    Stopped(150, "s1"),
                    Hear(200, Some("s1"), None),
                ],
                Some("s1"),
            ),
            (
                "a stop during a partition is told after it",
                &[
                    Hear(100, None, None),
                    Dark(700),
                    Hear(900, Some("s1"), Some("s1")),
                ],
                Some("s1"),
            ),
            (
                "a stop before the first contact is told",
                &[Hear(100, Some("s0"), Some("s0"))],
                Some("s0"),
            ),
            (
                "a resume there lifts it",
                &[
                    Hear(100, Some("s1"), Some("s1")),
                    Resumed(150),
                    Hear(200, None, None),
                ],
                None,
            ),
            (
                "what was said before the resume does not latch again",
                &[
                    Hear(100, Some("s1"), Some("s1")),
                    Resumed(250),
                    Hear(200, Some("s1"), None),
                ],
                None,
            ),
            (
                "a newer stop after the resume does",
                &[
                    Hear(100, Some("s1"), Some("s1")),
                    Resumed(150),
                    Hear(200, Some("s2"), Some("s2")),
                ],
                Some("s2"),
            ),
            (
                "a newer stop in its place is told",
                &[
                    Hear(100, Some("s1"), Some("s1")),
                    Hear(200, Some("s2"), Some("s2")),
                ],
                Some("s2"),
            ),
            (
                "another operator's resume is seen",
                &[
                    Hear(100, Some("s1"), Some("s1")),
                    Dark(700),
                    Hear(900, None, None),
                ],
                None,
            ),
            (
                "an answer that was overtaken changes nothing",
                &[Hear(300, Some("s1"), Some("s1")), Hear(200, None, None)],
                Some("s1"),
            ),
        ];
        for (what, steps, expected) in rows {
            let mut view = View::default();
            for step in steps {
                match step {
                    Hear(clock, stop, expected) => {
                        let news = hear(&mut view, *clock, *stop);
                        let latches = news.into_iter().find(|one| matches!(one, News::Latched(_)));
                        assert_eq!(latches, expected.map(latched), "{what}");
                    }
                    Stopped(clock, id) => {
                        let done = StopAnswer {
                            stop_id: (*id).to_owned(),
                            clock: *clock,
                            epoch: 1,
                            unreached: None,
                        };
                        view.stopped(&done, "a test");
                    }
                    Resumed(clock) => view.resumed(&resumed(*clock)),
                    Dark(now) => assert_eq!(view.look(*now), Some(News::Lost(LEASE_MS)), "{what}"),
                }
            }
            assert_eq!(view.stop.map(|stop| stop.stop_id).as_deref(), expected, "{what}");
        }
    }

    #[test]
    fn what_is_started_after_a_resume_counts_the_stop_before_the_next_sign_of_life() {
        let mut view = View::default();
        hear(&mut view, 100, None);
        let done = StopAnswer {
            stop_id: "s1".to_owned(),
            clock: 150,
            epoch: 3,
            unreached: None,
        };
        view.stopped(&done, "a test");
        assert_eq!(view.epoch, 3, "after the stop");
        hear(&mut view, 140, None);
        assert_eq!(view.epoch, 3, "after what was said before it");
        let resumed = ResumeAnswer {
            clock: 160,
            epoch: Some(4),
        };
        view.resumed(&resumed);
        assert_eq!(view.epoch, 4, "after the resume of a newer stop");
        view.stopped(&done, "a test");
        assert_eq!(view.epoch, 4, "after an answer that was overtaken");
    }

    #[test]
    fn the_echo_of_a_stop_names_it_once() {
        let mut view = View::default();
        assert_eq!(view.take_echo(50), None);
        hear(&mut view, 100, Some("s1"));
        assert_eq!(view.take_echo(200).as_deref(), Some("s1"));
        assert_eq!(view.take_echo(201), None, "a stop of a person");
        hear(&mut view, 300, Some("s2"));
        assert_eq!(view.take_echo(350), None, "it is latched already and sends none");
        view.resumed(&resumed(400));
        hear(&mut view, 500, Some("s3"));
        assert_eq!(view.take_echo(9000), None, "much later");
    }

    #[test]
    fn a_resume_lifts_no_stop_that_its_operator_has_not_heard_of() {
        let newer = |view: &mut View| view.take_newer_stop().map(|stop| stop.stop_id);
        let mut view = View::default();
        hear(&mut view, 100, Some("s1"));
        assert_eq!(newer(&mut view), None);
        hear(&mut view, 200, Some("s2"));
        assert_eq!(newer(&mut view).as_deref(), Some("s2"), "it is told of it");
        assert_eq!(newer(&mut view), None, "and means it");
        view.resumed(&resumed(250));
        hear(&mut view, 300, Some("s3"));
        assert_eq!(newer(&mut view), None, "the service latched for this one");
        // Lifted there by another operator, and stopped anew.
        hear(&mut view, 400, None);
        hear(&mut view, 500, Some("s4"));
        assert_eq!(newer(&mut view).as_deref(), Some("s4"));
    }

    #[test]
    fn what_the_network_held_up_makes_no_contact() {
        let mut view = View::default();
        let mut answered = |sent: u64, received: u64, asked: bool| {
            let (host, lease) = (received - 1, view.lease_until(sent));
            let clock = HostClock { host, sent, received };
            let news = view.hear(&pulse(host, None), clock, asked);
            (news.contains(&News::Reached), view.hastens(clock, asked), lease)
        };
        // Sent before the network was dark, with the lease held then: it ends in 50 ms.
        assert_eq!(answered(1000, 1450, true), (false, true, None));
        assert_eq!(answered(1100, 1452, true), (false, false, None));
        // Sent now; the lease can be asked for from the next one on.
        assert_eq!(answered(1451, 1460, false), (false, true, None));
        let (reached, hastens, lease) = answered(1460, 1470, true);
        assert!(
            reached && !hastens && lease.unwrap() > 1460 + LEASE_MS / 2,
            "{lease:?}"
        );
    }

    #[test]
    fn a_host_is_lost_when_its_last_confirmed_lease_ends_and_found_again() {
        let mut view = View::default();
        assert_eq!(view.look(10_000), None, "it was never there");
        assert!(hear(&mut view, 100, None).contains(&News::Reached));
        assert_eq!(view.look(90 + LEASE_MS - 1), None);
        assert_eq!(view.look(90 + LEASE_MS), Some(News::Lost(LEASE_MS)));
        assert!(!view.held);
        assert_eq!(view.look(90 + LEASE_MS), None, "told once");
        assert!(hear(&mut view, 1000, None).contains(&News::Reached));
        // By the host's clock the lease never ends later than this side counts it as lost.
        assert!(view.lease_until(1010).unwrap() <= 1000 + LEASE_MS);
        let mut other = pulse(50, None);
        other.boot = "c".to_owned();
        let clock = HostClock {
            host: 50,
            sent: 1100,
            received: 1110,
        };
        assert!(view.hear(&other, clock, true).contains(&News::NewBoot));
    }
}
