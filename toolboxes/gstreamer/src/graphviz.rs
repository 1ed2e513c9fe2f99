//! Graphviz draws graphs.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use ovos_toolbox_sdk::prelude::*;

/// Time limit of graphviz; drawing usually takes milliseconds.
const DRAWING: Duration = Duration::from_secs(15);

/// Renders a graph as SVG.
///
/// # Errors
/// graphviz is not installed or did not finish.
pub(crate) fn svg(dot: &str) -> Result<String, ToolError> {
    let folder = tempfile::tempdir()?;
    let (text, drawing) = (folder.path().join("graph.dot"), folder.path().join("graph.svg"));
    std::fs::write(&text, dot)?;
    let mut child = Command::new("dot")
        .arg("-Tsvg")
        .arg("-o")
        .arg(&drawing)
        .arg(&text)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| ToolError::msg(format!("run dot: {error}; install the package graphviz")))?;
    let until = Instant::now() + DRAWING;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() >= until {
            // Both calls fail only if graphviz has just ended.
            _ = child.kill();
            _ = child.wait();
            return Err(ToolError::new(
                "TimeoutError",
                "dot did not draw the graph within 15 s",
            ));
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    if !status.success() {
        return Err(ToolError::msg(format!("dot ended with {status}")));
    }
    let mut svg = String::new();
    std::fs::File::open(&drawing)?.read_to_string(&mut svg)?;
    Ok(svg)
}
