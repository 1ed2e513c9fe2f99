#!/bin/sh
# registry.sh: packs the crates for authors as a registry gets them, each with what it has to have, and builds what was packed.
set -eu
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
crates="ovos-toolbox-abi ovos-toolbox-wire ovos-toolbox-sdk ovos-tools-protocol ovos-tools-signals ovos-tools-program ovos-tools-bus ovos-tools-client"
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
# Cargo uses what it once unpacked and built of a version, even where the package has changed since: all of it is made anew.
log=$target/registry.log
target=$target/registry
rm -rf "$target"
mkdir -p "$target"
packages=
for crate in $crates; do
    packages="$packages --package $crate"
    rm -rf "${CARGO_HOME:-$HOME/.cargo}/registry/src/"-*"/$crate-$version"
done

# Together, so that each is built with the packed ones that it depends on, which no registry has yet.
if ! cargo package --quiet --locked --allow-dirty --target-dir "$target" $packages 2>"$log"; then
    cat "$log" >&2
    exit 1
fi
if grep '^warning' "$log" >&2; then
    echo "cargo package has warnings ($log)" >&2
    exit 1
fi

# holds CRATE FILE...: fails if the packed crate lacks a file, or has an empty one.
holds() {
    crate=$1
    shift
    for file in "$@"; do
        if [ "$(tar -xzOf "$target/package/$crate-$version.crate" "$crate-$version/$file" | wc -c)" -eq 0 ]; then
            echo "the package of $crate has no $file" >&2
            exit 1
        fi
    done
}
for crate in $crates; do holds "$crate" LICENSE README.md; done
holds ovos-toolbox-abi toolbox.h toolbox_json.h
echo "packed and built: $crates"
