//! Whether this kernel can confine a process.

use landlock::{ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};

/// Skips the calling test if it cannot.
pub(crate) fn can_confine() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let can = ruleset
        .handle_access(AccessFs::from_all(ABI::V3))
        .and_then(Ruleset::create)
        .is_ok();
    if !can {
        skip::skip(
            "landlock",
            "this kernel has no Landlock, or one older than Linux 6.2",
        );
    }
    can
}
