//! A JSON object.

/// A JSON object that keeps the order of its keys.
pub type Object = serde_json::Map<String, serde_json::Value>;
