#!/bin/sh
# Fills .venv with the Python packages the interop tests talk to. Runs in no time when nothing changed.
set -eu
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
stamp=.venv/.ready
want=$(cat tests/python/requirements.txt tests/python/constraints.txt tests/python/reference_toolbox/pyproject.toml \
    | cksum; pwd)

[ "$(cat $stamp 2>/dev/null || true)" = "$want" ] && exit 0

if ! $python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    echo "skipped: .venv needs Python 3.10 or newer with venv: apt-get install -y python3 python3-venv" >&2
    exit 0
fi

# Two checkouts' tests may start this at once; the second waits and then finds the work done.
mkdir -p .cache
exec 9>.cache/venv.lock
if command -v flock >/dev/null; then flock 9; fi
[ "$(cat $stamp 2>/dev/null || true)" = "$want" ] && exit 0

echo "venv: installing the Python packages of the interop tests into .venv" >&2
$python -m venv --clear .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check \
    -r tests/python/requirements.txt -c tests/python/constraints.txt
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
    -e tests/python/reference_toolbox
echo "$want" >$stamp
