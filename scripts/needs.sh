#!/bin/sh
# needs.sh TOOLBOX_DIR: whether the system libraries a toolbox is built with are here; prints what is not, and fails then.
#
# A toolbox names them in its Cargo.toml, as pkg-config takes them:
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
# One line a library that is missing.
pkg-config --print-errors --exists "$wanted" 2>/dev/null && exit 0
echo "pkg-config finds no $wanted"
exit 1
