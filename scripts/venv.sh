#!/bin/sh
# venv.sh [mavsdk|mcp]: fills .venv with the Python packages that the interop tests use, .venv-vendors with the vendors'
# types that exports are compared with, .venv-mavsdk with mavsdk_server, .venv-mcp with MCP clients and .venv-robots with
# the clients of robots' vendors (separately, because their dependencies may conflict); with an argument only that one.
# Does nothing if nothing changed.
set -eu
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}

# fill VENV FILE...: makes a new venv if one of the files changed; reads pip's arguments from standard input, one call
# per line.
fill() {
    venv=$1
    shift
    want=$(cat "$@" | cksum; pwd)
    [ "$(cat "$venv/.ready" 2>/dev/null || true)" = "$want" ] && return
    echo "venv: installing Python packages into $venv" >&2
    $python -m venv --clear "$venv"
    while read -r arguments; do
        # shellcheck disable=SC2086 # the line is a list of arguments
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check $arguments </dev/null
    done
    echo "$want" >"$venv/.ready"
}

if ! $python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    echo "skipped: Python packages need Python 3.10 or newer with venv: apt-get install -y python3 python3-venv" >&2
    exit 0
fi

# Two checkouts' tests may start this at once; the second one waits and then has nothing to do.
mkdir -p .cache
exec 9>.cache/venv.lock
if command -v flock >/dev/null; then flock 9; fi

for only in mavsdk mcp; do
    case ${1:-$only} in "$only") ;; *) continue ;; esac
    fill ".venv-$only" "tests/python/requirements-$only.txt" <<END
-r tests/python/requirements-$only.txt
END
done
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
