//! Owns `dup`, as testbed does: for the rule that a name owned by two toolboxes needs its toolbox named.

#![forbid(unsafe_code)]

use ovos_toolbox_sdk::prelude::*;

/// Says which toolbox answered.
#[derive(Deserialize, JsonSchema)]
struct DupArgs {}

#[derive(Serialize, JsonSchema)]
struct DupOutput {
    owner: String,
}

async fn dup(_: Context<TestbedDup>, _: DupArgs) -> Result<DupOutput, ToolError> {
    Ok(DupOutput {
        owner: "testbed_dup".to_string(),
    })
}

struct TestbedDup;

impl Toolbox for TestbedDup {
    type Config = NoConfig;

    fn manifest() -> Manifest {
        manifest!("testbed_dup")
    }

    async fn open(_: Host, _: NoConfig) -> Result<Self, ToolError> {
        Ok(Self)
    }

    fn tools(&self) -> Vec<Tool<Self>> {
        vec![Tool::read("dup", dup)]
    }

    no_motion!();
}

export_toolbox!(TestbedDup);
