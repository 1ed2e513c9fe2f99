#!/bin/sh
# fuzz.sh [RUNS] [TARGET...]: libFuzzer with AddressSanitizer on each target of fuzz/, one after the other, RUNS
# (10000000) inputs each. New inputs go to fuzz/found/, findings to fuzz/artifacts/. Needs a nightly toolchain and
# cargo-fuzz (cargo install cargo-fuzz). `cargo test --lib fuzz` replays and mutates the stored corpus on stable, too.
set -eu
cd "$(dirname "$0")/.."

runs=${1:-10000000}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- arguments bus_frames envelope graph host_frames manifest tools
target=${CARGO_TARGET_DIR:-fuzz/target}

for name in "$@"; do
    mkdir -p "fuzz/found/$name"
    echo "fuzz: $name, $runs inputs"
    nice cargo +nightly fuzz run --target-dir "$target" "$name" "fuzz/found/$name" "fuzz/corpus/$name" -- \
        -runs="$runs" -max_len=4096 -timeout=20 -rss_limit_mb=2048 -malloc_limit_mb=512 -dict=fuzz/json.dict \
        -print_final_stats=1 2>"fuzz/found/$name.log" || { tail -40 "fuzz/found/$name.log"; exit 1; }
    grep -E '^stat::|^Done' "fuzz/found/$name.log"
done
