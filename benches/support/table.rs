//! The table that a bench prints: name, figure, goal, and whether it was met.

/// One row.
pub(crate) struct Row {
    what: String,
    figure: String,
    goal: String,
    met: Option<bool>,
}

/// The rows of one run.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
}

impl Table {
    /// A heading between rows.
    pub(crate) fn heading(&mut self, what: impl Into<String>) {
        self.add(what, "", "", None);
    }

    /// A figure without a goal, for comparison.
    pub(crate) fn note(&mut self, what: impl Into<String>, figure: impl Into<String>) {
        self.add(what, figure, "", None);
    }

    /// A figure with its goal.
    pub(crate) fn goal(&mut self, what: impl Into<String>, figure: impl Into<String>, goal: &str, met: bool) {
        self.add(what, figure, goal, Some(met));
    }

    fn add(&mut self, what: impl Into<String>, figure: impl Into<String>, goal: &str, met: Option<bool>) {
        let (what, figure, goal) = (what.into(), figure.into(), goal.to_owned());
        self.rows.push(Row {
            what,
            figure,
            goal,
            met,
        });
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let width = |text: fn(&Row) -> &str| {
            self.rows
                .iter()
                .map(|row| text(row).chars().count())
                .max()
                .unwrap_or(0)
        };
        let (what, figure, goal) = (
            width(|row| &row.what),
            width(|row| &row.figure),
            width(|row| &row.goal),
        );
        for row in &self.rows {
            let met = match row.met {
                None => "",
                Some(true) => "met",
                Some(false) => "MISSED",
            };
            let line = format!(
                "{:<what$}  {:>figure$}  {:>goal$}  {met}",
                row.what, row.figure, row.goal
            );
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
