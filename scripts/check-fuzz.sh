#!/bin/sh
# Compiles the fuzz targets on stable, so that they keep up with the crates they call. Only a nightly toolchain runs
# them: scripts/fuzz.sh.
set -eu
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
case $target in /*) ;; *) target=$PWD/$target ;; esac
# With this variable libfuzzer-sys does not build libFuzzer; nothing is linked, so the file does not have to exist.
export CUSTOM_LIBFUZZER_PATH="$target/libfuzzer.a"
RUSTFLAGS="--cfg fuzzing" cargo check --quiet --locked --manifest-path fuzz/Cargo.toml --target-dir "$target/fuzz"
