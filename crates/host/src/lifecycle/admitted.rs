//! How many toolboxes a program may offer in its life. Read [`Admitted`].

use std::collections::HashSet;

/// The largest number of ids. For each id the service keeps some state as long as it lives: generations, epochs, the
/// engine's state.
const MAX_IDS: usize = 1024;

/// The ids that a program has offered.
#[derive(Debug, Default)]
pub(crate) struct Admitted(HashSet<String>);

impl Admitted {
    /// Admits one more id.
    ///
    /// # Errors
    /// The program has offered too many ids.
    pub(crate) fn admit(&mut self, id: &str) -> Result<(), String> {
        if self.0.len() >= MAX_IDS && !self.0.contains(id) {
            return Err(format!(
                "it has offered {MAX_IDS} different toolboxes since it was started, and no further one is taken; restart the service \
                 to start over"
            ));
        }
        self.0.insert(id.to_owned());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_so_many_ids_and_keeps_those_that_it_had() {
        let mut admitted = Admitted::default();
        for number in 0..MAX_IDS {
            assert_eq!(admitted.admit(&format!("x-{number}")), Ok(()));
        }
        let refused = admitted.admit("y").unwrap_err();
        assert!(refused.contains("1024 different toolboxes"), "{refused}");
        assert_eq!(admitted.admit("x-7"), Ok(()));
    }
}
