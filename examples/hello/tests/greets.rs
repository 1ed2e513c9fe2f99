//! The built library, driven through its C table without a service.
use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::{Harness, built};

#[test]
fn it_greets() {
    let toolbox = Harness::load(&built("hello"), json!({})).unwrap();
    let output = toolbox.call("hello", json!({"name": "Ada"})).unwrap();
    assert_eq!(output, json!({"greeting": "Hello, Ada!"}));
    assert!(toolbox.start("hello", json!({})).is_err(), "without a name");
    assert!(toolbox.close().is_clean());
}
