//! Why a tool that a request names is missing, if its toolbox is known to be down. Read [`Api::why_missing`].

use super::state::Api;
use crate::names::ALIAS_SEPARATOR;
use crate::registry::Snapshot;
use client::payload::ToolboxStatus;
use schema::shorten_text;

/// The longest reason in an error, in bytes; `status` has the whole reason.
const MAX_REASON: usize = 2000;

impl Api {
    /// The text that follows the fixed text "unknown tool". It is empty, unless the request names a toolbox, by its id
    /// or in an alias, and the reason why that toolbox offers nothing is known, toolboxes still start, or a tool has another name.
    pub(super) fn why_missing(&self, snapshot: &Snapshot, name: &str, toolbox_id: Option<&str>) -> String {
        let reason = self.why_down(snapshot, name, toolbox_id);
        let not_loaded = toolbox_id.filter(|id| snapshot.toolbox(id).is_none());
        match (reason, not_loaded) {
            (Some(reason), _) => format!(": {reason}"),
            (None, Some(id)) => {
                let (loaded, starting) = (loaded(snapshot), self.starting());
                format!(": toolbox '{id}' is not loaded; {loaded}{starting}")
            }
            (None, None) if !self.starting().is_empty() => self.starting().to_owned(),
            (None, None) => {
                let other = other_name(snapshot, name);
                if other.is_empty() { self.off() } else { other }
            }
        }
    }

    /// The text about toolboxes that are off: what they would offer is not known, so the tool may be one of theirs.
    fn off(&self) -> String {
        let off = self.toolboxes.off();
        match &*off {
            [] => String::new(),
            [one] => format!(": {}", shorten_text(&one.reason, MAX_REASON)),
            [first, ..] => {
                let ids: Vec<&str> = off.iter().map(|off| off.toolbox_id.as_str()).collect();
                let reason = shorten_text(&first.reason, MAX_REASON);
                format!(
                    ": it may belong to one of the toolboxes that are off ({}): {reason}",
                    ids.join(", ")
                )
            }
        }
    }

    /// Names the toolbox of the request and its state from `status`, if that toolbox offers no tool.
    fn why_down(&self, snapshot: &Snapshot, name: &str, toolbox_id: Option<&str>) -> Option<String> {
        // Most names contain no toolbox id, and the status is expensive.
        if toolbox_id.is_none() && !name.contains(ALIAS_SEPARATOR) {
            return None;
        }
        let is_asked = |id: &str| match toolbox_id {
            Some(asked) => asked == id,
            None => name
                .strip_prefix(id)
                .is_some_and(|rest| rest.starts_with(ALIAS_SEPARATOR)),
        };
        if let Some(off) = self.toolboxes.off().iter().find(|off| is_asked(&off.toolbox_id)) {
            return Some(shorten_text(&off.reason, MAX_REASON));
        }
        let status = self.toolboxes.status();
        let mut without_tools = status.toolboxes.iter().filter(|toolbox| toolbox.tools == 0);
        let without_tools = without_tools.find(|toolbox| is_asked(&toolbox.toolbox_id));
        if let Some(toolbox) = without_tools {
            let (state, reason) = down(toolbox)?;
            let (id, reason) = (&toolbox.toolbox_id, shorten_text(reason, MAX_REASON));
            return Some(format!(
                "toolbox '{id}' offers no tools now ({state}): {reason}; call it when `ovos-tools status` says that it is ready"
            ));
        }
        status.failed.iter().find_map(|failed| {
            let id = failed.toolbox_id.as_deref()?;
            let is_it = is_asked(id) && snapshot.toolbox(id).is_none();
            let reason = shorten_text(&failed.reason, MAX_REASON);
            is_it.then(|| {
                format!("toolbox '{id}' is not loaded: {reason}; fix it and run `ovos-tools reload`")
            })
        })
    }

    /// The text that follows an error while toolboxes start, because the tool may become known soon.
    fn starting(&self) -> &'static str {
        if *self.all_loaded.borrow() {
            ""
        } else {
            ": toolboxes are still starting; try again in a few seconds"
        }
    }
}

/// The text about a tool that has this name but is called by another one, or else has nearly this name.
fn other_name(snapshot: &Snapshot, name: &str) -> String {
    let mut renamed = snapshot.renamed_tools().filter(|(tool, ..)| tool.name() == name);
    if let Some((tool, why, called)) = renamed.next() {
        let id = &tool.toolbox_id;
        return format!(": {why}; to call the tool of '{id}', use '{called}'");
    }
    if let Some(id) = snapshot.owner_without_tools(name) {
        return format!(": toolbox '{id}' offers no tools now (`ovos-tools status` shows why)");
    }
    let similar = snapshot
        .similar_call_name(name)
        .filter(|similar| *similar != name);
    similar.map_or_else(String::new, |similar| format!(": did you mean '{similar}'?"))
}

/// The state of a toolbox or of its backend, and the reason, if that explains why it offers no tool.
fn down(toolbox: &ToolboxStatus) -> Option<(&str, &str)> {
    if toolbox.state != "ready" {
        return Some((&toolbox.state, toolbox.reason.as_deref()?));
    }
    let backend = toolbox.backend.as_ref()?;
    let text = |key: &str| backend.get(key)?.as_str();
    let state = text("state").filter(|state| *state != "ready")?;
    Some((state, text("reason")?))
}

pub(super) fn loaded(snapshot: &Snapshot) -> String {
    let ids: Vec<&str> = snapshot
        .toolboxes()
        .map(|entry| entry.toolbox_id.as_str())
        .collect();
    if ids.is_empty() {
        "none is".to_owned()
    } else {
        format!("loaded are: {}", ids.join(", "))
    }
}
