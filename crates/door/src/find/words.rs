//! Splits texts into words, and brings the words to their stems. Pure.

use std::collections::HashSet;
use std::sync::LazyLock;

use waken_snowball::SnowballEnv;
use waken_snowball::algorithms::{english_stemmer, german_stemmer};

/// Words that say nothing about what is asked for. They count only as part of a phrase in the table of everyday words.
const STOP_WORDS: &str = "a about again all also am an and any are as at away be been being bit but by can cannot could currently \
did do does doing done dont for from get give go going had has have he her here him his how i if in into is it its itself \
just let like little lot make many may me might mine more much must my need no not now of on one only or other our ours \
please quickly quick rather really she should slightly slowly so some something still such than that the their them \
then there these they thing things this those to too try us use using very want wants was we were what when where whether \
which while will with would yes you your yours yourself \
aber alle alles also am an auf aus bei bin bis bist bitte da das dass dein deine dem den der des die dir dich doch du ein \
eine einem einen einer es etwas fuer gib hab habe haben hat ich ihm ihn ihr im in ist jetzt kann kannst koennen koenntest \
mach mache mal mein meine meinem meinen meiner mich mir mit nach noch nun oder schon sein sich sie sind soll sollst und uns \
unser von vom vor war was welche welcher welches wie wird wo zu zum zur";

static STOPS: LazyLock<HashSet<&str>> = LazyLock::new(|| STOP_WORDS.split_ascii_whitespace().collect());

/// A word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// As it was written, in lower case.
    pub(super) plain: String,
    /// Its English stem.
    pub(super) stem: String,
}

impl Word {
    pub(super) fn new(plain: String) -> Self {
        let stem = english(&plain);
        Self { plain, stem }
    }

    /// Whether it says nothing about what is asked for.
    pub(super) fn is_stop(&self) -> bool {
        self.plain.len() < 2 || STOPS.contains(self.plain.as_str())
    }

    /// Its German stem.
    pub(super) fn german(&self) -> String {
        german(&self.plain)
    }
}

/// The words of a text, in order: a capital after a small letter begins a word, and every character that is neither a letter nor a digit
/// ends one.
pub(super) fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for letter in text.chars() {
        // `don't` and `what's` are one word.
        if matches!(letter, '\'' | '\u{2019}') {
            continue;
        }
        let ends = !letter.is_alphanumeric() || (was_lower && letter.is_uppercase());
        if ends && !word.is_empty() {
            words.push(Word::new(std::mem::take(&mut word)));
        }
        was_lower = letter.is_lowercase();
        for lower in letter.to_lowercase().filter(|lower| lower.is_alphanumeric()) {
            match lower {
                'ä' => word.push_str("ae"),
                'ö' => word.push_str("oe"),
                'ü' => word.push_str("ue"),
                'ß' => word.push_str("ss"),
                other => word.push(other),
            }
        }
    }
    if !word.is_empty() {
        words.push(Word::new(word));
    }
    for word in &mut words {
        // `whos` and `whats` were `who's` and `what's`.
        if let Some(asked @ ("who" | "what" | "where" | "how")) = word.plain.strip_suffix('s') {
            *word = Word::new(asked.to_owned());
        }
    }
    words
}

fn english(word: &str) -> String {
    let mut env = SnowballEnv::create(word);
    english_stemmer::stem(&mut env);
    env.get_current().into_owned()
}

fn german(word: &str) -> String {
    let mut env = SnowballEnv::create(word);
    german_stemmer::stem(&mut env);
    env.get_current().into_owned()
}
