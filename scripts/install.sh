#!/bin/sh
# install.sh DESTDIR PREFIX: puts what `make install` has built where it belongs.
set -eu
cd "$(dirname "$0")/.."

prefix=$1$2
lib=$prefix/lib/ovos-tools/plugins
doc=$prefix/share/doc/ovos-tools
target=${CARGO_TARGET_DIR:-target}

install -D -m 755 "$target/release/ovos-tools" "$prefix/bin/ovos-tools"
install -d -m 755 "$lib"
for plugin in plugins/*.so; do
    # Renamed into place, so that a running service keeps the file it has mapped.
    install -m 755 "$plugin" "$lib/.$(basename "$plugin").new"
    mv -f "$lib/.$(basename "$plugin").new" "$lib/$(basename "$plugin")"
done
install -D -m 644 toolboxes/abi/toolbox.h "$prefix/include/ovos-tools/toolbox.h"
install -D -m 644 mycroft.conf.example "$doc/mycroft.conf.example"

# The unit names the binary by its final path, which DESTDIR is no part of.
install -d -m 755 "$prefix/lib/systemd/system"
sed "s|/usr/local|$2|g" packaging/ovos-tools.service >"$prefix/lib/systemd/system/ovos-tools.service"
chmod 644 "$prefix/lib/systemd/system/ovos-tools.service"

completions() {
    mkdir -p "$(dirname "$2")"
    "$target/release/ovos-tools" completions "$1" >"$2"
}
completions bash "$prefix/share/bash-completion/completions/ovos-tools"
completions zsh "$prefix/share/zsh/site-functions/_ovos-tools"
completions fish "$prefix/share/fish/vendor_completions.d/ovos-tools.fish"

echo "installed to $prefix"
