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
multipath -ll
volumectl explain first
volumectl get devices || true
expect "sessions" "$(sessions)" 2
expect "disks" "$(disks)" 2
expect "paths of the map" "$(paths)" 2
expect "kind of what is mounted" "$(lsblk -dnro TYPE "$(grow_source)")" mpath
say "end at $(now)"
