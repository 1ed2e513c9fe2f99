//! Ranks tools by the words of a request: BM25 over the fields of their texts (Robertson and Zaragoza, BM25F). Pure.
//!
//! A crate for this would rank plain texts; here a word in a name weighs more than one in a remark, and a word counts once together
//! with its synonyms.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::everyday::{self, Meaning};
use super::requests::{self, precise};
use super::words::{Word, words};
use crate::ListedTool;
use ovos_toolbox_wire::Effect;

/// BM25's k1 and b, near their usual values: how quickly repetitions of a word stop adding to the score, and how strongly long
/// texts are discounted.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.5;

/// What a word weighs in each part of a tool's texts.
const IN_NAME: f64 = 4.0;
const IN_GROUP: f64 = 1.0;
const IN_FIRST_SENTENCE: f64 = 2.0;
const IN_REST: f64 = 0.5;
const IN_ARGUMENT: f64 = 1.0;
const IN_ARGUMENT_TEXT: f64 = 0.25;
/// Words of an example, such as `red cup`, say little about what the tool is for.
const IN_EXAMPLE: f64 = 0.1;

/// Factor on the score of a tool that only reads, if the request is a question.
const FITS_QUESTION: f64 = 1.25;

/// Factor on the score of a toolbox's tools if the request names the toolbox, by its id or a synonym.
const IS_NAMED: f64 = 1.4;

/// Weight of the likeness to recorded requests, relative to the word score, which is scaled to 1 for the best tool.
const IS_LIKE: f64 = 4.0;

/// The longest part of a request that is read, in bytes: a request is a sentence.
const LONGEST: usize = 1024;

/// How deep argument schemas are read.
const DEPTH: usize = 6;

/// The words of all tools.
pub(super) struct Index {
    tools: Vec<Text>,
    /// How many tools have a word, by its stem.
    frequency: HashMap<String, usize>,
    mean_length: f64,
}

/// The words of a tool.
struct Text {
    tool: Arc<ListedTool>,
    weights: HashMap<String, f64>,
    length: f64,
}

impl Index {
    /// Reads the texts of these tools.
    pub(super) fn new(tools: &[Arc<ListedTool>]) -> Self {
        let tools: Vec<Text> = tools.iter().map(Text::new).collect();
        let mut frequency = HashMap::new();
        for stem in tools.iter().flat_map(|text| text.weights.keys()) {
            *frequency.entry(stem.clone()).or_default() += 1;
        }
        let total: f64 = tools.iter().map(|text| text.length).sum();
        let mean_length = total / precise(tools.len().max(1));
        Self {
            tools,
            frequency,
            mean_length: mean_length.max(1.0),
        }
    }

    /// Returns the tools that fit a request, the best first.
    pub(super) fn ranked(&self, request: &str) -> Vec<&Arc<ListedTool>> {
        let request_words = words(&request[..request.floor_char_boundary(LONGEST)]);
        let meanings = everyday::meanings(&request_words, |stem| self.frequency.contains_key(stem));
        if meanings.is_empty() {
            return Vec::new();
        }
        let asks = request_words.first().is_some_and(is_question) || request.trim_end().ends_with('?');
        let named: HashSet<&str> = meanings.iter().flat_map(Meaning::single).collect();
        let is_named = |id: &str| words(id).iter().all(|word| named.contains(word.stem.as_str()));
        let mut ranked: Vec<(f64, &Arc<ListedTool>)> = self
            .tools
            .iter()
            .map(|text| {
                let mut score: f64 = meanings.iter().map(|meaning| self.weight(text, meaning)).sum();
                if is_named(&text.tool.toolbox_id) {
                    score *= IS_NAMED;
                }
                if asks && text.tool.effect == Effect::Read {
                    score *= FITS_QUESTION;
                }
                (score, &text.tool)
            })
            .collect();
        let best = ranked.iter().map(|(score, _)| *score).fold(0.0, f64::max);
        let likeness = requests::likeness(&request_words);
        for (score, tool) in &mut ranked {
            let like = likeness.get(tool.name.as_str()).copied().unwrap_or_default();
            *score = *score / best.max(f64::MIN_POSITIVE) + IS_LIKE * like;
        }
        ranked.retain(|(score, _)| *score > 0.0);
        // Equal ones stay in the order of the list.
        ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        ranked.into_iter().map(|(_, tool)| tool).collect()
    }

    /// What one meaning adds to a tool: the best of the words for it counts.
    fn weight(&self, text: &Text, meaning: &Meaning) -> f64 {
        let words = meaning.words.iter();
        let of = |(stems, weight): &(Vec<String>, f64)| {
            let each = stems.iter().map(|stem| self.word_score(text, stem));
            weight * each.sum::<f64>() / precise(stems.len()).sqrt()
        };
        words.map(of).fold(0.0, f64::max)
    }

    fn word_score(&self, text: &Text, stem: &str) -> f64 {
        let Some(weight) = text.weights.get(stem) else {
            return 0.0;
        };
        let with = self.frequency.get(stem).copied().unwrap_or_default();
        let (all, with) = (precise(self.tools.len()), precise(with));
        let rarity = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
        let weight = weight / (1.0 - LENGTH + LENGTH * text.length / self.mean_length);
        rarity * weight / (SATURATION + weight)
    }
}

impl Text {
    fn new(tool: &Arc<ListedTool>) -> Self {
        let mut text = Self {
            tool: Arc::clone(tool),
            weights: HashMap::new(),
            length: 0.0,
        };
        let name = words(&tool.name);
        text.add_words(&name, IN_NAME);
        // People also write `takeoff` for `take_off`.
        for pair in name.windows(2) {
            let joined = format!("{}{}", pair[0].plain, pair[1].plain);
            text.add_words(&[Word::new(joined)], IN_NAME);
        }
        text.add(&tool.toolbox_id, IN_GROUP);
        text.add(tool.category.as_deref().unwrap_or_default(), IN_GROUP);
        let (first, rest) = sentences(&tool.description);
        text.add_text(first, IN_FIRST_SENTENCE);
        text.add_text(rest, IN_REST);
        text.add_schema(&Value::Object((*tool.arguments).clone()), DEPTH);
        text
    }

    fn add(&mut self, text: &str, weight: f64) {
        self.add_words(&words(text), weight);
    }

    /// Adds prose, in which what stands in back quotes is an example or a name.
    fn add_text(&mut self, text: &str, weight: f64) {
        for (number, part) in text.split('`').enumerate() {
            self.add(
                part,
                if number % 2 == 0 {
                    weight
                } else {
                    weight.min(IN_EXAMPLE)
                },
            );
        }
    }

    fn add_words(&mut self, words: &[Word], weight: f64) {
        for word in words.iter().filter(|word| !word.is_stop()) {
            *self.weights.entry(word.stem.clone()).or_default() += weight;
            self.length += weight;
        }
    }

    /// Adds the names, the texts and the choices of arguments.
    fn add_schema(&mut self, schema: &Value, depth: usize) {
        let Some(schema) = schema.as_object().filter(|_| depth > 0) else {
            return;
        };
        for (name, property) in schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            self.add(name, IN_ARGUMENT);
            if let Some(text) = property.get("description").and_then(Value::as_str) {
                self.add_text(text, IN_ARGUMENT_TEXT);
            }
            self.add_schema(property, depth - 1);
        }
        for choice in schema.get("enum").and_then(Value::as_array).into_iter().flatten() {
            self.add(choice.as_str().unwrap_or_default(), IN_ARGUMENT);
        }
        self.add(
            schema.get("const").and_then(Value::as_str).unwrap_or_default(),
            IN_ARGUMENT,
        );
        for key in ["anyOf", "oneOf", "allOf"] {
            for branch in schema.get(key).and_then(Value::as_array).into_iter().flatten() {
                self.add_schema(branch, depth - 1);
            }
        }
        if let Some(items) = schema.get("items") {
            self.add_schema(items, depth - 1);
        }
    }
}

fn is_question(word: &Word) -> bool {
    let asks = "am are can could did do does has have how is was what when where which who whom whose why will \
                was welche welcher welches wann wie wo wer wem wen ist sind hat kann kannst";
    asks.split_ascii_whitespace().any(|asks| asks == word.plain)
}

/// The first sentence of a text, which says what the tool does, and the rest.
fn sentences(text: &str) -> (&str, &str) {
    match text.find(['.', ':', '\n']) {
        Some(end) => text.split_at(end),
        None => (text, ""),
    }
}
