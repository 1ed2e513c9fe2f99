//! Properties, from their specifications.

use std::path::PathBuf;

use gst::glib;
use gst::prelude::*;
use ovos_toolbox_sdk::prelude::*;

/// A property of an element.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Property {
    /// `int`, `uint`, `int64`, `uint64`, `float`, `double`, `bool`, `string`, `enum`, `flags`, `fraction`, `caps`,
    /// `structure`, `array`, `object`, `boxed`, `pointer` or another kind.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The name of the type in GLib.
    pub(crate) gtype: String,
    /// What it is for, in the words of its plugin.
    pub(crate) description: String,
    /// The smallest value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) min: Option<Value>,
    /// The largest value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max: Option<Value>,
    /// The value of a new element; for an enumeration its short name.
    pub(crate) default: Value,
    /// The values of an enumeration or of flags, by their short names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) values: Option<Vec<String>>,
    /// The same with numbers and explanations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) value_details: Option<Vec<EnumValue>>,
    /// The type of the elements of an array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) element_type: Option<String>,
    /// Whether it can be read.
    pub(crate) readable: bool,
    /// Whether it can be set.
    pub(crate) writable: bool,
    /// Whether it can be set only while the element is made.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) construct_only: bool,
    /// Whether it can be changed over time by a controller.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) controllable: bool,
    /// Whether it should not be used any more.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) deprecated: bool,
    /// Whether it exists only on some machines.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) conditionally_available: bool,
    /// The highest state in which it can be changed, where the plugin says so: `ready`, `paused` or `playing`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) changeable_until: Option<&'static str>,
    /// The type that has it: the element's own, or one it is derived from.
    pub(crate) declared_by: String,
}

/// One value of an enumeration or of flags.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct EnumValue {
    /// Its number.
    pub(crate) value: i64,
    /// Its short name, which is used in a pipeline.
    pub(crate) nick: String,
    /// What it means.
    pub(crate) name: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// Reads one property of a newly made element.
pub(super) fn read(element: &gst::Element, spec: &glib::ParamSpec) -> Property {
    let flags = spec.flags();
    let readable = flags.contains(glib::ParamFlags::READABLE);
    // The value of a new element counts, as in gst-inspect-1.0; it can differ from the specification's default.
    let default = if readable {
        to_json(&element.property_value(spec.name()))
    } else {
        to_json(spec.default_value())
    };
    let (min, max) = range(spec).map_or((None, None), |(min, max)| (Some(min), Some(max)));
    let details = enum_values(spec.value_type());
    let array = spec
        .downcast_ref::<gst::ParamSpecArray>()
        .and_then(|array| array.element_spec().cloned());
    let old_array = || {
        spec.downcast_ref::<glib::ParamSpecValueArray>()?
            .element_spec()
            .cloned()
    };
    let element_type = array
        .or_else(old_array)
        .map(|inner| inner.value_type().name().to_owned());
    Property {
        kind: kind(spec).to_owned(),
        gtype: spec.value_type().name().to_owned(),
        description: spec.blurb().unwrap_or_default().to_owned(),
        min,
        max,
        default,
        values: details
            .as_ref()
            .map(|details| details.iter().map(|value| value.nick.clone()).collect()),
        value_details: details,
        element_type,
        readable,
        writable: flags.contains(glib::ParamFlags::WRITABLE),
        construct_only: flags.contains(glib::ParamFlags::CONSTRUCT_ONLY),
        controllable: flags.contains(gst::PARAM_FLAG_CONTROLLABLE),
        deprecated: flags.contains(glib::ParamFlags::DEPRECATED),
        conditionally_available: flags.contains(gst::PARAM_FLAG_CONDITIONALLY_AVAILABLE),
        changeable_until: changeable_until(flags),
        declared_by: spec.owner_type().name().to_owned(),
    }
}

fn changeable_until(flags: glib::ParamFlags) -> Option<&'static str> {
    if !flags.contains(glib::ParamFlags::WRITABLE) {
        None
    } else if flags.contains(gst::PARAM_FLAG_MUTABLE_PLAYING) {
        Some("playing")
    } else if flags.contains(gst::PARAM_FLAG_MUTABLE_PAUSED) {
        Some("paused")
    } else if flags.contains(gst::PARAM_FLAG_MUTABLE_READY) {
        Some("ready")
    } else {
        None
    }
}

fn kind(spec: &glib::ParamSpec) -> &'static str {
    use glib::Type;
    let of = spec.value_type();
    for (parent, kind) in [
        (Type::I32, "int"),
        (Type::U32, "uint"),
        (Type::I64, "int64"),
        (Type::U64, "uint64"),
        (Type::I_LONG, "long"),
        (Type::U_LONG, "ulong"),
        (Type::I8, "char"),
        (Type::U8, "uchar"),
        (Type::F32, "float"),
        (Type::F64, "double"),
        (Type::BOOL, "bool"),
        (Type::STRING, "string"),
        (gst::Fraction::static_type(), "fraction"),
        (gst::Caps::static_type(), "caps"),
        (gst::Structure::static_type(), "structure"),
        (gst::Array::static_type(), "array"),
        (glib::ValueArray::static_type(), "array"),
        (gst::List::static_type(), "list"),
        (Type::ENUM, "enum"),
        (Type::FLAGS, "flags"),
        (Type::OBJECT, "object"),
        (Type::BOXED, "boxed"),
        (Type::POINTER, "pointer"),
    ] {
        if of.is_a(parent) {
            return kind;
        }
    }
    "other"
}

/// The smallest and the largest value, if the specification has them.
pub(crate) fn range(spec: &glib::ParamSpec) -> Option<(Value, Value)> {
    macro_rules! numeric {
        ($($of:ty),*) => {
            $(if let Some(spec) = spec.downcast_ref::<$of>() {
                return Some((json!(spec.minimum()), json!(spec.maximum())));
            })*
        };
    }
    numeric!(
        glib::ParamSpecInt,
        glib::ParamSpecUInt,
        glib::ParamSpecInt64,
        glib::ParamSpecUInt64,
        glib::ParamSpecLong,
        glib::ParamSpecULong,
        glib::ParamSpecChar,
        glib::ParamSpecUChar,
        glib::ParamSpecFloat,
        glib::ParamSpecDouble
    );
    let spec = spec.downcast_ref::<gst::ParamSpecFraction>()?;
    Some((json!(fraction(spec.minimum())), json!(fraction(spec.maximum()))))
}

/// The short name of these bits, or the names of their parts joined with `+`, the last first, like gst-inspect-1.0.
fn flag_names(class: &glib::FlagsClass, bits: u32) -> String {
    if let Some(whole) = class.values().iter().find(|value| value.value() == bits) {
        return whole.nick().to_owned();
    }
    let mut left = bits;
    let mut names = Vec::new();
    for value in class.values().iter().rev() {
        if value.value() != 0 && left & value.value() == value.value() {
            left &= !value.value();
            names.push(value.nick());
        }
    }
    names.join("+")
}

fn fraction(value: gst::Fraction) -> String {
    format!("{}/{}", value.numer(), value.denom())
}

fn enum_values(of: glib::Type) -> Option<Vec<EnumValue>> {
    if let Some(class) = glib::EnumClass::with_type(of) {
        let value = |value: &glib::EnumValue| EnumValue {
            value: i64::from(value.value()),
            nick: value.nick().to_owned(),
            name: value.name().to_owned(),
        };
        return Some(class.values().iter().map(value).collect());
    }
    let class = glib::FlagsClass::with_type(of)?;
    let value = |value: &glib::FlagsValue| EnumValue {
        value: i64::from(value.value()),
        nick: value.nick().to_owned(),
        name: value.name().to_owned(),
    };
    Some(class.values().iter().map(value).collect())
}

/// A value as JSON: numbers, booleans and strings as they are, an enumeration by its short name, everything else in
/// GStreamer's notation; null if that is not possible.
pub(crate) fn to_json(value: &glib::Value) -> Value {
    macro_rules! plain {
        ($($of:ty),*) => {
            $(if let Ok(value) = value.get::<$of>() {
                return json!(value);
            })*
        };
    }
    plain!(bool, i32, u32, i64, u64, i8, u8, f64);
    // Not as a string, because it may not be UTF-8.
    if let Ok(text) = value.get::<Option<PathBuf>>() {
        return json!(text.map(|text| text.to_string_lossy().into_owned()));
    }
    if let Ok(value) = value.get::<f32>() {
        // Through text, so that 1.4 does not become 1.399999976158142.
        return value
            .to_string()
            .parse::<f64>()
            .map_or(Value::Null, |value| json!(value));
    }
    if let Ok(long) = value.get::<glib::ILong>() {
        return json!(long.0);
    }
    if let Ok(long) = value.get::<glib::ULong>() {
        return json!(long.0);
    }
    if let Some((class, value)) = glib::EnumValue::from_value(value) {
        // If one number has several names, the last one, like gst-inspect-1.0.
        let last = class
            .values()
            .iter()
            .rfind(|other| other.value() == value.value());
        return json!(last.unwrap_or(value).nick());
    }
    if let Some(class) = glib::FlagsClass::with_type(value.type_()) {
        let bits = value
            .transform::<u32>()
            .ok()
            .and_then(|bits| bits.get::<u32>().ok());
        return bits.map_or(Value::Null, |bits| json!(flag_names(&class, bits)));
    }
    if let Ok(value) = value.get::<gst::Fraction>() {
        return json!(fraction(value));
    }
    // GStreamer serializes these even when there is no value.
    if matches!(value.get::<Option<gst::Structure>>(), Ok(None))
        || value.type_() == gst::Sample::static_type()
    {
        return Value::Null;
    }
    if value.type_().is_a(glib::Type::OBJECT) || value.type_().is_a(glib::Type::POINTER) {
        return Value::Null;
    }
    value.serialize().map_or(Value::Null, |text| match text.as_str() {
        "NULL" | "" => Value::Null,
        text => json!(text),
    })
}

/// Whether a text that the parser accepts is a number outside a property's range. GStreamer then keeps the old value,
/// or takes the lower bits of an integer that is too wide for the property.
pub(crate) fn is_out_of_range(spec: &glib::ParamSpec, text: &str) -> bool {
    let Some((min, max)) = range(spec) else {
        return false;
    };
    let written = text.parse::<f64>().ok();
    let set = || number(&to_json(&glib::Value::deserialize_with_pspec(text, spec).ok()?));
    match (written.or_else(set), number(&min), number(&max)) {
        (Some(value), Some(min), Some(max)) => {
            // -1 means the largest value of an unsigned type.
            let wrapped = value == -1.0 && min == 0.0 && set().is_some_and(|set| set <= max);
            !(min..=max).contains(&value) && !wrapped
        }
        _ => false,
    }
}

/// Whether a property is deprecated: some plugins say so only in the description.
pub(crate) fn is_deprecated(spec: &glib::ParamSpec) -> bool {
    let says = spec
        .blurb()
        .unwrap_or_default()
        .to_ascii_lowercase()
        .contains("deprecated");
    says || spec.flags().contains(glib::ParamFlags::DEPRECATED)
}

/// A number for comparisons; 64-bit integers beyond 2^53 are compared as their nearest doubles.
fn number(value: &Value) -> Option<f64> {
    if let Value::String(text) = value {
        let (numerator, denominator) = text.split_once('/')?;
        let denominator: f64 = denominator.parse().ok()?;
        return Some(numerator.parse::<f64>().ok()? / denominator);
    }
    value.as_f64()
}
