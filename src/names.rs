//! The one rule of names: what a name of a tool means, and by which name a tool is called.
//!
//! A toolbox chooses the names of its tools, but not its id. So a name that begins with the id of a toolbox means that
//! toolbox, whatever others call their tools. In order:
//!
//! 1. The alias `<toolbox_id>__<name>` means that tool. The aliases of a known id belong to it also while it offers no
//!    tools: because it is off, has failed, or still starts.
//! 2. The [`portable_name`] means that tool.
//! 3. The own name means the tool, or all tools of that name.
//!
//! A tool loses its own name if that belongs to another toolbox by 1 or 2, or is the name of another toolbox's emergency
//! stop. Case, and `-` or `_`, make no difference there, because people and models confuse them. The tool is then called by
//! its alias, or with its toolbox_id. Other letters that look alike do not occur: names consist of `[A-Za-z0-9_-]`.
//!
//! Vendors of models accept `[a-zA-Z0-9_-]{1,64}`. The call name of a tool is the first of own name, alias and portable name
//! that they accept and that means the tool, so what is exported can be called. Pure. Read [`Names::find`].

use std::collections::{BTreeMap, HashMap};

use sha2::{Digest, Sha256};

/// The separator between the toolbox id and the tool's name in an alias.
pub const ALIAS_SEPARATOR: &str = "__";

/// Longest name that all vendors accept, in characters.
pub const MAX_NAME: usize = 64;

/// The names of an emergency stop in a toolbox whose tools are not known. A call of one of them with the alias of that toolbox
/// is a stop, because a stop is never refused.
const STOP_WORDS: [&str; 2] = ["stop", "emergency_stop"];

/// A tool, as far as the rule needs it.
#[derive(Debug, Clone, Copy)]
pub struct NamedTool<'a> {
    /// The id of its toolbox.
    pub toolbox_id: &'a str,
    /// Its own name.
    pub name: &'a str,
    /// Whether its effect is `stop`.
    pub stops: bool,
    /// Whether it leaves its own name to other toolboxes.
    pub yields: bool,
}

/// Why a tool is not called by its own name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenameReason {
    /// Other toolboxes have a tool of this name.
    #[error("{} also has a tool with this name", .0.join(" and "))]
    Shared(Vec<String>),
    /// The name is an alias of another toolbox.
    #[error("the name belongs to a tool of {0}")]
    Alias(String),
    /// The name is that of another toolbox's emergency stop.
    #[error("the name belongs to the emergency stop of {0}")]
    Stop(String),
}

/// The tools that a name means. A tool is its place in the list from which the names were made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// One tool.
    One(usize),
    /// Several tools.
    Several(Vec<usize>),
    /// None.
    None,
}

/// The emergency stops that a name may mean.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Stops {
    /// Tools of effect `stop`.
    pub tools: Vec<usize>,
    /// Known toolboxes whose tools are not known.
    pub toolboxes: Vec<String>,
}

/// The names of all tools.
#[derive(Debug, Default)]
pub struct Names {
    /// The places of the tools by toolbox and own name. A known toolbox without tools is here, too.
    own: BTreeMap<String, HashMap<String, usize>>,
    /// The tools that are called by their own names.
    plain: HashMap<String, Vec<usize>>,
    portable: HashMap<String, usize>,
    /// The tools of effect `stop` by all their names, which are folded.
    stops: HashMap<String, Vec<usize>>,
    call_names: Vec<String>,
    rename_reasons: Vec<Option<RenameReason>>,
}

impl Names {
    /// Creates the names of these tools. `ids` are the known toolboxes, with and without tools.
    #[must_use]
    pub fn new<'a>(tools: &[NamedTool<'a>], ids: impl IntoIterator<Item = &'a str>) -> Self {
        let mut names = Self::default();
        for id in ids {
            names.own.entry(id.to_owned()).or_default();
        }
        for (place, tool) in tools.iter().enumerate() {
            let (id, name) = (tool.toolbox_id, tool.name);
            names
                .own
                .entry(id.to_owned())
                .or_default()
                .insert(name.to_owned(), place);
            let portable = portable_name(id, name);
            if tool.stops {
                for name in [name, &alias(id, name), &portable] {
                    names.stops.entry(fold(name)).or_default().push(place);
                }
            }
            names.portable.insert(portable, place);
        }
        names.rename_reasons = names.find_rename_reasons(tools);
        for (place, tool) in tools.iter().enumerate() {
            if names.rename_reasons[place].is_none() && !tool.yields {
                names.plain.entry(tool.name.to_owned()).or_default().push(place);
            }
        }
        for places in names.plain.values() {
            // A call of a name that several stops share stops them all.
            if places.len() < 2 || places.iter().all(|place| tools[*place].stops) {
                continue;
            }
            for place in places {
                let others = places.iter().filter(|other| *other != place);
                let others = others.map(|other| tools[*other].toolbox_id.to_owned());
                names.rename_reasons[*place] = Some(RenameReason::Shared(others.collect()));
            }
        }
        let call_names = tools.iter().enumerate().map(|(place, tool)| {
            let alias = alias(tool.toolbox_id, tool.name);
            let mut short = [tool.name.to_owned(), alias].into_iter();
            let means_it = |name: &String| is_portable(name) && names.find(name, None) == Meaning::One(place);
            let portable = || portable_name(tool.toolbox_id, tool.name);
            short.find(means_it).unwrap_or_else(portable)
        });
        names.call_names = call_names.collect();
        names
    }

    /// Returns for each tool why its own name does not mean it. That several tools share a name is not found here, but by [`Self::new`]
    /// afterwards: a tool that has lost its name shares it with none.
    fn find_rename_reasons(&self, tools: &[NamedTool<'_>]) -> Vec<Option<RenameReason>> {
        let mut ids: HashMap<String, Vec<&str>> = HashMap::new();
        for id in self.own.keys() {
            ids.entry(fold(id)).or_default().push(id);
        }
        let portable = self.portable.iter();
        let portable: HashMap<String, &str> = portable
            .map(|(name, place)| (fold(name), tools[*place].toolbox_id))
            .collect();
        let taken = |tool: &NamedTool<'_>| {
            let name = fold(tool.name);
            let others = |id: &&&str| **id != tool.toolbox_id;
            let mut prefixed = splits(&name).filter_map(|(prefix, _)| ids.get(prefix)).flatten();
            if let Some(id) = prefixed.find(others).or(portable.get(&name).filter(others)) {
                return Some(RenameReason::Alias((*id).to_owned()));
            }
            let stops = self.stops.get(&name).filter(|_| !tool.stops);
            let mut stops = stops.into_iter().flatten().map(|place| tools[*place].toolbox_id);
            let id = stops.find(|id| *id != tool.toolbox_id)?;
            Some(RenameReason::Stop(id.to_owned()))
        };
        tools.iter().map(taken).collect()
    }

    /// Returns the tools that a name means, among those of the toolbox `toolbox_id` if it is given. A tool that yields is found by
    /// its alias, or with `toolbox_id`.
    #[must_use]
    pub fn find(&self, name: &str, toolbox_id: Option<&str>) -> Meaning {
        if let Some(id) = toolbox_id {
            let own = |name: &str| self.own.get(id)?.get(name).copied();
            let alias = || own(name.strip_prefix(id)?.strip_prefix(ALIAS_SEPARATOR)?);
            let portable = || {
                let place = *self.portable.get(name)?;
                self.own.get(id)?.values().find(|own| **own == place).copied()
            };
            let found = own(name).or_else(alias).or_else(portable);
            return found.map_or(Meaning::None, Meaning::One);
        }
        let mut found = Vec::new();
        for (id, name) in splits(name) {
            let Some(tools) = self.own.get(id) else { continue };
            match tools.get(name) {
                Some(place) => found.push(*place),
                // The alias of a tool that is not known now. A shorter id does not take it over.
                None if tools.is_empty() && found.is_empty() => return Meaning::None,
                None => {}
            }
        }
        if found.is_empty() {
            found.extend(self.portable.get(name));
        }
        if found.is_empty() {
            found.extend(self.plain.get(name).into_iter().flatten());
        }
        match *found.as_slice() {
            [] => Meaning::None,
            [one] => Meaning::One(one),
            _ => Meaning::Several(found),
        }
    }

    /// Returns the emergency stops that a name may mean, also if it is written in another case. It is asked only for a name that
    /// means no single tool: stopping too much is better than refusing a stop.
    #[must_use]
    pub fn stops(&self, name: &str) -> Stops {
        let name = fold(name);
        let stops = |name: &str| self.stops.contains_key(name) || STOP_WORDS.contains(&name);
        let named = splits(&name).filter(|(_, name)| stops(name));
        let unknown = named.flat_map(|(prefix, _)| {
            let without_tools = self.own.iter().filter(|(_, tools)| tools.is_empty());
            without_tools.filter(move |(id, _)| fold(id) == prefix)
        });
        let toolboxes = unknown.map(|(id, _)| id.clone()).collect();
        let tools = self.stops.get(&name).cloned().unwrap_or_default();
        Stops { tools, toolboxes }
    }

    /// The folded texts of which every name that may mean a stop contains one.
    pub fn stop_marks(&self) -> impl Iterator<Item = &str> {
        let words = STOP_WORDS.iter().copied();
        let are_unknown = self.own.values().any(HashMap::is_empty);
        let words = words.filter(move |_| are_unknown);
        self.stops.keys().map(String::as_str).chain(words)
    }

    /// The names by which the tools are called, in the order of the tools.
    #[must_use]
    pub fn call_names(&self) -> &[String] {
        &self.call_names
    }

    /// Why a tool is not called by its own name, in the order of the tools; `None` for one that is.
    #[must_use]
    pub fn rename_reasons(&self) -> &[Option<RenameReason>] {
        &self.rename_reasons
    }

    /// The known toolboxes, with and without tools.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.own.keys().map(String::as_str)
    }

    /// Returns the known toolbox without tools to which an alias belongs.
    #[must_use]
    pub fn owner_without_tools(&self, name: &str) -> Option<&str> {
        let owners = splits(name).filter_map(|(id, _)| self.own.get_key_value(id));
        let mut absent = owners.filter(|(_, tools)| tools.is_empty());
        absent.next().map(|(id, _)| id.as_str())
    }

    /// Returns the call name that is most like `name`, if one is very much like it.
    #[must_use]
    pub fn similar_call_name(&self, name: &str) -> Option<&str> {
        /// How much alike two names have to be; 1.0 is equal.
        const ALIKE: f64 = 0.75;
        /// No tool has a longer name; comparing takes time that grows with the length.
        const LONGEST: usize = 2 * MAX_NAME;
        if name.len() > LONGEST {
            return None;
        }
        let name = fold(name);
        let likeness = |known: &String| strsim::normalized_damerau_levenshtein(&name, &fold(known));
        let candidates = self.call_names.iter().map(|known| (likeness(known), known));
        let alike = candidates.filter(|(likeness, _)| *likeness >= ALIKE);
        let (_, name) = alike.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
        Some(name)
    }
}

/// Removes the differences between names that people and models confuse: case, and `-` instead of `_`.
pub fn fold(name: &str) -> String {
    let folded = name.chars().map(|c| match c {
        '-' => '_',
        other => other.to_ascii_lowercase(),
    });
    folded.collect()
}

/// Splits a name at each separator, the last one first, because both parts may contain the separator themselves.
fn splits(name: &str) -> impl Iterator<Item = (&str, &str)> {
    let places = (1..name.len()).rev();
    places.filter_map(|at| {
        let rest = name.get(at..)?.strip_prefix(ALIAS_SEPARATOR)?;
        (!rest.is_empty()).then(|| (&name[..at], rest))
    })
}

/// Whether every vendor accepts the name unchanged.
#[must_use]
pub fn is_portable(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_portable_byte)
}

/// Returns the fallback name, which every vendor accepts and no other tool has.
#[must_use]
pub fn portable_name(toolbox_id: &str, name: &str) -> String {
    let mut digest = Sha256::new();
    digest.update(toolbox_id.as_bytes());
    // A toolbox id has no zero byte, so (`a`, `b__c`) and (`a__b`, `c`) differ.
    digest.update([0]);
    digest.update(name.as_bytes());
    let digest = digest.finalize();
    let mut portable: String = alias(toolbox_id, name)
        .chars()
        .map(|c| {
            if u8::try_from(c).is_ok_and(is_portable_byte) {
                c
            } else {
                '_'
            }
        })
        .take(MAX_NAME - 9)
        .collect();
    portable.push('_');
    for byte in digest.iter().take(4) {
        portable.push_str(&format!("{byte:02x}"));
    }
    portable
}

/// Returns `<toolbox_id>__<name>`.
#[must_use]
pub fn alias(toolbox_id: &str, name: &str) -> String {
    format!("{toolbox_id}{ALIAS_SEPARATOR}{name}")
}

fn is_portable_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}
