#!/bin/sh
# install.sh DESTDIR PREFIX [PROFILE [TARGET]]: installs what `make install` has built with that profile (release), for this
# machine or for a target of Rust. Every package is made of what it lays out. RUNNER runs the programs of another machine.
set -eu
cd "$(dirname "$0")/.."

prefix=$1$2
lib=$prefix/lib/ovos-tools/plugins
python=$prefix/lib/ovos-tools/python
doc=$prefix/share/doc/ovos-tools
target=${CARGO_TARGET_DIR:-target}
profile=${3:-release}
built=$target/${4:+$4/}$profile

# The user builds, because root often has no cargo; root often owns the destination.
if ! mkdir -p "$prefix" 2>/dev/null || [ ! -w "$prefix" ]; then
    echo "built, but no rights to write to $prefix. Run:" >&2
    echo "    sudo env CARGO_TARGET_DIR='$target' $PWD/scripts/install.sh '$1' '$2' '$profile'" >&2
    exit 1
fi

for program in ovos-tools $(scripts/programs.sh); do
    install -D -m 755 "$built/$program" "$prefix/bin/$program"
done
install -d -m 755 "$lib"
for plugin in "${PLUGINS:-plugins}"/*; do
    [ -x "$plugin" ] || continue
    # Examples for authors.
    case $plugin in */hello.so | */hello_c.so) continue ;; esac
    # Renamed into place, so that a running service keeps its mapped file.
    install -m 755 "$plugin" "$lib/.$(basename "$plugin").new"
    mv -f "$lib/.$(basename "$plugin").new" "$lib/$(basename "$plugin")"
done
# The host of Python toolboxes, where the binary looks for it; and the packages for OVOS's own programs, for pip.
for package in programs/python/ovos_tools_program programs/python/ovos_tools_python; do
    install -d -m 755 "$python/$(basename "$package")"
    install -m 644 "$package"/*.py "$python/$(basename "$package")"
done
for package in python/*; do
    copy=$prefix/share/ovos-tools/$(basename "$package")
    module=$(basename "$package" | tr - _)
    install -d -m 755 "$copy/$module"
    install -m 644 "$package/README.md" "$package/pyproject.toml" "$copy"
    install -m 644 "$package/$module"/*.py "$copy/$module"
    [ ! -e "$package/$module/py.typed" ] || install -m 644 "$package/$module/py.typed" "$copy/$module"
done
for header in toolbox.h toolbox_json.h; do
    install -D -m 644 "toolboxes/abi/$header" "$prefix/include/ovos-tools/$header"
done
install -D -m 644 LICENSE "$doc/LICENSE"
scripts/docs.sh "$doc"
for program in ovos-tools $(scripts/programs.sh doors); do
    ${RUNNER:-} "$built/$program" man "$prefix/share/man/man1"
done
install -m 644 packaging/ovos-tools-fabric.1 packaging/ovos-tools-mounts.1 packaging/ovos-tools-ovos.1 "$prefix/share/man/man1"
chmod 644 "$prefix"/share/man/man1/ovos-tools*.1

# A user unit; it names the binary by its final path, without DESTDIR.
install -d -m 755 "$prefix/lib/systemd/user"
sed "s|/usr/local|$2|g" packaging/ovos-tools.service >"$prefix/lib/systemd/user/ovos-tools.service"
chmod 644 "$prefix/lib/systemd/user/ovos-tools.service"

completions() {
    mkdir -p "$(dirname "$2")"
    ${RUNNER:-} "$built/ovos-tools" completions "$1" >"$2"
}
completions bash "$prefix/share/bash-completion/completions/ovos-tools"
completions zsh "$prefix/share/zsh/site-functions/_ovos-tools"
completions fish "$prefix/share/fish/vendor_completions.d/ovos-tools.fish"

echo "installed to $prefix"
case $2 in
/usr | /usr/local) echo "to start it now and with every login: systemctl --user enable --now ovos-tools" ;;
*) echo "to start it now and with every login: $2/bin/ovos-tools install-service" ;;
esac
