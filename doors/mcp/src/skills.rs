//! The pages of toolboxes as Agent Skills: `skill://<toolbox>/SKILL.md`, as the protocol's extension for skills has them
//! (SEP-2640). A client without the extension reads the same pages as resources. Pure.

use door::{Guide, Listing};
use rmcp::model::{Resource, Skill, SkillFrontmatter, SkillResource, SkillResources};

/// Returns the resources of these pages.
pub(crate) fn resources(listing: &Listing) -> impl Iterator<Item = Resource> {
    listing.guides().map(|guide| {
        Resource::new(guide.uri(), guide.skill())
            .with_title(format!("How to use {}", guide.toolbox_id))
            .with_description(guide.summary())
            .with_mime_type("text/markdown")
    })
}

/// Returns the skills.
pub(crate) fn skills(listing: &Listing) -> Vec<Skill> {
    listing.guides().map(|guide| skill(guide, listing)).collect()
}

/// Returns the skill with this URI.
pub(crate) fn of(listing: &Listing, uri: &str) -> Option<Skill> {
    guide(listing, uri).map(|guide| skill(guide, listing))
}

/// Returns the page with this URI.
pub(crate) fn page(listing: &Listing, uri: &str) -> Option<String> {
    guide(listing, uri).map(|guide| guide.page(listing.tools()))
}

fn guide<'a>(listing: &'a Listing, uri: &str) -> Option<&'a Guide> {
    listing.guides().find(|guide| guide.uri() == uri)
}

fn skill(guide: &Guide, listing: &Listing) -> Skill {
    let page = guide.page(listing.tools());
    let file = SkillResource::from_bytes(guide.uri(), page.as_bytes());
    Skill::new(
        guide.uri(),
        SkillFrontmatter::new(guide.skill(), guide.summary()),
        SkillResources::Files(vec![file]),
    )
}
