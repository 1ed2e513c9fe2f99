#!/bin/sh
# programs.sh [doors|--package]: the programs that are built and installed beside ovos-tools, one a line: the doors and those that
# serve toolboxes, each named by the folder that it stands in. `doors` leaves the latter out; --package makes cargo's options of them.
set -eu
cd "$(dirname "$0")/.."

folders="doors/*"
[ "${1:-}" = doors ] || folders="$folders programs/*"
# shellcheck disable=SC2086 # patterns on purpose
for folder in $folders; do
    # What is written in Python is not built.
    [ -f "$folder/Cargo.toml" ] || continue
    [ "${1:-}" != --package ] || echo --package
    echo "ovos-tools-${folder##*/}"
done
