//! Tools as a table, for `list` and `check`.

use ovos_toolbox_wire::{Audience, Effect};
use serde_json::Value;

use super::paint::{Paint, first_line};
use super::schema;

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub struct ToolRow<'a> {
    /// The tool.
    pub name: &'a str,
    /// Its effect, and for whom it is; `None` if the service did not say.
    pub effect: Option<(Effect, Audience)>,
    /// JSON Schema of the arguments.
    pub argument_schema: &'a Value,
    /// What it does; the first line is shown.
    pub description: &'a str,
}

/// Returns the table, which ends with a newline.
pub fn tool_table<'a>(rows: impl Iterator<Item = ToolRow<'a>>, paint: Paint) -> String {
    let rows = rows.map(|row| {
        let effect = row.effect;
        let effect = effect.map_or_else(
            || "-".to_owned(),
            |(effect, audience)| effect_shown(effect, audience),
        );
        vec![
            row.name.into(),
            effect.into(),
            schema::summary(row.argument_schema).into(),
            first_line(row.description).into(),
        ]
    });
    paint.table(&["NAME", "EFFECT", "ARGUMENTS", "DESCRIPTION"], rows)
}

/// The effect of a tool, and whether models do without the tool.
pub(super) fn effect_shown(effect: Effect, audience: Audience) -> String {
    match audience {
        Audience::Model => effect.to_string(),
        Audience::Person | Audience::Unready => format!("{effect}, {}", audience.as_str()),
    }
}
