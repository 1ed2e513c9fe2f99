#!/bin/sh
# install.sh DESTDIR PREFIX: installs what `make install` has built.
set -eu
cd "$(dirname "$0")/.."

prefix=$1$2
lib=$prefix/lib/ovos-tools/plugins
python=$prefix/lib/ovos-tools/python
doc=$prefix/share/doc/ovos-tools
target=${CARGO_TARGET_DIR:-target}

# The user builds, because root often has no cargo; root often owns the destination.
if ! mkdir -p "$prefix" 2>/dev/null || [ ! -w "$prefix" ]; then
    echo "built, but no rights to write to $prefix. Run:" >&2
    echo "    sudo env CARGO_TARGET_DIR='$target' $PWD/scripts/install.sh '$1' '$2'" >&2
    exit 1
fi

for program in ovos-tools ovos-tools-agent ovos-tools-mcp ovos-tools-voice ovos-tools-mounts; do
    install -D -m 755 "$target/release/$program" "$prefix/bin/$program"
done
install -d -m 755 "$lib"
for plugin in plugins/*; do
    [ -x "$plugin" ] || continue
    # Renamed into place, so that a running service keeps its mapped file.
    install -m 755 "$plugin" "$lib/.$(basename "$plugin").new"
    mv -f "$lib/.$(basename "$plugin").new" "$lib/$(basename "$plugin")"
done
# The host of Python toolboxes, where the binary looks for it; and the package that shows our tools to Python, for pip.
for package in programs/python/ovos_tools_program programs/python/ovos_tools_python; do
    install -d -m 755 "$python/$(basename "$package")"
    install -m 644 "$package"/*.py "$python/$(basename "$package")"
done
toolbox=$prefix/share/ovos-tools/ovos-tools-toolbox
install -d -m 755 "$toolbox/ovos_tools_toolbox"
install -m 644 python/ovos-tools-toolbox/README.md python/ovos-tools-toolbox/pyproject.toml "$toolbox"
install -m 644 python/ovos-tools-toolbox/ovos_tools_toolbox/*.py "$toolbox/ovos_tools_toolbox"
install -D -m 644 programs/python/README.md "$doc/python.md"
for header in toolbox.h toolbox_json.h; do
    install -D -m 644 "toolboxes/abi/$header" "$prefix/include/ovos-tools/$header"
done
install -D -m 644 mycroft.conf.example "$doc/mycroft.conf.example"
install -D -m 644 LICENSE "$doc/LICENSE"
for toolbox in robot drone gstreamer; do
    install -m 644 "toolboxes/$toolbox/README.md" "$doc/$toolbox.md"
done
for page in agent mcp mounts voice; do
    install -m 644 "docs/$page.md" "$doc/$page.md"
done

# A user unit; it names the binary by its final path, without DESTDIR.
install -d -m 755 "$prefix/lib/systemd/user"
sed "s|/usr/local|$2|g" packaging/ovos-tools.service >"$prefix/lib/systemd/user/ovos-tools.service"
chmod 644 "$prefix/lib/systemd/user/ovos-tools.service"

completions() {
    mkdir -p "$(dirname "$2")"
    "$target/release/ovos-tools" completions "$1" >"$2"
}
completions bash "$prefix/share/bash-completion/completions/ovos-tools"
completions zsh "$prefix/share/zsh/site-functions/_ovos-tools"
completions fish "$prefix/share/fish/vendor_completions.d/ovos-tools.fish"

echo "installed to $prefix"
case $2 in /usr | /usr/local) ;; *)
    echo "this prefix is not searched by default, so do this, too:"
    echo "    \"plugins_dir\": [\"$2/lib/ovos-tools/plugins\"] in the section \"service\" of mycroft.conf"
    echo "    systemctl --user link $2/lib/systemd/user/ovos-tools.service" ;;
esac
