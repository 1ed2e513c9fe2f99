//! Graphs of pipelines.
//!
//! Makes GStreamer's DOT dump without secrets, and renders it with graphviz. Blocks. Read [`dot`].

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use gst::glib;
use gst::prelude::*;
use ovos_toolbox_sdk::prelude::*;

/// How much a graph shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Detail {
    /// Elements and their states.
    States,
    /// What is negotiated between them, too.
    #[default]
    Caps,
    /// And every property that was set.
    All,
}

/// Time limit of graphviz; drawing usually takes milliseconds.
const DRAWING: Duration = Duration::from_secs(15);

/// The graph in the DOT language, without passphrases, passwords and similar secrets.
pub(crate) fn dot(pipeline: &gst::Pipeline, detail: Detail) -> String {
    let details = match detail {
        Detail::States => gst::DebugGraphDetails::STATES,
        Detail::Caps => gst::DebugGraphDetails::STATES | gst::DebugGraphDetails::CAPS_DETAILS,
        Detail::All => gst::DebugGraphDetails::all(),
    };
    let mut text = pipeline.debug_to_dot_data(details).to_string();
    let mut elements = pipeline.iterate_recurse();
    while let Ok(Some(element)) = elements.next() {
        for property in element.list_properties() {
            if let Some(secret) = secret(&element, &property) {
                text = text.replace(&secret, "***");
            }
        }
    }
    text
}

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

fn secret(element: &gst::Element, property: &glib::ParamSpec) -> Option<String> {
    let words = [
        "passphrase",
        "password",
        "passwd",
        "pw",
        "token",
        "secret",
        "key",
        "auth",
    ];
    let is_secret = property.name().split('-').any(|word| words.contains(&word));
    let readable = property.flags().contains(glib::ParamFlags::READABLE);
    if !is_secret || !readable || property.value_type() != glib::Type::STRING {
        return None;
    }
    element
        .property::<Option<String>>(property.name())
        .filter(|text| !text.is_empty())
}
