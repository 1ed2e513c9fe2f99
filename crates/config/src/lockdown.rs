//! What the configuration is without a file that cannot be read: closed. Read [`Lockdown`].

use std::path::PathBuf;

use ovos_toolbox_wire::Effect;
use serde::Serialize;

/// Files of the configuration that could not be read at the start. They may forbid what the rest of the configuration
/// allows, so tools that change or move something are refused until the files are mended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Lockdown {
    /// The files; never empty.
    pub files: Vec<BrokenFile>,
}

/// A file that could not be read when the service started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BrokenFile {
    /// The file.
    pub path: PathBuf,
    /// Why it cannot be read, with the line where it is known.
    pub reason: String,
    /// Whether its last good content stands in for it.
    pub copy: bool,
    /// Whether it may have a rule that forbids reading: nothing of it is known, or its text speaks of such rules.
    pub may_forbid_reading: bool,
}

impl Lockdown {
    /// Whether what a toolbox drives is unknown, because nothing stands in for a file that may say it.
    #[must_use]
    pub fn backends_unknown(&self) -> bool {
        self.files.iter().any(|file| !file.copy)
    }

    /// Whether tools that only read are refused, too.
    #[must_use]
    pub fn forbids_reading(&self) -> bool {
        self.files
            .iter()
            .any(|file| !file.copy && file.may_forbid_reading)
    }

    /// Whether tools of this effect are refused. What stops or brings to safety never is.
    #[must_use]
    pub fn refuses(&self, effect: Effect) -> bool {
        match effect {
            Effect::Motion | Effect::Write => true,
            Effect::Read => self.forbids_reading(),
            Effect::Safe | Effect::Stop | Effect::Resume => false,
        }
    }

    /// The reason for a person: files, lines, what to do.
    #[must_use]
    pub fn text(&self) -> String {
        let line = |file: &BrokenFile| {
            let stands_in = if file.copy {
                "its last good copy is used instead"
            } else {
                "no last good copy of it exists"
            };
            format!("{}: {} ({stands_in})", file.path.display(), file.reason)
        };
        let files: Vec<String> = self.files.iter().map(line).collect();
        let refused = if self.forbids_reading() {
            "every tool that reads, changes or moves something is refused"
        } else {
            "every tool that changes or moves something is refused"
        };
        format!(
            "cannot read the configuration: {}; {refused} until you fix the file and run `ovos-tools reload`",
            files.join("; ")
        )
    }
}
