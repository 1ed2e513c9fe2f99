#!/bin/sh
# Makes sure of what a build needs from the system: a C compiler, and Python with venv for the interop tests.
# Installs what is missing where it may; otherwise prints the apt line and lets the rest go on.
set -eu

if ! command -v cargo >/dev/null; then
    echo "ovos-tools needs a Rust toolchain: https://rustup.rs" >&2
    exit 1
fi

missing=
command -v cc >/dev/null || missing="$missing build-essential"
if [ "${1:-}" = --with-python ]; then
    python3 -c 'import venv, ensurepip' 2>/dev/null || missing="$missing python3 python3-venv"
fi
[ -z "$missing" ] && exit 0

install="apt-get install -y --no-install-recommends$missing"
if ! command -v apt-get >/dev/null; then
    echo "missing: install what Debian calls$missing" >&2
    install=
elif [ "$(id -u)" = 0 ]; then
    apt-get update -q && $install && exit 0
elif sudo -n true 2>/dev/null; then
    sudo -n apt-get update -q && sudo -n $install && exit 0
fi

if [ -n "$install" ]; then
    echo "missing Debian packages that could not be installed from here. Run:" >&2
    echo "    sudo $install" >&2
fi
case $missing in *build-essential*)
    echo "stopped: nothing can be linked without a C compiler" >&2
    exit 1 ;;
esac
echo "skipped until then: the tests that talk to the published Python packages" >&2
