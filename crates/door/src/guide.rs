//! What a toolbox says of itself for models, and its name as an Agent Skill. Pure.

use client::payload::ToolboxStatus;

/// The longest description in the front matter of a skill.
const LONGEST_DESCRIPTION: usize = 1024;

/// A toolbox as a door knows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Guide {
    /// Its id.
    pub toolbox_id: String,
    /// What it is for, in one line; may be empty.
    pub description: String,
    /// What its author wrote for models, in Markdown; may be empty.
    pub(crate) text: String,
}

impl Guide {
    /// The guide of a toolbox, from an answer with guides.
    #[must_use]
    pub fn new(toolbox: &ToolboxStatus) -> Self {
        Self {
            toolbox_id: toolbox.toolbox_id.clone(),
            description: one_line(&toolbox.description),
            text: toolbox.guide.clone().unwrap_or_default(),
        }
    }

    /// The name of the skill: at most 64 of `a-z` and `0-9`, in parts that single hyphens separate.
    #[must_use]
    pub fn skill(&self) -> String {
        let parts = self.toolbox_id.split(['_', '-']).filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join("-")
    }

    /// The URI of the page.
    #[must_use]
    pub fn uri(&self) -> String {
        format!("skill://{}/SKILL.md", self.skill())
    }

    /// The `description` of the skill's front matter, at most 1024 bytes.
    #[must_use]
    pub fn summary(&self) -> String {
        let what = if self.description.is_empty() {
            format!("The toolbox {}", self.toolbox_id)
        } else {
            self.description.trim_end_matches('.').to_owned()
        };
        let summary = format!(
            "{what}. How the tools of the toolbox {} go together: read it before you use several of them.",
            self.toolbox_id
        );
        summary[..summary.floor_char_boundary(LONGEST_DESCRIPTION)].to_owned()
    }
}

/// Puts a text on one line: each run of white space becomes one space.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
