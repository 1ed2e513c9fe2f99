//! Results that were too long for a client: what it is given instead, and the whole as a resource.

use std::collections::VecDeque;
use std::sync::Arc;

use door::{Answer, Registered, own_id, shorten};
use parking_lot::Mutex;
use rmcp::model::{CallToolResult, ContentBlock, Resource};

use crate::answer;

/// How many whole results are kept, and how many bytes of them.
const MOST: usize = 16;
const MOST_BYTES: usize = 16 << 20;

/// The whole results of which clients were given a part, the oldest first.
#[derive(Default)]
pub(crate) struct Results(Mutex<VecDeque<(String, Arc<str>)>>);

impl Results {
    /// Keeps a result, and returns the URI under which it can be read.
    fn keep(&self, text: String) -> Option<String> {
        if text.len() > MOST_BYTES {
            return None;
        }
        let uri = format!("ovos-tools://result/{}", own_id("r"));
        let mut kept = self.0.lock();
        kept.push_back((uri.clone(), text.into()));
        while kept.len() > MOST || kept.iter().map(|(_, text)| text.len()).sum::<usize>() > MOST_BYTES {
            kept.pop_front();
        }
        Some(uri)
    }

    /// Returns a result that is still kept.
    pub(crate) fn of(&self, uri: &str) -> Option<Arc<str>> {
        let kept = self.0.lock();
        kept.iter()
            .find(|(known, _)| known == uri)
            .map(|(_, text)| Arc::clone(text))
    }
}

/// Converts an answer for a client. One of more than `most` bytes is shortened and says so; its whole is kept, and linked.
pub(crate) fn result(
    results: &Results,
    most: usize,
    tool: &Registered,
    mut answer: Answer,
) -> CallToolResult {
    let Some(short) = shorten(tool, &answer.data, most) else {
        if answer.text.len() > most {
            let end = answer.text.floor_char_boundary(most);
            answer.text = format!("{}... ({} bytes in all)", &answer.text[..end], answer.text.len());
        }
        return answer::result(answer);
    };
    let whole = answer.data.to_string();
    answer.text = if answer.failed {
        answer.text[..answer.text.floor_char_boundary(most)].to_owned()
    } else {
        short.value.to_string()
    };
    answer.data = short.value;
    let mut result = answer::result(answer);
    let mut remark = short.remark;
    let link = results.keep(whole);
    if link.is_some() {
        remark.push_str(" The whole is the linked resource.");
    }
    result.content.push(ContentBlock::text(remark));
    if let Some(uri) = link {
        let name = format!("the whole result of {}", tool.exported);
        let link = Resource::new(uri, name).with_mime_type("application/json");
        result.content.push(ContentBlock::resource_link(link));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_is_kept_as_is_promised() {
        let results = Results::default();
        let uris: Vec<String> = (0..MOST + 3)
            .map(|number| results.keep(number.to_string()).expect("it is short"))
            .collect();
        assert_eq!(results.of(&uris[2]), None);
        assert_eq!(results.of(&uris[3]).as_deref(), Some("3"));
        assert_eq!(results.keep("x".repeat(MOST_BYTES + 1)), None);
        let large = results.keep("x".repeat(MOST_BYTES)).expect("it fits");
        assert!(results.of(&large).is_some() && results.of(&uris[MOST + 2]).is_none());
    }
}
