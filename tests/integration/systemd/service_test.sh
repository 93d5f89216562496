#!/usr/bin/env bash
# Runs inside the container, under a real systemd: the service starts and says it is ready, mounts
# are seen from PID 1, survive a watchdog kill, a restart and a stop; a mount helper has a scope of
# its own, which outlives the service.
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
# systemctl returns when the signal is sent; that it reloads the service may say only later.
for _ in $(seq 200); do state=$(property ActiveState); [[ $state == active ]] && break; sleep 0.05; done
expect "state after a reload" "$state" active

systemctl stop volumed || fail "stop"
pod_mounts >/tmp/after
diff /tmp/before /tmp/after || fail "a stop took mounts away"
echo "ok: a stop leaves the mounts"

systemctl start volumed || fail "start again"
# The records may still be being loaded.
for _ in $(seq 100); do volumectl delete pod web && break; sleep 0.1; done
volumectl wait web --for gone --timeout 60 || { volumectl explain web; fail "the pod does not leave"; }
expect "mounts of the pod" "$(pod_mounts | wc -l)" 0
expect "directories of pods" "$(find $root/pods -mindepth 1 | wc -l)" 0

cat >/sbin/mount.nfs <<'HELPER'
#!/bin/sh
# There is no server, but a daemon stays behind, as mount.nfs leaves rpc.statd.
if [ ! -e /run/helper-daemon ]; then
  sleep 1000 >/dev/null 2>&1 &
  echo $! >/run/helper-daemon
  cp /proc/self/cgroup /run/helper-cgroup.new
  mv /run/helper-cgroup.new /run/helper-cgroup
fi
exit 32
HELPER
chmod 755 /sbin/mount.nfs
cat >/tmp/far.yaml <<'POD'
apiVersion: v1
kind: Pod
metadata: {name: far, namespace: default, uid: 6f0c1f0a-5d0e-4c5b-9d55-0d7a4c2b9e12}
spec:
  containers: [{name: main, image: busybox, volumeMounts: [{name: data, mountPath: /data}]}]
  volumes: [{name: data, nfs: {server: 192.0.2.1, path: /export}}]
POD
volumectl apply -f /tmp/far.yaml
for _ in $(seq 400); do [[ -e /run/helper-cgroup ]] && break; sleep 0.05; done
scope=$(sed -n 's#.*/\(volumed-mount-[0-9a-f-]*\.scope\)$#\1#p' /run/helper-cgroup | sort -u)
[[ -n $scope ]] || fail "the helper ran in $(cat /run/helper-cgroup)"
expect "the helper's scope" "$(systemctl is-active "$scope")" active
volumectl delete pod far
volumectl wait far --for gone --timeout 60 || { volumectl explain far; fail "the nfs pod does not leave"; }
systemctl stop volumed || fail "stop beside a scope"
expect "the scope after the service" "$(systemctl is-active "$scope")" active
kill "$(cat /run/helper-daemon)"
for _ in $(seq 200); do systemctl is-active -q "$scope" || break; sleep 0.05; done
expect "the scope after its daemon" "$(systemctl is-active "$scope" || true)" inactive
echo "ok: all"
