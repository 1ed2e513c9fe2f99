#!/bin/sh
# run.sh: builds the service with its small toolboxes and serves. The large toolboxes and the doors are built meanwhile; each
# toolbox is loaded when it is ready, and the console is started. Ends with the service.
set -eu
cd "$(dirname "$0")/.."

began=${BEGAN:-$(date +%s)}
target=${CARGO_TARGET_DIR:-target}/try
if [ -t 2 ]; then quiet=; else quiet=--quiet; fi

after() { echo "$(($(date +%s) - began)) s after the start"; }

# offer NAME: builds a toolbox; where it changed, loads it and says so.
offer() {
    before=$(cksum "plugins/$1.so" 2>/dev/null || true)
    scripts/plugins.sh try plugins "toolboxes/$1" >/dev/null || return 0
    [ "$before" != "$(cksum "plugins/$1.so" 2>/dev/null)" ] || return 0
    "$target/ovos-tools" reload >/dev/null || return 0
    tools=$("$target/ovos-tools" list --toolbox "$1" --json | grep -o '"toolbox_id"' | wc -l)
    echo "loaded $1: $tools tools, $(after)"
}

if [ "${1:-}" = the-rest ]; then
    offer robot
    # What drives every vehicle; the toolbox looks for it when it is opened.
    make --no-print-directory mavsdk
    offer drone
    offer gstreamer
    # shellcheck disable=SC2046 # words on purpose
    cargo build $quiet --profile try --locked $(scripts/programs.sh --package) || true
    echo "everything is built, $(after)"
    # The page in a browser; it prints its address.
    exec "$target/ovos-tools" console
fi

cargo build $quiet --profile try --locked --package ovos-tools --package hello --package math
scripts/plugins.sh try plugins examples/hello examples/hello_c toolboxes/math >/dev/null
echo "built the service, $(after)"
"$target/ovos-tools" serve --embedded-bus auto --simulators --plugins plugins &
service=$!
# A group of its own, so that it ends with its compilers.
BEGAN=$began setsid scripts/run.sh the-rest &
rest=$!
trap 'kill $service 2>/dev/null || true' HUP INT TERM
while
    wait $service && result=0 || result=$?
    # A signal ends the wait before the service has ended.
    kill -0 $service 2>/dev/null
do :; done
kill -- -$rest 2>/dev/null || true
exit $result
