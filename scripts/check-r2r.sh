#!/bin/sh
# Compiles toolboxes/robot-r2r without a ROS 2 installation: r2r's feature doc-only brings its own bindings, which can be
# checked and not linked. Takes minutes the first time, so nothing calls it but whoever changes that crate.
set -eu
cd "$(dirname "$0")/.."
if ! ls /usr/lib/llvm-*/lib/libclang*.so* /usr/lib/*/libclang*.so* >/dev/null 2>&1; then
    echo "skipped: robot-r2r needs libclang: apt-get install -y libclang-dev" >&2
    exit 0
fi
cargo check --manifest-path toolboxes/robot-r2r/Cargo.toml --features doc-only --target-dir "${CARGO_TARGET_DIR:-target}/robot-r2r"
