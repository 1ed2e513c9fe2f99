use serde_json::{Value, json};

use super::{definitions, describe, hash};
use crate::definition::TypeName;
use crate::library::Library;
use crate::shipped::Distribution;

/// As `std_msgs/String` of every distribution since Iron, and the others of Kilted, have them in their `share` folders.
#[test]
fn a_hash_is_that_of_the_distribution() {
    let library = Library::shipped(Distribution::Kilted).unwrap();
    for (name, expected) in [
        (
            "std_msgs/msg/String",
            "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18",
        ),
        (
            "std_srvs/srv/SetBool",
            "RIHS01_abe9e4bb6b41b40e6789712c00ec8871923e089af3f667a79992a428cff2da0a",
        ),
        (
            "unique_identifier_msgs/msg/UUID",
            "RIHS01_1b8e8aca958cbea28fe6ef60bf6c19b683c97a9ef60bb34752067d0f2f7ab437",
        ),
    ] {
        assert_eq!(
            hash(&library, &name.parse().unwrap()).unwrap(),
            expected,
            "{name}"
        );
    }
}

#[test]
fn a_description_gives_the_definitions_back() {
    let library = Library::shipped(Distribution::Kilted).unwrap();
    let name: TypeName = "nav_msgs/msg/Odometry".parse().unwrap();
    let all: Vec<Value> = library
        .names()
        .into_iter()
        .map(|name| describe(library.definition(name).unwrap()))
        .collect();
    let described = describe(library.definition(&name).unwrap());
    let mut read = Library::empty();
    for chunk in all.chunks(100) {
        let description = json!({"type_description": described, "referenced_type_descriptions": chunk});
        for definition in definitions(&description).unwrap() {
            read.add(definition);
        }
    }
    for name in library.names() {
        if let Ok(expected) = hash(&library, name) {
            assert_eq!(hash(&read, name).unwrap(), expected, "{name}");
        }
    }
}

#[test]
fn a_description_that_makes_no_sense_is_refused() {
    let field = |of: Value| json!({"type_name": "a/msg/A", "fields": [{"name": "x", "type": of}]});
    for (described, said) in [
        (json!({}), "no type_name"),
        (
            json!({"type_name": "../A", "fields": []}),
            "is not the name of an interface",
        ),
        (json!({"type_name": "a/msg/A"}), "no fields"),
        (
            json!({"type_name": "a/msg/A", "fields": [{"name": "x y"}]}),
            "without a name",
        ),
        (field(json!({})), "without a type_id"),
        (field(json!({"type_id": 12})), "number 12"),
        (field(json!({"type_id": 4000})), "number 3856"),
        (
            field(json!({"type_id": 1, "nested_type_name": "x"})),
            "is not the name of an interface",
        ),
    ] {
        let description = json!({"type_description": described, "referenced_type_descriptions": []});
        let error = definitions(&description).unwrap_err().to_string();
        assert!(error.contains(said), "{described}: {error}");
    }
    let many = json!({"type_description": {}, "referenced_type_descriptions": vec![0; 513]});
    assert!(
        definitions(&many)
            .unwrap_err()
            .to_string()
            .contains("at most 512")
    );
}
