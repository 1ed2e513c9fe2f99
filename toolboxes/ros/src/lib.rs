//! What is in any ROS 2 graph, for what stands in no robot's file: lists, describes and reads it, and moves what an owner allows.
//!
//! The carriers (DDS, rosbridge), the types and the codec are those of [`ros_graph`], which the robot toolbox has as well. Nothing is
//! joined before the first call, and nothing is subscribed while nothing reads. Read [`Ros`], then `allow` (what may be moved), `moving`
//! and `pursuit` (how it is ended).
//!
//! ```console
//! $ ovos-tools invoke ros_read topic=/odom fields='["pose.pose.position"]'
//! ```

#![forbid(unsafe_code)]

mod allow;
mod call;
mod channels;
pub mod config;
mod describe;
mod goal;
mod graph;
mod image;
mod list;
mod moving;
mod name;
mod params;
mod publish;
mod pursuit;
mod read;
mod rest;
mod shown;
mod toolbox;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio::runtime::Builder;
use ovos_toolbox_sdk::tokio::sync::Semaphore;

use channels::Channels;
use config::Config;
use graph::JoinedGraph;
use pursuit::Pursuits;
pub use toolbox::Ros;

impl Toolbox for Ros {
    type Config = Config;

    fn manifest() -> Manifest {
        Manifest {
            needs_section: true,
            guide: include_str!("../GUIDE.md").to_string(),
            ..manifest!("ros")
        }
    }

    fn options() -> Options {
        let mut options = Options::default();
        // A goal that is cancelled is waited for.
        options.cancel_grace = pursuit::GOAL_ENDS + Duration::from_millis(500);
        options
    }

    async fn open(host: Host, config: Config) -> Result<Self, ToolError> {
        let config = config.checked()?;
        if config.simulated {
            host.simulator("the section says that the graph is a simulator's");
        }
        let joined = Arc::new(JoinedGraph::new(config.clone())?);
        Ok(Self {
            pursuits: Pursuits::new(&host, Arc::clone(&joined)),
            joined,
            config,
            moving: Arc::default(),
            channels: Channels::default(),
            readers: Arc::new(Semaphore::new(toolbox::READERS)),
            host,
        })
    }

    fn tools(&self) -> Vec<Tool<Self>> {
        // What listens for the longest time is given it, and what joins the graph.
        let reading = Duration::from_secs(55);
        vec![
            Tool::read("ros_list", list::list)
                .category("ros")
                .timeout(reading),
            Tool::read("ros_describe", describe::describe)
                .category("ros")
                .timeout(reading),
            Tool::read("ros_read", read::read)
                .category("ros")
                .timeout(reading),
            Tool::read("ros_image", image::image)
                .category("ros")
                .timeout(reading),
            Tool::read("ros_params", params::params)
                .category("ros")
                .timeout(reading),
            Tool::motion("ros_publish", publish::publish)
                .category("ros")
                .plan(publish::plan),
            Tool::motion("ros_call", call::call)
                .category("ros")
                .plan(call::plan),
            Tool::motion("ros_goal", goal::goal)
                .category("ros")
                .plan(goal::plan),
        ]
    }

    fn sentences(&self, tool: &str, args: &Object) -> BTreeMap<String, String> {
        sentence(tool, args)
            .into_iter()
            .map(|(lang, text)| (lang.to_owned(), text))
            .collect()
    }

    fn halt(&self, halt: &Halt) -> Result<(), ToolError> {
        let begun = self.moving.halt(&self.host, halt);
        self.pursuits
            .halt(&self.host, halt, self.config.allow.goal.keys());
        Ok(begun?)
    }

    fn may_close(&self) -> Result<(), ToolError> {
        match self.moving.is_still() && self.pursuits.is_still() {
            true => Ok(()),
            false => Err(ToolError::busy("moving")),
        }
    }

    fn safe_stop(config: Config) -> Result<(), ToolError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let stopped = runtime.block_on(rest::stop_all(config.checked()?));
        runtime.shutdown_background();
        stopped
    }

    async fn close(&self) {
        self.pursuits.close().await;
        self.channels.close().await;
        self.joined.leave().await;
    }
}

/// What a call would do.
fn sentence(tool: &str, args: &Object) -> Vec<(&'static str, String)> {
    let text = |key: &str| {
        args.get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let value = |key: &str| {
        args.get(key)
            .map(ToString::to_string)
            .unwrap_or_default()
            .chars()
            .take(200)
            .collect::<String>()
    };
    match tool {
        "ros_publish" => vec![
            ("en", format!("publish {} on {}", value("message"), text("topic"))),
            ("de", format!("{} auf {} senden", value("message"), text("topic"))),
        ],
        "ros_call" => vec![
            (
                "en",
                format!("call the service {} with {}", text("service"), value("request")),
            ),
            (
                "de",
                format!("den Dienst {} mit {} rufen", text("service"), value("request")),
            ),
        ],
        "ros_goal" => vec![
            (
                "en",
                format!("send the goal {} to {}", value("goal"), text("action")),
            ),
            (
                "de",
                format!("das Ziel {} an {} senden", value("goal"), text("action")),
            ),
        ],
        _ => Vec::new(),
    }
}

export_toolbox!(Ros);
