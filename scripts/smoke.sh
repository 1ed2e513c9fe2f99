#!/bin/sh
# smoke.sh: runs `make run` like a new user, in a temporary home, until the service has answered a call, all toolboxes that
# can be built are loaded and, if mavsdk_server is available, the simulated drone has reported its health. Prints both times
# and the memory.
set -eu
cd "$(dirname "$0")/.."

home=$(mktemp -d)
began=$(date +%s)
: >"$home/log"
program=${CARGO_TARGET_DIR:-target}/try/ovos-tools
toolchain=${CARGO_HOME:-$HOME/.cargo}
rustup=${RUSTUP_HOME:-$HOME/.rustup}
setsid env HOME="$home" CARGO_HOME="$toolchain" RUSTUP_HOME="$rustup" make run >"$home/log" 2>&1 &
service=$!
# The toolboxes write their state while they close, so the home is removed after they have ended.
end() {
    kill -- -$service 2>/dev/null || true
    tries=0
    while kill -0 $service 2>/dev/null; do
        [ $tries -lt 60 ] || { kill -9 -- -$service; echo "make run did not end after SIGTERM" >&2; exit 1; }
        tries=$((tries + 1))
        sleep 1
    done
    rm -rf "$home"
}
trap end EXIT
# Otherwise a signal would end the script and leave the service running.
trap 'exit 1' HUP INT TERM

# printed LINE: waits for a line that begins so. Building takes most of this time; the service itself starts quickly.
printed() {
    tries=0
    until grep -q "^$1" "$home/log"; do
        kill -0 $service 2>/dev/null && [ $tries -lt 1800 ] || { cat "$home/log"; echo "make run did not print: $1" >&2; exit 1; }
        tries=$((tries + 1))
        sleep 1
    done
}

printed 'Try: '
answer=$(HOME="$home" "$program" --json invoke add a=10 b=32)
case $answer in
    *'"result":{"result":42}'*) echo "make run: $answer, $(($(date +%s) - began)) s after the start" ;;
    *) cat "$home/log"; echo "make run answered: $answer" >&2; exit 1 ;;
esac
printed 'everything is built'
grep -E '^(loaded|built|not built|skipped|everything)' "$home/log"
# What is there from an earlier run is loaded at once, without a line.
for toolbox in robot drone gstreamer; do
    tools=$(HOME="$home" "$program" list --toolbox $toolbox --json | grep -o '"toolbox_id"' | wc -l)
    [ "$tools" -gt 9 ] || grep -q "^skipped: toolbox $toolbox" "$home/log" ||
        { cat "$home/log"; echo "make run: $toolbox has $tools tools" >&2; exit 1; }
done

# tree PID: the process and all that it has started, parents first.
tree() { echo "$1"; for child in $(cat "/proc/$1/task/"*/children 2>/dev/null); do tree "$child"; done; }
serving=$(tree $service | while read -r pid; do
    if [ "$(readlink "/proc/$pid/exe")" -ef "$program" ]; then echo "$pid"; break; fi
done)
# The goals (12 and 45 MB) are for what is optimized: `make bench`.
awk '/^RssAnon:/ {printf "memory, not optimized: %.1f MB private to the service, ", $2 / 976.6}' "/proc/$serving/status"
tree "$serving" | while read -r pid; do
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = mavsdk_server ] || cat "/proc/$pid/smaps_rollup" 2>/dev/null || true
done | awk '/^Pss:/ {kib += $2} END {printf "%.1f MB PSS with all toolboxes and simulators\n", kib / 976.6}'

if [ -e .venv-mavsdk/.ready ]; then
    tries=0
    until health=$(HOME="$home" "$program" --json invoke vehicle_health) &&
        case $health in *'"ok":true'*'"simulated":true'*) true ;; *) false ;; esac; do
        [ $tries -lt 30 ] || { cat "$home/log"; echo "the simulated drone answered: $health" >&2; exit 1; }
        tries=$((tries + 1))
        sleep 1
    done
    echo "make run: the simulated drone answers"
fi
