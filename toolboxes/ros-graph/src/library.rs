//! The types that are known, by name: shipped, from folders, from text, and from the graph.
//!
//! Read [`Library`].

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::definition::{Base, Count, Definition, Field, FieldType, Kind, Primitive, TypeName};
use crate::error::TypeError;
use crate::shape::{Element, Shape, ShapeField};
use crate::shipped::Distribution;
use crate::text::parse;

/// So many types lie within each other at most.
const DEPTH: usize = 32;

/// A file of a definition has at most so many bytes.
const LARGEST: u64 = 1 << 20;

/// What a message takes at least, in bytes. No robot's has a hundredth of it; a description from the graph might.
const LARGEST_SHAPE: usize = 1 << 20;

/// Definitions by the name of their type. What is added later takes the place of what has the same name.
#[derive(Debug, Default)]
pub struct Library {
    definitions: HashMap<TypeName, Arc<Definition>>,
    shapes: RwLock<HashMap<TypeName, Arc<Shape>>>,
}

impl Library {
    /// No types.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// The types that are shipped for a distribution.
    ///
    /// # Errors
    /// A shipped definition cannot be read, which a test rules out.
    pub fn shipped(distribution: Distribution) -> Result<Self, TypeError> {
        let mut library = Self::empty();
        for package in distribution.packages() {
            library.add_texts(package)?;
        }
        Ok(library)
    }

    /// Adds several texts of such files, each below a line `==> package/kind/name`; what comes before the first is a comment.
    ///
    /// # Errors
    /// A name or a text is not of the language; what came before it is added.
    pub fn add_texts(&mut self, texts: &str) -> Result<(), TypeError> {
        for interface in texts.split("==> ").skip(1) {
            let (name, text) = interface.split_once('\n').unwrap_or((interface, ""));
            self.add_text(&name.parse()?, text)?;
        }
        Ok(())
    }

    /// Adds the text of a `.msg`, `.srv` or `.action` file.
    ///
    /// # Errors
    /// The text is not of the language; nothing is added.
    pub fn add_text(&mut self, name: &TypeName, text: &str) -> Result<(), TypeError> {
        for definition in parse(name, text)? {
            self.add(definition);
        }
        match name.kind {
            Kind::Message => {}
            Kind::Service => self.add_event(name),
            Kind::Action => self.add_transport(name),
        }
        Ok(())
    }

    /// Adds one message.
    pub fn add(&mut self, definition: Definition) {
        // A shape may contain the type that is replaced.
        self.shapes.get_mut().clear();
        self.definitions
            .insert(definition.name.clone(), Arc::new(definition));
    }

    /// Adds the files `<package>/{msg,srv,action}/*` of a folder: the `share` folder of an installation, a folder of
    /// sources, or a package. Returns how many there were.
    ///
    /// # Errors
    /// The folder or a file cannot be read, or a definition is not of the language.
    pub fn add_folder(&mut self, folder: &Path) -> Result<usize, TypeError> {
        let mut added = self.add_package(folder)?;
        for package in entries(folder)? {
            if package.is_dir() {
                added += self.add_package(&package)?;
            }
        }
        Ok(added)
    }

    fn add_package(&mut self, folder: &Path) -> Result<usize, TypeError> {
        let package = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let mut added = 0;
        for kind in [Kind::Message, Kind::Service, Kind::Action] {
            let place = folder.join(kind.folder());
            if !place.is_dir() {
                continue;
            }
            for file in entries(&place)? {
                if file.extension().is_none_or(|suffix| suffix != kind.folder()) {
                    continue;
                }
                let stem = file.file_stem().unwrap_or_default().to_string_lossy();
                let name = format!("{package}/{}/{stem}", kind.folder()).parse()?;
                let unreadable = |reason: String| TypeError::Read {
                    path: file.clone(),
                    reason,
                };
                let size = file
                    .metadata()
                    .map_err(|error| unreadable(error.to_string()))?
                    .len();
                if size > LARGEST {
                    return Err(unreadable(format!(
                        "a definition has at most {LARGEST} bytes, this has {size}"
                    )));
                }
                let text = std::fs::read_to_string(&file).map_err(|error| unreadable(error.to_string()))?;
                self.add_text(&name, &text)?;
                added += 1;
            }
        }
        Ok(added)
    }

    /// What a message is made of, or `None` where it is not known.
    #[must_use]
    pub fn definition(&self, name: &TypeName) -> Option<&Definition> {
        self.definitions.get(name).map(Arc::as_ref)
    }

    /// A message with all that lies in it, itself first, the others in the order in which they appear.
    ///
    /// # Errors
    /// The type, or one that it contains, is not known.
    pub fn whole(&self, name: &TypeName) -> Result<Vec<Definition>, TypeError> {
        let mut found: Vec<&Definition> = Vec::new();
        let mut wanted = vec![(name, None)];
        let mut at = 0;
        while let Some((name, by)) = wanted.get(at).cloned() {
            at += 1;
            if found.iter().any(|known| known.name == *name) {
                continue;
            }
            let definition = self.definition(name).ok_or_else(|| TypeError::Unknown {
                name: name.to_string(),
                by,
            })?;
            found.push(definition);
            wanted.extend(definition.fields.iter().filter_map(|field| match &field.of.base {
                Base::Message(inner) => Some((inner, Some(definition.name.to_string()))),
                _ => None,
            }));
        }
        Ok(found.into_iter().cloned().collect())
    }

    /// The names of all messages that are known, in order.
    #[must_use]
    pub fn names(&self) -> Vec<&TypeName> {
        let mut names: Vec<&TypeName> = self.definitions.keys().collect();
        names.sort();
        names
    }

    /// The message, resolved down to primitives.
    ///
    /// # Errors
    /// The type, or one that it contains, is not known or contains itself.
    pub fn shape(&self, name: &TypeName) -> Result<Arc<Shape>, TypeError> {
        self.resolve(name, None, 0)
    }

    fn resolve(&self, name: &TypeName, by: Option<&TypeName>, depth: usize) -> Result<Arc<Shape>, TypeError> {
        if depth > DEPTH {
            return Err(TypeError::Depth {
                name: name.to_string(),
                limit: DEPTH,
            });
        }
        let known = self.shapes.read();
        if let Some(shape) = known.get(name) {
            return Ok(Arc::clone(shape));
        }
        drop(known);
        let definition = self.definitions.get(name).ok_or_else(|| TypeError::Unknown {
            name: name.to_string(),
            by: by.map(TypeName::to_string),
        })?;
        let field = |field: &Field| {
            let of = match &field.of.base {
                Base::Primitive(primitive) => Element::Primitive(*primitive),
                Base::Text(limit) => Element::Text(*limit),
                Base::WideText(limit) => Element::WideText(*limit),
                Base::Message(inner) => Element::Message(self.resolve(inner, Some(name), depth + 1)?),
            };
            Ok(ShapeField {
                name: field.name.clone(),
                of,
                count: field.of.count,
                default: field.default.clone(),
            })
        };
        let fields = definition
            .fields
            .iter()
            .map(field)
            .collect::<Result<Vec<_>, TypeError>>()?;
        let shape = Arc::new(Shape::new(name.clone(), fields));
        if shape.least > LARGEST_SHAPE {
            return Err(TypeError::Size {
                name: name.to_string(),
                limit: LARGEST_SHAPE,
            });
        }
        let mut known = self.shapes.write();
        known.insert(name.clone(), Arc::clone(&shape));
        Ok(shape)
    }

    /// What the hash of a service is made of: its event, and the service as a whole.
    fn add_event(&mut self, service: &TypeName) {
        let inner = |suffix: &str| Base::Message(service.part(suffix));
        let info = TypeName::new("service_msgs", Kind::Message, "ServiceEventInfo");
        let event = vec![
            field("info", Base::Message(info), Count::One),
            field("request", inner("_Request"), Count::Sequence(Some(1))),
            field("response", inner("_Response"), Count::Sequence(Some(1))),
        ];
        let whole = vec![
            field("request_message", inner("_Request"), Count::One),
            field("response_message", inner("_Response"), Count::One),
            field("event_message", inner("_Event"), Count::One),
        ];
        self.add(message(service.part("_Event"), event));
        self.add(message(service.clone(), whole));
    }

    /// The services and the topic that carry an action, and the action as a whole, as its hash has it.
    fn add_transport(&mut self, action: &TypeName) {
        let id = || {
            let uuid = TypeName::new("unique_identifier_msgs", Kind::Message, "UUID");
            field("goal_id", Base::Message(uuid), Count::One)
        };
        let part = |name: &str, suffix: &str| field(name, Base::Message(action.part(suffix)), Count::One);
        let primitive = |name: &str, primitive| field(name, Base::Primitive(primitive), Count::One);
        let time = TypeName::new("builtin_interfaces", Kind::Message, "Time");
        let stamp = field("stamp", Base::Message(time), Count::One);
        let whole = vec![
            part("goal", "_Goal"),
            part("result", "_Result"),
            part("feedback", "_Feedback"),
            part("send_goal_service", "_SendGoal"),
            part("get_result_service", "_GetResult"),
            part("feedback_message", "_FeedbackMessage"),
        ];
        for (suffix, fields) in [
            ("_SendGoal_Request", vec![id(), part("goal", "_Goal")]),
            (
                "_SendGoal_Response",
                vec![primitive("accepted", Primitive::Bool), stamp],
            ),
            ("_GetResult_Request", vec![id()]),
            (
                "_GetResult_Response",
                vec![primitive("status", Primitive::Int8), part("result", "_Result")],
            ),
            ("_FeedbackMessage", vec![id(), part("feedback", "_Feedback")]),
            ("", whole),
        ] {
            self.add(message(action.part(suffix), fields));
        }
        self.add_event(&action.part("_SendGoal"));
        self.add_event(&action.part("_GetResult"));
    }
}

fn entries(folder: &Path) -> Result<Vec<std::path::PathBuf>, TypeError> {
    let unreadable = |error: std::io::Error| TypeError::Read {
        path: folder.to_owned(),
        reason: error.to_string(),
    };
    let entries = std::fs::read_dir(folder).map_err(unreadable)?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()).map_err(unreadable))
        .collect::<Result<Vec<_>, TypeError>>()?;
    paths.sort();
    Ok(paths)
}

fn message(name: TypeName, fields: Vec<Field>) -> Definition {
    Definition {
        name,
        fields,
        constants: Vec::new(),
    }
}

fn field(name: &str, base: Base, count: Count) -> Field {
    Field {
        name: name.to_owned(),
        of: FieldType { base, count },
        default: None,
        comment: String::new(),
    }
}

#[cfg(test)]
#[path = "library_tests.rs"]
mod tests;
