//! Properties of every graph, toolbox and disturbance: the cases are random, and shrunk when one fails.

use std::collections::HashMap;
use std::time::Duration;

use ovos_toolbox_wire::{Action, Effect, Outcome, Report};
use ovos_tools_engine::{
    CallEnd, CallLookup, CallRequest, Cause, Claim, Defaults, Limits, NumberedFact, Plan, StopTarget,
};
use proptest::prelude::*;
use proptest::sample::subsequence;

use crate::fact_order;
use crate::memory_toolbox::{DEADLINE, Event};
use crate::rig::{Call, Rig};
use crate::script::{OnCancel, Script, Then};

const SUBSYSTEMS: [&str; 7] = ["left", "right", "all", "k1/arm", "k1/base", "k1/all", "g1/arm"];

/// One generated call, with the behaviour of its toolbox.
#[derive(Clone, Debug)]
struct Drawn {
    effect: Effect,
    actions: Vec<Action>,
    scripts: Vec<Script>,
    starts_at: u64,
    timeout: Option<u64>,
}

#[derive(Clone, Debug)]
enum Disturbance {
    Cancel(usize),
    Drop(usize),
    UserStop,
    BusLost,
    Stop,
    Resume,
}

fn script() -> impl Strategy<Value = Script> {
    let then = prop_oneof![
        6 => Just(Then::Complete(serde_json::json!(1))),
        1 => Just(Then::Fail),
        1 => Just(Then::Crash),
        1 => Just(Then::Ends),
    ];
    let takes = prop_oneof![8 => (0..300u64).prop_map(|ms| Some(Duration::from_millis(ms))), 1 => Just(None)];
    let after = || (0..400u64).prop_map(Duration::from_millis);
    let on_cancel = prop_oneof![
        after().prop_map(OnCancel::Ends),
        after().prop_map(OnCancel::Fails),
        after().prop_map(OnCancel::Completes),
        Just(OnCancel::Ignores),
    ];
    (takes, then, on_cancel).prop_map(|(takes, then, on_cancel)| Script {
        takes,
        then,
        on_cancel,
    })
}

/// Actions without a cycle, in which a dependency may be declared before or after the action that needs it.
fn actions(effect: Effect, most: usize) -> impl Strategy<Value = Vec<Action>> {
    let shuffled = (1..=most).prop_flat_map(|n| Just((0..n).collect::<Vec<_>>()).prop_shuffle());
    shuffled.prop_flat_map(move |ranks| {
        let draw = |&rank: &usize| {
            let earlier: Vec<usize> = (0..ranks.len()).filter(|&other| ranks[other] < rank).collect();
            let most = earlier.len().min(2);
            let effects = if effect == Effect::Motion {
                vec![
                    Effect::Motion,
                    Effect::Motion,
                    Effect::Write,
                    Effect::Read,
                    Effect::Safe,
                ]
            } else {
                vec![effect]
            };
            (
                subsequence(SUBSYSTEMS.to_vec(), 0..=2),
                subsequence(earlier, 0..=most),
                prop::sample::select(effects),
                prop::option::of(1..2000u64),
            )
        };
        let drawn: Vec<_> = ranks.iter().map(draw).collect();
        drawn.prop_map(|drawn| {
            let action = |(n, (subsystems, dependencies, effect, timeout_ms)): (
                usize,
                (Vec<&str>, Vec<usize>, _, _),
            )| {
                Action {
                    id: Some(format!("a{n}")),
                    subsystems: subsystems.into_iter().map(str::to_owned).collect(),
                    dependencies: dependencies.into_iter().map(|d| format!("a{d}")).collect(),
                    effect: Some(effect),
                    timeout_ms,
                    ..Action::named("act")
                }
            };
            drawn.into_iter().enumerate().map(action).collect()
        })
    })
}

fn call() -> impl Strategy<Value = Drawn> {
    let effect = prop_oneof![5 => Just(Effect::Motion), 1 => Just(Effect::Read), 1 => Just(Effect::Safe)];
    effect.prop_flat_map(|effect| {
        let actions = actions(effect, 8);
        let scripts = prop::collection::vec(script(), 8);
        let timeout = prop::option::weighted(0.2, 0..1500u64);
        (actions, scripts, 0..400u64, timeout).prop_map(move |(actions, scripts, starts_at, timeout)| Drawn {
            effect,
            actions,
            scripts,
            starts_at,
            timeout,
        })
    })
}

fn disturbance() -> impl Strategy<Value = Disturbance> {
    prop_oneof![
        4 => (0..4usize).prop_map(Disturbance::Cancel),
        1 => (0..4usize).prop_map(Disturbance::Drop),
        1 => Just(Disturbance::UserStop),
        1 => Just(Disturbance::BusLost),
        1 => Just(Disturbance::Stop),
        1 => Just(Disturbance::Resume),
    ]
}

fn planned(actions: Vec<Action>, effect: Effect) -> Plan {
    let timeout = Duration::from_secs(10);
    Plan::new(actions, Defaults { effect, timeout }).expect("there is no cycle")
}

/// The course of one case.
struct Story {
    calls: Vec<Drawn>,
    log: Vec<Event>,
    /// By call; `None` if its task was aborted.
    ends: Vec<Option<CallEnd>>,
    /// By call: the first disturbance that asked it to end, with the length of the log at that moment.
    ended_at: HashMap<usize, (usize, Disturbance)>,
    facts: Vec<NumberedFact>,
}

/// Runs the calls with the disturbances in between. Ids become `<call>-<action>`, so that they are unique in the log.
fn live(calls: Vec<Drawn>, disturbances: Vec<(u64, Disturbance)>, halts_answered: bool) -> Story {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async move {
        let limits = Limits {
            max_waiting: 2,
            max_wait: Duration::from_secs(3),
            safe_limit: Duration::from_secs(5),
            ..Limits::default()
        };
        let rig = Rig::with(limits);
        let mut follower = rig.engine.facts().follow();
        if !halts_answered {
            rig.toolbox.halts(crate::script::Answer::Never);
        }
        for (number, call) in calls.iter().enumerate() {
            let rename = |id: &String| format!("{number}-{id}");
            let mut actions = call.actions.clone();
            for (action, script) in actions.iter_mut().zip(&call.scripts) {
                action.id = action.id.as_ref().map(rename);
                action.dependencies = action.dependencies.iter().map(rename).collect();
                rig.toolbox.script(action.id.as_ref().unwrap(), script.clone());
            }
            rig.toolbox.tool(&format!("t{number}"), actions);
        }
        // The timeline; at the same time, calls come before disturbances.
        let mut times: Vec<(u64, Result<usize, Disturbance>)> = Vec::new();
        times.extend(
            calls
                .iter()
                .enumerate()
                .map(|(number, call)| (call.starts_at, Ok(number))),
        );
        times.extend(disturbances.into_iter().map(|(at, what)| (at, Err(what))));
        times.sort_by_key(|(at, _)| *at);

        let start = tokio::time::Instant::now();
        let mut running: Vec<Option<Call>> = calls.iter().map(|_| None).collect();
        let mut ended_at = HashMap::new();
        let mut dropped = Vec::new();
        for (at, what) in times {
            tokio::time::sleep_until(start + Duration::from_millis(at)).await;
            let disturbance = match what {
                Ok(number) => {
                    let call = rig.spawn(rig.received(CallRequest {
                        call_id: format!("call-{number}"),
                        effect: calls[number].effect,
                        timeout: calls[number].timeout.map(Duration::from_millis),
                        ..rig.request(&format!("t{number}"))
                    }));
                    running[number] = Some(call);
                    continue;
                }
                Err(disturbance) => disturbance,
            };
            let in_flight = |number: usize| match rig.engine.find(&format!("call-{number}")) {
                CallLookup::InFlight(control) => Some(control),
                _ => None,
            };
            let place = rig.toolbox.log().len();
            let hit: Vec<usize> = match disturbance {
                Disturbance::Resume => Vec::new(),
                Disturbance::Cancel(number) | Disturbance::Drop(number) => vec![number],
                Disturbance::BusLost => (0..calls.len())
                    .filter(|&n| calls[n].effect == Effect::Motion)
                    .collect(),
                _ => (0..calls.len()).collect(),
            };
            for number in hit.into_iter().filter(|&number| in_flight(number).is_some()) {
                ended_at.entry(number).or_insert((place, disturbance.clone()));
            }
            match disturbance {
                Disturbance::Cancel(number) => {
                    if let Some(control) = in_flight(number) {
                        control.end(Cause::Cancelled { by: "a test".into() });
                    }
                }
                Disturbance::Drop(number) => {
                    if let Some(call) = running.get(number).and_then(Option::as_ref) {
                        call.task.abort();
                        dropped.push(number);
                    }
                }
                Disturbance::UserStop => _ = rig.engine.user_stop(None),
                Disturbance::BusLost => _ = rig.engine.bus_lost(Duration::from_secs(1)),
                Disturbance::Stop => drop(rig.engine.stop(&StopTarget::All, "a test")),
                Disturbance::Resume => {
                    if let Some(stop) = rig.engine.latch("robot") {
                        rig.engine.resume("robot", &stop.stop_id, "a test").await.unwrap();
                    }
                }
            }
        }
        let mut ends = Vec::new();
        for (number, call) in running.into_iter().enumerate() {
            let call = call.expect("every call was made");
            let end = tokio::time::timeout(DEADLINE, call.task)
                .await
                .expect("no call without an end");
            assert!(
                end.is_ok() || dropped.contains(&number),
                "call {number} panicked: {end:?}"
            );
            ends.push(end.ok());
        }
        assert_eq!(rig.engine.calls_in_flight(), 0);
        // Nothing is left reserved: a call on `all` completes.
        if let Some(stop) = rig.engine.latch("robot") {
            rig.engine.resume("robot", &stop.stop_id, "a test").await.unwrap();
        }
        let log = rig.toolbox.log();
        rig.toolbox.tool("last", crate::script::actions(&["last all"]));
        let last = tokio::time::timeout(Duration::from_secs(1), rig.motion("last").report()).await;
        assert_eq!(
            last.expect("nothing holds anything").actions[0].outcome,
            Outcome::Completed
        );
        Story {
            calls,
            log,
            ends,
            ended_at,
            facts: fact_order::read_all(&mut follower),
        }
    })
}

impl Story {
    fn find(&self, event: &Event) -> Option<usize> {
        self.log.iter().position(|e| e == event)
    }

    fn id(number: usize, action: &Action) -> String {
        format!("{number}-{}", action.id.as_ref().unwrap())
    }

    /// The indexes in the log of an action's start and end.
    fn span(&self, number: usize, action: &Action) -> Option<(usize, usize)> {
        let id = Self::id(number, action);
        let start = |e: &Event| matches!(e, Event::Started { action, .. } if *action == id);
        let end =
            |e: &Event| matches!(e, Event::Ended { action } | Event::GivenUp { action } if *action == id);
        let starts = self.log.iter().filter(|e| start(e)).count();
        assert!(starts <= 1, "{id} was started {starts} times");
        let started = self.log.iter().position(start)?;
        let ended = self
            .log
            .iter()
            .position(end)
            .expect("what starts ends or is given up");
        Some((started, ended))
    }

    fn actions(&self) -> impl Iterator<Item = (usize, &Drawn, &Action)> {
        let of = |(number, call): (usize, &'_ Drawn)| (number, call.actions.len());
        let sizes: Vec<_> = self.calls.iter().enumerate().map(of).collect();
        sizes
            .into_iter()
            .flat_map(|(number, count)| (0..count).map(move |index| (number, index)))
            .map(|(number, index)| (number, &self.calls[number], &self.calls[number].actions[index]))
    }

    fn check(&self) {
        for (number, end) in self.ends.iter().enumerate() {
            if let Some(CallEnd::Ran { report, .. }) = end {
                self.check_report(number, report);
            }
        }
        let answers = self.ends.iter().flatten().count();
        assert_eq!(fact_order::check(&self.facts), answers);
        self.check_dependencies();
        self.check_overlaps();
        self.check_nothing_after_the_end();
        self.check_halts();
    }

    fn check_report(&self, number: usize, report: &Report) {
        let ids: Vec<_> = report.actions.iter().map(|line| line.id.clone()).collect();
        let declared: Vec<_> = self.calls[number]
            .actions
            .iter()
            .map(|a| Self::id(number, a))
            .collect();
        assert_eq!(ids, declared, "one line an action, in the plan's order");
        for (line, action) in report.actions.iter().zip(&self.calls[number].actions) {
            let span = self.span(number, action);
            match line.outcome {
                Outcome::Skipped => assert!(span.is_none(), "{line:?} was started"),
                Outcome::Cancelled => {}
                _ => assert!(span.is_some(), "{line:?} was never started"),
            }
            let given_up = self
                .find(&Event::GivenUp {
                    action: line.id.clone(),
                })
                .is_some();
            assert_eq!(line.outcome == Outcome::Abandoned, given_up, "{line:?}");
            assert_eq!(
                line.error.is_none(),
                line.outcome == Outcome::Completed,
                "{line:?}"
            );
        }
    }

    fn check_dependencies(&self) {
        for (number, call, action) in self.actions() {
            let Some((started, _)) = self.span(number, action) else {
                continue;
            };
            for dependency in &action.dependencies {
                let before = call
                    .actions
                    .iter()
                    .find(|a| a.id.as_ref() == Some(dependency))
                    .unwrap();
                let ended = self.find(&Event::Ended {
                    action: Self::id(number, before),
                });
                assert!(
                    ended.is_some_and(|ended| ended < started),
                    "{action:?} did not wait for {dependency}"
                );
            }
        }
    }

    fn check_overlaps(&self) {
        let spans: Vec<_> = self
            .actions()
            .filter_map(|(number, call, action)| Some((number, call, action, self.span(number, action)?)))
            .collect();
        for (place, (number, call, action, span)) in spans.iter().enumerate() {
            for (other_number, other_call, other, other_span) in &spans[place + 1..] {
                let apart = number != other_number;
                if apart && (call.effect == Effect::Read || other_call.effect == Effect::Read) {
                    continue;
                }
                let claim = |action: &Action| action.subsystems.iter().cloned().collect::<Claim>();
                let overlap = span.0 < other_span.1 && other_span.0 < span.1;
                assert!(
                    !overlap || !claim(action).conflicts(&claim(other)),
                    "{number} {action:?} and {other_number} {other:?} overlap"
                );
            }
        }
    }

    /// After a call was asked to end, only safe actions are started; after an emergency stop or an abort of its task,
    /// none.
    fn check_nothing_after_the_end(&self) {
        for (number, _, action) in self.actions() {
            let Some((place, why)) = self.ended_at.get(&number) else {
                continue;
            };
            let hard = matches!(why, Disturbance::Stop | Disturbance::Drop(_));
            let Some((started, _)) = self.span(number, action) else {
                continue;
            };
            let safe = action.effect == Some(Effect::Safe);
            assert!(
                started < *place || (safe && !hard),
                "{number} {action:?} was started after {why:?}"
            );
        }
        assert!(
            !self.log.iter().any(|e| matches!(e, Event::Dropped { .. })),
            "a start of an old epoch was sent"
        );
    }

    /// A motion action that is cancelled is halted at once, unless an emergency stop came first; no gentle halt follows
    /// one.
    fn check_halts(&self) {
        let stops: Vec<_> = (0..self.log.len())
            .filter(|&place| matches!(self.log[place], Event::Halted { emergency: true, .. }))
            .collect();
        for (number, _, action) in self
            .actions()
            .filter(|(_, _, action)| action.effect == Some(Effect::Motion))
        {
            let id = Self::id(number, action);
            let Some(cancelled) = self.find(&Event::Cancelled { action: id }) else {
                continue;
            };
            let (started, _) = self.span(number, action).unwrap();
            let covers = |subsystems: &[String]| {
                let mut wanted = action.subsystems.iter();
                subsystems == ["all"]
                    || (!action.subsystems.is_empty() && wanted.all(|s| subsystems.contains(s)))
            };
            let gentle = matches!(
                self.log.get(cancelled + 1),
                Some(Event::Halted { subsystems, emergency: false }) if covers(subsystems)
            );
            let stopped = stops.iter().any(|stop| (started..cancelled).contains(stop));
            assert!(
                gentle != stopped,
                "{number} {action:?}: halted {gentle}, stopped {stopped}"
            );
        }
    }
}

proptest! {
    #[test]
    fn the_same_actions_give_the_same_plan_and_every_action_comes_after_its_dependencies(
        actions in actions(Effect::Motion, 40),
    ) {
        let plan = planned(actions.clone(), Effect::Motion);
        prop_assert_eq!(&plan, &planned(actions.clone(), Effect::Motion));
        for (action, declared) in plan.actions.iter().zip(&actions) {
            let wave = action.dependencies.iter().map(|&d| plan.actions[d].wave).max().unwrap_or(0) + 1;
            prop_assert_eq!(action.wave, wave);
            let mut named: Vec<_> = action.dependencies.iter().map(|&d| plan.actions[d].id.clone()).collect();
            let mut wanted = declared.dependencies.clone();
            named.sort();
            wanted.sort();
            prop_assert_eq!(named, wanted);
        }
        let mut seen: Vec<usize> = plan.waves.concat();
        for (number, wave) in (1..).zip(&plan.waves) {
            prop_assert!(!wave.is_empty() && wave.is_sorted());
            prop_assert!(wave.iter().all(|&index| plan.actions[index].wave == number));
        }
        seen.sort_unstable();
        prop_assert!(seen.into_iter().eq(0..actions.len()));
    }

    #[test]
    fn claims_conflict_when_two_of_their_names_do(
        left in subsequence(SUBSYSTEMS.to_vec(), 0..=4),
        right in subsequence(SUBSYSTEMS.to_vec(), 0..=4),
    ) {
        let excludes = |a: &str, b: &str| {
            let unit_of = |name: &str| name.split_once('/').map(|(unit, _)| unit.to_owned());
            let covers = |a: &str, b: &str| a == "all" || a == b || (a.ends_with("/all") && unit_of(a) == unit_of(b));
            covers(a, b) || covers(b, a)
        };
        let expected = left.iter().any(|a| right.iter().any(|b| excludes(a, b)));
        prop_assert_eq!(Claim::from_iter(left).conflicts(&Claim::from_iter(right)), expected);
    }

    #[test]
    fn whatever_happens_calls_end_once_in_order_and_nothing_moves_after_the_end(
        calls in prop::collection::vec(call(), 1..5),
        disturbances in prop::collection::vec((0..1500u64, disturbance()), 0..5),
        halts_answered in prop::bool::weighted(0.9),
    ) {
        live(calls, disturbances, halts_answered).check();
    }
}
