//! What `close` ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::Harness;
use ovos_toolbox_sdk::tokio;

use crate::open;
use crate::probe::{Done, Nothing};

#[test]
fn close_ends_every_run() {
    let probe = open();
    for tool in ["forever", "watches_and_stays", "cleans_up", "panics_when_dropped"] {
        let run = probe.start(tool, json!({})).unwrap();
        let _ = run.wait_progress(1);
    }
    let start = Instant::now();
    assert!(probe.close().is_clean());
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "took {:?}",
        start.elapsed()
    );
}

/// Has a distinct id, so that its threads can be told apart from those of parallel tests.
struct Closing {
    dropped: Arc<AtomicBool>,
}

static CLOSED: AtomicBool = AtomicBool::new(false);
static DROPPED: AtomicBool = AtomicBool::new(false);

impl Drop for Closing {
    fn drop(&mut self) {
        DROPPED.store(CLOSED.load(Ordering::SeqCst), Ordering::SeqCst);
        self.dropped.store(true, Ordering::SeqCst);
    }
}

impl Toolbox for Closing {
    type Config = NoConfig;

    fn manifest() -> Manifest {
        manifest!("closing")
    }

    async fn open(host: Host, _: NoConfig) -> Result<Self, ToolError> {
        let busy = host.clone();
        host.spawn(async move {
            loop {
                busy.event("tick", json!({}));
                tokio::task::yield_now().await;
            }
        });
        Ok(Self {
            dropped: Arc::default(),
        })
    }

    fn tools(&self) -> Vec<Tool<Self>> {
        vec![Tool::read(
            "forever",
            |context: Context<Self>, _: Nothing| async move {
                let _blocking = tokio::task::spawn_blocking(move || {
                    while !context.is_cancelled() {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                })
                .await;
                std::future::pending::<Result<Done, ToolError>>().await
            },
        )]
    }

    no_motion!();

    async fn close(&self) {
        CLOSED.store(!self.dropped.load(Ordering::SeqCst), Ordering::SeqCst);
    }
}

#[test]
fn close_ends_everything() {
    let threads = || {
        std::fs::read_dir("/proc/self/task")
            .unwrap()
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
            .filter(|name| name.starts_with("toolbox-closing"))
            .count()
    };
    let closing = Harness::open::<Closing>(json!({})).unwrap();
    let _run = closing.start("forever", json!({})).unwrap();
    let _ = closing.wait_event("tick");
    assert!(threads() >= 1);
    assert!(closing.close().is_clean());
    assert_eq!(threads(), 0, "threads after close");
    assert!(
        DROPPED.load(Ordering::SeqCst),
        "close comes before drop, and both before close returns"
    );
}
