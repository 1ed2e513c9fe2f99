#!/bin/sh
# skip.sh NAME REASON: reports that tests which need NAME are skipped. Fails in CI (CI=true), unless tests/may_skip.txt
# lists NAME. tests/skip does the same for tests.
set -eu
cd "$(dirname "$0")/.."

echo "skipped: $1: $2" >&2
if [ "${CI:-}" = true ] && ! cut -d: -f1 tests/may_skip.txt | grep -qxF -e "$1"; then
    echo "CI may skip only what tests/may_skip.txt lists" >&2
    exit 1
fi
if [ -n "${OVOS_TOOLS_SKIPPED:-}" ]; then echo "$1: $2" >>"$OVOS_TOOLS_SKIPPED"; fi
