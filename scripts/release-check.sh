#!/bin/sh
# release-check.sh [TARGET...]: the packages of a release, optimized and for glibc 2.28 (Debian 10 and later), each installed and
# tried in an empty place by scripts/package-check.sh. Without arguments for x86_64, aarch64 and armv7; about half an hour each on
# two cores. The toolbox gstreamer is packed for x86_64 alone, because it is built with the libraries of this machine.
set -eu
cd "$(dirname "$0")/.."

profile=${PROFILE:-release}
toolboxes="toolboxes/math toolboxes/robot toolboxes/ros toolboxes/drone"
target=${CARGO_TARGET_DIR:-target}
export GLIBC_MAX=2.28
scripts/venv.sh cross
PATH=$PWD/.venv-cross/bin:$PATH
export PATH

for triple in ${*:-x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu armv7-unknown-linux-gnueabihf}; do
    case $triple in
    x86_64-*) zig=x86_64-linux-gnu debian=amd64 qemu= cross= ;;
    aarch64-*) zig=aarch64-linux-gnu debian=arm64 qemu=qemu-aarch64-static cross=aarch64-linux-gnu- ;;
    armv7-*) zig=arm-linux-gnueabihf debian=armhf qemu=qemu-arm-static cross=arm-linux-gnueabihf- ;;
    *) echo "no packages are made for $triple" >&2; exit 1 ;;
    esac
    for needed in rustup debootstrap ${qemu:+$qemu "${cross}objcopy"}; do
        command -v "$needed" >/dev/null || { echo "$triple: $needed is not installed" >&2; exit 1; }
    done
    if [ -n "$qemu" ] && [ ! -e "/proc/sys/fs/binfmt_misc/${qemu%-static}" ]; then
        echo "$triple: this kernel does not run its programs, so its packages could not be tried. First:" >&2
        echo "    sudo mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc; sudo systemctl restart systemd-binfmt" >&2
        exit 1
    fi
    rustup target add "$triple"
    export PLUGINS="$target/release-plugins/$triple"
    rm -rf "$PLUGINS"
    build="cargo zigbuild --target $triple.$GLIBC_MAX"
    # shellcheck disable=SC2086 # words on purpose
    TARGET=$triple CARGO_BUILD=$build CC="python -m ziglang cc -target $zig.$GLIBC_MAX" \
        scripts/plugins.sh "$profile" "$PLUGINS" $toolboxes
    if [ "$debian" = amd64 ]; then scripts/plugins.sh "$profile" "$PLUGINS" toolboxes/gstreamer; fi
    # shellcheck disable=SC2046,SC2086 # words on purpose
    $build --profile "$profile" --locked --package ovos-tools $(scripts/programs.sh --package)

    RUNNER=${qemu:+$qemu -L /usr/${cross%-}} scripts/package.sh "$profile" "$triple"
    scripts/package-check.sh "$debian"
done
