use ovos_toolbox_sdk::prelude::*; // The toolbox to copy: one tool that greets a person.
/// Greets a person by name: the example in Rust.
#[derive(Deserialize, JsonSchema)]
struct HelloArgs {
    /// Whom to greet.
    name: String,
}
#[derive(Serialize, JsonSchema)]
struct HelloOutput {
    greeting: String,
}
async fn hello(_: Context<Hello>, args: HelloArgs) -> Result<HelloOutput, ToolError> {
    let greeting = format!("Hello, {}!", args.name);
    Ok(HelloOutput { greeting })
}
struct Hello;
impl Toolbox for Hello {
    type Config = NoConfig;
    fn manifest() -> Manifest {
        manifest!("hello")
    }
    async fn open(_: Host, _: NoConfig) -> Result<Self, ToolError> {
        Ok(Hello)
    }
    fn tools(&self) -> Vec<Tool<Self>> {
        vec![Tool::read("hello", hello)]
    }
    no_motion!();
}
export_toolbox!(Hello);
