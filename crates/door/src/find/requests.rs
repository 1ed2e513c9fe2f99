//! How people ask for the tools that ship: `requests.txt`, and how much a request is like one of those. Pure.
//!
//! What one word means stands in the table of everyday words; which words people say together stands here. A group of requests
//! follows a line `# tool, tool` with the tools that serve them. A request that `find_tools` answers badly is added to its group.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::words::{Word, words};

/// What pairs of words and parts of words weigh beside whole words.
const PAIR: f64 = 0.7;
const PART: f64 = 0.4;

/// How many letters a part of a word has: it finds compounds, forms that no stem covers, and slips of the finger.
const LETTERS: usize = 4;

/// How rare a feature is that no request of the file has, beside the rarest of those that one has: it asks for something else.
const UNSEEN: f64 = 1.0;

/// How much the requests of a tool that are most like this one count, the best first.
const BEST: [f64; 3] = [0.6, 0.25, 0.15];

/// How much a request is like any other one by chance.
const CHANCE: f64 = 0.1;

static REQUESTS: LazyLock<Requests> = LazyLock::new(|| Requests::read(include_str!("requests.txt")));

/// A part of a request by which it is compared with others.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Feature {
    Word(String),
    Pair(String, String),
    Part(String),
}

/// The requests of the file, each with the tools that serve it.
struct Requests {
    tools: Vec<Vec<&'static str>>,
    features: HashMap<Feature, Occurrences>,
    /// The rarity of a feature that one request has.
    rarest: f64,
}

/// A feature that requests of the file have.
#[derive(Default)]
struct Occurrences {
    rarity: f64,
    /// The requests that have it, and what it weighs in each.
    rows: Vec<(usize, f64)>,
}

/// How much a request is like those for each tool, from 0 to 1, by the tool's name. Tools that are missing have 0.
pub(super) fn likeness(request: &[Word]) -> HashMap<&'static str, f64> {
    let mut cosines = vec![0.0; REQUESTS.tools.len()];
    for (feature, weight) in REQUESTS.vector(features(request)) {
        for (row, other) in REQUESTS
            .features
            .get(&feature)
            .iter()
            .flat_map(|known| &known.rows)
        {
            cosines[*row] += weight * other;
        }
    }
    let mut likes: HashMap<&'static str, Vec<f64>> = HashMap::new();
    for (tools, cosine) in REQUESTS.tools.iter().zip(cosines) {
        for tool in tools.iter().filter(|_| cosine > 0.0) {
            likes.entry(*tool).or_default().push(cosine);
        }
    }
    let best = |mut likes: Vec<f64>| {
        likes.sort_by(|a, b| b.total_cmp(a));
        let best: f64 = likes.iter().zip(BEST).map(|(like, share)| like * share).sum();
        (best - CHANCE).max(0.0) / (1.0 - CHANCE)
    };
    likes
        .into_iter()
        .map(|(tool, likes)| (tool, best(likes)))
        .collect()
}

/// The features of a request, each once.
fn features(request: &[Word]) -> Vec<Feature> {
    let stems = request.iter().map(|word| Feature::Word(word.stem.clone()));
    let pairs = request
        .windows(2)
        .map(|pair| Feature::Pair(pair[0].stem.clone(), pair[1].stem.clone()));
    let parts = request.iter().flat_map(|word| {
        let letters: Vec<char> = format!("_{}_", word.plain).chars().collect();
        let parts = letters
            .windows(LETTERS)
            .map(|part| Feature::Part(part.iter().collect()));
        parts.collect::<Vec<_>>()
    });
    let mut features: Vec<Feature> = stems.chain(pairs).chain(parts).collect();
    features.sort_unstable();
    features.dedup();
    features
}

impl Requests {
    fn read(text: &'static str) -> Self {
        let (mut tools, mut rows) = (Vec::new(), Vec::new());
        for line in text.lines().filter(|line| !line.is_empty()) {
            match line.strip_prefix("# ") {
                Some(group) => tools = group.split(", ").collect(),
                None => rows.push((tools.clone(), features(&words(line)))),
            }
        }
        let all = precise(rows.len());
        let mut requests = Self {
            tools: Vec::new(),
            features: HashMap::new(),
            rarest: all.ln(),
        };
        for feature in rows.iter().flat_map(|(_, features)| features) {
            requests.features.entry(feature.clone()).or_default().rarity += 1.0;
        }
        for known in requests.features.values_mut() {
            known.rarity = (all / known.rarity).ln();
        }
        for (row, (tools, features)) in rows.into_iter().enumerate() {
            for (feature, weight) in requests.vector(features) {
                requests
                    .features
                    .entry(feature)
                    .or_default()
                    .rows
                    .push((row, weight));
            }
            requests.tools.push(tools);
        }
        requests
    }

    /// The weights of features, as a vector of length one.
    fn vector(&self, features: Vec<Feature>) -> Vec<(Feature, f64)> {
        let weigh = |feature: Feature| {
            let entry = self.features.get(&feature);
            let rarity = entry.map_or(self.rarest * UNSEEN, |entry| entry.rarity);
            let weight = match feature {
                Feature::Word(_) => 1.0,
                Feature::Pair(..) => PAIR,
                Feature::Part(_) => PART,
            };
            (feature, weight * rarity)
        };
        let mut vector: Vec<(Feature, f64)> = features.into_iter().map(weigh).collect();
        let squares: f64 = vector.iter().map(|(_, weight)| weight * weight).sum();
        // A request without words has a length of zero and no features to divide.
        vector
            .iter_mut()
            .for_each(|(_, weight)| *weight /= squares.sqrt());
        vector
    }
}

/// Counts of tools and words are far below 2^52.
#[allow(clippy::cast_precision_loss, reason = "a count of tools or words")]
pub(super) fn precise(count: usize) -> f64 {
    count as f64
}
