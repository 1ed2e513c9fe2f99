#!/bin/sh
# members.sh: `--workspace` where the system libraries of every crate are installed; nothing, which means the default members, and the
# reason on stderr where some are missing.
#
# Whatever one cargo after the other builds here has to name the same members: with others cargo chooses other features of the
# dependencies, and builds those and everything that stands on them again.
set -eu
cd "$(dirname "$0")/.."

for dir in toolboxes/gstreamer; do
    reason=$(scripts/needs.sh "$dir") || { scripts/skip.sh "$(basename "$dir")" "$reason" >&2; exit 0; }
done
echo --workspace
