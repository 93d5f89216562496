# iSCSI volumes by two portals, with the real multipathd, under the shipped unit: a path that dies
# and returns under a pod that writes, an agent that is killed meanwhile, a LUN that grows, a raw block
# volume, a volume that leaves while a path is dead, and a node without a multipath device. No map, no
# disk, no session and no record of open-iscsi is left.
# needs: product
. /lab/lib/lab.sh
. /lab/lib/server.sh
. /lab/lib/iscsi.sh
. /lab/lib/volumed.sh
. /lab/lib/grow.sh
uid=44444444-0000-4000-8000-00000000000
second_address=10.78.0.2
cat >/etc/multipath.conf <<CONF
defaults {
  user_friendly_names no
  find_multipaths yes
  polling_interval 1
  max_polling_interval 2
  no_path_retry 20
}
CONF
install_volumed
server_up
server_cable second 10.78.0.1 $second_address
iscsi_target_start 96
iscsi_target_lun 2 64
iscsi_target_lun 3 64
iscsi_target_chap robot canary-4711
iscsi_initiator 3
must modprobe dm_multipath
must systemctl restart multipathd
iscsi_secret chap robot canary-4711 >/etc/volumed/manifests/chap.yaml
start_volumed

sessions() { iscsiadm -m session 2>/dev/null | wc -l; }
disks() { lsblk -dnro NAME,TRAN | grep -c iscsi || true; }
maps() { dmsetup ls --target multipath 2>/dev/null | grep -vc "No devices" || true; }
# paths [STATE]: of the only map, as device-mapper has them.
paths() { dmsetup status --target multipath | grep -oE '[0-9]+:[0-9]+ [AF] ' | grep -c " ${1:-[AF]} " || true; }
has_paths() { [[ $(paths A) == "$1" ]]; }
nothing_left() {
  [[ $(sessions) == 0 && $(disks) == 0 && $(maps) == 0 && -z $(multipath -ll) ]] &&
    ! find $volumed_root/plugins/kubernetes.io/iscsi -name 'iscsi.json' | grep -q .
}
place() { echo "$volumed_root/pods/$uid$1/volumes/kubernetes.io~iscsi/$2"; }
grow_place() { place 1 lun1; }  # of whom grow.sh speaks here
grow_source() { findmnt -nro SOURCE "$(grow_place)"; }
volume() { iscsi_volume "$1" "$2" chap "${3:-Filesystem}" $second_address; }

say "two portals, one multipath device"
{ volume lun1 1; pod first ${uid}1 lun1; } >/etc/volumed/manifests/first.yaml
wait_ready first 90
say "ready at $(now) s"
volumectl explain first
expect "sessions" "$(sessions)" 2
expect "disks" "$(disks)" 2
expect "paths of the map" "$(paths)" 2
expect "what is mounted" "$(lsblk -dnro TYPE "$(grow_source)")" mpath
explain() { volumectl explain first; }
expect_text "what explain says" "$(explain)" "/dev/disk/by-id/dm-uuid-mpath-"
state() { multipath -ll; iscsiadm -m session -P 3 | grep -E 'Current Portal|State|scsi disk'; volumectl explain "$1" | cut -c1-600; }

say "$(now): a path dies under a pod that writes"
grow_fill lun1
writer_start lun1
source=$(grow_source)
server_cut second
must wait_until 40 has_paths 1
told=$(cat "$lab_state/told-lun1")
goes_on() { (($(cat "$lab_state/told-lun1") > told + 3)); }
must wait_until 30 goes_on
state first

say "$(now): the agent is killed meanwhile"
before=$(property MainPID)
systemctl kill -s KILL --kill-whom=main volumed
agent_is_new() { [[ $(property MainPID) != "$before" ]] && volumectl status >/dev/null 2>&1; }
must wait_until 60 agent_is_new
wait_ready first 60
expect "what is mounted" "$(grow_source)" "$source"
told=$(cat "$lab_state/told-lun1")
must wait_until 30 goes_on
state first
server_join second
must wait_until 60 has_paths 2
say "$(now): it is back"
writer_stop lun1
expect "lines lost" "$(writer_lost lun1)" 0
must grow_same lun1

say "$(now): the LUN grows"
iscsi_target_resize 1 160
sed -i '0,/storage: 64Mi/s//storage: 160Mi/' /etc/volumed/manifests/first.yaml
grown() { (($(findmnt -bno SIZE "$(grow_place)") > 120 << 20)); }
wait_until 60 grown || { state first; fail "it does not grow"; }
say "$(now): grown"
must grow_same lun1
lsblk -nro NAME,SIZE,TYPE

say "$(now): the pod leaves"
mv /etc/volumed/manifests/first.yaml /root/first.yaml
wait_gone first 60
wait_until 40 nothing_left || { state first; lsblk; fail "not all goes"; }
say "$(now): gone"

say "$(now): a raw block volume"
{ volume lun2 2 Block; block_pod raw ${uid}2 lun2; } >/etc/volumed/manifests/raw.yaml
wait_ready raw 90
link=$volumed_root/pods/${uid}2/volumeDevices/kubernetes.io~iscsi/lun2
ls -l "$link"
volumectl explain raw
expect "what is mapped" "$(lsblk -dnro TYPE "$(readlink -f "$link")")" mpath
echo raw | dd of="$link" conv=fsync status=none
rm /etc/volumed/manifests/raw.yaml
wait_gone raw 60
wait_until 40 nothing_left || { state raw; lsblk; fail "not all goes"; }
say "$(now): gone"

say "$(now): a pod leaves while a path is dead"
mv /root/first.yaml /etc/volumed/manifests/first.yaml
wait_ready first 90
must grow_same lun1
expect "paths of the map" "$(paths)" 2
server_cut second
rm /etc/volumed/manifests/first.yaml
wait_gone first 60
wait_until 60 nothing_left || { state first; lsblk; fail "not all goes"; }
say "$(now): gone"
server_join second

say "$(now): no multipathd"
must systemctl stop multipathd.socket multipathd.service
{ volume lun3 3; pod single ${uid}3 lun3; } >/etc/volumed/manifests/single.yaml
wait_ready single 120
state single
say "$(now): multipathd comes"
systemctl start multipathd.socket multipathd.service
sleep 3
state single
rm /etc/volumed/manifests/single.yaml
wait_gone single 60
wait_until 60 nothing_left || { state single; lsblk; fail "not all goes"; }
say "$(now): gone"

expect "records of open-iscsi" "$(find /etc/iscsi/nodes /etc/iscsi/send_targets -type f 2>/dev/null | wc -l)" 0
expect "mounts" "$(pod_mounts)" ""
find $volumed_root/plugins
journalctl -b -u volumed --no-pager | tail -n 60
journalctl -b -u multipathd --no-pager | tail -n 60
say "up for $(now) s"
