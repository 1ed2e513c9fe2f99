#!/bin/sh
# soak.sh [MINUTES]: repeats the fault tests (bus restarts, stops, reloads under load, shutdowns, crashes of toolboxes) for that
# long, and the engine's properties with many more cases. Every round has fresh seeds where a test draws them.
set -eu
cd "$(dirname "$0")/.."

minutes=${1:-20}
end=$(($(date +%s) + minutes * 60))
rounds=0
PROPTEST_CASES=5000 cargo test --locked --quiet --test engine_properties
while [ "$(date +%s)" -lt "$end" ]; do
    cargo test --locked --quiet --test 'service_*'
    CRASHES=200 MOMENTS=50 cargo test --locked --quiet --test process_isolation
    rounds=$((rounds + 1))
    echo "soak: $rounds rounds"
done
