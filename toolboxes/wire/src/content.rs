//! Pictures and other media beside a tool's output.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an item of content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContentKind {
    /// A picture.
    Image,
    /// A sound.
    Audio,
    /// Text for people, in UTF-8.
    Text,
    /// Anything else: a document, a recording, a map.
    Resource,
}

/// One item of content. Exactly one of `path`, `data` and `uri` is present.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Content {
    /// What it is.
    #[serde(rename = "type")]
    pub kind: ContentKind,
    /// Its media type, such as `image/png`.
    pub mime_type: String,
    /// The file that holds it. From a toolbox the path is relative to `call.content_dir` of `start`; in an answer of the
    /// service it is absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The content itself: the text of `text`, base64 of anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Where it is. The service and its doors pass a URI on and never fetch it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// A caption for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

impl Content {
    /// The most items beside one output.
    pub const MAX_ITEMS: usize = 8;

    /// The most bytes of the files beside one output, in total.
    pub const MAX_FILES: u64 = 8 << 20;

    /// The name of the file that marks the folder of all content folders as made by the service. The service removes
    /// files only in a folder with this mark.
    pub const FOLDER_MARK: &str = ".ovos-tools";

    fn new(kind: ContentKind, mime_type: impl Into<String>) -> Self {
        Self {
            kind,
            mime_type: mime_type.into(),
            path: None,
            data: None,
            uri: None,
            title: None,
        }
    }

    /// A file in the content folder.
    pub fn file(kind: ContentKind, mime_type: impl Into<String>, path: impl Into<String>) -> Self {
        Self {
            path: Some(path.into()),
            ..Self::new(kind, mime_type)
        }
    }

    /// A short text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            data: Some(text.into()),
            ..Self::new(ContentKind::Text, "text/plain")
        }
    }

    /// Something that is elsewhere.
    pub fn link(mime_type: impl Into<String>, uri: impl Into<String>) -> Self {
        Self {
            uri: Some(uri.into()),
            ..Self::new(ContentKind::Resource, mime_type)
        }
    }

    /// Adds a caption.
    #[must_use]
    pub fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }
}
