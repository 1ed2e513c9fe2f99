//! `ovos.persona.tools.discover`: one answer for each toolbox.

use std::sync::Arc;

use ovos_toolbox_wire::{Effect, FailureKind};
use serde_json::value::RawValue;

use super::error::WireError;
use super::list::ListedTool;
use super::pages::Part;
use super::request::Request;
use super::state::Api;
use client::payload::DiscoverResponse;

impl Api {
    /// The answers. Leaves out tools of effect `resume`: they are for operators. With `cursor` there is one answer, the next
    /// page of its toolbox.
    pub(super) fn discover(&self, request: &Request) -> Result<Vec<Arc<RawValue>>, WireError> {
        let part = match self.open_pages.part(&self.registry, &request.data) {
            Ok(part) => part,
            // The published contract ignores the data of this request.
            Err(_) if request.data.get("cursor").is_none() => Part::whole_list(self.registry.snapshot()),
            Err(error) => return Err(error),
        };
        let continued = if part.first == 0 {
            None
        } else {
            let end = || {
                WireError::new(
                    FailureKind::ValueError,
                    "'cursor' is past the end of the list: start again without it",
                )
            };
            Some(part.toolbox_id().ok_or_else(end)?.to_owned())
        };
        let mut first = 0;
        let mut answers = Vec::new();
        for entry in part.snapshot.toolboxes() {
            let begin = part.first.max(first);
            first += entry.tools.len();
            if continued.as_ref().is_some_and(|id| *id != entry.toolbox_id) {
                continue;
            }
            let of_toolbox = Part {
                snapshot: part.snapshot.clone(),
                first: begin,
                limit: part.limit,
                bytes: part.bytes,
            };
            let key = || format!("discover {}", entry.toolbox_id);
            answers.push(self.list_cache.get_or_make(&of_toolbox, key, || {
                let page = of_toolbox
                    .page(|tool| tool.toolbox_id == entry.toolbox_id && tool.effect() != Effect::Resume);
                Ok(DiscoverResponse {
                    tools: page.tools.iter().map(|(tool, _)| ListedTool::new(tool)).collect(),
                    toolbox_id: entry.toolbox_id.clone(),
                    next_cursor: self.next_cursor(&of_toolbox, page.next),
                })
            })?);
        }
        Ok(answers)
    }
}
