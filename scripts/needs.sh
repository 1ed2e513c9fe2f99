#!/bin/sh
# needs.sh TOOLBOX_DIR: checks for the system libraries that a toolbox is built with; prints the missing ones and fails.
#
# A toolbox lists them in its Cargo.toml, in the syntax of pkg-config:
#     [package.metadata.toolbox]
#     pkg-config = "gstreamer-1.0 >= 1.20"
set -eu

manifest=$1/Cargo.toml
[ -f "$manifest" ] || exit 0
wanted=$(sed -n 's/^pkg-config = "\(.*\)"/\1/p' "$manifest")
[ -n "$wanted" ] || exit 0

if ! command -v pkg-config >/dev/null; then
    echo "pkg-config is not installed"
    exit 1
fi
# One line per missing library.
pkg-config --print-errors --exists "$wanted" 2>/dev/null && exit 0
echo "pkg-config finds no $wanted"
exit 1
