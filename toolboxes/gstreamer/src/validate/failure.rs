//! Answers for invalid descriptions.

use gst::prelude::*;

use super::address::WrongAddress;
use super::caps::Never;
use super::graph::{Graph, factory_name};
use super::open::OpenEnd;
use super::verdict::{Kind, Position, Validation};
use crate::catalog::field_values;
use crate::description::{Description, Endpoint, PropertyText};
use crate::parse::{Advice, ParseFailure};
use crate::policy::Refusal;
use crate::suggest::{Suggestions, nearest, nearest_property};

/// The answer for a refusal by the policy.
pub(super) fn refused(
    refusal: &Refusal,
    text: &str,
    normalized: &str,
    description: &Description,
) -> Validation {
    let is = |name: &str| name == refusal.element;
    let element = description.elements.iter().enumerate().find(|(index, element)| {
        is(&element.factory)
            || description.given_name(*index).is_some_and(is)
            || is_default_name(&element.factory, &refusal.element)
    });
    let at = element.map(|(_, element)| {
        let property = element
            .properties
            .iter()
            .find(|property| Some(&property.name) == refusal.property.as_ref());
        property.map_or(element.at, |property| property.at)
    });
    Validation {
        error: Some(refusal.to_string()),
        error_kind: Some(Kind::Policy),
        position: at.and_then(|at| position(text, normalized, at)),
        suggestion: Some(match &refusal.line {
            Some(line) => {
                format!("The operator of this machine can allow it in the section gstreamer: {line}")
            }
            None => format!("The operator of this machine can allow it with `{}`", refusal.key),
        }),
        ..Validation::default()
    }
}

/// The answer for an error of the parser.
pub(super) fn parser(
    error: &ParseFailure,
    text: &str,
    normalized: &str,
    description: &Description,
    suggestions: &Suggestions,
) -> Validation {
    if let Some(Advice { at, text: advice }) = &error.advice {
        return Validation {
            error: Some(error.message.clone()),
            error_kind: Some(Kind::Syntax),
            position: position(text, normalized, *at),
            suggestion: Some(advice.clone()),
            ..Validation::default()
        };
    }
    let quoted: Vec<&str> = error.message.split('"').skip(1).step_by(2).collect();
    let kind = kind(error);
    let (at, suggestion) = match kind {
        Kind::NoElement => {
            let name = error
                .missing
                .first()
                .map(String::as_str)
                .or_else(|| quoted.first().copied())
                .unwrap_or_default();
            let at = description
                .elements
                .iter()
                .find(|element| element.factory == name)
                .map(|element| element.at);
            (at, Some(suggestions.element(name)))
        }
        Kind::NoProperty => no_property(&quoted, description),
        Kind::BadValue => bad_value(&quoted, description),
        Kind::Link => link(&error.message, &quoted, description),
        Kind::Syntax => {
            let problem = description.problem.as_ref();
            (
                problem.map(|problem| problem.at),
                problem.map(|problem| problem.what.to_owned()),
            )
        }
        Kind::Unlinked | Kind::Caps | Kind::Policy | Kind::Other => (None, None),
    };
    Validation {
        error: Some(error.message.replace('"', "'")),
        error_kind: Some(kind),
        position: at.and_then(|at| position(text, normalized, at)),
        suggestion,
        ..Validation::default()
    }
}

/// The answer for a pad that nothing is linked to.
pub(super) fn open_end(end: &OpenEnd, text: &str, normalized: &str) -> Validation {
    Validation {
        error: Some(end.error.clone()),
        error_kind: Some(Kind::Unlinked),
        position: end.at.and_then(|at| position(text, normalized, at)),
        suggestion: Some(end.suggestion.clone()),
        ..Validation::default()
    }
}

/// The answer for an element that cannot start with the address that it has.
pub(super) fn address(wrong: &WrongAddress, text: &str, normalized: &str) -> Validation {
    Validation {
        error: Some(wrong.error.clone()),
        error_kind: Some(Kind::BadValue),
        position: wrong.at.and_then(|at| position(text, normalized, at)),
        suggestion: Some(wrong.suggestion.clone()),
        ..Validation::default()
    }
}

/// The answer for incompatible caps.
pub(super) fn caps(never: &Never, text: &str, normalized: &str, graph: &Graph<'_>) -> Validation {
    let name = |element: &gst::Element| {
        graph
            .text(element)
            .map_or_else(|| element.name().to_string(), |text| text.factory.clone())
    };
    let (from, to) = (name(&never.from), name(&never.to));
    Validation {
        error: Some(format!(
            "'{from}' and '{to}' can never agree: one gives {}, the other takes {}",
            brief(&never.gives),
            brief(&never.takes)
        )),
        error_kind: Some(Kind::Caps),
        position: never.at.and_then(|at| position(text, normalized, at)),
        suggestion: filter(graph.description, &never.gives).or_else(|| between(&never.gives, &never.takes)),
        ..Validation::default()
    }
}

fn kind(error: &ParseFailure) -> Kind {
    if error.message.contains("-element named") {
        // The parser has one error code for an element that is not installed and for an unknown name.
        return Kind::Link;
    }
    match error.kind {
        Some(gst::ParseError::Syntax | gst::ParseError::Empty | gst::ParseError::EmptyBin) | None => {
            Kind::Syntax
        }
        Some(gst::ParseError::NoSuchElement) => Kind::NoElement,
        Some(gst::ParseError::NoSuchProperty) => Kind::NoProperty,
        Some(gst::ParseError::CouldNotSetProperty) => Kind::BadValue,
        Some(gst::ParseError::Link | gst::ParseError::DelayedLink) => Kind::Link,
        Some(_) => Kind::Other,
    }
}

/// For the parser's message `no property "foo" in element "videotestsrc"`.
fn no_property(quoted: &[&str], description: &Description) -> (Option<usize>, Option<String>) {
    let [property, element, ..] = quoted else {
        return (None, None);
    };
    let (set, example) = find_property(description, element, property);
    let near = example.and_then(|example| nearest_property(&example, property));
    (
        set.map(|set| set.at),
        Some(match near {
            Some(near) => format!("Did you mean '{near}'?"),
            None => format!("get_gst_element_info has the properties of '{element}'"),
        }),
    )
}

/// For the parser's message `could not set property "bitrate" in element "x264enc" to "abc"`.
fn bad_value(quoted: &[&str], description: &Description) -> (Option<usize>, Option<String>) {
    let [property, element, rest @ ..] = quoted else {
        return (None, None);
    };
    let (set, example) = find_property(description, element, property);
    let suggestion = example.and_then(|example| {
        let spec = example.find_property(property)?;
        expected(&spec, rest.first().copied().unwrap_or_default())
    });
    (set.map(|set| set.value_at), suggestion)
}

/// The property as the description sets it, and an element of that kind.
fn find_property<'d>(
    description: &'d Description,
    element: &str,
    property: &str,
) -> (Option<&'d PropertyText>, Option<gst::Element>) {
    let found = find(description, element).map(|index| &description.elements[index]);
    let set = found.and_then(|found| found.properties.iter().find(|set| set.name == property));
    let example = found
        .and_then(|found| make(&found.factory))
        .or_else(|| make(element));
    (set, example)
}

/// The values that a property accepts.
fn expected(spec: &gst::glib::ParamSpec, value: &str) -> Option<String> {
    let of = spec.value_type();
    let nicks: Option<Vec<String>> = gst::glib::EnumClass::with_type(of)
        .map(|class| {
            class
                .values()
                .iter()
                .map(|value| value.nick().to_owned())
                .collect()
        })
        .or_else(|| {
            let class = gst::glib::FlagsClass::with_type(of)?;
            Some(
                class
                    .values()
                    .iter()
                    .map(|value| value.nick().to_owned())
                    .collect(),
            )
        });
    if let Some(nicks) = nicks {
        let all = nicks.join(", ");
        return Some(match nearest(value, nicks) {
            Some(near) => format!("Did you mean '{near}'? Allowed: {all}"),
            None => format!("Allowed: {all}"),
        });
    }
    match crate::catalog::range(spec) {
        Some((min, max)) => Some(format!(
            "It takes a {} from {min} to {max}",
            of.name().trim_start_matches('g')
        )),
        None => Some(format!("It takes a {}", of.name().trim_start_matches('g'))),
    }
}

/// For the parser's messages `could not link a0 to b0`, with or without the caps, and `No src-element named "a" -
/// omitting link`.
fn link(message: &str, quoted: &[&str], description: &Description) -> (Option<usize>, Option<String>) {
    if let ([name, ..], true) = (quoted, message.contains("element named")) {
        return unknown_name(name, description);
    }
    if let ([caps, ..], true) = (quoted, message.contains("could not parse caps")) {
        let link = description
            .links
            .iter()
            .find(|link| link.caps.as_deref() == Some(caps));
        return (link.map(|link| link.at), Some(unread_caps(caps)));
    }
    let Some((from, rest)) = message
        .split_once("could not link ")
        .and_then(|(_, rest)| rest.split_once(" to "))
    else {
        return (None, None);
    };
    let to = rest.split([',', ' ']).next().unwrap_or(rest);
    let is = |endpoint: &Endpoint, name: &str| match endpoint {
        Endpoint::Element(index, _) => {
            let factory = &description.elements[*index].factory;
            match description.given_name(*index) {
                Some(actual) => actual == name,
                None => is_default_name(factory, name),
            }
        }
        Endpoint::Reference(referred, _) => referred == name,
    };
    let link = description
        .links
        .iter()
        .find(|link| is(&link.from, from) && is(&link.to, to));
    let link = link.or_else(|| description.links.iter().find(|link| is(&link.from, from)));
    let Some(link) = link else {
        return (None, None);
    };
    let factory = |endpoint: &Endpoint| match endpoint {
        Endpoint::Element(index, _) => Some(description.elements[*index].factory.clone()),
        Endpoint::Reference(name, _) => description
            .named(name)
            .map(|index| description.elements[index].factory.clone()),
    };
    let (Some(from), Some(to)) = (factory(&link.from), factory(&link.to)) else {
        return (Some(link.at), None);
    };
    let gives = template_caps(&from, gst::PadDirection::Src);
    let takes = template_caps(&to, gst::PadDirection::Sink);
    let suggestion = match (gives, takes, &link.caps) {
        (None, ..) => Some(format!("'{from}' has no output: it is a sink")),
        (_, None, _) => Some(format!("'{to}' has no input: it is a source")),
        (Some(gives), ..) if filter(description, &gives).is_some() => filter(description, &gives),
        (Some(gives), Some(takes), caps) => {
            let requested = caps.as_deref().and_then(|caps| caps.parse::<gst::Caps>().ok());
            match requested {
                Some(requested) if !requested.can_intersect(&gives) => between(&gives, &requested)
                    .or_else(|| Some(format!("'{from}' outputs {}", brief(&gives)))),
                Some(requested) if !requested.can_intersect(&takes) => {
                    between(&requested, &takes).or_else(|| Some(format!("'{to}' accepts {}", brief(&takes))))
                }
                Some(_) => Some(format!(
                    "'{from}' outputs {}; '{to}' accepts {}",
                    brief(&gives),
                    brief(&takes)
                )),
                None if gives.can_intersect(&takes) => Some(format!(
                    "no free pads of '{from}' and '{to}' fit each other, or the element before '{from}' does not fit: '{to}' \
                     accepts {}",
                    brief(&takes)
                )),
                None => between(&gives, &takes).or_else(|| {
                    Some(format!(
                        "'{from}' outputs {}; '{to}' accepts {}",
                        brief(&gives),
                        brief(&takes)
                    ))
                }),
            }
        }
    };
    (Some(link.at), suggestion)
}

/// Greatest length of a list of words in a suggestion.
const LONGEST_LIST: usize = 300;

/// A typing error in the caps between two `!`: a whole number for a fraction, or a word that no element uses there.
fn filter(description: &Description, gives: &gst::Caps) -> Option<String> {
    let filters = description
        .links
        .iter()
        .filter_map(|link| link.caps.as_deref()?.parse::<gst::Caps>().ok());
    for filter in filters {
        for structure in filter.iter() {
            for (name, value) in structure {
                if let (true, Ok(whole)) = (name.contains("framerate"), value.get::<i32>()) {
                    return Some(format!("a frame rate is a fraction: write {name}={whole}/1"));
                }
                let Ok(word) = value.get::<String>() else { continue };
                let words_given = words(gives, structure.name(), name);
                if words_given.is_empty() || words_given.contains(&word) {
                    continue;
                }
                let all = words_given.join(", ");
                match nearest(&word, words_given) {
                    Some(near) if all.len() <= LONGEST_LIST => {
                        return Some(format!("Did you mean '{name}={near}'? Allowed: {all}"));
                    }
                    Some(near) => return Some(format!("Did you mean '{name}={near}'?")),
                    None if all.len() <= LONGEST_LIST => {
                        return Some(format!("allowed for '{name}': {all}"));
                    }
                    None => {}
                }
            }
        }
        let media = |caps: &gst::Caps| caps.iter().map(|one| one.name().to_string()).collect::<Vec<_>>();
        if let Some(media_type) = media(&filter).first()
            && let known = media(gives)
            && !known.is_empty()
            && !known.contains(media_type)
            && let Some(near) = nearest(media_type, known)
            && strsim::damerau_levenshtein(media_type, &near) <= 2
        {
            return Some(format!("Did you mean '{near}'?"));
        }
    }
    None
}

/// What to do about caps that cannot be read.
fn unread_caps(caps: &str) -> String {
    let mut words = caps.split_whitespace().peekable();
    while let (Some(word), Some(next)) = (words.next(), words.peek()) {
        if next.contains('=') && !word.ends_with([',', ';', '=']) {
            return format!("put a comma between '{word}' and '{next}'");
        }
    }
    "caps are written as video/x-raw,format=I420,width=320,height=240,framerate=30/1".to_owned()
}

/// The words that caps have in a field of a media type.
fn words(caps: &gst::Caps, media_type: &str, field: &str) -> Vec<String> {
    let of_type = caps.iter().filter(|structure| structure.name() == media_type);
    field_values(
        of_type.map(|structure| gst::Caps::from(structure.to_owned())),
        field,
    )
}

/// A reference to an unknown name.
fn unknown_name(name: &str, description: &Description) -> (Option<usize>, Option<String>) {
    let refers =
        |endpoint: &Endpoint| matches!(endpoint, Endpoint::Reference(referred, _) if referred == name);
    let link = description
        .links
        .iter()
        .find(|link| refers(&link.from) || refers(&link.to));
    let names: Vec<String> = (0..description.elements.len())
        .filter_map(|index| description.given_name(index).map(str::to_owned))
        .collect();
    let suggestion = match nearest(name, names.clone()) {
        Some(near) => format!("Did you mean '{near}.'?"),
        None if names.is_empty() => format!("give an element the name with name={name}"),
        None => format!("elements with a name: {}", names.join(", ")),
    };
    (link.map(|link| link.at), Some(suggestion))
}

/// Whether it is the default name of an element, such as `x264enc0`.
fn is_default_name(factory: &str, name: &str) -> bool {
    name.strip_prefix(factory)
        .is_some_and(|number| !number.is_empty() && number.chars().all(|digit| digit.is_ascii_digit()))
}

/// The element in the text that the parser refers to by its factory, its name or a default name.
fn find(description: &Description, called: &str) -> Option<usize> {
    (0..description.elements.len()).find(|index| {
        let factory = &description.elements[*index].factory;
        factory == called
            || description.given_name(*index) == Some(called)
            || is_default_name(factory, called)
    })
}

fn make(factory: &str) -> Option<gst::Element> {
    gst::ElementFactory::make(factory).build().ok()
}

/// The caps of all pads of one direction; `None` if there are no such pads.
fn template_caps(factory: &str, direction: gst::PadDirection) -> Option<gst::Caps> {
    let factory = gst::ElementFactory::find(factory)?;
    let mut all: Option<gst::Caps> = None;
    for template in factory.static_pad_templates() {
        if template.direction() == direction {
            all.get_or_insert_with(gst::Caps::new_empty)
                .merge(template.caps());
        }
    }
    all
}

/// An element that accepts the one and outputs the other, if there is one.
fn between(gives: &gst::Caps, takes: &gst::Caps) -> Option<String> {
    let order = |class: &str| {
        [
            "Converter",
            "Parser",
            "Encoder",
            "Decoder",
            "Payloader",
            "Depayloader",
            "Muxer",
            "Demuxer",
        ]
        .iter()
        .position(|kind| class.split('/').any(|part| part == *kind))
    };
    let mut found: Vec<(usize, i32, String)> =
        gst::ElementFactory::factories_with_type(gst::ElementFactoryType::ANY, gst::Rank::NONE)
            .into_iter()
            .filter_map(|factory| Some((order(factory.klass())?, factory)))
            .filter(|(_, factory)| !crate::catalog::is_deprecated(factory))
            .filter(|(_, factory)| {
                let one_way = |direction, caps: &gst::Caps| {
                    factory.static_pad_templates().into_iter().any(|template| {
                        template.direction() == direction
                            && !template.caps().is_any()
                            && template.caps().can_intersect(caps)
                    })
                };
                !gives.is_any()
                    && !takes.is_any()
                    && one_way(gst::PadDirection::Sink, gives)
                    && one_way(gst::PadDirection::Src, takes)
            })
            .map(|(order, factory)| (order, factory.rank().into(), factory.name().to_string()))
            .collect();
    found.sort_by(|a, b| (a.0, -a.1, &a.2).cmp(&(b.0, -b.1, &b.2)));
    let names: Vec<&str> = found.iter().take(3).map(|(_, _, name)| name.as_str()).collect();
    match names.as_slice() {
        [] => None,
        [one] => Some(format!("put '{one}' between them")),
        [first, rest @ ..] => Some(format!("put '{first}' between them, or {}", rest.join(" or "))),
    }
}

/// The media types of caps, without their fields if there are many.
pub(super) fn brief(caps: &gst::Caps) -> String {
    if caps.is_any() {
        return "anything".to_owned();
    }
    if caps.size() == 1 && caps.to_string().len() <= 120 {
        return caps.to_string();
    }
    let mut names: Vec<String> = Vec::new();
    for structure in caps.iter() {
        let name = structure.name().to_string();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = names.len().saturating_sub(6);
    names.truncate(6);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    names.join(", ")
}

/// Converts a position in the normalized text to one in the caller's text.
fn position(text: &str, normalized: &str, at: usize) -> Option<Position> {
    let rest = normalized.get(at..)?;
    let near: String = rest.chars().take(24).collect();
    // Where the two differ, the position is found by its word.
    let word = rest.split_whitespace().next().unwrap_or(rest);
    let start = if text.get(at..).is_some_and(|same| same.starts_with(word)) {
        at
    } else {
        text.find(word)?
    };
    Some(Position {
        offset: text.get(..start)?.chars().count(),
        near,
    })
}

/// The name of an element in messages.
pub(super) fn called(element: &gst::Element) -> String {
    let factory = factory_name(element);
    let name = element.name();
    if is_default_name(&factory, &name) {
        factory
    } else {
        name.to_string()
    }
}
