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

if command -v cargo-nextest >/dev/null; then
    cargo nextest run --locked --no-fail-fast "$@"
    cargo test --locked --doc --quiet
else
    cargo test --locked --no-fail-fast "$@"
fi
if command -v cargo-deny >/dev/null; then cargo deny --log-level error check licenses; fi

if [ -n "$skipped" ]; then printf "skipped on this machine:$skipped\n"; fi
