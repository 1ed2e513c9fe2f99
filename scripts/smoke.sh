#!/bin/sh
# smoke.sh: runs `make run` like a new user, in a temporary home, until the service has answered a call and, if
# mavsdk_server is available, the simulated drone has reported its health.
set -eu
cd "$(dirname "$0")/.."

home=$(mktemp -d)
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

# The build takes most of this time; the service itself starts quickly.
tries=0
until grep -q '^Try: ' "$home/log"; do
    kill -0 $service 2>/dev/null && [ $tries -lt 1800 ] || { cat "$home/log"; echo "make run did not come up" >&2; exit 1; }
    tries=$((tries + 1))
    sleep 1
done
answer=$(HOME="$home" "${CARGO_TARGET_DIR:-target}/release/ovos-tools" --json invoke add a=10 b=32)
case $answer in
    *'"result":{"result":42}'*) echo "make run: $answer" ;;
    *) cat "$home/log"; echo "make run answered: $answer" >&2; exit 1 ;;
esac
if [ -e .venv-mavsdk/.ready ]; then
    tries=0
    until health=$(HOME="$home" "${CARGO_TARGET_DIR:-target}/release/ovos-tools" --json invoke vehicle_health) &&
        case $health in *'"ok":true'*'"simulated":true'*) true ;; *) false ;; esac; do
        [ $tries -lt 30 ] || { cat "$home/log"; echo "the simulated drone answered: $health" >&2; exit 1; }
        tries=$((tries + 1))
        sleep 1
    done
    echo "make run: the simulated drone answers"
fi
