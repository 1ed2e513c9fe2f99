//! The files of the page, which are part of the program.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode};
use sha2::{Digest as _, Sha256};

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

/// The files: path, type, content.
pub(crate) const FILES: [(&str, &str, &str); 12] = [
    ("/", HTML, include_str!("../static/index.html")),
    ("/app.js", SCRIPT, include_str!("../static/app.js")),
    ("/views.js", SCRIPT, include_str!("../static/views.js")),
    ("/machines.js", SCRIPT, include_str!("../static/machines.js")),
    ("/content.js", SCRIPT, include_str!("../static/content.js")),
    ("/form.js", SCRIPT, include_str!("../static/form.js")),
    ("/graph.js", SCRIPT, include_str!("../static/graph.js")),
    ("/service.js", SCRIPT, include_str!("../static/service.js")),
    ("/texts.js", SCRIPT, include_str!("../static/texts.js")),
    ("/style.css", STYLE, include_str!("../static/style.css")),
    ("/icon.svg", PICTURE, include_str!("../static/icon.svg")),
    (
        "/vendor/htm-preact.js",
        SCRIPT,
        include_str!("../static/vendor/htm-preact.js"),
    ),
];

/// Answers a request for a file.
pub(crate) fn answer(path: &str, headers: &HeaderMap) -> Response<Body> {
    let Some((_, kind, content)) = FILES.iter().find(|(name, ..)| *name == path) else {
        let mut response = Response::new(Body::from("there is no such page"));
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    };
    let digest = Sha256::digest(content.as_bytes());
    let tag: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{tag}\"");
    let is_current = headers.get(IF_NONE_MATCH).is_some_and(|shown| *shown == tag);
    let mut response = Response::new(if is_current {
        Body::empty()
    } else {
        Body::from(*content)
    });
    if is_current {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    response
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The vendored files are those of `vendor.lock`, with their licences.
    #[test]
    fn what_is_vendored_is_what_the_lock_names() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("static/vendor");
        let lock = std::fs::read_to_string(folder.join("vendor.lock")).unwrap();
        let mut named: Vec<&str> = Vec::new();
        for line in lock.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [file, _package, _version, licence, sha256] = words[..] else {
                panic!("{line}");
            };
            let content = std::fs::read(folder.join(file)).unwrap();
            let found: String = Sha256::digest(&content)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            assert_eq!(found, sha256, "{file}");
            assert!(["MIT", "Apache-2.0"].contains(&licence), "{line}");
            named.push(file);
        }
        let mut files: Vec<String> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "vendor.lock")
            .collect();
        files.sort();
        named.sort_unstable();
        assert_eq!(files, named);
    }

    /// 60 kB when it is compressed, which is less than half of this.
    #[test]
    fn the_page_is_small() {
        let bytes: usize = FILES.iter().map(|(.., content)| content.len()).sum();
        assert!(bytes < 100_000, "{bytes} bytes");
    }

    /// No inline script or style, and no address of another machine: the rules of the page's content refuse both.
    #[test]
    fn the_page_needs_nothing_that_its_rules_refuse() {
        for (path, kind, content) in FILES {
            if path.starts_with("/vendor/") {
                continue;
            }
            assert!(
                !content.contains("https://") && !content.contains("innerHTML"),
                "{path}"
            );
            if kind == HTML {
                assert!(
                    !content.contains("style=") && !content.contains("<script>"),
                    "{path}"
                );
            }
        }
    }
}
