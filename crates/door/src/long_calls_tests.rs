use super::*;

const LEASE: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(4);

/// A call whose task ends after `lasts`, or when it has to, and says which.
fn running(calls: &LongCalls<&'static str>, lasts: Duration) -> Arc<LongCall<&'static str>> {
    let call = calls.call("c-1", "wave");
    let task = Arc::clone(&call);
    tokio::spawn(async move {
        let _waits = task.waits();
        let ends = async {
            tokio::select! {
                why = task.ends() => why,
                () = tokio::time::sleep(lasts) => "done",
            }
        };
        let leaves = async {
            task.leaves().await;
            task.leave();
            pending::<()>().await;
        };
        let outcome = tokio::select! {
            outcome = ends => outcome,
            () = leaves => "never",
        };
        task.ended(outcome);
    });
    call
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_in_time_is_answered_with_its_outcome_and_a_longer_one_is_left() {
    for (lasts, answered) in [(1, Some("done")), (3, Some("done")), (5, None), (100, None)] {
        let calls = LongCalls::new(LEASE);
        let call = running(&calls, Duration::from_secs(lasts));
        let start = Instant::now();
        let outcome = PendingRequest::new(&call).outcome(PATIENCE, &calls).await;
        assert_eq!(outcome, answered, "{lasts} s");
        assert_eq!(start.elapsed().as_secs(), lasts.min(4), "{lasts} s");
        assert_eq!(calls.find("c-1").is_some(), answered.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_left_call_ends_with_its_lease_unless_its_client_asks() {
    for (asks, expected, after) in [
        (&[][..], "its client did not ask for it again", 34),
        (&[20, 20, 20], "its client did not ask for it again", 94),
        (&[20; 10], "done", 100),
    ] {
        let calls = LongCalls::new(LEASE);
        let call = running(&calls, Duration::from_secs(100));
        let start = Instant::now();
        assert_eq!(PendingRequest::new(&call).outcome(PATIENCE, &calls).await, None);
        let waiting = async {
            for seconds in asks {
                let _asked = call.ask();
                if call.outcome_within(Duration::from_secs(*seconds)).await.is_some() {
                    break;
                }
            }
            call.outcome_within(Duration::from_secs(1000)).await
        };
        assert_eq!(waiting.await, Some(expected), "{asks:?}");
        assert_eq!(start.elapsed().as_secs(), after, "{asks:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_goes_away_ends_its_call_and_one_that_was_answered_does_not() {
    let calls = LongCalls::new(LEASE);
    let call = running(&calls, Duration::from_secs(100));
    let start = Instant::now();
    let request = PendingRequest::new(&call);
    _ = tokio::time::timeout(Duration::from_secs(1), request.outcome(PATIENCE, &calls)).await;
    drop(request);
    let outcome = call.outcome_within(LEASE).await;
    assert_eq!(
        (outcome, start.elapsed().as_secs()),
        (Some("its request is gone"), 1)
    );

    let call = running(&calls, Duration::from_secs(10));
    let request = PendingRequest::new(&call);
    assert_eq!(request.outcome(PATIENCE, &calls).await, None);
    drop(request);
    assert_eq!(call.outcome_within(LEASE).await, Some("done"));
}

#[tokio::test(start_paused = true)]
async fn the_calls_that_are_left_are_bounded_and_so_are_their_outcomes() {
    let calls = LongCalls::new(LEASE);
    let new = || calls.call("c", "wave");
    let running: Vec<_> = (0..MOST_LEFT + 3).map(|_| new()).collect();
    let kept = running.iter().filter(|call| calls.keep(call)).count();
    assert_eq!(kept, MOST_LEFT);
    assert!(calls.is_full());
    // One more has to wait for its outcome, however long that takes.
    let call = new();
    let _waits = call.waits();
    let task = Arc::clone(&call);
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(500)).await;
        task.ended("done");
    });
    assert_eq!(
        PendingRequest::new(&call).outcome(PATIENCE, &calls).await,
        Some("done")
    );
    for call in &running {
        call.ended("done");
    }
    assert!(!calls.is_full());
    for _ in 0..MOST_KEPT + 3 {
        let call = new();
        assert!(calls.keep(&call));
        call.ended("done");
    }
    assert_eq!(calls.list().len(), MOST_KEPT);
    tokio::time::advance(KEPT).await;
    assert_eq!(calls.list().len(), 0);
}

#[test]
fn how_far_a_call_is_follows_its_progress() {
    use client::payload::ProgressKind::{ActionEnded, ActionStarted, Queued, Update, Wave};
    let calls = LongCalls::<()>::new(LEASE);
    let call = calls.call("c", "wave");
    let progress = |kind, wave, action: Option<&str>, fraction, message: Option<&str>| ProgressMessage {
        kind,
        wave,
        waves: 3,
        action: action.map(str::to_owned),
        fraction,
        message: message.map(str::to_owned),
        ..ProgressMessage::default()
    };
    assert_eq!(call.progress(), "");
    for (message, expected) in [
        (
            progress(Queued, 0, None, None, None),
            "it waits until the parts that it uses are free",
        ),
        (progress(Wave, 1, None, None, None), "wave 1 of 3"),
        (
            progress(ActionStarted, 1, Some("lift"), None, None),
            "wave 1 of 3: lift",
        ),
        (
            progress(ActionStarted, 1, Some("turn"), None, None),
            "wave 1 of 3: lift, turn",
        ),
        (
            progress(ActionEnded, 1, Some("lift"), None, None),
            "wave 1 of 3: turn",
        ),
        (
            progress(Update, 1, Some("turn"), Some(0.5), None),
            "wave 1 of 3: turn, 50 %",
        ),
        (
            progress(Update, 1, Some("turn"), None, Some("half way")),
            "wave 1 of 3: half way",
        ),
        (progress(Wave, 2, None, None, None), "wave 2 of 3"),
    ] {
        call.note(&message);
        assert_eq!(call.progress(), expected);
    }
}
