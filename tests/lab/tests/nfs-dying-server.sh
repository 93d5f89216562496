# An NFS server dies under eight volumes: everything else goes on, all eight are Stuck and say why, and
# by themselves no longer when it returns; nothing is unmounted lazily meanwhile.
# needs: product
. /lab/lib/lab.sh
. /lab/lib/volumed.sh
. /lab/lib/server.sh
. /lab/lib/nfs.sh
uid() { printf '44444444-0000-4000-8000-%012d' "$1"; }
stuck() { volumectl get volumes | grep -c Stuck || true; }
stuck_are() { [[ $(stuck) == "$1" ]]; }
stuck_again() { stuck_are 7 || stuck_are 6; }  # p7 may be gone already
metric() { curl -s http://127.0.0.1:9788/metrics | grep -F "$1" || true; }
# is_mounted NUMBER: at its place, as PID 1 sees it.
is_mounted() { grep -qF " $(nfs_path "$(uid "$1")") " /proc/1/mountinfo; }

server_up
nfs_start
install_volumed
configure "nfs-unmount-timeout: 15s"
start_volumed
for i in 1 2 3 4 5 6 7 8; do
  mkdir -p /srv/lab/v$i
  nfs_pod p$i "$(uid $i)" $server_address /srv/lab/v$i >/etc/volumed/manifests/p$i.yaml
done
for i in 1 2 3 4 5 6 7 8; do wait_ready p$i; done
for i in 1 2 3 4 5 6 7 8; do echo "of p$i" >"$(nfs_path "$(uid $i)")/note"; done
sync
expect "mounts of NFS" "$(grep -c ' - nfs4 ' /proc/1/mountinfo)" 8
# A container's process, which uses the volume of p8.
(cd "$(nfs_path "$(uid 8)")" && exec sleep 600) &
holder=$!

say "the server dies"
server_cut
from=$(now)
cat >/etc/volumed/manifests/other.yaml <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: other, uid: 55555555-0000-4000-8000-000000000001}
spec:
  containers: [{name: main, image: busybox, volumeMounts: [{name: tmp, mountPath: /tmp}]}]
  volumes: [{name: tmp, emptyDir: {}}]
YAML
wait_ready other 10
say "another pod was ready $(since "$from") s after the server's death"
wait_until 30 stuck_are 8 || fail "after 30 s $(stuck) of 8 are Stuck: $(volumectl get volumes)"
say "all 8 volumes are Stuck $(since "$from") s after the server's death"
expect_text "explain says why" "$(volumectl explain p3)" "NFS server $server_address does not answer since"
expect_text "so do events" "$(volumectl events p3)" VolumeStuck
expect "the metric" "$(metric 'volumed_fault_domain_up{domain="nfs:')" 'volumed_fault_domain_up{domain="nfs:10.77.0.2"} 0'

say "two pods are deleted meanwhile, and the agent is restarted"
rm /etc/volumed/manifests/p[78].yaml
sleep 3
from_restart=$(now)
must systemctl restart volumed
wait_ready other 20
say "the new agent has its other pod ready $(since "$from_restart") s after the restart"
for i in 1 2 3 4 5 6; do is_mounted $i || fail "p$i is not mounted any more"; done
is_mounted 8 || fail "p8, which a process uses, was unmounted"
wait_until 30 stuck_again || say "Stuck after the restart: $(stuck)"
say "p7, which nobody uses, is $(is_mounted 7 && echo mounted still || echo unmounted)"
kill $holder
wait $holder || true

say "the server returns"
server_join
from=$(now)
wait_until 90 stuck_are 0 || fail "still Stuck: $(volumectl get volumes)"
say "nothing is Stuck any more $(since "$from") s after the server's return"
for i in 1 2 3 4 5 6; do wait_ready p$i; done
expect "what p1 wrote" "$(timeout 20 cat "$(nfs_path "$(uid 1)")/note")" "of p1"
wait_gone p7 60
wait_gone p8 60
say "the deleted pods are gone $(since "$from") s after the server's return"
expect "their data" "$(cat /srv/lab/v8/note)" "of p8"
rm /etc/volumed/manifests/*.yaml
for i in 1 2 3 4 5 6; do wait_gone p$i; done
must wait_until 30 nothing_mounted
expect "mounts of NFS" "$(grep -c ' - nfs4 ' /proc/1/mountinfo || true)" 0
say "all was gone $(since "$from") s after the server's return"
say "up for $(now) s"
