#!/bin/sh
# package-check.sh [ARCH]: installs each package of TARGET_DIR/packages in an empty place: the archive in a folder, the wheel in a
# virtual environment, the .deb files in a Debian of their own. There the service starts, a tool is called, an emergency stop
# refuses the next call, and what is removed leaves nothing but state and configuration. Those of another architecture (arm64,
# armhf) are tried in a Debian of that architecture, without the wheel, whose programs are those of the archive; the kernel needs
# an entry for them in binfmt_misc.
set -eu
cd "$(dirname "$0")/.."

native=$(dpkg --print-architecture 2>/dev/null || echo amd64)
debian=${1:-$native}
case $debian in amd64) arch=x86_64 ;; arm64) arch=aarch64 ;; armhf) arch=armv7l ;; *) echo "no packages are made for $debian" >&2; exit 1 ;; esac
packages=$PWD/${CARGO_TARGET_DIR:-target}/packages
bookworm=$PWD/.cache/bookworm-$debian
work=$(mktemp -d)
service=
end() {
    [ -z "$service" ] || kill "$service" 2>/dev/null || true
    rm -rf "$work"
}
trap end EXIT
trap 'exit 1' HUP INT TERM

fail() {
    [ ! -e "$work/log" ] || cat "$work/log" >&2
    echo "$what: $1" >&2
    exit 1
}

# said PATTERN CODE COMMAND...: the command says so and exits with that code.
said() {
    pattern=$1 code=$2 found=0
    shift 2
    text=$("$@" 2>&1) || found=$?
    [ $found = "$code" ] || fail "exit code $found, expected $code, of: $*: $text"
    case $text in *"$pattern"*) ;; *) fail "no $pattern from: $*: $text" ;; esac
}

# prove HOME COMMAND...: the installed program, run by COMMAND in an empty home, does what it is for.
prove() {
    home=$1
    shift
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    bus=ws://127.0.0.1:$port/core
    "$@" serve --bus "$bus" --embedded-bus always >"$work/log" 2>&1 &
    service=$!
    tries=0
    until grep -q '^Try: ' "$work/log"; do
        kill -0 $service 2>/dev/null && [ $tries -lt 600 ] || fail "the service did not start"
        tries=$((tries + 1))
        sleep 0.1
    done
    ! grep 'not loaded' "$work/log" || fail "a toolbox was not loaded"
    # Examples are not packaged; what would drive a simulator is off until it is asked for.
    for id in robot drone; do said "\`ovos-tools enable $id\` turns it on" 1 "$@" invoke "${id}__wave" --bus "$bus"; done
    said 'Unknown tool' 1 "$@" invoke hello name=Ada --bus "$bus"
    said 'added robot' 0 "$@" enable robot --bus "$bus"
    for door in $(scripts/programs.sh doors); do said "$door " 0 "$@" "${door#ovos-tools-}" --version; done
    said '"result":42' 0 "$@" invoke add a=10 b=32 --json --bus "$bus" --timeout 60
    said stopped 0 "$@" stop --bus "$bus"
    said EmergencyStop 1 "$@" invoke wave arm=left --bus "$bus" --timeout 60
    kill $service
    wait $service || fail "the service ended with exit code $?"
    service=
    # No user manager runs here; scripts/unit-check.sh starts one.
    said 'systemctl --user enable --now ovos-tools' 5 "$@" install-service
    [ -f "$home/.config/systemd/user/ovos-tools.service" ] || fail "install-service wrote no unit"
    said removed 0 "$@" install-service --remove
}

# no_trace HOME: nothing of ours is in a home, except state and configuration. GStreamer remembers there what the machine has.
no_trace() {
    left=$(find "$1" -type f ! -path "$1/.local/state/*" ! -path "$1/.config/*" ! -path "$1/.cache/gstreamer-1.0/*")
    [ -z "$left" ] || fail "left behind: $left"
    echo "proved $what"
}

# documented PREFIX: the pages for people are there, and no link of one is dead.
documented() {
    doc=$1/share/doc/ovos-tools
    for page in README.md CHANGELOG.md docs/bus.md docs/writing-a-toolbox.md toolboxes/robot/README.md python/ovos-tools-client/README.md; do
        [ -f "$doc/$page" ] || fail "there is no $page"
    done
    for page in "$1"/bin/ovos-tools*; do
        page=$1/share/man/man1/$(basename "$page").1
        [ -s "$page" ] || [ -s "$page.gz" ] || fail "there is no manual page $page"
    done
    find "$doc" -name '*.md' | while read -r page; do
        grep -o '](\([^)]*\))' "$page" | sed 's/^](//; s/)$//; s/#.*//' | grep -v '^[a-z]*:' | grep -v '^$' | while read -r link; do
            [ -e "$(dirname "$page")/$link" ] || echo "$page links to $link"
        done
    done >"$work/dead"
    [ ! -s "$work/dead" ] || fail "dead links: $(cat "$work/dead")"
}

new_home() { mkdir -p "$1/run" && chmod 700 "$1/run"; }
# Those below replace the shell, so that a signal reaches the service.
# own HOME PROGRAM ...: without anything of this machine's environment.
own() {
    home_of=$1
    shift
    exec env -i HOME="$home_of" XDG_RUNTIME_DIR="$home_of/run" PATH=/usr/bin:/bin LANG=C.UTF-8 "$@"
}

archive() {
    what=$(basename "$packages"/ovos-tools-*-"$arch".tar.gz)
    new_home "$work/home-archive"
    tar -xzf "$packages/$what" -C "$work"
    documented "$work/ovos-tools"
    prove "$work/home-archive" own "$work/home-archive" "$work/ovos-tools/bin/ovos-tools"
    if [ "$(id -u)" != 0 ] || ! unshare --mount --pid --fork true 2>/dev/null; then
        scripts/skip.sh package-unit "a systemd user manager of its own needs root and mounts"
    elif [ ! -x /usr/lib/systemd/systemd ] && [ ! -x /lib/systemd/systemd ]; then
        scripts/skip.sh package-unit "systemd is not installed"
    else
        scripts/unit-check.sh "$work/ovos-tools/bin/ovos-tools"
    fi
    rm -r "$work/ovos-tools"
    no_trace "$work/home-archive"
}

# pip leaves empty folders, and Python the bytecode of pip.
files_of_venv() { (cd "$work/venv" && find . ! -type d ! -name '*.pyc' | sort); }

wheel() {
    what=$(basename "$packages"/ovos_tools-*_"$arch".whl)
    new_home "$work/home-wheel"
    python3 -m venv "$work/venv"
    files_of_venv >"$work/before"
    "$work/venv/bin/pip" install --quiet --no-index --no-deps --disable-pip-version-check "$packages/$what"
    entries=$("$work/venv/bin/python" -c 'from importlib.metadata import entry_points as e
print(*(p.name for g in ("opm.phal", "opm.agents.toolbox") for p in e(group=g)))')
    [ "$entries" = "ovos-phal-plugin-ovos-tools ovos-tools-toolbox" ] || fail "its entry points are: $entries"
    documented "$work/venv"
    prove "$work/home-wheel" own "$work/home-wheel" "$work/venv/bin/ovos-tools"
    "$work/venv/bin/pip" uninstall --quiet --yes --disable-pip-version-check ovos-tools
    files_of_venv >"$work/after"
    diff "$work/before" "$work/after" >&2 || fail "pip uninstall left files behind"
    no_trace "$work/home-wheel"
}

# inside PROGRAM ...: in the Debian, as root; mounts end with the program.
# shellcheck disable=SC2016 # expanded by the inner shell
inside() {
    exec unshare --mount sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$work/root" env -i \
        PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LANG=C.UTF-8 "$@"
}
as_root() { (inside "$@" >"$work/log" 2>&1) || fail "failed: $*"; }
as_user() { inside setpriv --reuid=1000 --regid=1000 --clear-groups env HOME=/home/ovos XDG_RUNTIME_DIR=/home/ovos/run "$@"; }

archive_inside() {
    what=$(basename "$packages"/ovos-tools-*-"$arch".tar.gz)
    tar -xzf "$packages/$what" -C "$work/root/opt"
    prove "$work/root/home/ovos" as_user /opt/ovos-tools/bin/ovos-tools
    rm -r "$work/root/opt/ovos-tools"
    no_trace "$work/root/home/ovos"
    # The emergency stop would last.
    rm -rf "$work/root/home/ovos/.local/state/ovos-tools"
}

# Fails where Debian's packages cannot be had.
bootstrapped() {
    [ ! -e "$bookworm/.ready" ] || return 0
    rm -rf "$bookworm"
    debootstrap --variant=minbase --arch="$debian" bookworm "$bookworm" >"$work/log" 2>&1 && touch "$bookworm/.ready"
}

debian_root() {
    cp -a "$bookworm" "$work/root"
    cp /etc/resolv.conf "$work/root/etc/resolv.conf"
    new_home "$work/root/home/ovos"
    chown -R 1000:1000 "$work/root/home/ovos"
}

deb() {
    what=$(cd "$packages" && echo ovos-tools*_"$debian".deb)
    for file in $what; do cp "$packages/$file" "$work/root/tmp"; done
    as_root apt-get update -qq
    # shellcheck disable=SC2046,SC2086 # a list of files
    as_root apt-get install -y --no-install-recommends $(printf '/tmp/%s ' $what)
    documented "$work/root/usr"
    prove "$work/root/home/ovos" as_user ovos-tools
    case $what in *gstreamer*) said 'gstreamer' 0 as_user ovos-tools check /usr/lib/ovos-tools/plugins/gstreamer.so ;; esac
    as_root apt-get purge -y 'ovos-tools*'
    left=$(find "$work/root" -xdev -name '*ovos[-_]tools*' ! -path "$work/root/home/*" ! -path "$work/root/tmp/*" ! -path "$work/root/var/log/*")
    [ -z "$left" ] || fail "left behind: $left"
    no_trace "$work/root/home/ovos"
}

if [ "$debian" = "$native" ]; then
    archive
    if [ -n "$(find "$packages" -name "*_$arch.whl")" ]; then wheel; fi
fi
what=debian
if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
    scripts/skip.sh package-debian "installing a .deb needs root and debootstrap: apt-get install -y debootstrap"
elif ! unshare --mount true 2>/dev/null; then
    scripts/skip.sh package-debian "mounting is not permitted here"
elif ! bootstrapped; then
    scripts/skip.sh package-debian "debootstrap failed: $(tail -n 1 "$work/log")"
else
    debian_root
    [ "$debian" = "$native" ] || archive_inside
    deb
fi
