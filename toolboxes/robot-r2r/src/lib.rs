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
use ovos_toolbox_sdk::{abi, boundary};
use robot::robots::Robots;

/// The exported symbol: the work of a process of this toolbox in a role.
#[unsafe(no_mangle)]
pub extern "C" fn toolbox_role_v1(role: abi::Str, leash: std::ffi::c_int) -> abi::Status {
    boundary::role(role, leash, &[(robot::policy::ROLE, robot::policy::keep)])
}

/// The exported symbol: the table of this toolbox. Null when its manifest cannot be made.
#[unsafe(no_mangle)]
pub extern "C" fn toolbox_entry_v1() -> *const abi::Toolbox {
    static TABLE: OnceLock<boundary::Table> = OnceLock::new();
    TABLE
        .get_or_init(|| {
            robot::ros::carrier::carry_graphs_with(|name, library| {
                Ok(Arc::new(R2rGraph::join(name, library)?))
            });
            boundary::Table::of::<Robots>()
        })
        .as_ptr()
}
