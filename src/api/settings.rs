//! What the configuration says about the API.

use std::path::PathBuf;
use std::sync::Arc;

use crate::policy::Policy;
use section::HiddenArguments;

/// What the configuration says about the API.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether tools of effect `resume` can be invoked.
    pub operator_tools: bool,
    /// The rules of who may call which tools.
    pub policy: Arc<Policy>,
    /// The largest frame the bus takes, in bytes.
    pub max_answer_bytes: usize,
    /// The arguments whose values no fact shows.
    pub hidden_arguments: HiddenArguments,
    /// The folder of the toolboxes' content.
    pub content_dir: PathBuf,
}
