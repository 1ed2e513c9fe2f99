//! Changes of properties while a pipeline runs.
//!
//! Converts JSON to a property's type and back, and checks range and policy: a value that does not fit is an error here
//! and would be a panic in the bindings. Read [`set`].

use std::panic::{AssertUnwindSafe, catch_unwind};

use gst::glib;
use gst::prelude::*;
use ovos_toolbox_sdk::prelude::*;

use crate::catalog::{range, to_json};
use crate::order::Changed;
use crate::policy::Policy;
use crate::suggest::nearest_property;

/// Sets a property of a running pipeline, if the policy allows it. Blocks as long as the element does.
///
/// # Errors
/// The element or property does not exist, the value does not fit, or it is not allowed.
pub(super) fn set(
    policy: &Policy,
    pipeline: &gst::Pipeline,
    element: &str,
    property: &str,
    value: &Value,
) -> Result<Changed, ToolError> {
    let found = pipeline
        .by_name(element)
        .or_else(|| only(pipeline, element))
        .ok_or_else(|| {
            ToolError::bad_args(format!(
                "no element {element}; this pipeline has {}",
                names(pipeline).join(", ")
            ))
        })?;
    let spec = found.find_property(property).ok_or_else(|| {
        let near = nearest_property(&found, property);
        let hint = near.map_or_else(String::new, |near| format!(": did you mean {near}?"));
        ToolError::bad_args(format!("{element} has no property {property}{hint}"))
    })?;
    let flags = spec.flags();
    if !flags.contains(glib::ParamFlags::WRITABLE) || flags.contains(glib::ParamFlags::CONSTRUCT_ONLY) {
        return Err(ToolError::bad_args(format!(
            "{property} of {element} cannot be written"
        )));
    }
    let unfit = || {
        ToolError::bad_args(format!(
            "{property} of {element} is {value}: expected {}",
            expected(&spec)
        ))
    };
    let new = to_value(&spec, value).ok_or_else(unfit)?;
    if is_outside(&spec, &new) {
        return Err(unfit());
    }
    policy
        .check_property(&found, property, &new)
        .map_err(|refusal| refusal.denial())?;
    let readable = flags.contains(glib::ParamFlags::READABLE);
    let read = || {
        if readable {
            to_json(&found.property_value(property))
        } else {
            Value::Null
        }
    };
    let before = read();
    // A value that GLib itself would adjust (a fraction, flags, a character out of range) panics before anything is
    // set.
    let set = catch_unwind(AssertUnwindSafe(|| found.set_property_from_value(property, &new)));
    set.map_err(|_| ToolError::bad_args(format!("{property} of {element}: {value} is out of range")))?;
    Ok(Changed { before, now: read() })
}

/// The element of a kind, such as `x264enc`, if the pipeline has one of it.
fn only(pipeline: &gst::Pipeline, kind: &str) -> Option<gst::Element> {
    let mut found = pipeline.iterate_recurse().into_iter().flatten();
    let mut found = found
        .by_ref()
        .filter(|element| element.factory().is_some_and(|factory| factory.name() == kind));
    let first = found.next();
    if found.next().is_some() { None } else { first }
}

/// The names of a pipeline's elements, sorted.
pub(super) fn names(pipeline: &gst::Pipeline) -> Vec<String> {
    let mut found = Vec::new();
    let mut elements = pipeline.iterate_recurse();
    while let Ok(Some(element)) = elements.next() {
        found.push(element.name().to_string());
    }
    found.sort_unstable();
    found
}

/// Converts JSON to a property's type; strings use the syntax of gst-launch-1.0.
fn to_value(spec: &glib::ParamSpec, value: &Value) -> Option<glib::Value> {
    let kind = spec.value_type();
    let is_whole = |number: &f64| number.fract() == 0.0 && number.abs() < 2.0_f64.powi(53);
    let text = match value {
        Value::String(text) => text.clone(),
        // A client may know only one kind of number.
        Value::Number(number)
            if number.is_f64() && number.as_f64().is_some_and(|number| is_whole(&number)) =>
        {
            format!("{:.0}", number.as_f64().unwrap_or_default())
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Null if kind == glib::Type::STRING => return Some(None::<&str>.to_value()),
        _ => return None,
    };
    if kind == glib::Type::STRING {
        return Some(text.to_value());
    }
    // Elements cannot be replaced while a pipeline runs.
    if kind.is_a(glib::Type::OBJECT) || kind.is_a(glib::Type::POINTER) {
        return None;
    }
    glib::Value::deserialize(&text, kind).ok()
}

/// What a property takes, in words.
fn expected(spec: &glib::ParamSpec) -> String {
    let of = spec.value_type();
    if let Some(class) = glib::EnumClass::with_type(of) {
        let words: Vec<&str> = class.values().iter().map(glib::EnumValue::nick).collect();
        return format!("one of {}", words.join(", "));
    }
    let kind = match of {
        glib::Type::BOOL => "true or false".to_owned(),
        glib::Type::I32 | glib::Type::U32 | glib::Type::I64 | glib::Type::U64 => "a whole number".to_owned(),
        glib::Type::F32 | glib::Type::F64 => "a number".to_owned(),
        other => format!("a {}, as gst-launch-1.0 writes it", other.name()),
    };
    match range(spec) {
        Some((least, most)) => format!("{kind} from {least} to {most}"),
        None => kind,
    }
}

/// Whether a number is outside of a property's range.
fn is_outside(spec: &glib::ParamSpec, value: &glib::Value) -> bool {
    // NaN is in no range.
    fn check<T: PartialOrd>(value: T, least: T, most: T) -> bool {
        !(least..=most).contains(&value)
    }
    macro_rules! range {
        ($spec:ty) => {
            if let Some(spec) = spec.downcast_ref::<$spec>() {
                return value
                    .get()
                    .is_ok_and(|value| check(value, spec.minimum(), spec.maximum()));
            }
        };
    }
    range!(glib::ParamSpecInt);
    range!(glib::ParamSpecUInt);
    range!(glib::ParamSpecInt64);
    range!(glib::ParamSpecUInt64);
    range!(glib::ParamSpecLong);
    range!(glib::ParamSpecULong);
    range!(glib::ParamSpecFloat);
    range!(glib::ParamSpecDouble);
    false
}
