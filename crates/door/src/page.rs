//! The page of a toolbox for models, which says how to use its tools together. It has the form of an Agent Skill. Pure.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::guide::one_line;
use crate::{Guide, ListedTool};

impl Guide {
    /// The page: front matter, what the author wrote, and the tools by category with one line each. It changes only when the
    /// toolbox or what the door shows of it does.
    #[must_use]
    pub fn page(&self, tools: &[Arc<ListedTool>]) -> String {
        // Every JSON string is a YAML string, too.
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut page = format!(
            "---\nname: {}\ndescription: {}\n---\n\n",
            quoted(&self.skill()),
            quoted(&self.summary())
        );
        if self.text.trim().is_empty() {
            _ = writeln!(page, "# {}\n\n{}", self.toolbox_id, self.description);
        } else {
            _ = writeln!(page, "{}", self.text.trim());
        }
        let tools: Vec<_> = tools
            .iter()
            .filter(|tool| tool.toolbox_id == self.toolbox_id)
            .collect();
        let mut categories: Vec<&str> = Vec::new();
        for tool in &tools {
            let category = category(tool);
            if !categories.contains(&category) {
                categories.push(category);
            }
        }
        if tools.is_empty() {
            page.push_str("\nAll of its tools are hidden from this client.\n");
        }
        for name in categories {
            _ = writeln!(page, "\n## Tools: {name}\n");
            for tool in tools.iter().filter(|tool| category(tool) == name) {
                let does = first_sentence(&tool.description);
                _ = writeln!(page, "- `{}` ({}): {does}", tool.exported, tool.effect);
            }
        }
        page
    }
}

fn category(tool: &ListedTool) -> &str {
    tool.category
        .as_deref()
        .filter(|category| !category.is_empty())
        .unwrap_or("all")
}

/// The first sentence of a text, in one line.
fn first_sentence(text: &str) -> String {
    let line = one_line(text);
    match line.find(". ") {
        Some(end) => line[..=end].to_owned(),
        None => line,
    }
}
