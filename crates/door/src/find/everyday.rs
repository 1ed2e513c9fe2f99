//! What everyday words mean in the words of tools: the table `everyday.txt`. Pure.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::words::{Word, words};

/// What a word of the table weighs beside one that the request itself has.
const SYNONYM: f64 = 0.8;
const PHRASE: f64 = 1.2;
/// What a word weighs by itself that a phrase has explained.
const EXPLAINED: f64 = 0.3;
/// What two words weigh that are one for a tool, such as `take off`.
const JOINED: f64 = 1.5;

/// Words with which anything is asked for.
const WEAK: [&str; 10] = [
    "list", "show", "tell", "display", "explain", "check", "fly", "move", "start", "use",
];

/// How many words may stand between those of a phrase.
const GAP: usize = 3;

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::read(include_str!("everyday.txt")));

/// One meaning of a request: words of tools, one of which a fitting tool has. Each is one word or several that belong together.
#[derive(Debug)]
pub(super) struct Meaning {
    pub(super) words: Vec<(Vec<String>, f64)>,
}

impl Meaning {
    /// The words for it that are one word, as stems.
    pub(super) fn single(&self) -> impl Iterator<Item = &str> {
        self.words.iter().filter_map(|(stems, _)| match stems.as_slice() {
            [stem] => Some(stem.as_str()),
            _ => None,
        })
    }
}

/// The table, by language.
struct Table {
    english: Rows,
    german: Rows,
}

/// What is said, as stems, and what tools call it.
#[derive(Default)]
struct Rows {
    words: HashMap<String, Vec<Vec<String>>>,
    /// Phrases by their first word.
    phrases: HashMap<String, Vec<Phrase>>,
}

/// Words that are said together, and what tools call it.
struct Phrase {
    stems: Vec<String>,
    called: Vec<Vec<String>>,
}

/// Returns what a request means. `is_known` says whether tools have a word with this stem.
pub(super) fn meanings(request: &[Word], is_known: impl Fn(&str) -> bool) -> Vec<Meaning> {
    let mut found = Vec::new();
    // How many words the longest phrase has that explains a word.
    let mut taken = vec![0; request.len()];
    let german: Vec<String> = request.iter().map(Word::german).collect();
    let english: Vec<String> = request.iter().map(|word| word.stem.clone()).collect();
    let mut phrases = Vec::new();
    for (rows, stems) in [(&TABLE.english, &english), (&TABLE.german, &german)] {
        for start in 0..stems.len() {
            let beginning = rows.phrases.get(&stems[start]).into_iter().flatten();
            phrases.extend(
                beginning.filter_map(|phrase| Some((places(&phrase.stems, stems, start)?, &phrase.called))),
            );
        }
    }
    // The longer one of two phrases that share a word says more.
    phrases.sort_by_key(|(places, _)| std::cmp::Reverse(places.len()));
    for (places, called) in phrases {
        if taken_by(&taken, &places) > places.len() {
            continue;
        }
        found.push(Meaning {
            words: called.iter().map(|stems| (stems.clone(), PHRASE)).collect(),
        });
        for place in &places {
            taken[*place] = taken[*place].max(places.len());
        }
    }
    for (at, word) in request.iter().enumerate() {
        let mut words = Vec::new();
        let mut table = |rows: &Rows, stem: &str| {
            let called = rows.words.get(stem).into_iter().flatten();
            words.extend(called.map(|stems| (stems.clone(), SYNONYM)));
        };
        if taken[at] == 0 {
            table(&TABLE.english, &english[at]);
            table(&TABLE.german, &german[at]);
        }
        if !word.is_stop() {
            // A word that a phrase has explained counts less by itself.
            let is_weak = WEAK.contains(&word.plain.as_str());
            let weight = if taken[at] > 0 || is_weak { EXPLAINED } else { 1.0 };
            words.push((vec![word.stem.clone()], weight));
        }
        if let Some(next) = request.get(at + 1) {
            let joined = Word::new(format!("{}{}", word.plain, next.plain)).stem;
            if is_known(&joined) {
                words.push((vec![joined], JOINED));
            }
        }
        if !words.is_empty() {
            found.push(Meaning { words });
        }
    }
    found
}

/// How many words the longest phrase has that shares a word with this one.
fn taken_by(taken: &[usize], places: &[usize]) -> usize {
    places.iter().map(|place| taken[*place]).max().unwrap_or_default()
}

/// Where the words of a phrase stand, from `start` on, in order and close to each other.
fn places(phrase: &[String], request: &[String], start: usize) -> Option<Vec<usize>> {
    let mut places = vec![start];
    for word in &phrase[1..] {
        let from = places[places.len() - 1] + 1;
        let to = (from + GAP + 1).min(request.len());
        let place = (from..to).find(|place| request[*place] == *word)?;
        places.push(place);
    }
    Some(places)
}

impl Table {
    fn read(text: &str) -> Self {
        let mut table = Self {
            english: Rows::default(),
            german: Rows::default(),
        };
        let mut is_german = false;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            if let Some(remark) = line.strip_prefix('#') {
                is_german |= remark.trim() == "Deutsch";
                continue;
            }
            let Some((sayings, called)) = line.split_once('=') else {
                continue;
            };
            let called: Vec<Vec<String>> = called.split(',').map(stems).collect();
            let rows = if is_german {
                &mut table.german
            } else {
                &mut table.english
            };
            for saying in sayings.split(',') {
                let stems: Vec<String> = words(saying)
                    .iter()
                    .map(|word| {
                        if is_german {
                            word.german()
                        } else {
                            word.stem.clone()
                        }
                    })
                    .collect();
                match stems.as_slice() {
                    [] => {}
                    [word] => rows
                        .words
                        .entry(word.clone())
                        .or_default()
                        .extend(called.iter().cloned()),
                    [first, ..] => {
                        let phrases = rows.phrases.entry(first.clone()).or_default();
                        phrases.push(Phrase {
                            stems: stems.clone(),
                            called: called.clone(),
                        });
                    }
                }
            }
        }
        table
    }
}

fn stems(text: &str) -> Vec<String> {
    words(text).into_iter().map(|word| word.stem).collect()
}
