//! Generates the client of mavsdk_server, and the server traits that the tests' fake implements. Needs no protoc.

use std::error::Error;
use std::path::Path;

const SERVICES: &[&str] = &[
    "core",
    "info",
    "action",
    "offboard",
    "mission",
    "geofence",
    "camera",
    "events",
    "mavlink_direct",
    "param",
    "telemetry",
];

fn main() -> Result<(), Box<dyn Error>> {
    let files: Vec<String> = SERVICES
        .iter()
        .map(|name| format!("proto/{name}.proto"))
        .collect();
    for file in &files {
        println!("cargo::rerun-if-changed={file}");
    }
    println!("cargo::rerun-if-changed=build.rs");
    let descriptors = protox::compile(&files, ["proto"])?;
    // tests/protos.rs compares these descriptors with MAVSDK's own field numbers.
    let encoded = prost::Message::encode_to_vec(&descriptors);
    let out = std::env::var("OUT_DIR")?;
    std::fs::write(Path::new(&out).join("descriptors.bin"), encoded)?;
    tonic_prost_build::configure()
        .build_client(true)
        .build_server(true)
        .emit_rerun_if_changed(false)
        .compile_fds(descriptors)?;
    Ok(())
}
