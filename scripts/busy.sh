#!/bin/sh
# busy.sh [-n TIMES] drone|robot|service | COMMAND...: runs a command TIMES (3) beside four busy loops and says how each
# run ended. Tests that depend on the speed of the machine fail here.
#
# Build for a COMMAND first, because a build beside busy loops takes long: `make testbed && cargo nextest run --no-run`.
# A group is a suite with timers; it is built before the loops begin. With nextest it is a part of what `make test`
# builds.
set -eu
cd "$(dirname "$0")/.."

times=3
if [ "${1:-}" = -n ]; then
    times=$2
    shift 2
fi
case "${1:-}" in
drone)
    tests='-p drone -p px4-sim'
    filter='package(drone) + package(px4-sim)'
    ;;
robot)
    tests='-p robot -p feetech-sim'
    filter='package(robot) + package(feetech-sim)'
    ;;
service)
    tests='-p ovos-tools-engine -p ovos-tools-bus -p ovos-tools --test service --test process_isolation'
    filter='package(ovos-tools-engine) + package(ovos-tools-bus) + (package(ovos-tools) & binary(/^(service|process_isolation)$/))'
    ;;
'') sed -n '2s/^# //p' "$0" >&2; exit 2 ;;
*) tests= ;;
esac
if [ -n "$tests" ]; then
    if command -v cargo-nextest >/dev/null; then
        # With --no-run nextest accepts neither a number of test threads nor --no-fail-fast.
        env -u NEXTEST_TEST_THREADS cargo nextest run --locked --no-run
        set -- cargo nextest run --locked --no-fail-fast -E "$filter"
    else
        # shellcheck disable=SC2086 # words on purpose
        set -- cargo test --locked --no-fail-fast $tests
        "$@" --no-run
    fi
fi

# A loop checks frequently whether this script is still running, so that it ends with it in any case.
loop() {
    while kill -0 $$ 2>/dev/null; do
        turns=0
        while [ $turns -lt 100000 ]; do turns=$((turns + 1)); done
    done
}
loops=
for _ in 1 2 3 4; do
    loop &
    loops="$loops $!"
done
# shellcheck disable=SC2086 # words on purpose
trap 'kill $loops 2>/dev/null || true' EXIT

number=0 results= failed=0
while [ $number -lt "$times" ]; do
    number=$((number + 1))
    begun=$(date +%s)
    said=passed
    "$@" || { said="failed ($?)" failed=1; }
    results="$results\nrun $number of $times: $said after $(($(date +%s) - begun)) s"
done
printf "beside four busy loops:$results\n"
exit $failed
