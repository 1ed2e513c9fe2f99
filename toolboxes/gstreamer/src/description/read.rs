//! The reader: one pass over the text.

use super::text::{Description, ElementText, Endpoint, LinkText, Problem, PropertyText};

impl Description {
    /// Reads a text. Always terminates; an error is in `problem`.
    pub(crate) fn read(text: &str) -> Self {
        let mut reader = Reader {
            text,
            at: 0,
            found: Self::default(),
            chains: vec![Chain::default()],
        };
        reader.run();
        reader.found
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    found: Description,
    /// The innermost bin last; never empty.
    chains: Vec<Chain>,
}

/// The state of a chain of elements.
#[derive(Default)]
struct Chain {
    last: Option<Endpoint>,
    link: Option<Link>,
    /// Position of the bin's opening.
    opened: usize,
}

struct Link {
    at: usize,
    caps: Option<String>,
}

impl<'a> Reader<'a> {
    fn run(&mut self) {
        loop {
            self.skip_space();
            let Some(next) = self.rest().chars().next() else {
                break;
            };
            match next {
                '!' => self.link(),
                '(' | '{' => self.open(),
                ')' | '}' => self.close(next.len_utf8()),
                '.' => self.pad(),
                _ => self.word(),
            }
        }
        self.end();
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn chain(&mut self) -> &mut Chain {
        if self.chains.is_empty() {
            self.chains.push(Chain::default());
        }
        let last = self.chains.len() - 1;
        &mut self.chains[last]
    }

    fn problem(&mut self, at: usize, what: &'static str) {
        self.found.problem.get_or_insert(Problem { at, what });
    }

    fn skip_space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// `!`, or `! caps !`.
    fn link(&mut self) {
        let at = self.at;
        if self.chain().last.is_none() || self.chain().link.is_some() {
            self.problem(at, "expected an element before this `!`");
        }
        self.at += 1;
        let mut caps = None;
        let after = self.rest().trim_start();
        if is_mime(after)
            && let Some(length) = unescaped(after, '!')
        {
            caps = Some(after[..length].trim_end().to_owned());
            self.at += (self.rest().len() - after.len()) + length + 1;
        }
        self.chain().link = Some(Link { at, caps });
    }

    fn open(&mut self) {
        let at = self.at;
        self.found.elements.push(ElementText {
            factory: "bin".to_owned(),
            is_address: false,
            at,
            properties: Vec::new(),
        });
        self.at += 1;
        self.chains.push(Chain {
            opened: at,
            ..Chain::default()
        });
    }

    fn close(&mut self, length: usize) {
        let at = self.at;
        self.at += length;
        if self.chains.len() < 2 {
            self.problem(at, "this `)` was not opened");
            return;
        }
        if let Some(link) = self.chains.pop().and_then(|chain| chain.link) {
            self.problem(link.at, "nothing follows this `!`");
        }
    }

    /// `.pad` after an element.
    fn pad(&mut self) {
        let at = self.at;
        self.at += 1;
        let name = self.identifier().to_owned();
        match &mut self.chain().last {
            Some(Endpoint::Element(_, pad) | Endpoint::Reference(_, pad)) if !name.is_empty() => {
                *pad = Some(name);
            }
            _ => self.problem(at, "a `.` stands between an element's name and a pad's"),
        }
    }

    fn identifier(&mut self) -> &'a str {
        let rest = self.rest();
        let legal = |letter: char| letter.is_alphanumeric() || "-_%:".contains(letter);
        let mut length = rest.find(|letter| !legal(letter)).unwrap_or(rest.len());
        // The colon of an address belongs to the address, the one of `child::property` to the name.
        if rest[length..].starts_with("//") && rest[..length].ends_with(':') {
            length -= 1;
        }
        self.at += length;
        &rest[..length]
    }

    /// An element, a property, a reference or an address.
    fn word(&mut self) {
        let at = self.at;
        let name = self.identifier();
        let rest = self.rest();
        let assigned = rest.trim_start().strip_prefix('=');
        if name.is_empty() || rest.starts_with(['/', ':']) {
            self.at = at;
            self.odd();
        } else if let Some(value) = assigned {
            self.at = self.text.len() - value.trim_start().len();
            self.property(at, name);
        } else if rest.starts_with('.') {
            self.at += 1;
            let pad = self.identifier();
            let pad = (!pad.is_empty()).then(|| pad.to_owned());
            self.place(Endpoint::Reference(name.to_owned(), pad));
        } else {
            self.element(at, name.to_owned(), false);
        }
    }

    /// A word that is no identifier: an address, misplaced caps, or unknown.
    fn odd(&mut self) {
        let at = self.at;
        let word = self.value();
        if word.contains("://") || word.starts_with('/') {
            self.element(at, word, true);
            return;
        }
        if is_mime(&self.text[at..]) {
            self.problem(at, "caps must be between two `!`");
        } else {
            self.problem(at, "this is neither an element nor a property");
        }
        self.element(at, word, false);
    }

    fn element(&mut self, at: usize, factory: String, is_address: bool) {
        self.found.elements.push(ElementText {
            factory,
            is_address,
            at,
            properties: Vec::new(),
        });
        let index = self.found.elements.len() - 1;
        self.place(Endpoint::Element(index, None));
    }

    fn place(&mut self, endpoint: Endpoint) {
        let chain = self.chain();
        let from = chain.last.replace(endpoint.clone());
        let link = chain.link.take();
        if let (Some(from), Some(link)) = (from, link) {
            self.found.links.push(LinkText {
                from,
                to: endpoint,
                caps: link.caps,
                at: link.at,
            });
        }
    }

    fn property(&mut self, at: usize, name: &str) {
        let value_at = self.at;
        let value = self.value();
        // A property after `(` belongs to the bin, which is the preceding element.
        let index = match self.chain().last {
            Some(Endpoint::Element(index, _)) => Some(index),
            Some(Endpoint::Reference(..)) => None,
            None => (self.chains.len() > 1).then(|| self.found.elements.len().saturating_sub(1)),
        };
        match index.and_then(|index| self.found.elements.get_mut(index)) {
            Some(element) => element.properties.push(PropertyText {
                name: name.to_owned(),
                value,
                at,
                value_at,
            }),
            None => self.problem(at, "no element stands before this property"),
        }
    }

    /// A string, quoted or up to the next space; returned without quotes and escapes.
    fn value(&mut self) -> String {
        let start = self.at;
        let mut letters = self.rest().char_indices();
        let quote = self
            .rest()
            .chars()
            .next()
            .filter(|letter| "\"'".contains(*letter));
        if quote.is_some() {
            letters.next();
        }
        let mut value = String::new();
        while let Some((index, letter)) = letters.next() {
            if letter == '\\' {
                value.extend(letters.next().map(|(_, escaped)| escaped));
            } else if Some(letter) == quote {
                self.at += index + 1;
                return value;
            } else if quote.is_none() && letter.is_whitespace() {
                self.at += index;
                return value;
            } else {
                value.push(letter);
            }
        }
        self.at = self.text.len();
        if quote.is_some() {
            self.problem(start, "this quote is not closed");
        }
        value
    }

    fn end(&mut self) {
        let open: Vec<usize> = self.chains.iter().skip(1).map(|chain| chain.opened).collect();
        let dangling: Vec<usize> = self
            .chains
            .iter()
            .filter_map(|chain| chain.link.as_ref())
            .map(|link| link.at)
            .collect();
        for at in dangling {
            self.problem(at, "nothing follows this `!`");
        }
        for at in open {
            self.problem(at, "this `(` is not closed");
        }
        if self.found.elements.is_empty() {
            self.problem(0, "the pipeline is empty");
        }
    }
}

/// Whether the text starts with a media type, such as `video/x-raw`.
fn is_mime(text: &str) -> bool {
    let legal = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let Some((kind, rest)) = text.split_once('/') else {
        return false;
    };
    !kind.is_empty() && kind.chars().all(legal) && rest.starts_with(legal)
}

/// Position of the first `wanted` that is not escaped with a backslash.
fn unescaped(text: &str, wanted: char) -> Option<usize> {
    let mut letters = text.char_indices();
    while let Some((index, letter)) = letters.next() {
        if letter == '\\' {
            letters.next();
        } else if letter == wanted {
            return Some(index);
        }
    }
    None
}
