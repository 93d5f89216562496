# The shipped unit on a real systemd with a kernel of its own: ready, watchdog, restart, reload, stop;
# the mounts of pods stay through all of it, and PID 1 sees them.
# needs: product
. /lab/lib/lab.sh
. /lab/lib/volumed.sh
uid=11111111-0000-4000-8000-000000000001
data=$(volume_path $uid data)
restarted() { [[ $(property NRestarts) == "$1" && $(property SubState) == running ]]; }
reloaded() { journalctl -b -u volumed | grep 'configuration reloaded' | grep -q deadline-mount; }
same_mounts() {
  [[ $(pod_mounts) == "$mounts" ]] || fail "mounts moved, $1: $(diff <(pod_mounts) <(echo "$mounts"))"
  echo "ok: the same mounts, $1"
}

disk=$(plug virtio-blk data 128)
install_volumed
mkdir -p /etc/systemd/system/volumed.service.d
printf '[Service]\nWatchdogSec=5s\n' >/etc/systemd/system/volumed.service.d/lab.conf
must systemctl daemon-reload
start_volumed
expect "state after start (Type=notify)" "$(property ActiveState)/$(property SubState)" active/running
expect "the socket" "$(stat -c '%G %a' /run/volumed/volumed.sock)" "volumed 660"

say "a pod with a disk, and one with all of the node's own volume types"
{ local_volume data "$disk" ext4; pod app $uid data; } >/etc/volumed/manifests/app.yaml
examples=/usr/local/share/doc/volumed/examples
must volumectl apply -f $examples/objects.yaml -f $examples/pod.yaml
wait_ready app
wait_ready web
mounts=$(pod_mounts)
# The disk, the pod's bind of it; four tmpfs and two subPaths of the other pod.
expect "mounts that PID 1 sees" "$(wc -l <<<"$mounts")" 8
echo "written before everything" >"$data/note"

say "the watchdog"
kill -STOP "$(property MainPID)"
must wait_until 60 restarted 1
expect "systemd's word for it" "$(journalctl -b -u volumed | grep -c 'Watchdog timeout')" 1
wait_ready app
same_mounts "after the watchdog's kill"

say "restart, reload, stop"
must systemctl restart volumed
wait_ready app
same_mounts "after a restart"
echo 'deadline-mount: 33s' >/etc/volumed/config.yaml
must systemctl reload volumed
must wait_until 20 reloaded
expect "state after a reload" "$(property ActiveState)" active
must systemctl stop volumed
same_mounts "after a stop"
expect "data, without an agent" "$(cat "$data/note")" "written before everything"

say "a manifest of another user that is written by another name is not read half-way"
start_volumed
map() { printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n---\n' "$1"; }
has_map() { volumectl get configmaps -o json | grep -q "\"$1\""; }
mkdir -p /srv/writers
{ map one; map two; } >/srv/writers/maps.yaml
chown nobody /srv/writers/maps.yaml
ln /srv/writers/maps.yaml /etc/volumed/manifests/maps.yaml
must wait_until 20 has_map two
exec 7>/srv/writers/maps.yaml
map one >&7
touch /etc/volumed/manifests/maps.yaml
sleep 13 # longer than removal-settle
must has_map two
map three >&7
exec 7>&-
must wait_until 60 has_map three
rm /etc/volumed/manifests/maps.yaml

say "a new agent lets the pods go"
# The removal is evidence only if this agent has seen the manifest.
wait_ready app
rm /etc/volumed/manifests/app.yaml
must volumectl delete pod web
wait_gone web
wait_gone app
must wait_until 30 nothing_mounted
expect "directories of pods" "$(find $volumed_root/pods -mindepth 1 | wc -l)" 0
say "up for $(now) s"
