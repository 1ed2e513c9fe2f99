#!/bin/sh
# optional.sh COMMAND TOOLBOX_DIR... [-- ARGUMENT...]: runs `COMMAND --manifest-path DIR/Cargo.toml ARGUMENT...` for
# each toolbox whose system libraries are installed, and names those that it skipped.
set -eu
cd "$(dirname "$0")/.."

command=$1
shift
dirs=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    dirs="$dirs $1"
    shift
done

for dir in $dirs; do
    if reason=$(scripts/needs.sh "$dir"); then
        $command --manifest-path "$dir/Cargo.toml" "$@"
    else
        scripts/skip.sh "$(basename "$dir")" "$reason"
    fi
done
