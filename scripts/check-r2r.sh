#!/bin/sh
# Checks toolboxes/robot-r2r without a ROS 2 installation: r2r's feature doc-only provides bindings that compile but do
# not link. CI runs it; it takes minutes the first time, so `make check` does not.
set -eu
cd "$(dirname "$0")/.."
scripts/setup.sh --with-libclang
if ! find /usr/lib* -name 'libclang.so*' 2>/dev/null | grep -q .; then
    scripts/skip.sh libclang "robot-r2r needs it: apt-get install -y libclang-dev"
    exit 0
fi
cargo fmt --check --manifest-path toolboxes/robot-r2r/Cargo.toml
cargo clippy --locked --manifest-path toolboxes/robot-r2r/Cargo.toml --features doc-only \
    --target-dir "${CARGO_TARGET_DIR:-target}/robot-r2r" -- -D warnings
