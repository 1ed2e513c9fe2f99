//! Tracks whether the voice speaks. A service refuses to let its voice speak while it already does; then the voice does not speak
//! about what it was told. Pure.

/// The floor of one socket's conversation.
#[derive(Default)]
pub(crate) struct Floor {
    /// Whether the voice speaks, or composes its words.
    taken: bool,
    /// Whether it was told to speak and has not begun.
    told: bool,
    /// Whether there is something to speak about when the floor is free.
    wanted: bool,
}

impl Floor {
    /// Records that the voice takes the floor, or gives it back.
    pub(crate) fn changed(&mut self, taken: bool) {
        self.taken = taken;
        self.told = false;
    }

    /// Records that the voice was told to speak while it already had the floor, which becomes known only now.
    pub(crate) fn refused(&mut self) {
        self.taken = true;
        self.told = false;
        self.wanted = true;
    }

    /// Records an error of the service. Its cause is not known: it may be that the voice was told to speak.
    pub(crate) fn complained(&mut self) {
        self.told = false;
    }

    /// Records that there is something to speak about.
    pub(crate) fn want(&mut self) {
        self.wanted = true;
    }

    /// Whether the voice should be told to speak now. If so, it counts as told.
    pub(crate) fn is_due(&mut self) -> bool {
        let is_due = self.wanted && !self.taken && !self.told;
        if is_due {
            self.wanted = false;
            self.told = true;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_while_the_voice_speaks_is_spoken_about_once_after_that() {
        let mut floor = Floor::default();
        assert!(!floor.is_due(), "nothing to say");
        floor.want();
        assert!(floor.is_due());
        floor.want();
        assert!(!floor.is_due(), "it was told to, and has not begun");
        floor.changed(true);
        floor.want();
        assert!(!floor.is_due(), "it speaks");
        floor.changed(false);
        assert!(floor.is_due());
        assert!(!floor.is_due(), "once");
    }

    #[test]
    fn a_refusal_is_made_good_and_another_complaint_blocks_nothing() {
        let mut floor = Floor::default();
        floor.want();
        assert!(floor.is_due());
        floor.refused();
        assert!(!floor.is_due());
        floor.changed(false);
        assert!(floor.is_due());
        floor.complained();
        floor.want();
        assert!(floor.is_due());
    }
}
