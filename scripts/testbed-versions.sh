#!/bin/sh
# testbed-versions.sh COUNT DESTINATION: builds testbed with the versions build-1, build-2, ... for the reload test.
#
# Stripped, because they are copied and hashed a hundred times.
set -eu
count=$1 destination=$2
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$destination"
chmod go-w "$destination"
number=1
while [ "$number" -le "$count" ]; do
    TESTBED_VERSION=build-$number cargo build --quiet --locked --manifest-path tests/toolboxes/testbed/Cargo.toml
    install -m 755 "$target/debug/libtestbed.so" "$destination/.new"
    if command -v strip >/dev/null; then strip "$destination/.new"; fi
    mv -f "$destination/.new" "$destination/testbed-$number.so"
    number=$((number + 1))
done
