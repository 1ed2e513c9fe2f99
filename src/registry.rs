//! The tools that can be called now: an immutable snapshot, replaced as a whole and never changed in place.
//!
//! A request uses one snapshot throughout, so a concurrent reload cannot show it half a toolbox. The registry knows
//! neither the bus nor plugins. Read [`Snapshot`].

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use arc_swap::ArcSwap;
use ovos_toolbox_wire::{Audience, Effect, Object, ToolDefinition};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::names::{Meaning, NamedTool, Names, RenameReason, fold};
use schema::CompiledTool;

/// No copy of a toolbox has this number: they are counted from 1.
const NOT_LOADED: u64 = 0;

/// One tool that can be called.
#[derive(Debug)]
pub struct Tool {
    /// The id of the toolbox that owns it.
    pub toolbox_id: String,
    /// The generation of that toolbox.
    pub generation: u64,
    /// The machine that it runs on, where that is another one.
    pub host: Option<String>,
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
            host: None,
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

    /// The emergency stop, under this name, of a toolbox whose tools are not known.
    #[must_use]
    pub fn stop_of_unknown(toolbox_id: &str, name: &str) -> Option<Self> {
        let definition = ToolDefinition {
            name: name.to_owned(),
            description: String::new(),
            category: None,
            effect: Effect::Stop,
            audience: Audience::Model,
            for_models: Object::new(),
            timeout_ms: None,
            agent_end: Vec::new(),
            validates: false,
            foreign: false,
            argument_schema: json!({"type": "object"}),
            output_schema: json!({"type": "object"}),
        };
        let compiled = Arc::new(CompiledTool::new(definition));
        Self::new(toolbox_id, NOT_LOADED, compiled).ok()
    }

    /// Whether a toolbox has listed the tool.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.generation != NOT_LOADED
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
    /// Every tool: first those that are listed, in their order, then those that their toolboxes yield.
    all: Vec<Arc<Tool>>,
    listed: usize,
    names: Names,
    /// The texts of which every request for a stop contains one, folded.
    stop_marks: Vec<String>,
    /// Greater than that of every earlier snapshot of this service, and unlike that of another service.
    number: u64,
    /// How many bytes the entries of the listed tools have.
    bytes: usize,
}

/// The result of looking up a name in a snapshot.
#[derive(Clone, Debug)]
pub enum Lookup {
    /// One tool.
    One(Arc<Tool>),
    /// Several toolboxes own a tool of this name.
    Several(Vec<Arc<Tool>>),
    /// There is no such tool.
    None,
}

/// The emergency stops that a name may mean.
#[derive(Debug, Default)]
pub struct StopsOfName {
    /// Tools of effect `stop`.
    pub tools: Vec<Arc<Tool>>,
    /// Known toolboxes whose tools are not known.
    pub toolboxes: Vec<String>,
}

impl Snapshot {
    /// Creates a snapshot of these toolboxes.
    #[must_use]
    pub fn new(toolboxes: impl IntoIterator<Item = ToolboxEntry>) -> Self {
        Self::with_known(toolboxes, [])
    }

    /// Creates a snapshot of these toolboxes. `known` are the ids of toolboxes that offer no tools now, because they are off, have
    /// failed, or still start: their aliases belong to them.
    #[must_use]
    pub fn with_known(
        toolboxes: impl IntoIterator<Item = ToolboxEntry>,
        known: impl IntoIterator<Item = String>,
    ) -> Self {
        let toolboxes: BTreeMap<String, ToolboxEntry> = toolboxes
            .into_iter()
            .map(|entry| (entry.toolbox_id.clone(), entry))
            .collect();
        let known: Vec<String> = known.into_iter().collect();
        let tools = toolboxes.values().flat_map(|entry| &entry.tools);
        let mut all: Vec<Arc<Tool>> = tools.cloned().collect();
        let count = all.len();
        all.extend(toolboxes.values().flat_map(|entry| &entry.yielded).cloned());
        let named = all.iter().enumerate().map(|(place, tool)| NamedTool {
            toolbox_id: &tool.toolbox_id,
            name: tool.name(),
            stops: tool.effect() == Effect::Stop,
            yields: place >= count,
        });
        let named: Vec<NamedTool<'_>> = named.collect();
        let ids = known.iter().chain(toolboxes.keys()).map(String::as_str);
        let names = Names::new(&named, ids);
        let stop_marks = names.stop_marks().map(str::to_owned).collect();
        let bytes = all[..count].iter().map(|tool| tool.entry.get().len()).sum();
        Self {
            toolboxes,
            all,
            listed: count,
            names,
            stop_marks,
            number: 0,
            bytes,
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

    /// Whether this JSON text may ask for a stop by its name. `false` is certain, `true` is not.
    #[must_use]
    pub fn may_stop(&self, json: &str) -> bool {
        // A name can also be written with `\u00..` escapes.
        let marked = || {
            let json = fold(json);
            self.stop_marks.iter().any(|mark| json.contains(mark.as_str()))
        };
        !self.stop_marks.is_empty() && (json.contains("\\u00") || marked())
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
        self.all.iter().take(self.listed)
    }

    /// The tools as [`Self::tools`], each with the name that means it alone and that every vendor accepts.
    pub fn called(&self) -> impl Iterator<Item = (&Arc<Tool>, &str)> {
        self.tools()
            .zip(self.names.call_names().iter().map(String::as_str))
    }

    /// The listed tools that their own names do not mean: why, and the name that means the tool.
    pub fn renamed_tools(&self) -> impl Iterator<Item = (&Arc<Tool>, &RenameReason, &str)> {
        let why = self.called().zip(self.names.rename_reasons());
        why.filter_map(|((tool, name), why)| Some((tool, why.as_ref()?, name)))
    }

    /// Looks up a tool by its name, its alias `<toolbox_id>__<name>`, or its portable name, as [`Names::find`] does. If `toolbox_id`
    /// is given, only the tools of that toolbox count. A tool that its toolbox yields is found by its alias, or with `toolbox_id`.
    #[must_use]
    pub fn find(&self, name: &str, toolbox_id: Option<&str>) -> Lookup {
        match self.names.find(name, toolbox_id) {
            Meaning::One(place) => Lookup::One(self.all[place].clone()),
            Meaning::Several(places) => Lookup::Several(self.at(&places)),
            Meaning::None => Lookup::None,
        }
    }

    /// The emergency stops that a name may mean that means no single tool.
    #[must_use]
    pub fn stops(&self, name: &str) -> StopsOfName {
        let stops = self.names.stops(name);
        StopsOfName {
            tools: self.at(&stops.tools),
            toolboxes: stops.toolboxes,
        }
    }

    /// The known toolboxes, with and without tools.
    pub fn known_ids(&self) -> impl Iterator<Item = &str> {
        self.names.ids()
    }

    /// The known toolbox without tools to which this alias belongs.
    #[must_use]
    pub fn owner_without_tools(&self, name: &str) -> Option<&str> {
        self.names.owner_without_tools(name)
    }

    /// The name of a tool that is very much like this one.
    #[must_use]
    pub fn similar_call_name(&self, name: &str) -> Option<&str> {
        self.names.similar_call_name(name)
    }

    fn at(&self, places: &[usize]) -> Vec<Arc<Tool>> {
        places.iter().map(|place| self.all[*place].clone()).collect()
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
