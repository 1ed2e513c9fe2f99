//! The execution engine: turns a call into a graph of actions and runs it in waves.
//!
//! It runs against [`Toolbox`] and knows neither the bus nor plugins. A call takes its `course` through `plan` (graph
//! and waves), `reserve` (subsystems), `run` (waves) and `report`; `stop` and `latch` act on all of these phases, and
//! `facts` reports them. Read [`Engine::call`].
//!
//! A plan is pure, so it shows best what a call becomes:
//!
//! ```
//! use std::time::Duration;
//!
//! use ovos_toolbox_wire::{Action, Effect};
//! use ovos_tools_engine::{Defaults, Plan};
//!
//! let action = |name: &str, subsystem: &str, after: &[&str]| Action {
//!     subsystems: vec![subsystem.to_owned()],
//!     dependencies: after.iter().map(|name| (*name).to_owned()).collect(),
//!     ..Action::named(name)
//! };
//! let actions = vec![
//!     action("reach", "left_arm", &[]),
//!     action("look", "head", &[]),
//!     action("grasp", "left_arm", &["reach", "look"]),
//! ];
//! let defaults = Defaults { effect: Effect::Motion, timeout: Duration::from_secs(10) };
//! let plan = Plan::new(actions, defaults)?;
//! assert_eq!(plan.waves, [vec![0, 1], vec![2]]);
//! # Ok::<(), ovos_tools_engine::PlanError>(())
//! ```

mod call;
mod calls;
mod course;
mod engine;
mod fact;
mod facts;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
mod generations;
mod graph;
mod known_toolbox;
mod known_toolboxes;
mod latch;
mod limits;
mod motion;
mod plan;
mod plan_error;
mod report;
mod reserve;
mod run;
mod stop;
mod subsystem;
mod sync;
mod toolbox;
mod wave;

pub use call::{CallControl, CallEnd, CallRequest, Cause, Phase, Refusal, Verdict};
pub use calls::CallLookup;
pub use course::TableEntry;
pub use engine::Engine;
pub use fact::{Answer, Call, Fact, NumberedFact, RequestOrigin, Step};
pub use facts::{BEHIND, CallFacts, Counts, Facts, Followed, Follower, StopFollower};
pub use known_toolbox::Lease;
pub use latch::{Latch, LiftError, StopRecord};
pub use limits::Limits;
pub use motion::{ExpectedMotion, MotionWatch};
pub use plan::{Defaults, Plan, PlannedAction, StepTool, StepTools};
pub use plan_error::PlanError;
pub use reserve::{Request, Reservations, Ticket};
pub use stop::{ResumeError, ResumeResult, StopResult, StopTarget};
pub use subsystem::Claim;
pub use toolbox::{Halt, NoAnswer, ProgressSink, RunId, RunResult, Toolbox};
