#!/bin/sh
# unit-check.sh PROGRAM [ARGUMENT...]: what `PROGRAM install-service ARGUMENT...` writes, under a real systemd user manager: the
# unit is active once the service is ready, tools are called, an emergency stop outlives a kill and the restart by systemd, and
# `--remove` leaves no process and no unit. The manager has a /run, a home and process numbers of its own. Needs root and
# systemd, whether or not this machine was started by it.
set -eu

if [ "$1" != inside ]; then
    exec unshare --mount --pid --fork --kill-child --mount-proc "$0" inside "$@"
fi

program=$2
shift 2
manager=/usr/lib/systemd/systemd
[ -x "$manager" ] || manager=/lib/systemd/systemd
mount -t tmpfs -o mode=755 tmpfs /run
# A user manager refuses to run where no system manager seems to.
mkdir -p /run/systemd/system /run/user/0 /run/home/.config/mycroft
chmod 700 /run/user/0
# Neither the session's bus nor its settings are this test's.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >/run/home/.config/mycroft/mycroft.conf <<END
{"websocket": {"host": "127.0.0.1", "port": $port},
 "PHAL": {"ovos-phal-plugin-tools": {"service": {"embedded_bus": "always"}}}}
END
ours() { env -i HOME=/run/home XDG_RUNTIME_DIR=/run/user/0 PATH=/usr/bin:/bin LANG=C.UTF-8 "$@"; }
ours "$manager" --user --log-target=console >/run/manager.log 2>&1 &

fail() {
    echo "$program under systemd: $1; the last answer: $(cat /run/said)" >&2
    ours systemctl --user status --no-pager ovos-tools >&2 || true
    cat /run/home/.local/state/mycroft/*tools*.log >&2 2>/dev/null || true
    exit 1
}

# until_it WHAT COMMAND...: the command succeeds within 30 s.
until_it() {
    what=$1 tries=0
    shift
    until "$@" >/dev/null 2>&1; do
        [ $tries -lt 300 ] || fail "not $what"
        tries=$((tries + 1))
        sleep 0.1
    done
}

main_pid() { ours systemctl --user show --property MainPID --value ovos-tools; }
# restarted PID: systemd has started another process, and it is ready.
restarted() { [ "$(main_pid)" != "$1" ] && ours systemctl --user is-active ovos-tools; }
waves() { ours "$program" invoke wave arm=left --timeout 60 >/run/said 2>&1; }
# refuses: motion is refused by the emergency stop.
refuses() { ! waves && grep -q EmergencyStop /run/said; }

until_it "a running manager" ours systemctl --user is-system-running
ours "$program" install-service "$@" >/run/said 2>&1 || fail "install-service failed"
until_it "active" ours systemctl --user is-active ovos-tools
# A simulator is off until it is asked for.
ours "$program" enable robot >/run/said 2>&1 || fail "enable robot failed"
until_it "waving" waves
ours "$program" stop >/run/said 2>&1 || fail "the emergency stop failed"
before=$(main_pid)
kill -KILL "$before"
until_it "restarted after a kill" restarted "$before"
until_it "refused: the emergency stop did not outlive a kill" refuses
ours "$program" install-service --remove >/run/said 2>&1 || fail "install-service --remove failed"
[ ! -e /run/home/.config/systemd/user/ovos-tools.service ] || fail "the unit was not removed"
for running in /proc/[0-9]*/exe; do
    [ "$(readlink "$running")" != "$program" ] || fail "left running: $(tr '\0' ' ' <"${running%exe}cmdline")"
done
echo "proved install-service under $("$manager" --version | head -n 1)"
