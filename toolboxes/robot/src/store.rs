//! The files of `save_config` and `load_config`.
//!
//! Owns their place, and the kind of robot that is written beside the adapter's value. Read [`save`].

use std::path::PathBuf;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio::task::spawn_blocking;

use crate::action::Action;
use crate::adapter::{ActionOutput, Control};
use crate::clock::since_1970;
use crate::error::tool_error;
use crate::robots::Robots;
use crate::state_file::{read, write};
use crate::step::Step;
use crate::subsystem::Subsystem;
use crate::unit::Unit;

#[derive(Serialize, Deserialize)]
struct Saved {
    model: String,
    robot: String,
    config: Value,
}

/// Writes the value that the adapter has returned.
///
/// # Errors
/// The folder cannot be written to.
///
/// # Cancel safety
/// The file is written whole or not at all.
pub async fn save(
    context: &Context<Robots>,
    unit: &Unit,
    name: &str,
    mut output: ActionOutput,
) -> Result<ActionOutput, ToolError> {
    let path = path(context.toolbox(), unit, name)?;
    let saved = Saved {
        model: unit.capabilities().model.clone(),
        robot: unit.name.clone(),
        config: output.data.shift_remove("config").unwrap_or(Value::Null),
    };
    let text = serde_json::to_string_pretty(&saved)?;
    let written = path.clone();
    spawn_blocking(move || write(&written, &text))
        .await?
        .map_err(|error| ToolError::msg(format!("save {}: {error}", path.display())))?;
    Ok(output.with("file", path.display().to_string()))
}

/// Saves the settings of a part's motors under a new name before they are changed; returns the name and the path.
///
/// # Errors
/// The settings cannot be read or saved.
///
/// # Cancel safety
/// As [`save`].
pub async fn backup(
    context: &Context<Robots>,
    unit: &Unit,
    on: Subsystem,
    control: &Control,
) -> Result<(String, String), ToolError> {
    let name = format!("before-{on}-{}", since_1970().as_millis());
    let action = Action {
        subsystem: on,
        step: Step::SaveConfig {
            name: name.clone(),
            subsystems: on.each(),
        },
        motion: None,
        expected: Duration::ZERO,
    };
    let output = unit.execute(&action, control).await.map_err(tool_error)?;
    let saved = save(context, unit, &name, output).await?;
    let path = saved.data.get("file").and_then(Value::as_str).unwrap_or_default();
    Ok((name, path.to_string()))
}

/// Reads a file and gives it to the adapter.
///
/// # Errors
/// The file is missing or belongs to another kind of robot, or the adapter refuses it.
///
/// # Cancel safety
/// As the adapter's.
pub async fn load(
    context: &Context<Robots>,
    unit: &Unit,
    (name, write): (&str, bool),
    control: &Control,
) -> Result<ActionOutput, ToolError> {
    let path = path(context.toolbox(), unit, name)?;
    let from = path.clone();
    let read = spawn_blocking(move || read(&from)).await?;
    let text = read.map_err(|error| {
        ToolError::new(
            "ValueError",
            format!("no saved configuration {name}: {}: {error}", path.display()),
        )
    })?;
    let saved: Saved = serde_json::from_str(&text).map_err(|error| {
        ToolError::msg(format!(
            "{} is not a saved configuration: {error}",
            path.display()
        ))
    })?;
    if saved.model != unit.capabilities().model {
        return Err(ToolError::new(
            "ValueError",
            format!(
                "{} is for a {}, and {} is a {}",
                path.display(),
                saved.model,
                unit.name,
                unit.capabilities().model
            ),
        ));
    }
    let action = Action {
        subsystem: Subsystem::All,
        step: Step::LoadConfig {
            name: name.to_string(),
            write,
            config: saved.config,
        },
        motion: None,
        expected: Duration::ZERO,
    };
    unit.execute(&action, control).await.map_err(tool_error)
}

fn path(robots: &Robots, unit: &Unit, name: &str) -> Result<PathBuf, ToolError> {
    // The tool has checked the name: no separators, no dots.
    Ok(robots.data_dir()?.join(&unit.name).join(format!("{name}.json")))
}
