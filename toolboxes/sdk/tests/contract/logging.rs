//! Log events of a toolbox reach its own host, with the call they belong to.

use ovos_toolbox_sdk::abi::level;
use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::Harness;
use ovos_toolbox_sdk::{tokio, tracing};

#[derive(Deserialize, JsonSchema)]
struct Config {
    name: String,
}

struct Talker {
    name: String,
}

async fn talk(context: Context<Talker>, _: Value) -> Result<Value, ToolError> {
    let name = context.toolbox().name.clone();
    tracing::info!(arm = 2, "moving {name}");
    tokio::task::yield_now().await;
    let blocking = name.clone();
    tokio::task::spawn_blocking(move || tracing::warn!("blocking {blocking}")).await?;
    context
        .host()
        .spawn(async move { tracing::error!("background {name}") });
    tracing::trace!("below the level");
    Ok(json!({}))
}

impl Toolbox for Talker {
    type Config = Config;

    fn manifest() -> Manifest {
        manifest!("talker")
    }

    async fn open(_: Host, config: Config) -> Result<Self, ToolError> {
        tracing::debug!("opening {}", config.name);
        Ok(Self { name: config.name })
    }

    fn tools(&self) -> Vec<Tool<Self>> {
        vec![Tool::dynamic(
            "talk",
            Effect::Read,
            json!({"type": "object"}),
            json!({"type": "object"}),
            talk,
        )]
    }

    fn halt(&self, _: &Halt) -> Result<(), ToolError> {
        tracing::warn!("halting {}", self.name);
        Ok(())
    }

    async fn close(&self) {
        tracing::info!("closing {}", self.name);
    }
}

/// Two instances share the statics of their library, tracing's among them.
#[test]
fn each_instance_logs_to_its_own_host() {
    let names = ["left", "right"];
    let talkers = names.map(|name| Harness::open::<Talker>(json!({"name": name})).unwrap());
    for talker in &talkers {
        talker.call("talk", json!({})).unwrap();
        talker.halt(&["all"], false).unwrap();
    }
    for (talker, name) in talkers.iter().zip(names) {
        let expected = [
            (level::DEBUG, format!("opening {name}")),
            (
                level::INFO,
                format!("moving {name} arm=2 call_id=call-1 tool=talk action=talk"),
            ),
            (level::WARN, format!("blocking {name}")),
            (level::WARN, format!("halting {name}")),
            (level::ERROR, format!("background {name}")),
        ];
        talker.wait_logs(expected.len());
        let mut lines: Vec<(u32, String)> = talker
            .logs()
            .into_iter()
            .map(|line| (line.level, line.message))
            .collect();
        for line in expected {
            let place = lines.iter().position(|seen| *seen == line);
            lines.remove(place.unwrap_or_else(|| panic!("{name}: no {line:?} in {lines:?}")));
        }
        assert_eq!(lines, [], "{name}");
        assert!(
            talker
                .logs()
                .iter()
                .all(|line| line.target == "contract::logging")
        );
    }
}
