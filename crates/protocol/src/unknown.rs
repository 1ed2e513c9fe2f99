//! What this version does not know.

/// Skips the body of an order or a notice that this version does not know.
pub(crate) fn pass_over<'de, D: serde::Deserializer<'de>>(body: D) -> Result<(), D::Error> {
    serde::Deserialize::deserialize(body).map(|serde::de::IgnoredAny| ())
}
