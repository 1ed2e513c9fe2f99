//! Tests of the rules about the calls of a chat.

use super::*;

const AFTER: Duration = Duration::from_secs(4);

fn call_of(id: &str) -> VoiceCall {
    VoiceCall {
        id: id.to_owned(),
        name: "wave".to_owned(),
        arguments: Ok(ovos_toolbox_wire::Object::new()),
        wants_answer: true,
        turn: None,
    }
}

fn of_turn(id: &str, turn: &str) -> VoiceCall {
    VoiceCall {
        turn: Some(turn.to_owned()),
        ..call_of(id)
    }
}

fn ledger() -> Ledger {
    let mut ledger = Ledger::new("chat", None);
    ledger.opened();
    ledger
}

#[track_caller]
fn run(ledger: &mut Ledger, asked: VoiceCall, kind: Kind) -> CallKey {
    match ledger.judge(asked, kind, Instant::now()) {
        Verdict::Run(key) => key,
        other => panic!("{other:?}"),
    }
}

fn outcome() -> Outcome {
    Outcome::failure("X", "x")
}

#[tokio::test]
async fn a_call_runs_once_whatever_brings_it_again() {
    let mut ledger = ledger();
    let key = run(&mut ledger, call_of("a"), Kind::Motion);
    let again = |ledger: &mut Ledger| ledger.judge(call_of("a"), Kind::Motion, Instant::now());
    assert_eq!(again(&mut ledger), Verdict::Known, "it runs");
    ledger.opened();
    assert_eq!(again(&mut ledger), Verdict::Known, "it runs, on another socket");
    let message = ledger
        .ended(&key, outcome(), true)
        .expect("an answer for the socket that asked last");
    assert_eq!(message.outcome, outcome());
    assert_eq!(again(&mut ledger), Verdict::Known, "it was answered");
    // The earlier answer may not have arrived.
    for _ in 0..2 {
        ledger.opened();
        match again(&mut ledger) {
            Verdict::Again(message) => assert_eq!(message.outcome, outcome()),
            other => panic!("{other:?}"),
        }
        assert_eq!(again(&mut ledger), Verdict::Known);
    }
    ledger.named("other");
    run(&mut ledger, call_of("a"), Kind::Motion);
}

#[tokio::test]
async fn a_call_whose_outcome_is_forgotten_does_not_run_again_either() {
    let mut ledger = ledger();
    for number in 0..=MAX_KEPT {
        let key = run(&mut ledger, call_of(&number.to_string()), Kind::Other);
        ledger.ended(&key, outcome(), true);
    }
    ledger.opened();
    match ledger.judge(call_of("0"), Kind::Other, Instant::now()) {
        Verdict::Again(message) => assert!(matches!(
            &message.outcome,
            Outcome::Failure { kind, .. } if kind == "RepeatedCall"
        )),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_answer_goes_to_the_socket_that_asked() {
    let mut ledger = ledger();
    let key = run(&mut ledger, call_of("a"), Kind::Other);
    let message = ledger.ended(&key, outcome(), true).expect("an answer");
    assert_eq!(message.how, MessageForm::Answer { is_last: true });
    assert_eq!(ledger.ended(&key, outcome(), true), None, "once");

    let silent = VoiceCall {
        wants_answer: false,
        ..call_of("b")
    };
    let key = run(&mut ledger, silent, Kind::Other);
    assert_eq!(ledger.ended(&key, outcome(), true), None, "no answer is wanted");

    let key = run(&mut ledger, call_of("c"), Kind::Other);
    assert_eq!(ledger.ended(&key, outcome(), false), None, "no socket is open");
}

#[tokio::test]
async fn the_last_answer_of_a_turn_is_known() {
    let mut ledger = ledger();
    let first = run(&mut ledger, of_turn("a", "t"), Kind::Other);
    let second = run(&mut ledger, of_turn("b", "t"), Kind::Other);
    let other = run(&mut ledger, of_turn("c", "u"), Kind::Other);
    for (key, is_last) in [(second, false), (other, true), (first, true)] {
        let message = ledger.ended(&key, outcome(), true).expect("an answer");
        assert_eq!(message.how, MessageForm::Answer { is_last }, "{key:?}");
    }
}

#[tokio::test]
async fn only_motion_is_halted_and_once() {
    let mut ledger = ledger();
    let moving = run(&mut ledger, call_of("a"), Kind::Motion);
    run(&mut ledger, call_of("b"), Kind::Other);
    run(&mut ledger, call_of("c"), Kind::Stop);
    assert!(ledger.moves());
    assert_eq!(ledger.cancel_motion(), std::slice::from_ref(&moving));
    assert_eq!(ledger.cancel_motion(), []);
    let back = ledger.take_back(&["a".to_owned(), "b".to_owned(), "c".to_owned()]);
    assert_eq!(
        back.len(),
        1,
        "neither what is cancelled already nor a stop: {back:?}"
    );
    ledger.ended(&moving, outcome(), true);
    assert!(!ledger.moves());
}

#[tokio::test]
async fn a_stop_is_never_refused() {
    let mut ledger = ledger();
    for number in 0..MAX_RUNNING {
        run(&mut ledger, call_of(&number.to_string()), Kind::Motion);
    }
    for (id, kind, runs) in [("x", Kind::Motion, false), ("y", Kind::Stop, true)] {
        let verdict = ledger.judge(call_of(id), kind, Instant::now());
        assert_eq!(matches!(verdict, Verdict::Run(_)), runs, "{verdict:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_call_is_announced_and_its_end_reported() {
    let mut ledger = Ledger::new("chat", Some(AFTER));
    ledger.opened();
    let now = Instant::now();
    let short = run(&mut ledger, call_of("short"), Kind::Other);
    let long = run(&mut ledger, call_of("long"), Kind::Motion);
    run(&mut ledger, call_of("stop"), Kind::Stop);
    assert_eq!(ledger.announced(now), []);
    ledger.ended(&short, outcome(), true);
    assert_eq!(ledger.next_announcement(), Some(now + AFTER));
    let announced = ledger.announced(now + AFTER);
    assert_eq!(announced.len(), 1);
    assert_eq!(announced[0].asked.id, "long");
    assert_eq!(ledger.next_announcement(), None);
    assert_eq!(ledger.announced(now + AFTER), []);
    assert!(ledger.moves(), "it goes on");
    let end = ledger.ended(&long, outcome(), true).expect("a report");
    assert_eq!(end.how, MessageForm::Report);
}

#[tokio::test(start_paused = true)]
async fn what_was_announced_on_a_lost_socket_is_reported_nowhere() {
    let mut ledger = Ledger::new("chat", Some(AFTER));
    ledger.opened();
    let key = run(&mut ledger, call_of("long"), Kind::Motion);
    ledger.announced(Instant::now() + AFTER);
    ledger.opened();
    assert_eq!(ledger.ended(&key, outcome(), true), None);
}

#[tokio::test(start_paused = true)]
async fn what_was_announced_on_a_lost_socket_is_announced_again_where_it_is_asked_for_again() {
    let mut ledger = Ledger::new("chat", Some(AFTER));
    ledger.opened();
    let key = run(&mut ledger, call_of("long"), Kind::Other);
    ledger.announced(Instant::now() + AFTER);
    ledger.opened();
    let again = ledger.judge(call_of("long"), Kind::Other, Instant::now());
    assert_eq!(again, Verdict::Known);
    assert_eq!(ledger.announced(Instant::now() + AFTER).len(), 1);
    let end = ledger.ended(&key, outcome(), true).expect("a report");
    assert_eq!(end.how, MessageForm::Report);
}

#[tokio::test]
async fn a_stop_without_an_id_is_carried_out_each_time() {
    let mut ledger = ledger();
    let nameless = || VoiceCall {
        wants_answer: false,
        ..call_of("")
    };
    let keys = [(); 2].map(|()| run(&mut ledger, nameless(), Kind::Stop));
    assert_ne!(keys[0], keys[1]);
    for key in keys {
        assert_eq!(ledger.ended(&key, outcome(), true), None, "it wants no answer");
    }
}

#[tokio::test]
async fn stops_are_bounded_and_none_is_refused() {
    let mut ledger = ledger();
    for number in 0..4 * MAX_STOPS {
        match ledger.judge(call_of(&format!("s{number}")), Kind::Stop, Instant::now()) {
            Verdict::Run(_) if number < MAX_STOPPING => {}
            Verdict::StopUnheard(key, outcome) if number >= MAX_STOPPING => {
                let message = ledger.ended(&key, outcome, true).expect("an answer");
                assert!(matches!(message.outcome, Outcome::Failure { .. }));
            }
            other => panic!("{number}: {other:?}"),
        }
    }
    assert_eq!(ledger.running.len(), MAX_STOPPING);
    assert!(ledger.stops.len() <= MAX_STOPS && ledger.known.is_empty());
    let last = call_of(&format!("s{}", 4 * MAX_STOPS - 1));
    assert_eq!(ledger.judge(last, Kind::Stop, Instant::now()), Verdict::Known);
}

#[tokio::test]
async fn what_is_known_is_bounded_and_never_runs_twice() {
    let mut ledger = ledger();
    for number in 0..MAX_CALLS {
        let key = run(&mut ledger, call_of(&number.to_string()), Kind::Other);
        ledger.ended(&key, outcome(), true);
    }
    for number in 0..10 {
        match ledger.judge(call_of(&format!("more{number}")), Kind::Other, Instant::now()) {
            Verdict::Refuse(key, outcome) => _ = ledger.ended(&key, outcome, true).expect("an answer"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(ledger.known.len(), MAX_CALLS);
    assert_eq!(
        ledger.judge(call_of("0"), Kind::Other, Instant::now()),
        Verdict::Known
    );
    run(&mut ledger, call_of("stop"), Kind::Stop);
}

#[tokio::test(start_paused = true)]
async fn of_answers_that_are_due_together_one_is_the_last_of_its_turn() {
    let mut ledger = Ledger::new("chat", Some(AFTER));
    ledger.opened();
    for (id, turn) in [("a", "t"), ("b", "u"), ("c", "t")] {
        run(&mut ledger, of_turn(id, turn), Kind::Other);
    }
    let announced = ledger.announced(Instant::now() + AFTER);
    let last = |messages: &[OutcomeMessage]| -> Vec<bool> {
        let is_last = |message: &OutcomeMessage| message.how == MessageForm::Answer { is_last: true };
        messages.iter().map(is_last).collect()
    };
    assert_eq!(last(&announced), [false, true, true]);
    // Calls of one turn are repeated on another socket.
    let mut ledger = self::ledger();
    for id in ["a", "b"] {
        let key = run(&mut ledger, of_turn(id, "t"), Kind::Other);
        ledger.ended(&key, outcome(), true);
    }
    ledger.opened();
    let mut again = |id| match ledger.judge(of_turn(id, "t"), Kind::Other, Instant::now()) {
        Verdict::Again(message) => *message,
        other => panic!("{other:?}"),
    };
    let mut repeats: Vec<OutcomeMessage> = ["a", "b"].map(&mut again).into();
    ledger.find_last(&mut repeats);
    assert_eq!(last(&repeats), [false, true]);
}
