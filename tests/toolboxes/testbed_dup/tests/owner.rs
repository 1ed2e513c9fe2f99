//! The built library owns a tool of testbed's, and says so.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::{Harness, built};

#[test]
fn dup_has_an_owner_of_its_own() {
    let toolbox = Harness::load(&built("testbed_dup"), json!({})).unwrap();
    assert_eq!(
        toolbox.call("dup", json!({})).unwrap(),
        json!({"owner": "testbed_dup"})
    );
    assert!(toolbox.close().is_clean());
}
