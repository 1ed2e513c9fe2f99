//! Facts: what is told of calls and toolboxes, in which order, and to followers that are slow or fail.

use std::time::Duration;

use ovos_toolbox_wire::Effect;
use ovos_tools_engine::{
    BEHIND, CallLookup, CallRequest, Cause, Counts, Followed, Limits, Phase, StopTarget,
};

use crate::fact_order;
use crate::rig::{Rig, kind, some_progress};
use crate::script::{Script, actions};

/// A rig with the tools `look`, `left` (two waves) and `slow`.
fn rig() -> Rig {
    let rig = Rig::with(Limits {
        max_wait: Duration::from_millis(50),
        ..Limits::default()
    });
    rig.toolbox.tool("look", actions(&["look"]));
    rig.toolbox
        .tool("left", actions(&["left1 left", "left2 left < left1"]));
    rig.toolbox.tool("slow", actions(&["slow left"]));
    rig.toolbox.script("look", Script::takes(0));
    rig.toolbox.script("slow", Script::takes(1000));
    rig
}

/// What is done with a rig.
#[derive(Clone, Copy, Debug)]
enum Done {
    Calls(&'static str, Effect),
    CallsAndWaitsInVain,
    CancelsTwiceThenStops,
    StopsAndResumes,
    StopsItselfAndResumesAll,
    ReplacesTheToolbox,
}

impl Done {
    async fn with(self, rig: &Rig) {
        match self {
            Self::Calls(tool, effect) => {
                let request = CallRequest {
                    effect,
                    ..rig.request(tool)
                };
                rig.spawn(rig.received(request)).report().await;
            }
            Self::CallsAndWaitsInVain => {
                let first = rig.motion("slow");
                rig.phase(&first, Phase::Running).await;
                rig.spawn(rig.received(rig.request("left"))).refusal().await;
                first.report().await;
            }
            Self::CancelsTwiceThenStops => {
                let call = rig.spawn(rig.received(rig.request("slow")));
                rig.toolbox.until_started("slow").await;
                let CallLookup::InFlight(control) = rig.engine.find(&call.call_id) else {
                    panic!("{} is not in flight", call.call_id);
                };
                for _ in 0..2 {
                    control.end(Cause::Cancelled { by: "a test".into() });
                }
                rig.engine.stop(&StopTarget::All, "a test").await;
                call.report().await;
                control.end(Cause::Shutdown);
            }
            Self::StopsAndResumes => {
                let stopped = rig.engine.stop(&StopTarget::All, "a test").await;
                rig.engine
                    .resume("robot", &stopped[0].stop_id, "a test")
                    .await
                    .unwrap();
            }
            Self::StopsItselfAndResumesAll => {
                let stopped = rig.engine.stop_itself("robot", "a button").await;
                rig.engine
                    .resume_all(&stopped[0].stop_id, "a test")
                    .await
                    .unwrap();
            }
            Self::ReplacesTheToolbox => {
                rig.attach(2);
                rig.attach(1);
                rig.engine.detach("robot", 1);
                rig.engine.detach("robot", 1);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_step_is_told_once_and_in_order() {
    let rows = [
        (
            Done::Calls("look", Effect::Read),
            "received planned wave action_started action_ended answered",
        ),
        (
            Done::Calls("left", Effect::Motion),
            "received planned wave action_started action_ended wave action_started action_ended answered",
        ),
        (Done::CallsAndWaitsInVain, "received planned waiting answered"),
        (
            Done::CancelsTwiceThenStops,
            "received planned wave action_started cancelled stopped cancelled action_ended answered",
        ),
        (Done::StopsAndResumes, "stopped resumed"),
        (Done::StopsItselfAndResumesAll, "stopped resumed"),
        (Done::ReplacesTheToolbox, "toolbox_up toolbox_down"),
    ];
    for (done, expected) in rows {
        let rig = rig();
        let mut follower = rig.engine.facts().follow();
        done.with(&rig).await;
        let facts = fact_order::read_all(&mut follower);
        let kinds: Vec<String> = facts.iter().map(|fact| kind(&fact.fact)).collect();
        assert_eq!(kinds.join(" "), expected, "{done:?}");
        assert_eq!(facts[0].number, 1, "{done:?}");
        fact_order::check(&facts);
    }
}

#[tokio::test(start_paused = true)]
async fn counts_do_not_depend_on_followers() {
    for followed in [false, true] {
        let rig = rig();
        let follower = followed.then(|| rig.engine.facts().follow());
        let request = |tool| CallRequest {
            effect: Effect::Read,
            ..rig.request(tool)
        };
        rig.spawn(rig.received(request("look"))).report().await;
        let stopped = rig.engine.stop(&StopTarget::All, "a test").await;
        rig.spawn(rig.received(rig.request("left"))).refusal().await;
        rig.engine
            .resume("robot", &stopped[0].stop_id, "a test")
            .await
            .unwrap();
        rig.engine.stop_itself("robot", "a button").await;
        let counts = Counts {
            calls: 2,
            failed_calls: 1,
            stops: 1,
        };
        assert_eq!(rig.engine.facts().counts(), counts);
        drop(follower);
    }
}

/// The public surface of the engine, with followers of three kinds.
#[tokio::test(start_paused = true)]
async fn a_follower_that_never_reads_or_panics_delays_nothing_and_the_first_learns_what_it_lost() {
    const CALLS: usize = 10_000;
    let rig = rig();
    let facts = rig.engine.facts();
    let (mut never, mut prompt, mut panics) = (facts.follow(), facts.follow(), facts.follow());
    let panics = tokio::spawn(async move { panic!("the first fact is {:?}", panics.next().await) });
    let mut seen = Vec::new();
    for _ in 0..CALLS {
        let request = CallRequest {
            effect: Effect::Read,
            ..rig.request("look")
        };
        rig.spawn(rig.received(request)).report().await;
        seen.extend(fact_order::read_all(&mut prompt));
    }
    assert!(panics.await.unwrap_err().is_panic());
    assert_eq!(fact_order::check(&seen), CALLS);
    let sent = u64::try_from(seen.len()).unwrap();
    let behind = u64::try_from(BEHIND).unwrap();
    assert_eq!(seen.last().unwrap().number, sent);

    let late = fact_order::read(&mut never);
    let Some((Followed::Lost { from, to }, rest)) = late.split_first() else {
        panic!("it lost facts: {:?}", late.first());
    };
    assert_eq!((*from, *to), (1, sent - behind));
    let numbers: Vec<u64> = rest
        .iter()
        .map(|followed| match followed {
            Followed::Fact(sent) => sent.number,
            Followed::Lost { .. } => panic!("it is told once: {followed:?}"),
        })
        .collect();
    assert_eq!(numbers, (sent - behind + 1..=sent).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_not_read_drops_updates_first_and_the_numbers_tell() {
    const UPDATES: u64 = 3000;
    let rig = rig();
    let (request, mut steps) = rig.with_queue(rig.request("slow"));
    let mut follower = rig.engine.facts().follow();
    let call = rig.spawn(request);
    rig.toolbox.until_started("slow").await;
    let progress = rig.toolbox.sink("slow");
    for _ in 0..UPDATES {
        progress(some_progress());
    }
    call.report().await;
    let mut facts = Vec::new();
    while let Ok(step) = steps.try_recv() {
        facts.push((step.seq, kind(&step.fact)));
    }
    let last = facts.pop().unwrap();
    assert_eq!(last, (UPDATES + 3, "action_ended".to_owned()));
    let numbers: Vec<u64> = facts.iter().map(|(seq, _)| *seq).collect();
    assert!(numbers.len() > 1000, "{}", numbers.len());
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let facts = fact_order::read_all(&mut follower);
    assert!(
        facts.iter().all(|fact| kind(&fact.fact) != "update"),
        "updates are for the call's own queue"
    );
}
