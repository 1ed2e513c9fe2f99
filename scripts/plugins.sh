#!/bin/sh
# plugins.sh PROFILE DESTINATION TOOLBOX_DIR...: builds toolboxes and puts NAME.so into DESTINATION.
#
# Written to a temporary name and renamed, so that a service that has the old file mapped keeps it (copying over a
# mapped file crashes its reader). A directory with a .c file of its own name is built with cc, any other with cargo. A
# toolbox whose system libraries are missing is skipped with a message; its earlier build stays. For another machine, TARGET is
# its name in Rust, CARGO_BUILD the command that builds for it, and CC its C compiler.
set -eu
cd "$(dirname "$0")/.."

# Cargo tells a test about its package. A cargo that the test starts takes that for a change, and builds ring and the half of everything
# that stands on it again; the next cargo outside builds it back.
unset $(env | sed -n 's/^\(CARGO_PKG_[A-Z_]*\|CARGO_MANIFEST_[A-Z]*\)=.*/\1/p')

profile=$1 destination=$2
shift 2
target=${CARGO_TARGET_DIR:-target}${TARGET:+/$TARGET}
build=${CARGO_BUILD:-cargo build}
together="examples/hello toolboxes/math toolboxes/robot toolboxes/ros toolboxes/drone"
case $profile in
    release) flag=--release built=$target/release ;;
    # One after the other: each is to be served as soon as it is built.
    try) flag="--profile try" built=$target/try together= ;;
    # What tests load is a part of what `cargo test` builds anyway: a build without the tests has other features of the
    # dependencies, and builds nearly all of them again.
    *) flag=--no-run built=$target/debug build="cargo test $(scripts/members.sh)" together="$together tests/toolboxes/testbed" ;;
esac
libraries=$built
[ "$flag" != --no-run ] || libraries=$built/deps
# Only a terminal gets to see the progress.
if [ -t 2 ]; then quiet=; else quiet=--quiet; fi

mkdir -p "$destination"
chmod go-w "$destination"

# The temporary name is unique to this run, because two runs may fill one folder.
put() {
    install -m 755 "$1" "$destination/.$2.$$"
    mv -f "$destination/.$2.$$" "$destination/$2"
}

# programs TOOLBOX_DIR: the directories of the programs installed with it: `programs = ["../NAME"]` under
# [package.metadata.ovos-tools].
programs() {
    for program in $(sed -n 's/^programs = \[\(.*\)\]$/\1/p' "$1/Cargo.toml" 2>/dev/null | tr -d '",'); do
        echo "$1/$program"
    done
}

# package DIR: the name of the package there; its program has the same.
package() { sed -n '/^name = /{s/^name = "\(.*\)"$/\1/p;q}' "$1/Cargo.toml"; }

# selection DIR: what cargo is to build of the package there. For tests it is one of its own, which brings its library and its
# program along.
selection() {
    if [ "$flag" != --no-run ]; then
        echo "--package $(package "$1")"
        return
    fi
    for test in "$1"/tests/*/main.rs "$1"/tests/*.rs; do
        [ -f "$test" ] || continue
        echo "--test $(basename "${test%/main.rs}" .rs)"
        return
    done
}

# One cargo builds these, whichever of them are asked for: with another selection cargo chooses other features of the
# dependencies that they share, and builds those again.
packages=
for dir in $together "$@"; do
    [ ! -f "$dir/$(basename "$dir").c" ] || continue
    if grep -q '^pkg-config = ' "$dir/Cargo.toml"; then continue; fi
    for part in "$dir" $(programs "$dir"); do packages="$packages $(selection "$part")"; done
done
# shellcheck disable=SC2086 # words on purpose
[ -z "$packages" ] || $build $quiet --locked $flag $packages

for dir in "$@"; do
    name=$(basename "$dir")
    library=$name
    if ! reason=$(scripts/needs.sh "$dir"); then
        echo "skipped: toolbox $name: $reason" >&2
        continue
    fi
    if [ -f "$dir/$name.c" ]; then
        mkdir -p "$libraries"
        ${CC:-cc} -shared -fPIC -fvisibility=hidden -O2 -Wall -Wextra -Itoolboxes/abi "$dir/$name.c" -o "$libraries/lib$name.so.$$"
        mv -f "$libraries/lib$name.so.$$" "$libraries/lib$name.so"
    elif grep -q '^pkg-config = ' "$dir/Cargo.toml"; then
        $build $quiet --locked $flag --manifest-path "$dir/Cargo.toml"
        # A [lib] may have a different name.
        own=$(sed -n '/^\[lib\]/,/^\[/s/^name = "\(.*\)"/\1/p' "$dir/Cargo.toml")
        library=${own:-$name}
    fi
    for program in $(programs "$dir"); do
        put "$built/$(package "$program")" "$(package "$program")"
    done
    put "$libraries/lib$library.so" "$name.so"
    echo "$destination/$name.so"
done
