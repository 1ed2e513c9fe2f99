#!/bin/sh
# The client of the conformance suite: signs in at the server at the URL, which comes last, and lists its tools. $MOUNTS is the program,
# $TOOLS the service. Where a scenario has a tool that wants more, the tool is called, and the person signs in again.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for url in "$@"; do :; done
cat >"$folder/mycroft.conf" <<END
{"PHAL": {"ovos-phal-plugin-tools": {"service": {
  "state_dir": "$folder/state", "mounts": {"suite": {"url": "$url"}}
}}}}
END
context() { printf '%s' "${MCP_CONFORMANCE_CONTEXT:-}" | sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p"; }
client=$(context client_id)
SECRET=$(context client_secret)
export SECRET
scenario=${MCP_CONFORMANCE_SCENARIO:-}
# The suite expects this address of the client's metadata.
[ "$scenario" != auth/basic-cimd ] || client=https://conformance-test.local/client-metadata.json
sign_in() {
    "$MOUNTS" sign-in suite --config "$folder/mycroft.conf" ${client:+--client-id "$client"} \
        ${SECRET:+--client-secret-env SECRET} ${issuer:+--issuer "$issuer"} </dev/null
}
issuer=
# A secret is for one issuer. The suite does not name it; the refusal does.
[ -z "$SECRET" ] || issuer=$(sign_in 2>&1 | sed -n 's/.*--issuer \([^ ]*\)$/\1/p')
sign_in
[ "$scenario" = auth/scope-step-up ] || exit 0

"$TOOLS" bus --port "$PORT" >"$folder/bus.log" 2>&1 &
bus=$!
"$TOOLS" --bus "ws://127.0.0.1:$PORT/core" --config "$folder/mycroft.conf" serve >"$folder/service.log" 2>&1 &
service=$!
trap 'kill $service $bus; wait; rm -rf "$folder"' EXIT
call() { "$TOOLS" --bus "ws://127.0.0.1:$PORT/core" invoke suite__test-tool 2>&1 || true; }
tries=0
until call | tee "$folder/said" | grep -q "mounts sign-in suite"; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || { cat "$folder/said" "$folder/service.log" >&2; exit 1; }
    sleep 0.1
done
sign_in
call
