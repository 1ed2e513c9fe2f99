#!/bin/sh
# Runs every test; what cannot run here is named at the end, not passed over.
set -eu
cd "$(dirname "$0")/.."

skipped=
if [ ! -e .venv/.ready ]; then
    export OVOS_TOOLS_SKIP_PYTHON=1
    skipped="$skipped\n  the published Python packages were not compared with (see above)"
fi
command -v cargo-deny >/dev/null || skipped="$skipped\n  cargo deny (cargo install cargo-deny); tests/licences.rs read the licences"

# The service's tests load the toolboxes that need system libraries, too, where they can be built.
for dir in toolboxes/gstreamer; do
    if scripts/needs.sh "$dir" >/dev/null; then cargo build --quiet --locked --manifest-path "$dir/Cargo.toml"; fi
done

if command -v cargo-nextest >/dev/null; then
    cargo nextest run --locked --no-fail-fast "$@"
    cargo test --locked --doc --quiet
else
    cargo test --locked --no-fail-fast "$@"
fi

# Crates outside of default-members: each needs system libraries. Arguments choose among the tests above.
for dir in toolboxes/gstreamer; do
    if [ $# -gt 0 ]; then
        continue
    elif reason=$(scripts/needs.sh "$dir"); then
        cargo test --locked --no-fail-fast --manifest-path "$dir/Cargo.toml"
    else
        skipped="$skipped\n  the tests of $dir: $reason"
    fi
done
if command -v cargo-deny >/dev/null; then cargo deny --workspace --log-level error check licenses; fi

if [ -n "$skipped" ]; then printf "skipped on this machine:$skipped\n"; fi
