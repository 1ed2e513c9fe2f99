#!/bin/sh
# plugins.sh PROFILE DESTINATION TOOLBOX_DIR...: builds toolboxes and puts NAME.so into DESTINATION.
#
# Written beside and renamed: a service that has the old file mapped keeps it whole (copying over a mapped file
# crashes its reader). A directory with a .c file of its own name is built with cc, any other with cargo.
set -eu
cd "$(dirname "$0")/.."

profile=$1 destination=$2
shift 2
target=${CARGO_TARGET_DIR:-target}
case $profile in release) flag=--release built=$target/release ;; *) flag= built=$target/debug ;; esac

mkdir -p "$destination"
chmod go-w "$destination"

put() {
    install -m 755 "$1" "$destination/.$2.so.new"
    mv -f "$destination/.$2.so.new" "$destination/$2.so"
}

for dir in "$@"; do
    name=$(basename "$dir")
    if [ -f "$dir/$name.c" ]; then
        mkdir -p "$built"
        ${CC:-cc} -shared -fPIC -fvisibility=hidden -O2 -Wall -Wextra -Itoolboxes/abi "$dir/$name.c" -o "$built/lib$name.so"
    else
        cargo build --quiet --locked $flag --manifest-path "$dir/Cargo.toml"
    fi
    put "$built/lib$name.so" "$name"
    echo "$destination/$name.so"
done
