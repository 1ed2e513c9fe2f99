//! The record of what moves: it is written before the first start.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use ovos_toolbox_wire::{CallOutcome, Effect};
use ovos_tools_engine::{Cause, MotionWatch, Refusal};

use crate::memory_toolbox::Event;
use crate::script::{Script, actions};
use crate::stop::{rig, stop};

/// A watch that takes some time for its record.
#[derive(Default)]
struct Moving {
    records: Arc<Mutex<Vec<String>>>,
    takes: Option<Duration>,
    fails: bool,
}

impl MotionWatch for Moving {
    fn changed(&self, moving: &[&str]) {
        self.records.lock().unwrap().push(moving.join(" "));
    }

    fn recorded(&self) -> BoxFuture<'static, Result<(), String>> {
        let (takes, fails) = (self.takes, self.fails);
        Box::pin(async move {
            match takes {
                Some(takes) => tokio::time::sleep(takes).await,
                None => tokio::task::yield_now().await,
            }
            if fails {
                Err("the disk is full".to_owned())
            } else {
                Ok(())
            }
        })
    }
}

/// A motion call starts only when it is on record. Other calls do not wait for the record, safe calls least of all.
#[tokio::test(start_paused = true)]
async fn a_call_that_moves_waits_for_its_record_for_a_second() {
    let record = |takes_ms: u64, fails| {
        let rig = rig();
        rig.engine.watch_motion(Arc::new(Moving {
            takes: Some(Duration::from_millis(takes_ms)),
            fails,
            ..Moving::default()
        }));
        for name in ["look", "go"] {
            rig.toolbox.tool(name, actions(&[name]));
            rig.toolbox.script(name, Script::takes(0));
        }
        rig
    };
    let rig = record(10_000, false);
    let began = tokio::time::Instant::now();
    for effect in [Effect::Read, Effect::Write, Effect::Safe] {
        rig.effect("look", effect).report().await;
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
    let refusal = rig.motion("go").refusal().await;
    let limit = Duration::from_secs(1);
    assert_eq!(
        (refusal, began.elapsed()),
        (Refusal::RecordTooLong { limit }, limit)
    );
    assert_eq!(rig.toolbox.started(), ["look"; 3]);
    assert!(
        !*rig.engine.motion().borrow(),
        "it does not count as moving any more"
    );

    // A cause that ends calls ends this wait, too, and a stop does not wait for the record.
    let call = rig.motion("go");
    rig.toolbox
        .until("a second plan", |log| {
            log.iter()
                .filter(|event| **event == Event::Planned("go".into()))
                .count()
                == 2
        })
        .await;
    let began = tokio::time::Instant::now();
    let stop_id = stop(&rig).await;
    let cause = Cause::EmergencyStop {
        stop_id,
        reason: "a test".into(),
    };
    assert_eq!(call.refusal().await, Refusal::Ended(cause));
    assert_eq!(began.elapsed(), Duration::ZERO);

    let rig = record(900, false);
    assert_eq!(rig.motion("go").report().await.outcome, CallOutcome::Completed);
    let rig = record(0, true);
    let why = "the disk is full".to_owned();
    assert_eq!(rig.motion("go").refusal().await, Refusal::NotRecorded { why });
    assert_eq!(rig.toolbox.started(), [""; 0]);
}

/// The record names the toolbox from before the first start until the machine is at rest.
#[tokio::test(start_paused = true)]
async fn motion_is_on_record_from_before_its_first_start_until_the_machine_rests() {
    let rig = rig();
    let records: Arc<Mutex<Vec<String>>> = Arc::default();
    rig.engine.watch_motion(Arc::new(Moving {
        records: records.clone(),
        ..Moving::default()
    }));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (at_start, known) = (seen.clone(), records.clone());
    rig.toolbox.hook(move |event| {
        if let Event::Started { .. } = event {
            at_start.lock().unwrap().push(known.lock().unwrap().clone());
        }
    });
    rig.toolbox.tool("look", actions(&["look"]));
    rig.effect("look", Effect::Read).report().await;
    assert_eq!(
        *records.lock().unwrap(),
        [] as [String; 0],
        "reading moves nothing"
    );
    let call = rig.motion("swing");
    rig.toolbox.until_started("swing").await;
    rig.end(&call, Cause::UserStop);
    assert_eq!(*records.lock().unwrap(), ["robot"]);
    call.report().await;
    assert_eq!(*records.lock().unwrap(), ["robot", ""]);
    assert_eq!(*seen.lock().unwrap(), [vec![], vec!["robot".to_owned()]]);
}
