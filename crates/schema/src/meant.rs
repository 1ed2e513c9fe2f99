//! The argument that was meant by an undeclared one.

/// The least similarity of a name that may be meant; 1 is equal.
const SIMILAR: f64 = 0.6;

/// Returns the declared argument with the most similar name. If none is similar enough, the only argument that takes the value is
/// meant.
pub(super) fn meant<'n>(
    written: &str,
    declared: impl IntoIterator<Item = &'n str>,
    takes: &[&'n str],
) -> Option<&'n str> {
    most_similar(written, declared).or(match takes {
        [only] => Some(only),
        _ => None,
    })
}

fn most_similar<'n>(written: &str, declared: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let written = written.to_lowercase();
    let similarity = |name: &str| strsim::normalized_damerau_levenshtein(&written, &name.to_lowercase());
    let rated = declared.into_iter().map(|name| (similarity(name), name));
    // Of equals the first one.
    let best = rated.reduce(|best, next| if next.0 > best.0 { next } else { best })?;
    (best.0 >= SIMILAR).then_some(best.1)
}
