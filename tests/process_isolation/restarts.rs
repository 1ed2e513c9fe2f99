//! What the manager does after the death of a process: a new generation, after a delay, and not for ever.

use std::time::{Duration, Instant};

use engine::{RunId, RunResult, Toolbox};
use host::{Limits, State, ToolboxConfig, ToolboxSettings};
use rustix::process::Signal;
use serde_json::json;

use crate::motion::{Motor, motion, signal_live};
use crate::reload::check;
use crate::support::fixture::{run, within};
use crate::support::rig::Rig;

#[tokio::test]
async fn a_toolbox_that_died_comes_back_as_a_new_generation() {
    let rig = Rig::with(|settings| settings.first_restart = Duration::from_millis(10));
    rig.add("arm", "1", &[]);
    rig.add("leg", "1", &[]);
    rig.reload().await;
    let (before, leg) = (rig.get("arm"), rig.get("leg"));
    signal_live(&before, Signal::KILL);
    rig.published_until(|live| live.get("arm").is_some_and(|arm| arm.state == State::Reloading))
        .await;
    rig.published_until(|live| {
        live.get("arm")
            .is_some_and(|arm| arm.generation == 2 && arm.state == State::Ready)
    })
    .await;
    let arm = rig.get("arm");
    assert_eq!((arm.restarts, rig.version("arm").await.as_str()), (1, "1"));
    assert!(
        arm.last_death.as_ref().unwrap().contains("SIGKILL"),
        "{:?}",
        arm.last_death
    );
    assert_ne!(arm.toolbox.pid(), before.toolbox.pid());
    assert!(rig.drains.engine.lease("arm", 1).is_none());
    assert!(matches!(
        run(&*before.toolbox, 900, "go").await,
        RunResult::NeverBegun(_)
    ));
    let same = rig.get("leg");
    assert_eq!((same.generation, same.toolbox.pid()), (1, leg.toolbox.pid()));
    rig.seen.wait_for("toolbox_restarted", 1).await;
    assert_eq!(rig.seen.count("toolbox_crashed"), 1);
    assert_eq!(rig.seen.count("latched"), 0, "nothing moved");
    // And a reload finds it as it should be.
    check(&rig.reload().await, json!({"unchanged": ["arm", "leg"]}));
}

#[tokio::test]
async fn the_environment_of_a_section_reaches_every_process_that_loads_the_file() {
    let rig = Rig::with(|settings| settings.first_restart = Duration::from_millis(10));
    let id = [("ID", "\"needy\"")];
    rig.fixtures.build_as("needy", "needs_environment", &id);
    let refused = rig.reload().await;
    let reason = &refused.broken[0].reason;
    assert!(
        reason.contains("exit code 3") && reason.contains("where is ROS"),
        "{reason}"
    );
    let config = ToolboxConfig {
        env: [("AMENT_PREFIX_PATH".to_owned(), "/opt/ros/humble".to_owned())].into(),
        ..ToolboxConfig::default()
    };
    rig.obey("needy", config);
    rig.reload().await;
    let needy = rig.get("needy");
    assert_eq!(needy.state, State::Ready);
    // Its next process, too.
    signal_live(&needy, Signal::KILL);
    rig.published_until(|live| {
        live.get("needy")
            .is_some_and(|needy| needy.generation == 2 && needy.state == State::Ready)
    })
    .await;
}

#[tokio::test]
async fn a_toolbox_that_dies_too_often_is_left_alone_until_a_reload() {
    let rig = Rig::with(|settings| {
        settings.first_restart = Duration::from_millis(10);
        settings.max_failures = 3;
    });
    rig.add("arm", "1", &[]);
    rig.reload().await;
    for generation in 1..=3 {
        rig.published_until(|live| {
            live.get("arm")
                .is_some_and(|arm| arm.generation == generation && arm.state == State::Ready)
        })
        .await;
        signal_live(&rig.get("arm"), Signal::KILL);
    }
    rig.seen.wait_for("toolbox_failed", 1).await;
    let arm = rig.get("arm");
    assert!(
        matches!(&arm.state, State::Failed(why) if why.contains("3 times") && why.contains("SIGKILL")),
        "{:?}",
        arm.state
    );
    check(&rig.reload().await, json!({"replaced": ["arm"]}));
    assert_eq!(
        (rig.version("arm").await.as_str(), &rig.get("arm").state),
        ("1", &State::Ready)
    );
}

#[tokio::test]
async fn a_reload_does_not_wait_for_the_next_restart() {
    let rig = Rig::with(|settings| settings.first_restart = Duration::from_secs(3600));
    rig.add("arm", "1", &[]);
    rig.reload().await;
    signal_live(&rig.get("arm"), Signal::KILL);
    rig.seen.wait_for("toolbox_crashed", 1).await;
    check(&rig.reload().await, json!({"replaced": ["arm"]}));
    assert_eq!(rig.version("arm").await, "1");
    assert!(within(rig.manager.shutdown(Duration::from_secs(5))).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crashes_of_one_lose_nothing_of_another() {
    let rig = std::sync::Arc::new(Rig::with(|settings| {
        settings.first_restart = Duration::from_millis(1);
        settings.max_restart = Duration::from_millis(1);
        settings.max_failures = 0;
    }));
    rig.add("arm", "1", &[]);
    rig.add("leg", "1", &[]);
    rig.reload().await;
    let stop = tokio_util::sync::CancellationToken::new();
    let client = {
        let (rig, stop) = (rig.clone(), stop.clone());
        tokio::spawn(async move {
            let mut runs = 0;
            while !stop.is_cancelled() {
                assert_eq!(rig.version("leg").await, "1");
                runs += 1;
            }
            runs
        })
    };
    // Not SIGSEGV: the runtime handles it, so a sent one does not act like a fault.
    let ways = [Signal::KILL, Signal::ABORT, Signal::TERM, Signal::ILL];
    for generation in 1..=crate::repeated("CRASHES", 20) {
        rig.published_until(|live| {
            live.get("arm")
                .is_some_and(|arm| arm.generation == generation && arm.state == State::Ready)
        })
        .await;
        signal_live(
            &rig.get("arm"),
            ways[usize::try_from(generation).unwrap() % ways.len()],
        );
    }
    stop.cancel();
    assert!(within(client).await.unwrap() > 0);
    assert_eq!(rig.get("leg").generation, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_toolbox_that_hangs_in_motion_is_brought_to_rest_also_when_its_file_is_gone() {
    for replaced in [false, true] {
        let rig = Rig::new();
        let file = rig
            .fixtures
            .build_as("arm", "sleeps_in_halt", &[("ID", "\"arm\"")]);
        let motor = Motor(rig.fixtures.path().join("motor"));
        let config = ToolboxSettings {
            toolbox: ToolboxConfig {
                own: json!({ "motor": motor.0 }).as_object().unwrap().clone(),
                ..ToolboxConfig::default()
            },
            limits: Limits {
                close: Duration::from_millis(300),
                ..Limits::default()
            },
            ..ToolboxSettings::default()
        };
        rig.configs.lock().unwrap().insert("arm".to_owned(), config);
        rig.reload().await;
        let moving = rig.get("arm").toolbox.start(RunId(1), motion("go", 0), None);
        rig.seen.wait_for("moving", 1).await;
        std::fs::remove_file(file).unwrap();
        let change = if replaced {
            rig.add("arm", "2", &[]);
            "replaced"
        } else {
            "removed"
        };
        let since = Instant::now();
        check(&rig.reload().await, json!({ change: ["arm"] }));
        motor.rests(since, change);
        drop(moving);
    }
}
