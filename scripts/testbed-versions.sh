#!/bin/sh
# testbed-versions.sh COUNT DESTINATION: builds testbed with the versions build-1, build-2, ... for the reload test.
#
# Stripped, because they are copied and hashed a hundred times.
set -eu
count=$1 destination=$2
cd "$(dirname "$0")/.."
mkdir -p "$destination"
chmod go-w "$destination"
number=1
while [ "$number" -le "$count" ]; do
    TESTBED_VERSION=build-$number scripts/plugins.sh debug "$destination/.new" tests/toolboxes/testbed >/dev/null
    if command -v strip >/dev/null; then strip "$destination/.new/testbed.so"; fi
    mv -f "$destination/.new/testbed.so" "$destination/testbed-$number.so"
    number=$((number + 1))
done
rmdir "$destination/.new"
