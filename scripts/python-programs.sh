#!/bin/sh
# python-programs.sh [TEST...]: runs the tests of programs/python, with the published OPM toolboxes (.venv-opm, made if needed).
# Arguments are those of unittest, such as `tests.test_guard`. PYTHON_PROGRAM is the interpreter for the author's module, if it
# is not that of .venv-opm.
set -eu
cd "$(dirname "$0")/.."

scripts/venv.sh opm
if [ ! -e .venv-opm/.ready ]; then
    exec scripts/skip.sh python "the tests of programs/python need .venv-opm (scripts/venv.sh opm)"
fi
python=$PWD/.venv-opm/bin/python
cd programs/python
if [ $# -eq 0 ]; then set -- discover --start-directory tests --top-level-directory .; fi
# Published packages import modules that Python deprecates.
exec "$python" -W ignore -m unittest "$@"
