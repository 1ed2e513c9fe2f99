//! The robot toolbox on a machine with a sourced ROS 2.
//!
//! The same toolbox, tools and configuration as `robot`; only the graphs of ROS, those of the driver `ros` and of the K1's profile
//! `topics`, go through the installation's own middleware, whichever it is. What robots speak besides ROS topics goes over DDS
//! as before, because the messages are in no ROS installation. Read [`R2rGraph`].

mod graph;
mod orders;
mod wire;

use std::sync::{Arc, OnceLock};

pub use graph::R2rGraph;
use ovos_toolbox_sdk::boundary::Table;
use robot::robots::Robots;

/// The one exported symbol: the table of this toolbox. Null when its manifest cannot be made.
#[unsafe(no_mangle)]
pub extern "C" fn toolbox_entry_v1() -> *const ovos_toolbox_sdk::abi::Toolbox {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE
        .get_or_init(|| {
            robot::ros::carrier::carry_graphs_with(|name, library| {
                Ok(Arc::new(R2rGraph::join(name, library)?))
            });
            Table::of::<Robots>()
        })
        .as_ptr()
}
