#!/bin/sh
# soak.sh [MINUTES] [SEED]: calls, reloads, crashes, bus restarts and stops, mixed at random, for MINUTES (20). Prints what the
# service and its children hold at the start and at the end, and fails on a leak or a call that is not answered once.
set -eu
cd "$(dirname "$0")/.."

minutes=${1:-20}
seed=${2:-$(date +%s)}
SOAK_SECONDS=$((minutes * 60)) SOAK_SEED=$seed cargo test --locked --quiet --test soak -- --nocapture
