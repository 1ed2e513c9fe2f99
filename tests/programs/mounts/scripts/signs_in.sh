#!/bin/sh
# The client of the conformance suite: signs in at the server at the URL, which comes last, and lists its tools. $MOUNTS is the program.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for url in "$@"; do :; done
cat >"$folder/mycroft.conf" <<END
{"PHAL": {"ovos-phal-plugin-tools": {"service": {
  "state_dir": "$folder/state", "mounts": {"suite": {"url": "$url"}}
}}}}
END
client=$(printf '%s' "${MCP_CONFORMANCE_CONTEXT:-}" | sed -n 's/.*"client_id": *"\([^"]*\)".*/\1/p')
"$MOUNTS" sign-in suite --config "$folder/mycroft.conf" ${client:+--client-id "$client"} </dev/null
