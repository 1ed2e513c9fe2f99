//! Names of arguments that no record shows.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::fields::texts;
use super::pattern::matches;

/// Patterns for the names of arguments; `*` stands for any characters. Case, `_` and `-` are ignored, as in the arguments of
/// calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenArguments {
    written: Vec<String>,
    /// The same in lower case, without `_` and `-`.
    plain: Vec<String>,
}

impl Default for HiddenArguments {
    fn default() -> Self {
        let names = [
            "*password*",
            "*passphrase*",
            "*secret*",
            "*api_key*",
            "token",
            "*_token",
            "pin",
        ];
        Self::new(names.map(str::to_owned).to_vec())
    }
}

impl HiddenArguments {
    fn new(written: Vec<String>) -> Self {
        let plain = written.iter().map(|pattern| plain_name(pattern)).collect();
        Self { written, plain }
    }

    /// Whether the value of an argument of this name is hidden.
    #[must_use]
    pub fn names(&self, argument: &str) -> bool {
        let argument = plain_name(argument);
        self.plain.iter().any(|pattern| matches(pattern, &argument))
    }
}

impl Serialize for HiddenArguments {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.written.serialize(to)
    }
}

impl<'de> Deserialize<'de> for HiddenArguments {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        texts(from).map(Self::new)
    }
}

/// The name of an argument in lower case, without `_` and `-`: these differences are ignored when arguments are read.
#[must_use]
pub fn plain_name(name: &str) -> String {
    let counts = name.chars().filter(|letter| !matches!(letter, '_' | '-'));
    counts.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_hidden_in_each_of_its_spellings() {
        let hidden = HiddenArguments::default();
        for (argument, expected) in [
            ("password", true),
            ("wifi_Password", true),
            ("apiKey", true),
            ("API-KEY", true),
            ("access_token", true),
            ("token", true),
            ("PIN", true),
            ("max_tokens", false),
            ("spin", false),
            ("arm", false),
            ("", false),
        ] {
            assert_eq!(hidden.names(argument), expected, "{argument}");
        }
        assert!(!HiddenArguments::new(Vec::new()).names("password"));
    }
}
