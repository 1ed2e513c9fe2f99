#!/bin/sh
# Runs every test. All suites run even if one fails; skipped tests are listed at the end.
set -eu
cd "$(dirname "$0")/.."

failed=
# suite COMMAND...: runs the command and records a failure.
suite() {
    "$@" || failed="$failed\n  $*"
}

OVOS_TOOLS_SKIPPED=$(mktemp)
export OVOS_TOOLS_SKIPPED
trap 'rm -f "$OVOS_TOOLS_SKIPPED"' EXIT

# .config/nextest.toml says how many parts of a processor each test takes.
: "${NEXTEST_PROFILE:=suite}" "${NEXTEST_TEST_THREADS:=$(($(nproc) * 4))}"
export NEXTEST_PROFILE NEXTEST_TEST_THREADS

if [ ! -e .venv/.ready ]; then export OVOS_TOOLS_SKIP_PYTHON=1; fi

# Where GStreamer is missing, its toolbox is left out and named.
members=$(scripts/members.sh)

run="cargo test"
if command -v cargo-nextest >/dev/null; then run="cargo nextest run"; fi
# shellcheck disable=SC2086 # a word or none
suite $run $members --locked --no-fail-fast "$@"
# shellcheck disable=SC2086
if [ "$run" != "cargo test" ]; then suite cargo test $members --locked --doc --quiet; fi

if [ $# -eq 0 ]; then suite scripts/python-programs.sh; fi
if command -v cargo-deny >/dev/null; then
    suite cargo deny --workspace --log-level error check licenses
else
    suite scripts/skip.sh cargo-deny "it is not installed (cargo install cargo-deny)"
fi

if [ -s "$OVOS_TOOLS_SKIPPED" ]; then
    echo "skipped on this machine:"
    sort -u "$OVOS_TOOLS_SKIPPED" | sed 's/^/  /'
fi
if [ -n "$failed" ]; then
    printf "failed:$failed\n"
    exit 1
fi
