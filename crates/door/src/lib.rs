//! What the doors have in common. A door is a program that connects a kind of client to the tools. It is a bus client, made of
//! [`client::Client`]; the service has no code for it.
//!
//! [`Door`] holds the bus, the list of tools and the calls under way. [`Listing`] is the list that clients see. [`CarriedCall`] is one
//! call from request to answer; its [`Turn`] keeps the order in which requests arrived. [`stop`] carries out the two stops that every door shows. [`Answer`] is what a model reads.
//! [`LongCall`] goes on after its request was answered.
//! [`Finder`] searches the tools where their list is too long for a model; [`Guide`] is the page of a toolbox.
//!
//! `examples/lines.rs` is a whole door in one file. What every door shows beside its tools:
//!
//! ```
//! use door::{OwnTool as _, StopTool};
//!
//! let names: Vec<&str> = StopTool::ALL.iter().map(|tool| tool.name()).collect();
//! assert_eq!(names, ["emergency_stop", "stop_moving"]);
//! assert_eq!(StopTool::named("wave"), None);
//! ```

mod answer;
mod call_progress;
mod calls;
mod carried_call;
mod door;
pub mod find;
mod guide;
mod https;
mod listing;
mod long_call_answers;
mod long_call_tool;
mod long_calls;
mod own_tool;
mod page;
mod pattern_warnings;
pub mod program;
mod schedule_tool;
mod shorten;
mod stop;
mod stop_tool;
mod token;
mod turn;

pub use answer::{Answer, approval_required, confirmation_of};
pub use call_progress::wave_text;
pub use calls::Calls;
pub use carried_call::{CarriedCall, NoAnswer, StartError};
pub use door::Door;
pub use find::Finder;
pub use guide::Guide;
pub use https::{HttpsClient, chain, https_client};
pub use listing::{ListedTool, Listing, MAX_NAME, largest};
pub use long_call_tool::{LongCallTool, wait_limit};
pub use long_calls::{AskGuard, LongCall, LongCalls, MOST_LEFT, PendingRequest, WaitGuard};
pub use own_tool::OwnTool;
pub use schedule_tool::ScheduleTool;
pub use shorten::{Shortened, shorten};
pub use stop::{PendingStop, stop};
pub use stop_tool::StopTool;
pub use token::{FoundToken, Token, TokenError};
pub use turn::{Arrivals, Turn};

/// An id that no other call has: `mcp-` and a UUID, for the prefix `mcp`.
#[must_use]
pub fn own_id(prefix: &str) -> String {
    format!("{prefix}-{}", uuid::Uuid::new_v4())
}
