#!/bin/sh
# soak.sh [MINUTES] [SEED]: random calls, reloads, crashes, bus restarts and stops for MINUTES (20). Prints the
# resources of the service and its children at the start and at the end, and fails on a leak or on a call that is not
# answered exactly once. Before that, ten thousand sessions of clients of the MCP door, in about five minutes.
set -eu
cd "$(dirname "$0")/.."

minutes=${1:-20}
seed=${2:-$(date +%s)}
cargo build --locked --quiet --package ovos-tools-mcp
SESSIONS=10000 SESSIONS_SEED=$seed cargo test --locked --quiet --test doors mcp::sessions -- --nocapture
SOAK_SECONDS=$((minutes * 60)) SOAK_SEED=$seed cargo test --locked --quiet --test soak -- --nocapture
