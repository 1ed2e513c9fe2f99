use super::Library;
use crate::definition::TypeName;
use crate::shipped::Distribution;

fn name(text: &str) -> TypeName {
    text.parse().unwrap()
}

#[test]
fn every_shipped_type_is_whole() {
    // geographic_msgs is not shipped: what needs it says so.
    let outside = ["geographic_msgs"];
    for distribution in [Distribution::Humble, Distribution::Jazzy, Distribution::Kilted] {
        let library = Library::shipped(distribution).unwrap();
        let mut whole = 0;
        for name in library.names() {
            match library.shape(name) {
                Ok(_) => whole += 1,
                Err(error) => {
                    let text = error.to_string();
                    assert!(
                        outside.iter().any(|package| text.contains(package)) || text.contains("service_msgs"),
                        "{distribution:?} {name}: {text}"
                    );
                }
            }
        }
        assert!(whole > 250, "{distribution:?}: {whole}");
    }
}

#[test]
fn a_newer_distribution_has_its_own_definitions() {
    let result = name("nav2_msgs/action/NavigateToPose_Result");
    let fields = |distribution| {
        let library = Library::shipped(distribution).unwrap();
        library.shape(&result).unwrap().fields.len()
    };
    assert!(fields(Distribution::Humble) < fields(Distribution::Kilted));
}

#[test]
fn a_type_that_contains_itself_is_refused() {
    let mut library = Library::empty();
    library.add_text(&name("a_msgs/msg/A"), "B[] b").unwrap();
    library.add_text(&name("a_msgs/msg/B"), "A[] a").unwrap();
    let error = library.shape(&name("a_msgs/msg/A")).unwrap_err();
    assert!(error.to_string().contains("nested more than 32 deep"), "{error}");
}

#[test]
fn arrays_that_multiply_are_refused() {
    let mut library = Library::empty();
    library.add_text(&name("a_msgs/msg/A"), "B[4096] b").unwrap();
    library
        .add_text(&name("a_msgs/msg/B"), "float64[4096] b")
        .unwrap();
    let error = library.shape(&name("a_msgs/msg/A")).unwrap_err();
    assert!(error.to_string().contains("more than 1048576 bytes"), "{error}");
}

#[test]
fn what_is_missing_is_named_with_what_needs_it() {
    let mut library = Library::empty();
    library.add_text(&name("a_msgs/msg/A"), "b_msgs/B b").unwrap();
    let error = library.shape(&name("a_msgs/msg/A")).unwrap_err().to_string();
    assert!(
        error.contains("b_msgs/msg/B, which a_msgs/msg/A contains") && error.contains("interfaces"),
        "{error}"
    );
}

#[test]
fn a_folder_of_packages_is_read_and_replaces_what_is_shipped() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("std_msgs/msg");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("Bool.msg"), "bool data\nbool more\n").unwrap();
    let mut library = Library::shipped(Distribution::Jazzy).unwrap();
    library.shape(&name("std_msgs/msg/Bool")).unwrap();
    assert_eq!(library.add_folder(folder.path()).unwrap(), 1);
    assert_eq!(library.shape(&name("std_msgs/msg/Bool")).unwrap().fields.len(), 2);

    std::fs::write(place.join("Bool.msg"), "bool\n").unwrap();
    assert!(
        library
            .add_folder(folder.path())
            .unwrap_err()
            .to_string()
            .contains("line 1")
    );
}
