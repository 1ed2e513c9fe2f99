//! The tools that the Python twin has, too. Their schemas are compared: no descriptions, the same names.

use num_bigint::BigInt;
use ovos_toolbox_sdk::output_schema;
use ovos_toolbox_sdk::prelude::*;

use crate::Testbed;

#[derive(Deserialize, JsonSchema)]
struct AddArgs {
    a: Integer,
    b: Integer,
}

#[derive(Serialize, JsonSchema)]
struct AddOutput {
    result: Integer,
}

#[derive(Deserialize, JsonSchema)]
struct EchoArgs {
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct EchoOutput {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct PingArgs {}

#[derive(Serialize, JsonSchema)]
struct PingOutput {
    pong: bool,
}

#[derive(Deserialize, JsonSchema)]
struct SlowArgs {
    seconds: f64,
}

#[derive(Serialize, JsonSchema)]
struct SlowOutput {
    seconds: f64,
}

#[derive(Deserialize, JsonSchema)]
struct FailArgs {
    #[serde(default = "failure")]
    message: String,
}

#[derive(Serialize, JsonSchema)]
struct FailOutput {}

#[derive(Deserialize, JsonSchema)]
struct BadOutputArgs {}

#[derive(Serialize, JsonSchema)]
struct BadOutputOutput {
    value: i64,
}

#[derive(Deserialize, JsonSchema)]
struct DupArgs {}

#[derive(Serialize, JsonSchema)]
struct DupOutput {
    owner: String,
}

fn failure() -> String {
    "it failed".to_string()
}

async fn add(_: Context<Testbed>, args: AddArgs) -> Result<AddOutput, ToolError> {
    let sum: BigInt = args.a.0 + args.b.0;
    Ok(AddOutput { result: Integer(sum) })
}

async fn echo(_: Context<Testbed>, args: EchoArgs) -> Result<EchoOutput, ToolError> {
    Ok(EchoOutput { text: args.text })
}

async fn ping(_: Context<Testbed>, _: PingArgs) -> Result<PingOutput, ToolError> {
    Ok(PingOutput { pong: true })
}

async fn slow(_: Context<Testbed>, args: SlowArgs) -> Result<SlowOutput, ToolError> {
    let time = Duration::try_from_secs_f64(args.seconds)
        .map_err(|_| ToolError::bad_args(format!("seconds: expected 0 or more, got {}", args.seconds)))?;
    ovos_toolbox_sdk::tokio::time::sleep(time).await;
    Ok(SlowOutput {
        seconds: args.seconds,
    })
}

async fn fail(_: Context<Testbed>, args: FailArgs) -> Result<FailOutput, ToolError> {
    Err(ToolError::new("RuntimeError", args.message))
}

async fn bad_output(_: Context<Testbed>, _: Value) -> Result<Value, ToolError> {
    Ok(json!({"value": "not a number"}))
}

async fn dup(_: Context<Testbed>, _: DupArgs) -> Result<DupOutput, ToolError> {
    Ok(DupOutput {
        owner: "testbed".to_string(),
    })
}

pub(crate) fn tools() -> Vec<Tool<Testbed>> {
    let bad_output = Tool::dynamic(
        "bad_output",
        Effect::Read,
        ovos_toolbox_sdk::argument_schema::<BadOutputArgs>(),
        output_schema::<BadOutputOutput>(),
        bad_output,
    );
    vec![
        Tool::read("add", add).description("Adds two integers."),
        Tool::read("echo", echo).description("Returns its text."),
        Tool::read("ping", ping).description("Answers."),
        Tool::read("slow", slow)
            .description("Waits.")
            .timeout(Duration::from_secs(600)),
        Tool::read("fail", fail).description("Fails."),
        bad_output.description("Returns what its schema forbids."),
        Tool::read("dup", dup).description("Says which toolbox answered."),
    ]
}
