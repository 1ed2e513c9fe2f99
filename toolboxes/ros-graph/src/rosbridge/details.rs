//! Types as rosapi describes them, for ROS 1 and 2. It is pure.

use serde_json::Value;

use crate::definition::{Base, Count, Definition, Field, FieldType, Kind, TypeName};
use crate::error::TypeError;
use crate::text::parse;

/// A description has at most so many types.
const TYPES: usize = 512;

/// The times of ROS 1, whose fields have other names than those of ROS 2.
const TIMES: [(&str, &str); 2] = [
    ("time", "uint32 secs\nuint32 nsecs"),
    ("duration", "int32 secs\nint32 nsecs"),
];

/// The messages of the `typedefs` that rosapi answers with. The first is the one that was asked for, and gets its name:
/// rosapi calls the parts of services otherwise.
///
/// # Errors
/// The description makes no sense.
pub(super) fn definitions(name: &TypeName, typedefs: &Value) -> Result<Vec<Definition>, TypeError> {
    let wrong = |reason: String| TypeError::Description {
        name: name.to_string(),
        reason,
    };
    let typedefs = typedefs
        .as_array()
        .ok_or_else(|| wrong("`typedefs` is not a list".to_owned()))?;
    if typedefs.is_empty() || typedefs.len() > TYPES {
        return Err(wrong(format!("{} types, expected 1 to {TYPES}", typedefs.len())));
    }
    let mut read = Vec::new();
    for (word, text) in TIMES {
        read.extend(parse(&time(word), text)?);
    }
    for (index, described) in typedefs.iter().enumerate() {
        let own = match index {
            0 => name.clone(),
            _ => described["type"].as_str().unwrap_or_default().parse()?,
        };
        let names = described["fieldnames"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let mut fields = Vec::new();
        for (at, field) in names.iter().enumerate() {
            let of = described["fieldtypes"][at].as_str().unwrap_or_default();
            let length = described["fieldarraylen"][at].as_i64().unwrap_or(-1);
            fields.extend(field_of(&own, field.as_str().unwrap_or_default(), of, length)?);
        }
        read.push(Definition {
            name: own,
            fields,
            constants: Vec::new(),
        });
    }
    Ok(read)
}

fn time(word: &str) -> TypeName {
    TypeName::new("ros", Kind::Message, word)
}

/// A field, read as a line of a definition would be.
fn field_of(owner: &TypeName, name: &str, of: &str, length: i64) -> Result<Option<Field>, TypeError> {
    if name == "structure_needs_at_least_one_member" {
        return Ok(None);
    }
    // The length stands beside the type, and in some versions also in it; bounds are not told.
    let base = of.split(['[', '<']).next().unwrap_or_default();
    let count = match usize::try_from(length) {
        Err(_) => Count::One,
        Ok(0) => Count::Sequence(None),
        Ok(length) => Count::Array(length),
    };
    if TIMES.iter().any(|(word, _)| *word == base) {
        return Ok(Some(Field {
            name: name.to_owned(),
            of: FieldType {
                base: Base::Message(time(base)),
                count,
            },
            default: None,
            comment: String::new(),
        }));
    }
    let brackets = match count {
        Count::One => String::new(),
        Count::Array(length) => format!("[{length}]"),
        Count::Sequence(_) => "[]".to_owned(),
    };
    let line = TypeName::new(&owner.package, Kind::Message, &owner.name);
    let parts = parse(&line, &format!("{base}{brackets} {name}"))?;
    Ok(parts
        .into_iter()
        .next()
        .and_then(|part| part.fields.into_iter().next()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::definitions;
    use crate::definition::TypeName;
    use crate::library::Library;

    #[test]
    fn what_rosapi_describes_is_a_type() {
        let name: TypeName = "std_msgs/msg/Header".parse().unwrap();
        let typedefs = json!([
            {"type": "std_msgs/Header", "fieldnames": ["seq", "stamp", "frame_id", "raw", "poses"],
             "fieldtypes": ["uint32", "time", "string", "uint8", "geometry_msgs/Point"], "fieldarraylen": [-1, -1, -1, 4, 0]},
            {"type": "geometry_msgs/Point", "fieldnames": ["x"], "fieldtypes": ["float64"], "fieldarraylen": [-1]},
        ]);
        let mut library = Library::empty();
        for definition in definitions(&name, &typedefs).unwrap() {
            library.add(definition);
        }
        let zero = library.shape(&name).unwrap().zero();
        let expected = json!({"seq": 0, "stamp": {"secs": 0, "nsecs": 0}, "frame_id": "", "raw": "AAAAAA==", "poses": []});
        assert_eq!(zero, expected);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let name: TypeName = "a_msgs/msg/A".parse().unwrap();
        for typedefs in [
            json!(null),
            json!([]),
            json!([{"fieldnames": ["x"], "fieldtypes": [""], "fieldarraylen": [-1]}]),
            json!([{"fieldnames": ["x y"], "fieldtypes": ["int8"], "fieldarraylen": [-1]}]),
            json!([{}, {"type": "no name/at/all"}]),
        ] {
            assert!(definitions(&name, &typedefs).is_err(), "{typedefs}");
        }
    }
}
