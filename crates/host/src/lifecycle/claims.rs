//! Which program gets a toolbox id, during one reload: plugin files come before programs, programs in the order of the file.
//!
//! A program that does not answer delays only those later programs that offer a toolbox which it may offer, too. Read
//! [`Claims::claim`].

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use section::ProgramConfig;
use tokio::sync::watch;

/// The owners of toolbox ids, and the programs that have not decided yet.
pub(crate) struct Claims {
    programs: Vec<Arc<ProgramConfig>>,
    /// For each program, whether it has claimed its toolboxes or will claim no more.
    decided: Vec<watch::Sender<bool>>,
    owners: Arc<Mutex<Owners>>,
    /// The claims of the programs that come before all of these.
    before: Option<Arc<Self>>,
}

/// The owner of each toolbox id.
pub(crate) type Owners = HashMap<String, Owner>;

/// The owner of a toolbox id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    File(PathBuf),
    /// The program of this name.
    Program(String),
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Program(name) => write!(f, "the program `{name}`"),
        }
    }
}

/// A program that may still claim toolboxes. Once this is dropped, it claims no more.
pub(crate) struct Claimant<'a> {
    claims: &'a Claims,
    place: usize,
}

impl Claims {
    /// `owners` has the ids that are taken before any of these programs, such as the ids of plugin files.
    pub(crate) fn new(programs: Vec<Arc<ProgramConfig>>, owners: Owners) -> Self {
        Self {
            decided: programs.iter().map(|_| watch::Sender::new(false)).collect(),
            programs,
            owners: Arc::new(Mutex::new(owners)),
            before: None,
        }
    }

    /// The owner of each toolbox id.
    pub(crate) fn owners(&self) -> Owners {
        self.owners.lock().clone()
    }

    /// Whether there is a program of this name.
    pub(crate) fn has_program(&self, name: &str) -> bool {
        self.programs.iter().any(|program| program.name == name)
    }

    /// The claims of programs that became known later, and come after those of `before`.
    pub(crate) fn after(before: &Arc<Self>, programs: Vec<Arc<ProgramConfig>>) -> Self {
        Self {
            owners: before.owners.clone(),
            before: Some(before.clone()),
            ..Self::new(programs, HashMap::new())
        }
    }

    /// Every program, with whether it has claimed its toolboxes or will claim no more.
    fn all(&self) -> impl Iterator<Item = (&Arc<ProgramConfig>, &watch::Sender<bool>)> {
        self.programs.iter().zip(&self.decided)
    }

    /// Every program, in order.
    pub(crate) fn claimants(&self) -> impl Iterator<Item = (Claimant<'_>, &Arc<ProgramConfig>)> {
        let claimant = move |place| Claimant { claims: self, place };
        let programs = self.programs.iter().enumerate();
        programs.map(move |(place, program)| (claimant(place), program))
    }

    /// Whether a program may offer the toolbox with this id.
    pub(crate) fn may_be_offered(&self, id: &str) -> bool {
        self.programs.iter().any(|program| program.may_offer(id))
    }
}

impl Claimant<'_> {
    /// Takes an id for this program.
    ///
    /// # Errors
    /// The id has another owner, which the text names.
    pub(crate) async fn claim(&self, id: &str) -> Result<(), String> {
        let Claims {
            programs,
            owners,
            before,
            ..
        } = self.claims;
        let before = before.iter().flat_map(|before| before.all());
        for (program, decided) in before.chain(self.claims.all().take(self.place)) {
            if program.may_offer(id) {
                // Its sender lives as long as the claims.
                _ = decided.subscribe().wait_for(|decided| *decided).await;
            }
        }
        let mut owners = owners.lock();
        if let Some(owner) = owners.get(id) {
            return Err(format!(
                "toolbox id `{id}` already belongs to {owner}, which comes first: remove one of the two, or give the second another id"
            ));
        }
        if let Some(program) = programs.get(self.place) {
            owners.insert(id.to_owned(), Owner::Program(program.name.clone()));
        }
        Ok(())
    }
}

impl Drop for Claimant<'_> {
    fn drop(&mut self) {
        if let Some(decided) = self.claims.decided.get(self.place) {
            decided.send_replace(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    fn program(name: &str, toolboxes: &[&str]) -> Arc<ProgramConfig> {
        let toolboxes = toolboxes.iter().map(|id| (*id).to_owned()).collect();
        let entry = ProgramConfig::new(name);
        Arc::new(ProgramConfig { toolboxes, ..entry })
    }

    #[test]
    fn an_id_goes_to_a_file_then_to_the_first_program_and_silence_delays_only_its_rivals() {
        let programs = vec![
            program("silent", &["arm", "x-*"]),
            program("file", &["leg"]),
            program("rival", &["*"]),
            program("other", &["eye"]),
        ];
        let owners = HashMap::from([("leg".to_owned(), Owner::File("/p/leg.so".into()))]);
        let claims = Claims::new(programs, owners);
        let mut claimants = claims.claimants().map(|(claimant, _)| claimant);
        let mut next = || claimants.next().unwrap();
        let (silent, file, rival, other) = (next(), next(), next(), next());
        let refused = file.claim("leg").now_or_never().unwrap().unwrap_err();
        assert!(
            refused.contains("belongs to /p/leg.so, which comes first"),
            "{refused}"
        );
        assert_eq!(
            rival.claim("y").now_or_never(),
            Some(Ok(())),
            "no program before it may offer it"
        );
        assert_eq!(
            rival.claim("x-1").now_or_never(),
            None,
            "it waits for the silent one"
        );
        assert_eq!(other.claim("eye").now_or_never(), None, "it waits for the rival");
        drop(rival);
        assert_eq!(other.claim("eye").now_or_never(), Some(Ok(())));
        assert_eq!(silent.claim("arm").now_or_never(), Some(Ok(())));
        let again = other.claim("y").now_or_never().unwrap().unwrap_err();
        assert!(again.contains("the program `rival`"), "{again}");
    }
}
