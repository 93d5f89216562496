# A listed export of an NFS server as a volume of the CSI driver, under the shipped unit: staged once and
# published at two targets, over a kill; its server dies, and another volume goes on; what is staged is taken
# away meanwhile, and has its data when the server is back.
# needs: product
. /lab/lib/lab.sh
. /lab/lib/volumed.sh
. /lab/lib/server.sh
. /lab/lib/nfs.sh
. /lab/lib/csi.sh
writer_of_many=5  # MULTI_NODE_MULTI_WRITER
writer_here=1     # SINGLE_NODE_WRITER
co=/srv/co
listed() { journalctl -b -u volumed -o cat | sed -n 's/.*a listed export is a volume.* volume=\(v-[0-9a-f-]*\).*/\1/p' | tail -n 1; }
is_listed() { [[ -n $(listed) ]]; }
is_served() { [[ $(csi_call Identity Probe "") == 0 ]]; }
# stage ID PATH MODE, publish ID STAGING TARGET MODE, stats ID PATH, and the ways back: a message each.
stage() {
  csi_text 1 "$1"
  csi_text 3 "$2"
  csi_message 4 "$(csi_mount "$3")"
}
publish() {
  csi_text 1 "$1"
  csi_text 3 "$2"
  csi_text 4 "$3"
  csi_message 5 "$(csi_mount "$4")"
}
at() {
  csi_text 1 "$1"
  csi_text 2 "$2"
}
is_mount() { grep -qF " $1 " /proc/1/mountinfo; }

server_up
nfs_start
mkdir -p /srv/lab/media /srv/pool $co/{stage,stage-b,pod-a,pod-b,pod-c}
disk=$(plug virtio-blk pool 384)
must mkfs.xfs -q "$disk"
must mount "$disk" /srv/pool
install_volumed
configure 'pool: {fast: /srv/pool}' "csi-serve: $csi_socket" 'csi-profile: central' "csi-target-roots: [$co]" \
  'nfs-unmount-timeout: 10s' 'deadline-stats: 5s' \
  "static-exports: {media: \"$server_address:/srv/lab/media nfsvers=4.2,nosuid\"}"
start_volumed
must wait_until 30 is_listed
media=$(listed)
say "the export is volume $media"

say "it is staged and published twice, over a kill"
csi_is "media" 0 Node NodeStageVolume "$(stage "$media" $co/stage $writer_of_many)"
expect_text "what is staged" "$(findmnt -n -o SOURCE,FSTYPE,OPTIONS $co/stage)" "$server_address:/srv/lab/media"
expect_text "its options" "$(findmnt -n -o OPTIONS $co/stage)" nosuid
csi_is "media" 0 Node NodePublishVolume "$(publish "$media" $co/stage $co/pod-a/v $writer_of_many)"
must systemctl kill --signal=KILL volumed
must wait_until 60 is_served
csi_is "media again" 0 Node NodePublishVolume "$(publish "$media" $co/stage $co/pod-a/v $writer_of_many)"
csi_is "media" 0 Node NodePublishVolume "$(publish "$media" $co/stage $co/pod-b/v $writer_of_many)"
echo hello >$co/pod-a/v/note
expect "what the other target has" "$(cat $co/pod-b/v/note)" hello
expect "what its server has" "$(cat /srv/lab/media/note)" hello
sync
csi_is "figures" 0 Node NodeGetVolumeStats "$(at "$media" $co/pod-b/v)"

say "the server dies: its volume says so in time, and another one is made, written and deleted meanwhile"
server_cut
from=$(now)
csi_is "figures of a dead server" 4 Node NodeGetVolumeStats "$(at "$media" $co/pod-a/v)"
say "answered after $(since "$from") s"
# 64 MiB.
csi_is "another volume" 0 Controller CreateVolume "$(csi_text 1 other; csi_message 2 "$(csi_number 1 80808020)"
  csi_message 3 "$(csi_mount $writer_here)")"
other=$(csi_volume)
csi_is "it" 0 Node NodeStageVolume "$(stage "$other" $co/stage-b $writer_here)"
csi_is "it" 0 Node NodePublishVolume "$(publish "$other" $co/stage-b $co/pod-c/v $writer_here)"
echo bytes >$co/pod-c/v/file
csi_is "it" 0 Node NodeGetVolumeStats "$(at "$other" $co/pod-c/v)"
csi_is "it" 0 Node NodeUnpublishVolume "$(at "$other" $co/pod-c/v)"
csi_is "it" 0 Node NodeUnstageVolume "$(at "$other" $co/stage-b)"
csi_is "it" 0 Controller DeleteVolume "$(csi_text 1 "$other")"
say "all of that was done $(since "$from") s after the server's death"

say "what is published and staged goes without its server"
csi_is "media" 0 Node NodeUnpublishVolume "$(at "$media" $co/pod-a/v)"
csi_is "media" 0 Node NodeUnpublishVolume "$(at "$media" $co/pod-b/v)"
csi_is "media" 0 Node NodeUnstageVolume "$(at "$media" $co/stage)"
is_mount $co/stage && fail "it is mounted still"

say "the server is back"
server_join
csi_is "media" 0 Node NodeStageVolume "$(stage "$media" $co/stage $writer_of_many)"
expect "its data" "$(cat $co/stage/note)" hello
csi_is "media, which is listed" 9 Controller DeleteVolume "$(csi_text 1 "$media")"
csi_is "media" 0 Node NodeUnstageVolume "$(at "$media" $co/stage)"
expect "mounts of NFS" "$(grep -c ' - nfs4 ' /proc/1/mountinfo || true)" 0
must systemctl stop volumed
must umount /srv/pool
say "up for $(now) s"
