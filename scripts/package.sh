#!/bin/sh
# package.sh [PROFILE [TARGET]]: packs what is built with the profile (release), for this machine or for a target of Rust, into
# TARGET_DIR/packages: a tar.gz, two .deb and a wheel, all from one tree, with SHA256SUMS, and the debug symbols beside them.
# GLIBC_MAX is the newest glibc that a file in them may need (that of Debian 12); gstreamer.so may need that of this machine, as
# the libraries it is built with do. PLUGINS, RUNNER: as in scripts/install.sh.
set -eu
cd "$(dirname "$0")/.."

profile=${1:-release} triple=${2:-}
glibc_max=${GLIBC_MAX:-2.36}
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
# A 64-bit kernel may have a 32-bit system, which dpkg knows.
machine=${triple:-$(dpkg --print-architecture 2>/dev/null || uname -m)}
case $machine in
x86_64* | amd64) arch=x86_64 debian=amd64 binutils= ;;
aarch64* | arm64) arch=aarch64 debian=arm64 binutils=aarch64-linux-gnu- ;;
arm*) arch=armv7l debian=armhf binutils=arm-linux-gnueabihf- ;;
*) echo "no packages are made for $machine: expected x86_64, aarch64 or armv7" >&2; exit 1 ;;
esac
[ -n "$triple" ] || binutils=
out=${CARGO_TARGET_DIR:-target}/packages
work=$out/.work-$arch
tree=$work/tree/usr
plugins=$tree/lib/ovos-tools/plugins
name=ovos-tools-$version-$arch
umask 022
rm -rf "$work" "$out/${name:?}"* "$out/debug-${name:?}"* "$out"/ovos-tools*"_$debian.deb" "$out"/ovos_tools-*"_$arch.whl"
mkdir -p "$work/debug"
scripts/install.sh "$PWD/$work/tree" /usr "$profile" "$triple" >"$work/install.log"

is_elf() { [ "$(head -c 4 "$1" | tail -c 3)" = ELF ]; }
elf=$(find "$tree/bin" "$plugins" -type f | sort | while read -r file; do if is_elf "$file"; then echo "$file"; fi; done)

# The symbols make a crash report readable; `gdb` finds a .debug file by its name.
for file in $elf; do
    if readelf -S -W "$file" | grep -q ' \.debug_info '; then
        "${binutils}objcopy" --only-keep-debug "$file" "$work/debug/$(basename "$file").debug"
        "${binutils}objcopy" --strip-unneeded --add-gnu-debuglink="$work/debug/$(basename "$file").debug" "$file"
    else
        "${binutils}objcopy" --strip-unneeded "$file"
    fi
done

# The version of a symbol is bound to the glibc that introduced it.
glibc_of() { readelf -W --dyn-syms "$@" | grep -o '@GLIBC_[0-9.]*' | cut -d_ -f2 | sort -uV | tail -n 1; }
older() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }
in_wheel=$(echo "$elf" | grep -v '/gstreamer.so$')
for file in $in_wheel; do
    needed=$(glibc_of "$file")
    if ! older "$needed" "$glibc_max"; then
        echo "$(basename "$file") needs glibc $needed; these packages may need at most $glibc_max (GLIBC_MAX)" >&2
        exit 1
    fi
    # A manylinux system promises these libraries and no others to a wheel.
    foreign=$(readelf -d -W "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
        grep -vxE 'lib(c|m|dl|rt|pthread)\.so\.[0-9]+|libgcc_s\.so\.1|ld-linux.*' || true)
    [ -z "$foreign" ] || { echo "$(basename "$file") needs $foreign, which the wheel's tag does not promise" >&2; exit 1; }
done
# shellcheck disable=SC2086 # a list of files
glibc=$(glibc_of $in_wheel)
echo "newest glibc needed: $glibc (at most $glibc_max)"

# 1. The archive: the same tree without the unit, whose path would be wrong; `install-service` writes it.
tar -czf "$out/$name.tar.gz" -C "$work/tree" --owner=0 --group=0 --sort=name --exclude='usr/lib/systemd' \
    --transform 's,^usr,ovos-tools,' usr

# 2. The packages of Debian. GStreamer is a package of its own, because it needs the system's libraries.
deb=$work/ovos-tools gst=$work/ovos-tools-gstreamer
cp -a "$work/tree" "$deb"
mkdir -p "$deb/usr/share/zsh/vendor-completions" "$deb/usr/lib/systemd/user-preset"
mv "$deb/usr/share/zsh/site-functions/_ovos-tools" "$deb/usr/share/zsh/vendor-completions"
rmdir "$deb/usr/share/zsh/site-functions"
mv "$deb/usr/share/doc/ovos-tools/LICENSE" "$deb/usr/share/doc/ovos-tools/copyright"
echo "enable ovos-tools.service" >"$deb/usr/lib/systemd/user-preset/90-ovos-tools.preset"
if [ -e "$plugins/gstreamer.so" ]; then
    mkdir -p "$gst/usr/lib/ovos-tools/plugins" "$gst/usr/share/doc/ovos-tools-gstreamer"
    mv "$deb/usr/lib/ovos-tools/plugins/gstreamer.so" "$gst/usr/lib/ovos-tools/plugins"
    cp "$deb/usr/share/doc/ovos-tools/copyright" "$gst/usr/share/doc/ovos-tools-gstreamer"
fi

# depends FOLDER KNOWN: the packages that its files need, from Debian's own tool where that is, else KNOWN.
depends() {
    if [ -n "$triple" ] || ! command -v dpkg-shlibdeps >/dev/null; then
        echo "$2"
        return
    fi
    mkdir -p "$work/debian"
    printf 'Source: ovos-tools\n\nPackage: ovos-tools\nArchitecture: any\n' >"$work/debian/control"
    list=$(cd "$1" && find usr/bin usr/lib/ovos-tools/plugins -type f 2>/dev/null | while read -r file; do
        if is_elf "$file"; then echo "-e$(basename "$1")/$file"; fi
    done)
    # shellcheck disable=SC2086 # a list of files
    (cd "$work" && dpkg-shlibdeps -O $list 2>shlibdeps.log) | sed -n 's/^shlibs:Depends=//p'
}

# pack FOLDER DEPENDS FIELDS DESCRIPTION
pack() {
    mkdir -p "$1/DEBIAN"
    cat >"$1/DEBIAN/control" <<END
Package: $(basename "$1")
Version: $version
Architecture: $debian
Maintainer: OpenVoiceOS <https://github.com/OpenVoiceOS/ovos-tools>
Installed-Size: $(du -sk "$1/usr" | cut -f1)
Depends: $2
$3
Section: misc
Priority: optional
Homepage: https://github.com/OpenVoiceOS/ovos-tools
Description: $4
END
    # Only what is released is worth a minute of packing.
    case $profile in release) how=-Zxz ;; *) how='-Zgzip -z1' ;; esac
    # shellcheck disable=SC2086 # words on purpose
    dpkg-deb --root-owner-group $how --build "$1" "$out/$(basename "$1")_${version}_$debian.deb" >/dev/null
}

if command -v dpkg-deb >/dev/null; then
    # What is built for another target links the unwinder of its compiler.
    libc="libc6 (>= $glibc)"
    pack "$deb" "$(depends "$deb" "$libc")" "Suggests: ovos-tools-gstreamer, python3" \
        "tools for a voice assistant
 A service on the messagebus of OpenVoiceOS that finds, plans and runs the
 tools of loadable toolboxes, with the toolboxes robot, ros, drone and math, and
 programs for MCP clients, voices and agents.
 .
 To start it: systemctl --user enable --now ovos-tools"
    if [ -d "$gst" ]; then
        known="libc6 (>= $(glibc_of "$gst/usr/lib/ovos-tools/plugins/gstreamer.so")), libgcc-s1, libglib2.0-0, libgstreamer1.0-0 (>= 1.20), libgstreamer-plugins-base1.0-0 (>= 1.20)"
        plugins_of_debian="gstreamer1.0-plugins-base, gstreamer1.0-plugins-good, gstreamer1.0-plugins-bad, gstreamer1.0-plugins-ugly"
        pack "$gst" "ovos-tools (= $version), $(depends "$gst" "$known")" \
            "Recommends: $plugins_of_debian, gstreamer1.0-libav, gstreamer1.0-alsa, gstreamer1.0-nice, gstreamer1.0-tools" \
            "toolbox of ovos-tools for GStreamer
 Discovers what this machine's GStreamer can do, checks and runs pipelines."
    else
        scripts/skip.sh package-gstreamer "the toolbox gstreamer is not built"
    fi
else
    scripts/skip.sh package-deb "dpkg-deb is not installed"
fi

# 3. The wheel.
scripts/venv.sh package
if [ -e .venv-package/.ready ]; then
    tag="py3-none-manylinux_$(echo "$glibc" | tr . _)_$arch"
    .venv-package/bin/python packaging/wheel.py "$tree" "$tag" "$version" "$out"
else
    scripts/skip.sh package-wheel "there is no Python 3.10 or newer with venv"
fi

if [ -n "$(ls "$work/debug")" ]; then tar -czf "$out/debug-$name.tar.gz" -C "$work" debug; fi
(cd "$out" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum >SHA256SUMS)

# size FILE...: in MB.
size() { cat "$@" | wc -c | awk '{printf "%.1f MB", $1 / 1e6}'; }
echo "service and toolboxes: $(size "$tree/bin/ovos-tools" "$plugins"/*.so) (goal 42)"
# shellcheck disable=SC2046 # a list of files
echo "doors and programs: $(size "$tree"/bin/ovos-tools-* $(find "$plugins" -type f ! -name '*.so')) (goal 25)"
(cd "$out" && cut -c67- SHA256SUMS | while read -r file; do echo "packed $file: $(size "$file")"; done)
rm -rf "$work"
