#!/usr/bin/env bash
# Runs inside the container, under a real systemd: the service starts and says it is ready, mounts
# are seen from PID 1, survive a watchdog kill, a restart and a stop.
set -euo pipefail
unset VOLUMED_SOCKET
uid=6f0c1f0a-5d0e-4c5b-9d55-0d7a4c2b9e11
root=/var/lib/volumed
fail() {
  echo "FAILED: $*"
  systemctl --no-pager status volumed || true
  journalctl --no-pager -u volumed -n 60 || true
  exit 1
}
expect() { [[ "$2" == "$3" ]] || fail "$1: expected '$3', got '$2'"; echo "ok: $1: $2"; }
pod_mounts() { awk -v root="$root/pods/" 'index($5, root) { print $1, $5 }' /proc/1/mountinfo | sort; }
property() { systemctl show -p "$1" --value volumed; }
systemd-sysusers /etc/sysusers.d/volumed.conf
systemd-tmpfiles --create /etc/tmpfiles.d/volumed.conf
mkdir -p /etc/systemd/system/volumed.service.d
printf '[Service]\nWatchdogSec=2s\n' >/etc/systemd/system/volumed.service.d/test.conf
: >/etc/volumed/config.yaml
systemctl daemon-reload

systemctl start volumed || fail "start"
expect "state after start (Type=notify)" "$(property ActiveState)/$(property SubState)" active/running
expect "group of the socket" "$(stat -c '%G %a' /run/volumed/volumed.sock)" "volumed 660"

volumectl apply -f /lab/examples/objects.yaml -f /lab/examples/pod.yaml
volumectl wait web --for ready --timeout 20 || fail "the pod is not ready"
pod_mounts >/tmp/before
# Four tmpfs and two subPaths, each once: "/" is shared here, and must not mirror them.
expect "mounts of the pod that PID 1 sees" "$(wc -l </tmp/before)" 6

kill -STOP "$(property MainPID)"
for _ in $(seq 400); do [[ $(property NRestarts) -ge 1 && $(property SubState) == running ]] && break; sleep 0.05; done
expect "restarts after the watchdog" "$(property NRestarts)" 1
expect "state after the watchdog" "$(property ActiveState)" active
volumectl wait web --for ready --timeout 20 || fail "not ready after the watchdog"
pod_mounts >/tmp/after
diff /tmp/before /tmp/after || fail "mounts moved"
echo "ok: the watchdog's kill left the mounts as they were"

systemctl restart volumed || fail "restart"
volumectl wait web --for ready --timeout 20 || fail "not ready after a restart"
pod_mounts >/tmp/after
diff /tmp/before /tmp/after || fail "mounts moved over a restart"
echo "ok: a restart keeps the mounts"

systemctl reload volumed || fail "reload"
expect "state after a reload" "$(property ActiveState)" active

systemctl stop volumed || fail "stop"
pod_mounts >/tmp/after
diff /tmp/before /tmp/after || fail "a stop took mounts away"
echo "ok: a stop leaves the mounts"

systemctl start volumed || fail "start again"
volumectl delete pod web
volumectl wait web --for gone --timeout 60 || { volumectl explain web; fail "the pod does not leave"; }
expect "mounts of the pod" "$(pod_mounts | wc -l)" 0
expect "directories of pods" "$(find $root/pods -mindepth 1 | wc -l)" 0
echo "ok: all"
