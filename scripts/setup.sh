#!/bin/sh
# Checks what a build needs from the system: a C compiler, GStreamer for the toolbox of that name, with --with-python
# what the interop tests need, with --with-browser the browser whose pages use the MCP door in a test, with --with-libclang what
# robot-r2r needs, with --with-debootstrap what proves a .deb.
# Installs missing packages if permitted; otherwise prints the apt command and continues.
set -eu

if ! command -v cargo >/dev/null; then
    echo "ovos-tools needs a Rust toolchain: https://rustup.rs" >&2
    exit 1
fi

# install PACKAGE...: succeeds if the packages are installed afterwards.
install() {
    line="apt-get install -y --no-install-recommends $*"
    if ! command -v apt-get >/dev/null; then
        echo "missing: install what Debian calls $*" >&2
        return 1
    elif [ "$(id -u)" = 0 ]; then
        apt-get update -q && $line && return 0
    elif sudo -n true 2>/dev/null; then
        sudo -n apt-get update -q && sudo -n $line && return 0
    fi
    echo "missing Debian packages that could not be installed from here. Run:" >&2
    echo "    sudo $line" >&2
    return 1
}

# has ELEMENT: not `gst-inspect-1.0 --exists`, which compares the versions of third-party plugins with GStreamer's own.
has() { gst-inspect-1.0 "$1" >/dev/null 2>&1; }

missing=
command -v cc >/dev/null || missing="$missing build-essential"
case "${1:-}" in
--with-python) python3 -c 'import venv, ensurepip' 2>/dev/null || missing="$missing python3 python3-venv" ;;
--with-browser) command -v chromium >/dev/null || missing="$missing chromium" ;;
--with-debootstrap) command -v debootstrap >/dev/null || missing="$missing debootstrap" ;;
--with-libclang) find /usr/lib* -name 'libclang.so*' 2>/dev/null | grep -q . || missing="$missing libclang-dev" ;;
esac
# shellcheck disable=SC2086 # words on purpose
if [ -n "$missing" ] && ! install $missing; then
    case $missing in *build-essential*)
        echo "stopped: nothing can be linked without a C compiler" >&2
        exit 1 ;;
    esac
    echo "skipped until they are installed: what needs$missing" >&2
fi

# Without these the toolbox gstreamer is left out. WITHOUT_GSTREAMER=1 skips the check.
if [ -z "${WITHOUT_GSTREAMER:-}" ]; then
    gstreamer=
    (cd "$(dirname "$0")/.." && scripts/needs.sh toolboxes/gstreamer >/dev/null) ||
        gstreamer="pkg-config libgstreamer1.0-dev libgstreamer-plugins-base1.0-dev"
    command -v gst-inspect-1.0 >/dev/null || gstreamer="$gstreamer gstreamer1.0-tools"
    if command -v gst-inspect-1.0 >/dev/null; then
        # One element stands for each package; Debian builds x264enc where the licence allows it.
        for pair in videotestsrc:base rtph264pay:good srtsink:bad x264enc:ugly; do
            has "${pair%%:*}" || gstreamer="$gstreamer gstreamer1.0-plugins-${pair##*:}"
        done
        has avdec_h264 || gstreamer="$gstreamer gstreamer1.0-libav"
        has alsasrc || gstreamer="$gstreamer gstreamer1.0-alsa"
        has nicesink || gstreamer="$gstreamer gstreamer1.0-nice"
    else
        for part in plugins-base plugins-good plugins-bad plugins-ugly libav alsa nice; do
            gstreamer="$gstreamer gstreamer1.0-$part"
        done
    fi
    # shellcheck disable=SC2086 # words on purpose
    if [ -n "$gstreamer" ] && ! install $gstreamer; then
        echo "skipped until they are installed: the toolbox gstreamer, or its tests" >&2
    fi
    # Only `pipeline_graph` uses it, and reports its absence itself.
    command -v dot >/dev/null || echo "optional: graphviz, for pipeline_graph as SVG" >&2
fi
