//! Feeds a parser its stored corpus (`fuzz/corpus`) and mutations of it: the same inputs in every run and on every machine.
//!
//! The libFuzzer targets in `fuzz/` call functions of the crates; each crate's unit tests pass these functions to
//! [`check`], on a stable toolchain. `FUZZ_INPUTS=10000000 cargo test --release --lib fuzz` is the long version: that
//! many mutations of each corpus and of the fuzzer's inputs on this machine (`fuzz/found`), from the seed
//! `FUZZ_SEED`. A finding is printed with its seed and kept in `fuzz/artifacts`, as the fuzzer's own are.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a finding panics, and a test prints what it did"
)]

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The seed of the short version.
const SEED: u64 = 0x000b_0550_0106;

/// How many mutations the short version tries of each corpus.
const INPUTS: u64 = 1000;

/// Longer inputs find little and take long.
const LONGEST: usize = 4096;

/// Texts that parsers treat specially.
const WORDS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\"",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"null",
    b"true",
    b"false",
    b"0",
    b"-1",
    b"1e400",
    b"123456789012345678901234567890",
    b"\"type\"",
    b"\"data\"",
    b"\"context\"",
    b"\"session\"",
    b"\"$ref\"",
    b"\"#\"",
    b"\"properties\"",
    b"\"anyOf\"",
    b"\"allOf\"",
    b"\"pattern\"",
    b"\"(a+)+$\"",
    b"\"default\"",
    b"\"dependencies\"",
    b"\"$serde_json::private::RawValue\":",
    b"\"$serde_json::private::Number\":",
    b"\xff",
    b"\xed\xa0\x80",
    b"\x00\x00\x00\x00",
    b"\xff\xff\xff\xff",
    b"\x7f",
    b"\x81\x7e",
    b"\x88\x00",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|number| number.parse().unwrap())
}

fn inputs_in(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).unwrap();
        (path, bytes)
    };
    files.into_iter().map(read).collect()
}

/// A new input, made from one or two others.
fn mutated(random: &mut fastrand::Rng, corpus: &[(PathBuf, Vec<u8>)]) -> Vec<u8> {
    let mut input = random.choice(corpus).unwrap().1.clone();
    for _ in 0..random.u8(1..6) {
        let at = random.usize(..=input.len());
        let to = (at + random.usize(..16)).min(input.len());
        match random.u8(..7) {
            0 if at < input.len() => input[at] ^= 1 << random.u8(..8),
            1 if at < input.len() => input[at] = random.u8(..),
            2 => drop(input.drain(at..to)),
            3 => {
                let again = input[at..to].to_vec();
                input.splice(at..at, again.repeat(random.usize(1..5)));
            }
            4 => {
                let other = &random.choice(corpus).unwrap().1;
                let from = random.usize(..=other.len());
                input.splice(to.., other[from..].iter().copied());
            }
            _ => {
                let word = *random.choice(WORDS).unwrap();
                input.splice(at..to, word.iter().copied());
            }
        }
    }
    input.truncate(LONGEST);
    input
}

/// Feeds `body` the corpus of `target` and mutations of it. The body panics when something does not hold.
///
/// # Panics
/// At the first finding, which is kept in `fuzz/artifacts`, or if the corpus has fewer than 5 inputs.
pub fn check(target: &str, body: fn(&[u8])) {
    let mut corpus = inputs_in(&root().join("corpus").join(target));
    assert!(corpus.len() >= 5, "the corpus of {target} is all but empty");
    let (more, seed) = (number("FUZZ_INPUTS"), number("FUZZ_SEED").unwrap_or(SEED));
    let found = root().join("found").join(target);
    if more.is_some() && found.exists() {
        corpus.extend(inputs_in(&found));
    }
    for (path, bytes) in &corpus {
        catch_unwind(|| body(bytes)).unwrap_or_else(|_| panic!("{target}: {}", path.display()));
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let inputs = more.unwrap_or(INPUTS);
    for number in 0..inputs {
        let input = mutated(&mut random, &corpus);
        let start = Instant::now();
        let found = catch_unwind(|| body(&input)).is_err();
        // A loaded machine may pause for a while, but not for this long.
        if found || start.elapsed() > Duration::from_secs(20) {
            let kept = root().join("artifacts").join(target);
            fs::create_dir_all(&kept).unwrap();
            let kept = kept.join(format!("replay-{number}"));
            fs::write(&kept, &input).unwrap();
            panic!(
                "{target}: input {number} of seed {seed:#x} is a finding, kept as {}",
                kept.display()
            );
        }
    }
    println!("{target}: {} stored inputs and {inputs} mutations", corpus.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fuzz_target_is_replayed() {
        let crates = root().join("../crates");
        let bodies: String = fs::read_dir(crates)
            .unwrap()
            .filter_map(|entry| fs::read_to_string(entry.unwrap().path().join("src/fuzz.rs")).ok())
            .collect();
        let programs = fs::read_dir(root().join("fuzz_targets")).unwrap();
        let mut targets: Vec<_> = programs.map(|entry| entry.unwrap().path()).collect();
        targets.sort();
        assert!(!targets.is_empty());
        for target in targets {
            let name = target.file_stem().unwrap().to_str().unwrap();
            assert!(
                bodies.contains(&format!("replay::check(\"{name}\"")),
                "no crate replays the corpus of {name}"
            );
        }
    }
}
