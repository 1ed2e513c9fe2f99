//! Calls a tool and follows it to its end: `call ws://127.0.0.1:8181/core add '{"a": 1, "b": 2}'`.

use std::error::Error;
use std::time::Duration;

use ovos_tools_client::payload::{CallOptions, InvokeRequest};
use ovos_tools_client::{Address, Client, Patience, Step};

/// Calls `tool`, and prints its progress and its answer.
pub(crate) async fn call(
    url: &str,
    tool: &str,
    args: &str,
    mut say: impl FnMut(String),
) -> Result<(), Box<dyn Error>> {
    let address = Address {
        url: url.parse()?,
        certificate: None,
    };
    let client = Client::connect(address, "call-example", Duration::from_secs(5)).await?;
    let options = CallOptions {
        progress: true,
        ..CallOptions::default()
    };
    let request = InvokeRequest {
        name: tool.to_owned(),
        args: serde_json::from_str(args)?,
        toolbox_id: None,
        options,
    };
    let mut call = client.invoke(request, Patience::WhileItRuns)?;
    loop {
        match call.next().await? {
            Step::Progress(progress) => {
                let progress = progress.read()?;
                say(match progress.waves {
                    0 => "it waits".to_owned(),
                    waves => format!("wave {} of {waves}", progress.wave),
                });
            }
            Step::Answer(answer) => {
                say(format!("{}", answer.good()?.result.unwrap_or_default()));
                return Ok(());
            }
        }
    }
}

#[tokio::main]
#[allow(
    dead_code,
    clippy::print_stdout,
    reason = "a test runs the example without it"
)]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, tool, args] = arguments.as_slice() else {
        return Err("expected the bus, the tool and its arguments as a JSON object".into());
    };
    call(url, tool, args, |line| println!("{line}")).await
}
