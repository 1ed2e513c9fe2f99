//! Inspection of running pipelines.

use std::path::PathBuf;

use gst::glib;
use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio;

use super::for_models::hidden;
use crate::config::Restart;
use crate::folder::new_picture;
use crate::graphviz;
use crate::instance::{Ask, Status};
use crate::order::Format;
use crate::report::{Phase, Picture};
use crate::toolbox::Gstreamer;

/// The tools of this family.
pub(crate) fn tools() -> Vec<Tool<Gstreamer>> {
    vec![
        Tool::read("pipeline_status", pipeline_status).category("pipelines"),
        Tool::write("take_snapshot", take_snapshot)
            .category("pipelines")
            .for_models(hidden(&["element", "format", "inline", "path"]))
            .timeout(Duration::from_secs(40)),
        Tool::read("pipeline_graph", pipeline_graph)
            .audience(Audience::Person)
            .category("pipelines")
            .timeout(Duration::from_secs(30)),
    ]
}

/// Get the state of a pipeline: position, bitrate, frames, messages and errors.
#[derive(Deserialize, JsonSchema)]
struct PipelineStatus {
    /// Also one that has ended.
    instance_id: String,
}

async fn pipeline_status(context: Context<Gstreamer>, args: PipelineStatus) -> Result<Status, ToolError> {
    context.toolbox().instances.status(&args.instance_id).await
}

/// Take a picture from a camera of this machine (device), or from a running pipeline (instance_id).
#[derive(Deserialize, JsonSchema)]
struct TakeSnapshot {
    #[serde(default)]
    instance_id: Option<String>,
    /// One of its elements, by name.
    #[serde(default)]
    element: Option<String>,
    /// An unused camera, such as `/dev/video0`.
    #[serde(default)]
    device: Option<String>,
    #[serde(default)]
    format: Format,
    /// A new file to write; one is chosen when missing.
    #[serde(default)]
    path: Option<PathBuf>,
    /// Also return it in base64.
    #[serde(default)]
    inline: bool,
}

#[derive(Serialize, JsonSchema)]
struct Snapshot {
    path: PathBuf,
    format: Format,
    width: u32,
    height: u32,
    /// Size of the file in bytes.
    bytes: usize,
    /// Which element it was taken from.
    element: String,
    /// The picture in base64, when it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
}

async fn take_snapshot(context: Context<Gstreamer>, args: TakeSnapshot) -> Result<Snapshot, ToolError> {
    let toolbox = context.toolbox();
    let (policy, format) = (&toolbox.policy, args.format);
    let path = match args.path {
        Some(path) => {
            let text = path.display().to_string();
            let checked = policy.check_output(&text, "take_snapshot");
            checked.map_err(|refusal| refusal.denial())?
        }
        None => new_picture(&toolbox.config.snapshot_dir, format)?,
    };
    let shot = match (args.instance_id, args.device) {
        (Some(id), None) => toolbox.instances.picture(&id, args.element, format, path).await?,
        (None, Some(device)) => of_device(toolbox, &device, format, path).await?,
        _ => return Err(ToolError::bad_args("give either instance_id or device")),
    };
    let file = shot.path.clone();
    let picture = tokio::task::spawn_blocking(move || std::fs::read(file)).await??;
    let bytes = picture.len();
    let data = args.inline.then(|| glib::base64_encode(&picture).to_string());
    if let Err(error) = context
        .show(ContentKind::Image, format.mime_type(), picture)
        .await
    {
        // The file was written all the same.
        tracing::warn!(%error, "the picture is not returned as content");
    }
    Ok(Snapshot {
        path: shot.path,
        format,
        width: shot.width,
        height: shot.height,
        bytes,
        element: shot.element,
        data,
    })
}

/// Starts a short pipeline as an instance, which owns the device and may hang without harm.
async fn of_device(
    toolbox: &Gstreamer,
    device: &str,
    format: Format,
    path: PathBuf,
) -> Result<Picture, ToolError> {
    let name = toolbox
        .policy
        .check_device(device, "take_snapshot")
        .map_err(|refusal| refusal.denial())?;
    if !name.starts_with("/dev/") {
        return Err(ToolError::bad_args(format!(
            "{device} is not a camera: expected a path such as /dev/video0"
        )));
    }
    let instance = toolbox
        .instances
        .start(Ask {
            pipeline: format!(
                "v4l2src device={name} ! decodebin ! videoconvert ! fakesink name=shot sync=false"
            ),
            name: Some(format!("snapshot of {name}")),
            restart: Restart::Never,
            autostart: false,
        })
        .await?
        .bound();
    let id = instance.id();
    let phase = toolbox.instances.wait_playing(&id, Duration::from_secs(10)).await;
    let taken = if phase == Some(Phase::Playing) {
        let shot = Some("shot".to_owned());
        toolbox.instances.picture(&id, shot, format, path).await
    } else {
        let status = toolbox.instances.status(&id).await?;
        let why = status
            .summary
            .error
            .unwrap_or_else(|| "no picture within 10 s".to_owned());
        Err(ToolError::new("PipelineError", format!("{name}: {why}")))
    };
    // It may have ended by itself.
    _ = toolbox.instances.stop(&id, true).await;
    taken
}

/// How much a graph shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Detail {
    /// Elements and their states.
    States,
    /// Also the caps negotiated between them.
    #[default]
    Caps,
    /// Also every property that was set.
    All,
}

/// Get the graph of a running pipeline (DOT): elements, pads, caps and states.
#[derive(Deserialize, JsonSchema)]
struct PipelineGraph {
    instance_id: String,
    /// Also draw it as SVG; needs graphviz.
    #[serde(default)]
    svg: bool,
    /// The level of detail.
    #[serde(default)]
    detail: Detail,
}

#[derive(Serialize, JsonSchema)]
struct Graph {
    /// The graph in the DOT language.
    dot: String,
    /// The drawing, when it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    svg: Option<String>,
    /// The reason, when there is no drawing.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// The names of the elements.
    elements: Vec<String>,
}

async fn pipeline_graph(context: Context<Gstreamer>, args: PipelineGraph) -> Result<Graph, ToolError> {
    let instances = &context.toolbox().instances;
    let (caps, properties) = (args.detail != Detail::States, args.detail == Detail::All);
    let drawing = instances.drawing(&args.instance_id, caps, properties).await?;
    let dot = drawing.dot.clone();
    let drawn = if args.svg {
        Some(tokio::task::spawn_blocking(move || graphviz::svg(&dot)).await?)
    } else {
        None
    };
    let (svg, note) = match drawn {
        None => (None, None),
        Some(Ok(svg)) => (Some(svg), None),
        Some(Err(error)) => (None, Some(error.to_string())),
    };
    Ok(Graph {
        dot: drawing.dot,
        svg,
        note,
        elements: drawing.elements,
    })
}
