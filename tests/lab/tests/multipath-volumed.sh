# iSCSI volumes by two portals, with the real multipathd, under the shipped unit: a path that dies
# and returns under a pod that writes, an agent that is killed meanwhile, a LUN that grows without one
# of its paths, a raw block volume, volumes that leave while one path or all are dead, and a node
# without a multipath device. No map, no disk, no session and no record of open-iscsi is left.
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
  no_path_retry 12
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
must systemctl restart multipathd
iscsi_secret chap robot canary-4711 >/etc/volumed/manifests/chap.yaml
start_volumed

sessions() { iscsiadm -m session 2>/dev/null | wc -l; }
disks() { lsblk -dnro NAME,TRAN | grep -c iscsi || true; }
maps() { dmsetup status --target multipath | grep -c multipath || true; }
# paths [A|F]: active or failed ones of all maps, as device-mapper has them.
paths() { dmsetup status --target multipath | grep -oE " [0-9]+:[0-9]+ [${1:-AF}] " | wc -l; }
has_paths() { [[ $(paths A) == "$1" ]]; }
has_disks() { [[ $(disks) == "$1" ]]; }
nothing_left() { [[ $(sessions)$(disks)$(maps) == 000 && -z $(multipath -ll)$(find $volumed_root/plugins -name iscsi.json) ]]; }
gone() { wait_until 40 nothing_left || fail "left is: $(iscsiadm -m session; lsblk; multipath -ll; find $volumed_root/plugins)"; }
kind() { lsblk -dnro TYPE "$1"; }
place() { echo "$volumed_root/pods/$uid$1/volumes/kubernetes.io~iscsi/$2"; }
grow_place() { place 1 lun1; }  # of what grow.sh speaks here
source_of() { findmnt -nro SOURCE "$(place "$1" "$2")"; }
link=$volumed_root/pods/${uid}2/volumeDevices/kubernetes.io~iscsi/lun2
volume() { iscsi_volume "$1" "$2" chap "${3:-Filesystem}" $second_address; }

say "two portals: a filesystem and a raw block volume, each on its multipath device"
{ volume lun1 1; pod first ${uid}1 lun1; } >/root/first.yaml
{ volume lun2 2 Block; block_pod raw ${uid}2 lun2; } >/root/raw.yaml
cp /root/first.yaml /root/raw.yaml /etc/volumed/manifests/
wait_ready first 90
wait_ready raw 90
expect "sessions, disks, maps, paths" "$(sessions) $(disks) $(maps) $(paths A)" "2 4 2 4"
expect "what is mounted" "$(kind "$(source_of 1 lun1)")" mpath
expect "what is mapped" "$(kind "$(readlink -f "$link")")" mpath
expect_text "the device of the pod" "$(volumectl explain first)" "DeviceMounted, /dev/disk/by-id/dm-uuid-mpath-36"
expect_text "the device of the raw volume" "$(volumectl explain raw)" "/dev/disk/by-id/dm-uuid-mpath-36"
expect "pods that heard of a single path" "$(explains first IscsiSinglePath && echo first; explains raw IscsiSinglePath && echo raw)" ""

say "$(now): a path dies under a pod that writes"
grow_fill lun1
writer_start lun1
source=$(source_of 1 lun1)
goes_on() { (($(cat "$lab_state/told-lun1") > told + 3)); }
writes_go_on() {
  told=$(cat "$lab_state/told-lun1")
  must wait_until 30 goes_on
}
server_cut second
must wait_until 40 has_paths 2
writes_go_on

say "$(now): the agent is killed meanwhile"
before=$(property MainPID)
systemctl kill -s KILL --kill-whom=main volumed
agent_is_new() { [[ $(property MainPID) != "$before" ]] && volumectl status >/dev/null 2>&1; }
must wait_until 60 agent_is_new
wait_ready first 60
expect "what is mounted" "$(source_of 1 lun1)" "$source"
writes_go_on
writer_stop lun1

# The disk of which cable is first in the map is chance, and multipathd answers by that order.
# grows_without CABLE MEGABYTES WAS
grown() { (($(findmnt -bno SIZE "$(grow_place)") > ($1 << 20) * 3 / 4)); }
grows_without() {
  say "$(now): the LUN grows to $2 MiB without the path by $1"
  iscsi_target_resize 1 "$2"
  sed -i "0,/storage: $3Mi/s//storage: $2Mi/" /root/first.yaml
  manifest first </root/first.yaml
  must wait_until 60 explains first "once all its paths have it"
  volumectl explain first | grep -F "once all"
  server_join "$1"
  must wait_until 60 has_paths 4
  must wait_until 60 grown "$2"
}
grows_without second 160 64
expect "lines lost" "$(writer_lost lun1)" 0
must grow_same lun1
server_cut cable
must wait_until 40 has_paths 2
grows_without cable 320 160
must grow_same lun1

say "$(now): one leaves, then the other"
rm /etc/volumed/manifests/first.yaml
wait_gone first 60
must wait_until 30 has_disks 2
expect "sessions, maps, paths" "$(sessions) $(maps) $(paths A)" "2 1 2"
echo raw | dd of="$link" conv=fsync status=none
rm /etc/volumed/manifests/raw.yaml
wait_gone raw 60
gone

say "$(now): one leaves while a path is dead, the other without any"
cp /root/first.yaml /root/raw.yaml /etc/volumed/manifests/
wait_ready first 90
wait_ready raw 90
must grow_same lun1
expect "what was written" "$(head -c 3 "$link")" raw
expect "paths" "$(paths A)" 4
server_cut second
rm /etc/volumed/manifests/first.yaml
wait_gone first 60
must wait_until 40 has_disks 2
server_cut
rm /etc/volumed/manifests/raw.yaml
wait_gone raw 60
gone
server_join
server_join second

say "$(now): without multipathd"
must systemctl stop multipathd.socket multipathd.service
{ volume lun3 3; pod single ${uid}3 lun3; } | manifest single
wait_ready single 90
must explains single IscsiSinglePath
expect "what is mounted" "$(kind "$(source_of 3 lun3)")" disk
expect "sessions and disks" "$(sessions) $(disks)" "2 2"
must systemctl start multipathd.socket multipathd.service
echo single >"$(place 3 lun3)/note"
rm /etc/volumed/manifests/single.yaml
wait_gone single 60
gone
expect "records of open-iscsi" "$(find /etc/iscsi/nodes /etc/iscsi/send_targets -type f 2>/dev/null | wc -l)" 0
expect "mounts" "$(pod_mounts)" ""
expect "multipathd" "$(systemctl is-active multipathd)" active
say "up for $(now) s"
