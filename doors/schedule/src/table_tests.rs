use chrono::{FixedOffset, Utc};
use serde_json::json;

use super::*;
use crate::timing::FASTEST;

const BEGIN: Millis = 1_767_225_600_000; // 2026-01-01
const SECOND: Millis = 1_000;
const HOUR: Millis = 3_600 * SECOND;
const YEAR: Millis = 365 * 24 * HOUR;

fn schedule(id: &str, when: Value, reads: bool) -> Schedule {
    let Value::Object(data) = when else {
        panic!("{when}")
    };
    Schedule {
        schedule_id: id.to_owned(),
        title: String::new(),
        when: Timing::read(&data, BEGIN, FASTEST).expect("a time"),
        what: What::Call(Object::new()),
        reads,
        asker: "bus".to_owned(),
        on_behalf: json!(["bus"]),
        session_id: Some("s".to_owned()),
        times: None,
        next_ms: None,
        last_ms: None,
        firing_ms: None,
        fired: 0,
        outcome: None,
        suspended: None,
    }
}

/// Schedules of every form.
fn table(zone: &FixedOffset) -> Table {
    let mut table = Table::default();
    table.due(BEGIN, zone);
    for (id, when, reads) in [
        ("often", json!({"every_seconds": 600}), false),
        ("hourly", json!({"cron": "0 * * * *"}), false),
        ("workdays", json!({"cron": "30 7 * * MON-FRI"}), false),
        ("leap", json!({"cron": "0 0 29 2 *"}), false),
        ("once", json!({"in_seconds": 5_000_000}), false),
        ("watch", json!({"every_seconds": 3600}), true),
    ] {
        table.add(schedule(id, when, reads), BEGIN, zone).expect("room");
    }
    table
}

fn firings(due_work: &[DueWork]) -> Vec<&Schedule> {
    let fired = due_work.iter().filter_map(|work| match work {
        DueWork::Fire(schedule) => Some(&**schedule),
        DueWork::Missed { .. } => None,
    });
    fired.collect()
}

#[test]
fn in_a_calm_year_each_schedule_fires_at_each_of_its_times() {
    let zone = FixedOffset::east_opt(3_600).expect("a zone");
    let mut table = table(&zone);
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    while let Some(now) = table.wakes_at().filter(|now| *now <= BEGIN + YEAR) {
        let due_work = table.due(now, &zone);
        assert!(!due_work.is_empty());
        for fired in firings(&due_work) {
            assert_eq!(fired.firing_ms, Some(now));
            *counts.entry(fired.schedule_id.clone()).or_default() += 1;
            table.ended(&fired.schedule_id, "done");
        }
        assert_eq!(firings(&due_work).len(), due_work.len(), "missed: {due_work:?}");
    }
    let counts: Vec<(&str, u64)> = counts.iter().map(|(id, count)| (id.as_str(), *count)).collect();
    // 2026 has 261 days from Monday to Friday, and no 29 February. The hours at both ends of it count.
    let expected = [
        ("hourly", 8761),
        ("often", 52_560),
        ("once", 1),
        ("watch", 8760),
        ("workdays", 261),
    ];
    assert_eq!(counts, expected);
    assert!(table.find("once").is_none() && table.find("leap").is_some());
}

/// Restarts at any moment, a clock that is put forward and back, stops and resumes, calls that take long.
#[test]
fn in_a_year_of_trouble_nothing_fires_twice_late_or_while_it_is_suspended() {
    let zone = FixedOffset::east_opt(3_600).expect("a zone");
    for seed in 0..30 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut table = table(&zone);
        let mut now = BEGIN;
        let mut fired: BTreeMap<String, Vec<Millis>> = BTreeMap::new();
        let mut running: Vec<String> = Vec::new();
        let (mut is_suspended, mut missed, mut restarts, mut put_back) = (false, 0, 0, 0);
        while now < BEGIN + YEAR / 12 {
            let wakes = table.wakes_at().unwrap_or(now + HOUR);
            match random.u32(..1000) {
                // The machine was off, or asleep.
                0..8 => now += random.i64(0..8 * HOUR),
                8..12 => now += random.i64(0..5 * 24 * HOUR),
                12..20 => {
                    now -= random.i64(0..3 * HOUR);
                    put_back += 1;
                    fired.clear();
                }
                20..60 => {
                    // What was written is what is read.
                    let text = serde_json::to_string(&table).expect("JSON");
                    table = serde_json::from_str(&text).expect("what was written");
                    let interrupted = table.restored();
                    assert_eq!(interrupted.len(), running.len());
                    running.clear();
                    restarts += 1;
                }
                60..90 => {
                    table.suspend(None, "an emergency stop");
                    is_suspended = true;
                }
                90..200 => {
                    table.resume(None, now, &zone);
                    is_suspended = false;
                }
                200..500 => {
                    if let Some(id) = running.pop() {
                        table.ended(&id, "done");
                    }
                }
                _ => now = now.max(wakes.min(now + 600 * SECOND) + random.i64(0..2 * SECOND)),
            }
            for work in table.due(now, &zone) {
                match work {
                    DueWork::Missed { why, .. } => {
                        assert!(!why.is_empty());
                        missed += 1;
                    }
                    DueWork::Fire(schedule) => {
                        let id = schedule.schedule_id.clone();
                        let due = schedule.firing_ms.expect("the time it is for");
                        assert!((due..=due + LATE).contains(&now), "{seed}: {id} is late");
                        assert!(
                            !is_suspended || schedule.reads,
                            "{seed}: {id} fires while suspended"
                        );
                        assert!(!running.contains(&id), "{seed}: {id} runs twice at once");
                        let times = fired.entry(id.clone()).or_default();
                        assert!(
                            times.last().is_none_or(|last| *last < due),
                            "{seed}: {id} twice for {due}"
                        );
                        times.push(due);
                        running.push(id);
                    }
                }
            }
            // Nothing is put off for longer than its own interval.
            for schedule in table.all() {
                if let (Timing::Every { every_ms, .. }, Some(next)) = (&schedule.when, schedule.next_ms) {
                    assert!(
                        next - now <= *every_ms,
                        "{seed}: {} is put off",
                        schedule.schedule_id
                    );
                }
            }
        }
        assert!(
            missed > 0 && restarts > 0 && put_back > 0,
            "{seed}: there was no trouble"
        );
    }
}

#[test]
fn an_hour_that_comes_twice_fires_once() {
    let mut table = Table::default();
    table.due(BEGIN, &Utc);
    table
        .add(schedule("h", json!({"cron": "30 * * * *"}), false), BEGIN, &Utc)
        .expect("room");
    let half = BEGIN + HOUR / 2;
    assert_eq!(firings(&table.due(half, &Utc)).len(), 1);
    table.ended("h", "done");
    // People put the clock back by an hour.
    let mut fired = 0;
    for minute in 0..=120 {
        let due_work = table.due(half + 60 * SECOND - HOUR + minute * 60 * SECOND, &Utc);
        for schedule in firings(&due_work) {
            table.ended(&schedule.schedule_id, "done");
            assert_eq!(schedule.firing_ms, Some(half + HOUR));
            fired += 1;
        }
    }
    assert_eq!(fired, 1);
}

#[test]
fn events_fire_what_waits_for_them_and_not_too_often() {
    let mut table = Table::default();
    let on = |kind: &str, toolbox: Option<&str>| json!({"on_event": {"kind": kind, "toolbox_id": toolbox}});
    for (id, when) in [
        ("any", on("door_open", None)),
        ("one", on("door_open", Some("house"))),
        ("other", on("fire", None)),
    ] {
        table.add(schedule(id, when, false), BEGIN, &Utc).expect("room");
    }
    let ids = |due_work: Vec<DueWork>| -> Vec<String> {
        firings(&due_work)
            .iter()
            .map(|one| one.schedule_id.clone())
            .collect()
    };
    assert_eq!(ids(table.event("house", "door_open", BEGIN)), ["any", "one"]);
    table.ended("any", "done");
    table.ended("one", "done");
    assert!(ids(table.event("house", "door_open", BEGIN + FASTEST - 1)).is_empty());
    assert_eq!(ids(table.event("barn", "door_open", BEGIN + FASTEST)), ["any"]);
    // One that still runs does not run twice.
    assert!(ids(table.event("barn", "door_open", BEGIN + 3 * FASTEST)).is_empty());
    table.suspend(None, "a stop");
    assert!(ids(table.event("house", "fire", BEGIN)).is_empty());
    table.resume(Some("other"), BEGIN, &Utc);
    assert_eq!(ids(table.event("house", "fire", BEGIN)), ["other"]);
}

#[test]
fn the_schedules_of_one_asker_are_bounded_and_a_number_of_times_ends_one() {
    let mut table = Table::default();
    let mut once = schedule("o", json!({"every_seconds": 60}), false);
    once.times = Some(2);
    table.add(once, BEGIN, &Utc).expect("room");
    for number in 1..MOST_OF_ONE {
        let one = schedule(&number.to_string(), json!({"every_seconds": 3600}), false);
        table.add(one, BEGIN, &Utc).expect("room");
    }
    let more = schedule("more", json!({"every_seconds": 60}), false);
    assert_eq!(
        table.add(more.clone(), BEGIN, &Utc),
        Err(TableFull::OfOne("bus".to_owned()))
    );
    let of_another = Schedule {
        asker: "door:mcp".to_owned(),
        ..more
    };
    assert_eq!(table.add(of_another, BEGIN, &Utc), Ok(()));
    for minute in 1..=2 {
        assert_eq!(
            firings(&table.due(BEGIN + minute * FASTEST, &Utc)).len(),
            2,
            "{minute}"
        );
        table.ended("o", "done");
        table.ended("more", "done");
    }
    assert!(table.find("o").is_none() && table.find("more").is_some());
}

#[test]
fn a_stop_suspends_what_does_more_than_read_and_of_a_session_its_own() {
    let mut table = Table::default();
    for (id, reads, session) in [("a", false, "s"), ("b", false, "t"), ("c", true, "s")] {
        let one = Schedule {
            session_id: Some(session.to_owned()),
            ..schedule(id, json!({"every_seconds": 60}), reads)
        };
        table.add(one, BEGIN, &Utc).expect("room");
    }
    assert_eq!(table.suspend(Some("s"), "stop"), 1);
    assert_eq!(table.suspend(None, "emergency"), 1);
    let due_work = table.due(BEGIN + FASTEST, &Utc);
    assert_eq!(firings(&due_work).len(), 1);
    let missed =
        |work: &DueWork| matches!(work, DueWork::Missed { why, .. } if why.starts_with("it is suspended"));
    assert_eq!(due_work.iter().filter(|work| missed(work)).count(), 2);
    assert_eq!(table.resume(None, BEGIN + FASTEST, &Utc), 2);
    // What was due meanwhile is not caught up.
    assert_eq!(table.wakes_at(), Some(BEGIN + 2 * FASTEST));
}

/// The message `n`, first due `offset` seconds from the beginning, and again each `repeat` seconds.
fn message(offset: i64, repeat: Value) -> Schedule {
    let time = BEGIN / 1000 + offset;
    let Value::Object(data) = json!({"event": "skill:n", "time": time, "repeat": repeat}) else {
        panic!("an object")
    };
    let Value::Object(context) = json!({"skill_id": "skill"}) else {
        panic!("an object")
    };
    crate::ovos_events::read(&data, &context, None, BEGIN).expect("a message")
}

#[test]
fn what_makes_something_act_is_suspended_by_a_stop_and_a_reminder_is_not() {
    for (event, skill, is_suspended) in [
        ("demo.skill:tea", Some("demo.skill"), Some(false)),
        ("demo.skill:tea", Some("other.skill"), Some(true)),
        ("demo.skill:wave.intent", None, Some(true)),
        ("recognizer_loop:utterance", None, Some(true)),
        ("recognizer_loop:utterance", Some("recognizer_loop"), Some(true)),
        ("ovos.utterance.handle", Some("demo.skill"), Some(true)),
        ("ovos.persona.query", Some("demo.skill"), Some(true)),
        ("speak", None, Some(true)),
        ("ovos.tools.invoke", None, None),
        ("ovos.persona.tools.call", Some("ovos.persona.tools.call"), None),
    ] {
        let (Value::Object(data), Value::Object(context)) = (
            json!({"event": event, "time": BEGIN / 1000 + 10, "repeat": 60}),
            json!({"skill_id": skill}),
        ) else {
            panic!("objects")
        };
        let read = || crate::ovos_events::read(&data, &context, Some("s"), BEGIN);
        let Some(is_suspended) = is_suspended else {
            assert!(read().is_err(), "{event}");
            continue;
        };
        for session in [None, Some("s"), Some("t")] {
            let case = format!("{event} of {skill:?}, a stop in {session:?}");
            let is_suspended = is_suspended && session != Some("t");
            let mut table = Table::default();
            table.due(BEGIN, &Utc);
            table.replace(read().expect("a message"), &Utc).expect("room");
            assert_eq!(
                table.suspend(session, "a stop"),
                usize::from(is_suspended),
                "{case}"
            );
            // Asking for it again resumes nothing, and neither does a door that begins.
            table.replace(read().expect("a message"), &Utc).expect("room");
            let kept = serde_json::to_string(&table).expect("text");
            table = serde_json::from_str(&kept).expect("a table");
            table.hold_messages(None);
            let due_work = table.due(BEGIN + 10 * SECOND, &Utc);
            assert_eq!(
                firings(&due_work).len(),
                usize::from(!is_suspended),
                "{case}: {due_work:?}"
            );
            assert_eq!(due_work.len(), 1, "{case}");
            assert_eq!(
                table.resume(None, BEGIN + 20 * SECOND, &Utc),
                usize::from(is_suspended),
                "{case}"
            );
            assert_eq!(firings(&table.due(BEGIN + 70 * SECOND, &Utc)).len(), 1, "{case}");
        }
    }
}

#[test]
fn a_message_that_was_missed_is_sent_once_and_one_that_was_sent_not_again() {
    for (offset, repeat, looks, sent) in [
        // When the table is looked at, in seconds from the beginning, and the times for which the message is sent.
        (10, json!(null), vec![0, 9, 10, 11], vec![10]),
        (-100_000, json!(0), vec![0, 1], vec![-100_000]),
        (10, json!(30), vec![10, 39, 40, 71], vec![10, 40, 70]),
        // Of those that passed unseen the last one, and those of the last minute.
        (-1000, json!(3600), vec![0, 2600], vec![-1000, 2600]),
        (-100, json!(30), vec![0], vec![-70, -40, -10]),
        (10, json!(60), vec![100_000], vec![99_910, 99_970]),
        // After a clock that was put back nothing waits longer than from then on.
        (10, json!(60), vec![10, 70, -5_000, -4_940], vec![10, 70, -4_940]),
    ] {
        let mut table = Table::default();
        table.due(BEGIN - YEAR, &Utc);
        let case = format!("{offset} {repeat} {looks:?}");
        table.replace(message(offset, repeat), &Utc).expect("room");
        let mut times = Vec::new();
        for look in looks {
            // A door that is started anew goes on with what was kept.
            let kept = serde_json::to_string(&table).expect("text");
            table = serde_json::from_str(&kept).expect("a table");
            assert_eq!(table.restored(), [], "{case}");
            let due_work = table.due(BEGIN + look * SECOND, &Utc);
            let fired = firings(&due_work);
            assert_eq!(fired.len(), due_work.len(), "{case}: {due_work:?}");
            times.extend(
                fired
                    .iter()
                    .map(|fired| (fired.firing_ms.expect("a time") - BEGIN) / SECOND),
            );
        }
        assert_eq!(times, sent, "{case}");
    }
}

#[test]
fn a_message_of_a_name_is_replaced_keeps_what_it_sent_and_is_suspended_by_no_stop() {
    let mut table = Table::default();
    table.due(BEGIN, &Utc);
    table.replace(message(10, json!(60)), &Utc).expect("room");
    assert_eq!(table.suspend(None, "a stop"), 0);
    assert_eq!(firings(&table.due(BEGIN + 10 * SECOND, &Utc)).len(), 1);
    table.replace(message(10, json!(60)), &Utc).expect("room");
    assert_eq!(firings(&table.due(BEGIN + 11 * SECOND, &Utc)).len(), 0);
    // While another scheduler is there nothing is sent, and no one resumes it.
    table.hold_messages(Some("another"));
    assert_eq!(table.resume(None, BEGIN, &Utc), 0);
    let missed = table.due(BEGIN + 70 * SECOND, &Utc);
    assert!(
        matches!(&missed[..], [DueWork::Missed { why, .. }] if why.contains("another")),
        "{missed:?}"
    );
    table.hold_messages(None);
    assert_eq!(firings(&table.due(BEGIN + 130 * SECOND, &Utc)).len(), 1);
    assert!(
        table.change_message("ovos:skill:n", Object::new()) && !table.change_message("ovos:x", Object::new())
    );
    assert_eq!(table.all().count(), 1);
    assert!(table.cancel("ovos:skill:n").is_some());
}
