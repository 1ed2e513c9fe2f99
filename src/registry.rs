//! The tools that can be called now: an immutable snapshot, replaced as a whole and never changed in place.
//!
//! A request uses one snapshot throughout, so a concurrent reload cannot show it half a toolbox. The registry knows
//! neither the bus nor plugins. Read [`Snapshot`].

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use ovos_toolbox_wire::Effect;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::export::{exported_names, portable_name};
use schema::CompiledTool;

/// The separator between the toolbox id and the tool's name in an alias.
pub const ALIAS_SEPARATOR: &str = "__";

/// One tool that can be called.
#[derive(Debug)]
pub struct Tool {
    /// The id of the toolbox that owns it.
    pub toolbox_id: String,
    /// The generation of that toolbox.
    pub generation: u64,
    /// Its definition, with compiled schemas.
    pub compiled: Arc<CompiledTool>,
    /// The five published fields, serialized once: `list` is requested far more often than toolboxes change.
    pub entry: Box<RawValue>,
}

/// The five fields of a tool in the published contract.
#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    description: &'a str,
    argument_schema: &'a serde_json::Value,
    output_schema: &'a serde_json::Value,
    toolbox_id: &'a str,
}

impl Tool {
    /// Creates a tool of one generation of a toolbox.
    ///
    /// # Errors
    /// The definition cannot be serialized; it was parsed from JSON, so this is not expected.
    pub fn new(
        toolbox_id: &str,
        generation: u64,
        compiled: Arc<CompiledTool>,
    ) -> Result<Self, serde_json::Error> {
        let definition = &compiled.definition;
        let entry = Entry {
            name: &definition.name,
            description: &definition.description,
            argument_schema: &definition.argument_schema,
            output_schema: &definition.output_schema,
            toolbox_id,
        };
        let entry = serde_json::value::to_raw_value(&entry)?;
        Ok(Self {
            toolbox_id: toolbox_id.to_owned(),
            generation,
            compiled,
            entry,
        })
    }

    /// The tool's name, which several toolboxes may share.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.compiled.definition.name
    }

    /// The tool's effect.
    #[must_use]
    pub fn effect(&self) -> Effect {
        self.compiled.definition.effect
    }

    /// Returns `<toolbox_id>__<name>`, which identifies the tool also if several toolboxes share its name.
    #[must_use]
    pub fn alias(&self) -> String {
        format!("{}{ALIAS_SEPARATOR}{}", self.toolbox_id, self.name())
    }
}

/// Whether a toolbox's tools can be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolboxState {
    /// They can be called.
    Ready,
    /// Its replacement is being loaded after the old copy had to close. Calls wait for it.
    Reloading,
    /// It could not be loaded, or is no longer restarted. The text is the reason.
    Failed(String),
}

/// A toolbox in a snapshot.
#[derive(Clone, Debug)]
pub struct ToolboxEntry {
    /// Its id.
    pub toolbox_id: String,
    /// The generation that serves calls.
    pub generation: u64,
    /// Whether its tools can be called.
    pub state: ToolboxState,
    /// Its tools, in the order in which it lists them.
    pub tools: Vec<Arc<Tool>>,
    /// The tools that it leaves to other toolboxes. No list shows them, and a lookup by their plain name does not find them.
    pub yielded: Vec<Arc<Tool>>,
}

/// All toolboxes and tools at one moment.
#[derive(Debug, Default)]
pub struct Snapshot {
    toolboxes: BTreeMap<String, ToolboxEntry>,
    by_name: HashMap<String, Vec<Arc<Tool>>>,
    /// Tools by portable name, which `export` uses if neither name nor alias is acceptable to every vendor.
    by_portable_name: HashMap<String, Arc<Tool>>,
    /// The names and portable names of all tools with effect `stop`. Aliases are left out because they contain the
    /// name.
    stops: Vec<String>,
    /// Greater than that of every earlier snapshot of this service, and unlike that of another service.
    number: u64,
    /// How many bytes the entries of all tools have.
    bytes: usize,
    /// The names under which the tools are exported, in their order; made when they are first asked for.
    exported: OnceLock<Vec<String>>,
}

/// The result of looking up a name in a snapshot.
#[derive(Clone, Debug)]
pub enum Found {
    /// One tool.
    One(Arc<Tool>),
    /// Several toolboxes own a tool of this name.
    Several(Vec<Arc<Tool>>),
    /// There is no such tool.
    None,
}

impl Snapshot {
    /// Creates a snapshot of these toolboxes.
    #[must_use]
    pub fn new(toolboxes: impl IntoIterator<Item = ToolboxEntry>) -> Self {
        let toolboxes: BTreeMap<String, ToolboxEntry> = toolboxes
            .into_iter()
            .map(|entry| (entry.toolbox_id.clone(), entry))
            .collect();
        let mut by_name: HashMap<String, Vec<Arc<Tool>>> = HashMap::new();
        let mut by_portable_name = HashMap::new();
        let mut stops = Vec::new();
        for tool in toolboxes.values().flat_map(|entry| &entry.tools) {
            by_name
                .entry(tool.name().to_owned())
                .or_default()
                .push(tool.clone());
            let portable = portable_name(&tool.toolbox_id, tool.name());
            if tool.effect() == Effect::Stop {
                stops.extend([tool.name().to_owned(), portable.clone()]);
            }
            by_portable_name.insert(portable, tool.clone());
        }
        let tools = toolboxes.values().flat_map(|entry| &entry.tools);
        let bytes = tools.map(|tool| tool.entry.get().len()).sum();
        Self {
            toolboxes,
            by_name,
            by_portable_name,
            stops,
            number: 0,
            bytes,
            exported: OnceLock::new(),
        }
    }

    /// Identifies this snapshot among those of the registry.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// How many bytes a list of all tools has, without what is around it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The names under which the tools are exported, in the order of [`Self::tools`].
    #[must_use]
    pub fn exported_names(&self) -> &[String] {
        self.exported.get_or_init(|| {
            // Of all tools, exported or not: a name that is ambiguous in a call must not look unique in an export.
            let pairs = self.tools().map(|tool| (tool.toolbox_id.as_str(), tool.name()));
            exported_names(pairs)
        })
    }

    /// Whether this JSON text may name a tool of effect `stop`. `false` is certain, `true` is not.
    #[must_use]
    pub fn may_stop(&self, json: &str) -> bool {
        // A name can also be written with `\u00..` escapes.
        !self.stops.is_empty()
            && (self.stops.iter().any(|name| json.contains(name.as_str())) || json.contains("\\u00"))
    }

    /// All toolboxes, sorted by id.
    pub fn toolboxes(&self) -> impl Iterator<Item = &ToolboxEntry> {
        self.toolboxes.values()
    }

    /// Returns the toolbox with this id.
    #[must_use]
    pub fn toolbox(&self, toolbox_id: &str) -> Option<&ToolboxEntry> {
        self.toolboxes.get(toolbox_id)
    }

    /// All tools, grouped by toolbox; a name that two toolboxes share occurs twice.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.toolboxes.values().flat_map(|entry| &entry.tools)
    }

    /// Looks up a tool by its name, its alias `<toolbox_id>__<name>`, or its portable name. If `toolbox_id` is given,
    /// only the tools of that toolbox count. A tool that its toolbox yields is found by its alias, or with `toolbox_id`.
    #[must_use]
    pub fn find(&self, name: &str, toolbox_id: Option<&str>) -> Found {
        let named = self.by_name.get(name).map(Vec::as_slice).unwrap_or_default();
        let wanted = |tool: &&Arc<Tool>| toolbox_id.is_none_or(|id| tool.toolbox_id == id);
        let tools: Vec<Arc<Tool>> = named.iter().filter(wanted).cloned().collect();
        match tools.as_slice() {
            [one] => Found::One(one.clone()),
            [] => {
                let yielded = || {
                    self.toolbox(toolbox_id?)?
                        .yielded
                        .iter()
                        .find(|tool| tool.name() == name)
                };
                let tool = yielded()
                    .cloned()
                    .or_else(|| self.find_alias(name))
                    .or_else(|| self.by_portable_name.get(name).cloned());
                tool.filter(|tool| wanted(&tool)).map_or(Found::None, Found::One)
            }
            _ => Found::Several(tools),
        }
    }

    fn find_alias(&self, alias: &str) -> Option<Arc<Tool>> {
        // Both parts may contain the separator themselves, so every occurrence is tried.
        alias.match_indices(ALIAS_SEPARATOR).find_map(|(at, separator)| {
            let (toolbox_id, name) = (&alias[..at], &alias[at + separator.len()..]);
            let toolbox = self.toolboxes.get(toolbox_id)?;
            let mut tools = toolbox.tools.iter().chain(&toolbox.yielded);
            tools.find(|tool| tool.name() == name).cloned()
        })
    }
}

/// Holds the snapshot in force.
#[derive(Debug)]
pub struct Registry {
    current: ArcSwap<Snapshot>,
    changed: watch::Sender<u64>,
}

impl Default for Registry {
    fn default() -> Self {
        // The standard library's source of keys for hash maps. A client may hold the number of a snapshot of an earlier
        // service.
        let begin = RandomState::new().build_hasher().finish() >> 16;
        Self {
            current: ArcSwap::default(),
            changed: watch::Sender::new(begin),
        }
    }
}

impl Registry {
    /// Returns the snapshot in force.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Replaces the snapshot in force and notifies watchers.
    pub fn swap(&self, snapshot: Snapshot) {
        self.changed.send_modify(|number| {
            *number += 1;
            let number = *number;
            self.current.store(Arc::new(Snapshot { number, ..snapshot }));
        });
    }

    /// Returns a counter that increases with every swap.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}
