//! The name that was meant by one that does not exist.

/// The least likeness of a name that is suggested.
const LIKENESS: f64 = 0.6;

/// The known name most similar to the written one, if it is similar enough to be meant.
///
/// ```
/// use ovos_tools_schema::nearest;
///
/// assert_eq!(nearest("sped", ["speed", "duration"]), Some("speed"));
/// assert_eq!(nearest("colour", ["speed", "duration"]), None);
/// ```
pub fn nearest<'n>(written: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let written = written.to_lowercase();
    let likeness = |name: &str| strsim::normalized_damerau_levenshtein(&written, &name.to_lowercase());
    let rated = known.into_iter().map(|name| (likeness(name), name));
    // Of equals the first one.
    let best = rated.reduce(|best, next| if next.0 > best.0 { next } else { best })?;
    (best.0 >= LIKENESS).then_some(best.1)
}

/// The argument that was meant by an undeclared one: the most similar name; without one, the only argument that takes
/// its value.
pub(super) fn meant<'n>(
    written: &str,
    known: impl IntoIterator<Item = &'n str>,
    takes: &[&'n str],
) -> Option<&'n str> {
    nearest(written, known).or(match takes {
        [only] => Some(only),
        _ => None,
    })
}
