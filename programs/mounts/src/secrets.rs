//! What must not be shown of a mount. Pure. Read [`Secrets::hide`].

use config::MountConfig;

/// Shorter texts are no secrets, and would be found everywhere.
const SHORTEST: usize = 4;

/// The texts of a mount that stand in no log, no status and no error.
#[derive(Debug, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// The values of its headers and variables, its token, and what its URL has beside a place.
    pub(crate) fn of(mount: &MountConfig, token: Option<&str>) -> Self {
        let url = mount.url.as_deref().unwrap_or_default();
        let query = url.split_once('?').map(|(_, query)| query);
        let place = url.split_once("://").map_or("", |(_, place)| place);
        let authority = place.split(['/', '?', '#']).next().unwrap_or_default();
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        let values = mount.headers.values().chain(mount.env.values());
        let parts = [query, user, token].into_iter().flatten();
        let mut texts: Vec<String> = values
            .map(String::as_str)
            .chain(parts)
            .map(str::to_owned)
            .collect();
        // `Bearer abc`: the second part alone is the secret, too.
        let words: Vec<String> = texts
            .iter()
            .flat_map(|text| text.split(' ').map(str::to_owned))
            .collect();
        texts.extend(words);
        texts.retain(|text| text.len() >= SHORTEST);
        // The longest first: one may be a part of another.
        texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        texts.dedup();
        Self(texts)
    }

    /// The text without them.
    pub(crate) fn hide(&self, text: &str) -> String {
        let hidden = |text: String, secret: &String| text.replace(secret, "(not shown)");
        self.0.iter().fold(text.to_owned(), hidden)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics and prints")]

    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_secret_is_left_of_a_text() {
        let mut written = serde_json::to_value(MountConfig::default()).unwrap();
        written["url"] = json!("https://me:pass@host.example/mcp?key=q-secret");
        written["headers"] = json!({"Authorization": "Bearer h-secret"});
        written["env"] = json!({"TOKEN": "e-secret", "DEBUG": "1"});
        let mount = serde_json::from_value(written).unwrap();
        let secrets = Secrets::of(&mount, Some("t-secret"));
        let told =
            "1 error for https://me:pass@host.example/mcp?key=q-secret with h-secret, e-secret and t-secret";
        let shown = secrets.hide(told);
        assert!(!shown.contains("secret") && !shown.contains("pass"), "{shown}");
        assert!(shown.starts_with("1 error for https://"), "{shown}");
        assert!(shown.contains("host.example/mcp"), "{shown}");
    }
}
